//! Decides of which relays a sender complains to the registry that listed them, and when. A
//! complaint is about a relay that is of no use, such as one that does not answer. The registry
//! then tests the relay.

use crate::message::{MAX_COMPLAINTS, RelayList};
use alloc::collections::{BTreeMap, BTreeSet};
use alloc::vec::Vec;
use byway_engine::{RelayState, RelayStatus, RelayTrouble};
use byway_wire::heartbeat::RelayId;
use byway_wire::relay::Reason;
use byway_wire::{Duration, Instant};
use core::net::SocketAddr;

/// Time between two complaints: several relays often turn out to be of no use at once.
const COMPLAINT_INTERVAL: Duration = Duration::from_secs(5);
/// Time from a complaint of a relay to the next of the same relay.
const REPEAT_COMPLAINT_DELAY: Duration = Duration::from_secs(600);
/// Relays that are known at most: more than a session has.
const MAX_RELAYS: usize = 4_096;

/// Decides which relays one sender complains of, and when.
#[derive(Clone, Debug, Default)]
pub struct Complaints {
    /// The relay at each address.
    names: BTreeMap<SocketAddr, RelayId>,
    told: BTreeMap<RelayId, Instant>,
    due: BTreeSet<RelayId>,
    next: Option<Instant>,
}

impl Complaints {
    /// Notes the relays that the registry named in a list.
    pub fn learn(&mut self, list: &RelayList) {
        for listed in &list.relays {
            for address in listed.word.relays() {
                if self.names.len() < MAX_RELAYS {
                    self.names.insert(*address, listed.relay);
                }
            }
        }
    }

    /// Takes in how far the relays of a session are.
    pub fn look(&mut self, now: Instant, relays: &[RelayStatus]) {
        for status in relays.iter().filter(|status| may_be_its_fault(status)) {
            let Some(name) = self.names.get(&status.relay) else { continue };
            if self.told.get(name).is_none_or(|told| now.since(*told) >= REPEAT_COMPLAINT_DELAY)
                && self.due.insert(*name)
            {
                self.next.get_or_insert(now + COMPLAINT_INTERVAL);
            }
        }
    }

    /// The relays to complain of now; mostly none.
    pub fn take(&mut self, now: Instant) -> Vec<RelayId> {
        if self.next.is_none_or(|next| next > now) {
            return Vec::new();
        }
        let mut relays = Vec::new();
        while relays.len() < MAX_COMPLAINTS
            && let Some(name) = self.due.pop_first()
        {
            self.told.insert(name, now);
            relays.push(name);
        }
        self.next = (!self.due.is_empty()).then_some(now + COMPLAINT_INTERVAL);
        relays
    }

    /// Returns the time at which the next complaint may be due. `None`: there is no complaint.
    #[must_use]
    pub const fn deadline(&self) -> Option<Instant> {
        self.next
    }
}

/// False for a limit that the sender reached, and for a relay that lends nothing to anyone.
fn may_be_its_fault(status: &RelayStatus) -> bool {
    match (status.standing, status.trouble) {
        (RelayState::Unusable, None | Some(RelayTrouble::Silent)) => true,
        (RelayState::Unusable, Some(RelayTrouble::Refused(reason))) => {
            matches!(reason, Reason::UnknownWord | Reason::UnknownRange | Reason::Unreachable)
        }
        (RelayState::Available | RelayState::Reserve | RelayState::Trying, None) => status.silences > 0,
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::message::{Label, Listed};
    use alloc::vec;
    use byway_wire::Local;
    use byway_wire::relay::{Grant, GrantSecret, Minute, QuotaClass, RateClass, Scope, Terms, Word};

    fn address(index: u8) -> SocketAddr {
        SocketAddr::from(([192, 0, 2, index], 4748))
    }

    fn list(relays: u8) -> RelayList {
        let terms = Terms {
            expiry: Minute::MAX,
            rate: RateClass::UNLIMITED,
            quota: QuotaClass::UNLIMITED,
            scope: Scope::ALL,
        };
        let listed = |index: u8| Listed {
            relay: RelayId([index; 16]),
            operator: Label::default(),
            region: Label::default(),
            seen: 0,
            load: 0,
            tcp: false,
            word: Word::new(vec![address(index)], Grant { id: 1, terms }, GrantSecret::new([1; 16])).unwrap(),
        };
        RelayList { made: 0, until: 0, more: false, relays: (0..relays).map(listed).collect() }
    }

    fn status(index: u8, standing: RelayState, trouble: Option<RelayTrouble>, silences: u32) -> RelayStatus {
        let relay = address(index);
        RelayStatus {
            relay,
            local: Local(0),
            standing,
            trouble,
            rtt: None,
            in_time: false,
            goodput: 0,
            silences,
        }
    }

    #[test]
    fn several_are_told_at_once_and_each_once_in_a_while() {
        let (mut complaints, at) = (Complaints::default(), |s| Instant::ZERO + Duration::from_secs(s));
        complaints.learn(&list(40));
        let all: Vec<_> = (0..50).map(|index| status(index, RelayState::Unusable, None, 0)).collect();
        complaints.look(at(1), &all[..1]);
        complaints.look(at(2), &all);
        assert_eq!((complaints.deadline(), complaints.take(at(5))), (Some(at(6)), vec![]));
        assert_eq!([6, 11, 16, 21].map(|s| complaints.take(at(s)).len()), [16, 16, 8, 0]);
        complaints.look(at(600), &all);
        assert_eq!(complaints.deadline(), None, "the registry knows");
        complaints.look(at(607), &all[..9]);
        assert_eq!(complaints.take(at(612)).len(), 9);
    }

    #[test]
    fn what_is_no_fault_of_the_relay_is_not_told() {
        let refused = |reason| Some(RelayTrouble::Refused(reason));
        let unusable = |trouble| may_be_its_fault(&status(0, RelayState::Unusable, trouble, 0));
        assert!(
            unusable(None) && unusable(Some(RelayTrouble::Silent)) && unusable(refused(Reason::UnknownWord))
        );
        assert!(!unusable(Some(RelayTrouble::PeerCannot)) && !unusable(Some(RelayTrouble::NoRoute)));
        for reason in
            [Reason::OverQuota, Reason::RelayQuota, Reason::Draining, Reason::EpochOver, Reason::Destination]
        {
            assert!(!unusable(refused(reason)), "{reason}");
        }
        let lived = |standing, silences| may_be_its_fault(&status(0, standing, None, silences));
        assert!(lived(RelayState::Available, 1) && !lived(RelayState::Available, 0));
        assert!(
            !lived(RelayState::Shares, 9)
                && !lived(RelayState::InUse, 9)
                && !lived(RelayState::CarriedLittle, 9)
        );
    }
}
