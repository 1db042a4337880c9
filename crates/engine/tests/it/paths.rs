//! Paths that die, come back, lead astray or are far too many: what a transfer over several of them
//! gets out of it.

use crate::common::detours::{
    Detours, detours, receiver_address, relay_address, seconds, sender_address, through, way,
};
use crate::common::{MS, Parallel, Plan, both, id, line, parallel, pattern_bytes, stream_pattern};
use byway_engine::RelayState;
use byway_engine::connection::path::PathState;
use byway_sim::pipe::Change;
use byway_sim::{PipeConfig, TapVerdict, TappedDatagram};
use byway_wire::{Input, Instant, Local, Machine as _, RoomChange, StreamId};

/// Both classes.
const CLASSES: [&str; 2] = ["background", "mpath"];

fn at(second: u64) -> Instant {
    Instant::ZERO + seconds(second)
}

fn dark(pipe: PipeConfig, from: u64, until: u64) -> PipeConfig {
    pipe.partition(at(from), at(until))
}

fn over(congestion: &'static str, size: u64, pipes: &[PipeConfig]) -> Parallel {
    let pipes: Vec<_> = pipes.iter().cloned().map(both).collect();
    parallel(1, Plan::new(congestion, &[size], &[]).lengths(), &pipes)
}

/// Mbit/s of object bytes between two times in seconds.
fn rate(world: &Parallel, from: u64, until: u64) -> f64 {
    world.world[world.receiver].goodput(seconds(from), seconds(until)) / 1e6
}

/// One of two dies for ten seconds: the other goes on at its full rate, and both carry soon after.
#[test]
fn death_and_revival() {
    for congestion in CLASSES {
        for dies in 0..2 {
            let mut pipes = [line(10, 10 * MS), line(10, 30 * MS)];
            pipes[dies] = dark(pipes[dies].clone(), 5, 15);
            let mut world = over(congestion, 1 << 30, &pipes);
            world.world.stop_trace();
            world.world.run_until(at(35));
            let (before, while_dead, after) = (rate(&world, 2, 5), rate(&world, 6, 15), rate(&world, 23, 35));
            println!("{congestion}, {dies} dies: {before:.1}, {while_dead:.1}, {after:.1} Mbit/s");
            // The ACKs of the far path came by the near one: the window of `background` follows the
            // least RTT, which is too short now.
            assert!(before > 14.0 && while_dead > 7.1 && after > 16.0, "{before} {while_dead} {after}");
        }
    }
}

/// Ten streams of 100 bytes begin each second, and one of two paths dies. A lost stream has no
/// later data that shows a gap. Still the other path soon carries such streams: fewer than 15 are
/// unfinished at once.
#[test]
fn short_streams_leave_a_path_that_dies() {
    for congestion in CLASSES {
        for dies in 0..2 {
            let mut pipes = [line(10, 80 * MS), line(10, 100 * MS)];
            pipes[dies] = dark(pipes[dies].clone(), 12, 60);
            // Windows have grown by then. Nothing is sent twice in case it is the last.
            let mut plan = Plan::new(congestion, &[4 << 20], &[]).lengths();
            plan.config.repeat_tail = false;
            let mut world = parallel(1, plan, &pipes.map(both));
            world.world.stop_trace();
            world.world.act(world.sender, |host, _| host.keep_open = true);
            world.world.run_until(at(10));
            let (mut arrived, mut longest) = (0, 0);
            for tick in 0..200_u32 {
                world.world.run_until(at(10) + MS * 100 * tick);
                let now = u64::from(world.world[world.receiver].streams_finished);
                arrived = now.max(arrived);
                longest = longest.max(u64::from(tick) - arrived);
                world.world.act(world.sender, |host, _| {
                    let connection = host.endpoint.connection_mut(host.handle.unwrap()).unwrap();
                    let id = StreamId(40 + 2 * tick);
                    let out = connection.outgoing();
                    out.open_stream(id);
                    out.write(id, &pattern_bytes(stream_pattern(id), 0, 100));
                    out.finish(id);
                });
            }
            println!("{congestion}, {dies} dies: {longest} behind");
            // Half of those of two seconds, and those of a round trip.
            assert!(longest < 15, "{congestion}, {dies} dies: {longest} were behind");
        }
    }
}

/// Nothing at all gets through for twenty seconds, at several moments: the session lives, and goes
/// on within seconds.
#[test]
fn all_dead_for_twenty_seconds() {
    for congestion in CLASSES {
        for from in [1, 4] {
            let pipes = [10, 20, 40].map(|delay| dark(line(10, delay * MS), from, from + 20));
            let mut world = over(congestion, 1 << 30, &pipes);
            world.world.stop_trace();
            world.world.run_until(at(from + 45));
            let (soon, later) = (rate(&world, from + 22, from + 25), rate(&world, from + 33, from + 45));
            println!("{congestion}, dead at {from}: {soon:.1} soon, {later:.1} Mbit/s later");
            assert_eq!(world.world[world.sender].closed, None);
            assert!(soon > 2.0 && later > 22.0, "{congestion}: {soon} {later}");
        }
    }
}

/// The size of datagrams that each path has settled for.
fn sizes(world: &mut Parallel) -> Vec<usize> {
    let sender = world.sender;
    world.world.act(sender, |host, _| {
        let connection = host.endpoint.connection(host.handle.unwrap()).unwrap();
        connection.status().paths.iter().map(|path| path.datagram).collect()
    })
}

/// One of two ways gets narrower without a word: it is used with what fits, and with more when more
/// fits again.
#[test]
fn a_black_hole_for_large_packets_in_one_of_two() {
    for congestion in CLASSES {
        let wide = line(10, 10 * MS).mtu(1500);
        let mut world = over(congestion, 1 << 30, &[wide.clone(), wide.clone()]);
        world.world.stop_trace();
        let (from, to) = (sender_address(), receiver_address());
        world.world.run_until(at(3));
        assert_eq!(sizes(&mut world), [1472, 1472]);
        let narrow = world.world.link("narrow", wide.mtu(1300));
        world.world.route(from, to.ip(), &[narrow]);
        world.world.run_until(at(12));
        let narrow = sizes(&mut world);
        world.world.route(from, to.ip(), &[world.there[0]]);
        world.world.run_until(at(30));
        let (while_narrow, after) = (rate(&world, 7, 12), rate(&world, 20, 30));
        println!("{congestion}: {narrow:?} at {while_narrow:.1} Mbit/s, then {after:.1}");
        assert!(narrow[0] <= 1272 && narrow[1] == 1472, "{narrow:?}");
        assert_eq!(sizes(&mut world), [1472, 1472]);
        assert!(while_narrow > 11.0 && after > 18.0, "{while_narrow} {after}");
    }
}

/// A direct line of 10 Mbit/s, and a relay that could carry as much. From 3 s on, `bad` may drop or
/// change each packet from relay to receiver. Returns the rates in Mbit/s at 2–3 s and at 7–17 s,
/// and the simulated network.
fn beside(
    congestion: &'static str,
    near: PipeConfig,
    mut bad: impl FnMut(&mut TappedDatagram<'_>) -> TapVerdict + 'static,
) -> (f64, f64, Detours) {
    let plan = through(congestion, 1 << 30, 1).lengths();
    let (_, far) = way(10, 10 * MS);
    let mut world = detours(1, plan, &line(10, 10 * MS), &[(near, far)]);
    world.world.stop_trace();
    world.world.tap(move |mut datagram| {
        let relayed = *datagram.from == relay_address(0) && *datagram.to == receiver_address();
        if relayed && datagram.now >= at(3) { bad(&mut datagram) } else { TapVerdict::Pass }
    });
    world.world.run_until(at(17));
    let host = &world.world[world.receiver];
    let before = host.goodput(seconds(2), seconds(3)) / 1e6;
    let after = host.goodput(seconds(7), seconds(17)) / 1e6;
    assert_eq!(world.world[world.sender].closed, None);
    (before, after, world)
}

/// It answers whoever asks and forwards nothing.
#[test]
fn a_relay_that_swallows() {
    for congestion in CLASSES {
        let (before, after, _) = beside(congestion, line(10, 10 * MS), |_| TapVerdict::Drop);
        println!("{congestion}: {before:.1}, then {after:.1} Mbit/s");
        assert!(before > 14.0 && after > 8.8, "{congestion}: {before} {after}");
    }
}

/// Or only large packets, or every third.
#[test]
fn a_relay_that_swallows_some() {
    for congestion in CLASSES {
        let (_, large, _) = beside(congestion, line(10, 10 * MS), |datagram| {
            if datagram.payload.len() + datagram.phantom > 600 { TapVerdict::Drop } else { TapVerdict::Pass }
        });
        let mut count = 0;
        let (_, third, _) = beside(congestion, line(10, 10 * MS), move |_| {
            count += 1;
            if count % 3 == 0 { TapVerdict::Drop } else { TapVerdict::Pass }
        });
        println!("{congestion}: {large:.1} Mbit/s without large ones, {third:.1} without each third");
        assert!(large > 8.8 && third > 8.8, "{congestion}: {large} {third}");
    }
}

#[test]
fn a_relay_that_corrupts() {
    for congestion in CLASSES {
        let (before, after, world) = beside(congestion, line(10, 10 * MS), |datagram| {
            if let Some(byte) = datagram.payload.last_mut() {
                *byte ^= 0x40;
            }
            TapVerdict::Pass
        });
        let dropped = world.world[world.receiver].endpoint.dropped();
        println!("{congestion}: {before:.1}, then {after:.1} Mbit/s, {dropped:?}");
        assert!(dropped.forged > 0 && before > 14.0 && after > 8.8, "{congestion}: {before} {after}");
    }
}

/// Each packet comes three times: once is enough.
#[test]
fn a_relay_that_duplicates() {
    for congestion in CLASSES {
        let mut direct = detours(
            1,
            through(congestion, 1 << 30, 1),
            &line(10, 10 * MS),
            &[{
                let (near, far) = way(10, 10 * MS);
                (near, far.duplication(1.0))
            }],
        );
        direct.world.stop_trace();
        direct.world.run_until(at(12));
        let rate = direct.world[direct.receiver].goodput(seconds(4), seconds(12)) / 1e6;
        let dropped = direct.world[direct.receiver].endpoint.dropped();
        println!("{congestion}: {rate:.1} Mbit/s, {dropped:?}");
        assert!(rate > 16.5 && dropped.replayed > 1_000, "{congestion}: {rate} {dropped:?}");
    }
}

/// It holds everything back by 300 ms from one moment to the next: the direct line does not wait
/// for it.
#[test]
fn a_relay_that_delays() {
    for congestion in CLASSES {
        let near = line(10, 10 * MS).then(at(3), Change::Delay(310 * MS));
        let (before, after, _) = beside(congestion, near, |_| TapVerdict::Pass);
        println!("{congestion}: {before:.1}, then {after:.1} Mbit/s");
        assert!(before > 14.0 && after > 8.8, "{congestion}: {before} {after}");
    }
}

/// Of a thousand relay addresses three answer. All have been tried after 504 s. This is 250 ms for
/// each address, 250 ms more for each dead one, and a margin of five seconds. The direct line keeps
/// almost its full rate meanwhile.
#[test]
#[ignore = "slow: seconds of a processor, at full scale"]
fn a_thousand_candidate_relays() {
    for congestion in CLASSES {
        let alive = [17, 400, 999];
        let plan = through(congestion, 1 << 31, 1_000).lengths();
        let mut world = detours(1, plan, &line(10, 10 * MS), &[]);
        world.world.stop_trace();
        for index in alive {
            let at = relay_address(index);
            world.world.add(&format!("relay {index}"), crate::common::detours::relay(Instant::ZERO), &[at]);
            let (near, far) = way(5, 10 * MS);
            world.world.connect(sender_address(), at, near.clone(), near);
            world.world.connect(at, receiver_address(), far.clone(), far);
        }
        let goodput = |world: &Detours, from, until| {
            world.world[world.receiver].goodput(seconds(from), seconds(until)) / 1e6
        };
        let complete = (1_000 + 997) / 4 + 5;
        world.world.run_until(at(complete));
        let sender = world.sender;
        let relays = world.world.act(sender, |host, now| host.endpoint.relays(now, host.handle.unwrap()));
        let unusable = relays.iter().filter(|it| it.standing == RelayState::Unusable).count();
        assert_eq!((relays.len(), unusable), (1_000, 997));
        world.world.run_until(at(complete + 20));
        let (first, late) = (goodput(&world, 2, 10), goodput(&world, complete + 5, complete + 20));
        let active = world.world.act(sender, |host, _| {
            let status = host.endpoint.connection(host.handle.unwrap()).unwrap().status();
            status.paths.iter().filter(|path| path.state == PathState::Active).count()
        });
        println!("{congestion}: {first:.1} Mbit/s at first, {late:.1} in the end over {active} paths");
        assert!(first > 8.8 && late > 20.0 && active == 4, "{congestion}: {first} {late} {active}");
    }
}

/// During a background transfer the route becomes 30 ms longer each way. At first the sender may
/// take the additional delay for a queue and slow down. It recovers within seconds, whatever its
/// window is when the route changes.
#[test]
#[ignore = "slow: measures rates over minutes of simulated time"]
fn a_longer_route_is_no_queue() {
    let mut kept = Vec::new();
    for (mbit, delay) in [(10, 5), (10, 10), (10, 50), (50, 10)] {
        for paths in [1, 2] {
            let queue = (mbit * 8) as usize;
            let steady = line(mbit, delay * MS).queue(queue.max(50));
            let of = |moment: u32| {
                let longer = steady.clone().then(at(6) + moment * MS, Change::Delay((delay + 30) * MS));
                let pipes = [longer, steady.clone()];
                let mut world = over("background", 1 << 40, &pipes[..paths]);
                world.world.stop_trace();
                world.world.run_until(at(22));
                let (before, soon, after) = (rate(&world, 3, 6), rate(&world, 6, 9), rate(&world, 11, 22));
                println!(
                    "{mbit} Mbit/s, {delay} ms, {paths} paths: {before:.1}, {soon:.1}, then {after:.1} Mbit/s"
                );
                assert!(soon > 0.3 * before && after > 0.9 * before, "{before} {soon} {after}");
                after / before
            };
            kept.extend([0, 150, 300].map(of));
        }
    }
    let mean = kept.iter().sum::<f64>() / kept.len() as f64;
    assert!(mean > 0.97, "{mean:.3}");
}

/// Corners of `cargo bench -p byway-engine --bench grids best`: a minute over two paths carries no
/// less than the better alone.
#[test]
#[ignore = "slow: measures rates over minutes of simulated time"]
fn two_paths_are_no_worse_than_the_better() {
    let of = |congestion, pipes: &[PipeConfig]| {
        let mut world = over(congestion, 1 << 40, pipes);
        world.world.stop_trace();
        world.world.run_until(at(62));
        rate(&world, 1, 61)
    };
    for congestion in CLASSES {
        for (ratio, fast, slow) in [(1, 10, 300), (20, 10, 300), (20, 300, 10), (5, 100, 100)] {
            let fast = line(20, MS * fast / 2).queue(100);
            let slow = PipeConfig::new(20_000_000 / ratio, MS * slow / 2).queue(100);
            let together = of(congestion, &[fast.clone(), slow.clone()]);
            let best = of(congestion, &[fast]).max(of(congestion, &[slow]));
            println!("{congestion}, 1:{ratio}: {together:.1} Mbit/s, {best:.1} alone");
            assert!(together > 0.95 * best, "{congestion}, 1:{ratio}: {together} of {best}");
        }
    }
}

fn room(world: &mut Parallel, node: byway_sim::NodeId, local: u16, room: bool) {
    let change = RoomChange { local: Local(local), room };
    if node == id(world.sender) {
        world.world.act(world.sender, |host, now| host.endpoint.handle(now, Input::Room(change)));
    } else {
        world.world.act(world.receiver, |host, now| host.endpoint.handle(now, Input::Room(change)));
    }
}

/// Bytes that the sender has sent by each of its sockets.
fn sent_by(world: &Parallel) -> Vec<u64> {
    let host = &world.world[world.sender];
    let paths = host.endpoint.connection(host.handle.unwrap()).unwrap().status().paths;
    let by = |local| paths.iter().filter(move |path| path.route.local == Local(local));
    (0..3).map(|local| by(local).map(|path| path.totals.bytes).sum()).collect()
}

/// For five seconds one of three sockets is full. Nothing is written to that socket, and the other
/// paths carry as much as before. The full socket's path carries data again as soon as the socket
/// has room.
#[test]
fn a_full_socket_blocks_its_own_path_alone() {
    for congestion in CLASSES {
        let pipes = [10, 20, 30].map(|delay| line(10, delay * MS));
        let mut world = over(congestion, 1 << 30, &pipes);
        world.world.stop_trace();
        world.world.run_until(at(5));
        let sender = id(world.sender);
        room(&mut world, sender, 1, false);
        let before = sent_by(&world);
        world.world.run_until(at(10));
        let meanwhile = sent_by(&world);
        room(&mut world, sender, 1, true);
        world.world.run_until(at(20));
        let after = sent_by(&world);
        assert_eq!(meanwhile[1], before[1], "{congestion}: something was written for a full socket");
        let (alone, again) = (rate(&world, 6, 10), rate(&world, 14, 20));
        println!("{congestion}: {alone:.1} Mbit/s by two, {again:.1} by three");
        assert!(alone > 15.0 && again > 22.0, "{congestion}: {alone} {again}");
        assert!(after[1] > meanwhile[1] + 1_000_000, "{congestion}: {after:?} {meanwhile:?}");
    }
}

/// Every socket is full, at either end. Nothing leaves, nothing spins, and all goes on as soon as
/// one has room.
#[test]
fn where_all_sockets_are_full_the_session_waits_for_the_first() {
    let pipes = [10, 20, 30].map(|delay| line(10, delay * MS));
    for receiving in [false, true] {
        let mut world = over("mpath", 1 << 30, &pipes);
        world.world.stop_trace();
        world.world.run_until(at(3));
        let node = if receiving { id(world.receiver) } else { id(world.sender) };
        for local in 0..3 {
            room(&mut world, node, local, false);
        }
        let before = sent_by(&world);
        world.world.run_until(at(6));
        if !receiving {
            assert_eq!(sent_by(&world), before);
        }
        for local in [2, 0, 1] {
            room(&mut world, node, local, true);
        }
        world.world.run_until(at(14));
        let again = rate(&world, 10, 14);
        assert!(again > 22.0, "{receiving}: {again}");
    }
}
