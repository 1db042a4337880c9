//! The final state of each relay in a transfer, and a sentence on whether relays helped.

use crate::events::TransferEvent;
use crate::path_names::relay_name;
use crate::progress::PathCounters;
use byway_engine::{RelayState, RelayStatus, RelayTrouble};
use byway_wire::{Duration, Local};
use std::collections::BTreeMap;
use std::net::SocketAddr;

/// Relays of no use that a person is warned of one by one. A longer list is not read.
const MAX_NAMED_RELAYS: usize = 3;
/// Relays that carried less than this percentage of all bytes did not help.
const HELPED_PERCENT: u64 = 5;

/// The final state of a relay in a transfer.
#[derive(Clone, Debug, PartialEq)]
pub struct RelayOutcome {
    /// The name of the relay, for a person.
    pub name: String,
    /// `untried`, `trying`, `available`, `reserve`, `used`, `unusable` or `dropped`.
    pub standing: &'static str,
    /// Why the relay is spare, unusable or dropped. `None`: it is in use.
    pub reason: Option<String>,
    /// The round-trip time of the latest answered probe. `None`: no probe was answered.
    pub rtt: Option<Duration>,
    /// Bytes sent through the relay (UDP payload).
    pub bytes: u64,
}

/// A relay, and the local socket that leads there. All TCP connections to a relay are one entry,
/// with no socket: they come and go.
type RelayKey = (SocketAddr, Option<Local>);

fn key(status: &RelayStatus) -> RelayKey {
    (status.relay, Some(status.local).filter(|local| !local.is_connection()))
}

/// Follows the relays of a connection.
#[derive(Debug, Default)]
pub(crate) struct RelayLog {
    known: BTreeMap<RelayKey, RelayStatus>,
    warned: usize,
}

impl RelayLog {
    /// Compares the states of relays with the last ones. Returns the changes to report.
    pub fn look(&mut self, relays: Vec<RelayStatus>, locals: &[SocketAddr]) -> Vec<TransferEvent> {
        let mut news = Vec::new();
        let mut best: BTreeMap<RelayKey, RelayStatus> = BTreeMap::new();
        for status in relays {
            let entry = best.entry(key(&status)).or_insert(status);
            if rank(status.standing) > rank(entry.standing) {
                *entry = status;
            }
        }
        for (key, status) in best {
            let before = self.known.insert(key, status);
            // What is tried now is soon something else.
            let passing = matches!(status.standing, RelayState::Untried | RelayState::Trying);
            if !passing && before.is_none_or(|before| before.standing != status.standing) {
                let name = name(&status, locals);
                let (standing, reason) = (name_of(status.standing), reason(&status));
                news.push(TransferEvent::Relay { name, standing, reason });
            }
        }
        news
    }

    /// The warning about a relay that does not work. `None`: enough relays were named already.
    pub fn on_trouble(&mut self, relay: SocketAddr, trouble: RelayTrouble) -> Option<String> {
        self.warned += 1;
        match self.warned {
            ..=MAX_NAMED_RELAYS => Some(format!("relay {relay}: {trouble}; the transfer goes on without it")),
            more if more == MAX_NAMED_RELAYS + 1 => {
                Some(String::from("more relays are of no use; with -v each is named, and why"))
            }
            _ => None,
        }
    }

    /// Returns the state of each relay that was tried, with the bytes that its paths carried.
    pub fn tallies(&self, paths: &[PathCounters], locals: &[SocketAddr]) -> Vec<RelayOutcome> {
        let tried = self.known.values().filter(|status| status.standing != RelayState::Untried);
        tried
            .map(|status| {
                let name = name(status, locals);
                let bytes = paths.iter().filter(|path| path.name == name).map(|path| path.bytes).sum();
                let used =
                    bytes > 0 && matches!(status.standing, RelayState::Available | RelayState::Reserve);
                let standing = if used { "used" } else { name_of(status.standing) };
                RelayOutcome { name, standing, reason: reason(status), rtt: status.rtt, bytes }
            })
            .collect()
    }

    /// A sentence that says whether relays helped, or why not. `None`: there was no relay.
    pub fn verdict(&self, paths: &[PathCounters]) -> Option<String> {
        let count = |of: RelayState| self.known.values().filter(|status| status.standing == of).count();
        let all = self.known.len();
        if all == 0 {
            return None;
        }
        let total: u64 = paths.iter().map(|path| path.bytes).sum();
        let relayed: u64 = paths.iter().filter(|path| path.route.is_proxied()).map(|path| path.bytes).sum();
        let percent = relayed.saturating_mul(100).checked_div(total).unwrap_or(0);
        let (unusable, shares) = (count(RelayState::Unusable), count(RelayState::Shares));
        Some(if percent >= HELPED_PERCENT {
            format!("relays carried {percent} % of what was sent")
        } else if unusable == all {
            String::from("relays did not help: none of them is usable")
        } else if shares > 0 && shares >= count(RelayState::InUse) {
            String::from(
                "relays did not help: your uplink is the bottleneck, and what they carry leaves by it, too",
            )
        } else if count(RelayState::Reserve) + unusable == all {
            String::from("relays did not help: every detour takes more than twice as long as the direct path")
        } else if count(RelayState::Untried) + count(RelayState::Trying) == all {
            String::from("relays did not help: the transfer was over before one was found")
        } else {
            String::from("relays were not needed: the direct path carried nearly everything")
        })
    }
}

/// Returns the name of the paths through a relay.
fn name(status: &RelayStatus, locals: &[SocketAddr]) -> String {
    let name = relay_name(status.relay, status.local, locals);
    if status.local.is_connection() { format!("{name} over TCP") } else { name }
}

/// The rank of a state, if several connections lead to one relay: the highest is reported.
const fn rank(standing: RelayState) -> u8 {
    match standing {
        RelayState::Unusable => 0,
        RelayState::CarriedLittle | RelayState::Shares => 1,
        RelayState::Untried => 2,
        RelayState::Trying => 3,
        RelayState::Reserve => 4,
        RelayState::Available => 5,
        RelayState::InUse => 6,
    }
}

const fn name_of(standing: RelayState) -> &'static str {
    match standing {
        RelayState::Untried => "untried",
        RelayState::Trying => "trying",
        RelayState::Available => "available",
        RelayState::Reserve => "reserve",
        RelayState::InUse => "used",
        RelayState::Unusable => "unusable",
        RelayState::CarriedLittle | RelayState::Shares => "dropped",
    }
}

fn reason(status: &RelayStatus) -> Option<String> {
    match status.standing {
        RelayState::Reserve => {
            Some(String::from("the detour takes more than twice as long as the direct path"))
        }
        RelayState::Unusable => Some(match status.trouble {
            Some(trouble) => trouble.to_string(),
            None => String::from("two probes in a row had no answer"),
        }),
        RelayState::CarriedLittle => Some(String::from("it carried little")),
        RelayState::Shares => Some(String::from("it shares the bottleneck of the direct path")),
        RelayState::Untried | RelayState::Trying | RelayState::Available | RelayState::InUse => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use byway_engine::Route;

    fn status(port: u16, standing: RelayState) -> RelayStatus {
        let relay = SocketAddr::from(([192, 0, 2, 1], port));
        RelayStatus {
            relay,
            local: Local(0),
            standing,
            trouble: None,
            rtt: None,
            in_time: false,
            goodput: 0,
            silences: 0,
        }
    }

    /// Makes the counters of a direct path.
    fn direct(bytes: u64) -> PathCounters {
        PathCounters {
            path: 0,
            name: String::from("direct"),
            route: Route::direct(Local(0), SocketAddr::from(([192, 0, 2, 9], 1))),
            local: None,
            state: "active",
            bytes,
            rate_bps: 0.0,
            rtt: None,
            base_rtt: None,
            queueing: None,
            window: None,
            in_flight: None,
            packets: None,
            lost: None,
            pause: None,
            used: true,
        }
    }

    #[test]
    fn each_change_is_told_once_and_what_passes_soon_is_not() {
        let mut log = RelayLog::default();
        let told = |news: Vec<TransferEvent>| -> Vec<String> {
            let text = |news| match news {
                TransferEvent::Relay { name, standing, .. } => format!("{name} {standing}"),
                _ => unreachable!(),
            };
            news.into_iter().map(text).collect()
        };
        assert!(
            log.look(vec![status(1, RelayState::Untried), status(2, RelayState::Trying)], &[]).is_empty()
        );
        let changed = vec![status(1, RelayState::Available), status(2, RelayState::Unusable)];
        let expected = ["relay 192.0.2.1:1 available", "relay 192.0.2.1:2 unusable"];
        assert_eq!(told(log.look(changed.clone(), &[])), expected);
        assert!(log.look(changed, &[]).is_empty());
    }

    #[test]
    fn connections_to_a_relay_are_one_entry_that_shows_the_best() {
        let over_tcp = |number, standing| RelayStatus {
            local: Local::connection(number).unwrap(),
            ..status(1, standing)
        };
        let mut log = RelayLog::default();
        let udp = status(1, RelayState::Unusable);
        log.look(vec![udp, over_tcp(0, RelayState::InUse), over_tcp(1, RelayState::Unusable)], &[]);
        log.look(vec![udp, over_tcp(2, RelayState::Available)], &[]);
        let tallies = log.tallies(&[], &[]);
        let told: Vec<_> = tallies.iter().map(|tally| (tally.name.as_str(), tally.standing)).collect();
        let expected = [("relay 192.0.2.1:1 over TCP", "available"), ("relay 192.0.2.1:1", "unusable")];
        assert_eq!(told, expected);
    }

    #[test]
    fn a_long_list_of_useless_relays_is_cut_short() {
        let mut log = RelayLog::default();
        let relay = SocketAddr::from(([192, 0, 2, 1], 1));
        let warnings: Vec<_> = (0..9).filter_map(|_| log.on_trouble(relay, RelayTrouble::Silent)).collect();
        assert_eq!(warnings.len(), MAX_NAMED_RELAYS + 1);
        assert!(warnings[MAX_NAMED_RELAYS].contains("-v"), "{warnings:?}");
    }

    #[test]
    fn one_sentence_says_why_relays_did_not_help() {
        let verdict = |standings: &[RelayState]| {
            let mut log = RelayLog::default();
            let relays = standings.iter().zip(1..).map(|(standing, port)| status(port, *standing));
            log.look(relays.collect(), &[]);
            log.verdict(&[direct(1_000)]).unwrap_or_default()
        };
        assert_eq!(verdict(&[]), "");
        assert!(verdict(&[RelayState::Unusable]).contains("none of them is usable"));
        assert!(
            verdict(&[RelayState::Shares, RelayState::Available]).contains("your uplink is the bottleneck")
        );
        assert!(verdict(&[RelayState::Reserve, RelayState::Unusable]).contains("twice as long"));
        assert!(verdict(&[RelayState::Untried, RelayState::Trying]).contains("before one was found"));
        assert!(verdict(&[RelayState::Available]).contains("not needed"));
    }
}
