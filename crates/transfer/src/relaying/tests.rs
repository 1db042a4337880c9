use super::*;
use byway_wire::heartbeat::{ANSWERED_LEN, BEAT_LEN, Heartbeat, HeartbeatAnswer, HeartbeatOrders};
use byway_wire::relay::{GREET_LEN, Greet, Greeted, Hop, Minted, Minute, Notice, Reason, RelayClock};
use byway_wire::{Prefix, Writer};
use std::net::UdpSocket;
use std::path::Path;

const REGISTRY: [u8; 32] = [9; 32];

fn start(keep: &Path, key: u8, registries: &[[u8; 32]]) -> (Relaying, SocketAddr) {
    let socket = Socket::bind("127.0.0.1:0".parse().unwrap()).unwrap();
    let address = socket.address();
    let loopback: Prefix = "127.0.0.0/8".parse().unwrap();
    let relaying = Relaying::start(RelayingPlan {
        key: Secret::new([key; 32]),
        policy: Policy::public().allow(loopback),
        sockets: vec![socket],
        listeners: Vec::new(),
        tcp_congestion: byway_net::TcpCongestion::Cubic,
        tcp_buffer: None,
        addresses: vec![address],
        expires: Duration::from_secs(3_600),
        rate: None,
        quota: None,
        per_day: None,
        per_month: None,
        accounts: None,
        words: None,
        keep: Some(keep.to_owned()),
        registries: registries.to_vec(),
        lend: None,
    });
    (relaying.unwrap(), address)
}

fn host() -> UdpSocket {
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    socket.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    socket
}

fn receive(socket: &UdpSocket) -> Vec<u8> {
    let mut packet = [0; 2_000];
    let length = socket.recv(&mut packet).unwrap();
    packet[..length].to_vec()
}

/// Sends a packet under a minted grant. Returns why the relay dropped it. `None`: it was delivered.
fn carried(relay: SocketAddr, enrolment: &Enrolment, epoch: u32) -> Option<Reason> {
    let terms = Terms {
        expiry: Minute::from_unix(unix_seconds() + 3_600),
        rate: RateClass::UNLIMITED,
        quota: QuotaClass::UNLIMITED,
        scope: Scope::ALL,
    };
    let grant = Grant { id: Minted::new(enrolment.range, epoch, 1).unwrap().id(), terms };
    let word = Word::new(vec![relay], grant, enrolment.key.epoch_key(epoch).secret(&grant)).unwrap();
    let (sender, receiver, clock) = (host(), host(), Clock::new());
    let mut greeting = [0; GREET_LEN];
    Greet { nonce: [1; 8], grant: grant.id }.write(&mut Writer::new(&mut greeting));
    receiver.send_to(&greeting, relay).unwrap();
    let greeted = Greeted::read(&receive(&receiver)).unwrap();
    let now = clock.now();
    let hop = Hop::new(
        &word,
        relay,
        greeted.address,
        greeted.consent,
        RelayClock::learn(greeted.unix_millis, now, now),
    );
    let mut packet = vec![7; hop.room() + 100];
    assert!(hop.seal(now, &mut packet));
    sender.send_to(&packet, relay).unwrap();
    sender.set_read_timeout(Some(Duration::from_millis(20))).unwrap();
    receiver.set_read_timeout(Some(Duration::from_millis(20))).unwrap();
    let mut packet = [0; 2_000];
    for _ in 0..1_000 {
        if receiver.recv(&mut packet).is_ok() {
            return None;
        }
        if let Ok(length) = sender.recv(&mut packet) {
            return Some(Notice::read(&packet[..length]).unwrap().reason);
        }
    }
    panic!("neither delivered nor refused");
}

fn kept(path: &Path) -> SavedState {
    state_writer::read(path).unwrap()
}

/// Waits until the saved state meets `is_so`.
fn until_kept(path: &Path, is_so: impl Fn(&SavedState) -> bool) {
    while !is_so(&kept(path)) {
        std::thread::yield_now();
    }
}

#[test]
fn a_registrys_range_and_epoch_outlive_restarts_and_no_epoch_comes_back() {
    let place = tempfile::tempdir().unwrap();
    let path = place.path().join("relay-kept");
    let (relaying, relay) = start(&path, 1, &[REGISTRY]);
    let enrolment = relaying.enrolment(&REGISTRY).unwrap().clone();
    assert_eq!(enrolment.range, 0);
    assert_eq!(carried(relay, &enrolment, 3), Some(Reason::UnknownRange));
    assert!(relaying.enrolled(0, 3, Duration::from_secs(600)));
    until_kept(&path, |kept| kept.ranges.iter().any(|range| range.epoch == 3));
    assert_eq!((carried(relay, &enrolment, 3), carried(relay, &enrolment, 2)), (None, None));
    // The registry revokes. That is on the disk at once, so no kill brings the epoch back.
    assert!(relaying.enrolled(0, 4, Duration::ZERO));
    until_kept(&path, |kept| kept.ranges.iter().any(|range| range.epoch == 4));
    assert_eq!(carried(relay, &enrolment, 3), Some(Reason::EpochOver));
    drop(relaying);

    // Another registry beside it gets another range, and the first keeps its own.
    let other = [8; 32];
    let (relaying, relay) = start(&path, 1, &[other, REGISTRY]);
    let again = relaying.enrolment(&REGISTRY).unwrap().clone();
    assert_eq!((again.range, again.relay, &again.key), (0, enrolment.relay, &enrolment.key));
    assert_eq!(relaying.enrolment(&other).unwrap().range, 1);
    assert_eq!((carried(relay, &again, 4), carried(relay, &again, 3)), (None, Some(Reason::EpochOver)));
    relaying.stop().unwrap();
    assert_eq!(kept(&path).ranges.len(), 2);

    // One that is not named any more mints nothing, and a relay with a new key is another relay.
    let (relaying, relay) = start(&path, 1, &[]);
    assert_eq!(carried(relay, &again, 4), Some(Reason::UnknownRange));
    relaying.stop().unwrap();
    assert_eq!(kept(&path).ranges.len(), 2);
    let used = kept(&path).used;
    assert!(used.today > 0);
    let (relaying, relay) = start(&path, 2, &[REGISTRY]);
    let new = relaying.enrolment(&REGISTRY).unwrap().clone();
    assert_ne!((new.relay, &new.key), (again.relay, &again.key));
    assert_eq!(carried(relay, &new, 4), Some(Reason::UnknownRange));
    relaying.stop().unwrap();
    assert_eq!((kept(&path).ranges.len(), kept(&path).used), (1, used));
}

#[test]
fn heartbeats_leave_by_the_relays_socket_and_the_last_says_that_it_ends() {
    let place = tempfile::tempdir().unwrap();
    let path = place.path().join("relay-kept");
    let (relaying, relay) = start(&path, 1, &[REGISTRY]);
    let enrolment = relaying.enrolment(&REGISTRY).unwrap().clone();
    let (registry, key) = (host(), enrolment.key.heartbeat_key());
    assert!(relaying.watch(enrolment.range, vec![registry.local_addr().unwrap()], Duration::ZERO));
    let beat = |counter: u64| {
        let mut packet = [0; BEAT_LEN + 1];
        let (length, from) = registry.recv_from(&mut packet).unwrap();
        let beat = Heartbeat::read(&packet[..length]).unwrap();
        assert!(from == relay && beat.is_authentic(&key) && beat.report.counter > counter);
        beat.report
    };
    let first = beat(0);
    assert_eq!((first.relay, first.range, first.epoch), (enrolment.relay, 0, 0));
    let counter = first.counter;
    let orders = HeartbeatOrders {
        counter,
        next_millis: 600_000,
        epoch: 5,
        last_holds: 0,
        flags: HeartbeatOrders::LISTED,
    };
    let mut answer = [0; ANSWERED_LEN];
    HeartbeatAnswer::new(orders, &key).write(&mut Writer::new(&mut answer));
    registry.send_to(&answer, relay).unwrap();
    until_kept(&path, |kept| kept.ranges.iter().any(|range| range.epoch == 5));
    assert_eq!(carried(relay, &enrolment, 5), None);
    assert!(relaying.drain());
    // It ends in the same moment, and the beat is on its way all the same.
    let relayed = relaying.stop().unwrap();
    let last = beat(counter);
    assert!(last.is_draining() && last.epoch == 5 && last.today > 0);
    assert_eq!((relayed.counters.beats, relayed.counters.answers), (2, 1));
    // A restart counts on, even if the clock were set back.
    let (relaying, _) = start(&path, 1, &[REGISTRY]);
    assert!(relaying.watch(0, vec![registry.local_addr().unwrap()], Duration::ZERO));
    let mut packet = [0; BEAT_LEN];
    registry.recv(&mut packet).unwrap();
    assert!(Heartbeat::read(&packet).unwrap().report.counter > last.counter + RESTART_HEARTBEAT_GAP / 2);
    relaying.stop().unwrap();
}

#[test]
fn a_date_that_was_wrong_at_the_start_is_looked_at_again() {
    const DAY: u64 = 86_400;
    let (clock, control) = (Clock::new(), Control::new().unwrap());
    let mut relay = Relay::new(&Config::new([1; 32], (unix_seconds() - 40 * DAY) * 1_000), clock.now());
    let ((news, _inbox), (_orders, ordered)) =
        (news_channel(MAX_QUEUED_EVENTS), sync_channel(MAX_QUEUED_ORDERS));
    let mut operator = Operator {
        entrance: Entrance::new(control.watch(), Vec::new()).unwrap(),
        tcp_limits: DEFAULT_TCP_LIMITS,
        waker: control.waker().clone(),
        news,
        commands: ordered,
        snapshots: None,
        flags: Arc::default(),
        packets: 0,
        changes: 0,
        uplink_counters: None,
        trouble: None,
        clock_at: clock.now() + CLOCK_CHECK_INTERVAL,
    };
    let now = clock.now() + CLOCK_CHECK_INTERVAL * 2;
    assert!(relay.used(now).day < unix_seconds() / DAY - 38);
    assert!(matches!(operator.turn(&mut relay, now), LoopControl::Continue));
    assert!((unix_seconds() / DAY).abs_diff(relay.used(now).day) <= 1);
}

#[test]
fn a_word_is_good_for_as_long_as_it_says_and_less_than_a_minute_more() {
    for unix in [1_800_000_000, 1_800_000_001, 1_800_000_059] {
        for seconds in [1, 3, 59, 60, 61, 90, 604_800] {
            let left = end_of(unix, Duration::from_secs(seconds)).unix() - unix;
            assert!((seconds..seconds + 60).contains(&left), "{seconds} at {unix}: {left}");
        }
        assert!(end_of(unix, Duration::ZERO).unix() <= unix);
    }
}
