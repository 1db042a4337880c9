//! What a person should know of the relays of a source.

use crate::relay_choice::RelayChoice;
use byway_wire::relay::Reason;
use core::fmt::Display;
use std::collections::BTreeSet;
use std::net::SocketAddr;

/// Warns of each relay once: a source tries a relay again and again.
#[derive(Debug, Default)]
pub struct RelayWarnings(BTreeSet<SocketAddr>);

impl RelayWarnings {
    /// A warning that a relay is of no use, and why.
    pub fn on_trouble(&mut self, relay: SocketAddr, why: impl Display) -> Option<String> {
        self.0.insert(relay).then(|| format!("relay {relay}: {why}"))
    }

    /// Warnings of relays whose words are no longer good at `unix` (seconds). A relay refuses such
    /// a word, and its path ends silently.
    pub fn on_time(&mut self, ways: &[RelayChoice], unix: u64) -> Vec<String> {
        let ended = ways.iter().filter(|way| way.word.terms().expiry.unix() <= unix);
        let relays = ended.filter_map(|way| way.addresses().next());
        relays.filter_map(|relay| self.on_trouble(relay, Reason::Expired)).collect()
    }
}
