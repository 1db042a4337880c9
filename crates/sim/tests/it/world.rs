//! Machines over links, and the laws of the loop.

use crate::common::{Flood, Patient, Ping, address};
use byway_sim::{
    Clock, Delivery, DropReason, Link, LinkCounters, LinkId, Node, Occupancy, Offer, PacketOutcome,
    PipeConfig, TapVerdict, World,
};
use byway_wire::{
    Datagram, Dscp, Duration, Ecn, Input, Instant, LinkChange, Local, Machine, SendErrorKind, Transmit,
    TransmitBuffer,
};
use proptest::prelude::*;
use std::cell::RefCell;
use std::net::SocketAddr;
use std::rc::Rc;

const MS: Duration = Duration::from_millis(1);
const MINUTE: Instant = Instant::from_millis(60_000);

fn at(millis: u64) -> Instant {
    Instant::from_millis(millis)
}

/// A client and a server over the same pipe each way.
fn pair(seed: u64, line: &PipeConfig, goal: u64) -> (World, byway_sim::Handle<Ping>, [LinkId; 2]) {
    let (a, b) = (address(1, 1000), address(2, 2000));
    let mut world = World::new(seed);
    let client = world.add("client", Ping::client(b, goal, 100 * MS), &[a]);
    world.add("server", Ping::server(), &[b]);
    let (there, back) = world.connect(a, b, line.clone(), line.clone());
    (world, client, [there, back])
}

#[test]
fn two_machines_over_a_lossy_pipe() {
    let line = PipeConfig::new(10_000_000, 20 * MS).loss(0.1);
    let (mut world, client, [there, back]) = pair(42, &line, 200);
    assert!(world.run_while(|world| !world[client].done(), MINUTE));
    let (there, back) = (world.counters(there), world.counters(back));
    assert!(there.dropped_for(DropReason::Loss) > 5 && there.sent > 200, "{there:?}");
    assert_eq!(back.sent, there.delivered);
    // A round trip: twice 20 ms and twice 128 bytes at 10 Mbit/s.
    assert_eq!(world[client].times[0].as_micros() % 100_000, 40_204);
}

#[test]
fn the_same_seed_gives_the_same_bytes_and_another_seed_others() {
    let line = PipeConfig::new(10_000_000, 20 * MS)
        .loss(0.1)
        .duplication(0.1)
        .corruption(0.05)
        .reordering(0.1, 30 * MS)
        .jitter(5 * MS);
    let run = |seed| {
        let (mut world, _, _) = pair(seed, &line, 100);
        world.run_until(MINUTE);
        (world.trace(), world.events())
    };
    assert_eq!(run(1), run(1));
    assert_ne!(run(1).0, run(2).0);
}

#[test]
fn another_node_shifts_nobodys_draws() {
    let line = PipeConfig::new(10_000_000, 20 * MS).loss(0.2).jitter(10 * MS);
    let times = |others: bool| {
        let mut world = World::new(5);
        let (a, b, c) = (address(1, 1), address(2, 2), address(3, 3));
        if others {
            world.add("other", Ping::client(b, 50, 70 * MS), &[c]);
        }
        let client = world.add("client", Ping::client(b, 100, 100 * MS), &[a]);
        world.add("server", Ping::server(), &[b]);
        if others {
            world.connect(c, b, line.clone(), line.clone());
        }
        world.connect(a, b, line.clone(), line.clone());
        world.run_until(MINUTE);
        world[client].times.clone()
    };
    assert_eq!(times(false), times(true));
}

#[test]
fn spurious_wakes_change_nothing() {
    let line = PipeConfig::new(1_000_000, 20 * MS).loss(0.2).jitter(5 * MS);
    let run = |probability| {
        let (mut world, _, _) = pair(3, &line, 100);
        world.set_clock(byway_sim::NodeId(0), Clock::new().with_drift_ppm(-200.0));
        world.wake_spuriously(probability);
        world.run_until(MINUTE);
        world.trace()
    };
    assert_eq!(run(0.0), run(0.9));
}

/// Claims a new deadline whenever it is woken, due or not.
#[derive(Debug)]
struct Nervous(Instant);

impl Machine for Nervous {
    fn handle(&mut self, _: Instant, _: Input<'_>) {}
    fn wake(&mut self, now: Instant) {
        self.0 = now + Duration::from_secs(1);
    }
    fn transmit(&mut self, _: Instant, _: &mut TransmitBuffer<'_>) -> Option<Transmit> {
        None
    }
    fn deadline(&self) -> Option<Instant> {
        Some(self.0)
    }
}

#[test]
#[should_panic(expected = "a spurious wake of node nervous")]
fn a_machine_that_a_spurious_wake_changes_is_found() {
    let mut world = World::new(1);
    world.add("nervous", Nervous(at(1_000)), &[]);
    world.wake_spuriously(0.5);
    world.run_until(MINUTE);
}

/// Never moves its deadline on.
#[derive(Debug)]
struct Stuck;

impl Machine for Stuck {
    fn handle(&mut self, _: Instant, _: Input<'_>) {}
    fn wake(&mut self, _: Instant) {}
    fn transmit(&mut self, _: Instant, _: &mut TransmitBuffer<'_>) -> Option<Transmit> {
        None
    }
    fn deadline(&self) -> Option<Instant> {
        Some(at(5))
    }
}

#[test]
#[should_panic(expected = "node sleepless is stuck at 0.005")]
fn a_deadline_that_stays_in_the_past_is_found() {
    let mut world = World::new(1);
    world.add("sleepless", Stuck, &[]);
    world.run_until(MINUTE);
}

/// Always has something to say.
#[derive(Debug)]
struct Endless(SocketAddr);

impl Machine for Endless {
    fn handle(&mut self, _: Instant, _: Input<'_>) {}
    fn wake(&mut self, _: Instant) {}
    fn transmit(&mut self, _: Instant, _: &mut TransmitBuffer<'_>) -> Option<Transmit> {
        Some(Transmit {
            local: Local(0),
            remote: self.0,
            ecn: Ecn::NotEct,
            dscp: Dscp::BestEffort,
            size: 10,
            segment: 10,
            phantom: 0,
        })
    }
    fn deadline(&self) -> Option<Instant> {
        None
    }
}

#[test]
#[should_panic(expected = "node talker has sent")]
fn a_machine_that_transmits_without_end_is_found() {
    let mut world = World::new(1);
    world.add("talker", Endless(address(2, 2)), &[address(1, 1)]);
    world.run_until(MINUTE);
}

#[test]
#[should_panic(expected = "a loop without delay")]
fn a_loop_without_delay_is_found() {
    // Two that answer each other at once, over links that take no time.
    let (a, b) = (address(1, 1), address(2, 2));
    let mut world = World::new(1);
    world.add("a", Ping::server(), &[a]);
    world.add("b", Ping::server(), &[b]);
    world.connect(a, b, PipeConfig::default(), PipeConfig::default());
    let number = 7_u64;
    let ping = [number.to_be_bytes(), (!number).to_be_bytes()].concat();
    world.inject(at(1), a, b, Ecn::NotEct, &ping);
    world.run_until(MINUTE);
}

#[test]
fn a_line_carries_its_rate_and_runs_are_split() {
    let (a, b) = (address(1, 1), address(2, 2));
    let mut world = World::new(1);
    // 10 x 1222 bytes (with headers 12 500) every 10 ms are 10 Mbit/s: exactly what the line
    // carries.
    let mut flood = Flood::new(b, 10 * MS, 1_222, 10_000);
    flood.run = 10;
    world.add("source", flood, &[a]);
    let sink = world.add("sink", Flood::sink(), &[b]);
    let (there, _) =
        world.connect(a, b, PipeConfig::new(10_000_000, 5 * MS).queue(10), PipeConfig::default());
    world.run_until(at(5_000));
    let books = world.counters(there);
    // At 5 s sharp another run has just been offered: one packet in service, nine queued, five more
    // propagating.
    assert_eq!((books.sent, books.queued, books.in_flight, books.dropped()), (5_010, 9, 6, 0));
    world.run_until(MINUTE);
    assert_eq!((world[sink].heard, world[sink].heard_bytes), (10_000, 12_220_000));
    assert_eq!(world[sink].last, at(10_005));
}

#[test]
fn several_flows_share_a_bottleneck() {
    let (a, b, c) = (address(1, 1), address(2, 2), address(3, 3));
    let mut world = World::new(1);
    // Each offers 80 % of the bottleneck.
    world.add("first", Flood::new(c, Duration::from_micros(1_250), 972, 8_000), &[a]);
    world.add("second", Flood::new(c, Duration::from_micros(1_250), 972, 8_000), &[b]);
    let sink = world.add("sink", Flood::sink(), &[c]);
    let access = ["a", "b"].map(|name| world.link(name, PipeConfig::new(100_000_000, MS)));
    let bottleneck = world.link("bottleneck", PipeConfig::new(8_000_000, 5 * MS).queue(50).mark_above(20));
    world.route(a, c.ip(), &[access[0], bottleneck]);
    world.route(b, c.ip(), &[access[1], bottleneck]);
    world.run_until(MINUTE);
    let books = world.counters(bottleneck);
    assert_eq!((books.sent, books.delivered, world[sink].heard), (16_000, books.delivered, books.delivered));
    // 10 s of offering and a queue of 50 to drain, at 1000 packets per second.
    assert!(books.delivered.abs_diff(10_050) <= 2, "{books:?}");
    assert_eq!(world[sink].ce, books.marked);
    assert!(books.marked > 9_000, "{books:?}");
}

#[test]
fn each_machine_lives_by_its_own_clock() {
    let (mut world, client, _) = pair(1, &PipeConfig::delay_only(20 * MS), 3);
    let hour = Duration::from_secs(3_600);
    let clock = Clock::new().with_offset(hour).with_drift_ppm(1_000.0).with_step(at(70), hour);
    world.set_clock(client, clock.clone());
    // It begins overdue, because its deadline is zero. It asks, and is answered after 40, 80 and
    // 120 ms of the world's time.
    world.run_until(at(1_000));
    assert_eq!(world[client].times, [40, 80, 120].map(|millis| clock.local(at(millis))));
    assert_eq!(world[client].times[2], Instant::ZERO + hour + hour + Duration::from_micros(120_120));
}

#[test]
fn deadlines_are_on_the_clock_of_the_machine() {
    // Nobody answers: it asks again every 100 ms of a clock that runs at half speed, so every 200
    // ms.
    let (mut world, client, [there, _]) =
        pair(1, &PipeConfig::delay_only(20 * MS).partition(Instant::ZERO, MINUTE), 1);
    world.set_clock(client, Clock::new().with_drift_ppm(-500_000.0));
    world.run_until(at(1_999));
    assert_eq!(world.counters(there).dropped_for(DropReason::Partition), 10);
    world.run_until(at(2_000));
    assert_eq!(world.counters(there).sent, 11);
}

#[test]
fn a_nat_rebinding_is_seen_by_the_peer_alone() {
    let (a, b, c) = (address(1, 1), address(2, 2), address(1, 9));
    let mut world = World::new(1);
    let client = world.add("client", Ping::client(b, 20, 100 * MS), &[a]);
    let server = world.add("server", Ping::server(), &[b]);
    let line = PipeConfig::delay_only(20 * MS);
    world.connect(a, b, line.clone(), line);
    world.run_until(at(110));
    world.rebind(client, Local(0), c);
    world.run_until(MINUTE);
    assert!(world[client].done());
    assert_eq!(world[server].remotes, [a, c]);
    // The answer that was under way to the old address found nobody.
    assert_eq!(world.stray().no_socket, 1);
}

#[test]
fn what_is_too_large_for_the_interface_is_reported_to_its_sender() {
    let (a, b) = (address(1, 1), address(2, 2));
    let mut world = World::new(1);
    let node = world.add("node", Notes::default(), &[a, b]);
    world.set_largest(node, Local(1), Some(1_000));
    let mut send = |size| {
        world.act(node, |node, _| (node.say, node.size) = (Some(b), size));
        (world[node].errors.clone(), world.stray().too_large, world.stray().no_route)
    };
    assert_eq!(send(1_000), (vec![], 0, 1));
    assert_eq!(send(1_001), (vec![(SendErrorKind::TooLarge, 1_001)], 1, 1));
}

#[test]
fn routes_follow_the_address_that_the_world_sees() {
    let (a, b, c) = (address(1, 1), address(2, 2), address(3, 3));
    let mut world = World::new(1);
    let source = world.add("source", Flood::new(b, 10 * MS, 100, 10), &[a]);
    world.add("sink", Flood::sink(), &[b]);
    let [wired, wireless] = ["wired", "wireless"].map(|name| world.link(name, PipeConfig::default()));
    world.route(a, b.ip(), &[wired]);
    world.route(c, b.ip(), &[wireless]);
    world.run_until(at(45));
    world.rebind(source, Local(0), c);
    world.run_until(MINUTE);
    assert_eq!([wired, wireless].map(|link| world.counters(link).sent), [5, 5]);
}

#[test]
fn a_long_run_is_no_loop() {
    // More events than one instant may have, each at its own time.
    let (a, b) = (address(1, 1), address(2, 2));
    let mut world = World::new(1);
    world.add("source", Flood::new(b, Duration::from_micros(1), 0, 600_000), &[a]);
    let sink = world.add("sink", Flood::sink(), &[b]);
    world.connect(a, b, PipeConfig::delay_only(MS), PipeConfig::default());
    world.run_until(MINUTE);
    assert_eq!(world[sink].heard, 600_000);
    assert!(world.events() > 1 << 20);
}

/// Writes down what it is told of its sockets.
#[derive(Debug, Default)]
struct Notes {
    changes: Vec<LinkChange>,
    errors: Vec<(SendErrorKind, usize)>,
    say: Option<SocketAddr>,
    size: usize,
}

impl Machine for Notes {
    fn handle(&mut self, _: Instant, input: Input<'_>) {
        match input {
            Input::Link(change) => self.changes.push(change),
            Input::SendError(error) => self.errors.push((error.kind, error.size)),
            Input::Datagram(_) | Input::Room(_) | Input::Connection(_) | Input::NotDialed(_) => {}
        }
    }
    fn wake(&mut self, _: Instant) {}
    fn transmit(&mut self, _: Instant, _: &mut TransmitBuffer<'_>) -> Option<Transmit> {
        let remote = self.say.take()?;
        Some(Transmit {
            local: Local(1),
            remote,
            ecn: Ecn::NotEct,
            dscp: Dscp::BestEffort,
            size: self.size,
            segment: self.size,
            phantom: 0,
        })
    }
    fn deadline(&self) -> Option<Instant> {
        None
    }
}

#[test]
fn a_machine_is_told_its_sockets_first_and_every_change() {
    let (a, b, c, d) = (address(1, 1), address(1, 2), address(1, 3), address(9, 9));
    let mut world = World::new(1);
    let node = world.add("node", Notes::default(), &[a, b]);
    let change = |local, address, up| LinkChange { local: Local(local), address, up };
    assert_eq!(world[node].changes, [change(0, a, true), change(1, b, true)]);
    world.move_local(node, Local(1), c);
    world.set_up(node, Local(1), false);
    assert_eq!(world[node].changes[2..], [change(1, c, true), change(1, c, false)]);
    world.act(node, |node, _| node.say = Some(d));
    assert_eq!(world[node].errors, [(SendErrorKind::Unreachable, 0)]);
    assert_eq!(world.stray().local_down, 1);
    world.set_up(node, Local(1), true);
    world.act(node, |node, _| node.say = Some(d));
    assert_eq!((world[node].errors.len(), world.stray().no_route), (1, 1));
    // An empty datagram is one all the same, and a route of no links arrives at once.
    world.route((node, Local(1)), d.ip(), &[]);
    let sink = world.add("sink", Flood::sink(), &[d]);
    world.act(node, |node, _| node.say = Some(d));
    world.run_for(Duration::ZERO);
    assert_eq!((world[sink].heard, world[sink].heard_bytes), (1, 0));
}

#[test]
fn a_tap_reads_changes_and_takes_away() {
    let (mut world, client, [there, _]) = pair(1, &PipeConfig::delay_only(20 * MS), 10);
    let log = Rc::new(RefCell::new(Vec::new()));
    let seen = Rc::clone(&log);
    let mut count = 0;
    world.tap(move |datagram| {
        count += 1;
        seen.borrow_mut().push((*datagram.from, datagram.payload.len()));
        match count {
            1 => TapVerdict::Drop,
            2 => {
                datagram.payload[0] ^= 1;
                TapVerdict::Pass
            }
            _ => TapVerdict::Pass,
        }
    });
    world.run_until(MINUTE);
    assert!(world[client].done());
    // The first was taken, the second spoilt and so not answered: 12 questions for 10 answers.
    assert_eq!((world.stray().tapped, world.counters(there).delivered), (1, 11));
    assert_eq!(log.borrow().len(), 22);
    assert_eq!(log.borrow()[0], (address(1, 1000), 100));
}

#[test]
fn an_injected_datagram_arrives_from_whom_it_says() {
    let mut world = World::new(1);
    let server = world.add("server", Ping::server(), &[address(2, 2)]);
    let forged = address(66, 6);
    world.inject(at(10), forged, address(2, 2), Ecn::Ce, b"short");
    world.inject(at(11), forged, address(3, 3), Ecn::Ce, b"nobody");
    world.run_until(at(9));
    assert_eq!(world[server].heard, 0);
    world.run_until(at(20));
    assert_eq!((world[server].heard, &world[server].remotes[..]), (1, &[forged][..]));
    assert_eq!(world.stray().no_socket, 1);
}

#[test]
fn a_frozen_node_is_silent_and_a_replaced_one_begins_anew() {
    let (a, b) = (address(1, 1000), address(2, 2000));
    let mut world = World::new(1);
    let client = world.add("client", Ping::client(b, 10, 100 * MS), &[a]);
    let server = world.add("server", Ping::server(), &[b]);
    let line = PipeConfig::delay_only(20 * MS);
    world.connect(a, b, line.clone(), line);
    world.run_until(at(90));
    assert_eq!(world[client].answered, 2);
    world.freeze(server, true);
    world.run_until(at(1_000));
    assert_eq!(world[client].answered, 2);
    world.freeze(server, false);
    world.run_until(at(1_200));
    assert!(world[client].answered > 2);
    let old = world.replace(client, Ping::client(b, 1, 100 * MS));
    assert!(old.answered > 2 && world[client].answered == 0);
    world.run_until(MINUTE);
    assert!(world[client].done());
}

#[test]
fn an_application_has_alarms_of_its_own() {
    let (a, b) = (address(1, 1000), address(2, 2000));
    let mut world = World::new(1);
    let ping = Ping::client(b, 1, 100 * MS);
    let client = world.add("client", Patient { ping, rest: 500 * MS, rounds: 0, next: None }, &[a]);
    world.add("server", Ping::server(), &[b]);
    let line = PipeConfig::delay_only(20 * MS);
    world.connect(a, b, line.clone(), line);
    world.run_until(MINUTE);
    let times: Vec<u64> = world[client].ping.times.iter().map(|time| time.as_micros() / 1_000).collect();
    assert_eq!(times, [40, 580, 1_120, 1_660, 2_200, 2_740]);
    let untyped: &mut dyn Node = &mut Patient { ping: Ping::server(), rest: MS, rounds: 0, next: None };
    assert_eq!(untyped.machine().deadline(), None);
}

#[test]
fn a_pipe_can_be_changed_while_the_world_runs() {
    let (mut world, client, [there, _]) = pair(1, &PipeConfig::delay_only(20 * MS), 1_000);
    world.run_until(at(390));
    world.pipe(there).set_delay(40 * MS);
    world.run_until(at(1_030));
    // Nine answers at every 40 ms; the tenth question left at 360 ms still in the old time, then
    // every 60 ms.
    assert_eq!(world[client].answered, 10 + (1_030 - 400) / 60);
}

/// A link that breaks one law.
#[derive(Debug)]
struct Liar {
    crowded: bool,
    delays: Vec<u64>,
}

impl Link for Liar {
    fn offer(&mut self, now: Instant, packet: &Offer) -> PacketOutcome {
        let delay = Duration::from_millis(self.delays.pop().unwrap_or(1));
        PacketOutcome::Delivered(Delivery { begins: now, at: now + delay, ecn: packet.ecn, corruption: None })
    }
    fn waiting(&self, _: Instant) -> Occupancy {
        Occupancy { packets: usize::from(self.crowded), ..Occupancy::default() }
    }
    fn bound(&self) -> Occupancy {
        Occupancy { packets: 0, bytes: 0, deliveries: u64::MAX }
    }
    fn may_reorder(&self) -> bool {
        false
    }
}

fn flood_over(liar: Liar) {
    let (a, b) = (address(1, 1), address(2, 2));
    let mut world = World::new(1);
    world.add("source", Flood::new(b, MS, 100, 10), &[a]);
    world.add("sink", Flood::sink(), &[b]);
    let link = world.link_with("liar", liar);
    world.route(a, b.ip(), &[link]);
    world.run_until(MINUTE);
}

#[test]
#[should_panic(expected = "link liar reorders, though it may not: at 0.001")]
fn a_link_that_reorders_is_found() {
    flood_over(Liar { crowded: false, delays: vec![1, 10] });
}

#[test]
#[should_panic(expected = "link liar queues")]
fn a_queue_beyond_its_bound_is_found() {
    flood_over(Liar { crowded: true, delays: vec![] });
}

#[test]
fn an_honest_link_passes() {
    flood_over(Liar { crowded: false, delays: vec![] });
}

/// All that may go wrong at once, for the books.
fn faulty() -> impl Strategy<Value = PipeConfig> {
    let rate = prop_oneof![Just(None), (50_000_u64..100_000_000).prop_map(Some)];
    let faults = [0.0..0.3_f64, 0.0..0.3, 0.0..0.3, 0.0..0.3];
    (rate, faults, 0_u64..50, 0_u64..50, 0_usize..30, 0_u64..2_000).prop_map(
        |(rate, [loss, copy, flip, reorder], delay, jitter, queue, dark)| {
            let mut pipe = PipeConfig::delay_only(Duration::from_millis(delay))
                .loss(loss)
                .duplication(copy)
                .corruption(flip)
                .reordering(reorder, 15 * MS)
                .jitter(Duration::from_millis(jitter))
                .queue(queue)
                .mtu(1_200)
                .partition(at(dark), at(dark + 300));
            pipe.rate = rate;
            pipe
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn books_balance_under_every_fault(
        seed: u64,
        lines in [faulty(), faulty(), faulty()],
        size in 16_usize..1_300,
        run in 1_usize..20,
        stops in proptest::collection::vec(0_u64..3_000, 0..4),
    ) {
        let (a, b) = (address(1, 1), address(2, 2));
        let mut world = World::new(seed);
        let mut flood = Flood::new(b, 7 * MS, size, 1_000);
        flood.run = run;
        world.add("source", flood, &[a]);
        let sink = world.add("sink", Flood::sink(), &[b]);
        let mut count = 0;
        let links = lines.map(|line| {
            count += 1;
            world.link(&count.to_string(), line)
        });
        world.route(a, b.ip(), &links);
        let mut stops = stops;
        stops.sort_unstable();
        for stop in stops {
            // Stops in the middle audit what is under way.
            world.run_until(at(stop));
            for link in links {
                let LinkCounters { sent, duplicated, delivered, queued, in_flight, .. } = world.counters(link);
                let dropped = world.counters(link).dropped();
                prop_assert_eq!(sent + duplicated, delivered + dropped + queued + in_flight);
            }
        }
        world.run_until(at(1_000_000));
        let books = links.map(|link| world.counters(link));
        prop_assert_eq!(books[0].sent, 1_000);
        prop_assert_eq!(books[1].sent, books[0].delivered);
        prop_assert_eq!(books[2].sent, books[1].delivered);
        prop_assert_eq!(world[sink].heard, books[2].delivered);
        prop_assert!(books.iter().all(|books| books.queued + books.in_flight == 0));
    }
}

/// What a datagram looks like to a machine.
#[derive(Debug, Default)]
struct Witness(Vec<(Local, SocketAddr, Ecn, bool, Vec<u8>)>);

impl Machine for Witness {
    fn handle(&mut self, now: Instant, input: Input<'_>) {
        if let Input::Datagram(Datagram { local, remote, ecn, arrival, payload, .. }) = input {
            self.0.push((local, remote, ecn, arrival == now, payload.to_vec()));
        }
    }
    fn wake(&mut self, _: Instant) {}
    fn transmit(&mut self, _: Instant, _: &mut TransmitBuffer<'_>) -> Option<Transmit> {
        None
    }
    fn deadline(&self) -> Option<Instant> {
        None
    }
}

#[test]
fn a_datagram_comes_by_the_socket_it_was_sent_to() {
    let mut world = World::new(1);
    let node = world.add("node", Witness::default(), &[address(1, 1), address(1, 2), address(2, 1)]);
    world.inject(at(1), address(7, 7), address(2, 1), Ecn::Ce, b"two");
    world.inject(at(1), address(7, 7), address(1, 2), Ecn::Ect1, b"one");
    world.run_until(at(1));
    let expected = [(Local(2), Ecn::Ce, &b"two"[..]), (Local(1), Ecn::Ect1, b"one")]
        .map(|(local, ecn, bytes)| (local, address(7, 7), ecn, true, bytes.to_vec()));
    assert_eq!(world[node].0, expected);
}
