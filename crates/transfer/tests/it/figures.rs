//! Figures of a transfer are measured: those of its paths at its end, and what is said of its end.

use byway_net::Socket;
use byway_transfer::{
    Identity, Payload, ReceivedTransfer, Receiving, ReceivingPlan, Sending, SendingPlan, SentTransfer,
    SourceOptions, Ticket, TransferError, TransferEvent,
};
use std::net::{Ipv4Addr, SocketAddr, UdpSocket};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

const TICK: Duration = Duration::from_millis(20);
const SOON: Duration = Duration::from_secs(120);

fn loopback() -> SocketAddr {
    SocketAddr::from((Ipv4Addr::LOCALHOST, 0))
}

fn receiver(sink: &Path) -> (ReceivingPlan, SocketAddr) {
    let plan = ReceivingPlan::new(Identity::generate().unwrap(), sink.to_path_buf()).unwrap();
    let socket = Socket::bind(loopback()).unwrap();
    let address = socket.address();
    (ReceivingPlan { sockets: vec![socket], listeners: Vec::new(), ..plan }, address)
}

fn sender(file: &Path, ticket: Ticket) -> SendingPlan {
    let payload = Payload::Tree {
        paths: vec![file.to_path_buf()],
        options: SourceOptions::default(),
        selection: Arc::default(),
    };
    let plan = SendingPlan::new(Identity::generate().unwrap(), ticket, payload).unwrap();
    let sockets = vec![Socket::bind(loopback()).unwrap()];
    SendingPlan { sockets, follow: None, tcp: false, ..plan }
}

/// The result of the transfer that ends next at a receiver.
fn received(receiving: &Receiving) -> ReceivedTransfer {
    let begun = Instant::now();
    while begun.elapsed() < SOON {
        if let Some(TransferEvent::Received(received)) = receiving.next(TICK) {
            return received;
        }
    }
    panic!("no transfer ended");
}

fn sent(sending: Sending) -> SentTransfer {
    let begun = Instant::now();
    while !sending.is_over() && begun.elapsed() < SOON {
        sending.next(TICK);
    }
    assert!(sending.is_over(), "the sender does not end");
    sending.join().unwrap()
}

#[test]
fn a_short_transfer_shows_what_each_path_carried() {
    const BYTES: u64 = 50_000;
    let place = tempfile::tempdir().unwrap();
    let (file, sink) = (place.path().join("file"), place.path().join("in"));
    let (plan, address) = receiver(&sink);
    let ticket = Ticket { addresses: vec![address], ..plan.ticket() };
    let receiving = Receiving::start(plan).unwrap();
    // The owner of a ticket is its first sender.
    let identity = Identity::generate().unwrap();
    for round in 0..8_u8 {
        std::fs::write(&file, vec![round; BYTES as usize]).unwrap();
        let identity = identity.clone();
        let plan = SendingPlan { identity, ..sender(&file, ticket.clone()) };
        let sent = sent(Sending::start(plan).unwrap());
        let received = received(&receiving);
        sent.outcome.unwrap();
        received.outcome.unwrap();
        for (end, paths) in [("sender", &sent.paths), ("receiver", &received.paths)] {
            let bytes: u64 = paths.iter().map(|path| path.bytes).sum();
            assert!(!paths.is_empty() && bytes >= BYTES, "{end}, round {round}: {paths:?}");
        }
        assert!(sent.paths.iter().all(|path| path.lost.is_some() && path.rtt.is_some()));
        assert!(received.paths.iter().all(|path| path.lost.is_none()), "the sender alone knows");
    }
    receiving.cancel();
    receiving.join().unwrap();
}

/// A line to `receiver` that carries nothing while it is cut: where it begins, and its switch.
fn line(receiver: SocketAddr) -> (SocketAddr, Arc<AtomicBool>) {
    let [near, far] = [(); 2].map(|()| UdpSocket::bind(loopback()).unwrap());
    far.connect(receiver).unwrap();
    let (begin, is_cut) = (near.local_addr().unwrap(), Arc::new(AtomicBool::new(false)));
    let (near_back, far_back, cut_back) =
        (near.try_clone().unwrap(), far.try_clone().unwrap(), Arc::clone(&is_cut));
    let cut_forth = Arc::clone(&is_cut);
    thread::spawn(move || {
        let mut buffer = [0; 1 << 16];
        let mut answers = None;
        while let Ok((length, from)) = near.recv_from(&mut buffer) {
            if answers.is_none() {
                answers = Some(from);
                let (near, far, is_cut) =
                    (near_back.try_clone().unwrap(), far_back.try_clone().unwrap(), Arc::clone(&cut_back));
                thread::spawn(move || {
                    let mut buffer = [0; 1 << 16];
                    while let Ok(length) = far.recv(&mut buffer) {
                        if !is_cut.load(Ordering::Relaxed) {
                            let _ = near.send_to(&buffer[..length], from);
                        }
                    }
                });
            }
            if !cut_forth.load(Ordering::Relaxed) {
                let _ = far.send(&buffer[..length]);
            }
        }
    });
    (begin, is_cut)
}

/// The receiver has heard nothing for longer than it waits, and has run all the while.
#[test]
fn a_receiver_that_forgot_a_silent_session_is_not_said_to_be_started_anew() {
    let place = tempfile::tempdir().unwrap();
    let (file, sink) = (place.path().join("file"), place.path().join("in"));
    std::fs::write(&file, vec![7; 4_000_000]).unwrap();
    let (mut plan, address) = receiver(&sink);
    plan.config.idle_timeout = byway_wire::Duration::from_secs(2);
    let (begin, is_cut) = line(address);
    let ticket = Ticket { addresses: vec![begin], ..plan.ticket() };
    let receiving = Receiving::start(plan).unwrap();
    let mut plan = sender(&file, ticket);
    plan.config.cap = Some(100_000);
    let sending = Sending::start(plan).unwrap();
    let begun = Instant::now();
    loop {
        match sending.next(TICK) {
            Some(TransferEvent::Progress(progress)) if progress.bytes > 100_000 => break,
            _ => assert!(begun.elapsed() < SOON && !sending.is_over(), "nothing arrives"),
        }
    }
    is_cut.store(true, Ordering::Relaxed);
    let broken = received(&receiving);
    assert!(matches!(broken.outcome, Err(TransferError::ConnectionLost)), "{:?}", broken.outcome);
    assert!(broken.paths.iter().map(|path| path.bytes).sum::<u64>() > 100_000, "{:?}", broken.paths);
    is_cut.store(false, Ordering::Relaxed);
    let sent = sent(sending);
    assert!(sent.can_go_on(), "{:?}", sent.outcome);
    assert!(sent.bytes > 100_000 && !sent.paths.is_empty(), "{sent:?}");
    let said = sent.outcome.unwrap_err().to_string();
    assert!(said.starts_with("the receiver no longer knows this session"), "{said}");
    receiving.cancel();
    receiving.join().unwrap();
}
