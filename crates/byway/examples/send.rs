//! A file drop: sends files to whoever printed the ticket.
//! `cargo run -p byway --example send TICKET FILE...`

use byway::{Config, Peer, Ticket};
use std::error::Error;
use std::fs::File;
use std::path::{Path, PathBuf};

/// What both ends of the file drop speak.
const PROTOCOL: &str = "byway-drop/1";

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let ticket: Ticket = arguments.next().ok_or("to whom? `listen` prints a ticket")?.parse()?;
    let peer = byway::connect_with(&ticket, Config::new().protocol(PROTOCOL)?)?;
    for path in arguments.map(PathBuf::from) {
        send(&peer, &path)?;
        println!("{}", path.display());
    }
    // Waits until the other side has written all of them.
    Ok(peer.close()?)
}

/// Hands a file over.
pub fn send(peer: &Peer, path: &Path) -> Result<(), Box<dyn Error>> {
    let name = path.file_name().and_then(|name| name.to_str()).ok_or("a name that is text")?;
    let file = File::open(path)?;
    let size = file.metadata()?.len();
    peer.send_object(name.as_bytes(), size, file)?;
    Ok(())
}
