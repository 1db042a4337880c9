//! `byway id`: who this host is.

use crate::args::Global;
use crate::exit::Exit;
use crate::output::{Event, Outcome, Output};
use anyhow::Result;

/// Prints the public key, making the key pair on first use.
pub(super) fn run(global: &Global, output: &mut Output) -> Result<Exit> {
    let state = global.state()?;
    let key = state.identity()?.public().to_string();
    output.answer(&key)?;
    output.emit(&Event::result("id", Exit::Ok, Outcome::Id { key }));
    Ok(Exit::Ok)
}
