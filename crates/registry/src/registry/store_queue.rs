//! Requests to the store, and the steps after its replies.

use super::applicants::Applicant;
use crate::store::{AuditEntry, LastHeartbeat, StoreRequest};
use alloc::boxed::Box;
use alloc::collections::{BTreeMap, VecDeque};
use alloc::vec::Vec;

/// Entries of the log that wait to be written at most. Further ones are left out.
const MAX_QUEUED_ENTRIES: usize = 1_000;

/// The step after the store's reply to a request.
#[derive(Debug)]
pub(super) enum PendingReply {
    Changes,
    Roll,
    Enrol(Box<Applicant>),
    Note(Vec<AuditEntry>),
}

/// Requests to the store, and the steps after their replies.
#[derive(Debug, Default)]
pub(super) struct StoreQueue {
    requests: VecDeque<(u64, StoreRequest)>,
    pending: BTreeMap<u64, PendingReply>,
    next: u64,
    revision: u64,
    refreshing: bool,
    rolling: bool,
    noting: bool,
    entries: Vec<AuditEntry>,
}

impl StoreQueue {
    pub fn next_request(&mut self) -> Option<(u64, StoreRequest)> {
        self.requests.pop_front()
    }

    pub fn take(&mut self, number: u64) -> Option<PendingReply> {
        let pending = self.pending.remove(&number)?;
        match &pending {
            PendingReply::Changes => self.refreshing = false,
            PendingReply::Roll => self.rolling = false,
            PendingReply::Note(_) => self.noting = false,
            PendingReply::Enrol(_) => {}
        }
        Some(pending)
    }

    pub const fn set_revision(&mut self, revision: u64) {
        if revision > self.revision {
            self.revision = revision;
        }
    }

    /// Requests the changes since the last revision, unless such a request is already in progress.
    pub fn refresh(&mut self) {
        if !core::mem::replace(&mut self.refreshing, true) {
            self.ask(StoreRequest::Changes { since: self.revision }, PendingReply::Changes);
        }
    }

    pub fn roll(&mut self, from: u32, at: u64) {
        if !core::mem::replace(&mut self.rolling, true) {
            self.ask(StoreRequest::Roll { from, at }, PendingReply::Roll);
        }
    }

    /// Asks the store to enrol a relay. There are at most as many such requests as relays that are
    /// tested at once.
    pub fn enrol(&mut self, applicant: Applicant, at: u64) {
        let row = applicant.row.clone();
        self.ask(StoreRequest::Enrol { row, at }, PendingReply::Enrol(Box::new(applicant)));
    }

    /// Something for the log, with the next note.
    pub fn log(&mut self, entry: AuditEntry) {
        if self.entries.len() < MAX_QUEUED_ENTRIES {
            self.entries.push(entry);
        }
    }

    /// Entries that were not written.
    pub fn keep(&mut self, entries: Vec<AuditEntry>) {
        entries.into_iter().for_each(|entry| self.log(entry));
    }

    /// Requests that `seen` and the log be written. If this fails, later heartbeats bring the times
    /// again.
    pub fn note(&mut self, seen: Vec<LastHeartbeat>) {
        if (seen.is_empty() && self.entries.is_empty()) || self.noting {
            return;
        }
        self.noting = true;
        let entries = core::mem::take(&mut self.entries);
        self.ask(StoreRequest::Note { seen, entries: entries.clone() }, PendingReply::Note(entries));
    }

    fn ask(&mut self, request: StoreRequest, pending: PendingReply) {
        self.next += 1;
        self.requests.push_back((self.next, request));
        self.pending.insert(self.next, pending);
    }
}
