//! Receives one tree of files, from whoever has the ticket that this prints:
//! `cargo run -p byway-transfer --example receive_tree DIRECTORY`

use byway_transfer::{Identity, Receiving, ReceivingPlan, TransferEvent};
use std::error::Error;
use std::time::Duration;

fn main() -> Result<(), Box<dyn Error>> {
    let directory = std::env::args().nth(1).ok_or("which directory?")?;
    let plan = ReceivingPlan::new(Identity::generate()?, directory.into())?;
    println!("{}", plan.ticket());
    let receiving = Receiving::start(ReceivingPlan { once: true, ..plan })?;
    loop {
        match receiving.next(Duration::from_millis(100)) {
            Some(TransferEvent::Received(received)) => {
                println!("{} bytes from {}", received.bytes, received.origin.from);
                received.outcome?;
            }
            Some(TransferEvent::Warning(sentence)) => eprintln!("{sentence}"),
            None if receiving.is_over() => break,
            _ => {}
        }
    }
    Ok(receiving.join()?)
}
