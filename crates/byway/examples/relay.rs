//! A listener that nobody reaches directly, such as one behind a router, and a sender with a path
//! more: both by the word that `byway relay` prints.
//! `cargo run -p byway --example relay WORD` prints a ticket. With the ticket behind the word it
//! sends.

use byway::{Config, Endpoint, Ticket, Word};
use std::error::Error;
use std::io::{Read as _, Write as _};

/// What both ends speak.
const PROTOCOL: &str = "byway-greeting/1";

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let word: Word = arguments.next().ok_or("which relay? `byway relay` prints a word")?.parse()?;
    let config = Config::new().protocol(PROTOCOL)?;
    let Some(ticket) = arguments.next() else {
        let listener = listen(config, word)?;
        println!("{}", listener.ticket());
        println!("{}", hear(&listener)?);
        return Ok(());
    };
    greet(config.relays([word]), &ticket.parse()?, "good morning")
}

/// Listens at a relay. Its ticket names the relay, so that a sender needs the ticket alone.
pub fn listen(config: Config, word: Word) -> Result<Endpoint, Box<dyn Error>> {
    let listener = Endpoint::listen(config.relays([word]))?;
    match listener.relay_troubles().pop() {
        Some(trouble) => Err(trouble.into()),
        None => Ok(listener),
    }
}

/// Waits for a greeting.
pub fn hear(listener: &Endpoint) -> Result<String, Box<dyn Error>> {
    let (mut stream, mut greeting) = (listener.accept()?.accept_stream()?, String::new());
    stream.read_to_string(&mut greeting)?;
    Ok(greeting)
}

/// Connects over every path that there is, and greets.
pub fn greet(config: Config, ticket: &Ticket, greeting: &str) -> Result<(), Box<dyn Error>> {
    let peer = byway::connect_with(ticket, config)?;
    let mut stream = peer.open_stream()?;
    stream.write_all(greeting.as_bytes())?;
    stream.finish()?;
    Ok(peer.close()?)
}
