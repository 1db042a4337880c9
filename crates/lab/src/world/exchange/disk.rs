//! What outlives a process: what its host's disk holds, and the notes of the run.

use crate::record::{ExchangeRecord, LostSession};
use crate::setup::ExchangeOptions;
use byway_wire::Instant;
use std::cell::{Ref, RefCell, RefMut};
use std::collections::BTreeMap;
use std::collections::BTreeSet;
use std::rc::Rc;

/// What both hosts of an exchange share in memory, though hosts share nothing: their disks, and
/// what is noted of the run. A host reads the other's disk only where byway's program would be told
/// by its peer what is there.
#[derive(Clone, Debug, Default)]
pub(super) struct SharedState(Rc<RefCell<ExchangeState>>);

/// See [`SharedState`].
#[derive(Debug, Default)]
pub(super) struct ExchangeState {
    /// The objects that each host has whole: the sender's objects at the receiver, and the
    /// receiver's at the sender.
    pub(super) whole: BTreeSet<u32>,
    pub(super) whole_back: BTreeSet<u32>,
    /// Bytes of objects that the receiver does not have whole: the most of any session.
    pub(super) partial: BTreeMap<u32, u64>,
    /// Bytes that the receiver's application read of each stream: the most of any session.
    pub(super) streams: BTreeMap<u32, u64>,
    /// When all was done.
    pub(super) finished: Option<Instant>,
    /// When the sender's application ended the exchange, done or not.
    pub(super) stopped: bool,
    pub(super) notes: ExchangeRecord,
}

impl SharedState {
    /// Before anything happened.
    pub(super) fn new(options: &ExchangeOptions) -> Self {
        let present = options.objects_present.min(options.objects.len());
        let state = ExchangeState { whole: (0..present as u32).collect(), ..ExchangeState::default() };
        Self(Rc::new(RefCell::new(state)))
    }

    pub(super) fn look(&self) -> Ref<'_, ExchangeState> {
        self.0.borrow()
    }

    pub(super) fn edit(&self) -> RefMut<'_, ExchangeState> {
        self.0.borrow_mut()
    }

    /// Notes that something is not as it must be.
    pub(super) fn blame(&self, what: String) {
        let mut state = self.edit();
        // The first few tell all.
        if state.notes.mistakes.len() < 8 {
            state.notes.mistakes.push(what);
        }
    }

    /// Notes that a session, or an attempt at one, came to nothing.
    pub(super) fn lost(&self, now: Instant, connected: bool, why: String) {
        let mut state = self.edit();
        state.notes.lost.push(LostSession { at: now.as_secs_f64(), connected, why });
    }
}

impl ExchangeState {
    /// Distinct bytes that the receiver has of what was asked for.
    pub(super) fn received(&self, options: &ExchangeOptions) -> u64 {
        let whole: u64 = self.whole.iter().filter_map(|number| options.objects.get(*number as usize)).sum();
        let partial: u64 =
            self.partial.iter().filter(|(number, _)| !self.whole.contains(number)).map(|it| it.1).sum();
        whole + partial + self.streams.values().sum::<u64>()
    }
}
