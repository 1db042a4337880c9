//! Sends a file or a directory to whoever printed the ticket:
//! `cargo run -p byway-transfer --example send_tree PATH TICKET`

use byway_transfer::{Identity, Payload, Sending, SendingPlan, SourceOptions, TransferEvent};
use std::error::Error;
use std::sync::Arc;
use std::time::Duration;

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let path = arguments.next().ok_or("which path?")?;
    let ticket = arguments.next().ok_or("to whom? `receive_tree` prints a ticket")?;
    let payload = Payload::Tree {
        paths: vec![path.into()],
        options: SourceOptions::default(),
        selection: Arc::default(), // all of it
    };
    let sending = Sending::start(SendingPlan::new(Identity::generate()?, ticket.parse()?, payload)?)?;
    loop {
        match sending.next(Duration::from_millis(100)) {
            Some(TransferEvent::Progress(tally)) => {
                println!("{} bytes, {:.0} bit/s", tally.bytes, tally.rate_bps)
            }
            Some(TransferEvent::Warning(sentence)) => eprintln!("{sentence}"),
            None if sending.is_over() => break,
            _ => {}
        }
    }
    let sent = sending.join()?;
    sent.outcome?;
    println!("{} bytes in {:.2} s", sent.bytes, sent.seconds);
    Ok(())
}
