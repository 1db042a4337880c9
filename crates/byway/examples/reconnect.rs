//! Sends each line of standard input to a peer that may be away, asleep or restarted in between.
//! `cargo run -p byway --example reconnect` prints a ticket; with the ticket it sends.

use byway::{Config, ConnectError, Endpoint, Peer, Ticket};
use std::error::Error;
use std::io::{BufRead as _, Read as _, Write as _};
use std::time::Duration;

/// What both ends speak.
const PROTOCOL: &str = "byway-lines/1";
/// The longest wait between two attempts.
const MAX_RETRY_DELAY: Duration = Duration::from_secs(30);

fn main() -> Result<(), Box<dyn Error>> {
    let config = Config::new().protocol(PROTOCOL)?;
    let Some(ticket) = std::env::args().nth(1) else {
        let listener = Endpoint::listen(config)?;
        println!("{}", listener.ticket());
        loop {
            let peer = listener.accept()?;
            while let Ok(mut stream) = peer.accept_stream() {
                let mut line = String::new();
                stream.read_to_string(&mut line)?;
                println!("{line}");
            }
        }
    };
    let ticket: Ticket = ticket.parse()?;
    let mut peer = connect(&ticket, &config)?;
    for line in std::io::stdin().lock().lines() {
        let line = line?;
        // What was not confirmed is sent again: a line may arrive twice, and none is lost.
        while let Err(error) = send(&peer, &line) {
            eprintln!("{error}: connecting again");
            peer = connect(&ticket, &config)?;
        }
    }
    Ok(peer.close()?)
}

/// Connects, as often as it takes while nobody answers. Another answer than a peer's ends it.
pub fn connect(ticket: &Ticket, config: &Config) -> Result<Peer, ConnectError> {
    let mut delay = Duration::from_millis(500);
    loop {
        match byway::connect_with(ticket, config.clone()) {
            Err(ConnectError::NotConnected(byway::NotConnected::NoAnswer(_)) | ConnectError::Lost(_)) => {
                std::thread::sleep(delay);
                delay = (2 * delay).min(MAX_RETRY_DELAY);
            }
            other => return other,
        }
    }
}

/// Sends a line, and waits until the peer's application has read it.
pub fn send(peer: &Peer, line: &str) -> std::io::Result<()> {
    let mut stream = peer.open_stream()?;
    stream.write_all(line.as_bytes())?;
    Ok(stream.finish()?)
}
