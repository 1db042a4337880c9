//! A file drop: takes files from whoever has the ticket that this prints, into a directory.
//! `cargo run -p byway --example listen DIRECTORY`

use byway::{Config, Endpoint, IncomingObject, Peer};
use std::error::Error;
use std::ffi::OsStr;
use std::fs::File;
use std::path::{Component, Path};

/// What both ends of the file drop speak.
const PROTOCOL: &str = "byway-drop/1";

fn main() -> Result<(), Box<dyn Error>> {
    let directory = std::env::args().nth(1).ok_or("which directory?")?;
    let listener = Endpoint::listen(Config::new().protocol(PROTOCOL)?)?;
    println!("{}", listener.ticket());
    loop {
        let peer = listener.accept()?;
        let directory = directory.clone();
        std::thread::spawn(move || {
            if let Err(error) = take(&peer, Path::new(&directory)) {
                eprintln!("{}: {error}", peer.key());
            }
        });
    }
}

/// Takes files from a peer until it closes the connection. Returns how many there were.
pub fn take(peer: &Peer, directory: &Path) -> Result<u64, Box<dyn Error>> {
    let mut files = 0;
    loop {
        match peer.accept_object() {
            Ok(mut object) => save(&mut object, directory)?,
            Err(byway::ConnectionError::Closed { code: 0, .. }) => return Ok(files),
            Err(other) => return Err(other.into()),
        }
        files += 1;
    }
}

/// Writes a file as its bytes come, in whatever order that is.
fn save(object: &mut IncomingObject, directory: &Path) -> Result<(), Box<dyn Error>> {
    // The name is the peer's word: it must not lead anywhere else.
    let name = std::str::from_utf8(object.header())?.to_owned();
    let mut parts = Path::new(&name).components();
    let (Some(Component::Normal(plain)), None) = (parts.next(), parts.next()) else {
        return Err(format!("{name:?} is no name of a file").into());
    };
    if plain != OsStr::new(&name) {
        return Err(format!("{name:?} is no name of a file").into());
    }
    let mut file = File::create_new(directory.join(plain))?;
    object.copy_to(&mut file)?;
    Ok(())
}
