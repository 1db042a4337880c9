//! The limit on a peer's flows that get tunnels of their own, and on the rate at which these are
//! opened.

use super::index_vec::TunnelIdx;
use alloc::vec::Vec;
use byway_wire::{Duration, Instant, Meter};

/// The least average time between tunnels that are opened to one peer. A handshake costs both sides
/// work, so a flood of SYNs must not cause many handshakes.
const OPENING_INTERVAL: Duration = Duration::from_millis(10);
/// The most tunnels that may be opened to one peer in a burst, before the rate limit applies.
const OPENING_BURST: u32 = 32;
/// The pause after a tunnel could not be opened, or died. No tunnel is opened during the pause.
/// Each further pause is twice as long, up to `MAX_PAUSE`.
const MIN_PAUSE: Duration = Duration::from_secs(1);
const MAX_PAUSE: Duration = Duration::from_secs(60);
/// The limit on tunnels that a peer opens, as a multiple of the limit on tunnels opened here. It is
/// above 1, because the peer may close a tunnel and open another. This gateway may learn of the new
/// one first, and count one too many.
const TAKEN_FACTOR: usize = 2;

/// The limit on a peer's flows that get tunnels of their own.
#[derive(Debug, Default)]
pub(super) struct DedicatedLimit {
    opened: usize,
    taken: usize,
    pace: Meter,
    shut_until: Instant,
    pause: Duration,
    /// Places of tunnels that are over.
    vacant: Vec<TunnelIdx>,
}

impl DedicatedLimit {
    /// Whether a tunnel may be opened now. `most`: the largest number of tunnels.
    pub fn is_open(&self, now: Instant, most: usize) -> bool {
        self.opened < most && now >= self.shut_until && self.pace.debt(now) < OPENING_INTERVAL * OPENING_BURST
    }

    /// Whether the peer may open another, where `most` may be opened here.
    pub const fn takes(&self, most: usize) -> bool {
        self.taken < most.saturating_mul(TAKEN_FACTOR)
    }

    /// Counts a tunnel that is dialled.
    pub fn on_dialled(&mut self, now: Instant) {
        self.pace.lend(now, OPENING_INTERVAL);
    }

    /// Counts a tunnel that begins. Returns the free place of an ended one, if there is one.
    pub fn begin(&mut self, opened_here: bool) -> Option<TunnelIdx> {
        *self.count(opened_here) += 1;
        self.vacant.pop()
    }

    /// Counts a tunnel that ended, and frees its place.
    pub fn end(&mut self, opened_here: bool, place: TunnelIdx) {
        *self.count(opened_here) -= 1;
        self.vacant.push(place);
    }

    const fn count(&mut self, opened_here: bool) -> &mut usize {
        if opened_here { &mut self.opened } else { &mut self.taken }
    }

    /// Opens no tunnels for a pause, because one failed. Tunnels that fail together count once.
    pub fn shut(&mut self, now: Instant) {
        if now >= self.shut_until {
            self.pause = (self.pause * 2).clamp(MIN_PAUSE, MAX_PAUSE);
            self.shut_until = now + self.pause;
        }
    }

    /// Resets the pause to the shortest, because a tunnel ended in the normal way.
    pub const fn on_success(&mut self) {
        self.pause = Duration::ZERO;
    }
}

#[cfg(test)]
mod tests {
    use super::super::index_vec::TypedIndex as _;
    use super::*;

    const AT: fn(u64) -> Instant = Instant::from_millis;

    #[test]
    fn a_burst_and_then_a_pace() {
        let mut dedicated_limit = DedicatedLimit::default();
        let mut open = |now| {
            let open = dedicated_limit.is_open(now, 1_000);
            if open {
                dedicated_limit.on_dialled(now);
            }
            open
        };
        let burst = (0..100).filter(|_| open(AT(1))).count();
        assert_eq!(burst, OPENING_BURST as usize);
        let paced = (1..1_001).filter(|ms| open(AT(1 + ms))).count();
        assert!((99..=101).contains(&paced), "{paced}");
    }

    #[test]
    fn pauses_double_until_one_succeeds() {
        let mut dedicated_limit = DedicatedLimit::default();
        dedicated_limit.shut(AT(0));
        dedicated_limit.shut(AT(0));
        assert!(!dedicated_limit.is_open(AT(999), 1) && dedicated_limit.is_open(AT(1_000), 1));
        dedicated_limit.shut(AT(1_000));
        assert!(!dedicated_limit.is_open(AT(2_999), 1) && dedicated_limit.is_open(AT(3_000), 1));
        dedicated_limit.on_success();
        dedicated_limit.shut(AT(3_000));
        assert!(dedicated_limit.is_open(AT(4_000), 1));
    }

    #[test]
    fn places_are_used_again_and_counted_apart() {
        let mut dedicated_limit = DedicatedLimit::default();
        assert_eq!((dedicated_limit.begin(true), dedicated_limit.begin(false)), (None, None));
        assert!(!dedicated_limit.is_open(AT(0), 1) && dedicated_limit.takes(1));
        assert_eq!(dedicated_limit.begin(false), None);
        assert!(!dedicated_limit.takes(1), "twice as many as are opened here");
        let place = TunnelIdx::at(3);
        dedicated_limit.end(false, place);
        assert!(dedicated_limit.takes(1) && !dedicated_limit.is_open(AT(0), 1));
        assert_eq!(dedicated_limit.begin(true), Some(place));
    }
}
