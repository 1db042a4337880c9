//! Where receivers are: the address from which each was heard last. Only holders of a genuine word
//! are remembered, so forgers cannot fill the table.

use alloc::collections::BTreeMap;
use byway_wire::relay::ReceiverTag;
use core::net::SocketAddr;

/// The most receivers that are remembered for one grant.
const MAX_PER_GRANT: usize = 64;
/// Seconds after which a receiver that did not greet again is forgotten: two days.
pub(crate) const LIFETIME_SECONDS: u64 = 2 * 86_400;
/// The most seconds by which a registration may be from the future: the error of the receiver's
/// copy of the relay's clock.
const MAX_LEAD_SECONDS: u64 = 10;
/// Seconds between two searches for receivers to forget.
const SWEEP_SECONDS: u64 = 3_600;

#[derive(Clone, Copy, Debug)]
struct RememberedReceiver {
    address: SocketAddr,
    /// The sequence number of the registration: Unix seconds on the receiver's clock.
    sequence: u32,
    /// Unix time in seconds at which the receiver was heard.
    heard: u64,
}

/// The remembered receivers, by grant and tag.
#[derive(Debug)]
pub(crate) struct ReceiverLocations {
    all: BTreeMap<(u32, ReceiverTag), RememberedReceiver>,
    max_receivers: usize,
    /// Unix time in seconds of the last sweep.
    swept: u64,
}

impl ReceiverLocations {
    pub(crate) const fn new(max_receivers: usize) -> Self {
        Self { all: BTreeMap::new(), max_receivers, swept: 0 }
    }

    /// Remembers that a receiver was heard from `address`. Returns whether this is its location
    /// now: an older registration does not replace a newer one, none is of the future, and a full
    /// table takes no new receiver.
    pub(crate) fn register(
        &mut self,
        (grant, tag): (u32, ReceiverTag),
        address: SocketAddr,
        sequence: u32,
        unix: u64,
    ) -> bool {
        self.sweep(unix);
        if u64::from(sequence) > unix + MAX_LEAD_SECONDS {
            return false;
        }
        let new = RememberedReceiver { address, sequence, heard: unix };
        if let Some(known) = self.all.get_mut(&(grant, tag)) {
            // What was heard in the future was heard before the relay's clock stepped back.
            let is_newer = sequence >= known.sequence || is_over(known, unix) || known.heard > unix;
            if is_newer {
                *known = new;
            }
            return is_newer;
        }
        let of_grant = self.all.range((grant, ReceiverTag::MIN)..=(grant, ReceiverTag::MAX)).count();
        let has_room = of_grant < MAX_PER_GRANT && self.all.len() < self.max_receivers;
        if has_room {
            self.all.insert((grant, tag), new);
        }
        has_room
    }

    /// Returns the address of a receiver, and the seconds since it was heard there.
    pub(crate) fn look_up(&self, grant: u32, tag: ReceiverTag, unix: u64) -> Option<(SocketAddr, u64)> {
        let known = self.all.get(&(grant, tag)).filter(|known| !is_over(known, unix))?;
        Some((known.address, unix.saturating_sub(known.heard)))
    }

    pub(crate) fn len(&self) -> usize {
        self.all.len()
    }

    /// Forgets receivers that did not greet for long.
    fn sweep(&mut self, unix: u64) {
        if self.swept.abs_diff(unix) >= SWEEP_SECONDS {
            self.swept = unix;
            self.all.retain(|_, known| !is_over(known, unix));
        }
    }
}

/// A relay's clock may step: time that seems to lie ahead is no age.
const fn is_over(known: &RememberedReceiver, unix: u64) -> bool {
    unix.saturating_sub(known.heard) >= LIFETIME_SECONDS
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tag(number: u16) -> ReceiverTag {
        let mut secret = [0; 16];
        secret[..2].copy_from_slice(&number.to_be_bytes());
        ReceiverTag::new(&secret, 1)
    }

    fn at(port: u16) -> SocketAddr {
        ([9, 9, 9, 9], port).into()
    }

    #[test]
    fn the_newest_registration_holds() {
        let mut locations = ReceiverLocations::new(10);
        assert_eq!(locations.look_up(1, tag(1), 100), None);
        assert!(locations.register((1, tag(1)), at(1), 100, 100));
        assert!(locations.register((1, tag(1)), at(2), 115, 115));
        assert!(!locations.register((1, tag(1)), at(1), 100, 130), "somebody plays the older one");
        assert_eq!(locations.look_up(1, tag(1), 130), Some((at(2), 15)));
        assert_eq!(locations.look_up(2, tag(1), 130), None, "another grant");
        assert_eq!(locations.look_up(1, tag(2), 130), None, "another receiver");
    }

    #[test]
    fn a_receiver_is_forgotten_after_two_days() {
        let mut locations = ReceiverLocations::new(10);
        assert!(locations.register((1, tag(1)), at(1), 1_000_000, 1_000_000));
        let over = 1_000_000 + LIFETIME_SECONDS;
        assert_eq!(locations.look_up(1, tag(1), over - 1), Some((at(1), LIFETIME_SECONDS - 1)));
        assert_eq!(locations.look_up(1, tag(1), over), None);
        assert!(locations.register((1, tag(2)), at(2), 1, over));
        assert_eq!(locations.len(), 1);
    }

    #[test]
    fn a_clock_that_steps_loses_no_more_than_what_is_old() {
        let mut locations = ReceiverLocations::new(10);
        assert!(locations.register((1, tag(1)), at(1), 2_000_000_000, 2_000_000_000));
        // The clock was a year ahead. The receiver learned it from the relay.
        assert_eq!(locations.look_up(1, tag(1), 1_968_464_000), Some((at(1), 0)));
        assert!(locations.register((1, tag(1)), at(2), 1_968_464_000, 1_968_464_000));
        // It was a year behind: what was heard is too old, and what comes is newer.
        assert_eq!(locations.look_up(1, tag(1), 2_000_000_000), None);
        assert!(locations.register((1, tag(1)), at(3), 2_000_000_000, 2_000_000_000));
    }

    #[test]
    fn no_registration_of_the_future_holds_the_place() {
        let mut locations = ReceiverLocations::new(10);
        assert!(!locations.register((1, tag(1)), at(1), u32::MAX, 100));
        assert!(locations.register((1, tag(1)), at(1), 110, 100));
        assert!(locations.register((1, tag(1)), at(2), 112, 112));
    }

    #[test]
    fn no_grant_and_no_table_takes_more_than_its_receivers() {
        let mut locations = ReceiverLocations::new(100);
        for number in 0..64 {
            assert!(locations.register((1, tag(number)), at(number), 1, 1));
        }
        assert!(!locations.register((1, tag(64)), at(64), 1, 1), "the 65th of a grant");
        assert!(locations.register((1, tag(0)), at(99), 2, 2), "who is known is heard");
        for number in 0..36 {
            assert!(locations.register((2, tag(number)), at(number), 1, 1));
        }
        assert!(!locations.register((3, tag(0)), at(1), 1, 1), "the table is full");
        assert!(locations.register((3, tag(0)), at(1), 1, 1 + LIFETIME_SECONDS + 1));
    }
}
