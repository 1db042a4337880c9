//! What the store is asked for, and what waits for its answers.

use super::applicants::Applicant;
use crate::store::{Entry, Request, Seen};
use alloc::boxed::Box;
use alloc::collections::{BTreeMap, VecDeque};
use alloc::vec::Vec;

/// Entries of the log that wait to be written. Others are left out.
const ENTRIES: usize = 1_000;

/// What is done with an answer.
#[derive(Debug)]
pub(super) enum Pending {
    Changes,
    Roll,
    Enrol(Box<Applicant>),
    Note(Vec<Entry>),
}

/// Requests and what waits for them.
#[derive(Debug, Default)]
pub(super) struct Desk {
    requests: VecDeque<(u64, Request)>,
    pending: BTreeMap<u64, Pending>,
    next: u64,
    revision: u64,
    refreshing: bool,
    rolling: bool,
    noting: bool,
    entries: Vec<Entry>,
}

impl Desk {
    pub fn next_request(&mut self) -> Option<(u64, Request)> {
        self.requests.pop_front()
    }

    pub fn take(&mut self, number: u64) -> Option<Pending> {
        let pending = self.pending.remove(&number)?;
        match &pending {
            Pending::Changes => self.refreshing = false,
            Pending::Roll => self.rolling = false,
            Pending::Note(_) => self.noting = false,
            Pending::Enrol(_) => {}
        }
        Some(pending)
    }

    pub const fn set_revision(&mut self, revision: u64) {
        if revision > self.revision {
            self.revision = revision;
        }
    }

    /// Asks for what changed, if that is not asked already.
    pub fn refresh(&mut self) {
        if !core::mem::replace(&mut self.refreshing, true) {
            self.ask(Request::Changes { since: self.revision }, Pending::Changes);
        }
    }

    pub fn roll(&mut self, from: u32, at: u64) {
        if !core::mem::replace(&mut self.rolling, true) {
            self.ask(Request::Roll { from, at }, Pending::Roll);
        }
    }

    /// There are no more of these than relays that are tested at once.
    pub fn enrol(&mut self, applicant: Applicant, at: u64) {
        let row = applicant.row.clone();
        self.ask(Request::Enrol { row, at }, Pending::Enrol(Box::new(applicant)));
    }

    /// Something for the log, with the next note.
    pub fn log(&mut self, entry: Entry) {
        if self.entries.len() < ENTRIES {
            self.entries.push(entry);
        }
    }

    /// Entries that were not written.
    pub fn keep(&mut self, entries: Vec<Entry>) {
        entries.into_iter().for_each(|entry| self.log(entry));
    }

    /// Asks that this and the log be written. What is lost if that fails is told again by the next heartbeats.
    pub fn note(&mut self, seen: Vec<Seen>) {
        if (seen.is_empty() && self.entries.is_empty()) || self.noting {
            return;
        }
        self.noting = true;
        let entries = core::mem::take(&mut self.entries);
        self.ask(Request::Note { seen, entries: entries.clone() }, Pending::Note(entries));
    }

    fn ask(&mut self, request: Request, pending: Pending) {
        self.next += 1;
        self.requests.push_back((self.next, request));
        self.pending.insert(self.next, pending);
    }
}
