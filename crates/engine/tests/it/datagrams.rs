//! Datagrams whose path the owner chooses: refused rather than dropped, given back rather than
//! stuck, and counted like all data.

use crate::common::{MS, Plan, Receiver, Sender, address, both, identity, line, pattern_bytes};
use byway_engine::connection::datagrams::{PathView, Refused};
use byway_engine::{Config, Handle};
use byway_sim::{LinkId, Node, PipeConfig, World};
use byway_wire::{Duration, Instant, Machine, PathId};
use std::collections::{BTreeMap, BTreeSet};

/// Bytes of an answer: those of a TCP ACK between gateways.
const ANSWER: usize = 40;

/// A message that says which it is, and more.
fn message(mark: u64, size: usize) -> Vec<u8> {
    let mut data = mark.to_be_bytes().to_vec();
    data.extend(pattern_bytes(mark as u32, mark, size - data.len()));
    data
}

/// Sends datagrams by whichever path has most room for its window, as long as one has any.
struct Talker {
    sender: Sender,
    size: usize,
    until: Instant,
    next: u64,
    refused: u64,
    returned: Vec<(u64, Vec<u8>)>,
    came_back: u64,
    fates: BTreeMap<u64, (bool, bool)>,
}

fn best(views: impl Iterator<Item = PathView>, size: usize) -> Option<PathId> {
    let fit = views.filter(|view| view.usable && view.room > 0 && view.largest >= size);
    let key = |view: &PathView| u128::from(view.in_flight) * 1_000_000 / u128::from(view.window.max(1));
    fit.min_by_key(|view| (key(view), view.id)).map(|view| view.id)
}

impl Talker {
    fn talk(&mut self, now: Instant) {
        let handle = self.sender.handle.filter(|_| self.sender.connected_at.is_some());
        let Some(connection) = handle.and_then(|handle| self.sender.endpoint.connection_mut(handle)) else {
            return;
        };
        while let Some(returned) = connection.next_returned() {
            self.came_back += 1;
            self.returned.push(returned);
        }
        while let Some(fate) = connection.next_fate() {
            let told = self.fates.entry(fate.mark).or_default();
            if fate.arrived { told.0 = true } else { told.1 = true }
        }
        while now < self.until || !self.returned.is_empty() {
            let Some(path) = best(connection.path_views(), self.size) else { break };
            let (mark, data) = self.returned.pop().unwrap_or_else(|| {
                self.next += 1;
                (self.next, message(self.next, self.size))
            });
            if let Err((why, data)) = connection.send_datagram(path, mark, data) {
                assert_eq!(why, Refused::NoRoom, "the view said that it goes");
                self.refused += 1;
                self.returned.push((mark, data));
                break;
            }
        }
    }
}

impl Node for Talker {
    fn machine(&mut self) -> &mut dyn Machine {
        &mut self.sender.endpoint
    }

    fn turn(&mut self, now: Instant) {
        self.sender.turn(now);
        self.talk(now);
    }

    fn alarm(&self) -> Option<Instant> {
        self.sender.alarm()
    }
}

/// Takes datagrams, and checks every byte.
struct Listener {
    receiver: Receiver,
    arrived: BTreeMap<u64, u32>,
    by_path: BTreeMap<PathId, u64>,
    bytes: u64,
    deaf: bool,
    /// Whether it answers every second one.
    answers: bool,
    /// Whether it looks by itself, and never asks which connections have datagrams.
    looks: bool,
    /// The connections that are said to have datagrams, and how often one was said to while nobody
    /// listened.
    told: BTreeSet<Handle>,
    told_in_vain: u64,
}

impl Node for Listener {
    fn machine(&mut self) -> &mut dyn Machine {
        &mut self.receiver.endpoint
    }

    fn turn(&mut self, now: Instant) {
        self.receiver.turn(now);
        while !self.looks
            && let Some(handle) = self.receiver.endpoint.next_with_datagrams()
        {
            self.told_in_vain += u64::from(self.deaf);
            self.told.insert(handle);
        }
        for handle in self.receiver.handles.clone() {
            let Some(connection) = self.receiver.endpoint.connection_mut(handle) else { continue };
            while !self.deaf
                && let Some(received) = connection.next_datagram()
            {
                assert!(self.looks || self.told.contains(&handle), "of these datagrams nobody was told");
                assert!(received.at <= now);
                let mark = u64::from_be_bytes(received.data[..8].try_into().unwrap());
                assert_eq!(received.data, message(mark, received.data.len()));
                *self.arrived.entry(mark).or_default() += 1;
                *self.by_path.entry(received.path).or_default() += 1;
                self.bytes += received.data.len() as u64;
                connection.recycle(received.data);
                if self.answers
                    && mark % 2 == 0
                    && let Some(path) = best(connection.path_views(), ANSWER)
                {
                    connection.send_datagram(path, mark, message(mark, ANSWER)).unwrap();
                }
            }
            if !self.deaf {
                self.told.remove(&handle);
            }
        }
    }
}

struct Conversation {
    world: World,
    talker: byway_sim::Handle<Talker>,
    listener: byway_sim::Handle<Listener>,
    there: Vec<LinkId>,
    back: Vec<LinkId>,
}

impl Conversation {
    /// Over as many paths as there are pipes; talks for `seconds`.
    fn new(
        seed: u64,
        config: &Config,
        size: usize,
        seconds: u64,
        pipes: &[(PipeConfig, PipeConfig)],
    ) -> Self {
        let config = Config { datagrams: 4096, datagram_fates: true, ..config.clone() };
        let mut plan = Plan::new("newreno", &[], &[address("10.0.1.1:4000")]);
        plan.config = config.clone();
        let mut world = World::new(seed);
        let listener = Listener {
            receiver: Receiver::new(9, config, plan.suites),
            arrived: BTreeMap::new(),
            by_path: BTreeMap::new(),
            bytes: 0,
            told: BTreeSet::new(),
            told_in_vain: 0,
            deaf: false,
            answers: false,
            looks: false,
        };
        let to = address("10.0.1.1:4000");
        let listener = world.add("listener", listener, &[to]);
        let mut sender = Sender::new(7, identity(9).public(), plan);
        sender.keep_open = true;
        let talker = Talker {
            sender,
            size,
            until: Instant::ZERO + Duration::from_secs(seconds),
            next: 0,
            refused: 0,
            returned: Vec::new(),
            came_back: 0,
            fates: BTreeMap::new(),
        };
        let locals: Vec<_> =
            (0..pipes.len()).map(|path| address(&format!("10.0.0.{}:5000", path + 1))).collect();
        let talker = world.add("talker", talker, &locals);
        let (mut there, mut back) = (Vec::new(), Vec::new());
        for (local, (up, down)) in locals.iter().zip(pipes) {
            let (a, b) = world.connect(*local, to, up.clone(), down.clone());
            there.push(a);
            back.push(b);
        }
        Self { world, talker, listener, there, back }
    }

    fn run(&mut self, seconds: u64) {
        self.world.run_until(Instant::ZERO + Duration::from_secs(seconds));
    }

    /// Checks that each datagram was reported as arrived or lost, that none arrived twice, and that
    /// those reported as arrived did. Returns how many arrived although reported as lost: those in
    /// flight on a path when it died.
    fn check(&self) -> usize {
        let (talker, listener) = (&self.world[self.talker], &self.world[self.listener]);
        assert!(listener.arrived.values().all(|times| *times == 1));
        for mark in 1..=talker.next {
            let (told_arrived, told_lost) = talker.fates.get(&mark).copied().unwrap_or_default();
            assert!(told_arrived || told_lost, "nothing was told of {mark}");
            assert!(listener.arrived.contains_key(&mark) || !told_arrived, "{mark}");
        }
        let told = talker.fates.values().filter(|(arrived, _)| *arrived).count();
        listener.arrived.len() - told
    }
}

#[test]
fn three_paths_carry_three_times_as_much() {
    let pipes = [10, 20, 30].map(|delay| both(line(10, delay * MS)));
    let mut talk = Conversation::new(1, &Config::default(), 1300, 20, &pipes);
    talk.run(22);
    assert_eq!(talk.check(), 0);
    let listener = &talk.world[talk.listener];
    let rate = listener.bytes as f64 * 8.0 / 20e6;
    println!("{rate:.1} Mbit/s, {:?}", listener.by_path);
    assert!(rate > 24.0, "{rate}");
    assert_eq!(listener.by_path.len(), 3);
}

#[test]
fn small_ones_travel_together() {
    let mut talk = Conversation::new(2, &Config::default(), 52, 5, &[both(line(10, 10 * MS))]);
    talk.run(6);
    assert_eq!(talk.check(), 0);
    let (packets, datagrams) =
        (talk.world.counters(talk.there[0]).delivered, talk.world[talk.listener].arrived.len());
    assert!(packets * 20 < datagrams as u64, "{packets} packets, {datagrams} datagrams");
}

#[test]
fn an_ack_that_is_nearly_due_rides_with_what_leaves_if_there_is_room() {
    // Answers are acknowledged: by packets of their own where datagrams fill theirs.
    for (size, extra) in [(1_100, 0.0..0.02), (1_405, 0.1..0.3)] {
        let config = Config { max_datagram: 1_472, ..Config::default() };
        let mut talk = Conversation::new(7, &config, size, 10, &[both(line(10, 10 * MS))]);
        talk.world.act(talk.listener, |listener, _| listener.answers = true);
        talk.run(3);
        let count = |talk: &Conversation| {
            let packets = talk.world.counters(talk.there[0]).delivered;
            (packets as f64, talk.world[talk.listener].arrived.len() as f64)
        };
        let (packets, datagrams) = count(&talk);
        talk.run(9);
        let (packets, datagrams) = (count(&talk).0 - packets, count(&talk).1 - datagrams);
        let beside = packets / datagrams - 1.0;
        println!("{size}: {beside:.3} packets more than datagrams");
        assert!(datagrams > 4_000.0 && extra.contains(&beside), "{beside}");
        talk.run(12);
        assert_eq!(talk.check(), 0);
    }
}

#[test]
fn what_a_dead_path_took_on_goes_by_others() {
    let pipes = [both(line(10, 10 * MS)), both(line(10, 20 * MS))];
    let mut talk = Conversation::new(3, &Config::default(), 1300, 12, &pipes);
    for link in [talk.there[1], talk.back[1]] {
        let (from, until) = (Duration::from_secs(4), Duration::from_secs(60));
        talk.world.pipe(link).partition(Instant::ZERO + from, Instant::ZERO + until);
    }
    talk.run(8);
    let before = talk.world[talk.listener].bytes;
    talk.run(10);
    let rate = (talk.world[talk.listener].bytes - before) as f64 * 8.0 / 2e6;
    assert!(rate > 8.5, "{rate} Mbit/s over the path that lives");
    assert!(talk.world[talk.talker].came_back > 0);
    talk.run(14);
    let (doubtful, path) = (talk.check(), 10_000_000 / 8 / 1300 / 10);
    assert!(doubtful < path, "{doubtful}: more than a path holds");
}

#[test]
fn loss_corruption_duplication_and_reordering() {
    let bad = PipeConfig { loss: 0.03, corruption: 0.01, ..line(10, 10 * MS) };
    let bad = bad.duplication(0.02).reordering(0.05, 15 * MS);
    let mut talk = Conversation::new(4, &Config::default(), 900, 10, &[both(bad.clone()), both(bad)]);
    talk.run(14);
    assert_eq!(talk.check(), 0);
    assert!(talk.world[talk.listener].arrived.len() > 1_000);
}

#[test]
fn an_owner_who_does_not_listen_loses_the_oldest() {
    let mut talk = Conversation::new(5, &Config::default(), 1000, 8, &[both(line(10, 5 * MS))]);
    talk.run(1);
    talk.world.act(talk.listener, |listener, _| listener.deaf = true);
    talk.run(9);
    talk.world.act(talk.listener, |listener, _| listener.deaf = false);
    talk.run(10);
    let (sent, arrived) = (talk.world[talk.talker].next, talk.world[talk.listener].arrived.len() as u64);
    let fates = &talk.world[talk.talker].fates;
    let acked = fates.values().filter(|(arrived, _)| *arrived).count() as u64;
    let overrun = acked - arrived;
    assert!(overrun > 1_000, "{overrun}");
    assert_eq!(talk.world[talk.listener].told_in_vain, 1, "once, until all is taken");
    assert_eq!(fates.len() as u64, sent);
}

#[test]
fn an_owner_who_looks_by_itself_is_told_no_more_than_once() {
    let mut talk = Conversation::new(5, &Config::default(), 1000, 4, &[both(line(10, 5 * MS))]);
    talk.world.act(talk.listener, |listener, _| listener.looks = true);
    talk.run(5);
    assert!(talk.world[talk.listener].arrived.len() > 1_000);
    talk.world.act(talk.listener, |listener, _| {
        let told = core::iter::from_fn(|| listener.receiver.endpoint.next_with_datagrams()).count();
        assert_eq!(told, 1, "what nobody asks for must not pile up");
    });
}

#[test]
fn refused_with_a_reason() {
    let mut talk = Conversation::new(6, &Config::default(), 1000, 0, &[both(line(10, 5 * MS))]);
    talk.run(2);
    talk.world.act(talk.talker, |talker, _| {
        let connection = talker.sender.endpoint.connection_mut(talker.sender.handle.unwrap()).unwrap();
        let view = connection.path_views().next().unwrap();
        assert!(view.usable && view.room > 0 && view.in_flight == 0);
        let (why, data) = connection.send_datagram(view.id, 1, vec![0; view.largest + 1]).unwrap_err();
        assert_eq!((why, data.len()), (Refused::TooLarge(view.largest), view.largest + 1));
        let (why, _) = connection.send_datagram(PathId(77), 1, vec![0; 9]).unwrap_err();
        assert_eq!(why, Refused::NotActive);
        let mut bytes = 0;
        let why = loop {
            match connection.send_datagram(view.id, 1, vec![0; view.largest]) {
                Ok(()) => bytes += view.largest as u64,
                Err((why, _)) => break why,
            }
        };
        assert_eq!(why, Refused::NoRoom);
        assert!(bytes >= view.room && bytes < view.room + view.largest as u64, "{bytes} {view:?}");
        assert_eq!(connection.path_views().next().unwrap().in_flight, bytes);
    });
}
