//! Tests of `byway_net`'s driver, the loop that sends and receives for a protocol, in a network
//! namespace. There the loopback has an MTU of 1,500 bytes and a slow queue. Where the host forbids
//! unprivileged namespaces or cannot shape traffic, these tests are ignored.

use crate::common::{Notebook, PATIENCE, socket, turn};
use byway_net::{AddressChanges, Clock, Control, LoopControl, Socket, run, spawn};
use byway_wire::{Ecn, Local, SendErrorKind};
use libtest_mimic::{Failed, Trial};
use std::net::SocketAddr;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

const HERE: &str = "127.0.0.1:0";
const WORLD: &str =
    "ip link set lo mtu 1500 up && tc qdisc add dev lo root tbf rate 80mbit burst 20k latency 5s";
/// Set inside the namespace to the name of the test to run there.
const INSIDE: &str = "BYWAY_NET_TEST_INSIDE";

/// A second way out beside the loopback: of a device that lets a datagram go every twelve seconds.
const STUCK: &str = "ip link add slow0 type veth peer name slow1 && ip address add 192.0.2.1/24 dev slow0 && \
    ip link set slow1 up && ip link set slow0 up && ip neigh add 192.0.2.2 lladdr 02:00:00:00:00:02 dev slow0 && \
    tc qdisc add dev slow0 root tbf rate 1kbit burst 2k latency 10000s";

const TESTS: [(&str, fn()); 5] = [
    ("a_full_queue_holds_back_and_loses_nothing", a_full_queue_holds_back_and_loses_nothing),
    ("a_full_socket_holds_up_nobody_else", a_full_socket_holds_up_nobody_else),
    ("what_the_interface_does_not_take_is_too_large", what_the_interface_does_not_take_is_too_large),
    ("no_route_is_unreachable", no_route_is_unreachable),
    (
        "a_new_address_is_told_and_wakes_a_driver_that_sleeps",
        a_new_address_is_told_and_wakes_a_driver_that_sleeps,
    ),
];

fn a_full_queue_holds_back_and_loses_nothing() {
    let clock = Clock::new();
    let listener = socket(HERE);
    // A send buffer far smaller than what is to be sent, so that the queue fills it again and
    // again.
    let speaker = Socket::bind_with(HERE.parse().unwrap(), 32 << 10).unwrap();
    let mut notebook = Notebook::default();
    for number in 0..100u8 {
        notebook.say(listener.address(), Ecn::NotEct, 1_200, &[number; 10 * 1_200]);
    }
    let until = clock.now() + PATIENCE;
    let listen = turn(move |notebook: &mut Notebook, now| {
        if notebook.received.len() == 1_000 || now > until {
            LoopControl::Stop
        } else {
            LoopControl::Continue
        }
    });
    let listener = spawn("listener", Notebook::default(), listen, vec![listener], clock).unwrap();
    let speak_on = turn(|_: &mut Notebook, _| LoopControl::Continue);
    let speaker = spawn("speaker", notebook, speak_on, vec![speaker], clock).unwrap();
    let received = listener.join().unwrap().machine.received;
    speaker.stop();
    let statistics = speaker.statistics();
    let finished = speaker.join().unwrap();
    finished.outcome.unwrap();

    assert_eq!(finished.machine.errors, []);
    assert_eq!(received.len(), 1_000);
    assert!(received.iter().enumerate().all(|(at, (.., bytes))| usize::from(bytes[0]) == at / 10));
    assert!(statistics.blocked > 0, "nothing was ever held back: {statistics:?}");
    // A driver that waits takes few turns; one that spins on a full socket takes as many as it can.
    assert!(statistics.turns < 5_000, "{statistics:?}");
}

fn a_full_socket_holds_up_nobody_else() {
    const DATAGRAMS: usize = 2_000;
    assert!(Command::new("sh").args(["-c", STUCK]).status().unwrap().success());
    let clock = Clock::new();
    let listener = socket(HERE);
    let stuck = Socket::bind_with("192.0.2.1:0".parse().unwrap(), 8 << 10).unwrap();
    let free = socket(HERE);
    let mut notebook = Notebook::default();
    for _ in 0..DATAGRAMS {
        notebook.say("192.0.2.2:9".parse().unwrap(), Ecn::NotEct, 1_200, &[1; 1_200]);
        notebook.say(listener.address(), Ecn::NotEct, 1_200, &[2; 1_200]);
        notebook.to_send.back_mut().unwrap().0.local = Local(1);
    }
    let until = clock.now() + PATIENCE;
    let listen = turn(move |notebook: &mut Notebook, now| {
        if notebook.received.len() == DATAGRAMS || now > until {
            LoopControl::Stop
        } else {
            LoopControl::Continue
        }
    });
    let listener = spawn("listener", Notebook::default(), listen, vec![listener], clock).unwrap();
    let speak_on = turn(|_: &mut Notebook, _| LoopControl::Continue);
    let speaker = spawn("speaker", notebook, speak_on, vec![stuck, free], clock).unwrap();
    let received = listener.join().unwrap().machine.received.len();
    speaker.stop();
    let statistics = speaker.statistics();
    let finished = speaker.join().unwrap();
    finished.outcome.unwrap();
    let notebook = finished.machine;
    assert_eq!(received, DATAGRAMS, "{statistics:?}");
    assert!(notebook.filled > 0 && notebook.full.contains(&Local(0)), "it was never full: {statistics:?}");
    assert!(notebook.to_send.iter().all(|(transmit, _)| transmit.local == Local(0)));
    // Some left, some wait, and the machine kept the others.
    assert!(notebook.to_send.len() > DATAGRAMS / 2, "{}", notebook.to_send.len());
    assert_eq!(statistics.overflowed, 0);
}

fn what_the_interface_does_not_take_is_too_large() {
    let listener = std::net::UdpSocket::bind(HERE).unwrap();
    listener.set_read_timeout(Some(PATIENCE)).unwrap();
    let remote = listener.local_addr().unwrap();
    let sender = socket(HERE);
    let offload = sender.max_segments();
    let mut notebook = Notebook::default();
    notebook.say(remote, Ecn::NotEct, 1_473, &[1; 1_473]);
    notebook.say(remote, Ecn::NotEct, 1_473, &[2; 3 * 1_473]);
    notebook.say(remote, Ecn::NotEct, 1_472, &[3; 1_472]);
    let stop = turn(|_: &mut Notebook, _| LoopControl::Stop);
    let finished = run(notebook, stop, vec![sender], Clock::new(), &Control::new().unwrap());
    let errors: Vec<_> = finished.machine.errors.iter().map(|error| (error.size, error.kind)).collect();
    assert_eq!(errors, [(1_473, SendErrorKind::TooLarge); 2]);
    assert_eq!(finished.sockets[0].max_segments(), offload, "too large a run cost the offload");
    let mut buffer = [0; 2_000];
    assert_eq!(listener.recv(&mut buffer).unwrap(), 1_472);
    assert_eq!(buffer[0], 3);
}

fn no_route_is_unreachable() {
    let nowhere: SocketAddr = "203.0.113.7:9".parse().unwrap();
    let mut notebook = Notebook::default();
    notebook.say(nowhere, Ecn::NotEct, 100, &[1; 1_000]);
    let stop = turn(|_: &mut Notebook, _| LoopControl::Stop);
    let finished = run(notebook, stop, vec![socket("0.0.0.0:0")], Clock::new(), &Control::new().unwrap());
    let errors: Vec<_> = finished.machine.errors.iter().map(|e| (e.remote, e.size, e.kind)).collect();
    assert_eq!(errors, [(nowhere, 100, SendErrorKind::Unreachable)]);
}

#[expect(clippy::disallowed_methods, reason = "this thread has no driver: it looks at one")]
fn a_new_address_is_told_and_wakes_a_driver_that_sleeps() {
    let add = |address: &str| {
        let added = Command::new("ip").args(["address", "add", address, "dev", "lo"]).status();
        assert!(added.unwrap().success());
    };
    let changes = AddressChanges::open().unwrap();
    assert!(!changes.take());
    add("192.0.2.7/32");
    assert!(changes.take() && !changes.take());

    let sleep = turn(|_: &mut Notebook, _| LoopControl::Continue);
    let driver =
        spawn("sleeper", Notebook::default(), sleep, vec![socket("0.0.0.0:0")], Clock::new()).unwrap();
    let turns = || driver.statistics().turns;
    // It has begun, and nothing happens any more.
    let begun = loop {
        let before = turns();
        std::thread::sleep(Duration::from_millis(100));
        if before > 0 && turns() == before {
            break before;
        }
    };
    add("192.0.2.8/32");
    let end = Instant::now() + PATIENCE;
    while turns() == begun {
        assert!(Instant::now() < end, "it sleeps on");
        std::thread::sleep(Duration::from_millis(10));
    }
    driver.stop();
    driver.join().unwrap().outcome.unwrap();
}

/// A command that makes the namespace, then does `then` in it.
fn namespace(then: &str) -> Command {
    let mut command = Command::new("unshare");
    command.args(["--user", "--map-root-user", "--net", "sh", "-c", &format!("{WORLD} && {then}")]);
    command
}

fn inside(name: &str) -> Result<(), Failed> {
    let program = std::env::current_exe()?;
    let status = namespace(r#"exec "$PROGRAM""#).env("PROGRAM", program).env(INSIDE, name).status()?;
    if status.success() { Ok(()) } else { Err(format!("failed in the namespace: {status}").into()) }
}

/// Plays one of the tests, inside the namespace; whether there was one to play.
pub fn play() -> bool {
    let Ok(name) = std::env::var(INSIDE) else { return false };
    let (_, test) = TESTS.into_iter().find(|(known, _)| *known == name).expect("a test of this name");
    test();
    true
}

pub fn tests() -> Vec<Trial> {
    let trial = namespace("true").stdout(Stdio::null()).stderr(Stdio::null()).status();
    let possible = trial.is_ok_and(|status| status.success());
    let missing = (!possible).then_some("it needs a network namespace of its own, and unshare, ip and tc");
    TESTS.map(|(name, _)| crate::test(format!("shaped::{name}"), missing, move || inside(name))).into()
}
