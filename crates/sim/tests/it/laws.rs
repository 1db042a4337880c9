//! What can be seen of a world, CoDel in a world, crashes, and that nothing depends on who looks or
//! on the build.

use crate::common::{Flood, Ping, address};
use byway_sim::aqm::{CodelConfig, FqCodelConfig, RedConfig};
use byway_sim::{CaptureDirection, Discipline, DropReason, LinkEvent, LinkFact, PipeConfig, World};
use byway_wire::{Duration, Ecn, Instant};
use std::cell::RefCell;
use std::rc::Rc;

const MS: Duration = Duration::from_millis(1);

fn at(millis: u64) -> Instant {
    Instant::from_millis(millis)
}

/// Two sources, the second of them at all that the bottleneck carries, over access links of their
/// own.
fn shared(discipline: Discipline, watch: bool) -> (World, byway_sim::LinkId, Rc<RefCell<Vec<LinkFact>>>) {
    let (a, b, c) = (address(1, 1), address(2, 2), address(3, 3));
    let mut world = World::new(7);
    world.add("slow", Flood::new(c, 10 * MS, 972, 500), &[a]);
    world.add("fast", Flood::new(c, MS, 972, 6_000), &[b]);
    world.add("sink", Flood::sink(), &[c]);
    let line =
        PipeConfig::new(8_000_000, 5 * MS).queue(100).loss(0.01).duplication(0.01).discipline(discipline);
    let bottleneck = world.link("bottleneck", line);
    for (name, from) in [("a", a), ("b", b)] {
        let access = world.link(name, PipeConfig::new(100_000_000, MS));
        let leaf = world.link(&format!("{name} leaf"), PipeConfig::new(100_000_000, MS));
        world.route(from, c.ip(), &[access, bottleneck, leaf]);
    }
    let facts = Rc::new(RefCell::new(Vec::new()));
    if watch {
        let log = Rc::clone(&facts);
        world.observe(bottleneck, move |fact| log.borrow_mut().push(*fact));
    }
    (world, bottleneck, facts)
}

fn disciplines() -> [Discipline; 4] {
    [
        Discipline::DropTail,
        Discipline::Red(RedConfig { ecn: true, ..RedConfig::new(10.0, 30.0) }),
        Discipline::Codel(CodelConfig::default()),
        Discipline::FqCodel(FqCodelConfig::default()),
    ]
}

#[test]
fn an_observer_sees_what_the_books_say_and_changes_nothing() {
    for discipline in disciplines() {
        let (mut world, bottleneck, facts) = shared(discipline.clone(), true);
        world.run_until(at(20_000));
        let books = world.counters(bottleneck);
        let facts = facts.borrow();
        let count = |test: &dyn Fn(&LinkFact) -> bool| facts.iter().filter(|fact| test(fact)).count() as u64;
        for reason in DropReason::ALL {
            assert_eq!(count(&|fact| fact.event == LinkEvent::Dropped(reason)), books.dropped_for(reason));
        }
        assert_eq!(count(&|fact| fact.event == LinkEvent::Delivered), books.delivered);
        assert!(count(&|fact| matches!(fact.event, LinkEvent::Accepted { .. })) > 5_000);
        assert!(facts.is_sorted_by_key(|fact| fact.at));
        assert!(books.dropped() > 100 && books.duplicated > 10, "{books:?}");
        // By flow, the slow one sends 500. Each packet is delivered or dropped, and copies come
        // besides.
        let slow =
            |fact: &LinkFact| fact.from == address(1, 1) && fact.to == address(3, 3) && fact.size == 972;
        let (gone, came) = (
            count(&|fact| slow(fact) && matches!(fact.event, LinkEvent::Dropped(_))),
            count(&|fact| slow(fact) && fact.event == LinkEvent::Delivered),
        );
        assert!((500..=515).contains(&(gone + came)), "{gone} {came}");

        let (mut unseen, same, _) = shared(discipline, false);
        unseen.run_until(at(20_000));
        assert_eq!((unseen.counters(same), unseen.trace()), (books, world.trace()));
    }
}

#[test]
fn codel_holds_the_delay_near_its_target_where_drop_tail_fills_the_queue() {
    let [tail, _, codel, _] = disciplines().map(|discipline| {
        let (mut world, bottleneck, _) = shared(discipline, false);
        world.run_until(at(20_000));
        let books = world.counters(bottleneck);
        // One flow does not answer to drops: CoDel needs its time to drop often enough.
        (books.mean_wait().as_micros(), books.delivered, books.dropped_for(DropReason::Managed))
    });
    // A queue of 100 is 100 ms.
    assert!(tail.0 > 85_000 && tail.2 == 0, "{tail:?}");
    assert!(codel.0 < 60_000 && codel.2 > 400, "{codel:?}");
    // The line is never left idle for it.
    assert!(codel.1 + 120 > tail.1, "{codel:?} {tail:?}");
}

#[test]
fn with_queues_of_their_own_a_slow_flow_loses_nothing_to_a_fast_one() {
    let [_, _, one, fair] = disciplines().map(|discipline| {
        let (mut world, bottleneck, facts) = shared(discipline, true);
        world.run_until(at(20_000));
        let facts = facts.borrow();
        let lost = |fact: &&LinkFact| {
            fact.from == address(1, 1)
                && matches!(fact.event, LinkEvent::Dropped(DropReason::QueueFull | DropReason::Managed))
        };
        (facts.iter().filter(lost).count(), world.counters(bottleneck).delivered)
    });
    assert!(one.0 > 5 && fair.0 == 0, "{one:?} {fair:?}");
    // The line is never left idle for it.
    assert!(fair.1 + 20 > one.1, "{fair:?} {one:?}");
}

#[test]
fn a_capture_sees_each_datagram_where_it_leaves_and_where_it_comes() {
    let (a, b) = (address(1, 1), address(2, 2));
    let mut world = World::new(1);
    world.add("client", Ping::client(b, 2, 100 * MS), &[a]);
    world.add("server", Ping::server(), &[b]);
    let line = PipeConfig::delay_only(20 * MS);
    world.connect(a, b, line.clone(), line);
    let log = Rc::new(RefCell::new(Vec::new()));
    let seen = Rc::clone(&log);
    world.capture(move |datagram| {
        assert_eq!((datagram.payload.len(), datagram.phantom, datagram.ecn), (100, 0, Ecn::Ect0));
        let times = datagram.at.as_micros() / 1_000;
        seen.borrow_mut().push((times, datagram.node.0, datagram.way, datagram.from, datagram.to));
    });
    world.run_until(at(1_000));
    let round = |begins| {
        [
            (begins, 0, CaptureDirection::Sent, a, b),
            (begins + 20, 1, CaptureDirection::Arrived, a, b),
            (begins + 20, 1, CaptureDirection::Sent, b, a),
            (begins + 40, 0, CaptureDirection::Arrived, b, a),
        ]
    };
    assert_eq!(*log.borrow(), [round(0), round(40)].concat());
}

#[test]
fn a_node_that_crashed_loses_what_comes_and_forgets_what_was() {
    let (a, b) = (address(1, 1), address(2, 2));
    let mut world = World::new(1);
    let client = world.add("client", Ping::client(b, 1_000, 100 * MS), &[a]);
    let server = world.add("server", Ping::server(), &[b]);
    let line = PipeConfig::delay_only(20 * MS);
    world.connect(a, b, line.clone(), line);
    world.run_until(at(430));
    let before = world[client].answered;
    world.crash(server);
    world.run_until(at(2_000));
    // What it had sent before still came.
    assert_eq!(world[client].answered, before + 1);
    assert!(world.stray().no_socket > 10);
    let old = world.restart(server, Ping::server());
    assert!(old.heard > 0 && world[server].heard == 0);
    world.run_until(at(3_000));
    assert!(world[client].answered > before + 20);
}

#[test]
fn the_trace_is_the_same_in_every_build_and_on_every_machine() {
    let found = disciplines().map(|discipline| {
        let (mut world, _, _) = shared(discipline, false);
        world.run_until(at(20_000));
        world.trace()
    });
    // Written down once; it changes only with what links do.
    assert_eq!(
        found,
        [
            18_093_096_307_673_673_679,
            17_416_677_811_699_065_185,
            4_274_558_339_762_619_592,
            17_078_226_824_830_948_584
        ]
    );
}
