//! Peers that come and go: the messages for people, and the events for programs.

use crate::messages;
use crate::output::{Event, Output};
use byway_gateway::machine::PeerState;
use serde::Serialize;

/// The last reported state of each peer, in order.
#[derive(Default)]
pub(super) struct PeerNews {
    /// Whether each peer was up at its last report. `None`: no report about the peer was made yet.
    told: Vec<Option<bool>>,
    /// Whether the gateway only observes, and so carries no flow.
    observing: bool,
}

/// A peer came or is gone.
#[derive(Debug, PartialEq, Eq, Serialize)]
struct PeerChange<'a> {
    name: &'a str,
    up: bool,
    /// Why the peer is down. `None`: unknown.
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<&'a str>,
    /// Whether the peer was up before.
    #[serde(skip)]
    was_there: bool,
}

impl PeerNews {
    pub(super) fn new(observing: bool) -> Self {
        Self { observing, ..Self::default() }
    }

    /// Reports the peers whose state changed.
    pub(super) fn tell(&mut self, states: &[PeerState], output: &mut Output) {
        let observing = self.observing;
        for change in self.changes(states) {
            let why = change.reason.unwrap_or_default();
            output.say(&match (change.up, change.was_there) {
                (true, _) => messages::gateway::peer_came(change.name, observing),
                (false, true) => messages::gateway::peer_gone(change.name, why, observing),
                (false, false) => messages::gateway::peer_missing(change.name, why),
            });
            output.emit(&Event::told("peer", &change));
        }
    }

    /// Returns the peers that came up or went down since the last call. A peer that never came up
    /// is returned once, when an attempt failed.
    fn changes<'a>(&mut self, states: &'a [PeerState]) -> Vec<PeerChange<'a>> {
        self.told.resize(states.len(), None);
        let changed = |(told, state): (&mut Option<bool>, &'a PeerState)| {
            let before = *told;
            if before.is_none() && !state.up && state.trouble.is_none() {
                return None;
            }
            *told = Some(state.up);
            (before != Some(state.up)).then(|| PeerChange {
                name: &state.name,
                up: state.up,
                reason: state.trouble.as_deref().filter(|_| !state.up),
                was_there: before.is_some(),
            })
        };
        self.told.iter_mut().zip(states).filter_map(changed).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_peer_is_told_of_when_it_comes_when_it_goes_and_once_if_it_never_came() {
        let state = |name: &str, up, trouble: Option<&str>| PeerState {
            name: name.into(),
            up,
            trouble: trouble.map(str::to_owned),
        };
        let mut news = PeerNews::default();
        let mut told = |a, b| -> Vec<(String, bool, Option<String>, bool)> {
            let states = [a, b];
            let changes = news.changes(&states);
            let owned = |it: PeerChange<'_>| (it.name.into(), it.up, it.reason.map(Into::into), it.was_there);
            changes.into_iter().map(owned).collect()
        };
        assert_eq!(told(state("a", false, None), state("b", false, None)), []);
        let silent = || state("b", false, Some("no answer"));
        let missing = ("b".into(), false, Some("no answer".into()), false);
        assert_eq!(told(state("a", true, None), silent()), [("a".into(), true, None, false), missing]);
        assert_eq!(told(state("a", true, None), silent()), []);
        let gone = ("a".into(), false, Some("idle".into()), true);
        assert_eq!(told(state("a", false, Some("idle")), silent()), [gone]);
        assert_eq!(told(state("a", true, Some("idle")), silent()), [("a".into(), true, None, true)]);
    }
}
