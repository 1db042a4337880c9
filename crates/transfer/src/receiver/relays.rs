//! A receiver that stands at relays: which of them lead to it, so that its ticket can name them.

use crate::events::TransferEvent;
use crate::inbound_relays::UselessRelay;
use crate::receiver::Receiving;
use crate::ticket::GreetedRelay;
use byway_net::Clock;
use byway_wire::Duration;
use byway_wire::relay::Word;
use std::net::SocketAddr;

/// The results of a receiver's registration at the relays of some relay words.
#[derive(Debug, Default)]
pub struct GreetedRelays {
    /// The relays that work, for the ticket. There is one route for each relay: the first to
    /// answer, which is the shortest.
    pub greeted: Vec<GreetedRelay>,
    /// Sentences about the relays that do not work.
    pub troubles: Vec<String>,
    /// The relay words of relays that do not lead here.
    useless: Vec<Word>,
}

impl GreetedRelays {
    /// Notes that a relay leads to this receiver.
    pub fn on_reachable(&mut self, relay: GreetedRelay) {
        if !self.greeted.iter().any(|known| known.word == relay.word) {
            self.greeted.push(relay);
        }
    }

    /// Notes that a relay does not lead to this receiver, and why.
    pub fn on_useless(&mut self, relay: UselessRelay) {
        self.greeted.retain(|known| known.word != relay.word);
        self.useless.push(relay.word);
        self.troubles.push(relay.message);
    }

    /// Whether the result is known for each of `words`.
    #[must_use]
    pub fn is_complete(&self, words: &[Word]) -> bool {
        words.iter().all(|word| self.is_known(word))
    }

    fn is_known(&self, word: &Word) -> bool {
        self.greeted.iter().any(|known| known.word == *word) || self.useless.contains(word)
    }

    /// No relay is waited for any more.
    pub fn end(&mut self, words: &[Word]) {
        let silent = words.iter().filter(|word| !self.is_known(word));
        let message = |word: &Word| {
            format!("relay {} gave no consent in time: the ticket leaves it out", addresses(word))
        };
        let messages: Vec<String> = silent.map(message).collect();
        self.troubles.extend(messages);
        let forgetful = self.greeted.iter().filter(|relay| relay.reach.is_some()).map(|relay| {
            format!(
                "relay {} does not remember where this host is: the ticket leads through it for 24 hours, and \
                 only while the address stays",
                addresses(&relay.word)
            )
        });
        self.troubles.extend(forgetful);
    }
}

/// Returns the addresses of a relay word, for a person.
fn addresses(word: &Word) -> String {
    let all: Vec<String> = word.relays().iter().map(SocketAddr::to_string).collect();
    all.join(", ")
}

/// Waits until the relays of `words` have answered, but at most for `patience`. `receiving` must
/// have been started with these words.
#[must_use]
pub fn greet_relays(receiving: &Receiving, words: &[Word], patience: Duration) -> GreetedRelays {
    let mut found = GreetedRelays::default();
    let clock = Clock::new();
    let begun = clock.now();
    while !found.is_complete(words) {
        let left = patience.saturating_sub(clock.now().since(begun));
        if left.is_zero() {
            break;
        }
        match receiving.next(left) {
            Some(TransferEvent::Reachable(relay)) => found.on_reachable(relay),
            Some(TransferEvent::UselessRelay(relay)) => found.on_useless(relay),
            Some(TransferEvent::Warning(message)) => found.troubles.push(message),
            _ if receiving.is_over() => break,
            _ => {}
        }
    }
    found.end(words);
    found
}
