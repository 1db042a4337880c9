//! Heartbeats, the relay's own quota, and its end.

use crate::common::*;
use byway_relay::{Config, Dropped, Load};
use byway_wire::heartbeat::{ANSWERED_LEN, Heartbeat, HeartbeatAnswer, HeartbeatOrders, HeartbeatReport};
use byway_wire::relay::*;
use byway_wire::{Duration, Instant, Machine, Writer};
use std::net::SocketAddr;

const RANGE: u8 = 5;

fn registry() -> SocketAddr {
    at("3.3.3.3:4750")
}

fn refused(world: &World, reason: Reason) -> u64 {
    world.relay.counters().dropped(Dropped::Refused(reason))
}

fn passes(world: &mut World, hop: &Hop) -> bool {
    let packet = seal(hop, world.now, &[7; 963]); // 1000 bytes with the envelope
    world.put(sender(), &packet).first().is_some_and(|(to, _)| *to == receiver())
}

/// The beats that are due, after the time until then.
fn beats(world: &mut World) -> Vec<(SocketAddr, HeartbeatReport)> {
    world.now = world.relay.deadline().expect("a beat is due").max(world.now);
    world.relay.wake(world.now);
    let sent = world.drain();
    let read = |(to, bytes): (SocketAddr, Vec<u8>)| {
        let beat = Heartbeat::read(&bytes).unwrap();
        assert!(beat.is_authentic(&world.relay.range_key(beat.report.range).heartbeat_key()));
        (to, beat.report)
    };
    sent.into_iter().map(read).collect()
}

fn answer(world: &mut World, orders: HeartbeatOrders, range: u8) {
    let mut bytes = [0; ANSWERED_LEN];
    HeartbeatAnswer::new(orders, &world.relay.range_key(range).heartbeat_key())
        .write(&mut Writer::new(&mut bytes));
    assert!(world.put(registry(), &bytes).is_empty());
}

fn orders(counter: u64) -> HeartbeatOrders {
    HeartbeatOrders { counter, next_millis: 30_000, epoch: 3, last_holds: 60, flags: HeartbeatOrders::LISTED }
}

#[test]
fn a_beat_goes_to_every_address_and_tells_what_is_carried() {
    let mut world = World::new(&config());
    assert_eq!(world.relay.deadline(), None);
    let both = vec![registry(), at("[2a00::3]:4750")];
    assert!(world.relay.watch(world.now, RANGE, both.clone(), Duration::from_secs(7)));
    let word = world.word(1, terms());
    let hop = world.hop(&word, sender(), receiver());
    let sent = world.put(sender(), &seal(&hop, world.now, &[0; 963]));
    let back = ReturnHop::new(relay_v4(), &Delivered::read(&sent[0].1).unwrap());
    let mut packet = vec![0; 600];
    assert!(back.seal(&mut packet));
    assert_eq!(world.put(receiver(), &packet).len(), 1);
    let sent = beats(&mut world);
    assert_eq!(world.now, Instant::from_millis(7_000));
    assert_eq!(sent.iter().map(|(to, _)| *to).collect::<Vec<_>>(), both);
    let expected = HeartbeatReport {
        relay: world.relay.id(),
        range: RANGE,
        counter: UNIX * 1_000 + 1,
        epoch: 0,
        rate: 100,
        grants: 1,
        today: 1_600,
        month: 1_600,
        left: u64::MAX,
        flags: 0,
    };
    assert!(sent.iter().all(|(_, report)| *report == expected), "{sent:?}");
    let standing = world.relay.standing(RANGE).unwrap();
    assert_eq!((standing.answered, standing.unanswered, standing.listed), (None, 1, false));
    // Nobody answers: every ten seconds, and each counts on.
    for number in 2..5 {
        assert_eq!(beats(&mut world)[0].1.counter, UNIX * 1_000 + number);
    }
    assert_eq!(world.now, Instant::from_millis(37_000));
    assert_eq!(world.relay.standing(RANGE).unwrap().unanswered, 4);
    assert_eq!(world.relay.counters().beats, 8);
    let restarted = World::new(&Config { beat_counter: world.relay.beat_counter(), ..config() });
    assert_eq!(restarted.relay.beat_counter(), UNIX * 1_000 + 4);
    world.relay.close_range(RANGE);
    assert_eq!(world.relay.deadline(), None);
}

#[test]
fn a_proven_answer_tells_the_epoch_and_the_next_time() {
    let mut world = World::new(&config());
    assert!(world.relay.watch(world.now, RANGE, vec![registry()], Duration::ZERO));
    let counter = beats(&mut world)[0].1.counter;
    answer(&mut world, orders(counter), RANGE);
    assert_eq!(world.relay.epoch(world.now, RANGE), Some((3, Duration::from_secs(60))));
    let standing = world.relay.standing(RANGE).unwrap();
    assert_eq!((standing.answered, standing.unanswered, standing.listed), (Some(world.now), 0, true));
    let report = beats(&mut world)[0].1;
    assert_eq!((world.now, report.epoch), (Instant::from_millis(30_000), 3));
    // The second of two registries with one store answers the same beat, and a copy comes later.
    answer(&mut world, orders(report.counter), RANGE);
    world.pass(20_000);
    answer(&mut world, orders(report.counter), RANGE);
    assert_eq!(world.relay.epoch(world.now, RANGE), Some((3, Duration::from_secs(10))));
    assert_eq!(world.relay.counters().answers, 3);
    // Times that no relay keeps to.
    for (told, kept) in [(0, 1_000), (u32::MAX, 600_000)] {
        let counter = beats(&mut world)[0].1.counter;
        let now = world.now.as_nanos() / 1_000_000;
        answer(&mut world, HeartbeatOrders { next_millis: told, ..orders(counter) }, RANGE);
        assert_eq!(world.relay.deadline(), Some(Instant::from_millis(now + kept)));
    }
}

#[test]
fn forged_replayed_and_foreign_answers_change_nothing() {
    let mut world = World::new(&config());
    for range in [RANGE, RANGE + 1] {
        assert!(world.relay.watch(world.now, range, vec![registry()], Duration::from_secs(range.into())));
    }
    let first = beats(&mut world)[0].1.counter;
    answer(&mut world, orders(first), RANGE);
    let second = loop {
        let report = beats(&mut world)[0].1;
        if report.range == RANGE {
            break report.counter;
        }
    };
    let before = (world.relay.epoch(world.now, RANGE), world.relay.deadline());
    let revoke = |counter| HeartbeatOrders { epoch: 9, last_holds: 0, ..orders(counter) };
    let mut forgeries = 0;
    let key = world.relay.range_key(RANGE).heartbeat_key();
    let mut good = [0; ANSWERED_LEN];
    HeartbeatAnswer::new(revoke(second), &key).write(&mut Writer::new(&mut good));
    for bit in 0..good.len() * 8 {
        let mut forged = good;
        forged[bit / 8] ^= 1 << (bit % 8);
        world.put(registry(), &forged);
        forgeries += 1;
    }
    for cut in 1..good.len() {
        world.put(registry(), &good[..cut]);
        forgeries += 1;
    }
    // An old beat's, a coming beat's, the other registry's, and none's.
    for (counter, range) in [(first, RANGE), (second + 1, RANGE), (second, RANGE + 1), (0, RANGE)] {
        answer(&mut world, revoke(counter), range);
        forgeries += 1;
    }
    assert_eq!((world.relay.epoch(world.now, RANGE), world.relay.deadline()), before);
    let counters = world.relay.counters();
    // One bit makes another packet of its first byte.
    let dropped = counters.dropped(Dropped::BadAnswer) + counters.dropped(Dropped::Malformed);
    assert_eq!((dropped, counters.answers), (forgeries, 1));
    world.put(registry(), &good);
    assert_eq!(world.relay.epoch(world.now, RANGE), Some((9, Duration::ZERO)));
}

#[test]
fn a_relay_beats_for_eight_registries_and_four_addresses_each() {
    let mut world = World::new(&config());
    let many: Vec<SocketAddr> = (1..10).map(|port| SocketAddr::from(([3, 3, 3, 3], port))).collect();
    for range in 0..8 {
        assert!(world.relay.watch(world.now, range, many.clone(), Duration::ZERO));
    }
    assert!(!world.relay.watch(world.now, 8, many.clone(), Duration::ZERO));
    assert!(world.relay.watch(world.now, 7, many, Duration::ZERO), "again");
    world.relay.wake(world.now);
    assert_eq!(world.drain().len(), 32);
}

#[test]
fn a_relay_that_drains_says_so_and_takes_no_new_word() {
    let mut world = World::new(&config());
    let (old, new) = (world.word(1, terms()), world.word(2, terms()));
    let (old, new) = (world.hop(&old, sender(), receiver()), world.hop(&new, sender(), receiver()));
    assert!(world.relay.watch(world.now, RANGE, vec![registry()], Duration::from_secs(60)));
    assert!(passes(&mut world, &old));
    world.relay.drain(world.now);
    assert_eq!(world.relay.deadline(), Some(world.now));
    assert!(beats(&mut world)[0].1.is_draining());
    let sent = world.put(sender(), &seal(&new, world.now, &[0; 100]));
    let notice = Notice::read(&sent[0].1).unwrap();
    assert_eq!((notice.reason, new.judge(&notice, world.now)), (Reason::Draining, Some(NoticeTrust::Proven)));
    let sent = world.put(sender(), &seal(&old, world.now, &[0; 963]));
    let back = ReturnHop::new(relay_v4(), &Delivered::read(&sent[0].1).unwrap());
    let mut packet = vec![0; 600];
    assert!(back.seal(&mut packet));
    assert_eq!(world.put(receiver(), &packet).len(), 1);
    assert!(beats(&mut world)[0].1.is_draining());
}

#[test]
fn the_relay_s_own_quota_holds_over_all_grants_ways_and_restarts() {
    let day = 86_400;
    let quota = Config { per_day: Some(10_000), per_month: Some(15_000), ..config() };
    let mut world = World::new(&quota);
    let words = [world.word(1, terms()), world.word(2, terms())];
    let hops = words.each_ref().map(|word| world.hop(word, sender(), receiver()));
    for _ in 0..4 {
        assert!(hops.iter().all(|hop| passes(&mut world, hop)));
    }
    let sent = world.put(sender(), &seal(&hops[0], world.now, &[0; 963]));
    let back = ReturnHop::new(relay_v4(), &Delivered::read(&sent[0].1).unwrap());
    let mut packet = vec![0; 600];
    assert!(back.seal(&mut packet));
    assert_eq!(world.put(receiver(), &packet).len(), 1);
    assert!(!passes(&mut world, &hops[1]) && world.put(receiver(), &packet).is_empty());
    assert_eq!(refused(&world, Reason::RelayQuota), 2);
    world.pass(1_000);
    let sent = world.put(sender(), &seal(&hops[1], world.now, &[0; 963]));
    let notice = Notice::read(&sent[0].1).unwrap();
    assert_eq!((notice.reason, u64::from(notice.retry_after)), (Reason::RelayQuota, day - 1));
    assert_eq!(hops[1].judge(&notice, world.now), Some(NoticeTrust::Proven));

    // A restart that forgot a minute at most: here nothing. UNIX is the 15th of the month.
    let used = world.relay.used(world.now);
    assert_eq!((used.day, used.today, used.this_month), (UNIX / day, 9_600, 9_600));
    let mut world = World::new(&Config { used, ..quota.clone() });
    let hop = world.hop(&words[0], sender(), receiver());
    assert!(!passes(&mut world, &hop));
    world.pass(day * 1_000);
    let hop = world.hop(&words[0], sender(), receiver());
    assert_eq!((0..20).filter(|_| passes(&mut world, &hop)).count(), 5, "what is left of the month");
    world.pass(1_000);
    let sent = world.put(sender(), &seal(&hop, world.now, &[0; 963]));
    let notice = Notice::read(&sent[0].1).unwrap();
    let left = u64::from(notice.retry_after);
    assert!(left > day && left < 31 * day, "{left}");
    // A clock that was set back gives nothing: a day that is not known has the most of those known.
    let used = world.relay.used(world.now);
    let mut world = World::new(&Config { used, unix_millis: (UNIX - day) * 1_000, ..quota });
    let back = world.relay.used(world.now);
    assert_eq!((back.day, back.today), (UNIX / day - 1, 9_600));
    assert_eq!((back.month, back.this_month), (used.month, used.this_month));
}

#[test]
fn the_load_counts_each_grant_once() {
    let mut world = World::new(&config());
    for id in 0..5 {
        let word = world.word(id, terms());
        let word = if id > 2 { narrowed(&word, 1, |_| {}) } else { word };
        let hop = world.hop(&word, sender(), receiver());
        for _ in 0..3 {
            world.put(sender(), &seal(&hop, world.now, &vec![7; 1_000 - hop.room()]));
        }
    }
    assert_eq!(world.relay.load(world.now), Load { rate: 937, grants: 5 });
    world.pass(16_000);
    assert_eq!(world.relay.load(world.now).grants, 5);
    world.pass(16_000);
    assert_eq!(world.relay.load(world.now), Load::default());
}
