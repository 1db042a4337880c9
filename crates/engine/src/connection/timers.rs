//! Deadlines of many owners (such as paths) in one heap. If a deadline moves later, its old entry
//! stays, so arming is cheap. The old entry wakes the owner too early, and the owner then arms its
//! real deadline. An owner that comes to rest is not woken: its old entry goes, unless there are
//! many.

use alloc::collections::BinaryHeap;
use byway_wire::{Duration, Instant, PathId};
use core::cmp::Reverse;

/// An owner counts as resting if its next deadline is at least this much later than the old one.
/// Most paths repeat lost data within a second.
const REST_TIME: Duration = Duration::from_secs(1);

/// The largest heap that is searched for a deadline that is not the first.
const MAX_SEARCHED_DEADLINES: usize = 64;

/// The owner of a deadline.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum TimerOwner {
    /// The connection as a whole.
    Whole,
    /// A path that this side sends on.
    Send(PathId),
    /// A path that the peer sends on.
    Receive(PathId),
}

/// The earliest deadline for which an owner is armed. The owner keeps this value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Armed(Instant);

impl Armed {
    /// Whether the owner wakes by `at`.
    #[must_use]
    pub fn covers(self, at: Option<Instant>) -> bool {
        at.is_none_or(|at| self.0 <= at)
    }
}

impl Default for Armed {
    fn default() -> Self {
        Self(Instant::FAR_FUTURE)
    }
}

/// The deadlines of all owners, in a heap.
#[derive(Clone, Debug)]
pub struct Timers<K: Ord> {
    heap: BinaryHeap<Reverse<(Instant, K)>>,
}

impl<K: Ord> Default for Timers<K> {
    fn default() -> Self {
        Self { heap: BinaryHeap::new() }
    }
}

impl<K: Ord + Copy> Timers<K> {
    /// Arms `owner` to wake at `at` or earlier. `None`: it need not wake.
    pub fn arm(&mut self, owner: K, armed: &mut Armed, at: Option<Instant>) {
        let Some(at) = at else { return };
        if at < armed.0 {
            armed.0 = at;
            self.heap.push(Reverse((at, owner)));
        } else if at.since(armed.0) >= REST_TIME {
            self.put_off(owner, armed, at);
        }
    }

    /// Cancels the deadline of `owner`, if it is the first of all, or the heap is small.
    pub fn disarm(&mut self, owner: K, armed: &mut Armed) {
        if *armed != Armed::default() && self.take(owner, *armed) {
            *armed = Armed::default();
        }
    }

    /// Replaces an owner's old deadline by a later one, if the old one is the first of all or there
    /// are few.
    #[cold]
    fn put_off(&mut self, owner: K, armed: &mut Armed, at: Instant) {
        if self.take(owner, *armed) {
            armed.0 = at;
            self.heap.push(Reverse((at, owner)));
        }
    }

    /// Takes an owner's deadline out. Returns whether it did.
    #[cold]
    fn take(&mut self, owner: K, armed: Armed) -> bool {
        let old = Reverse((armed.0, owner));
        if self.heap.peek() == Some(&old) {
            self.heap.pop();
        } else if self.heap.len() <= MAX_SEARCHED_DEADLINES {
            self.heap.retain(|due| *due != old);
        } else {
            return false;
        }
        true
    }

    /// Returns the next owner due at `now`, with the deadline for which it was armed. [`claim`]
    /// tells whether that deadline is still valid.
    pub fn pop(&mut self, now: Instant) -> Option<(Instant, K)> {
        if self.next()? > now {
            return None;
        }
        self.heap.pop().map(|Reverse(due)| due)
    }

    /// Whether the heap holds the deadline of `owner`. A large heap is only compared with its
    /// earliest deadline. For assertions.
    #[cfg(debug_assertions)]
    #[must_use]
    pub fn holds(&self, owner: K, armed: Armed) -> bool {
        if armed == Armed::default() {
            return true;
        }
        if self.heap.len() > MAX_SEARCHED_DEADLINES {
            return self.next().is_some_and(|next| next <= armed.0);
        }
        self.heap.iter().any(|Reverse(due)| *due == (armed.0, owner))
    }

    /// The earliest deadline.
    #[must_use]
    pub fn next(&self) -> Option<Instant> {
        self.heap.peek().map(|Reverse((at, _))| *at)
    }
}

/// Whether a popped deadline is the one that is armed, and not a stale one. If so, disarms it.
pub fn claim(armed: &mut Armed, at: Instant) -> bool {
    let current = armed.0 == at;
    if current {
        *armed = Armed::default();
    }
    current
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_earliest_deadline_of_an_owner_wakes_it() {
        let (mut timers, mut armed) = (Timers::default(), Armed::default());
        timers.arm(TimerOwner::Whole, &mut armed, Some(Instant::from_millis(9)));
        timers.arm(TimerOwner::Whole, &mut armed, Some(Instant::from_millis(5)));
        timers.arm(TimerOwner::Whole, &mut armed, Some(Instant::from_millis(7)));
        timers.arm(TimerOwner::Whole, &mut armed, Some(Instant::from_millis(900)));
        assert_eq!(timers.pop(Instant::from_millis(4)), None);
        let (at, owner) = timers.pop(Instant::from_millis(10)).unwrap();
        assert_eq!((at, owner), (Instant::from_millis(5), TimerOwner::Whole));
        assert!(claim(&mut armed, at));
        let (at, _) = timers.pop(Instant::from_millis(10)).unwrap();
        assert!(!claim(&mut armed, at));
        assert_eq!(timers.next(), None);
    }

    #[test]
    fn who_comes_to_rest_is_not_woken_by_the_old_deadline() {
        let (mut timers, mut one, mut other) = (Timers::default(), Armed::default(), Armed::default());
        timers.arm(TimerOwner::Whole, &mut one, Some(Instant::from_millis(5)));
        timers.arm(TimerOwner::Whole, &mut one, Some(Instant::from_millis(15_000)));
        assert_eq!(timers.next(), Some(Instant::from_millis(15_000)));
        // One that is not the first is found among few.
        timers.arm(TimerOwner::Send(PathId(1)), &mut other, Some(Instant::from_millis(7)));
        timers.arm(TimerOwner::Whole, &mut one, Some(Instant::from_millis(17_000)));
        timers.arm(TimerOwner::Send(PathId(1)), &mut other, Some(Instant::from_millis(16_000)));
        assert_eq!(timers.next(), Some(Instant::from_millis(16_000)));
        assert_eq!((one, other), (Armed(Instant::from_millis(17_000)), Armed(Instant::from_millis(16_000))));
        // Among many it stays, and wakes its owner once too often.
        let mut others = [Armed::default(); MAX_SEARCHED_DEADLINES];
        for (number, other) in others.iter_mut().enumerate() {
            timers.arm(TimerOwner::Receive(PathId(number as u32)), other, Some(Instant::from_millis(9)));
        }
        timers.arm(TimerOwner::Send(PathId(1)), &mut other, Some(Instant::from_millis(18_000)));
        assert_eq!(other, Armed(Instant::from_millis(16_000)));
    }
}
