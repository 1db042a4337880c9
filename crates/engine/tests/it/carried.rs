//! Sessions over TCP connections of simulated hosts: networks that drop UDP, and every fault of the
//! lines below.

use crate::common::detours::{receiver_address, relay, relay_address, seconds, sender_address, word};
use crate::common::{MS, Plan, Receiver, Sender, address, identity, line, relay_route};
use byway_engine::Config;
use byway_engine::carrier_trials::{self, Sight, Trials};
use byway_engine::seal::Suites;
use byway_relay::Relay;
use byway_sim::tcp::{FrameBytes, ServerConfig, TcpCarried, TcpConfig, tcp_address};
use byway_sim::{Handle, LinkId, PipeConfig, Random, TapVerdict, World};
use byway_wire::relay::QuotaClass;
use byway_wire::{Duration, Instant, Local, Machine as _};
use std::cell::Cell;
use std::net::SocketAddr;
use std::rc::Rc;

const KIB: u64 = 1 << 10;
const MIB: u64 = 1 << 20;
const CONTROLLERS: [&str; 3] = ["background", "mpath", "newreno"];
/// TCP is dialled so long after UDP brought no answer.
const PATIENCE: Duration = Duration::from_millis(500);

struct Net {
    world: World,
    sender: Handle<TcpCarried<Sender>>,
    receiver: Handle<TcpCarried<Receiver>>,
    to: SocketAddr,
    /// Whether the network drops UDP now.
    cut: Rc<Cell<bool>>,
    lines: (LinkId, LinkId),
}

/// A sender and a receiver with TCP, and one line between them.
fn net(seed: u64, congestion: &'static str, object: u64, stream: u64, pipe: &PipeConfig) -> Net {
    let mut world = World::new(seed);
    let [from, to] = ["10.0.0.1:5000", "10.0.1.1:4000"].map(address);
    let mut plan = Plan::new(congestion, &[object / 2, 0, object / 4, object / 4], &[to]);
    plan.stream = stream;
    let bytes = FrameBytes::default();
    let serve = ServerConfig {
        options: TcpConfig { no_delay: true, ..TcpConfig::linux() },
        ..ServerConfig::default()
    };
    let (config, suites) = (Config::default(), Suites::SECURE);
    let receiver = TcpCarried::new(Receiver::new(9, config, suites), 1, &bytes, 1, serve.clone());
    let receiver = world.add("receiver", receiver, &TcpCarried::<Receiver>::addresses(&[to]));
    let sender = TcpCarried::new(Sender::new(7, identity(9).public(), plan), 1, &bytes, 2, serve);
    let sender = world.add("sender", sender, &TcpCarried::<Sender>::addresses(&[from]));
    let lines = world.connect(from, to, pipe.clone(), pipe.clone());
    let cut = Rc::new(Cell::new(false));
    let drops = Rc::clone(&cut);
    let udp = [from, to];
    world.tap(
        move |seen| if drops.get() && udp.contains(seen.to) { TapVerdict::Drop } else { TapVerdict::Pass },
    );
    Net { world, sender, receiver, to, cut, lines }
}

impl Net {
    fn run(&mut self, duration: Duration) {
        let until = self.world.now() + duration;
        self.world.run_until(until);
    }

    fn dial(&mut self) -> Local {
        let to = self.to;
        self.world.act(self.sender, |host, now| host.dial(now, Local(0), to)).unwrap()
    }

    /// The sender's connections.
    fn connections(&self) -> Vec<Local> {
        self.world[self.sender].connections().map(|(local, _)| local).collect()
    }

    fn is_finished(&self) -> bool {
        self.world[self.sender].node().finished()
    }

    /// How long it takes until 64 KiB more than `before` have arrived.
    fn goes_on(&mut self, before: u64, limit: Duration) -> Duration {
        let (receiver, from) = (self.receiver, self.world.now());
        let more = |world: &World| world[receiver].node().received >= before + 64 * KIB;
        let came = self.world.run_while(|world| !more(world), from + limit);
        assert!(came, "{} of {} bytes after {limit:?}", self.world[receiver].node().received, before);
        self.world.now().since(from)
    }

    /// Runs to the end and looks whether all of it is there. How long it took.
    fn arrives(&mut self, limit: Duration, object: u64, stream: u64) -> Duration {
        let sender = self.sender;
        let done = self.world.run_while(|world| !world[sender].node().finished(), Instant::ZERO + limit);
        let receiver = self.world[self.receiver].node();
        assert!(done, "received {} and {} after {limit:?}", receiver.received, receiver.stream);
        assert_eq!((receiver.received, receiver.stream), (object, stream));
        let host = self.world[sender].node();
        assert_eq!(host.failed, None);
        host.done_at.unwrap_or_else(|| panic!("closed: {:?}", host.closed)).since(Instant::ZERO)
    }
}

#[test]
fn where_udp_is_dropped_tcp_carries_all_over_lines_with_every_fault() {
    for congestion in CONTROLLERS {
        let clean = line(10, 10 * MS);
        for (name, limit, pipe) in [
            ("clean", 5, clean.clone()),
            ("1 % lost", 20, clean.clone().loss(0.01)),
            ("5 % lost", 80, clean.clone().loss(0.05)),
            ("2 % corrupted", 40, clean.clone().corruption(0.02)),
            ("30 % come twice", 10, clean.clone().duplication(0.3)),
            ("20 % late by 5 ms", 40, clean.clone().reordering(0.2, 5 * MS)),
        ] {
            let mut net = net(1, congestion, MIB, 512 * KIB, &pipe);
            net.cut.set(true);
            net.run(PATIENCE);
            net.dial();
            let took = net.arrives(Duration::from_secs(limit), MIB, 512 * KIB);
            println!("{congestion} {name}: {took:?}");
        }
    }
}

#[test]
fn tcp_takes_over_where_udp_is_cut_in_mid_transfer_and_udp_when_it_is_back() {
    for congestion in CONTROLLERS {
        let mut net = net(2, congestion, 12 * MIB, 0, &line(10, 10 * MS));
        net.run(Duration::from_secs(2));
        let by_udp = net.world[net.receiver].node().received;
        assert!(by_udp > MIB, "{by_udp}");
        net.cut.set(true);
        net.run(Duration::from_secs(1));
        net.dial();
        net.run(Duration::from_secs(3));
        let by_tcp = net.world[net.receiver].node().received - by_udp;
        assert!(by_tcp > 3 * MIB / 2, "{congestion}: {by_tcp} bytes in 3 s");
        net.cut.set(false);
        let took = net.arrives(Duration::from_secs(40), 12 * MIB, 0);
        println!("{congestion}: {took:?}");
    }
}

/// UDP is cut again while TCP rests, 13 s after it came back: TCP carries on.
#[test]
fn tcp_that_rests_takes_over_again() {
    for congestion in CONTROLLERS {
        let mut net = net(2, congestion, 24 * MIB, 0, &line(10, 10 * MS));
        net.run(seconds(2));
        net.cut.set(true);
        net.run(seconds(1));
        net.dial();
        net.run(seconds(3));
        net.cut.set(false);
        net.run(seconds(10));
        net.cut.set(true);
        let before = net.world[net.receiver].node().received;
        let took = net.goes_on(before, seconds(5));
        println!("{congestion}: {took:?}");
        net.arrives(seconds(60), 24 * MIB, 0);
    }
}

/// TCP that was dialled before UDP timed out twice takes over once it has, whatever the round trip
/// takes.
#[test]
fn tcp_that_was_there_before_takes_over() {
    for congestion in CONTROLLERS {
        for delay in [10, 50, 100, 150, 200, 300] {
            let mut net = net(2, congestion, 24 * MIB, 0, &line(10, delay * MS).queue(400));
            net.run(seconds(8));
            net.cut.set(true);
            net.run(Duration::from_millis(1_000 + u64::from(delay)));
            net.dial();
            let before = net.world[net.receiver].node().received;
            let took = net.goes_on(before, seconds(15));
            println!("{congestion}, {} ms: {took:?}", 2 * delay);
        }
    }
}

#[test]
fn what_a_reset_took_away_goes_again() {
    for congestion in CONTROLLERS {
        let mut net = net(3, congestion, 6 * MIB, MIB, &line(10, 10 * MS));
        net.cut.set(true);
        net.run(PATIENCE);
        let mut local = net.dial();
        for _ in 0..4 {
            net.run(Duration::from_millis(800));
            net.world.act(net.sender, |host, now| host.reset(now, local));
            net.run(Duration::from_millis(200));
            local = net.dial();
        }
        let took = net.arrives(Duration::from_secs(60), 6 * MIB, MIB);
        println!("{congestion}: {took:?}");
    }
}

#[test]
fn a_receiver_that_takes_nothing_holds_the_sender_back() {
    let mut net = net(4, "mpath", 64 * MIB, 0, &line(100, 5 * MS));
    net.cut.set(true);
    net.run(PATIENCE);
    net.dial();
    net.run(Duration::from_secs(2));
    let receiver = net.receiver;
    let all: Vec<Local> = net.world[receiver].connections().map(|(local, _)| local).collect();
    net.world.act(receiver, |host, now| all.iter().for_each(|local| host.pause(now, *local, true)));
    net.run(Duration::from_secs(5));
    let before = net.world[receiver].node().received;
    net.run(Duration::from_secs(5));
    assert_eq!(net.world[receiver].node().received, before);
    net.world.act(receiver, |host, now| all.iter().for_each(|local| host.pause(now, *local, false)));
    net.arrives(Duration::from_secs(60), 64 * MIB, 0);
}

/// Seeds of [`by_chance_with_many_seeds`] instead of the usual ones: numbers and ranges, as in
/// `712 0..400`.
const CHANCES: &str = "BYWAY_CARRIED_SEEDS";
/// Seeds in which a TCP path is available before the UDP path times out for the second time.
const STOOD_STILL: [u64; 10] = [712, 2114, 2258, 2666, 3000, 3050, 4244, 4246, 4282, 4370];

fn chances() -> Vec<u64> {
    let Ok(wanted) = std::env::var(CHANCES) else { return (0..40).chain(STOOD_STILL).collect() };
    let range = |word: &str| match word.split_once("..") {
        Some((from, to)) => from.parse().unwrap()..to.parse().unwrap(),
        None => word.parse().map(|seed: u64| seed..seed + 1).unwrap(),
    };
    wanted.split_whitespace().flat_map(range).collect()
}

/// UDP that comes and goes, connections that are reset, lines that are dark for a while: all by
/// chance.
#[test]
fn by_chance() {
    for seed in (0..10).chain(STOOD_STILL) {
        println!("{seed}: {:?}", chance(seed));
    }
}

#[test]
#[ignore = "slow: seconds of a processor, at full scale"]
fn by_chance_with_many_seeds() {
    for seed in chances() {
        println!("{seed}: {:?}", chance(seed));
    }
}

/// How long a transfer takes in such a network.
fn chance(seed: u64) -> Duration {
    let mut random = Random::new(seed);
    let congestion = CONTROLLERS[seed as usize % 3];
    let pipe = line(10, 10 * MS).loss(0.02 * random.unit()).duplication(0.02 * random.unit());
    let mut net = net(seed, congestion, 3 * MIB, MIB, &pipe);
    net.cut.set(random.unit() < 0.5);
    for _ in 0..12 {
        net.run(Duration::from_millis(100 + (900.0 * random.unit()) as u64));
        if net.is_finished() {
            break;
        }
        match (random.unit() * 4.0) as u32 {
            0 => net.cut.set(!net.cut.get()),
            1 => {
                for local in net.connections() {
                    net.world.act(net.sender, |host, now| host.reset(now, local));
                }
            }
            _ if net.connections().len() < 3 => drop(net.dial()),
            _ => {}
        }
    }
    net.cut.set(seed.is_multiple_of(2));
    net.run(Duration::from_millis(200));
    if !net.is_finished() {
        net.dial();
    }
    net.arrives(seconds(120), 3 * MIB, MIB)
}

#[test]
fn the_same_seed_gives_the_same_bytes() {
    let trace = |seed| {
        let mut net = net(seed, "mpath", MIB, 0, &line(10, 10 * MS).loss(0.01));
        net.cut.set(true);
        net.run(PATIENCE);
        net.dial();
        net.arrives(Duration::from_secs(30), MIB, 0);
        (net.world.now(), net.world.counters(net.lines.0), net.world.counters(net.lines.1))
    };
    assert_eq!(format!("{:?}", trace(5)), format!("{:?}", trace(5)));
    assert_ne!(format!("{:?}", trace(5)), format!("{:?}", trace(6)));
    assert_eq!(tcp_address(tcp_address(address("10.0.0.1:5000"))), address("10.0.0.1:5000"));
}

/// A sender and a receiver whose only way is a relay, over TCP alone from 4.9 s on; the transfer
/// begins at 5 s.
struct Joined {
    world: World,
    sender: Handle<TcpCarried<Sender>>,
    receiver: Handle<TcpCarried<Receiver>>,
    relay: Handle<TcpCarried<Relay>>,
    /// Whether the network drops UDP now.
    cut: Rc<Cell<bool>>,
}

fn joined(seed: u64, congestion: &'static str, size: u64, pipe: &PipeConfig) -> Joined {
    let mut world = World::new(seed);
    let (from, to, at) = (sender_address(), receiver_address(), relay_address(0));
    let bytes = FrameBytes::default();
    let serve = ServerConfig {
        options: TcpConfig { no_delay: true, ..TcpConfig::linux() },
        ..ServerConfig::default()
    };
    let mut plan = Plan::new(congestion, &[size], &[to]);
    plan.start = seconds(5);
    let (config, suites) = (plan.config.clone(), plan.suites);
    let receiver = TcpCarried::new(Receiver::new(9, config, suites), 1, &bytes, 1, serve.clone());
    let receiver = world.add("receiver", receiver, &TcpCarried::<Receiver>::addresses(&[to]));
    let sender = TcpCarried::new(Sender::new(7, identity(9).public(), plan), 1, &bytes, 2, serve.clone());
    let sender = world.add("sender", sender, &TcpCarried::<Sender>::addresses(&[from]));
    let hop = TcpCarried::new(relay(Instant::ZERO), 1, &bytes, 3, serve);
    let hop = world.add("relay", hop, &TcpCarried::<Relay>::addresses(&[at]));
    world.connect(from, at, pipe.clone(), pipe.clone());
    world.connect(at, to, pipe.clone(), pipe.clone());
    let cut = Rc::new(Cell::new(false));
    let (drops, udp) = (Rc::clone(&cut), [from, to, at]);
    world.tap(
        move |seen| if drops.get() && udp.contains(seen.to) { TapVerdict::Drop } else { TapVerdict::Pass },
    );
    // The ticket says how the receiver is reached.
    let word = word(0, QuotaClass::UNLIMITED);
    world.act(receiver, |host, now| host.node_mut().endpoint.stand_at(now, &word).unwrap());
    world.run_until(Instant::from_millis(4_900));
    let (_, destination, consent) = world[receiver].node().reachable[0];
    let reach = relay_route(&word, destination, consent);
    world.act(sender, |host, _| host.node_mut().meet(word.clone(), reach));
    cut.set(true);
    Joined { world, sender, receiver, relay: hop, cut }
}

impl Joined {
    fn dial(&mut self) {
        self.world.act(self.sender, |host, now| host.dial(now, Local(0), relay_address(0))).unwrap();
    }

    /// Bytes that were acknowledged by paths of the sender that go over UDP, and over TCP.
    fn carried(&self) -> (u64, u64) {
        let host = self.world[self.sender].node();
        let connection = host.handle.and_then(|handle| host.endpoint.connection(handle));
        let paths = connection.map(|connection| connection.status().paths).unwrap_or_default();
        let by = |tcp: bool| {
            let paths = paths.iter().filter(|path| path.route.local.is_connection() == tcp);
            paths.map(|path| path.totals.acked_bytes).sum()
        };
        (by(false), by(true))
    }

    fn arrives(&mut self, limit: u64, size: u64) -> Duration {
        let sender = self.sender;
        let limit = Instant::ZERO + seconds(limit);
        let done = self.world.run_while(|world| !world[sender].node().finished(), limit);
        assert!(done, "received {}", self.world[self.receiver].node().received);
        let host = self.world[sender].node();
        let done = host.done_at.unwrap_or_else(|| panic!("{:?} {:?}", host.failed, host.closed));
        assert_eq!(self.world[self.receiver].node().received, size);
        assert!(self.world[self.relay].node().counters().forwarded_bytes >= size);
        done.since(Instant::ZERO) - seconds(5)
    }
}

/// The network drops UDP, so two hosts transfer data through a relay over TCP. The sender connects
/// to the relay, and the relay connects to the receiver. The receiver has permitted this to the
/// relay before.
#[test]
fn a_relay_joins_two_connections_by_the_code_that_forwards_datagrams() {
    for (congestion, loss) in [("background", 0.0), ("mpath", 0.0), ("mpath", 0.01)] {
        let mut world = joined(6, congestion, 3 * MIB, &line(10, 10 * MS).loss(loss));
        world.world.run_until(Instant::from_millis(5_500));
        world.dial();
        println!("{congestion} {loss}: {:?}", world.arrives(60, 3 * MIB));
    }
}

/// Either hop is reset, again and again: the relay closes the other, and the sender dials anew.
#[test]
fn hops_that_are_reset_cost_no_byte() {
    for seed in 0..12 {
        let mut random = Random::new(seed);
        let congestion = CONTROLLERS[seed as usize % 3];
        let mut world = joined(seed, congestion, 3 * MIB, &line(10, 10 * MS).loss(0.01 * random.unit()));
        world.world.run_until(Instant::from_millis(5_500));
        world.dial();
        for _ in 0..4 {
            let pause = Duration::from_millis(600 + (600.0 * random.unit()) as u64);
            world.world.run_until(world.world.now() + pause);
            if world.world[world.sender].node().finished() {
                break;
            }
            let hops: Vec<Local> = world.world[world.relay].connections().map(|(local, _)| local).collect();
            let one = random.below(hops.len().max(1) as u64) as usize;
            if let Some(local) = hops.get(one).copied() {
                world.world.act(world.relay, |host, now| host.reset(now, local));
            }
            world.world.run_until(world.world.now() + 300 * MS);
            world.dial();
        }
        println!("{seed} {congestion}: {:?}", world.arrives(120, 3 * MIB));
    }
}

/// However long UDP to a relay was cut: it carries soon after it is back, and TCP rests.
#[test]
fn udp_to_a_relay_that_is_back_carries_and_tcp_rests() {
    for congestion in ["mpath", "background"] {
        let mut world = joined(7, congestion, 200 * MIB, &line(10, 10 * MS));
        world.world.run_until(Instant::from_millis(5_500));
        world.dial();
        world.world.run_until(Instant::ZERO + seconds(65));
        let (udp, tcp) = world.carried();
        assert!(udp == 0 && tcp > 10 * MIB, "{congestion}: {udp} and {tcp} bytes");
        world.cut.set(false);
        world.world.run_until(Instant::ZERO + seconds(85));
        let (back, rests) = world.carried();
        assert!(back > MIB, "{congestion}: {back} bytes over UDP 20 s after its return");
        world.world.run_until(Instant::ZERO + seconds(95));
        let (udp, tcp) = world.carried();
        assert!(udp > back + 4 * MIB, "{congestion}: {back} {udp}");
        assert!(tcp < rests + 10 * KIB, "{congestion}: TCP goes on, {rests} {tcp}");
        // Half a minute later nobody needs the connection any more.
        world.world.run_until(Instant::ZERO + seconds(130));
        let host = &world.world[world.sender];
        let all: Vec<Local> = host.connections().map(|(local, _)| local).collect();
        assert!(!all.is_empty() && all.iter().all(|local| !host.node().endpoint.serves(*local)), "{all:?}");
    }
}

/// A network that limits UDP with a token bucket: `rate` bytes per second, in bursts of at most
/// `burst` bytes. The closure says whether the network passes a datagram of this size at this time.
fn police(rate: f64, burst: f64) -> impl FnMut(Instant, usize) -> bool {
    let (mut tokens, mut last) = (burst, Instant::ZERO);
    move |now, size| {
        tokens = (tokens + now.since(last).as_secs_f64() * rate).min(burst);
        last = now;
        let passes = tokens >= size as f64;
        tokens -= if passes { size as f64 } else { 0.0 };
        passes
    }
}

/// Looks at the session as an owner does, and dials where TCP is wanted. Returns for how many
/// seconds TCP was.
fn with_trials(net: &mut Net, trials: &mut Trials, time: Duration) -> f64 {
    let until = net.world.now() + time;
    let (mut over_tcp, mut dial_at) = (0.0, Instant::ZERO);
    while net.world.now() < until && !net.is_finished() {
        net.run(carrier_trials::CHECK_INTERVAL);
        let has_tcp = net.world.act(net.sender, |host, now| {
            let host = host.node_mut();
            let session = host.handle.and_then(|handle| host.endpoint.connection_mut(handle));
            session.is_none_or(|connection| {
                let status = connection.status();
                connection.prefer(now, trials.look(now, Sight::of(&status)));
                status.paths.iter().any(|path| path.route.local.is_connection())
            })
        });
        if trials.wants_tcp() {
            over_tcp += carrier_trials::CHECK_INTERVAL.as_secs_f64();
            if !has_tcp && net.world.now() >= dial_at {
                net.dial();
                dial_at = net.world.now() + seconds(1);
            }
        }
    }
    over_tcp
}

#[test]
fn tcp_carries_where_a_network_throttles_udp_and_udp_again_once_it_does_not() {
    for congestion in CONTROLLERS {
        let mut net = net(7, congestion, 400 * MIB, 0, &line(4, 10 * MS));
        let throttles = Rc::new(Cell::new(true));
        let (on, mut passes) = (Rc::clone(&throttles), police(60_000.0, 10_000.0));
        let to = net.to;
        net.world.tap(move |seen| {
            let drops = on.get() && *seen.to == to && !passes(seen.now, seen.payload.len());
            if drops { TapVerdict::Drop } else { TapVerdict::Pass }
        });
        let mut trials = Trials::default();
        with_trials(&mut net, &mut trials, seconds(20));
        assert!(trials.wants_tcp(), "{congestion}");
        let before = net.world[net.receiver].node().received;
        let over_tcp = with_trials(&mut net, &mut trials, seconds(100));
        let rate = (net.world[net.receiver].node().received - before) as f64 * 8.0 / 100e6;
        println!("{congestion}: {rate:.2} Mbit/s, for {over_tcp} of 100 s over TCP");
        assert!(rate > 2.8 && over_tcp > 85.0, "{congestion}: {rate} Mbit/s, {over_tcp} s");
        throttles.set(false);
        with_trials(&mut net, &mut trials, seconds(80));
        assert!(!trials.wants_tcp(), "{congestion}");
        let over_tcp = with_trials(&mut net, &mut trials, seconds(50));
        assert_eq!(over_tcp, 0.0, "{congestion}");
    }
}

/// A line that loses by chance, and one with a queue of its own: UDP carries as much as TCP, and
/// more.
#[test]
fn udp_stays_where_it_does_no_worse_than_tcp() {
    for congestion in CONTROLLERS {
        for (name, pipe) in [("2 % lost", line(4, 10 * MS).loss(0.02)), ("a full queue", line(4, 10 * MS))] {
            let mut net = net(8, congestion, 200 * MIB, 0, &pipe);
            let mut trials = Trials::default();
            let over_tcp = with_trials(&mut net, &mut trials, seconds(120));
            println!("{congestion}, {name}: {over_tcp} of 120 s over TCP");
            assert!(over_tcp < 30.0, "{congestion}, {name}: {over_tcp} s");
        }
    }
}
