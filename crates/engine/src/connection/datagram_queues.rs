//! The datagrams of a connection that no path holds: those that arrived, those that came back, and
//! what became of others.

use super::path::Path;
use super::pending_datagrams::{Outbox, QueuedDatagram};
use crate::config::Config;
use crate::data::Carried;
use crate::invariant::Invariant as _;
use crate::path::sent_packets::PacketData;
use alloc::collections::VecDeque;
use alloc::vec::Vec;
use byway_wire::codec::varint_len;
use byway_wire::packet::PACKET_OVERHEAD_LEN;
use byway_wire::{Instant, PathId, Writer, frame};

/// Room that the largest datagram leaves for a PING and a hint about the path.
const HINT_ROOM: usize = 20;
/// The most buffers of received datagrams that are kept for later ones.
const MAX_SPARE_BUFFERS: usize = 64;

/// The most datagrams that wait to be taken back.
const MAX_RETURNED_DATAGRAMS: usize = 1 << 14;

/// A datagram that arrived.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReceivedDatagram {
    /// The peer's path on which the datagram arrived.
    pub path: PathId,
    /// The arrival time of the datagram.
    pub at: Instant,
    /// The sender's timestamp of the packet: microseconds modulo 2^32 from an unknown origin. With
    /// `at`, one-way delays of paths can be compared.
    pub stamp: u32,
    /// The bytes of the message. [Give the buffer back](crate::Connection::recycle) when done.
    pub data: Vec<u8>,
}

/// The fate of a datagram that was sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DatagramResult {
    /// The number that the owner gave the datagram.
    pub mark: u64,
    /// Whether the datagram arrived. If false, it is believed lost, and may be reported as arrived
    /// later.
    pub arrived: bool,
}

/// The datagrams of a connection that no path holds.
#[derive(Debug)]
pub(super) struct Datagrams {
    /// The most received datagrams, and the most results, that wait for the owner. `fates_wanted`:
    /// whether results are reported.
    most: usize,
    fates_wanted: bool,
    /// Number of datagrams in the paths' outboxes.
    waiting: usize,
    received: VecDeque<ReceivedDatagram>,
    returned: VecDeque<QueuedDatagram>,
    fates: VecDeque<DatagramResult>,
    spare: Vec<Vec<u8>>,
    /// Whether the owner was told of waiting datagrams, and has not taken all of them.
    told: bool,
}

impl Datagrams {
    pub fn new(config: &Config) -> Self {
        Self {
            most: config.datagrams,
            fates_wanted: config.datagram_fates,
            waiting: 0,
            received: VecDeque::new(),
            returned: VecDeque::new(),
            fates: VecDeque::new(),
            spare: Vec::new(),
            told: false,
        }
    }

    /// Takes a datagram that arrived. When the owner is slow, the oldest is dropped.
    pub fn on_received(&mut self, path: PathId, at: Instant, stamp: u32, data: &[u8]) {
        if self.most == 0 {
            return;
        }
        if self.received.len() >= self.most
            && let Some(oldest) = self.received.pop_front()
        {
            self.recycle(oldest.data);
        }
        let mut buffer = self.spare.pop().unwrap_or_default();
        buffer.clear();
        buffer.extend_from_slice(data);
        self.received.push_back(ReceivedDatagram { path, at, stamp, data: buffer });
    }

    pub fn on_fate(&mut self, mark: u64, arrived: bool) {
        if self.fates.len() >= self.most {
            self.fates.pop_front();
        }
        self.fates.push_back(DatagramResult { mark, arrived });
    }

    /// Returns the number of datagrams that paths have accepted and not sent yet.
    pub const fn waiting(&self) -> usize {
        self.waiting
    }

    /// Moves a datagram to a path.
    pub fn hand_over(&mut self, path: &mut Path, parcel: QueuedDatagram) {
        path.outbox.push(parcel);
        self.waiting += 1;
    }

    /// Takes the unsent datagrams of a path back.
    pub fn recall(&mut self, outbox: &mut Outbox) {
        while let Some(parcel) = outbox.pop() {
            self.waiting -= 1;
            self.give_back(parcel);
        }
    }

    /// Takes back the first datagrams of a path's outbox that no longer fit, because the path's
    /// packets became smaller.
    pub fn return_misfits(&mut self, path: &mut Path) {
        let most = path.send.mtu.current().saturating_sub(overhead(path));
        while path.outbox.first().is_some_and(|first| first.data.len() > most)
            && let Some(parcel) = path.outbox.pop()
        {
            self.waiting -= 1;
            self.give_back(parcel);
        }
    }

    /// Writes datagrams of a path into a packet: one up to the packet's end, or several.
    pub fn write(&mut self, path: &mut Path, writer: &mut Writer<'_>, packet_data: &mut PacketData) {
        while let Some(parcel) = path.outbox.first() {
            let (room, length) = (writer.room(), parcel.data.len());
            let counted = room != 1 + length;
            if counted && room < 1 + varint_len(length as u64) + length {
                break;
            }
            frame::write_datagram(writer, &parcel.data, counted);
            let Some(parcel) = path.outbox.pop().sure() else { break };
            self.waiting -= 1;
            if self.fates_wanted {
                packet_data.push(Carried::Datagram(parcel.mark));
            }
            self.recycle(parcel.data);
        }
    }

    /// Returns the next datagram that was not sent, with its mark.
    pub fn next_returned(&mut self) -> Option<(u64, Vec<u8>)> {
        self.returned.pop_front().map(|parcel| (parcel.mark, parcel.data))
    }

    /// The next result of a sent datagram, in the order in which results were learnt.
    pub fn next_fate(&mut self) -> Option<DatagramResult> {
        self.fates.pop_front()
    }

    /// Whether datagrams or results wait that the owner was not told of. Marks them as told.
    pub fn has_news(&mut self) -> bool {
        let some = !(self.received.is_empty() && self.returned.is_empty() && self.fates.is_empty());
        some && !core::mem::replace(&mut self.told, true)
    }

    /// The next that arrived.
    pub fn next_received(&mut self) -> Option<ReceivedDatagram> {
        let next = self.received.pop_front();
        self.told &= next.is_some();
        next
    }

    /// Keeps a datagram that came back unsent. If the owner takes none, the oldest is discarded.
    fn give_back(&mut self, parcel: QueuedDatagram) {
        if self.returned.len() >= MAX_RETURNED_DATAGRAMS {
            self.returned.pop_front();
        }
        self.returned.push_back(parcel);
    }

    /// Keeps an unused buffer for a later datagram.
    pub fn recycle(&mut self, buffer: Vec<u8>) {
        if self.spare.len() < MAX_SPARE_BUFFERS {
            self.spare.push(buffer);
        }
    }
}

/// Bytes of a packet that are no datagram's, with the type of the frame.
fn overhead(path: &Path) -> usize {
    path.route.overhead() + PACKET_OVERHEAD_LEN + 1
}

/// The size in bytes of the next packet of datagrams, and whether the packet needs its own system
/// call. Packets of equal size with one datagram each share a system call. `beside`: bytes of other
/// frames for this packet.
pub(super) fn packet_size(path: &Path, now: Instant, beside: usize) -> Option<(usize, bool)> {
    let mtu = path.send.mtu.current();
    let first = path.outbox.first()?.data.len();
    let alone = overhead(path) + first;
    let second = path.outbox.second_length();
    let fits = |more: usize| alone + varint_len(first as u64) + more <= mtu;
    let shared = second.is_some_and(|second| fits(1 + second)) || beside > 0 && fits(beside);
    // Whether a hint (RTT and delay limit) or a PING to the receiver is due.
    let talk = now >= path.hint.1 || path.send.timeouts() > 0;
    let size = if shared {
        mtu
    } else if talk {
        (alone + HINT_ROOM).min(mtu)
    } else {
        alone
    };
    Some((size, shared || talk))
}

/// The largest datagram that a path's packets take.
pub(super) fn largest(path: &Path) -> usize {
    path.send.mtu.current().saturating_sub(overhead(path) + HINT_ROOM)
}

/// Returns the number of bytes of datagrams that a path accepts now. A datagram that waits on a
/// path can no longer take another path. Two packets beyond the congestion window are accepted, so
/// that the next ACK releases a packet at once.
pub(super) fn room(path: &Path) -> u64 {
    let two = 2 * path.send.mtu.current() as u64;
    // A path over TCP has a window without end.
    let window = path.window_limit.saturating_sub(path.send.in_flight).saturating_add(two);
    window.min(path.send.pacer.burst().max(two)).saturating_sub(path.outbox.bytes())
}
