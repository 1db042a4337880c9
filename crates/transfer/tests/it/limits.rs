//! Limits that are set and taken away while a transfer or a forward runs, which began without.

use super::ends::over_loopback;
use byway_control::Class;
use byway_engine::Config;
use byway_forward::allow_rules::Allow;
use byway_forward_host::Listening;
use byway_transfer::units::RateLimits;
use byway_transfer::{
    Forwarding, ForwardingPlan, Identity, PauseReason, Payload, Receiving, ReceivingPlan, Sending,
    SendingPlan, SourceOptions, TransferEvent, looked_up_destinations, sockets,
};
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

const TICK: Duration = Duration::from_millis(20);
/// A rate at which what these tests send takes hours.
const SLOW_RATE: u64 = 50 << 10;

const UP: RateLimits = RateLimits { up: Some(SLOW_RATE), down: None };
const DOWN: RateLimits = RateLimits { up: None, down: Some(SLOW_RATE) };
const NONE: RateLimits = RateLimits { up: None, down: None };

#[test]
fn a_sender_and_a_receiver_get_limits_and_lose_them() {
    let place = tempfile::tempdir().unwrap();
    let (file, sink) = (place.path().join("file"), place.path().join("in"));
    std::fs::write(&file, vec![7; 200 << 20]).unwrap();
    let plan = ReceivingPlan::new(Identity::generate().unwrap(), sink.clone()).unwrap();
    let ticket = over_loopback(plan.ticket());
    let receiving = Receiving::start(ReceivingPlan { once: true, ..plan }).unwrap();
    receiving.set_limits(DOWN);
    let paths = vec![file.clone()];
    let payload = Payload::Tree { paths, options: SourceOptions::default(), selection: Arc::default() };
    let sending =
        Sending::start(SendingPlan::new(Identity::generate().unwrap(), ticket, payload).unwrap()).unwrap();
    let wait_for = |holds: fn(Option<PauseReason>) -> bool| {
        loop {
            assert!(!sending.is_over());
            while receiving.next(Duration::ZERO).is_some() {}
            if let Some(TransferEvent::Progress(tally)) = sending.next(TICK)
                && holds(tally.pause)
            {
                return;
            }
        }
    };
    wait_for(|pause| pause == Some(PauseReason::ReceiverBandwidthLimit));
    sending.set_limits(RateLimits { up: Some(SLOW_RATE / 2), down: None });
    wait_for(|pause| pause == Some(PauseReason::BandwidthLimit));
    receiving.set_limits(NONE);
    wait_for(|pause| pause == Some(PauseReason::BandwidthLimit));
    sending.set_limits(NONE);
    while !sending.is_over() {
        sending.next(TICK);
        while receiving.next(Duration::ZERO).is_some() {}
    }
    sending.join().unwrap().outcome.unwrap();
    while !receiving.is_over() {
        receiving.next(TICK);
    }
    assert_eq!(std::fs::read(sink.join("file")).unwrap(), std::fs::read(file).unwrap());
}

/// A target that reads all that comes, and writes as fast as it can.
fn target() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    thread::spawn(move || {
        for connection in listener.incoming() {
            let mut reads = connection.unwrap();
            let mut writes = reads.try_clone().unwrap();
            thread::spawn(move || while reads.read(&mut [0; 65_536]).is_ok_and(|length| length > 0) {});
            thread::spawn(move || while writes.write_all(&[7; 65_536]).is_ok() {});
        }
    });
    port
}

#[test]
fn a_forward_gets_limits_and_loses_them() {
    let place = tempfile::tempdir().unwrap();
    let target = target();
    let plan = ReceivingPlan::new(Identity::generate().unwrap(), place.path().to_owned()).unwrap();
    let ticket = over_loopback(plan.ticket());
    let forwards = Allow::new(vec![format!("127.0.0.1:{target}").parse().unwrap()]);
    let receiving = Receiving::start(ReceivingPlan { forwards, ..plan }).unwrap();
    let listening = Listening::begin(vec![format!("0:127.0.0.1:{target}").parse().unwrap()], &[]).unwrap();
    let local = listening.listeners().next().unwrap().address;
    let destinations = looked_up_destinations(&ticket, &[], None);
    let forwarding = Forwarding::start(ForwardingPlan {
        yields_to_host: false,
        identity: Identity::generate().unwrap(),
        ticket,
        relays: Vec::new(),
        registry: None,
        listening,
        piped: None,
        most: 8,
        class: Class::Normal,
        tcp: false,
        controller: Box::new(|seed| Class::Normal.controller(seed)),
        sockets: sockets::sending(&[], &destinations).unwrap(),
        follow: None,
        limit: None,
        config: Config::default(),
    })
    .unwrap();
    forwarding.set_limits(DOWN);
    while !matches!(forwarding.next(TICK), Some(TransferEvent::Begun)) {}
    let looks = || {
        forwarding.next(Duration::ZERO);
        while receiving.next(Duration::ZERO).is_some() {}
    };
    let mut program = TcpStream::connect(local).unwrap();
    program.set_read_timeout(Some(TICK)).unwrap();
    let mut piece = vec![0; 65_536];
    let (begun, mut read) = (Instant::now(), 0);
    while begun.elapsed() < Duration::from_secs(3) {
        read += program.read(&mut piece).unwrap_or(0);
        looks();
    }
    // A burst of a quarter of a second, and the last piece.
    let most = SLOW_RATE as f64 * (begun.elapsed().as_secs_f64() + 0.25) + 65_536.0;
    assert!(read > 0 && read as f64 <= most, "{read} of {most}");
    // Far more than the limit would ever let through.
    forwarding.set_limits(NONE);
    let mut more = 0;
    while more < 100 << 20 {
        more += program.read(&mut piece).unwrap_or(0);
        looks();
    }
    // The other direction.
    forwarding.set_limits(UP);
    let mut writes = program.try_clone().unwrap();
    thread::spawn(move || while writes.write_all(&[7; 65_536]).is_ok() {});
    let mut wait_for = |is_limited: bool| {
        loop {
            let _ = program.read(&mut piece);
            while receiving.next(Duration::ZERO).is_some() {}
            if let Some(TransferEvent::Progress(tally)) = forwarding.next(Duration::ZERO)
                && (tally.pause == Some(PauseReason::BandwidthLimit)) == is_limited
            {
                return;
            }
        }
    };
    wait_for(true);
    forwarding.set_limits(NONE);
    wait_for(false);
    forwarding.cancel();
    receiving.cancel();
    forwarding.join().unwrap().1.unwrap();
}
