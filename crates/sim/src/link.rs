//! A link: it is offered packets, and decides their fate.

use byway_wire::{Ecn, Instant};
use core::any::Any;
use core::fmt::Debug;
use core::net::{IpAddr, SocketAddr};

/// One direction of a link. Some links fix a packet's arrival time when the packet is offered.
/// Others, such as a queue with CoDel, return [`PacketOutcome::Queued`], and decide at the time
/// [`decides_at`](Self::decides_at) whether to drop the packet.
pub trait Link: Any + Debug {
    /// Decides the fate of a packet that is offered at `now`. `now` never goes back.
    fn offer(&mut self, now: Instant, packet: &Offer) -> PacketOutcome;

    /// The queue at `now`, without the packet that is being sent.
    fn waiting(&self, now: Instant) -> Occupancy;

    /// The largest possible queue. The simulation asserts it.
    fn bound(&self) -> Occupancy;

    /// Whether a packet may overtake another; the same at all times. Where it may not, the world
    /// asserts the order.
    fn may_reorder(&self) -> bool;

    /// When to call [`decide`](Self::decide) next. `None`: no packet waits for a decision.
    fn decides_at(&self) -> Option<Instant> {
        None
    }

    /// Decides the fate of one [`PacketOutcome::Queued`] packet, if its time has come.
    fn decide(&mut self, now: Instant) -> Option<Decision> {
        let _ = now;
        None
    }
}

/// A packet that wants to go over a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Offer {
    /// Bytes of UDP payload. The link adds the bytes of headers.
    pub size: usize,
    /// The ECN mark of the packet.
    pub ecn: Ecn,
    /// The flow that the packet belongs to ([`flow`]). It matters where flows have queues of their
    /// own.
    pub flow: u64,
}

/// The flow of all packets from one address to another: a hash, the same on every machine.
#[must_use]
pub fn flow(from: SocketAddr, to: SocketAddr) -> u64 {
    let address = |address: SocketAddr| {
        let ip = match address.ip() {
            IpAddr::V4(ip) => u128::from(ip.to_bits()),
            IpAddr::V6(ip) => ip.to_bits(),
        };
        (ip as u64) ^ ((ip >> 64) as u64).rotate_left(32) ^ u64::from(address.port()).rotate_left(40)
    };
    // Both directions are flows of their own.
    address(from).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(29) ^ address(to)
}

/// The decision about a waiting packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Decision {
    /// The packet's place among those that are still [`PacketOutcome::Queued`], counted from 0.
    pub place: usize,
    /// The outcome of the packet.
    pub fate: PacketOutcome,
}

/// The outcome of an offered packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PacketOutcome {
    /// The packet arrives at the link's end.
    Delivered(Delivery),
    /// The packet arrives twice, the second time not before the first.
    Duplicated(Delivery, Delivery),
    /// The packet does not arrive.
    Dropped(DropReason),
    /// The packet waits. [`Link::decide`] later gives its outcome, which is another one than this.
    Queued,
}

/// How a packet arrives at the far end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Delivery {
    /// When the packet's service begins. Until then it waits.
    pub begins: Instant,
    /// When the packet's last bit arrives.
    pub at: Instant,
    /// The packet's mark on arrival: as offered, or CE.
    pub ecn: Ecn,
    /// The corruption of the packet's bits. `None`: there is none.
    pub corruption: Option<Corruption>,
}

/// A corruption of one to three bits. The number determines which.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Corruption(pub u64);

impl Corruption {
    /// Flips the bits. A nonempty payload is always changed.
    pub fn apply(self, payload: &mut [u8]) {
        let bits = payload.len() as u64 * 8;
        if bits == 0 {
            return;
        }
        let first = self.0 % bits;
        let mut flip = |bit: u64| {
            if let Some(byte) = payload.get_mut((bit / 8) as usize) {
                *byte ^= 1 << (bit % 8);
            }
        };
        flip(first);
        // More bits at other places, so that they never undo the first.
        for extra in 1..=(self.0 >> 62).min(2) {
            let distance = (self.0 >> (16 * extra)) % bits;
            if distance != 0 {
                flip((first + distance) % bits);
            }
        }
    }
}

/// Why a packet was dropped.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum DropReason {
    /// The queue had no room for the packet.
    QueueFull,
    /// Random loss on the wire.
    Loss,
    /// The link was down.
    Partition,
    /// Larger than the link's MTU.
    TooLarge,
    /// The queue's discipline (active queue management) dropped the packet.
    Managed,
}

impl DropReason {
    /// All reasons, in the order in which [`LinkCounters`](crate::LinkCounters) keeps them.
    pub const ALL: [Self; 5] = [Self::QueueFull, Self::Loss, Self::Partition, Self::TooLarge, Self::Managed];
}

/// The content of a queue, or its limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Occupancy {
    /// Number of packets.
    pub packets: usize,
    /// Bytes on the wire, headers included.
    pub bytes: u64,
    /// Number of deliveries that the waiting packets will cause: 0 for a packet that will be lost,
    /// 2 for a packet that will be duplicated. In the result of `Link::bound` this field has no
    /// meaning.
    pub deliveries: u64,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn corruption_always_changes_something() {
        let mut random = crate::Random::new(1);
        for round in 0..2_000 {
            let mut payload = vec![0_u8; 1 + round % 40];
            Corruption(random.next_u64()).apply(&mut payload);
            let flipped: u32 = payload.iter().map(|byte| byte.count_ones()).sum();
            assert!((1..=3).contains(&flipped), "{flipped} bits flipped");
        }
        Corruption(5).apply(&mut []);
    }
}
