//! Datagrams: unreliable messages whose path the owner chooses.
//!
//! Objects and streams may take any path in any order; a packet of somebody else's flow may not, so its owner looks at the
//! [paths](Connection::path_views) and sends it by [one of them](Connection::send_datagram). They are congestion
//! controlled like all data. A path that has no room refuses: the queue, and who is dropped from it, are the owner's. What
//! a path took on and cannot carry any more (it is choked, silent or dropped, or its packets became smaller) comes back by
//! [`next_returned`](Connection::next_returned).

use super::Connection;
use super::path::{Path, State};
use crate::config::Config;
use crate::data::Carried;
use crate::path::ledger::Cargo;
use alloc::collections::VecDeque;
use alloc::vec::Vec;
use byway_control::{Congested, Trigger};
use byway_wire::codec::varint_len;
use byway_wire::packet::OVERHEAD;
use byway_wire::{Duration, Instant, PathId, Writer, frame};

/// Room that the largest datagram leaves for a PING and a hint about the path.
const HINT_ROOM: usize = 20;
/// Buffers of received datagrams that are kept for later ones.
const SPARE: usize = 64;

/// Datagrams that wait to be taken back at most.
const MOST_RETURNED: usize = 1 << 14;

/// What whoever chooses paths should know of one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PathView {
    /// Its name.
    pub id: PathId,
    /// Whether it carries data: active, and not silent while another is heard of.
    pub usable: bool,
    /// Whether nothing was acknowledged on it for a whole timeout.
    pub silent: bool,
    /// Whether it leads through a relay.
    pub proxied: bool,
    /// Bytes in flight, and those of datagrams that it took on and did not send yet.
    pub in_flight: u64,
    /// Congestion window in bytes.
    pub window: u64,
    /// Bytes that [`send_datagram`](Connection::send_datagram) takes now, more or less; 0: it refuses.
    pub room: u64,
    /// Smoothed RTT.
    pub srtt: Duration,
    /// The smallest RTT of late.
    pub min_rtt: Duration,
    /// What waits in queues on the way there, if delay was measured.
    pub queueing: Option<Duration>,
    /// The largest datagram that fits into its packets, in bytes.
    pub largest: usize,
}

/// Why a datagram is not taken; nothing was done with it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refused {
    /// There is no such path, or it carries no data now.
    #[error("the path carries no data now")]
    NotActive,
    /// Window and queue of the path are full.
    #[error("the path has no room now")]
    NoRoom,
    /// It fits into no packet of this path.
    #[error("a datagram of this path has at most {0} bytes")]
    TooLarge(usize),
}

/// A datagram that arrived.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Received {
    /// The peer's path that it came by.
    pub path: PathId,
    /// When it arrived.
    pub at: Instant,
    /// The sender's clock when its packet left: microseconds, modulo 2^32, from an unknown origin. With `at`, one-way delays of
    /// paths can be compared.
    pub stamp: u32,
    /// The message. [Give the buffer back](Connection::recycle) when done.
    pub data: Vec<u8>,
}

/// What became of a datagram.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fate {
    /// The mark it was sent with.
    pub mark: u64,
    /// Whether it arrived; otherwise it is believed lost. One believed lost may be told to have arrived later.
    pub arrived: bool,
}

/// A datagram on its way out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Parcel {
    mark: u64,
    data: Vec<u8>,
}

/// Datagrams that one path took on.
#[derive(Debug, Default)]
pub(super) struct Outbox {
    parcels: VecDeque<Parcel>,
    bytes: u64,
}

impl Outbox {
    pub fn is_empty(&self) -> bool {
        self.parcels.is_empty()
    }

    fn push(&mut self, parcel: Parcel) {
        self.bytes += parcel.data.len() as u64;
        self.parcels.push_back(parcel);
    }

    fn pop(&mut self) -> Option<Parcel> {
        let parcel = self.parcels.pop_front()?;
        self.bytes -= parcel.data.len() as u64;
        Some(parcel)
    }
}

/// The datagrams of one connection, but for those that paths took on.
#[derive(Debug)]
pub(super) struct Datagrams {
    /// How many received ones may wait for the owner, and fates too; and whether fates are told at all.
    most: usize,
    fates_wanted: bool,
    /// How many are in outboxes.
    pub waiting: usize,
    received: VecDeque<Received>,
    returned: VecDeque<Parcel>,
    fates: VecDeque<Fate>,
    spare: Vec<Vec<u8>>,
    /// Whether the endpoint has told that there is something to take, and the owner has not taken all since.
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

    /// One arrived. When the owner is slow, the oldest goes.
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
        self.received.push_back(Received { path, at, stamp, data: buffer });
    }

    pub fn on_fate(&mut self, mark: u64, arrived: bool) {
        if self.fates.len() >= self.most {
            self.fates.pop_front();
        }
        self.fates.push_back(Fate { mark, arrived });
    }

    /// Takes back what a path took on.
    pub fn recall(&mut self, outbox: &mut Outbox) {
        while let Some(parcel) = outbox.pop() {
            self.waiting -= 1;
            self.give_back(parcel);
        }
    }

    /// Takes back what is first in line and does not fit any more, because the path's packets became smaller.
    pub fn return_misfits(&mut self, path: &mut Path) {
        let most = path.send.mtu.current().saturating_sub(overhead(path));
        while path.outbox.parcels.front().is_some_and(|first| first.data.len() > most)
            && let Some(parcel) = path.outbox.pop()
        {
            self.waiting -= 1;
            self.give_back(parcel);
        }
    }

    /// An owner that never takes them loses the oldest.
    fn give_back(&mut self, parcel: Parcel) {
        if self.returned.len() >= MOST_RETURNED {
            self.returned.pop_front();
        }
        self.returned.push_back(parcel);
    }

    fn recycle(&mut self, buffer: Vec<u8>) {
        if self.spare.len() < SPARE {
            self.spare.push(buffer);
        }
    }
}

/// Bytes of a packet that are no datagram's, with the type of the frame.
fn overhead(path: &Path) -> usize {
    path.route.overhead() + OVERHEAD + 1
}

/// The size of the packet to begin now, and whether more than a datagram may stand in it: one that alone fills it makes runs of
/// equal packets, which leave in one call; small ones travel together, and with what wants `beside` bytes beside them.
pub(super) fn packet_size(path: &Path, now: Instant, beside: usize) -> Option<(usize, bool)> {
    let mtu = path.send.mtu.current();
    let mut parcels = path.outbox.parcels.iter();
    let first = parcels.next()?.data.len();
    let alone = overhead(path) + first;
    let second = parcels.next().map(|parcel| parcel.data.len());
    let fits = |more: usize| alone + varint_len(first as u64) + more <= mtu;
    let shared = second.is_some_and(|second| fits(1 + second)) || beside > 0 && fits(beside);
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

impl Path {
    /// The largest datagram that its packets take.
    fn largest_datagram(&self) -> usize {
        self.send.mtu.current().saturating_sub(overhead(self) + HINT_ROOM)
    }

    /// Bytes of datagrams that it takes on now: what pacer and window let go soon, so that little waits where it cannot change its
    /// path any more; and two packets beyond the window, so that acknowledgments find something to send.
    fn datagram_room(&self) -> u64 {
        let two = 2 * self.send.mtu.current() as u64;
        let window = self.allowance.window.saturating_sub(self.send.in_flight) + two;
        window.min(self.send.pacer.burst().max(two)).saturating_sub(self.outbox.bytes)
    }
}

/// The owner's side.
impl Connection {
    /// What there is to choose from: paths that are active or choked.
    pub fn path_views(&self) -> impl Iterator<Item = PathView> + '_ {
        let heard = self.paths.iter().any(|path| path.state == State::Active && path.send.timeouts() == 0);
        let kept = |path: &&Path| matches!(path.state, State::Active | State::Choked);
        self.paths.iter().filter(kept).map(move |path| {
            let usable = path.state == State::Active && (path.send.timeouts() == 0 || !heard);
            PathView {
                id: path.id(),
                usable,
                silent: path.send.timeouts() > 0,
                proxied: path.route.is_proxied(),
                in_flight: path.send.in_flight + path.outbox.bytes,
                window: path.allowance.window,
                room: if usable { path.datagram_room() } else { 0 },
                srtt: path.send.rtt.smoothed(),
                min_rtt: path.send.rtt.minimum(),
                queueing: path.send.queueing(),
                largest: path.largest_datagram(),
            }
        })
    }

    /// Sends a datagram by `path`. With [`Config::datagram_fates`], what became of it is told under `mark`.
    pub fn send_datagram(
        &mut self,
        path: PathId,
        mark: u64,
        data: Vec<u8>,
    ) -> Result<(), (Refused, Vec<u8>)> {
        let Some(taken) = self.paths.get_mut(path).filter(|path| path.state == State::Active) else {
            return Err((Refused::NotActive, data));
        };
        let largest = taken.largest_datagram();
        if data.len() > largest {
            return Err((Refused::TooLarge(largest), data));
        }
        if taken.datagram_room() == 0 {
            return Err((Refused::NoRoom, data));
        }
        taken.outbox.push(Parcel { mark, data });
        self.datagrams.waiting += 1;
        if !taken.paced {
            self.make_ready(path);
        }
        Ok(())
    }

    /// The next datagram that arrived.
    pub fn next_datagram(&mut self) -> Option<Received> {
        let next = self.datagrams.received.pop_front();
        self.datagrams.told &= next.is_some();
        next
    }

    /// Gives the buffer of a datagram back that is not needed any more: another gets it.
    pub fn recycle(&mut self, buffer: Vec<u8>) {
        self.datagrams.recycle(buffer);
    }

    /// The next datagram that a path took on and cannot carry any more, with its mark.
    pub fn next_returned(&mut self) -> Option<(u64, Vec<u8>)> {
        self.datagrams.returned.pop_front().map(|parcel| (parcel.mark, parcel.data))
    }

    /// What became of a datagram that was sent, if the owner wants to know ([`Config::datagram_fates`]).
    pub fn next_fate(&mut self) -> Option<Fate> {
        self.datagrams.fates.pop_front()
    }

    /// The owner holds a packet for lost that was sent on `path` at `sent_at` and had so many `bytes`: where it
    /// [judges](Config::owner_judges_losses), the controller hears of it. Of a path that carries nothing, it does not.
    pub fn judge_lost(&mut self, now: Instant, path: PathId, sent_at: Instant, bytes: u64) {
        let Self { paths, controller, config, .. } = self;
        let active = |path: &&mut Path| path.state == State::Active;
        let Some(found) = paths.get_mut(path).filter(active).filter(|_| config.owner_judges_losses) else {
            return;
        };
        let in_flight = found.send.in_flight + bytes;
        let lost =
            Congested { trigger: Trigger::Loss, first_sent_at: sent_at, sent_at, now, bytes, in_flight };
        controller.on_congested(path, &lost);
        self.refresh_all(now, Some(path));
    }
}

/// The connection's side.
impl Connection {
    /// Whether there is something to take of which nobody was told: datagrams that arrived or came back, and what became of
    /// others.
    pub(crate) fn has_datagram_news(&mut self) -> bool {
        let Datagrams { received, returned, fates, .. } = &self.datagrams;
        let some = !(received.is_empty() && returned.is_empty() && fates.is_empty());
        some && !core::mem::replace(&mut self.datagrams.told, true)
    }

    /// Takes back the datagrams of a path that carries none for now.
    pub(super) fn recall(&mut self, id: PathId) {
        if let Some(path) = self.paths.get_mut(id) {
            self.datagrams.recall(&mut path.outbox);
        }
    }

    /// Writes datagrams of this path's: one to the end of the packet, or several.
    pub(super) fn write_datagrams(&mut self, id: PathId, writer: &mut Writer<'_>, cargo: &mut Cargo) {
        let Some(path) = self.paths.get_mut(id) else { return };
        while let Some(parcel) = path.outbox.parcels.front() {
            let (room, length) = (writer.room(), parcel.data.len());
            let counted = room != 1 + length;
            if counted && room < 1 + varint_len(length as u64) + length {
                break;
            }
            frame::write_datagram(writer, &parcel.data, counted);
            let Some(parcel) = path.outbox.pop() else { break };
            self.datagrams.waiting -= 1;
            if self.datagrams.fates_wanted {
                cargo.push(Carried::Datagram(parcel.mark));
            }
            self.datagrams.recycle(parcel.data);
        }
    }
}
