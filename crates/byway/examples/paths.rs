//! Sends zeros, and shows each second which paths carry them, and why not more.
//! `cargo run -p byway --example paths` prints a ticket; with the ticket it sends.

use byway::{Config, Endpoint, Peer, Priority, Ticket};
use std::error::Error;
use std::io::Write as _;
use std::time::Duration;

/// What both ends speak.
const PROTOCOL: &str = "byway-zeros/1";

fn main() -> Result<(), Box<dyn Error>> {
    let config = Config::new().protocol(PROTOCOL)?.priority(Priority::Background);
    let Some(ticket) = std::env::args().nth(1) else {
        let listener = Endpoint::listen(config)?;
        println!("{}", listener.ticket());
        let mut stream = listener.accept()?.accept_stream()?;
        std::io::copy(&mut stream, &mut std::io::sink())?;
        return Ok(());
    };
    let peer = byway::connect_with(&ticket.parse::<Ticket>()?, config)?;
    let watched = peer.clone();
    std::thread::spawn(move || {
        while watched.ended().is_none() {
            std::thread::sleep(Duration::from_secs(1));
            show(&watched).iter().for_each(|line| println!("{line}"));
        }
    });
    let mut stream = peer.open_stream()?;
    (0..1_000).try_for_each(|_| stream.write_all(&[0; 1 << 20]))?;
    stream.finish()?;
    Ok(peer.close()?)
}

/// A line for each path that answers, and one that says what holds the connection up.
pub fn show(peer: &Peer) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for path in peer.paths() {
        let rate = path.bits_per_second / 1e6;
        let rtt = path.rtt.map(|rtt| format!("RTT {:.1} ms, ", rtt.as_secs_f64() * 1e3)).unwrap_or_default();
        let way = if path.relayed { "by a relay" } else { "directly" };
        lines.push(format!("{} ({way}): {rate:.1} Mbit/s, {rtt}{} lost", path.name, path.lost));
    }
    lines.extend(peer.why_slow().map(|why| format!("why not faster: {why:?}")));
    lines
}
