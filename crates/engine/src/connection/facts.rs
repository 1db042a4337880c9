//! What happened to paths, and when: for traces and figures. Off unless [`Config::facts`](crate::Config::facts) says how many to
//! keep.

use super::Connection;
use super::path::State;
use alloc::collections::VecDeque;
use byway_control::{Congested, Trigger};
use byway_wire::{Instant, PathId};

/// What happened to a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum What {
    /// It is in this state from now on.
    State(State),
    /// It was given up, for this reason.
    Dropped(&'static str),
    /// The controller was told of congestion.
    Congested {
        /// What told of it.
        trigger: Trigger,
        /// Bytes lost or marked.
        bytes: u64,
    },
    /// The controller was told that a packet believed lost was not.
    Undone,
}

/// Something that happened to a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fact {
    /// When.
    pub at: Instant,
    /// To which.
    pub path: PathId,
    /// What.
    pub what: What,
}

/// Facts that wait for the owner; when there are too many the oldest goes.
#[derive(Debug, Default)]
pub(super) struct Facts {
    kept: VecDeque<Fact>,
    most: usize,
    missed: u64,
}

impl Facts {
    /// Keeps `most` at most.
    pub fn new(most: usize) -> Self {
        Self { most, ..Self::default() }
    }

    pub fn note(&mut self, at: Instant, path: PathId, what: What) {
        if self.most == 0 {
            return;
        }
        if self.kept.len() == self.most {
            self.kept.pop_front();
            self.missed += 1;
        }
        self.kept.push_back(Fact { at, path, what });
    }

    pub fn congested(&mut self, path: PathId, congested: &Congested) {
        let Congested { now, trigger, bytes, .. } = *congested;
        self.note(now, path, What::Congested { trigger, bytes });
    }
}

impl Connection {
    /// The oldest fact that was not taken yet.
    pub fn next_fact(&mut self) -> Option<Fact> {
        self.facts.kept.pop_front()
    }

    /// Facts that went because the owner took them too late.
    #[must_use]
    pub const fn facts_missed(&self) -> u64 {
        self.facts.missed
    }
}
