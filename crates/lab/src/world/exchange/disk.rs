//! State that outlives a process: the contents of its host's disk, and the notes of the run.

use crate::record::{ExchangeRecord, LostSession};
use crate::setup::{EndChoice, ExchangeOptions};
use byway_wire::Instant;
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::collections::BTreeSet;
use std::rc::Rc;

/// The most mistakes that are recorded.
const MAX_MISTAKES: usize = 8;

/// The memory that both hosts of an exchange share, in place of separate disks: the disks'
/// contents, and the notes of the run. A host reads the other's disk only where byway's program
/// would be told by its peer what is there.
#[derive(Clone, Debug, Default)]
pub(super) struct SharedState(Rc<RefCell<ExchangeState>>);

/// See [`SharedState`].
#[derive(Debug, Default)]
struct ExchangeState {
    /// The objects that each host has whole: the sender's objects at the receiver, and the
    /// receiver's at the sender.
    whole: BTreeSet<u32>,
    whole_back: BTreeSet<u32>,
    /// Bytes of objects that the receiver does not have whole: the most of any session.
    partial: BTreeMap<u32, u64>,
    /// Bytes that the receiver's application read of each stream: the most of any session.
    streams: BTreeMap<u32, u64>,
    /// When all was done.
    finished: Option<Instant>,
    /// When the sender's application ended the exchange, done or not.
    stopped: bool,
    record: ExchangeRecord,
}

impl SharedState {
    /// Before anything happened.
    pub(super) fn new(options: &ExchangeOptions) -> Self {
        let present = options.objects_present.min(options.objects.len());
        let state = ExchangeState { whole: (0..present as u32).collect(), ..ExchangeState::default() };
        Self(Rc::new(RefCell::new(state)))
    }

    /// Returns the numbers and sizes of the objects that this host has and the peer's disk lacks.
    pub(super) fn lacking(&self, options: &ExchangeOptions, side: EndChoice) -> Vec<(u32, u64)> {
        let state = self.0.borrow();
        let (sizes, there) = match side {
            EndChoice::Sender => (&options.objects, &state.whole),
            EndChoice::Receiver => (&options.objects_back, &state.whole_back),
        };
        (0..).zip(sizes.iter().copied()).filter(|(number, _)| !there.contains(number)).collect()
    }

    /// Notes that an object of the peer is completely on this host's disk.
    pub(super) fn on_whole(&self, number: u32, side: EndChoice) {
        let mut state = self.0.borrow_mut();
        match side {
            EndChoice::Sender => state.whole_back.insert(number),
            EndChoice::Receiver => state.whole.insert(number),
        };
    }

    /// Notes that the receiver has `bytes` bytes of an object in one session.
    pub(super) fn on_part(&self, number: u32, bytes: u64) {
        let mut state = self.0.borrow_mut();
        let most = state.partial.entry(number).or_default();
        *most = (*most).max(bytes);
    }

    /// Notes that the receiver's application read `bytes` bytes of a stream in one session.
    pub(super) fn on_stream(&self, number: u32, bytes: u64) {
        let mut state = self.0.borrow_mut();
        let most = state.streams.entry(number).or_default();
        *most = (*most).max(bytes);
    }

    /// Whether both disks hold all that was to be moved, and all streams were read.
    pub(super) fn is_complete(&self, options: &ExchangeOptions) -> bool {
        let state = self.0.borrow();
        let streams = options.streams.iter().enumerate();
        state.whole.len() == options.objects.len()
            && state.whole_back.len() == options.objects_back.len()
            && streams.filter(|(_, stream)| stream.reset_after.is_none()).all(|(number, stream)| {
                state.streams.get(&(number as u32)).copied().unwrap_or_default() == stream.bytes
            })
    }

    /// The sender's application ended the exchange: at this time all was done, or it stopped early.
    pub(super) fn stop(&self, finished: Option<Instant>) {
        let mut state = self.0.borrow_mut();
        state.finished = finished;
        state.stopped = true;
    }

    /// Whether the sender's application ended the exchange, done or not.
    pub(super) fn is_stopped(&self) -> bool {
        self.0.borrow().stopped
    }

    /// When all was done.
    pub(super) fn finished(&self) -> Option<Instant> {
        self.0.borrow().finished
    }

    /// The record of the run so far.
    pub(super) fn notes(&self) -> ExchangeRecord {
        self.0.borrow().record.clone()
    }

    /// Notes something of the run.
    pub(super) fn note(&self, change: impl FnOnce(&mut ExchangeRecord)) {
        change(&mut self.0.borrow_mut().record);
    }

    /// The distinct bytes of the exchange that the receiver has.
    pub(super) fn received(&self, options: &ExchangeOptions) -> u64 {
        self.0.borrow().received(options)
    }

    /// Notes a violation, as a sentence.
    pub(super) fn blame(&self, what: String) {
        self.note(|notes| {
            // The first few tell all.
            if notes.mistakes.len() < MAX_MISTAKES {
                notes.mistakes.push(what);
            }
        });
    }

    /// Notes a lost session or a failed attempt.
    pub(super) fn lost(&self, now: Instant, connected: bool, paths: usize, why: String) {
        self.note(|notes| notes.lost.push(LostSession { at: now.as_secs_f64(), connected, paths, why }));
    }
}

impl ExchangeState {
    /// The distinct bytes of the exchange that the receiver has.
    fn received(&self, options: &ExchangeOptions) -> u64 {
        let whole: u64 = self.whole.iter().filter_map(|number| options.objects.get(*number as usize)).sum();
        let partial: u64 =
            self.partial.iter().filter(|(number, _)| !self.whole.contains(number)).map(|it| it.1).sum();
        whole + partial + self.streams.values().sum::<u64>()
    }
}
