//! Warnings about the relays of a source, for a person.

use byway_transfer::KnownRelay;
use byway_wire::relay::Reason;
use core::fmt::Display;
use std::collections::BTreeSet;
use std::net::SocketAddr;

/// Gives each warning once: a source tries a relay again and again.
#[derive(Debug, Default)]
pub struct RelayWarnings(BTreeSet<String>);

impl RelayWarnings {
    /// A warning that a relay is of no use, and why.
    pub fn on_trouble(&mut self, relay: SocketAddr, why: impl Display) -> Option<String> {
        let warning = format!("relay {relay}: {why}");
        self.0.insert(warning.clone()).then_some(warning)
    }

    /// Returns warnings about relays whose relay words have expired at `unix` (seconds). A relay
    /// refuses an expired word, and its path ends silently.
    pub fn on_time<'a>(&mut self, relays: impl Iterator<Item = &'a KnownRelay>, unix: u64) -> Vec<String> {
        let ended = relays.filter(|relay| relay.word.terms().expiry.unix() <= unix);
        let relays = ended.filter_map(|relay| relay.addresses().next());
        relays.filter_map(|relay| self.on_trouble(relay, Reason::Expired)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_warning_is_given_once() {
        let (relay, mut warnings) = (SocketAddr::from(([192, 0, 2, 1], 4748)), RelayWarnings::default());
        assert_eq!(warnings.on_trouble(relay, "silent").unwrap(), "relay 192.0.2.1:4748: silent");
        assert_eq!(warnings.on_trouble(relay, "silent"), None);
        assert!(warnings.on_trouble(relay, Reason::Expired).is_some(), "another reason is news");
    }
}
