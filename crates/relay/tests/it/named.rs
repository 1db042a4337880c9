//! Words that have names: each ends alone, at once, and for all that it was used for.

use crate::common::*;
use byway_relay::{Dropped, NamedWord};
use byway_wire::relay::*;
use proptest::prelude::*;
use std::net::SocketAddr;

fn named_terms() -> Terms {
    Terms { scope: Scope::ALL.and(Scope::NAMED), ..terms() }
}

fn good(grant: u32) -> NamedWord {
    NamedWord { grant, is_revoked: false, carried: 0 }
}

fn revoked(grant: u32) -> NamedWord {
    NamedWord { is_revoked: true, ..good(grant) }
}

/// What comes of a packet: `Ok`, it is delivered; else why not. Notices must be proven.
fn carried(world: &mut World, hop: &Hop) -> Result<Vec<u8>, Reason> {
    world.pass(1_000);
    let sent = world.put(sender(), &seal(hop, world.now, &[7; 1_000]));
    let [(to, bytes)] = sent.as_slice() else { panic!("one datagram expected, {sent:?}") };
    if *to == receiver() {
        return Ok(bytes.clone());
    }
    let notice = Notice::read(bytes).unwrap();
    assert_eq!(hop.judge(&notice, world.now), Some(NoticeTrust::Proven));
    Err(notice.reason)
}

fn answered(world: &mut World, delivered: &[u8]) -> Option<SocketAddr> {
    let header = Delivered::read(delivered).unwrap();
    let back = ReturnHop::new(relay_v4(), &header);
    let mut packet = vec![0; back.room() + 9];
    assert!(back.seal(&mut packet));
    world.put(receiver(), &packet).first().map(|(to, _)| *to)
}

#[test]
fn a_revoked_word_ends_in_the_midst_and_the_other_goes_on() {
    let mut world = World::new(&config());
    world.relay.set_named_words([good(2), good(1)]);
    let words = [1, 2].map(|id| world.word(id, named_terms()));
    let part = narrowed(&words[0], 9, |terms| terms.scope = Scope::ALL);
    let hops = [&words[0], &words[1], &part].map(|word| world.hop(word, sender(), receiver()));
    let delivered = hops.each_ref().map(|hop| carried(&mut world, hop).unwrap());
    world.relay.set_named_words([revoked(1), good(2)]);
    // In the same second, in which the relay remembers what it found.
    for (at, is_revoked) in [(0, true), (1, false), (2, true)] {
        let expected = if is_revoked { None } else { Some(sender()) };
        assert_eq!(answered(&mut world, &delivered[at]), expected, "{at}");
        let came = carried(&mut world, &hops[at]).map(|_| ());
        assert_eq!(came, if is_revoked { Err(Reason::Revoked) } else { Ok(()) }, "{at}");
    }
    assert_eq!(world.relay.counters().dropped(Dropped::Refused(Reason::Revoked)), 4);
    // It is given back.
    world.relay.set_named_words([good(1), good(2)]);
    assert!(carried(&mut world, &hops[0]).is_ok());
}

#[test]
fn a_word_with_a_name_that_the_relay_does_not_know_opens_nothing() {
    let mut world = World::new(&config());
    let named = world.word(1, named_terms());
    let hop = world.hop(&named, sender(), receiver());
    assert_eq!(carried(&mut world, &hop), Err(Reason::Revoked));
    world.relay.set_named_words([good(2)]);
    assert_eq!(carried(&mut world, &hop), Err(Reason::Revoked));
    assert_eq!(world.relay.accounts(), 0, "no account for what opens nothing");
    // A word without a name is nobody's to revoke, whatever its id.
    world.relay.set_named_words([revoked(3)]);
    let plain = world.word(3, terms());
    let hop = world.hop(&plain, sender(), receiver());
    assert!(carried(&mut world, &hop).is_ok());
    assert_eq!(world.relay.named_words(), [revoked(3)], "its bytes are not counted for the name");
    // The holder cannot take the mark away.
    let mut bytes = named.to_bytes();
    bytes[2..12].copy_from_slice(&Grant { id: 1, terms: terms() }.to_bytes());
    let forged = world.hop(&Word::from_bytes(&bytes).unwrap(), sender(), receiver());
    world.pass(1_000);
    let sent = world.put(sender(), &seal(&forged, world.now, &[7; 100]));
    assert_eq!(Notice::read(&sent[0].1).unwrap().reason, Reason::UnknownWord);
}

#[test]
fn counts_are_kept_as_long_as_the_name_is() {
    let mut world = World::new(&config());
    world.relay.set_named_words([NamedWord { carried: 5_000, ..good(1) }]);
    let word = world.word(1, named_terms());
    let hop = world.hop(&word, sender(), receiver());
    let delivered = carried(&mut world, &hop).unwrap();
    answered(&mut world, &delivered).unwrap();
    let counters = *world.relay.counters();
    let so_far = 5_000 + counters.forwarded_bytes + counters.returned_bytes;
    assert_eq!(world.relay.named_words()[0].carried, so_far);
    world.relay.set_named_words([revoked(1), good(7)]);
    assert!(carried(&mut world, &hop).is_err());
    assert_eq!(world.relay.named_words(), [NamedWord { carried: so_far, ..revoked(1) }, good(7)]);
    world.relay.set_named_words([good(7)]);
    world.relay.set_named_words([good(1)]);
    assert_eq!(world.relay.named_words(), [good(1)]);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// Whatever was revoked, given back and narrowed before: just the words that are good now pass,
    /// and just their bytes are counted.
    #[test]
    fn just_the_good_words_pass(steps in prop::collection::vec((0u32..6, any::<bool>(), 0usize..6, any::<bool>()), 1..60)) {
        let mut world = World::new(&config());
        let words: Vec<Word> = (0..6).map(|id| world.word(id, named_terms())).collect();
        let mut hops = Vec::new();
        for word in &words {
            let part = narrowed(word, 3, |terms| terms.scope = Scope::ALL);
            hops.push([word, &part].map(|word| world.hop(word, sender(), receiver())));
        }
        let mut known: Vec<NamedWord> = Vec::new();
        let mut passed = 0;
        for (id, is_revoked, used, is_narrowed) in steps {
            known.retain(|word| word.grant != id);
            if !is_revoked || id % 2 == 0 {
                known.push(NamedWord { is_revoked, ..good(id) });
            }
            world.relay.set_named_words(known.iter().copied());
            let is_good = known.iter().any(|word| word.grant == used as u32 && !word.is_revoked);
            let before = world.relay.named_words().to_vec();
            let came = carried(&mut world, &hops[used][usize::from(is_narrowed)]);
            prop_assert_eq!(came.is_ok(), is_good);
            passed += u64::from(is_good);
            for (before, after) in before.iter().zip(world.relay.named_words()) {
                prop_assert_eq!(before.carried < after.carried, is_good && after.grant == used as u32);
            }
        }
        prop_assert_eq!(world.relay.counters().forwarded_packets, passed);
    }
}
