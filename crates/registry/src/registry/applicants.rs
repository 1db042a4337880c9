//! Relays that are tested: those that want in, and those that somebody complained of.

use crate::message::Failure;
use crate::store::RelayRow;
use crate::trial::Key;
use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use byway_engine::Handle;
use byway_wire::heartbeat::RelayId;
use core::net::SocketAddr;

/// Relays that want in at once.
const MOST: usize = 1_024;

/// A relay that wants in.
#[derive(Debug)]
pub(super) struct Applicant {
    /// The session that it waits in.
    pub handle: Handle,
    /// What is to be kept of it, with the addresses that passed.
    pub row: RelayRow,
    /// Addresses that did not.
    pub failed: Vec<(SocketAddr, Failure)>,
    /// Addresses that are being tested.
    left: usize,
    begun: bool,
}

#[derive(Debug)]
enum Purpose {
    Applicant(Handle, SocketAddr),
    Again(RelayId),
}

/// What came of a test of all addresses.
#[derive(Debug)]
pub(super) enum Tested {
    /// Of a relay that wants in.
    Applicant(Applicant),
    /// Of one that is in, and whether it passed at all its addresses.
    Again(RelayId, bool),
}

/// All of them.
#[derive(Debug)]
pub(super) struct Applicants {
    applicants: BTreeMap<Handle, Applicant>,
    again: BTreeMap<RelayId, (usize, bool)>,
    tests: BTreeMap<Key, Purpose>,
    next: Key,
}

impl Applicants {
    pub const fn new() -> Self {
        Self { applicants: BTreeMap::new(), again: BTreeMap::new(), tests: BTreeMap::new(), next: 0 }
    }

    pub fn is_full(&self) -> bool {
        self.applicants.len() >= MOST
    }

    pub fn enter(&mut self, handle: Handle, row: RelayRow) {
        let applicant = Applicant { handle, row, failed: Vec::new(), left: 0, begun: false };
        self.applicants.insert(handle, applicant);
    }

    /// Its session is over.
    pub fn forget(&mut self, handle: Handle) {
        self.applicants.remove(&handle);
    }

    /// What an applicant told, if it waits for its test.
    pub fn row_of(&self, handle: Handle) -> Option<&RelayRow> {
        self.applicants.get(&handle).filter(|applicant| !applicant.begun).map(|applicant| &applicant.row)
    }

    /// Begins the tests of an applicant's addresses, and names them.
    pub fn test<T: Clone>(
        &mut self,
        handle: Handle,
        tests: &[(SocketAddr, T)],
    ) -> Vec<(Key, (SocketAddr, T))> {
        if let Some(applicant) = self.applicants.get_mut(&handle) {
            (applicant.left, applicant.begun) = (tests.len(), true);
            applicant.row.addresses.clear();
        }
        self.name(tests, |address| Purpose::Applicant(handle, address))
    }

    /// Begins the tests of the addresses of a relay that is in, and names them.
    pub fn test_again<T: Clone>(
        &mut self,
        relay: RelayId,
        tests: &[(SocketAddr, T)],
    ) -> Vec<(Key, (SocketAddr, T))> {
        self.again.insert(relay, (tests.len(), true));
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

    /// The test of an address is over; what came of all, if it was the last.
    pub fn on_end(&mut self, key: Key, outcome: Result<(), Failure>) -> Option<Tested> {
        match self.tests.remove(&key)? {
            Purpose::Applicant(handle, address) => {
                let applicant = self.applicants.get_mut(&handle)?;
                match outcome {
                    Ok(()) => applicant.row.addresses.push(address),
                    Err(why) => applicant.failed.push((address, why)),
                }
                applicant.left -= 1;
                if applicant.left > 0 {
                    return None;
                }
                self.applicants.remove(&handle).map(Tested::Applicant)
            }
            Purpose::Again(relay) => {
                let (left, passed) = self.again.get_mut(&relay)?;
                (*left, *passed) = (left.saturating_sub(1), *passed && outcome.is_ok());
                if *left > 0 {
                    return None;
                }
                let (_, passed) = self.again.remove(&relay)?;
                Some(Tested::Again(relay, passed))
            }
        }
    }
}
