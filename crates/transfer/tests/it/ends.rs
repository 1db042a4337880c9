//! The end of a transfer reaches the program by itself, not with the program's next look.

use byway_transfer::{
    Identity, Payload, Receiving, ReceivingPlan, Sending, SendingPlan, SourceOptions, Ticket, TransferEvent,
};
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::sync::mpsc::channel;
use std::thread;
use std::time::Duration;

/// A program that waits so long for news sees nothing that only its looks make happen.
const NEVER: Duration = Duration::from_secs(3_600);
const TICK: Duration = Duration::from_millis(20);

pub fn over_loopback(ticket: Ticket) -> Ticket {
    let port = ticket.addresses.iter().find(|address| address.is_ipv4()).unwrap().port();
    Ticket { addresses: vec![SocketAddr::new(Ipv4Addr::LOCALHOST.into(), port)], ..ticket }
}

/// Sends two bytes. Whoever of both `waits` for news asks for it once, and then hears only what
/// wakes it.
fn two_bytes(waits: [bool; 2]) {
    let place = tempfile::tempdir().unwrap();
    let (file, sink) = (place.path().join("file"), place.path().join("in"));
    std::fs::write(&file, "hi").unwrap();
    let plan = ReceivingPlan::new(Identity::generate().unwrap(), sink.clone()).unwrap();
    let ticket = over_loopback(plan.ticket());
    let receiving = Receiving::start(ReceivingPlan { once: true, ..plan }).unwrap();
    let [sender_waits, receiver_waits] = waits.map(|waits| if waits { NEVER } else { TICK });
    let (ends, ended) = channel();
    let received = ends.clone();
    thread::spawn(move || {
        let mut transfers = 0;
        while !receiving.is_over() {
            // Until the transfer is there, the receiver has to look.
            let patience = if transfers > 0 { receiver_waits } else { TICK };
            transfers += u32::from(matches!(receiving.next(patience), Some(TransferEvent::Received(_))));
        }
        receiving.join().unwrap();
        received.send(transfers).unwrap();
    });
    thread::spawn(move || {
        let payload =
            Payload::Tree { paths: vec![file], options: SourceOptions::default(), selection: Arc::default() };
        let plan = SendingPlan::new(Identity::generate().unwrap(), ticket, payload).unwrap();
        let sending = Sending::start(plan).unwrap();
        let mut begun = false;
        while !sending.is_over() {
            let patience = if begun { sender_waits } else { TICK };
            begun |= matches!(sending.next(patience), Some(TransferEvent::Begun));
        }
        sending.join().unwrap().outcome.unwrap();
        ends.send(1).unwrap();
    });
    for _ in 0..2 {
        let end = ended.recv_timeout(Duration::from_secs(120));
        assert_eq!(end, Ok(1), "a program that waits for news does not hear of the end");
    }
    assert_eq!(std::fs::read(sink.join("file")).unwrap(), b"hi");
}

#[test]
fn a_sender_that_waits_hears_of_its_end() {
    two_bytes([true, false]);
}

#[test]
fn a_receiver_that_waits_hears_of_its_end() {
    two_bytes([false, true]);
}
