//! Transfers over lines with every fault: the bytes arrive, and in good time.

use crate::common::{MS, Parallel, Plan, address, both, line, parallel};
use byway_engine::connection::close;
use byway_engine::connection::path::PathState;
use byway_sim::{Clock, PipeConfig, TapVerdict};
use byway_wire::{Duration, Instant, Local};

const KIB: u64 = 1 << 10;
const MIB: u64 = 1 << 20;
const CONTROLLERS: [&str; 3] = ["background", "mpath", "newreno"];

fn seconds(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

/// Objects of `object` bytes in all and a stream of `stream` bytes over two such lines.
fn mixed(seed: u64, congestion: &'static str, object: u64, stream: u64, pipe: &PipeConfig) -> Parallel {
    let mut plan = Plan::new(congestion, &[object / 2, 0, object / 4, object / 4], &[]);
    plan.stream = stream;
    parallel(seed, plan, &[both(pipe.clone()), both(pipe.clone())])
}

/// Runs to the end and looks whether all of it is there.
fn arrives(mut world: Parallel, limit: u64, object: u64, stream: u64) -> (Duration, Parallel) {
    let took = world.finish(seconds(limit));
    let receiver = &world.world[world.receiver];
    assert_eq!((receiver.received, receiver.stream), (object, stream));
    assert!(stream == 0 || receiver.streams_finished == 1);
    (took, world)
}

#[test]
fn loss() {
    for congestion in CONTROLLERS {
        for (seed, percent, limit) in [(1, 2, 5), (2, 5, 10), (3, 10, 20), (4, 20, 40), (5, 30, 80)] {
            let pipe = line(10, 10 * MS).loss(f64::from(percent) / 100.0);
            let world = mixed(seed, congestion, 512 * KIB, 256 * KIB, &pipe);
            let (took, _) = arrives(world, limit, 512 * KIB, 256 * KIB);
            println!("{congestion} {percent} % lost: {took:?}");
        }
    }
}

#[test]
fn corruption() {
    for congestion in CONTROLLERS {
        for (seed, percent, limit) in [(1, 2, 5), (2, 10, 20), (3, 30, 80)] {
            let pipe = line(10, 10 * MS).corruption(f64::from(percent) / 100.0);
            let world = mixed(seed, congestion, 512 * KIB, 256 * KIB, &pipe);
            let (took, world) = arrives(world, limit, 512 * KIB, 256 * KIB);
            let dropped = world.world[world.receiver].endpoint.dropped();
            println!("{congestion} {percent} % corrupted: {took:?} {dropped:?}");
            assert!(dropped.forged > 5, "nothing was corrupted");
        }
    }
}

#[test]
fn duplication() {
    for congestion in CONTROLLERS {
        let world = mixed(1, congestion, 2 * MIB, MIB, &line(10, 10 * MS).duplication(0.3));
        let (took, world) = arrives(world, 10, 2 * MIB, MIB);
        let dropped = world.world[world.receiver].endpoint.dropped();
        println!("{congestion} duplication: {took:?} {dropped:?}");
        assert!(dropped.replayed > 300 && dropped.forged == 0, "{dropped:?}");
        assert!(took < seconds(3), "{took:?}");
    }
}

#[test]
fn reordering_and_jitter() {
    for congestion in CONTROLLERS {
        for (name, limit, pipe) in [
            ("5 % by 5 ms", 5, line(10, 10 * MS).reordering(0.05, 5 * MS)),
            ("20 % by 5 ms", 5, line(10, 10 * MS).reordering(0.2, 5 * MS)),
            ("5 % by 30 ms", 10, line(10, 10 * MS).reordering(0.05, 30 * MS)),
            ("20 % by 30 ms", 10, line(10, 10 * MS).reordering(0.2, 30 * MS)),
            ("jitter 10 ms", 10, line(10, 10 * MS).jitter(10 * MS)),
        ] {
            let world = mixed(1, congestion, 3 * MIB, MIB, &pipe);
            let (took, _) = arrives(world, limit * 20, 3 * MIB, MIB);
            println!("{congestion} {name}: {took:?}, {:.1} Mbit/s of 20", 4.0 * 8.4 / took.as_secs_f64());
        }
    }
}

#[test]
fn two_seconds_of_darkness() {
    let dark = line(10, 10 * MS).partition(Instant::from_millis(1_000), Instant::from_millis(3_000));
    for congestion in CONTROLLERS {
        let only = parallel(1, Plan::new(congestion, &[4 * MIB], &[]), &[both(dark.clone())]);
        let (took, _) = arrives(only, 20, 4 * MIB, 0);
        println!("{congestion}, the only path: {took:?}");
        assert!(took < seconds(8), "{took:?}");
        let pipes = [both(dark.clone()), both(line(10, 10 * MS))];
        let (took, world) =
            arrives(parallel(2, Plan::new(congestion, &[8 * MIB], &[]), &pipes), 20, 8 * MIB, 0);
        println!("{congestion}, one of two: {took:?}");
        assert!(took < seconds(7), "{took:?}");
        // The other path went on as if nothing had happened, but for what was caught in the dark.
        let goodput = world.world[world.receiver].goodput(Duration::from_millis(1_500), seconds(3)) / 1e6;
        assert!(goodput > 7.0, "{goodput}");
    }
}

#[test]
fn a_geostationary_satellite() {
    for congestion in CONTROLLERS {
        let pipe = PipeConfig::new(10_000_000, 375 * MS).queue(400);
        let (took, world) =
            arrives(parallel(1, Plan::new(congestion, &[24 * MIB], &[]), &[both(pipe)]), 120, 24 * MIB, 0);
        let goodput = world.world[world.receiver].goodput(seconds(8), seconds(18)) / 1e6;
        println!("{congestion}: {took:?}, {goodput:.2} Mbit/s after 8 s");
        assert!(goodput > 6.5, "{congestion}: {goodput}");
    }
}

/// The way gets twenty times as long under a running transfer.
#[test]
fn a_sudden_detour() {
    for (congestion, limit) in [("background", 60), ("mpath", 25), ("newreno", 25)] {
        let mut world =
            parallel(1, Plan::new(congestion, &[4 * MIB], &[]), &[both(line(10, 10 * MS).queue(100))]);
        world.world.run_until(Instant::from_millis(1_000));
        let link = world.there[0];
        world.world.pipe(link).set_delay(400 * MS);
        let (took, _) = arrives(world, limit, 4 * MIB, 0);
        println!("{congestion}: {took:?}");
    }
}

#[test]
fn an_hour_that_a_clock_skips() {
    let clock = || Clock::new().with_step(Instant::from_millis(1_500), seconds(3_600));
    for congestion in CONTROLLERS {
        for (sender, receiver) in [(true, false), (false, true), (true, true)] {
            let pipes = [both(line(10, 10 * MS)), both(line(10, 30 * MS))];
            let mut world = parallel(1, Plan::new(congestion, &[6 * MIB], &[]), &pipes);
            if sender {
                world.world.set_clock(world.sender, clock());
            }
            if receiver {
                world.world.set_clock(world.receiver, clock());
            }
            let limit = Instant::from_millis(8_000);
            let host = world.sender;
            let done = world.world.run_while(|world| !world[host].finished(), limit);
            let took = world.world.now();
            println!("{congestion} {sender} {receiver}: {took:?}");
            assert!(done && world.world[host].done_at.is_some(), "{:?}", world.world[host].closed);
            assert_eq!(world.world[world.receiver].received, 6 * MIB);
            assert!(took < Instant::from_millis(4_500), "{took:?}");
        }
    }
}

/// The clock of either side steps while the other's answer is under way.
#[test]
fn an_hour_that_a_clock_skips_during_the_handshake() {
    for of_sender in [true, false] {
        for at in [5, 15, 21, 25, 29, 35, 45] {
            let mut world = parallel(1, Plan::new("mpath", &[MIB], &[]), &[both(line(10, 10 * MS))]);
            let clock = Clock::new().with_step(Instant::from_millis(at), seconds(3_600));
            if of_sender {
                world.world.set_clock(world.sender, clock);
            } else {
                world.world.set_clock(world.receiver, clock);
            }
            let host = world.sender;
            let done = world.world.run_while(|world| !world[host].finished(), Instant::from_millis(4_000));
            let took = world.world.now();
            println!("{of_sender} {at}: {took:?}");
            assert!(done && world.world[host].done_at.is_some(), "{of_sender} {at}");
            assert!(took < Instant::from_millis(1_500), "{of_sender} {at}: {took:?}");
        }
    }
}

/// 50 ppm each way for eleven minutes: 33 ms and more, far beyond any delay threshold.
#[test]
#[ignore = "slow: measures rates over minutes of simulated time"]
fn clocks_that_drift_apart() {
    for (sender, receiver) in [(0.0, 0.0), (50.0, 0.0), (-50.0, 0.0), (50.0, -50.0), (-50.0, 50.0)] {
        let mut plan = Plan::new("background", &[900 * MIB], &[]);
        plan.suites = byway_engine::seal::Suites::INSECURE_SIMULATION;
        let mut world = parallel(1, plan, &[both(line(6, 15 * MS))]);
        world.world.stop_trace();
        world.world.set_clock(world.sender, Clock::new().with_drift_ppm(sender));
        world.world.set_clock(world.receiver, Clock::new().with_drift_ppm(receiver));
        world.world.run_until(Instant::from_millis(660_000));
        let receiver_host = &world.world[world.receiver];
        let whole = receiver_host.goodput(seconds(5), seconds(655)) / 6e6;
        let worst = (1..11)
            .map(|minute| receiver_host.goodput(seconds(minute * 60), seconds(minute * 60 + 55)) / 6e6)
            .fold(1.0, f64::min);
        println!("{sender} {receiver} ppm: {whole:.3} of the line, worst minute {worst:.3}");
        assert!(whole > 0.85 && worst > 0.85, "{whole} {worst}");
    }
}

/// A time service sets clocks right by making them run faster or slower: by 500 ppm (NTP), or by up
/// to 83,333 (chrony). The delay that seems to grow is no queue, since round trips do not grow.
#[test]
fn clocks_that_are_being_set_right() {
    for (sender, receiver) in [(-400.0, 400.0), (400.0, -400.0), (0.0, 5_000.0), (-80_000.0, 0.0)] {
        let mut plan = Plan::new("background", &[60 * MIB], &[]);
        plan.suites = byway_engine::seal::Suites::INSECURE_SIMULATION;
        let mut world = parallel(1, plan, &[both(line(6, 15 * MS))]);
        world.world.stop_trace();
        world.world.set_clock(world.sender, Clock::new().with_drift_ppm(sender));
        world.world.set_clock(world.receiver, Clock::new().with_drift_ppm(receiver));
        world.world.run_until(Instant::from_millis(60_000));
        let rate = world.world[world.receiver].goodput(seconds(5), seconds(55)) / 6e6;
        println!("{sender} {receiver} ppm: {rate:.3} of the line");
        assert!(rate > 0.85, "{sender} {receiver} ppm: {rate:.3} of the line");
    }
}

#[test]
fn a_receiver_that_stops_reading_stops_the_sender() {
    for (objects, stream) in [(8 * MIB, 0), (0, 8 * MIB), (4 * MIB, 4 * MIB)] {
        let mut plan = Plan::new("mpath", &[objects], &[]);
        plan.stream = stream;
        plan.config.incoming.memory = 512 << 10;
        plan.config.outgoing.memory = 1 << 20;
        let memory = plan.config.incoming.memory;
        let mut world = parallel(1, plan, &[both(line(10, 10 * MS)), both(line(10, 40 * MS))]);
        let (sender, receiver) = (world.sender, world.receiver);
        world.world.run_until(Instant::from_millis(1_000));
        world.world.act(receiver, |host, _| host.stuck = true);
        let taken = |world: &Parallel| world.world[receiver].received + world.world[receiver].stream;
        let before = taken(&world);
        assert!(before > 0);
        world.world.run_until(Instant::from_millis(21_000));
        assert_eq!(taken(&world), before);
        let sent_by_then = world.world.counters(world.there[0]).sent_bytes;
        world.world.run_until(Instant::from_millis(61_000));
        let idle = world.world.counters(world.there[0]).sent_bytes - sent_by_then;
        assert!(idle < 64 * KIB, "a sender that may not send sent {idle} bytes");
        world.world.act(sender, |host, _| {
            let connection = host.endpoint.connection_mut(host.handle.unwrap()).unwrap();
            let progress = connection.outgoing().progress();
            assert!(connection.outgoing().memory() <= 1 << 20);
            assert!(progress.sent <= before + memory as u64 + 64 * KIB, "{progress:?} {before}");
        });
        let resumed = world.world.now();
        world.world.act(receiver, |host, _| host.stuck = false);
        let (took, _) = arrives(world, 120, objects, stream);
        let after = (Instant::ZERO + took).since(resumed);
        println!("done {after:?} after it read again");
        assert!(after < seconds(7), "{after:?}");
    }
}

#[test]
fn a_nat_forgets_who_we_are() {
    for congestion in CONTROLLERS {
        for fresh in ["10.0.0.1:61000", "77.0.0.1:5000"] {
            let pipes = [both(line(10, 10 * MS)), both(line(10, 25 * MS))];
            let mut world = parallel(1, Plan::new(congestion, &[6 * MIB], &[]), &pipes);
            world.world.run_until(Instant::from_millis(1_000));
            let (to, fresh) = (address("10.0.1.1:4000"), address(fresh));
            world.world.rebind(world.sender, Local(0), fresh);
            let (there, back) = (world.there[0], world.back[0]);
            world.world.route(fresh, to.ip(), &[there]);
            world.world.route(to, fresh.ip(), &[back]);
            let (took, world) = arrives(world, 15, 6 * MIB, 0);
            let goodput = world.world[world.receiver].goodput(Duration::from_millis(1_000), seconds(2)) / 1e6;
            println!("{congestion} {fresh}: {took:?}, {goodput:.1} Mbit/s in the second after");
            assert!(took < seconds(4), "{took:?}");
            assert_eq!(world.world[world.receiver].handles.len(), 1);
        }
    }
}

#[test]
fn a_nat_forgets_the_only_path() {
    for fresh in ["10.0.0.1:61000", "77.0.0.1:5000"] {
        let mut world = parallel(1, Plan::new("mpath", &[4 * MIB], &[]), &[both(line(10, 10 * MS))]);
        world.world.run_until(Instant::from_millis(1_000));
        let (to, fresh) = (address("10.0.1.1:4000"), address(fresh));
        world.world.rebind(world.sender, Local(0), fresh);
        let (there, back) = (world.there[0], world.back[0]);
        world.world.route(fresh, to.ip(), &[there]);
        world.world.route(to, fresh.ip(), &[back]);
        let (took, _) = arrives(world, 15, 4 * MIB, 0);
        println!("{fresh}: {took:?}");
        assert!(took < Duration::from_millis(5_500), "{took:?}");
    }
}

#[test]
fn an_uplink_goes_and_comes_back() {
    for congestion in CONTROLLERS {
        let pipes = [both(line(10, 10 * MS)), both(line(10, 20 * MS))];
        let mut world = parallel(1, Plan::new(congestion, &[24 * MIB], &[]), &pipes);
        world.world.run_until(Instant::from_millis(2_000));
        world.world.set_up(world.sender, Local(1), false);
        world.world.run_until(Instant::from_millis(4_000));
        world.world.set_up(world.sender, Local(1), true);
        let (took, world) = arrives(world, 40, 24 * MIB, 0);
        let receiver = &world.world[world.receiver];
        let without = receiver.goodput(Duration::from_millis(2_300), seconds(4)) / 1e6;
        let with = receiver.goodput(seconds(8), seconds(10)) / 1e6;
        println!("{congestion}: {took:?}, {without:.1} without it, {with:.1} Mbit/s with it again");
        assert!(without > 8.0 && with > 16.0, "{without} {with}");
    }
}

#[test]
fn the_only_uplink_goes_and_comes_back() {
    let mut world = parallel(1, Plan::new("mpath", &[4 * MIB], &[]), &[both(line(10, 10 * MS))]);
    world.world.run_until(Instant::from_millis(1_000));
    world.world.set_up(world.sender, Local(0), false);
    world.world.run_until(Instant::from_millis(3_000));
    world.world.set_up(world.sender, Local(0), true);
    let (took, _) = arrives(world, 30, 4 * MIB, 0);
    println!("{took:?}");
    assert!(took < seconds(8), "{took:?}");
}

#[test]
fn paths_of_different_mtu() {
    for congestion in CONTROLLERS {
        let pipes = [both(line(10, 10 * MS).mtu(1280)), both(line(10, 10 * MS).mtu(1500))];
        let (took, world) =
            arrives(parallel(1, Plan::new(congestion, &[8 * MIB], &[]), &pipes), 20, 8 * MIB, 0);
        let sizes: Vec<u64> = world
            .there
            .iter()
            .map(|link| world.world.counters(*link))
            .map(|c| c.delivered_bytes / c.delivered)
            .collect();
        println!("{congestion}: {took:?}, mean datagrams {sizes:?}");
        assert!(took < seconds(5) && sizes[0] < 1253 && sizes[1] > 1400, "{took:?} {sizes:?}");
    }
}

/// The way grows narrower under a running transfer, in one direction or both, and nobody says so.
#[test]
fn an_mtu_that_shrinks() {
    for congestion in CONTROLLERS {
        for (mtu, after, ways) in [
            (1300, 1_000, 1),
            (1124, 1_000, 1),
            (1124, 60, 2),
            (1124, 2_000, 2),
            (1000, 1_000, 2),
            (576, 1_000, 1),
        ] {
            let wide = line(10, 10 * MS).mtu(1500);
            let (mut world, narrow) =
                (parallel(1, Plan::new(congestion, &[6 * MIB], &[]), &[both(wide.clone())]), wide.mtu(mtu));
            world.world.run_until(Instant::from_millis(after));
            let (from, to) = (address("10.0.0.1:5000"), address("10.0.1.1:4000"));
            for (name, from, to) in [("there", from, to), ("back", to, from)].into_iter().take(ways) {
                let link = world.world.link(name, narrow.clone());
                world.world.route(from, to.ip(), &[link]);
            }
            let (took, _) = arrives(world, 60, 6 * MIB, 0);
            println!("{congestion}, {mtu} after {after} ms, {ways} ways: {took:?}");
            assert!(took < seconds(10), "{congestion}, {mtu}, {after}: {took:?}");
        }
    }
}

/// Small packets pass and no data do: the session ends after a minute, and both sides know why.
#[test]
fn a_way_that_carries_no_data_is_given_up_after_a_minute() {
    for congestion in CONTROLLERS {
        let mut world = parallel(1, Plan::new(congestion, &[6 * MIB], &[]), &[both(line(10, 10 * MS))]);
        world.world.run_until(Instant::from_millis(1_000));
        let to = address("10.0.1.1:4000");
        world.world.tap(move |datagram| {
            let large = *datagram.to == to && datagram.payload.len() > 80;
            if large { TapVerdict::Drop } else { TapVerdict::Pass }
        });
        let sender = world.sender;
        let limit = Instant::from_millis(90_000);
        let ends = world.world.run_while(|world| world[sender].closed.is_none(), limit);
        assert!(ends, "{congestion}: it neither moves nor ends");
        let took = world.world.now().since(Instant::from_millis(1_000));
        println!("{congestion}: {took:?}");
        assert!(took >= seconds(59) && took <= seconds(64), "{congestion}: {took:?}");
        assert_eq!(world.world[sender].closed.as_ref().unwrap().0, close::STANDSTILL_CODE);
        world.world.run_for(seconds(1));
        assert_eq!(world.world[world.receiver].closed[0].0, close::STANDSTILL_CODE);
    }
}

#[test]
fn a_thin_way_back() {
    for congestion in CONTROLLERS {
        let thin = || (line(10, 10 * MS), PipeConfig::new(200_000, 10 * MS).queue(30));
        let world = parallel(1, Plan::new(congestion, &[8 * MIB], &[]), &[thin(), thin()]);
        let (took, _) = arrives(world, 40, 8 * MIB, 0);
        println!("{congestion}: {took:?}, {:.1} Mbit/s of 20", 67.1 / took.as_secs_f64());
        assert!(took < seconds(8), "{took:?}");
    }
}

#[test]
fn a_sender_that_vanishes_is_not_waited_for_for_ever() {
    let mut world = parallel(1, Plan::new("mpath", &[64 * MIB], &[]), &[both(line(10, 10 * MS))]);
    world.world.run_until(Instant::from_millis(2_000));
    world.world.freeze(world.sender, true);
    world.world.run_until(Instant::from_millis(61_000));
    assert!(world.world[world.receiver].closed.is_empty());
    world.world.run_until(Instant::from_millis(63_500));
    let closed = world.world[world.receiver].closed.clone();
    assert_eq!(closed.iter().map(|(code, _)| *code).collect::<Vec<_>>(), [close::IDLE_CODE]);
}

#[test]
fn a_receiver_that_vanishes_is_not_waited_for_for_ever() {
    let mut world = parallel(1, Plan::new("mpath", &[64 * MIB], &[]), &[both(line(10, 10 * MS))]);
    world.world.run_until(Instant::from_millis(2_000));
    world.world.freeze(world.receiver, true);
    world.world.run_until(Instant::from_millis(63_500));
    assert_eq!(world.world[world.sender].closed.as_ref().map(|(code, _)| *code), Some(close::IDLE_CODE));
}

#[test]
fn both_sides_may_say_why_they_end() {
    for seed in 0..5 {
        let pipe = line(10, 10 * MS).loss(if seed == 0 { 0.0 } else { 0.2 });
        let mut world = parallel(seed, Plan::new("mpath", &[64 * MIB], &[]), &[both(pipe.clone())]);
        let (sender, receiver) = (world.sender, world.receiver);
        assert!(world.world.run_while(|world| world[receiver].received == 0, Instant::from_millis(20_000)));
        world.world.act(receiver, |host, now| {
            let handle = host.handles[0];
            host.endpoint.close(now, handle, 9, "enough");
        });
        let limit = world.world.now() + seconds(3);
        let told = world.world.run_while(|world| world[sender].closed.is_none(), limit);
        assert!(told, "the sender was not told");
        assert_eq!(world.world[sender].closed, Some((9, "enough".to_owned())));
        assert_eq!(world.world[receiver].closed, [(9, "enough".to_owned())]);

        let mut world = parallel(seed, Plan::new("mpath", &[64 * MIB], &[]), &[both(pipe)]);
        let (sender, receiver) = (world.sender, world.receiver);
        assert!(world.world.run_while(|world| world[receiver].received == 0, Instant::from_millis(20_000)));
        world.world.act(sender, |host, now| {
            let handle = host.handle.unwrap();
            host.endpoint.close(now, handle, 7, "changed my mind");
        });
        let told =
            world.world.run_while(|world| world[receiver].closed.is_empty(), Instant::from_millis(6_000));
        assert!(told, "the receiver was not told");
        assert_eq!(world.world[receiver].closed, [(7, "changed my mind".to_owned())]);
        assert_eq!(world.world[sender].closed, Some((7, "changed my mind".to_owned())));
    }
}

/// Routes that were dead for so long that more paths were probed than the peer expects at once:
/// they are tried still.
#[test]
fn routes_that_come_to_life_late() {
    let late = || line(10, 10 * MS).partition(Instant::ZERO, Instant::ZERO + seconds(1_800));
    let pipes: Vec<_> = (0..9).map(|path| both(if path == 0 { line(10, 10 * MS) } else { late() })).collect();
    let mut world = parallel(1, Plan::new("mpath", &[MIB], &[]), &pipes);
    world.world.stop_trace();
    let sender = world.sender;
    world.world.act(sender, |host, _| host.keep_open = true);
    let alive = |world: &mut Parallel| {
        let mut states = Vec::new();
        world.world.act(sender, |host, _| {
            let connection = host.endpoint.connection(host.handle.unwrap()).unwrap();
            states.extend(connection.status().paths.iter().map(|path| (path.id.0, path.state)));
        });
        states.retain(|(_, state)| *state != PathState::Probing);
        states
    };
    world.world.run_until(Instant::ZERO + seconds(1_799));
    assert_eq!(alive(&mut world).len(), 1);
    world.world.run_until(Instant::ZERO + seconds(2_100));
    let alive = alive(&mut world);
    println!("{alive:?}");
    assert!(alive.len() == 9 && alive.iter().any(|(id, _)| *id > 64), "{alive:?}");
}
