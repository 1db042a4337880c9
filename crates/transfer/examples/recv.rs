//! Receives one tree of files, from whoever has the ticket that this prints:
//! `cargo run -p byway-transfer --example recv DIRECTORY`

use byway_transfer::{Identity, News, Receiving, ReceivingPlan};
use std::error::Error;
use std::time::Duration;

fn main() -> Result<(), Box<dyn Error>> {
    let directory = std::env::args().nth(1).ok_or("which directory?")?;
    let plan = ReceivingPlan::new(Identity::generate()?, directory.into())?;
    println!("{}", plan.ticket());
    let receiving = Receiving::start(ReceivingPlan { once: true, ..plan })?;
    loop {
        match receiving.next(Duration::from_millis(100)) {
            Some(News::Received(received)) => {
                println!("{} bytes from {}", received.bytes, received.origin.from);
                received.outcome?;
            }
            Some(News::Warning(sentence)) => eprintln!("{sentence}"),
            None if receiving.is_over() => break,
            _ => {}
        }
    }
    Ok(receiving.join()?)
}
