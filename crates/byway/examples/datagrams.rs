//! A position every 50 ms, of which only the latest counts: messages that may be lost.
//! `cargo run -p byway --example datagrams` prints a ticket; with the ticket it sends.

use byway::{Config, Endpoint, Peer, Ticket};
use std::error::Error;
use std::time::Duration;

/// What both ends speak.
const PROTOCOL: &str = "byway-positions/1";

fn main() -> Result<(), Box<dyn Error>> {
    let config = Config::new().protocol(PROTOCOL)?;
    let Some(ticket) = std::env::args().nth(1) else {
        let listener = Endpoint::listen(config)?;
        println!("{}", listener.ticket());
        let peer = listener.accept()?;
        while let Ok((number, position)) = receive(&peer) {
            println!("{number}: {position}");
        }
        return Ok(());
    };
    let peer = byway::connect_with(&ticket.parse::<Ticket>()?, config)?;
    for number in 0..200 {
        send(&peer, number, f64::from(number).sin())?;
        std::thread::sleep(Duration::from_millis(50));
    }
    Ok(peer.close()?)
}

/// Sends a position by the fastest path. A later one may overtake it.
pub fn send(peer: &Peer, number: u32, position: f64) -> Result<(), Box<dyn Error>> {
    let message = [&number.to_be_bytes()[..], &position.to_be_bytes()[..]].concat();
    match peer.send_datagram(&message) {
        // The paths carry no more for now. The next position says more than this one.
        Err(byway::DatagramError::Full) => Ok(()),
        sent => Ok(sent?),
    }
}

/// Waits for a position, and for its number.
pub fn receive(peer: &Peer) -> Result<(u32, f64), Box<dyn Error>> {
    let message: [u8; 12] = peer.receive_datagram()?.as_slice().try_into()?;
    let (number, position) = message.split_at(4);
    Ok((u32::from_be_bytes(number.try_into()?), f64::from_be_bytes(position.try_into()?)))
}
