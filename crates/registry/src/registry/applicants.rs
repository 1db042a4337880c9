//! Relays that are tested: those that want in, and those that somebody complained of.

use crate::message::{Failure, MAX_ADDRESSES, Reason};
use crate::relay_tests::{Key, Passed};
use crate::store::RelayRow;
use alloc::boxed::Box;
use alloc::collections::BTreeMap;
use alloc::vec;
use alloc::vec::Vec;
use byway_engine::Handle;
use byway_wire::heartbeat::{Heartbeat, RelayId};
use core::net::SocketAddr;

/// Applicants at once.
const MAX_APPLICANTS: usize = 1_024;
/// The most source addresses of one applicant's heartbeats: one of each family.
const MAX_SEEN_ADDRESSES: usize = 2;

/// A relay that wants in.
#[derive(Debug)]
pub(super) struct Applicant {
    /// The session in which the applicant waits.
    pub handle: Handle,
    /// The row to store for the relay, with the addresses that passed.
    pub row: RelayRow,
    /// Addresses that did not.
    pub failed: Vec<(SocketAddr, Failure)>,
    /// Addresses that are being tested.
    left: usize,
    begun: bool,
    /// The addresses that the relay named, once they are tested.
    told: Vec<SocketAddr>,
    /// The tested source addresses of the relay's heartbeats. `None`: they need no test.
    seen: Option<Vec<SocketAddr>>,
}

impl Applicant {
    /// Returns the reason to refuse a relay that failed at all its addresses.
    pub fn refusal(&self) -> Reason {
        let failures = || self.failed.iter().map(|(_, why)| *why);
        match failures().find(|why| is_of_nat(*why)) {
            _ if failures().any(|why| why == Failure::Clock) => Reason::Clock,
            Some(Failure::Filtered) => Reason::Filtered,
            Some(_) => Reason::Unprobed,
            None => Reason::Untested,
        }
    }
}

/// Whether a failure is about the packets that a NAT admits.
pub(super) const fn is_of_nat(why: Failure) -> bool {
    matches!(why, Failure::Filtered | Failure::Unprobed)
}

#[derive(Debug)]
enum Purpose {
    Applicant(Handle, SocketAddr),
    /// Test of the source address of an applicant's heartbeats.
    Seen(Handle, SocketAddr),
    Again(RelayId),
}

/// The result of the tests of all addresses of a relay.
#[derive(Debug)]
pub(super) enum TestOutcome {
    /// The outcome for a relay that wants to enrol.
    Applicant(Box<Applicant>),
    /// The outcome for an enrolled relay, with the transports over which all its addresses passed.
    /// `None`: it failed.
    Again(RelayId, Option<Passed>),
}

/// All relays that want to enrol.
#[derive(Debug)]
pub(super) struct Applicants {
    applicants: BTreeMap<Handle, Applicant>,
    names: BTreeMap<RelayId, Handle>,
    again: BTreeMap<RelayId, (usize, Option<Passed>)>,
    tests: BTreeMap<Key, Purpose>,
    next: Key,
}

impl Applicants {
    pub fn new() -> Self {
        let (applicants, names) = (BTreeMap::new(), BTreeMap::new());
        Self { applicants, names, again: BTreeMap::new(), tests: BTreeMap::new(), next: 0 }
    }

    pub fn is_full(&self) -> bool {
        self.applicants.len() >= MAX_APPLICANTS
    }

    /// Adds an applicant. `seen`: the source address of its heartbeats is to be tested too.
    pub fn enter(&mut self, handle: Handle, row: RelayRow, seen: bool) {
        self.names.insert(row.relay, handle);
        let seen = seen.then(Vec::new);
        let applicant =
            Applicant { handle, row, failed: Vec::new(), left: 0, begun: false, told: Vec::new(), seen };
        self.applicants.insert(handle, applicant);
    }

    /// Forgets an applicant whose session is over.
    pub fn forget(&mut self, handle: Handle) {
        self.take(handle);
    }

    fn take(&mut self, handle: Handle) -> Option<Applicant> {
        let applicant = self.applicants.remove(&handle)?;
        if self.names.get(&applicant.row.relay) == Some(&handle) {
            self.names.remove(&applicant.row.relay);
        }
        Some(applicant)
    }

    /// Takes in a heartbeat of an applicant (a relay that enrols), and the address it came from. If
    /// that address is to be tested now, returns the number of the new test, and a copy of the
    /// applicant's `RelayRow` with only this address.
    pub fn see(&mut self, beat: &Heartbeat, from: SocketAddr) -> Option<(Key, RelayRow)> {
        let handle = *self.names.get(&beat.report.relay)?;
        let applicant = self.applicants.get_mut(&handle)?;
        let seen = applicant.seen.as_mut()?;
        let is_new = seen.len() < MAX_SEEN_ADDRESSES && !seen.contains(&from);
        if !is_new || !beat.is_authentic(&applicant.row.range_key.heartbeat_key()) {
            return None;
        }
        seen.push(from);
        if applicant.begun { self.test_seen(handle, from) } else { None }
    }

    /// Tests for source addresses of heartbeats that arrived before the applicant's tests began.
    pub fn see_earlier(&mut self, handle: Handle) -> Vec<(Key, RelayRow)> {
        let seen = self.applicants.get(&handle).and_then(|applicant| applicant.seen.clone());
        seen.into_iter().flatten().filter_map(|from| self.test_seen(handle, from)).collect()
    }

    fn test_seen(&mut self, handle: Handle, from: SocketAddr) -> Option<(Key, RelayRow)> {
        let applicant = self.applicants.get_mut(&handle)?;
        if applicant.told.contains(&from) {
            return None;
        }
        applicant.left += 1;
        self.next += 1;
        self.tests.insert(self.next, Purpose::Seen(handle, from));
        Some((self.next, RelayRow { addresses: vec![from], ..applicant.row.clone() }))
    }

    /// The row of an applicant whose tests have not begun.
    pub fn row_of(&self, handle: Handle) -> Option<&RelayRow> {
        self.applicants.get(&handle).filter(|applicant| !applicant.begun).map(|applicant| &applicant.row)
    }

    /// Begins the tests of an applicant's addresses. Returns each with its key.
    pub fn test<T: Clone>(
        &mut self,
        handle: Handle,
        tests: &[(SocketAddr, T)],
    ) -> Vec<(Key, (SocketAddr, T))> {
        if let Some(applicant) = self.applicants.get_mut(&handle) {
            (applicant.left, applicant.begun) = (tests.len(), true);
            applicant.told = core::mem::take(&mut applicant.row.addresses);
        }
        self.name(tests, |address| Purpose::Applicant(handle, address))
    }

    /// Begins the tests of an enrolled relay's addresses. Returns the keys of these tests.
    pub fn test_again<T: Clone>(
        &mut self,
        relay: RelayId,
        tests: &[(SocketAddr, T)],
    ) -> Vec<(Key, (SocketAddr, T))> {
        self.again.insert(relay, (tests.len(), Some(Passed { tcp: false })));
        self.name(tests, |_| Purpose::Again(relay))
    }

    fn name<T: Clone>(
        &mut self,
        tests: &[(SocketAddr, T)],
        purpose: impl Fn(SocketAddr) -> Purpose,
    ) -> Vec<(Key, (SocketAddr, T))> {
        let named = tests.iter().map(|test| {
            self.next += 1;
            self.tests.insert(self.next, purpose(test.0));
            (self.next, test.clone())
        });
        named.collect()
    }

    fn tested(
        &mut self,
        handle: Handle,
        address: SocketAddr,
        outcome: Result<Passed, Failure>,
    ) -> Option<TestOutcome> {
        let applicant = self.applicants.get_mut(&handle)?;
        match outcome {
            Ok(passed) if applicant.row.addresses.len() < MAX_ADDRESSES => {
                applicant.row.addresses.push(address);
                applicant.row.tcp |= passed.tcp;
            }
            Ok(_) => {}
            Err(why) => applicant.failed.push((address, why)),
        }
        applicant.left -= 1;
        if applicant.left > 0 {
            return None;
        }
        self.take(handle).map(|applicant| TestOutcome::Applicant(Box::new(applicant)))
    }

    /// Notes the result of one address's test. Returns the outcome for the relay, if it was its
    /// last test.
    pub fn on_end(&mut self, key: Key, outcome: Result<Passed, Failure>) -> Option<TestOutcome> {
        match self.tests.remove(&key)? {
            Purpose::Applicant(handle, address) => self.tested(handle, address, outcome),
            Purpose::Seen(handle, address) => {
                let filtered = |why| if why == Failure::NoAnswer { Failure::Filtered } else { why };
                self.tested(handle, address, outcome.map_err(filtered))
            }
            Purpose::Again(relay) => {
                let (left, passed) = self.again.get_mut(&relay)?;
                *left = left.saturating_sub(1);
                *passed = passed.zip(outcome.ok()).map(|(all, this)| Passed { tcp: all.tcp || this.tcp });
                if *left > 0 {
                    return None;
                }
                let (_, passed) = self.again.remove(&relay)?;
                Some(TestOutcome::Again(relay, passed))
            }
        }
    }
}
