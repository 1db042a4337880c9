//! An uplink that comes and goes for days: each time its path has another name, under a key that
//! knows none twice.

use crate::common::{MS, Parallel, Plan, address, both, line, parallel};
use crate::heap::Heap;
use byway_engine::connection::Event;
use byway_sim::TapVerdict;
use byway_wire::packet::{Handshake, Header};
use byway_wire::{Instant, Local, PathId};
use std::collections::{BTreeMap, BTreeSet};

/// Flaps more often than a session has ids that it tells apart one by one.
const FLAPS: u64 = 30_000;

/// Two hosts and two ways between them.
fn hosts() -> Parallel {
    let pipes = [both(line(10, 5 * MS)), both(line(10, 9 * MS))];
    let mut world = parallel(1, Plan::new("newreno", &[], &[]).lengths(), &pipes);
    world.world.act(world.sender, |host, _| host.keep_open = true);
    world.world.stop_trace();
    world.world.run_until(Instant::from_millis(2_000));
    world
}

/// Checks from now on that no two packets have the same connection id and packet number. A
/// connection id stands for one direction of a path. The nonce is made of path and packet number,
/// so no nonce repeats.
fn watch(world: &mut Parallel) {
    let mut seen = BTreeSet::new();
    world.world.tap(move |datagram| {
        let payload = &datagram.payload[..];
        if !Handshake::is(payload[0]) {
            let header = Header::read(payload).expect("a packet");
            let name = (header.connection.0, header.number);
            assert!(seen.insert(name), "{name:?} twice, at {:?}", datagram.now);
        }
        TapVerdict::Pass
    });
}

/// The second uplink goes and comes back, so many times. `between` is done while it is gone.
fn flap(world: &mut Parallel, times: std::ops::Range<u64>, mut between: impl FnMut(&mut Parallel, u64)) {
    let (sender, mut newest) = (world.sender, None);
    for flap in times {
        world.world.set_up(sender, Local(1), false);
        world.world.run_for(20 * MS);
        between(world, flap);
        world.world.set_up(sender, Local(1), true);
        world.world.run_for(400 * MS);
        let events = world.world.act(sender, |host, _| std::mem::take(&mut host.events));
        let up = |event| if let Event::PathUp(path) = event { Some(path) } else { None };
        let up: Vec<_> = events.into_iter().filter_map(up).collect();
        let closed = &world.world[sender].closed;
        assert!(!up.is_empty() && closed.is_none(), "flap {flap}: the uplink did not come back");
        for path in up {
            assert!(Some(path) > newest, "{path:?} after {newest:?}");
            newest = Some(path);
        }
        let receiver = &world.world[world.receiver];
        let back = receiver.endpoint.connection(receiver.handles[0]).unwrap().status().paths.len();
        assert!(back < 64, "flap {flap}: {back} ways back");
    }
}

/// Each time at another port, as behind a modem.
fn move_on(world: &mut Parallel, flap: u64) {
    let port = 6_000 + flap % 500;
    world.world.move_local(world.sender, Local(1), address(&format!("10.0.0.2:{port}")));
}

#[test]
fn an_uplink_that_flaps_for_hours_comes_back_each_time() {
    let mut world = hosts();
    watch(&mut world);
    flap(&mut world, 0..FLAPS, |_, _| {});
}

#[test]
#[ignore = "slow: seconds of a processor, at full scale"]
fn an_uplink_that_is_elsewhere_each_time() {
    let mut world = hosts();
    watch(&mut world);
    flap(&mut world, 0..FLAPS, move_on);
}

#[test]
fn the_figures_of_a_path_outlive_it() {
    let mut world = hosts();
    flap(&mut world, 0..5, |_, _| {});
    let host = &world.world[world.sender];
    let sending = host.endpoint.connection(host.handle.unwrap()).unwrap();
    let sent: BTreeMap<PathId, u64> =
        sending.ended_paths().map(|path| (path.id, path.totals.bytes)).collect();
    let receiver = &world.world[world.receiver];
    let receiving = receiver.endpoint.connection(receiver.handles[0]).unwrap();
    let arrived: Vec<_> = receiving.ended_arrivals().collect();
    assert!(sent.len() >= 5 && arrived.len() >= 5, "{sent:?} {arrived:?}");
    for path in arrived {
        assert!(path.bytes > 0 && path.bytes <= sent[&path.id], "{path:?} of {sent:?}");
    }
}

/// Neither end keeps more of paths that are over than the figures of the latest.
#[test]
fn flaps_leave_nothing_behind() {
    for between in [|_: &mut Parallel, _| {}, move_on] {
        let mut world = hosts();
        flap(&mut world, 0..2_500, between);
        world.world.act(world.receiver, |host, _| host.marks = Vec::new());
        let heap = Heap::new();
        flap(&mut world, 2_500..10_000, between);
        world.world.act(world.receiver, |host, _| host.marks = Vec::new());
        println!("{} bytes", heap.held());
        assert!(heap.held() < 20_000, "{} bytes of 7,500 flaps", heap.held());
    }
}
