//! The relays of a source, drawn from those that it and the sink's ticket name.

use byway_transfer::{KnownRelay, Ticket};
use byway_wire::relay::Word;
use byway_wire::seeded_random::Random;

/// Draws `count` relays at random from `words`, or from the ticket's relays if `words` is empty.
pub fn draw(ticket: &Ticket, words: &[Word], count: usize, seed: u64) -> Vec<KnownRelay> {
    let mut all: Vec<KnownRelay> =
        ticket.relays.iter().map(|relay| KnownRelay::greeted(relay, &ticket.permission)).collect();
    // Who names relays wants these.
    if !words.is_empty() {
        all.retain(|way| words.iter().any(|word| word.relays() == way.word.relays()));
    }
    for word in words {
        if !all.iter().any(|way| way.word.relays() == word.relays()) {
            all.push(KnownRelay::of_word(word.clone()));
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
        let terms = Terms {
            expiry: Minute::from_unix(u64::from(u32::MAX)),
            rate: RateClass::UNLIMITED,
            quota: QuotaClass::UNLIMITED,
            scope: Scope::ALL,
        };
        RelayKey::new(&[1; 32]).issue(Grant { id: 1, terms }, vec![([192, 0, 2, 1], port).into()]).unwrap()
    }

    #[test]
    fn relays_are_drawn_by_lot_and_each_once() {
        let ticket = Ticket {
            key: Identity::new(Secret::new([3; 32])).public(),
            permission: Secret::new([1; 16]),
            addresses: Vec::new(),
            relays: Vec::new(),
            names: Vec::new(),
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
