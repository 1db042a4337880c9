//! Passes on a peer's announcement to the other peers, in a TABLE message with the announcing
//! gateway's key and address. That gateway is called the origin. Thus two gateways that know only
//! each other's key can connect.
//!
//! | limit of TABLEs | value |
//! |---|---|
//! | hosts | those that the configuration file allows this origin; all other TABLEs are dropped, so memory is bounded |
//! | rate | passed on at most once in [`MIN_FORWARD_INTERVAL`] |
//! | distance | over at most [`MAX_HOPS`] gateways, so there is no endless loop |
//! | age | forgotten after [`ORIGIN_LIFETIME`], unless repeated |
//! | session with the origin | TABLEs about this origin are ignored |

use super::index_vec::PeerIdx;
use super::status::Counters;
use crate::forwarded_announcements::MAX_HOPS;
use crate::serves::AnnouncementPart;
use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use byway_wire::{Duration, Instant};

/// The least time between two times that a part is passed on.
const MIN_FORWARD_INTERVAL: Duration = Duration::from_secs(2);
/// Time for which a passed-on announcement is valid. Gateways repeat it every minute.
const ORIGIN_LIFETIME: Duration = Duration::from_secs(150);

/// The announcements that this gateway passes on.
#[derive(Debug, Default)]
pub(super) struct AnnouncementForwarder {
    /// The time until which each origin's passed-on announcement is valid.
    heard: BTreeMap<PeerIdx, Instant>,
    /// The serial number of each part that was passed on, and when.
    passed: BTreeMap<(PeerIdx, u8), (u32, Instant)>,
    counters: Counters,
}

impl AnnouncementForwarder {
    /// The counts so far.
    pub const fn counters(&self) -> Counters {
        self.counters
    }

    /// When something is to be forgotten.
    pub fn deadline(&self) -> Option<Instant> {
        self.heard.values().copied().min()
    }

    /// Notes that an origin announced its hosts itself. Returns whether its announcement was known
    /// only through other gateways until now.
    pub fn on_own_word(&mut self, origin: PeerIdx) -> bool {
        self.heard.remove(&origin).is_some()
    }

    /// Whether an origin's announcement is known only through other gateways.
    pub fn has_heard(&self, origin: PeerIdx) -> bool {
        self.heard.contains_key(&origin)
    }

    /// Notes that another gateway passed on an origin's announcement.
    pub fn on_heard(&mut self, now: Instant, origin: PeerIdx) {
        self.heard.insert(origin, now + ORIGIN_LIFETIME);
    }

    /// Counts a passed-on announcement of a gateway that the file does not name.
    pub const fn on_unknown(&mut self) {
        self.counters.unknown_origins += 1;
    }

    /// Something is passed on to a peer.
    pub const fn on_passed(&mut self) {
        self.counters.passed_on += 1;
    }

    /// Whether a part may be passed on now, over `hops` gateways.
    pub fn may_pass(&mut self, now: Instant, origin: PeerIdx, hops: u8, part: &AnnouncementPart) -> bool {
        let place = (origin, part.part);
        let known = self.passed.get(&place).filter(|(serial, _)| *serial == part.serial);
        if hops > MAX_HOPS || known.is_some_and(|(_, at)| now.since(*at) < MIN_FORWARD_INTERVAL) {
            return false;
        }
        self.passed.insert(place, (part.serial, now));
        true
    }

    /// Returns and forgets origins whose announcements were not repeated in time.
    pub fn take_over(&mut self, now: Instant) -> Vec<PeerIdx> {
        let over = self.heard.iter().filter(|(_, until)| **until <= now);
        let over: Vec<PeerIdx> = over.map(|(origin, _)| *origin).collect();
        self.heard.retain(|_, until| *until > now);
        over
    }
}
