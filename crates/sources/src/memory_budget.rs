//! The memory for records that came and are not written, of all sources of a sink together.
//!
//! Each session has [`SESSION_MEMORY_BYTES`] for itself, so small records always get through. What
//! more it needs, for a long record or for many at once, comes from a pool that all sessions share.
//! A session for which the pool has nothing is not read. Then flow control holds its source back.

use byway_wire::{Duration, Instant};

/// Bytes that each session has for itself.
pub const SESSION_MEMORY_BYTES: usize = 24 << 10;
/// The least bytes of the pool: a record of 1 MiB fits twice, while it comes and while it is
/// written.
const MIN_POOL_BYTES: usize = 4 << 20;
/// The least number of sessions.
const MIN_SESSIONS: usize = 64;
/// Time for which the pool counts as short after it refused a session.
const SHORTAGE_TIME: Duration = Duration::from_secs(1);

/// The memory for records that are not written.
#[derive(Debug)]
pub struct MemoryBudget {
    /// Sessions at once.
    sessions: usize,
    /// Bytes of the pool that no session has.
    free: usize,
    /// When a session last got nothing.
    short_at: Option<Instant>,
}

impl MemoryBudget {
    /// Divides `bytes`: half for the sessions, half for the pool. There are at most `sessions`
    /// sessions at once.
    pub fn new(bytes: usize, sessions: usize) -> Self {
        let own = (bytes / 2 / SESSION_MEMORY_BYTES).clamp(MIN_SESSIONS, sessions.max(MIN_SESSIONS));
        Self { sessions: own, free: (bytes / 2).max(MIN_POOL_BYTES), short_at: None }
    }

    /// The most sessions at once.
    pub const fn sessions(&self) -> usize {
        self.sessions
    }

    /// Whether another session waits for memory.
    pub fn is_short(&self, now: Instant) -> bool {
        self.short_at.is_some_and(|at| now.since(at) < SHORTAGE_TIME)
    }

    /// Notes that a session waits for memory that other sessions hold.
    pub const fn on_shortage(&mut self, now: Instant) {
        self.short_at = Some(now);
    }
}

/// One session's share of the sink's memory.
#[derive(Debug, Default)]
pub struct MemoryShare {
    /// Bytes of the pool.
    pooled: usize,
}

impl MemoryShare {
    /// Whether the session may hold `bytes`: within its own memory, or with memory that it takes
    /// from the pool now.
    pub const fn grow(&mut self, budget: &mut MemoryBudget, bytes: usize) -> bool {
        let more = bytes.saturating_sub(SESSION_MEMORY_BYTES).saturating_sub(self.pooled);
        let Some(free) = budget.free.checked_sub(more) else { return false };
        budget.free = free;
        self.pooled += more;
        true
    }

    /// The session holds `bytes` and no more: the pool gets the rest.
    pub const fn shrink(&mut self, budget: &mut MemoryBudget, bytes: usize) {
        let spare = self.pooled.saturating_sub(bytes.saturating_sub(SESSION_MEMORY_BYTES));
        self.pooled -= spare;
        budget.free = budget.free.saturating_add(spare);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: usize = 1 << 20;
    const NOW: Instant = Instant::from_millis(7);

    #[test]
    fn all_sessions_together_have_no_more_than_the_pool_and_what_is_their_own() {
        let mut budget = MemoryBudget::new(16 * MIB, 1024);
        assert_eq!(budget.sessions(), 341);
        let mut shares: Vec<MemoryShare> = (0..600).map(|_| MemoryShare::default()).collect();
        let got = shares.iter_mut().filter_map(|it| it.grow(&mut budget, MIB).then_some(())).count();
        assert_eq!(got, 8 * MIB / (MIB - SESSION_MEMORY_BYTES));
        // Those that got nothing have their own.
        assert!(shares.iter_mut().all(|it| it.grow(&mut budget, SESSION_MEMORY_BYTES)));
        assert!(!budget.is_short(NOW));
        budget.on_shortage(NOW);
        assert!(budget.is_short(NOW) && !budget.is_short(NOW + SHORTAGE_TIME));
        shares.iter_mut().for_each(|it| it.shrink(&mut budget, 0));
        assert_eq!(budget.free, 8 * MIB);
    }

    #[test]
    fn a_share_grows_and_shrinks_by_what_is_held() {
        let (mut budget, mut share) = (MemoryBudget::new(16 * MIB, 1024), MemoryShare::default());
        assert!(share.grow(&mut budget, 100 << 10) && share.grow(&mut budget, 50 << 10));
        assert_eq!(budget.free, 8 * MIB - (76 << 10));
        share.shrink(&mut budget, 200 << 10);
        share.shrink(&mut budget, 60 << 10);
        assert_eq!(budget.free, 8 * MIB - (36 << 10));
        assert!(!share.grow(&mut budget, usize::MAX));
        assert_eq!(budget.free, 8 * MIB - (36 << 10));
    }

    #[test]
    fn a_little_memory_is_enough_for_a_long_record() {
        let (mut budget, mut share) = (MemoryBudget::new(0, 1024), MemoryShare::default());
        assert!(budget.sessions() == MIN_SESSIONS && share.grow(&mut budget, 3 * MIB));
    }
}
