//! Drivers over real sockets on the IPv4 loopback.

use crate::common::{Flood, Notebook, PATIENCE, socket, turn};
use byway_net::{Clock, Control, Handle, LoopControl, Owner, Panicked, run, spawn};
use byway_wire::{Duration, Ecn, Instant, Local, SendErrorKind};
use std::net::UdpSocket;
use std::sync::mpsc;
use std::time;

const HERE: &str = "127.0.0.1:0";

fn idle() -> impl Owner<Machine = Notebook> + 'static {
    turn(|_: &mut Notebook, _| LoopControl::Continue)
}

#[test]
fn ten_thousand_datagrams_there_and_back() {
    crate::common::ten_thousand_there_and_back(HERE);
}

#[test]
fn ecn_marks_are_carried() {
    crate::common::marks_are_carried(HERE);
}

#[test]
fn sockets_are_announced_in_order_with_their_addresses() {
    let sockets = vec![socket(HERE), socket(HERE)];
    let addresses: Vec<_> = sockets.iter().map(byway_net::Socket::address).collect();
    let stop = turn(|_: &mut Notebook, _| LoopControl::Stop);
    let finished = run(Notebook::default(), stop, sockets, Clock::new(), &Control::new().unwrap());
    finished.outcome.unwrap();
    let told: Vec<_> =
        finished.machine.links.iter().map(|link| (link.local, link.address, link.up)).collect();
    assert_eq!(told, [(Local(0), addresses[0], true), (Local(1), addresses[1], true)]);
    assert_eq!(finished.sockets.len(), 2);
}

#[test]
fn datagrams_arrive_after_they_were_sent_and_before_they_are_handled() {
    let clock = Clock::new();
    let listener = socket(HERE);
    let remote = listener.address();
    let (ready, go) = mpsc::sync_channel(1);
    let until = clock.now() + PATIENCE;
    let listen = turn(move |notebook: &mut Notebook, now| {
        let _ = ready.try_send(());
        if notebook.received.len() == 20 || now > until { LoopControl::Stop } else { LoopControl::Continue }
    });
    let driver = spawn("listener", Notebook::default(), listen, vec![listener], clock).unwrap();
    go.recv().unwrap();
    let speaker = UdpSocket::bind(HERE).unwrap();
    let mut sent = Vec::new();
    for number in 0..20u8 {
        sent.push(clock.now());
        speaker.send_to(&[number], remote).unwrap();
    }
    let received = driver.join().unwrap().machine.received;
    assert_eq!(received.len(), 20);
    // The wall clock, whose stamps the kernel gives, is read a little beside the driver's own.
    let slack = Duration::from_millis(1);
    for (now, arrival, _, bytes) in received {
        let sent = sent[usize::from(bytes[0])];
        assert!(
            arrival <= now && arrival + slack >= sent,
            "sent {sent:?}, arrived {arrival:?}, handled {now:?}"
        );
    }
}

#[test]
fn deadlines_are_met_never_early_and_some_at_once() {
    let clock = Clock::new();
    let mut wanted = Vec::new();
    let owner = turn(move |notebook: &mut Notebook, now: Instant| {
        if notebook.deadline.is_some() {
            return LoopControl::Continue;
        }
        if wanted.len() == 100 {
            // The machine keeps no deadlines of old; the lateness of each takes the place of its
            // time.
            for (woken, wanted) in notebook.woken.iter_mut().zip(&wanted) {
                assert!(*woken >= *wanted, "woken early");
                *woken = Instant::ZERO + woken.since(*wanted);
            }
            return LoopControl::Stop;
        }
        let next = now + Duration::from_micros(20 + 20 * wanted.len() as u64);
        wanted.push(next);
        notebook.deadline = Some(next);
        LoopControl::Continue
    });
    let finished = run(Notebook::default(), owner, vec![], clock, &Control::new().unwrap());
    let late: Vec<_> = finished.machine.woken.iter().map(|late| late.as_micros()).collect();
    assert_eq!(late.len(), 100);
    // On a busy machine most come late. A driver that sleeps longer than it should is late for all.
    assert!(late.iter().any(|late| *late < 2_000), "each deadline was missed by more than 2 ms: {late:?}");
}

#[test]
fn a_ring_runs_a_turn_and_a_thousand_rings_run_one_or_two() {
    let (begun, turns) = mpsc::channel();
    let (go_on, gate) = mpsc::channel::<()>();
    let (words, inbox) = mpsc::sync_channel(1);
    let owner = turn(move |notebook: &mut Notebook, _| {
        begun.send(()).unwrap();
        gate.recv().unwrap();
        notebook
            .received
            .extend(inbox.try_iter().map(|word: u8| (Instant::ZERO, Instant::ZERO, Ecn::NotEct, vec![word])));
        LoopControl::Continue
    });
    let driver = spawn("rung", Notebook::default(), owner, vec![socket(HERE)], Clock::new()).unwrap();
    let soon = time::Duration::from_secs(20);
    // The turn that every driver begins with; from then on nothing but the waker can cause one.
    turns.recv_timeout(soon).unwrap();
    for _ in 0..1_000 {
        driver.waker().wake();
    }
    go_on.send(()).unwrap();
    // One round to find the machine silent may come before the ring is seen.
    let mut further = 0;
    while turns.recv_timeout(time::Duration::from_millis(300)).is_ok() {
        further += 1;
        go_on.send(()).unwrap();
    }
    assert!((1..=2).contains(&further), "{further} turns");
    assert_eq!(driver.statistics().rung, 1);

    words.send(7).unwrap();
    driver.waker().wake();
    turns.recv_timeout(soon).unwrap();
    go_on.send(()).unwrap();
    driver.stop();
    turns.recv_timeout(soon).unwrap();
    go_on.send(()).unwrap();
    let received = driver.join().unwrap().machine.received;
    assert_eq!(received.len(), 1);
}

#[test]
fn what_cannot_be_sent_is_told_with_its_kind_and_the_rest_goes_on() {
    let listener = UdpSocket::bind(HERE).unwrap();
    listener.set_read_timeout(Some(time::Duration::from_secs(20))).unwrap();
    let good = listener.local_addr().unwrap();
    // A broadcast needs a permission that the socket does not ask for.
    let [broadcast, nowhere] = ["255.255.255.255:9", "127.0.0.1:0"].map(|address| address.parse().unwrap());
    let mut notebook = Notebook::default();
    notebook.say(good, Ecn::NotEct, 65_520, &vec![1; 65_520]);
    notebook.say(broadcast, Ecn::NotEct, 100, &[2; 250]);
    notebook.say(nowhere, Ecn::NotEct, 3, &[3; 3]);
    notebook.say(good, Ecn::NotEct, 4, &[4; 4]);
    let control = Control::new().unwrap();
    let stop = turn(|_: &mut Notebook, _| LoopControl::Stop);
    let finished = run(notebook, stop, vec![socket(HERE)], Clock::new(), &control);

    let errors: Vec<_> = finished.machine.errors.iter().map(|e| (e.remote, e.size, e.kind)).collect();
    let expected = [
        (good, 65_520, SendErrorKind::TooLarge),
        (broadcast, 100, SendErrorKind::Denied),
        (nowhere, 3, SendErrorKind::Unreachable),
    ];
    assert_eq!(errors, expected);
    let statistics = control.statistics();
    assert_eq!((statistics.too_large, statistics.denied, statistics.unreachable), (1, 1, 1));
    assert_eq!(statistics.sent_datagrams, 1);
    assert_eq!(listener.recv(&mut [0; 16]).unwrap(), 4);
}

fn flooding() -> (Handle<impl Owner<Machine = Flood>>, UdpSocket) {
    let sink = UdpSocket::bind(HERE).unwrap();
    let flood = Flood { sink: sink.local_addr().unwrap(), sent: 0, received: 0 };
    let owner = turn(|_: &mut Flood, _| LoopControl::Continue);
    (spawn("flood", flood, owner, vec![socket(HERE)], Clock::new()).unwrap(), sink)
}

#[test]
fn who_always_sends_still_receives() {
    let sink = UdpSocket::bind(HERE).unwrap();
    let flood = Flood { sink: sink.local_addr().unwrap(), sent: 0, received: 0 };
    let target = socket(HERE);
    let remote = target.address();
    let clock = Clock::new();
    let until = clock.now() + PATIENCE;
    let enough =
        turn(
            move |flood: &mut Flood, now| {
                if flood.received >= 1_000 || now > until { LoopControl::Stop } else { LoopControl::Continue }
            },
        );
    let driver = spawn("flood", flood, enough, vec![target], clock).unwrap();
    let speaker = UdpSocket::bind(HERE).unwrap();
    for _ in 0..1_000 {
        speaker.send_to(&[1; 100], remote).unwrap();
    }
    let flood = driver.join().unwrap().machine;
    assert_eq!(flood.received, 1_000);
    assert!(flood.sent > 0);
}

#[test]
fn stopping_is_prompt_idle_or_flooding() {
    let quick = time::Duration::from_secs(20);
    let driver = spawn("idle", Notebook::default(), idle(), vec![socket(HERE)], Clock::new()).unwrap();
    let begun = time::Instant::now();
    driver.stop();
    driver.join().unwrap().outcome.unwrap();
    assert!(begun.elapsed() < quick);

    let (driver, _sink) = flooding();
    while driver.statistics().sent_datagrams == 0 {
        std::thread::yield_now();
    }
    let begun = time::Instant::now();
    driver.stop();
    assert!(driver.join().unwrap().machine.sent > 0);
    assert!(begun.elapsed() < quick);
}

#[test]
fn a_dropped_handle_ends_its_driver() {
    let (alive, ended) = mpsc::channel::<()>();
    let owner = turn(move |_: &mut Notebook, _| {
        let _keep = &alive;
        LoopControl::Continue
    });
    drop(spawn("dropped", Notebook::default(), owner, vec![socket(HERE)], Clock::new()).unwrap());
    let end = ended.recv_timeout(time::Duration::from_secs(20));
    assert_eq!(end, Err(mpsc::RecvTimeoutError::Disconnected));
}

#[test]
fn last_words_are_sent() {
    let listener = UdpSocket::bind(HERE).unwrap();
    listener.set_read_timeout(Some(time::Duration::from_secs(20))).unwrap();
    let remote = listener.local_addr().unwrap();
    let farewell = turn(move |notebook: &mut Notebook, _| {
        notebook.say(remote, Ecn::NotEct, 3, b"bye");
        LoopControl::Stop
    });
    let control = Control::new().unwrap();
    run(Notebook::default(), farewell, vec![socket(HERE)], Clock::new(), &control).outcome.unwrap();
    assert_eq!(listener.recv(&mut [0; 8]).unwrap(), 3);
}

#[test]
fn a_panic_is_an_error_of_join() {
    let owner = turn(|_: &mut Notebook, _| panic!("out of cheese"));
    let driver = spawn("doomed", Notebook::default(), owner, vec![], Clock::new()).unwrap();
    assert_eq!(driver.join().err(), Some(Panicked("out of cheese".to_owned())));
}
