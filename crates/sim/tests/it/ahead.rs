//! Saving events changes nothing: the same arrivals at the same times in the same order, the same
//! books, the same trace.

use crate::common::address;
use byway_sim::aqm::{CodelConfig, FqCodelConfig, RedConfig};
use byway_sim::{Discipline, LinkCounters, LinkId, PipeConfig, World};
use byway_wire::{Datagram, Dscp, Duration, Ecn, Input, Instant, Local, Machine, Transmit, TransmitBuffer};
use proptest::prelude::*;
use std::collections::{BTreeMap, VecDeque};
use std::net::SocketAddr;

/// Sends numbered datagrams in bursts, answers what it gets, and writes down what came when.
#[derive(Debug)]
struct Talker {
    to: SocketAddr,
    every: Duration,
    burst: u64,
    left: u64,
    next: u64,
    due: Option<Instant>,
    queue: VecDeque<(SocketAddr, u64, usize)>,
    log: Vec<(Instant, SocketAddr, u64)>,
}

impl Machine for Talker {
    fn handle(&mut self, now: Instant, input: Input<'_>) {
        let Input::Datagram(Datagram { remote, payload, phantom, .. }) = input else { return };
        let Some(&number) = payload.first_chunk() else { return };
        let number = u64::from_be_bytes(number);
        self.log.push((now, remote, number));
        if phantom > 0 {
            self.queue.push_back((remote, number, 0));
        }
    }
    fn wake(&mut self, now: Instant) {
        while let Some(due) = self.due.filter(|&due| due <= now) {
            for _ in 0..self.burst.min(self.left) {
                self.queue.push_back((self.to, self.next, 500 + self.next as usize % 3 * 400));
                self.next += 1;
            }
            self.left = self.left.saturating_sub(self.burst);
            self.due = (self.left > 0).then(|| due + self.every);
        }
    }
    fn transmit(&mut self, _: Instant, out: &mut TransmitBuffer<'_>) -> Option<Transmit> {
        let (remote, number, phantom) = self.queue.pop_front()?;
        out.buffer[..8].copy_from_slice(&number.to_be_bytes());
        Some(Transmit {
            local: Local(0),
            remote,
            ecn: Ecn::Ect0,
            dscp: Dscp::BestEffort,
            size: 8,
            segment: 8,
            phantom,
        })
    }
    fn deadline(&self) -> Option<Instant> {
        self.due
    }
}

type Outcome = (u64, Vec<LinkCounters>, Vec<Vec<(Instant, SocketAddr, u64)>>);

/// Pairs of talkers over access links, two bottlenecks in a row each way, and access links again.
fn dumbbell(
    saving: bool,
    seed: u64,
    flows: u8,
    lines: &[PipeConfig; 4],
    burst: u64,
    stops: &[u64],
) -> (Outcome, u64) {
    dumbbell_with(Routes::Known, saving, seed, flows, lines, burst, stops)
}

/// How a world learns of its routes.
#[derive(Clone, Copy, PartialEq)]
enum Routes {
    /// All before it runs.
    Known,
    /// Each with its first packet.
    Asked,
}

fn dumbbell_with(
    routes: Routes,
    saving: bool,
    seed: u64,
    flows: u8,
    lines: &[PipeConfig; 4],
    burst: u64,
    stops: &[u64],
) -> (Outcome, u64) {
    let mut world = World::new(seed);
    world.save_events(saving);
    let [access, first, second, leaf] = lines;
    let middle = ["there 1", "there 2", "back 1", "back 2"]
        .map(|name| world.link(name, if name.ends_with('1') { first.clone() } else { second.clone() }));
    let mut links: Vec<LinkId> = middle.to_vec();
    let mut nodes = Vec::new();
    let mut ways = BTreeMap::new();
    for flow in 0..flows {
        let (a, b) = (address(flow, 1), address(100 + flow, 1));
        for (here, there, sends, [one, two]) in
            [(a, b, true, [middle[0], middle[1]]), (b, a, false, [middle[2], middle[3]])]
        {
            let left = if sends { 300 } else { 0 };
            let talker = Talker {
                to: there,
                every: Duration::from_micros(1_000 + 250 * u64::from(flow % 3)),
                burst,
                left,
                next: 0,
                due: sends.then_some(Instant::ZERO),
                queue: VecDeque::new(),
                log: Vec::new(),
            };
            nodes.push(world.add(&format!("{here}"), talker, &[here]));
            let up = world.link(&format!("{here} up"), access.clone());
            let down = world.link(&format!("{there} down"), leaf.clone());
            match routes {
                Routes::Known => world.route(here, there.ip(), &[up, one, two, down]),
                Routes::Asked => drop(ways.insert((here.ip(), there.ip()), vec![up, one, two, down])),
            }
            links.extend([up, down]);
        }
    }
    if routes == Routes::Asked {
        world.route_by(move |from, to| ways.get(&(from, to)).cloned());
    }
    let mut books = Vec::new();
    for &stop in stops {
        // Books in the middle, a change by hand, and on.
        world.run_until(Instant::from_micros(stop));
        books.extend(links.iter().map(|&link| world.counters(link)));
        if stop % 2 == 0 {
            world.pipe(links[1]).set_delay(Duration::from_micros(stop % 1_000));
            let last = links[links.len() - 1];
            world.pipe(last).set_rate(Some(5_000_000));
        }
        if stop % 3 == 0 {
            let _ = world.run_while(|_| true, Instant::from_micros(stop + 2_000));
            books.extend(links.iter().map(|&link| world.counters(link)));
        }
    }
    world.run_until(Instant::from_millis(60_000));
    books.extend(links.iter().map(|&link| world.counters(link)));
    let logs = nodes.iter().map(|&node| world[node].log.clone()).collect();
    ((world.trace(), books, logs), world.events())
}

fn line() -> impl Strategy<Value = PipeConfig> {
    // Few distinct values, so that things happen at the same time; delays of nothing too.
    let rate = prop_oneof![Just(None), Just(Some(8_000_000)), Just(Some(80_000_000)), Just(Some(7_777_777))];
    let delay = prop_oneof![Just(0), Just(1_000), Just(2_000), 0_u64..5_000];
    (rate, delay, 0_usize..40, 0_u8..12).prop_map(|(rate, delay, queue, kind)| {
        let mut pipe = PipeConfig::delay_only(Duration::from_micros(delay)).queue(queue);
        pipe.rate = rate;
        match kind {
            0 => pipe.loss(0.05),
            1 => pipe.jitter(Duration::from_millis(1)),
            2 => pipe.duplication(0.1),
            3 => pipe.reordering(0.1, Duration::from_millis(2)),
            4 => pipe.discipline(Discipline::Codel(CodelConfig {
                target: Duration::from_micros(500),
                interval: Duration::from_millis(5),
                ..CodelConfig::default()
            })),
            5 => pipe.discipline(Discipline::Red(RedConfig { weight: 0.1, ..RedConfig::new(2.0, 10.0) })),
            6 => {
                pipe.discipline(Discipline::FqCodel(FqCodelConfig { queues: 4, ..FqCodelConfig::default() }))
            }
            _ => pipe,
        }
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]
    #[test]
    fn saving_events_changes_nothing(
        seed: u64,
        flows in 1_u8..5,
        lines in [line(), line(), line(), line()],
        burst in 1_u64..12,
        stops in proptest::collection::vec(0_u64..100_000, 0..4),
    ) {
        let mut stops = stops;
        stops.sort_unstable();
        let (plain, _) = dumbbell(false, seed, flows, &lines, burst, &stops);
        let (saved, _) = dumbbell(true, seed, flows, &lines, burst, &stops);
        prop_assert_eq!(&plain.2, &saved.2);
        prop_assert_eq!(&plain.1, &saved.1);
        prop_assert_eq!(plain.0, saved.0);
        for saving in [false, true] {
            let (asked, _) = dumbbell_with(Routes::Asked, saving, seed, flows, &lines, burst, &stops);
            prop_assert_eq!(&plain, &asked);
        }
    }

    #[test]
    fn a_plain_pipe_does_what_any_pipe_does(
        rates in proptest::collection::vec(prop_oneof![Just(None), (1_000_u64..10_000_000_000).prop_map(Some)], 1..4),
        delay in 0_u64..3_000_000,
        queue in 0_usize..10,
        queue_bytes in 500_u64..20_000,
        packets in proptest::collection::vec((0_u64..3_000_000, 0_usize..1_600), 1..100),
    ) {
        let run = |plain: bool| {
            let (a, b) = (address(1, 1), address(2, 2));
            let mut world = World::new(1);
            world.add("sink", crate::common::Flood::sink(), &[b]);
            let mut config = PipeConfig::delay_only(Duration::from_nanos(delay)).queue(queue).mtu(1_500);
            (config.rate, config.queue_bytes) = (rates[0], queue_bytes);
            if !plain {
                // Never comes, but is a fault to reckon with.
                config = config.partition(Instant::from_millis(1 << 40), Instant::FAR_FUTURE);
            }
            let link = world.link("line", config);
            let source = world.add("source", Sender::default(), &[a]);
            world.route(a, b.ip(), &[link]);
            let mut trace = Vec::new();
            for (count, &(gap, size)) in packets.iter().enumerate() {
                world.run_for(Duration::from_nanos(gap));
                if count % 25 == 24 {
                    world.pipe(link).set_rate(rates[count / 25 % rates.len()]);
                }
                world.act(source, |source, _| source.0 = Some((b, size)));
                trace.push((world.trace(), world.waiting(link)));
            }
            world.run_for(Duration::from_secs(3_600));
            (trace, world.trace(), world.counters(link))
        };
        prop_assert_eq!(run(true), run(false));
    }
}

/// Sends one datagram when it is told to.
#[derive(Debug, Default)]
struct Sender(Option<(SocketAddr, usize)>);

impl Machine for Sender {
    fn handle(&mut self, _: Instant, _: Input<'_>) {}
    fn wake(&mut self, _: Instant) {}
    fn transmit(&mut self, _: Instant, _: &mut TransmitBuffer<'_>) -> Option<Transmit> {
        let (remote, phantom) = self.0.take()?;
        Some(Transmit {
            local: Local(0),
            remote,
            ecn: Ecn::NotEct,
            dscp: Dscp::BestEffort,
            size: 0,
            segment: 0,
            phantom,
        })
    }
    fn deadline(&self) -> Option<Instant> {
        None
    }
}

#[test]
fn a_dumbbell_needs_two_events_for_four_links() {
    let access = PipeConfig::new(100_000_000, Duration::from_millis(1));
    let bottleneck = PipeConfig::new(50_000_000, Duration::from_millis(8));
    let lines = [access.clone(), bottleneck.clone(), bottleneck, access];
    let (_, many) = dumbbell(false, 1, 4, &lines, 1, &[]);
    let (_, few) = dumbbell(true, 1, 4, &lines, 1, &[]);
    // Each of 4 flows has 300 packets and 300 answers over four links each, and 301 wakes of nodes.
    // `many`: each link makes an event per packet. `few`: with saved events, only the first and
    // last link do. Up to 400 more are allowed.
    assert_eq!(many, 4 * (300 * 8 + 300 + 1));
    assert!((4 * (300 * 4 + 300)..4 * (300 * 4 + 300) + 400).contains(&few), "{few}");
}

/// The simulation stops 60 times, each time at the end of a `run_until`. At each stop, the
/// simulator updates links for which it skips events. This may cost further events, on average
/// fewer than 8 per stop.
#[test]
fn looking_often_costs_no_events() {
    let access = PipeConfig::new(100_000_000, Duration::from_millis(1));
    let first = PipeConfig::new(100_000_000, Duration::from_micros(100));
    let bottleneck = PipeConfig::new(15_000_000, Duration::from_millis(8)).queue(2_000);
    let lines = [access.clone(), first, bottleneck, access];
    let (_, undisturbed) = dumbbell(true, 1, 4, &lines, 1, &[]);
    // Neither even nor a multiple of three: only the books are read.
    let stops: Vec<u64> = (0..60).map(|look| 6_001 + 6 * 900 * look).collect();
    let (_, watched) = dumbbell(true, 1, 4, &lines, 1, &stops);
    // A look at a packet on its way may cost the event that would have been saved, once.
    assert!(watched < undisturbed + 60 * 8, "{watched} events, {undisturbed} undisturbed");
}

/// Sends datagrams of these sizes at these times, and writes down what it gets.
#[derive(Debug, Default)]
struct Timed {
    to: Option<SocketAddr>,
    due: VecDeque<(Instant, usize)>,
    queue: VecDeque<usize>,
    log: Vec<(Instant, usize)>,
}

impl Machine for Timed {
    fn handle(&mut self, now: Instant, input: Input<'_>) {
        if let Input::Datagram(datagram) = input {
            self.log.push((now, datagram.phantom));
        }
    }
    fn wake(&mut self, now: Instant) {
        while let Some((_, size)) = self.due.front().copied().filter(|first| first.0 <= now) {
            self.due.pop_front();
            self.queue.push_back(size);
        }
    }
    fn transmit(&mut self, _: Instant, _: &mut TransmitBuffer<'_>) -> Option<Transmit> {
        let (remote, phantom) = (self.to?, self.queue.pop_front()?);
        let (local, ecn, dscp) = (Local(0), Ecn::NotEct, Dscp::BestEffort);
        Some(Transmit { local, remote, ecn, dscp, size: 0, segment: 0, phantom })
    }
    fn deadline(&self) -> Option<Instant> {
        self.due.front().map(|first| first.0)
    }
}

/// What of packets long and short comes through three links, of which the second has a short queue.
fn come_through(saving: bool, queue: usize, packets: &[(u64, bool)]) -> Vec<(Instant, usize)> {
    let (a, b) = (address(1, 1), address(2, 2));
    let mut world = World::new(1);
    world.save_events(saving);
    let mut at = Instant::from_millis(1);
    let mut due = VecDeque::new();
    for &(gap, long) in packets {
        at += Duration::from_micros(gap);
        due.push_back((at, if long { 1_400 } else { 0 }));
    }
    world.add("source", Timed { to: Some(b), due, ..Timed::default() }, &[a]);
    let sink = world.add("sink", Timed::default(), &[b]);
    let ms = Duration::from_millis(1);
    let first = world.link("first", PipeConfig::new(1_000_000_000, ms));
    let second = world.link("second", PipeConfig::new(8_000_000, 4 * ms).queue(queue));
    let third = world.link("third", PipeConfig::new(1_000_000_000, Duration::from_micros(200)));
    world.route(a, b.ip(), &[first, second, third]);
    world.run_until(Instant::from_millis(60_000));
    world[sink].log.clone()
}

proptest! {
    /// A long packet that finds no room takes no time. A short one behind it arrives before the
    /// long one would have.
    #[test]
    fn what_is_dropped_holds_nothing_up(
        queue in 0_usize..3,
        packets in proptest::collection::vec((0_u64..1_500, any::<bool>()), 1..80),
    ) {
        prop_assert_eq!(come_through(false, queue, &packets), come_through(true, queue, &packets));
    }
}
