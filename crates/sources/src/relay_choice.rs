//! The ways of a source: relays drawn from those that it and the sink's ticket name.

use byway_engine::RelayRoute;
use byway_transfer::Ticket;
use byway_wire::relay::Word;
use byway_wire::seeded_random::Random;
use std::net::SocketAddr;

/// A relay, and how it leads to the sink, if the ticket tells.
#[derive(Clone, Debug)]
pub struct RelayChoice {
    /// The relay's word.
    pub word: Word,
    /// Where the sink is behind it.
    pub reach: Option<RelayRoute>,
}

impl RelayChoice {
    /// Where the relay is dialled: its first address of each family.
    pub fn addresses(&self) -> impl Iterator<Item = SocketAddr> + '_ {
        let first = |v4| self.word.relays().iter().find(|address| address.is_ipv4() == v4).copied();
        [true, false].into_iter().filter_map(first)
    }

    /// Takes the word of the same relay that is good for longer, if there is one. A consent of the
    /// sink is of the word that it came with, so that word stays.
    fn renew(&mut self, words: &[Word]) -> bool {
        let longer = |word: &&Word| {
            word.relays() == self.word.relays() && word.terms().expiry > self.word.terms().expiry
        };
        let Some(word) = words.iter().find(longer).filter(|_| self.reach.is_none()) else { return false };
        self.word = word.clone();
        true
    }
}

/// Takes words that are good for longer than those of the ways. `entered` says which ways the
/// session knows, in their order; it has yet to learn a new word.
pub fn renew(ways: &mut [RelayChoice], words: &[Word], entered: Option<&mut Vec<bool>>) {
    let mut entered = entered.into_iter().flatten();
    for way in ways {
        let known = entered.next();
        if way.renew(words) {
            known.into_iter().for_each(|known| *known = false);
        }
    }
}

/// Draws `count` relays of those that there are, by lot.
pub fn draw(ticket: &Ticket, words: &[Word], count: usize, seed: u64) -> Vec<RelayChoice> {
    let reach = |relay: &byway_transfer::ticket::GreetedRelay| RelayRoute {
        word: relay.word.clone(),
        destination: relay.address,
        consent: relay.consent,
    };
    let told =
        ticket.relays.iter().map(|relay| RelayChoice { word: relay.word.clone(), reach: Some(reach(relay)) });
    let mut all: Vec<RelayChoice> = told.collect();
    // Who names relays wants these.
    if !words.is_empty() {
        all.retain(|way| words.iter().any(|word| word.relays() == way.word.relays()));
    }
    for word in words {
        if !all.iter().any(|way| way.word.relays() == word.relays()) {
            all.push(RelayChoice { word: word.clone(), reach: None });
        }
    }
    let mut random = Random::new(seed);
    let count = count.min(all.len());
    for at in 0..count {
        let left = (all.len() - at) as u64;
        all.swap(at, at + usize::try_from(random.bits() % left).unwrap_or_default());
    }
    all.truncate(count);
    all
}

#[cfg(test)]
mod tests {
    use super::*;
    use byway_transfer::{Identity, Secret};
    use byway_wire::relay::{Grant, Minute, QuotaClass, RateClass, RelayKey, Scope, Terms};

    fn word(port: u16) -> Word {
        word_until(port, u64::from(u32::MAX))
    }

    fn word_until(port: u16, expiry: u64) -> Word {
        let terms = Terms {
            expiry: Minute::from_unix(expiry),
            rate: RateClass::UNLIMITED,
            quota: QuotaClass::UNLIMITED,
            scope: Scope::ALL,
        };
        RelayKey::new(&[1; 32]).issue(Grant { id: 1, terms }, vec![([192, 0, 2, 1], port).into()]).unwrap()
    }

    #[test]
    fn a_word_makes_place_for_one_that_is_good_for_longer() {
        let [sooner, now, later] = [1, 2, 3].map(|hour| 2_000_000_000 + hour * 3_600);
        let mut way = RelayChoice { word: word_until(1, now), reach: None };
        assert!(!way.renew(&[word_until(2, later), word_until(1, sooner), word_until(1, now)]));
        assert!(way.renew(&[word_until(2, later), word_until(1, later)]));
        assert_eq!(way.word, word_until(1, later));
    }

    #[test]
    fn relays_are_drawn_by_lot_and_each_once() {
        let ticket = Ticket {
            key: Identity::new(Secret::new([3; 32])).public(),
            permission: Secret::new([1; 16]),
            addresses: Vec::new(),
            relays: Vec::new(),
        };
        let words: Vec<Word> = (1..=5).map(word).collect();
        let mut counts = [0; 5];
        for seed in 0..500 {
            let drawn = draw(&ticket, &words, 2, seed);
            assert!(drawn.len() == 2 && drawn[0].word.relays() != drawn[1].word.relays());
            for way in drawn {
                counts[usize::from(way.word.relays()[0].port()) - 1] += 1;
            }
        }
        assert!(counts.iter().all(|count| (140..260).contains(count)), "{counts:?}");
        assert_eq!(draw(&ticket, &words, 9, 1).len(), 5);
        assert!(draw(&ticket, &[], 2, 1).is_empty());
    }
}
