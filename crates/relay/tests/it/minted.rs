//! What a registry mints, and who else would like to.

use crate::common::*;
use byway_relay::{Config, Dropped};
use byway_wire::relay::*;
use byway_wire::{Duration, Instant};
use proptest::prelude::*;

const RANGE: u8 = 5;
const HOUR: Duration = Duration::from_secs(3_600);

/// A world whose relay is enrolled, and what the registry knows.
fn enrolled(epoch: u32) -> (World, RangeKey) {
    let mut world = World::new(&config());
    assert!(world.relay.set_epoch(world.now, RANGE, epoch, HOUR));
    let key = world.relay.range_key(RANGE);
    (world, key)
}

/// A word as the registry mints it, which is not asked and does not ask.
fn mint(key: &RangeKey, (range, epoch, serial): (u8, u32, u32), terms: Terms) -> Word {
    let grant = Grant { id: Minted::new(range, epoch, serial).unwrap().id(), terms };
    Word::new(vec![relay_v4(), relay_v6()], grant, key.epoch_key(epoch).secret(&grant)).unwrap()
}

fn refused(world: &World, reason: Reason) -> u64 {
    world.relay.counters().dropped(Dropped::Refused(reason))
}

fn passes(world: &mut World, hop: &Hop) -> bool {
    let packet = seal(hop, world.now, &[7; 1000]);
    world.put(sender(), &packet).first().is_some_and(|(to, _)| *to == receiver())
}

/// One packet is refused for this reason, counted once, and the notice is as proven as this.
fn expect_refusal(world: &mut World, hop: &Hop, reason: Reason, proven: NoticeTrust) {
    let before = refused(world, reason);
    let sent = world.put(sender(), &seal(hop, world.now, &[7; 1000]));
    assert_eq!(refused(world, reason), before + 1, "{:?}", world.relay.counters());
    let [(to, bytes)] = sent.as_slice() else { panic!("one notice expected, {sent:?}") };
    let notice = Notice::read(bytes).unwrap();
    assert_eq!((*to, notice.reason, hop.judge(&notice, world.now)), (sender(), reason, Some(proven)));
}

#[test]
fn a_registry_mints_alone_and_the_relay_carries_there_and_back() {
    let (mut world, key) = enrolled(9);
    for epoch in [9, 8] {
        let word = mint(&key, (RANGE, epoch, 77), terms());
        for word in [narrowed(&word, 3, |terms| terms.rate = RateClass(0xf0)), word] {
            let hop = world.hop(&word, sender(), receiver());
            let sent = world.put(sender(), &seal(&hop, world.now, b"inner"));
            let header = Delivered::read(&sent[0].1).unwrap();
            assert_eq!((sent[0].0, header.tag.grant), (receiver(), word.grant().id));
            let back = ReturnHop::new(relay_v4(), &header);
            let mut packet = vec![0; back.room() + 9];
            assert!(back.seal(&mut packet));
            assert_eq!(world.put(receiver(), &packet)[0].0, sender());
        }
    }
    assert_eq!(world.relay.counters().dropped_in_all(), 0);
    assert_eq!(world.relay.accounts(), 4);
}

#[test]
fn forged_grants_are_refused_and_nothing_is_kept() {
    let (mut world, key) = enrolled(9);
    let id = (RANGE, 9, 1);
    let good = mint(&key, id, terms());
    let hop = world.hop(&good, sender(), receiver());
    let packet = seal(&hop, world.now, &[1; 100]);
    for bit in 0..packet.len() * 8 {
        let mut forged = packet.clone();
        forged[bit / 8] ^= 1 << (bit % 8);
        world.put(sender(), &forged);
    }
    // The keys of another range, another relay and another epoch, an invented key, and what the
    // operator would derive.
    let other_relay = RelayKey::new(&[6; 32]);
    let grant = *good.grant();
    let secrets = [
        world.relay.range_key(RANGE + 1).epoch_key(9).secret(&grant),
        other_relay.range_key(RANGE).epoch_key(9).secret(&grant),
        key.epoch_key(7).secret(&grant),
        key.epoch_key(11).secret(&grant),
        RangeKey::new([0; 32]).epoch_key(9).secret(&grant),
        other_relay.secret(&grant),
    ];
    for secret in secrets {
        world.pass(200);
        let word = Word::new(vec![relay_v4()], grant, secret).unwrap();
        let hop = world.hop(&word, sender(), receiver());
        expect_refusal(&mut world, &hop, Reason::UnknownWord, NoticeTrust::Hint);
    }
    // The holder of a good word cannot make more of it.
    for terms in [Terms { rate: RateClass(0xf0), ..terms() }, Terms { expiry: Minute::MAX, ..terms() }] {
        world.pass(200);
        let mut bytes = good.to_bytes();
        bytes[2..12].copy_from_slice(&Grant { terms, ..grant }.to_bytes());
        let hop = world.hop(&Word::from_bytes(&bytes).unwrap(), sender(), receiver());
        expect_refusal(&mut world, &hop, Reason::UnknownWord, NoticeTrust::Hint);
    }
    assert_eq!((world.relay.counters().forwarded_packets, world.relay.accounts()), (0, 0));
    assert!(passes(&mut world, &hop));
}

#[test]
fn only_an_open_range_of_this_relay_is_carried() {
    let (mut world, key) = enrolled(9);
    let own = mint(&key, (RANGE, 9, 1), terms());
    // A range that the relay gave to nobody, though the key is right.
    let never = mint(&world.relay.range_key(RANGE + 1), (RANGE + 1, 9, 1), terms());
    // A registry that mints outside its range, and one that does so at a relay of the same range.
    let stray = mint(&key, (RANGE + 1, 9, 1), terms());
    let elsewhere = mint(&RelayKey::new(&[6; 32]).range_key(RANGE), (RANGE, 9, 1), terms());
    for (word, reason) in
        [(&never, Reason::UnknownRange), (&stray, Reason::UnknownRange), (&elsewhere, Reason::UnknownWord)]
    {
        world.pass(200);
        let hop = world.hop(word, sender(), receiver());
        expect_refusal(&mut world, &hop, reason, NoticeTrust::Hint);
    }
    let hop = world.hop(&own, sender(), receiver());
    assert!(passes(&mut world, &hop));
    world.relay.close_range(RANGE);
    world.pass(200);
    expect_refusal(&mut world, &hop, Reason::UnknownRange, NoticeTrust::Hint);
    assert_eq!(world.relay.epoch(world.now, RANGE), None);
    // Closing does not let an epoch come back.
    assert!(!world.relay.set_epoch(world.now, RANGE, 8, HOUR));
    assert!(world.relay.set_epoch(world.now, RANGE, 9, HOUR));
    assert!(passes(&mut world, &hop));
    assert!(!world.relay.set_epoch(world.now, 128, 1, HOUR));
}

#[test]
fn a_planned_roll_leaves_an_hour_and_a_revocation_nothing() {
    let (mut world, key) = enrolled(9);
    let (first, second) = (mint(&key, (RANGE, 9, 1), terms()), mint(&key, (RANGE, 10, 1), terms()));
    let (old, new) = (world.hop(&first, sender(), receiver()), world.hop(&second, sender(), receiver()));
    assert!(passes(&mut world, &old));
    // The relay has not heard of the next epoch: its parity names the last one.
    expect_refusal(&mut world, &new, Reason::UnknownWord, NoticeTrust::Hint);
    assert!(world.relay.set_epoch(world.now, RANGE, 10, HOUR));
    assert!(passes(&mut world, &old) && passes(&mut world, &new));
    world.pass(3_599_000);
    assert!(passes(&mut world, &old));
    // Told again, the hour does not begin again.
    assert!(world.relay.set_epoch(world.now, RANGE, 10, HOUR));
    let sent = world.put(sender(), &seal(&old, world.now, &[0; 100]));
    let header = Delivered::read(&sent[0].1).unwrap();
    world.pass(1_000);
    expect_refusal(&mut world, &old, Reason::EpochOver, NoticeTrust::Proven);
    assert!(passes(&mut world, &new));
    // Nor is the way back open any longer.
    let back = ReturnHop::new(relay_v4(), &header);
    let mut packet = vec![0; back.room() + 9];
    assert!(back.seal(&mut packet));
    assert!(world.put(receiver(), &packet).is_empty());
    assert_eq!(refused(&world, Reason::EpochOver), 2);

    assert!(world.relay.set_epoch(world.now, RANGE, 11, Duration::ZERO));
    expect_refusal(&mut world, &new, Reason::EpochOver, NoticeTrust::Proven);
    assert!(!world.relay.set_epoch(world.now, RANGE, 10, HOUR), "an epoch never falls");
    world.pass(1_000);
    expect_refusal(&mut world, &new, Reason::EpochOver, NoticeTrust::Proven);
    // Two epochs later the parity is the same, and the key is not.
    expect_refusal(&mut world, &old, Reason::UnknownWord, NoticeTrust::Hint);
    let third = mint(&key, (RANGE, 11, 1), terms());
    let hop = world.hop(&third, sender(), receiver());
    assert_eq!(third.grant().id, first.grant().id);
    assert!(passes(&mut world, &hop));
}

#[test]
fn a_copy_passes_for_seconds_and_an_expired_grant_not_at_all() {
    let (mut world, key) = enrolled(9);
    let short = Terms { expiry: Minute::from_unix(UNIX + 120), ..terms() };
    let hop = world.hop(&mint(&key, (RANGE, 9, 1), short), sender(), receiver());
    let packet = seal(&hop, world.now, b"x");
    assert_eq!(world.put(sender(), &packet)[0].0, receiver());
    world.pass((TIME_WINDOW + 1) * 1_000);
    world.put(sender(), &packet);
    assert_eq!(refused(&world, Reason::Clock), 1);
    assert!(passes(&mut world, &hop));
    world.pass((120 - TIME_WINDOW - 1) * 1_000);
    expect_refusal(&mut world, &hop, Reason::Expired, NoticeTrust::Proven);
    assert_eq!(world.relay.counters().forwarded_packets, 2);
}

#[test]
fn rate_and_bytes_of_a_day_are_one_grant_s_whatever_is_minted_for_it() {
    let (mut world, key) = enrolled(9);
    let small = Terms { quota: QuotaClass(0), ..terms() }; // 512 KiB
    let carry = |world: &mut World, word: &Word| {
        let hop = world.hop(word, sender(), receiver());
        (0..2_000).filter(|_| passes(world, &hop)).count()
    };
    let first = mint(&key, (RANGE, 9, 1), small);
    assert_eq!(carry(&mut world, &first), (512 << 10) / 1037);
    world.pass(2_000);
    let hop = world.hop(&first, sender(), receiver());
    expect_refusal(&mut world, &hop, Reason::OverQuota, NoticeTrust::Proven);
    // The registry mints it anew under other terms, and goes on to the epoch after the next: one
    // account, one day.
    let again = mint(&key, (RANGE, 9, 1), Terms { rate: RateClass(0xf0), ..small });
    assert_eq!(carry(&mut world, &again), 0);
    assert!(world.relay.set_epoch(world.now, RANGE, 11, Duration::ZERO));
    let later = mint(&key, (RANGE, 11, 1), small);
    assert_eq!((later.grant().id, carry(&mut world, &later)), (first.grant().id, 0));
    // Another grant has its own.
    let other = mint(&key, (RANGE, 11, 2), Terms { rate: RateClass::at_most(1 << 20), ..terms() });
    let hop = world.hop(&other, sender(), receiver());
    for _ in 0..10_000 {
        world.pass(1);
        for _ in 0..3 {
            passes(&mut world, &hop);
        }
    }
    let carried = world.relay.counters().forwarded_bytes - ((512 << 10) / 1037) * 1037;
    assert!((10 << 20..=(10 << 20) + (1 << 18)).contains(&carried), "{carried}");
    assert!(refused(&world, Reason::OverRate) > 10_000);
}

#[test]
fn the_caps_of_the_operator_hold_for_what_a_registry_mints() {
    let mut world = World::new(&Config { quota_cap: Some(10_000), rate_cap: Some(1 << 30), ..config() });
    assert!(world.relay.set_epoch(world.now, RANGE, 1, HOUR));
    let word = mint(&world.relay.range_key(RANGE), (RANGE, 1, 1), terms());
    let hop = world.hop(&word, sender(), receiver());
    assert_eq!((0..100).filter(|_| passes(&mut world, &hop)).count(), 9);
}

#[test]
fn one_client_s_grant_opens_no_way_of_another_s() {
    let (mut world, key) = enrolled(9);
    let (a, b) = (mint(&key, (RANGE, 9, 1), terms()), mint(&key, (RANGE, 9, 2), terms()));
    // B has no word of A's: it takes A's id, or A's consent, or both.
    let consent = world.greet(receiver(), a.grant().id).unwrap().consent;
    let hop = world.hop_with(&b, receiver(), consent);
    expect_refusal(&mut world, &hop, Reason::NoConsent, NoticeTrust::Proven);
    let mut bytes = b.to_bytes();
    bytes[2..12].copy_from_slice(&a.grant().to_bytes());
    let forged = world.hop_with(&Word::from_bytes(&bytes).unwrap(), receiver(), consent);
    expect_refusal(&mut world, &forged, Reason::UnknownWord, NoticeTrust::Hint);
    // B stole A's word. It spends A's rate and bytes, reaches whom A reaches and nobody else, and
    // wins no return tag to A.
    let stolen = world.hop(&a, sender(), receiver());
    let thief = at("7.7.7.7:7");
    world.pass(1_000);
    assert!(world.put(thief, &seal(&stolen, world.now, b"x")).iter().all(|(to, _)| *to == thief));
    assert_eq!(refused(&world, Reason::StaleCookie), 1, "A's cookie is not B's");
    let third = at("6.6.6.6:6");
    let hop = world.hop_with(&a, third, consent);
    expect_refusal(&mut world, &hop, Reason::NoConsent, NoticeTrust::Proven);
    let mut bare = world.hop_with(&a, receiver(), consent);
    bare.set_cookie(0);
    let sent = world.put(thief, &seal(&bare, world.now, b"x"));
    let header = Delivered::read(&sent[0].1).unwrap();
    assert_eq!((sent[0].0, header.from, header.tag.tag), (receiver(), thief, 0));
}

#[test]
fn a_clock_that_is_a_day_off_ends_grants_sooner_or_later_but_no_epoch() {
    let day = 86_400;
    let terms = Terms { expiry: Minute::from_unix(UNIX + 3_600), ..terms() };
    for (relay, carried) in [(UNIX - day, true), (UNIX + day, false)] {
        let mut world = World::new(&Config { unix_millis: relay * 1_000, ..config() });
        assert!(world.relay.set_epoch(world.now, RANGE, 1, HOUR));
        let key = world.relay.range_key(RANGE);
        let word = mint(&key, (RANGE, 1, 1), terms);
        let greeted = world.greet(receiver(), word.grant().id).unwrap();
        // The sender learns the relay's clock from the relay: packets are not refused for it.
        let clock = RelayClock::learn(greeted.unix_millis, world.now, world.now);
        let hop = Hop::new(&word, relay_v4(), receiver(), greeted.consent, clock);
        assert_eq!(passes(&mut world, &hop), carried);
        assert_eq!(refused(&world, Reason::Expired), u64::from(!carried));
        // What the registry revoked is over, whatever the clock shows.
        assert!(world.relay.set_epoch(world.now, RANGE, 2, Duration::ZERO));
        world.pass(1_000);
        expect_refusal(&mut world, &hop, Reason::EpochOver, NoticeTrust::Proven);
    }
}

#[test]
fn a_clock_that_is_set_a_day_off_while_it_runs() {
    let (mut world, key) = enrolled(9);
    let word = mint(&key, (RANGE, 9, 1), Terms { quota: QuotaClass(0), ..terms() });
    let hop = world.hop(&word, sender(), receiver());
    while passes(&mut world, &hop) {}
    world.relay.set_clock(world.now, (UNIX + 86_400) * 1_000);
    world.pass(1_000);
    // Sixteen bits of time do not reach so far: the relay cannot tell whose packet it is, and
    // proves nothing.
    expect_refusal(&mut world, &hop, Reason::UnknownWord, NoticeTrust::Hint);
    world.relay.set_clock(world.now, (UNIX + 1) * 1_000);
    world.pass(1_000);
    expect_refusal(&mut world, &hop, Reason::OverQuota, NoticeTrust::Proven);
    // The hour of the last epoch is the machine's, which nobody sets.
    assert!(world.relay.set_epoch(world.now, RANGE, 10, HOUR));
    world.relay.set_clock(world.now, (UNIX + 7_200) * 1_000);
    assert_eq!(world.relay.epoch(world.now, RANGE), Some((10, HOUR)));
}

#[test]
fn a_restart_takes_no_epoch_for_granted_and_a_new_key_ends_all() {
    let (mut world, key) = enrolled(9);
    let word = mint(&key, (RANGE, 9, 1), terms());
    let hop = world.hop(&word, sender(), receiver());
    let mut restarted = World::new(&config());
    expect_refusal(&mut restarted, &hop, Reason::UnknownRange, NoticeTrust::Hint);
    assert!(restarted.relay.set_epoch(restarted.now, RANGE, 9, HOUR));
    assert!(passes(&mut restarted, &hop));
    assert!(passes(&mut world, &hop));
    let id = world.relay.id();
    world.relay.roll(&[8; 32]);
    assert!(world.relay.id() != id);
    assert!(passes(&mut world, &hop) && passes(&mut world, &hop));
    let renewed = mint(&world.relay.range_key(RANGE), (RANGE, 9, 2), terms());
    let renewed = world.hop(&renewed, sender(), receiver());
    assert!(passes(&mut world, &renewed));
    world.relay.roll(&[9; 32]);
    assert!(passes(&mut world, &renewed));
    expect_refusal(&mut world, &hop, Reason::UnknownWord, NoticeTrust::Hint);
}

/// Operators gave their words any id before there were registries.
#[test]
fn the_operator_s_old_words_hold_though_their_id_looks_minted() {
    let mut world = World::new(&config());
    let grant = Grant { id: Minted::new(RANGE, 9, 1).unwrap().id(), terms: terms() };
    assert_eq!(RelayKey::new(&KEY).issue(grant, vec![relay_v4()]), Err(RelayWordError::Minted));
    let word = Word::new(vec![relay_v4()], grant, RelayKey::new(&KEY).secret(&grant)).unwrap();
    let hop = world.hop(&word, sender(), receiver());
    assert!(passes(&mut world, &hop) && passes(&mut world, &hop));
    assert!(world.relay.set_epoch(world.now, RANGE, 9, HOUR));
    let minted = mint(&world.relay.range_key(RANGE), (RANGE, 9, 1), terms());
    let minted = world.hop(&minted, sender(), receiver());
    for _ in 0..3 {
        assert!(passes(&mut world, &hop) && passes(&mut world, &minted));
    }
}

proptest! {
    /// Relay words are permissions to use a relay. A registry makes them with an epoch number, and
    /// increases this number to revoke older words. The relay accepts only words of the current
    /// epoch, and for a limited time words of the previous one.
    #[test]
    fn only_the_current_epoch_and_the_last_within_its_time(
        steps in prop::collection::vec((0u32..6, 0u64..3, 0u64..2_000, 0u32..6), 1..40),
    ) {
        let mut world = World::new(&config());
        let key = world.relay.range_key(RANGE);
        let (mut known, mut until): (Option<u32>, u64) = (None, 0);
        for (epoch, holds, pass, minted) in steps {
            let now = world.now.as_nanos() / 1_000_000;
            let accepted = world.relay.set_epoch(world.now, RANGE, epoch, Duration::from_secs(holds));
            prop_assert_eq!(accepted, known.is_none_or(|known| known <= epoch));
            if accepted {
                let end = now + holds * 1_000;
                until = if known == Some(epoch) { until.min(end) } else { end };
                known = Some(epoch);
            }
            world.pass(pass);
            let word = mint(&key, (RANGE, minted, 1), terms());
            let hop = world.hop(&word, sender(), receiver());
            let holds = known == Some(minted)
                || known == Some(minted + 1) && world.now < Instant::from_millis(until);
            prop_assert_eq!(passes(&mut world, &hop), holds, "{:?} {} {}", known, until, minted);
        }
    }
}
