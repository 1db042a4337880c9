//! Dozens of relays that answer the packets with which a host tests a relay, and then misbehave.
//! All bytes arrive unchanged, the good relays are used, and the number of packets sent stays
//! bounded.

use crate::common::detours::{receiver_address, relay_index, sender_address, through};
use crate::relay_search::{CLASSES, Kind, ONE_SEED, SEEDS, Search, build, bystander, misled};
use byway_sim::TapVerdict;
use byway_wire::relay::GREET_LEN;
use core::ops::RangeInclusive;
use std::cell::RefCell;
use std::rc::Rc;

/// Mbit/s of the access line and of the direct one.
const RATES: [u64; 2] = [20, 4];
/// Every kind but those that are good, slow or dead.
const BAD: [Kind; 7] = [
    Kind::Swallows,
    Kind::Delays,
    Kind::Duplicates,
    Kind::Corrupts,
    Kind::Elsewhere,
    Kind::Passes,
    Kind::Mirrors,
];

/// Datagrams as they leave hosts.
#[derive(Clone, Copy, Debug, Default)]
struct Tally {
    /// From the sender, full ones.
    data: u64,
    /// From the sender, all others.
    control: u64,
    /// From the receiver to relays, as greetings.
    greetings: u64,
    /// From relays, full ones.
    carried: u64,
    /// Full ones that came to relays from relays.
    astray: u64,
    /// From the host that asked for nothing.
    from_bystander: u64,
}

impl Tally {
    fn count(&mut self, datagram: &byway_sim::TappedDatagram<'_>) {
        let full = datagram.payload.len() + datagram.phantom > 1_000;
        let (from, to) = (*datagram.from, *datagram.to);
        if from == sender_address() {
            *if full { &mut self.data } else { &mut self.control } += 1;
        } else if from == receiver_address() {
            self.greetings += u64::from(datagram.payload.len() == GREET_LEN && relay_index(to).is_some());
        } else if from == bystander() {
            self.from_bystander += 1;
        } else if full {
            self.carried += 1;
            self.astray += u64::from(relay_index(to).is_some());
        }
    }
}

/// A transfer that runs among such relays, and what is counted meanwhile.
fn counted(seed: u64, plan: crate::common::Plan, kinds: &[Kind]) -> (Search, Rc<RefCell<Tally>>) {
    let mut search = build(seed, plan, RATES, kinds);
    let tally = Rc::<RefCell<Tally>>::default();
    let (kinds, counts) = (kinds.to_vec(), Rc::clone(&tally));
    search.world.tap(move |mut datagram| {
        let verdict = misled(&mut datagram, &kinds);
        if verdict == TapVerdict::Pass {
            counts.borrow_mut().count(&datagram);
        }
        verdict
    });
    (search, tally)
}

/// The good relays alone: all others are dead, so that RTTs are the same.
fn good(kinds: &[Kind]) -> Vec<Kind> {
    kinds.iter().map(|kind| if *kind == Kind::Good { Kind::Good } else { Kind::Dead }).collect()
}

/// Control packets of the sender and greetings of the receiver: so many per second, and so many per
/// relay.
fn bounded(tally: Tally, took: f64, relays: usize) {
    let most = (took * 40.0) as u64 + 20 * relays as u64;
    assert!(tally.control <= most, "{tally:?}, {most}");
    assert!(tally.greetings <= 8 * relays as u64, "{tally:?}");
    assert_eq!(tally.from_bystander, 0);
}

/// Of 48 relays eight are good, and forty misbehave in the same way. The transfer takes at most a
/// quarter longer than with the eight good relays alone.
#[test]
#[ignore = "slow: seconds of a processor, at full scale"]
fn of_each_kind_forty() {
    let kinds = |bad: Kind| -> Vec<Kind> {
        (0..48).map(|index| if index % 6 == 0 { Kind::Good } else { bad }).collect()
    };
    let size = 32 << 20;
    for congestion in CLASSES {
        for seed in SEEDS {
            let took = |kinds: &[Kind]| {
                let (mut search, tally) = counted(seed, through(congestion, size, 48).lengths(), kinds);
                let took = search.finish(300, size);
                let tally = *tally.borrow();
                bounded(tally, took, kinds.len());
                (took, tally, search)
            };
            let (alone, ..) = took(&good(&kinds(Kind::Dead)));
            for bad in BAD {
                let (all, tally, mut search) = took(&kinds(bad));
                println!(
                    "{congestion}, seed {seed}, {bad:?}: {all:.1} s, {alone:.1} s with the good ones alone, {tally:?}, {:?}",
                    search.counts()
                );
                assert!(all <= 1.25 * alone, "{congestion}, seed {seed}, {bad:?}: {all} of {alone}");
            }
        }
    }
}

#[test]
fn all_kinds_at_once() {
    some_of_each_kind(&ONE_SEED);
}

#[test]
#[ignore = "slow: seconds of a processor, at full scale"]
fn all_kinds_at_once_with_more_seeds() {
    some_of_each_kind(&SEEDS);
}

/// Some of every kind, and every byte is looked at.
fn some_of_each_kind(seeds: &RangeInclusive<u64>) {
    let kinds: Vec<Kind> =
        BAD.into_iter().chain([Kind::Good, Kind::Slow, Kind::Dead]).cycle().take(60).collect();
    let size = 24 << 20;
    for congestion in CLASSES {
        for seed in seeds.clone() {
            let (mut search, tally) = counted(seed, through(congestion, size, kinds.len()), &kinds);
            let took = search.finish(120, size);
            let tally = *tally.borrow();
            println!("{congestion}, seed {seed}: {took:.1} s, {tally:?}, {:?}", search.counts());
            bounded(tally, took, kinds.len());
        }
    }
}
