//! How streams and connections end, and what each side is told.

use crate::common::{config, pair, until};
use byway::{ConnectError, ConnectionError, Endpoint, StreamError};
use std::io::{Read, Write};
use std::thread;
use std::time::{Duration, Instant};

fn reason(error: &std::io::Error) -> StreamError {
    StreamError::of(error).expect("an error of a stream").clone()
}

#[test]
fn a_stream_that_is_dropped_or_reset_amid_data_breaks_and_others_go_on() {
    let (_listener, near, far) = pair();
    let mut other = near.open_stream().unwrap();
    other.write_all(b"first half, ").unwrap();
    let mut theirs = far.accept_stream().unwrap();
    for code in [0, 77] {
        let (_receiving, mut sending) = near.open_stream().unwrap().split();
        sending.write_all(&[1; 300_000]).unwrap();
        let mut broken = far.accept_stream().unwrap();
        broken.read_exact(&mut [0; 1000]).unwrap();
        match code {
            0 => drop(sending),
            code => sending.reset(code),
        }
        let error = std::io::copy(&mut broken, &mut std::io::sink()).unwrap_err();
        assert_eq!(error.kind(), std::io::ErrorKind::ConnectionReset);
        assert_eq!(reason(&error), StreamError::Reset(code.into()));
    }
    other.write_all(b"second half").unwrap();
    other.shutdown().unwrap();
    let mut heard = String::new();
    theirs.read_to_string(&mut heard).unwrap();
    assert_eq!(heard, "first half, second half");
}

#[test]
fn who_wants_no_more_stops_who_writes() {
    let (_listener, near, far) = pair();
    let mut stream = near.open_stream().unwrap();
    stream.write_all(b"x").unwrap();
    let (mut receiving, _sending) = far.accept_stream().unwrap().split();
    receiving.stop(9);
    let error = loop {
        if let Err(error) = stream.write(&[0; 1000]) {
            break error;
        }
    };
    assert_eq!((error.kind(), reason(&error)), (std::io::ErrorKind::BrokenPipe, StreamError::Stopped(9)));
    assert_eq!(stream.finish(), Err(StreamError::Stopped(9)));
    let error = receiving.read(&mut [0; 1]).unwrap_err();
    assert_eq!(reason(&error), StreamError::Finished);
}

#[test]
fn finish_waits_for_the_peers_application_and_tells_if_it_did_not_read() {
    let (_listener, near, far) = pair();
    let mut stream = near.open_stream().unwrap();
    stream.write_all(b"read me").unwrap();
    let (receiving, mut sending) = stream.split();
    drop(receiving);
    sending.set_timeout(Some(Duration::from_millis(300)));
    assert_eq!(sending.finish(), Err(StreamError::TimedOut), "it has arrived, and nobody has read it");
    let mut theirs = far.accept_stream().unwrap();
    let waiter = thread::spawn(move || {
        sending.set_timeout(None);
        sending.finish()
    });
    theirs.read_exact(&mut [0; 7]).unwrap();
    assert_eq!(theirs.read(&mut [0; 1]).unwrap(), 0);
    assert_eq!(waiter.join().unwrap(), Ok(()));

    let mut unread = near.open_stream().unwrap();
    unread.write_all(b"do not read me").unwrap();
    unread.shutdown().unwrap();
    drop(far.accept_stream().unwrap());
    assert_eq!(unread.finish(), Err(StreamError::Stopped(0)));
}

#[test]
fn close_waits_for_what_was_finished_and_both_sides_know_why_it_is_over() {
    let (_listener, near, far) = pair();
    let (_receiving, mut sending) = near.open_stream().unwrap().split();
    sending.write_all(&[5; 300_000]).unwrap();
    sending.shutdown().unwrap();
    let closer = near.clone();
    let closing = thread::spawn(move || closer.close());
    let mut theirs = far.accept_stream().unwrap();
    thread::sleep(Duration::from_millis(200));
    assert!(!closing.is_finished(), "nobody has read anything");
    let mut read = Vec::new();
    theirs.read_to_end(&mut read).unwrap();
    assert_eq!(read.len(), 300_000);
    closing.join().unwrap().unwrap();
    assert_eq!(sending.finish(), Ok(()), "it was read, and that stands");
    assert_eq!(near.ended(), Some(ConnectionError::ClosedHere));
    assert_eq!(near.open_stream().unwrap_err(), ConnectionError::ClosedHere);
    near.close().unwrap();
    let closed = ConnectionError::Closed { code: 0, reason: String::new() };
    assert_eq!(far.accept_stream().unwrap_err(), closed);
    far.close().unwrap();
    let error = theirs.write(&[1]).unwrap_err();
    assert_eq!(reason(&error), StreamError::Connection(closed));
}

#[test]
fn abort_ends_it_at_once() {
    let (_listener, near, far) = pair();
    let mut stream = near.open_stream().unwrap();
    stream.write_all(b"x").unwrap();
    let mut theirs = far.accept_stream().unwrap();
    far.abort(42, "no time");
    let closed = ConnectionError::Closed { code: 42, reason: "no time".into() };
    let error = stream.read(&mut [0; 1]).unwrap_err();
    assert_eq!(error.kind(), std::io::ErrorKind::ConnectionAborted);
    assert_eq!(reason(&error), StreamError::Connection(closed.clone()));
    assert_eq!(closed.to_string(), "the peer closed the connection with code 42: no time");
    let mut all = Vec::new();
    let error = theirs.read_to_end(&mut all).unwrap_err();
    assert_eq!(reason(&error), StreamError::Connection(ConnectionError::ClosedHere));
}

#[test]
fn what_was_finished_arrives_though_every_handle_is_dropped() {
    let (listener, near, far) = pair();
    let (_, mut sending) = near.open_stream().unwrap().split();
    sending.write_all(&[3; 300_000]).unwrap();
    sending.shutdown().unwrap();
    drop((sending, near));
    let mut theirs = far.accept_stream().unwrap();
    let mut read = Vec::new();
    theirs.read_to_end(&mut read).unwrap();
    assert_eq!(read.len(), 300_000);
    until("the end", || far.ended().is_some());
    assert_eq!(far.ended(), Some(ConnectionError::Closed { code: 0, reason: String::new() }));
    // The listener takes others.
    byway::connect_with(&listener.ticket(), config()).unwrap();
    listener.accept().unwrap();
}

#[test]
fn who_must_not_come_in_is_told_why() {
    let listener = Endpoint::listen(config()).unwrap();
    let ticket = listener.ticket();
    let other = config().protocol("test/2").unwrap();
    match byway::connect_with(&ticket, other) {
        Err(ConnectError::OtherKind(reason)) => assert!(reason.contains("test/1"), "{reason}"),
        other => panic!("{other:?}"),
    }
    let mut wrong = ticket.clone();
    wrong.permission = byway::Secret::new([0; 16]);
    assert!(matches!(byway::connect_with(&wrong, config()), Err(ConnectError::NotAdmitted(_))));
    let listed = Endpoint::listen(config().allow([byway::PublicKey([1; 32])])).unwrap();
    assert!(matches!(byway::connect_with(&listed.ticket(), config()), Err(ConnectError::NotAdmitted(_))));
    // A listener that is gone.
    let begun = Instant::now();
    drop(listener);
    until("the socket's end", || std::net::UdpSocket::bind(ticket.addresses[0]).is_ok());
    assert!(matches!(byway::connect_with(&ticket, config()), Err(ConnectError::NotConnected(_))));
    assert!(begun.elapsed() < Duration::from_secs(40));
}

#[test]
fn a_receiver_of_files_and_an_application_refuse_each_other() {
    let listener = Endpoint::listen(config()).unwrap();
    let payload = byway_transfer::Payload::Pipe(Box::new(&b"a stream"[..]));
    let identity = byway::Identity::generate().unwrap();
    let plan = byway_transfer::SendingPlan::new(identity, listener.ticket(), payload).unwrap();
    let sending = byway_transfer::Sending::start(plan).unwrap();
    until("the refusal", || {
        sending.next(Duration::from_millis(50));
        sending.is_over()
    });
    match sending.join().unwrap().outcome {
        Err(byway_transfer::TransferError::OtherKind(reason)) => {
            assert!(reason.contains("an application that speaks the protocol test/1"), "{reason}");
        }
        other => panic!("{other:?}"),
    }
    let directory = std::env::temp_dir();
    let identity = byway::Identity::generate().unwrap();
    let plan = byway_transfer::ReceivingPlan::new(identity, directory).unwrap();
    let ticket = plan.ticket();
    let _receiving = byway_transfer::Receiving::start(plan).unwrap();
    match byway::connect_with(&ticket, byway::Config::new().protocol("test/1").unwrap()) {
        Err(ConnectError::OtherKind(reason)) => assert!(reason.contains("byway recv"), "{reason}"),
        other => panic!("{other:?}"),
    }
}
