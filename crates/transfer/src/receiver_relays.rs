//! A receiver that stands at relays: which of them gave their consent, so that its ticket can name
//! them.

use crate::events::TransferEvent;
use crate::receiver::Receiving;
use crate::ticket::GreetedRelay;
use byway_net::Clock;
use byway_wire::Duration;
use byway_wire::relay::Word;
use std::net::SocketAddr;

/// Waits for the relays to answer: those that did, and what to say of the others. `receiving` was
/// started with these `words`.
#[must_use]
pub fn greet_relays(
    receiving: &Receiving,
    words: &[Word],
    patience: Duration,
) -> (Vec<GreetedRelay>, Vec<String>) {
    let (mut greeted, mut troubles): (Vec<GreetedRelay>, Vec<String>) = Default::default();
    let clock = Clock::new();
    let begun = clock.now();
    while greeted.len() < words.len() {
        let left = patience.saturating_sub(clock.now().since(begun));
        if left.is_zero() {
            break;
        }
        match receiving.next(left) {
            Some(TransferEvent::Reachable { relay, address, consent }) => {
                let word = words.iter().find(|word| word.relays().contains(&relay));
                // One way through each relay; the first to answer is the shortest.
                if let Some(word) = word.filter(|word| !greeted.iter().any(|known| known.word == **word)) {
                    greeted.push(GreetedRelay { word: word.clone(), address, consent });
                }
            }
            Some(TransferEvent::Warning(message)) => troubles.push(message),
            _ if receiving.is_over() => break,
            _ => {}
        }
    }
    for word in words.iter().filter(|word| !greeted.iter().any(|known| known.word == **word)) {
        let at: Vec<String> = word.relays().iter().map(SocketAddr::to_string).collect();
        troubles.push(format!("relay {} gave no consent in time: the ticket leaves it out", at.join(", ")));
    }
    (greeted, troubles)
}
