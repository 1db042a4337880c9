//! Which relays a client is told of, and in which order: a pure function. A list must not consist
//! of one operator's relays or of one network's. The random order depends on the client and the
//! hour.

use crate::message::Label;
use alloc::collections::BTreeMap;
use alloc::vec;
use alloc::vec::Vec;
use byway_wire::Prefix;
use byway_wire::seeded_random::mixed;
use core::net::{IpAddr, SocketAddr};

/// The facts about a relay that decide whether it is drawn.
#[derive(Clone, Debug)]
pub struct Candidate<'a> {
    /// A number that stays the relay's own.
    pub name: u64,
    /// The name of the relay's operator.
    pub operator: &'a Label,
    /// The relay's addresses.
    pub addresses: &'a [SocketAddr],
    /// Whether the relay's host has a transfer of its own, which has priority over what it
    /// forwards.
    pub busy: bool,
}

/// The relays that can be drawn. The pool is rebuilt when relays come or go.
#[derive(Clone, Debug, Default)]
pub struct DrawPool {
    entries: Vec<DrawEntry>,
    operators: usize,
    prefixes: usize,
}

#[derive(Clone, Debug)]
struct DrawEntry {
    name: u64,
    operator: u32,
    busy: bool,
    prefixes: Vec<u32>,
}

impl DrawPool {
    /// Makes a pool of these relays. A draw returns places in this order.
    pub fn new<'a>(candidates: impl Iterator<Item = Candidate<'a>>) -> Self {
        let (mut operators, mut prefixes) = (BTreeMap::new(), BTreeMap::new());
        let entries = candidates.map(|candidate| {
            let mut of_relay: Vec<u32> = candidate
                .addresses
                .iter()
                .map(|address| number_of(&mut prefixes, prefix_of(address.ip())))
                .collect();
            of_relay.sort_unstable();
            of_relay.dedup();
            // Whoever does not say whose a relay is has it alone.
            let nameless = candidate.operator.as_str().is_empty().then_some(candidate.name);
            let operator = number_of(&mut operators, (candidate.operator, nameless));
            DrawEntry { name: candidate.name, operator, busy: candidate.busy, prefixes: of_relay }
        });
        let entries = entries.collect();
        Self { entries, operators: operators.len(), prefixes: prefixes.len() }
    }

    /// The number of relays in the pool.
    #[must_use]
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Whether the pool has no relays.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Orders the relays at random by `seed`, and then alternates operators and networks (address
    /// prefixes), so that none fills a list. Busy relays come last. Returns `most` relays after the
    /// first `skip`, as indices in the order given to `new`.
    #[must_use]
    pub fn draw(&self, seed: u64, skip: usize, most: usize) -> Vec<usize> {
        // The random number does not depend on other relays, so coming and going relays hardly
        // change the order.
        let chance = |(place, entry): (u32, &DrawEntry)| (entry.busy, mixed(seed ^ entry.name), place);
        let mut order: Vec<(bool, u64, u32)> = (0..).zip(&self.entries).map(chance).collect();
        order.sort_unstable();
        let (mut of_operator, mut of_prefix) = (vec![0_u32; self.operators], vec![0_u32; self.prefixes]);
        let mut drawn: Vec<(bool, u32, u32)> = Vec::with_capacity(order.len());
        for (busy, _, place) in order {
            let Some(entry) = self.entries.get(place as usize) else { continue };
            let mut rank = count(&mut of_operator, entry.operator);
            for prefix in &entry.prefixes {
                rank = rank.max(count(&mut of_prefix, *prefix));
            }
            drawn.push((busy, rank, place));
        }
        // Stable: among equals chance decides.
        drawn.sort_by_key(|(busy, rank, _)| (*busy, *rank));
        drawn.into_iter().skip(skip).take(most).map(|(.., place)| place as usize).collect()
    }
}

/// Adds one to the count at `at`. Returns the count before.
fn count(counts: &mut [u32], at: u32) -> u32 {
    let Some(count) = counts.get_mut(at as usize) else { return 0 };
    let before = *count;
    *count += 1;
    before
}

fn number_of<K: Ord>(numbers: &mut BTreeMap<K, u32>, key: K) -> u32 {
    let next = numbers.len() as u32;
    *numbers.entry(key).or_insert(next)
}

/// A network of the usual size of one operator around an address.
fn prefix_of(ip: IpAddr) -> Prefix {
    let ip = ip.to_canonical();
    Prefix::of(ip, if ip.is_ipv4() { 16 } else { 32 })
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::collections::BTreeSet;
    use alloc::format;
    use alloc::string::String;
    use proptest::prelude::*;

    struct Relays(Vec<(u64, Label, Vec<SocketAddr>)>);

    impl Relays {
        fn urn(&self) -> DrawPool {
            DrawPool::new(self.0.iter().map(|(name, operator, addresses)| Candidate {
                name: *name,
                operator,
                addresses,
                busy: name % 3 == 0 && operator.as_str() == "busy",
            }))
        }
    }

    /// Makes `many` relays of one operator in one network, and `others` relays of one operator and
    /// network each.
    fn lopsided(many: u64, others: u64) -> Relays {
        let of = |name: u64, operator: &str, ip: [u8; 4]| {
            (name, Label::new(operator), vec![SocketAddr::from((ip, 4748))])
        };
        let large = (0..many).map(|it| of(it, "large", [10, 0, (it >> 8) as u8, it as u8]));
        let small = (0..others).map(|it| of(many + it, &format!("small {it}"), [20, it as u8, 0, 1]));
        Relays(large.chain(small).collect())
    }

    #[test]
    fn who_has_many_relays_is_not_drawn_more_often() {
        let relays = lopsided(5_000, 60);
        let drawn = relays.urn().draw(7, 0, 61);
        let operators: BTreeSet<&Label> = drawn.iter().map(|place| &relays.0[*place].1).collect();
        assert_eq!(operators.len(), 61);
        assert_eq!(relays.urn().draw(7, 0, 100).len(), 100);
    }

    #[test]
    fn one_prefix_comes_once_before_any_comes_twice() {
        let one = |it: u64| SocketAddr::from(([10, (it % 10) as u8, (it >> 8) as u8, it as u8], 1));
        let relays = Relays((0..1000).map(|it| (it, Label::new(&format!("{it}")), vec![one(it)])).collect());
        for seed in 0..20 {
            let drawn = relays.urn().draw(seed, 0, 10);
            let prefixes: BTreeSet<u8> = drawn.iter().map(|place| (relays.0[*place].0 % 10) as u8).collect();
            assert_eq!(prefixes.len(), 10, "{drawn:?}");
        }
    }

    #[test]
    fn relays_of_nobody_in_particular_are_not_taken_for_one_operators() {
        let one = |it: u64| SocketAddr::from(([10, it as u8, 0, 1], 1));
        let operator = |it: u64| Label::new(&if it < 20 { String::new() } else { format!("{it}") });
        let relays = Relays((0..40).map(|it| (it, operator(it), vec![one(it)])).collect());
        let (urn, mut nameless) = (relays.urn(), 0);
        for seed in 0..500_u64 {
            nameless += urn.draw(mixed(seed), 0, 10).into_iter().filter(|place| *place < 20).count();
        }
        assert!((2_300..=2_700).contains(&nameless), "{nameless}: about half of 5,000");
    }

    #[test]
    fn everybody_is_drawn_equally_often() {
        let one = |it: u64| SocketAddr::from(([10, it as u8, 0, 1], 1));
        let relays = Relays((0..50).map(|it| (it, Label::new(&format!("{it}")), vec![one(it)])).collect());
        let (urn, mut counts) = (relays.urn(), [0; 50]);
        for seed in 0..2_000_u64 {
            urn.draw(mixed(seed), 0, 5).into_iter().for_each(|place| counts[place] += 1);
        }
        assert!(counts.iter().all(|count| (140..=260).contains(count)), "{counts:?}");
    }

    #[test]
    fn who_has_a_transfer_of_his_own_comes_after_all_others_and_both_by_chance() {
        let one = |it: u64| SocketAddr::from(([10, it as u8, 0, 1], 1));
        let relays = Relays((0..60).map(|it| (it, Label::new("busy"), vec![one(it)])).collect());
        let (urn, mut counts) = (relays.urn(), [0; 60]);
        for seed in 0..2_000_u64 {
            let drawn = urn.draw(mixed(seed), 0, 50);
            assert!(drawn.iter().take(40).all(|place| place % 3 != 0), "{drawn:?}");
            assert_eq!(urn.draw(mixed(seed), 38, 12), drawn[38..]);
            drawn[..10].iter().chain(&drawn[40..]).for_each(|place| counts[*place] += 1);
        }
        // Ten of forty, and ten of twenty.
        for (place, count) in counts.into_iter().enumerate() {
            let expected = if place % 3 == 0 { 1_000 } else { 500 };
            assert!((expected - 120..=expected + 120).contains(&count), "{place}: {count}");
        }
    }

    proptest! {
        #[test]
        fn asking_for_more_continues_the_draw(seed: u64, first in 0_usize..40, then in 0_usize..40) {
            let urn = lopsided(30, 30).urn();
            let all = urn.draw(seed, 0, first + then);
            prop_assert_eq!([urn.draw(seed, 0, first), urn.draw(seed, first, then)].concat(), all.clone());
            let distinct: BTreeSet<_> = all.iter().collect();
            prop_assert_eq!(distinct.len(), all.len());
        }

        #[test]
        fn one_relay_that_goes_moves_few_others(seed: u64, gone in 0_usize..60) {
            let (before, mut after) = (lopsided(0, 60), lopsided(0, 60));
            after.0.remove(gone);
            let names = |relays: &Relays| -> BTreeSet<u64> {
                relays.urn().draw(seed, 0, 20).into_iter().map(|place| relays.0[place].0).collect()
            };
            prop_assert!(names(&before).intersection(&names(&after)).count() >= 19);
        }
    }
}
