//! Hundreds of relays behind one access line: which are found, what looking for them costs, and
//! what bad ones do.

use crate::common::detours::{
    receiver_address, relay, relay_address, relay_index, seconds, sender_address, through,
};
use crate::common::{MS, Plan, Receiver, Sender, identity, line};
use byway_engine::endpoint::MAX_RELAYS;
use byway_engine::seal::Suites;
use byway_engine::{Config, RelayState, RelayStatus, RelayTrouble};
use byway_relay::Relay;
use byway_sim::pipe::Change;
use byway_sim::{Handle, LinkId, PipeConfig, TapVerdict, TappedDatagram, World};
use byway_wire::{Dscp, Duration, Ecn, Input, Instant, Local, Machine, Transmit, TransmitBuffer};
use core::ops::RangeInclusive;
use std::collections::{BTreeMap, VecDeque};
use std::net::SocketAddr;

/// Both classes.
pub const CLASSES: [&str; 2] = ["background", "mpath"];

/// Seeds of what is searched at full scale.
pub const SEEDS: RangeInclusive<u64> = 1..=3;
/// The only seed of what is searched otherwise.
pub const ONE_SEED: RangeInclusive<u64> = 1..=1;

/// Each class with each seed.
fn each(seeds: &RangeInclusive<u64>, mut test: impl FnMut(u64, &'static str)) {
    for congestion in CLASSES {
        seeds.clone().for_each(|seed| test(seed, congestion));
    }
}

/// One-way delay of the direct line behind the access line.
const DIRECT: Duration = Duration::from_millis(39);

pub fn at(second: u64) -> Instant {
    Instant::ZERO + seconds(second)
}

/// What a relay is like. Each of the bad ones answers greetings.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Good,
    /// It forwards nothing.
    Swallows,
    /// It has 100 kbit/s.
    Slow,
    /// It holds everything back by 300 ms, from one moment to the next.
    Delays,
    /// It sends each packet twice.
    Duplicates,
    /// It changes a bit of each packet.
    Corrupts,
    /// It sends to a host that asked for nothing.
    Elsewhere,
    /// It sends to the next relay of this kind what is for the receiver.
    Passes,
    /// It sends to the next relay of this kind whatever comes from the sender or from such a relay,
    /// as it came.
    Mirrors,
    /// Nobody is there.
    Dead,
}

/// From when on relays delay.
pub const DELAYED: u64 = 8;

/// A host that asked for nothing.
pub fn bystander() -> SocketAddr {
    SocketAddr::from(([10, 0, 1, 77], 4000))
}

/// A sender behind an access line of `access` Mbit/s, a direct line behind it, and relays on lines
/// of their own.
pub struct Search {
    pub world: World,
    pub sender: Handle<Sender>,
    pub receiver: Handle<Receiver>,
    /// By their numbers, but for those that are dead or mirrors.
    pub relays: BTreeMap<usize, Handle<Relay>>,
    /// The access line, up and down.
    pub access: [LinkId; 2],
}

/// Starts a transfer of `size` bytes with one relay for each of `kinds`, tried in random order.
/// `rates`: Mbit/s of the sender's access line, and of the direct line. Relays have random RTTs of
/// 40 to 200 ms.
pub fn search(seed: u64, congestion: &'static str, size: u64, rates: [u64; 2], kinds: &[Kind]) -> Search {
    let mut search = build(seed, through(congestion, size, kinds.len()).lengths(), rates, kinds);
    let kinds = kinds.to_vec();
    search.world.tap(move |mut datagram| misled(&mut datagram, &kinds));
    search
}

/// What relays do to a packet that they forward.
pub fn misled(datagram: &mut TappedDatagram<'_>, kinds: &[Kind]) -> TapVerdict {
    // Short answers to greetings are left alone.
    if *datagram.to != receiver_address() || datagram.payload.len() + datagram.phantom <= 120 {
        return TapVerdict::Pass;
    }
    let Some(index) = relay_index(*datagram.from).filter(|index| *index < kinds.len()) else {
        return TapVerdict::Pass;
    };
    match kinds[index] {
        Kind::Swallows => return TapVerdict::Drop,
        Kind::Corrupts => *datagram.payload.last_mut().unwrap() ^= 0x40,
        Kind::Elsewhere => *datagram.to = bystander(),
        Kind::Passes => *datagram.to = relay_address(twin(kinds, index)),
        _ => {}
    }
    TapVerdict::Pass
}

/// The next relay of the same kind.
fn twin(kinds: &[Kind], index: usize) -> usize {
    let mut others = (index + 1..kinds.len()).chain(0..index);
    others.find(|other| kinds[*other] == kinds[index]).expect("two of a kind")
}

/// Relays do nothing to what they forward until [`misled`] is made the world's tap.
pub fn build(seed: u64, mut plan: Plan, [access, direct]: [u64; 2], kinds: &[Kind]) -> Search {
    let (from, to) = (sender_address(), receiver_address());
    plan.addresses.push(to);
    let mut world = World::new(seed);
    world.stop_trace();
    let receiver = world.add("receiver", Receiver::new(9, plan.config.clone(), plan.suites), &[to]);
    let sender = world.add("sender", Sender::new(20 + seed as u8, identity(9).public(), plan), &[from]);
    let queue = (access * 1_000_000 / 8 / 1_500 / 20) as usize; // 50 ms
    let uplink = line(access, MS).queue(queue.max(50));
    let [up, down] = ["up", "down"].map(|name| world.link(name, uplink.clone()));
    let [there, back] = ["there", "back"].map(|name| world.link(name, line(direct, DIRECT)));
    world.route(from, to.ip(), &[up, there]);
    world.route(to, from.ip(), &[back, down]);
    world.add("bystander", Receiver::new(11, Config::default(), Suites::SECURE), &[bystander()]);
    let mut relays = BTreeMap::new();
    let mut random = world.random("delays of relays");
    let delays: Vec<Duration> = kinds.iter().map(|_| MS * (19 + random.below(80) as u32)).collect();
    for (index, kind) in kinds.iter().enumerate() {
        let here = relay_address(index);
        if *kind == Kind::Dead {
            continue;
        }
        // Packets of different relays never meet but on the access line.
        let one_way = delays[index];
        let pipe = match kind {
            Kind::Slow => PipeConfig::new(100_000, one_way).queue(20),
            _ => line(10, one_way),
        };
        let name = format!("relay {index}");
        if *kind == Kind::Mirrors {
            let twin = relay_address(twin(kinds, index));
            world.add(&name, Mirror::new(twin), &[here]);
            let between = world.link(&format!("to the twin of {index}"), line(1, 5 * MS));
            world.route(here, twin.ip(), &[between]);
        } else {
            relays.insert(index, world.add(&name, relay(Instant::ZERO), &[here]));
        }
        let beyond = match kind {
            Kind::Delays => line(100, MS / 2).then(at(DELAYED), Change::Delay(300 * MS)),
            Kind::Duplicates => line(100, MS / 2).duplication(1.0),
            _ => line(100, MS / 2),
        };
        let links = ["near", "near back", "far", "far back"];
        let pipes = [pipe.clone(), pipe, beyond, line(100, MS / 2)];
        let mut links = links.iter().zip(pipes);
        let mut link =
            || links.next().map(|(name, pipe)| world.link(&format!("{name} {index}"), pipe)).unwrap();
        let [near, near_back, far, far_back] = [link(), link(), link(), link()];
        world.route(from, here.ip(), &[up, near]);
        world.route(here, from.ip(), &[near_back, down]);
        world.route(here, to.ip(), &[far]);
        world.route(to, here.ip(), &[far_back]);
    }
    Search { world, sender, receiver, relays, access: [up, down] }
}

/// A relay that greets as others do, and sends to its twin whatever it should forward or has from
/// there, as it came.
struct Mirror {
    relay: Relay,
    twin: SocketAddr,
    /// Packets, and their bytes that are only a length.
    waiting: VecDeque<(Vec<u8>, usize)>,
}

impl Mirror {
    fn new(twin: SocketAddr) -> Self {
        Self { relay: relay(Instant::ZERO), twin, waiting: VecDeque::new() }
    }
}

impl Machine for Mirror {
    fn handle(&mut self, now: Instant, input: Input<'_>) {
        match input {
            Input::Datagram(datagram)
                if datagram.remote == self.twin || datagram.payload.len() + datagram.phantom > 120 =>
            {
                if self.waiting.len() < 16 {
                    self.waiting.push_back((datagram.payload.to_vec(), datagram.phantom));
                }
            }
            other => self.relay.handle(now, other),
        }
    }

    fn wake(&mut self, now: Instant) {
        self.relay.wake(now);
    }

    fn transmit(&mut self, now: Instant, out: &mut TransmitBuffer<'_>) -> Option<Transmit> {
        let Some((bytes, phantom)) = self.waiting.pop_front() else { return self.relay.transmit(now, out) };
        out.buffer[..bytes.len()].copy_from_slice(&bytes);
        Some(Transmit {
            local: Local(0),
            remote: self.twin,
            ecn: Ecn::NotEct,
            dscp: Dscp::BestEffort,
            size: bytes.len(),
            segment: bytes.len(),
            phantom,
        })
    }

    fn deadline(&self) -> Option<Instant> {
        self.relay.deadline()
    }
}

impl Search {
    pub fn relays(&mut self) -> Vec<RelayStatus> {
        self.world.act(self.sender, |host, now| host.endpoint.relays(now, host.handle.unwrap()))
    }

    pub fn counts(&mut self) -> BTreeMap<String, usize> {
        let mut counts = BTreeMap::new();
        for relay in self.relays() {
            *counts.entry(format!("{:?}", relay.standing)).or_default() += 1;
        }
        counts
    }

    /// Seconds until all has arrived.
    pub fn finish(&mut self, limit: u64, size: u64) -> f64 {
        let sender = self.sender;
        assert!(self.world.run_while(|world| !world[sender].finished(), at(limit)), "{:?}", self.counts());
        assert_eq!(self.world[self.receiver].received, size);
        self.world[sender].done_at.unwrap().since(Instant::ZERO).as_secs_f64()
    }

    /// Mbit/s of object bytes between two times in seconds.
    pub fn rate(&self, from: u64, until: u64) -> f64 {
        self.world[self.receiver].goodput(seconds(from), seconds(until)) / 1e6
    }
}

/// Good, swallowing and slow relays in turn.
fn thirds(count: usize) -> Vec<Kind> {
    (0..count).map(|index| [Kind::Good, Kind::Swallows, Kind::Slow][index % 3]).collect()
}

/// Returns (duration of a transfer with 64 relays) / (duration with the good ones only). A third of
/// the relays are good, a third drop all packets, a third are slow. In both transfers, two good
/// relays pause from 15 s to 30 s.
fn loss_by_bad_relays(seed: u64, congestion: &'static str) -> f64 {
    let size = 60 * 19_000_000 / 8;
    let took = |kinds: &[Kind]| {
        let mut world = search(seed, congestion, size, [20, 4], kinds);
        world.world.run_until(at(15));
        let dying = [world.relays[&0], world.relays[&3]];
        dying.iter().for_each(|relay| world.world.freeze(*relay, true));
        world.world.run_until(at(30));
        dying.iter().for_each(|relay| world.world.freeze(*relay, false));
        world.finish(300, size)
    };
    let kinds = thirds(64);
    // The good ones keep their places, so that their RTTs are the same.
    let good: Vec<Kind> =
        kinds.iter().map(|kind| if *kind == Kind::Good { Kind::Good } else { Kind::Dead }).collect();
    let (all, alone) = (took(&kinds), took(&good));
    println!("{congestion}, seed {seed}: {all:.1} s, {alone:.1} s with the good ones alone");
    all / alone
}

#[test]
fn bad_relays_cost_little() {
    for congestion in CLASSES {
        let ratio = loss_by_bad_relays(1, congestion);
        assert!(ratio <= 1.15, "{congestion}: {ratio}");
    }
}

#[test]
#[ignore = "slow: forty transfers of a minute"]
fn bad_relays_cost_little_whatever_the_seed() {
    for congestion in CLASSES {
        let mut ratios: Vec<f64> = (1..=10).map(|seed| loss_by_bad_relays(seed, congestion)).collect();
        ratios.sort_by(f64::total_cmp);
        println!("{congestion}: {ratios:.3?}");
        assert!(ratios[5] <= 1.15, "{congestion}: {ratios:?}");
    }
}

/// All 450 candidate relays, of which a tenth are dead, are tried within 128 s. Then the transfer
/// is limited to 1 byte of data per second. All remaining traffic, mostly probes, takes at most 10
/// kbit/s of the access line each way.
#[test]
#[ignore = "slow: seconds of a processor, at full scale"]
fn a_complete_list_costs_next_to_nothing() {
    for congestion in CLASSES {
        complete_list(congestion);
    }
}

fn complete_list(congestion: &'static str) {
    let kinds: Vec<Kind> =
        (0..450).map(|index| if index % 10 == 9 { Kind::Dead } else { Kind::Good }).collect();
    let mut world = search(1, congestion, 1 << 40, [20, 4], &kinds);
    let complete = (450 + 45) / 4 + 5;
    world.world.run_until(at(complete));
    let counts = world.counts();
    println!("{congestion}: {counts:?}");
    assert_eq!(counts.get("Unusable"), Some(&45), "{counts:?}");
    assert!(!counts.contains_key("Untried"), "{counts:?}");
    world.world.run_until(at(180));
    // Without data to send, all that is left is what it costs to keep paths and relays.
    world.world.act(world.sender, |host, now| {
        host.endpoint.connection_mut(host.handle.unwrap()).unwrap().set_cap(now, Some(1));
    });
    world.world.run_until(at(190));
    let sent = |world: &Search| world.access.map(|link| world.world.counters(link).sent_bytes);
    let before = sent(&world);
    world.world.run_until(at(250));
    let after = sent(&world);
    let rates = [0, 1].map(|way| (after[way] - before[way]) as f64 * 8.0 / 60.0);
    println!("{congestion}: {rates:.0?} bit/s up and down; {:?}", world.counts());
    assert!(rates.iter().all(|rate| *rate <= 10_000.0), "{congestion}: {rates:?}");
}

#[test]
fn all_relays_are_dead() {
    without_relays(&ONE_SEED);
}

#[test]
#[ignore = "slow: seconds of a processor, at full scale"]
fn all_relays_are_dead_with_more_seeds() {
    without_relays(&SEEDS);
}

/// All relays are dead: the direct path is as fast as without any.
fn without_relays(seeds: &RangeInclusive<u64>) {
    each(seeds, |seed, congestion| {
        let rates = [0, 300].map(|relays| {
            let mut world = search(seed, congestion, 1 << 40, [20, 4], &vec![Kind::Dead; relays]);
            world.world.run_until(at(60));
            world.rate(10, 60)
        });
        println!("{congestion}, seed {seed}: {rates:.2?} Mbit/s");
        assert!(rates[1] >= 0.98 * rates[0], "{congestion}, seed {seed}: {rates:?}");
    });
}

#[test]
fn the_direct_path_dies() {
    without_a_direct_path(&ONE_SEED);
}

#[test]
#[ignore = "slow: seconds of a processor, at full scale"]
fn the_direct_path_dies_with_more_seeds() {
    without_a_direct_path(&SEEDS);
}

/// The direct path dies while relays live.
fn without_a_direct_path(seeds: &RangeInclusive<u64>) {
    each(seeds, |seed, congestion| {
        let size = 40 << 20;
        let took = |dies: bool| {
            let mut world = search(seed, congestion, size, [20, 4], &[Kind::Good; 40]);
            world.world.run_until(at(8));
            if dies {
                let (from, to) = (sender_address(), receiver_address());
                let dark = line(4, DIRECT).partition(Instant::ZERO, Instant::FAR_FUTURE);
                let dark = world.world.link("dark", dark);
                world.world.route(from, to.ip(), &[dark]);
                world.world.route(to, from.ip(), &[dark]);
            }
            world.finish(90, size)
        };
        let [alive, dead] = [false, true].map(took);
        println!("{congestion}, seed {seed}: {dead:.1} s, {alive:.1} s if it lives");
        assert!(dead <= 1.15 * alive + 2.0, "{congestion}, seed {seed}: {dead} {alive}");
    });
}

/// The uplink goes and comes back with 300 candidates, tried and untried: it costs no more than
/// those ten seconds and five more.
#[test]
#[ignore = "slow: seconds of a processor, at full scale"]
fn the_uplink_is_lost_with_three_hundred_candidates() {
    each(&SEEDS, |seed, congestion| {
        let size = 60 << 20;
        let mut world = search(seed, congestion, size, [20, 4], &[Kind::Good; 300]);
        world.world.run_until(at(20));
        world.world.set_up(world.sender, Local(0), false);
        world.world.run_until(at(30));
        world.world.set_up(world.sender, Local(0), true);
        let (took, counts) = (world.finish(120, size), world.counts());
        println!("{congestion}, seed {seed}: {took:.1} s, {counts:?}");
        // At 18 Mbit/s but for the first two seconds.
        let without = 2.0 + size as f64 * 8.0 / 18e6;
        assert!(took <= without + 15.0, "{congestion}, seed {seed}: {took} {without}");
    });
}

/// Of ten thousand candidate relays twenty exist. The sender takes `MAX_RELAYS` of the candidates
/// and reports each further one. The direct path is as fast as without candidates.
#[test]
#[ignore = "slow: seconds of a processor, at full scale"]
fn ten_thousand_candidates() {
    for (seed, congestion) in (1..).zip(CLASSES) {
        let kinds: Vec<Kind> =
            (0..10_000).map(|index| if index % 500 == 7 { Kind::Good } else { Kind::Dead }).collect();
        let mut alone = search(seed, congestion, 1 << 40, [20, 4], &[]);
        let mut many = search(seed, congestion, 1 << 40, [20, 4], &kinds);
        for world in [&mut alone, &mut many] {
            world.world.run_until(at(40));
        }
        let rates = [alone.rate(10, 40), many.rate(10, 40)];
        let sender = &many.world[many.sender];
        let refused = sender.troubles.iter().filter(|(_, trouble)| *trouble == RelayTrouble::TooMany).count();
        println!("{congestion}, seed {seed}: {rates:.2?} Mbit/s, no room for {refused}");
        assert_eq!(refused, 10_000 - MAX_RELAYS);
        assert!(rates[1] >= 0.98 * rates[0], "{congestion}, seed {seed}: {rates:?}");
    }
}

/// Relays that answer late are used if there is no better one, and only then.
#[test]
fn late_relays_are_a_reserve() {
    // The route from these relays to the receiver gets a one-way delay of 100 ms. ACKs return over
    // the direct path.
    let further = |world: &mut Search, relays: core::ops::Range<usize>| {
        for index in relays {
            let name = format!("further {index}");
            let link = world.world.link(&name, line(100, 100 * MS));
            world.world.route(relay_address(index), receiver_address().ip(), &[link]);
        }
    };
    let mut world = search(1, "mpath", 1 << 40, [20, 4], &[Kind::Good; 12]);
    further(&mut world, 6..12);
    world.world.run_until(at(20));
    let standings: Vec<RelayState> = world.relays().iter().map(|relay| relay.standing).collect();
    assert!(standings[..6].iter().all(|standing| *standing == RelayState::InUse), "{standings:?}");
    assert!(standings[6..].iter().all(|standing| *standing == RelayState::Reserve), "{standings:?}");

    let mut world = search(1, "mpath", 1 << 40, [20, 4], &[Kind::Good; 4]);
    further(&mut world, 0..4);
    world.world.run_until(at(20));
    let standings: Vec<RelayState> = world.relays().iter().map(|relay| relay.standing).collect();
    assert!(standings.iter().all(|standing| *standing == RelayState::InUse), "{standings:?}");
}
