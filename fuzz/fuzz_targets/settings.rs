//! What people write into `config.toml`, and what byway changes in it: peers come and go, and all
//! others stay as they were.
#![no_main]

use byway_transfer::Secret;
use byway_transfer::identity::PublicKey;
use byway_transfer::settings::{Config, PeerEdit, PeerName};
use byway_transfer::ticket::Ticket;
use libfuzzer_sys::fuzz_target;
use std::path::Path;

/// Names that the text may have, or not.
const NAMES: [&str; 3] = ["nas", "a.b", "lab"];

/// The peers of a text but `without`, each with what its ticket is.
fn peers(text: &str, without: &[&PeerName]) -> Vec<(PeerName, Option<Ticket>)> {
    let config = Config::of_text(text);
    let others = config.peers().iter().filter(|(name, _)| !without.contains(name));
    others.map(|(name, peer)| (name.clone(), peer.ticket().ok())).collect()
}

fuzz_target!(|bytes: &[u8]| {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    let config = Config::of_text(text);
    for finding in config.findings() {
        let lines = text.lines().count().max(1) + 1;
        assert!(finding.line.is_some_and(|line| (1..=lines).contains(&line)), "{finding}");
    }
    let permission = Secret::new([1; 16]);
    let ticket =
        Ticket { key: PublicKey([2; 32]), permission, addresses: vec![], relays: vec![], names: vec![] };
    let names = NAMES.map(|name| name.parse::<PeerName>());
    for (at, name) in names.iter().enumerate() {
        let (Ok(name), Some(Ok(other))) = (name, names.get((at + 1) % NAMES.len())) else { return };
        let apply = |text: &str, edit: PeerEdit<'_>| edit.apply(&config, Path::new("config.toml"), text);
        if let Ok(added) = apply(text, PeerEdit::Add(name, &ticket)) {
            assert!(added.starts_with(text));
            assert_eq!(peers(&added, &[name]), peers(text, &[]));
            let there = peers(&added, &[]);
            assert!(there.iter().any(|peer| *peer == (name.clone(), Some(ticket.clone()))));
            if let Ok(removed) = apply(&added, PeerEdit::Remove(name)) {
                assert_eq!(peers(&removed, &[]), peers(text, &[]));
            }
        }
        if let Ok(renamed) = apply(text, PeerEdit::Rename(name, other)) {
            assert_eq!(peers(&renamed, &[name, other]), peers(text, &[name, other]));
            assert!(!peers(&renamed, &[]).iter().any(|(it, _)| it == name));
        }
        if let Ok(removed) = apply(text, PeerEdit::Remove(name)) {
            assert_eq!(peers(&removed, &[]), peers(text, &[name]));
        }
    }
});
