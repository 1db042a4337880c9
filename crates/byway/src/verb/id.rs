//! `byway id`: who this host is.

use crate::args::Global;
use crate::exit::Exit;
use crate::output::{Event, Outcome, Output};
use anyhow::Result;
use byway_transfer::state::StateDir;

/// Prints the public key, making the key pair on first use.
pub(super) fn run(global: &Global, output: &mut Output) -> Result<Exit> {
    let state = StateDir::locate(global.state_dir.as_deref(), |name| std::env::var_os(name))?;
    let key = state.identity()?.public().to_string();
    output.answer(&key)?;
    output.emit(&Event::result("id", Exit::Ok, Outcome::Id { key }));
    Ok(Exit::Ok)
}
