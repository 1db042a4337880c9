//! Whether the queue that a path meets is the uplink's: then all paths meet it at the same time.

use byway_wire::{Duration, Instant};

/// The number of paths that are compared at most.
pub const MAX_PATHS: usize = 8;
/// Paths whose pace falls within this time of each other meet the same queue. Their RTTs may differ
/// by as much.
pub(crate) const MAX_FALL_GAP: Duration = Duration::from_millis(300);
/// A rate falls if it loses this part at once.
pub(crate) const MIN_FALL_SHARE: f64 = 0.03;

#[derive(Clone, Copy, Debug, Default)]
struct PacedPath {
    id: u32,
    pace: u64,
    fell_at: Option<Instant>,
}

/// When the pace of each path fell.
#[derive(Clone, Debug, Default)]
pub struct SharedQueue {
    paths: [PacedPath; MAX_PATHS],
    count: usize,
}

impl SharedQueue {
    /// Takes in the numbers of the paths in use, and their paces in bytes per second. Returns
    /// whether these are the paths of the call before. More than [`MAX_PATHS`] are not compared.
    pub fn read(&mut self, paces: impl Iterator<Item = (u32, u64)>, now: Instant) -> bool {
        let before = self.paths;
        let known = before.get(..self.count).unwrap_or_default();
        let (mut count, mut is_same) = (0, true);
        for (id, pace) in paces {
            let path = known.iter().find(|path| path.id == id);
            is_same &= path.is_some();
            let falls = path.is_some_and(|path| (pace as f64) < path.pace as f64 * (1.0 - MIN_FALL_SHARE));
            let fell_at = if falls { Some(now) } else { path.and_then(|path| path.fell_at) };
            if let Some(place) = self.paths.get_mut(count) {
                *place = PacedPath { id, pace, fell_at };
            }
            count += 1;
        }
        is_same &= count == self.count;
        self.count = count;
        is_same
    }

    /// Whether the pace of each path fell a moment ago.
    #[must_use]
    pub fn is_shared(&self, now: Instant) -> bool {
        let paths = self.paths.get(..self.count).unwrap_or_default();
        let fell = |path: &PacedPath| path.fell_at.is_some_and(|at| now.since(at) <= MAX_FALL_GAP);
        !paths.is_empty() && paths.iter().all(fell)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_queue_is_shared_if_all_paces_fall_at_once() {
        let mut queue = SharedQueue::default();
        let mut at = |millis, paces: &[u64]| {
            let now = Instant::from_millis(millis);
            let same = queue.read((7..).zip(paces.iter().copied()), now);
            (same, queue.is_shared(now))
        };
        assert_eq!(at(0, &[100, 200]), (false, false));
        assert_eq!(at(10, &[98, 199]), (true, false), "that is no fall");
        assert_eq!(at(20, &[80, 220]), (true, false), "one of two");
        assert_eq!(at(200, &[81, 190]), (true, true));
        assert_eq!(at(321, &[82, 191]), (true, false), "the first is over");
        assert_eq!(at(330, &[70]), (false, true), "one of one");
        assert_eq!(at(340, &[70, 5]), (false, false));
        assert_eq!(at(350, &[1; 9]), (false, false), "too many");
    }
}
