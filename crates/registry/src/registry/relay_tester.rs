//! Runs the tests of relays: of those that enrol, and of those that are tested again.

use super::applicants::{Applicants, TestOutcome};
use super::retests::Retests;
use crate::grant_minting;
use crate::message::Failure;
use crate::relay_tests::{Key, RelayTests};
use crate::store::{Epoch, RelayRow};
use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use byway_engine::Handle;
use byway_wire::heartbeat::Heartbeat;
use byway_wire::relay::{Word, canonical};
use byway_wire::{Instant, LinkChange, Local};
use core::net::SocketAddr;

/// The registry's own addresses, by socket.
type Locals = BTreeMap<Local, SocketAddr>;
/// The address to test, and the socket and relay word for its test. `None`: there is no socket of
/// its family.
type RelayTest = (SocketAddr, Option<(Local, Word)>);

/// All tests of relays, and the relays that wait for theirs.
#[derive(Debug)]
pub(super) struct RelayTester {
    tests: RelayTests,
    applicants: Applicants,
    retests: Retests,
    /// Sockets used only for tests. No host sends to them, so a NAT has no reason to admit packets
    /// from them.
    probes: Locals,
}

impl RelayTester {
    pub fn new(secret: [u8; 32]) -> Self {
        let (applicants, retests) = (Applicants::new(), Retests::new());
        Self { tests: RelayTests::new(secret), applicants, retests, probes: Locals::new() }
    }

    /// Notes that a socket for tests came or went.
    pub fn set_probe(&mut self, change: LinkChange) {
        if change.up {
            self.probes.insert(change.local, change.address);
        } else {
            self.probes.remove(&change.local);
        }
    }

    /// Whether a socket is used only for tests.
    pub fn is_probe(&self, local: Local) -> bool {
        self.probes.contains_key(&local)
    }

    /// The exchange of test packets with relays.
    pub const fn tests(&mut self) -> &mut RelayTests {
        &mut self.tests
    }

    pub fn deadline(&self) -> Option<Instant> {
        self.tests.deadline()
    }

    /// Whether no other relay can be tested now.
    pub fn is_full(&self) -> bool {
        self.applicants.is_full() || self.tests.is_full()
    }

    /// Adds a relay that wants to enrol.
    pub fn enter(&mut self, handle: Handle, row: RelayRow, seen: bool) {
        self.applicants.enter(handle, row, seen);
    }

    /// Takes in the address from which a heartbeat came. If the relay is behind a NAT and wants to
    /// enrol, tests whether other hosts can reach it at that address.
    pub fn see(&mut self, now: Instant, beat: &Heartbeat, from: SocketAddr, epoch: &Epoch) {
        if let Some((key, row)) = self.applicants.see(beat, canonical(from)) {
            self.begin_seen(now, key, &row, epoch);
        }
    }

    fn begin_seen(&mut self, now: Instant, key: Key, row: &RelayRow, epoch: &Epoch) {
        match tests_of(row, epoch, &[&self.probes]).pop() {
            Some(test @ (_, Some(_))) => self.begin(now, key, test),
            _ => self.tests.fail(key, Failure::Unprobed),
        }
    }

    /// The session of a relay that wants in is over.
    pub fn forget(&mut self, handle: Handle) {
        self.applicants.forget(handle);
    }

    /// Starts the tests of a relay that wants to enrol. Returns false if no relay waits in this
    /// session.
    pub fn test(&mut self, now: Instant, handle: Handle, epoch: &Epoch, locals: &Locals) -> bool {
        let Some(row) = self.applicants.row_of(handle) else { return false };
        let tests = tests_of(row, epoch, &[&self.probes, locals]);
        for (key, test) in self.applicants.test(handle, &tests) {
            self.begin(now, key, test);
        }
        for (key, row) in self.applicants.see_earlier(handle) {
            self.begin_seen(now, key, &row, epoch);
        }
        true
    }

    /// Tests an enrolled relay again, unless it was tested a short time ago. Addresses of a family
    /// (IPv4, IPv6) for which this registry has no socket are left out. They do not count as
    /// failed: a registry that shares the store tested them before.
    pub fn retest(&mut self, now: Instant, row: &RelayRow, epoch: &Epoch, locals: &Locals) {
        if self.tests.is_full() || !self.retests.may_begin(now, row.relay) {
            return;
        }
        let tests: Vec<RelayTest> = tests_of(row, epoch, &[&self.probes, locals])
            .into_iter()
            .filter(|(_, test)| test.is_some())
            .collect();
        if tests.is_empty() {
            return;
        }
        self.retests.begin(now, row.relay);
        for (key, test) in self.applicants.test_again(row.relay, &tests) {
            self.begin(now, key, test);
        }
    }

    fn begin(&mut self, now: Instant, key: Key, (address, test): RelayTest) {
        match test {
            Some((local, word)) => self.tests.begin(now, key, word, local, address),
            None => self.tests.fail(key, Failure::NoSocket),
        }
    }

    /// Returns the next address's test that has ended, with the outcome for its relay if it was the
    /// last. `count` grows by each.
    pub fn next_end(&mut self, count: &mut u64) -> Option<Option<TestOutcome>> {
        let (key, outcome) = self.tests.next_end()?;
        *count += 1;
        Some(self.applicants.on_end(key, outcome))
    }
}

/// The tests of a relay's addresses. Each uses the first socket in `from` of the address's family.
fn tests_of(row: &RelayRow, epoch: &Epoch, from: &[&Locals]) -> Vec<RelayTest> {
    let word = grant_minting::own(row, epoch, &row.range_key.epoch_key(epoch.number));
    let of = |address: &SocketAddr| {
        let mut locals = from.iter().flat_map(|locals| locals.iter());
        let local = locals.find(|(_, own)| own.is_ipv4() == address.is_ipv4());
        (*address, local.and_then(|(local, _)| Some((*local, word.clone()?))))
    };
    row.addresses.iter().map(of).collect()
}
