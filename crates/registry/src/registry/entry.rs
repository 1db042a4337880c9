//! How a relay gets in: what it says, its test, and what the store makes of it. How it is tested again.

use super::Registry;
use super::applicants::{Applicant, Tested};
use crate::message::{Answer, Enrol, Failure, Reason};
use crate::mint;
use crate::store::{self, RelayRow};
use crate::word::{Kind, Token};
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use byway_engine::Handle;
use byway_engine::handshake::PublicKey;
use byway_wire::heartbeat::RelayId;
use byway_wire::relay::{self, canonical};
use byway_wire::{Instant, Local};
use core::net::SocketAddr;

impl Registry {
    pub(super) fn on_enrol(
        &mut self,
        now: Instant,
        handle: Handle,
        peer: PublicKey,
        mut enrol: Enrol,
    ) -> Result<(), Reason> {
        let word = self.words.find(&enrol.token, Kind::Join, self.unix(now))?;
        let known = self.book.get(enrol.relay).filter(|relay| !relay.row.revoked);
        if known.is_some_and(|relay| relay.row.key != peer) {
            return Err(Reason::OtherKey);
        }
        if known.is_none() && word.uses == Some(0) {
            return Err(Reason::UsedUp);
        }
        if self.applicants.is_full() || self.trials.is_full() {
            return Err(Reason::Busy);
        }
        enrol.addresses.iter_mut().for_each(|address| *address = canonical(*address));
        enrol.addresses.sort_unstable();
        enrol.addresses.dedup();
        let row = RelayRow {
            relay: enrol.relay,
            key: peer,
            word: enrol.token.number,
            range: enrol.range,
            range_key: enrol.range_key,
            rate: enrol.rate,
            quota: enrol.quota,
            operator: enrol.operator,
            region: enrol.region,
            addresses: enrol.addresses,
            revoked: false,
        };
        self.applicants.enter(handle, row);
        let answer = Answer::Epoch { epoch: self.epoch.number, last_holds: self.last_holds(now) };
        self.reply(handle, &answer);
        Ok(())
    }

    /// A relay knows the epoch: it is tested.
    pub(super) fn on_ready(&mut self, now: Instant, handle: Handle) -> Result<(), Reason> {
        let Some(row) = self.applicants.row_of(handle).cloned() else { return Err(Reason::Malformed) };
        let tests = self.tests_of(&row);
        for (key, outcome) in self.applicants.test(handle, &tests) {
            self.begin_test(now, key, outcome);
        }
        Ok(())
    }

    /// Takes in tests that are over.
    pub(super) fn take_tests(&mut self, now: Instant) {
        while let Some((key, outcome)) = self.trials.next_end() {
            self.counters.tests += 1;
            match self.applicants.on_end(key, outcome) {
                None => {}
                Some(Tested::Applicant(applicant)) => {
                    let handle = applicant.handle;
                    self.tested(now, applicant);
                    self.serve(now, handle);
                }
                Some(Tested::Again(relay, passed)) if passed => self.book.passed(relay),
                Some(Tested::Again(relay, _)) => {
                    self.counters.tests_failed += 1;
                    self.book.failed(relay);
                    self.log(now, "refused", relay.to_string(), "it failed a test".to_string());
                }
            }
        }
    }

    /// Somebody found relays of no use. That alone takes none off the list: the registry's own test does.
    pub(super) fn on_complaint(
        &mut self,
        now: Instant,
        handle: Handle,
        token: &Token,
        relays: &[RelayId],
    ) -> Result<(), Reason> {
        let number = self.words.find(token, Kind::Use, self.unix(now))?.number;
        self.words.may_complain(now, number, relays.len())?;
        self.counters.complaints += 1;
        for relay in relays {
            self.retest(now, *relay);
        }
        self.reply(handle, &Answer::Heard);
        Ok(())
    }

    /// What each address is tested with, and from where.
    fn tests_of(&self, row: &RelayRow) -> Vec<(SocketAddr, Option<(Local, relay::Word)>)> {
        let key = row.range_key.epoch_key(self.epoch.number);
        let word = mint::own(row, &self.epoch, &key);
        let of = |address: &SocketAddr| {
            let local = self.locals.iter().find(|(_, own)| own.is_ipv4() == address.is_ipv4());
            (*address, local.and_then(|(local, _)| Some((*local, word.clone()?))))
        };
        row.addresses.iter().map(of).collect()
    }

    fn begin_test(&mut self, now: Instant, key: u64, test: (SocketAddr, Option<(Local, relay::Word)>)) {
        match test {
            (address, Some((local, word))) => self.trials.begin(now, key, word, local, address),
            (_, None) => self.trials.fail(key, Failure::NoSocket),
        }
    }

    /// Tests a relay again that is in, unless that was done of late. At an address to which this registry has no socket another one
    /// tested it.
    pub(super) fn retest(&mut self, now: Instant, name: RelayId) {
        let busy = self.trials.is_full() || !self.retests.may_begin(now, name);
        let Some(relay) = self.book.get(name).filter(|relay| !busy && !relay.row.revoked) else { return };
        let tests: Vec<_> =
            self.tests_of(&relay.row).into_iter().filter(|(_, test)| test.is_some()).collect();
        if tests.is_empty() {
            return;
        }
        self.retests.begin(now, name);
        for (key, test) in self.applicants.test_again(name, &tests) {
            self.begin_test(now, key, test);
        }
    }

    /// All addresses of a relay that wants in are tested.
    fn tested(&mut self, now: Instant, applicant: Applicant) {
        if applicant.row.addresses.is_empty() {
            self.counters.tests_failed += 1;
            let failures: Vec<String> =
                applicant.failed.iter().map(|(address, why)| alloc::format!("{address}: {why}")).collect();
            self.log(now, "refused", applicant.row.relay.to_string(), failures.join("; "));
            return self.refuse(applicant.handle, Reason::Untested);
        }
        let at = self.unix(now);
        self.desk.enrol(applicant, at);
    }

    /// The store has written an enrolment, or refused it.
    pub(super) fn enrolled(&mut self, now: Instant, applicant: Applicant, outcome: Result<(), store::Unfit>) {
        let Applicant { handle, row, failed, .. } = applicant;
        let reason = match outcome {
            Ok(()) => None,
            Err(store::Unfit::Word) => Some(Reason::UnknownWord),
            Err(store::Unfit::UsedUp) => Some(Reason::UsedUp),
            Err(store::Unfit::Crowded) => Some(Reason::Crowded),
            Err(store::Unfit::OtherKey) => Some(Reason::OtherKey),
        };
        let (name, passed) = (row.relay, row.addresses.clone());
        if let Some(reason) = reason {
            self.log(now, "refused", name.to_string(), reason.to_string());
            return self.refuse(handle, reason);
        }
        let known = self.book.get(name).is_some();
        let addresses: Vec<String> = passed.iter().map(ToString::to_string).collect();
        let detail = alloc::format!("operator {:?}, at {}", row.operator.as_str(), addresses.join(" "));
        self.log(now, if known { "changed" } else { "enrolled" }, name.to_string(), detail);
        self.book.enter(row);
        self.book.set_epoch_of(name, self.epoch.number);
        self.book.found_alive(now, name);
        self.counters.enrolled += 1;
        let beat_millis = u32::try_from(self.book.interval().as_millis()).unwrap_or(u32::MAX);
        self.reply(handle, &Answer::Enrolled { beat_millis, passed, failed });
    }
}
