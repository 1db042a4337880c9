//! A tunnel to a peer: its sessions, their paths, and the packets that wait for a path. Packets
//! leave by the newest session and are accepted from all. With more than two sessions, the oldest
//! is closed.

use super::index_vec::PeerIdx;
use super::loss_detection::LossDetector;
use super::missing_packets::Holes;
use super::packet_buffer::PacketBuffer;
use super::tunnel_estimate::TunnelEstimate;
use crate::encap::{Label, Message};
use crate::entry::{EntryLimits, EntryQueue};
use crate::epoch::Epochs;
use crate::flow_table::FlowId;
use crate::path_selection::PathNeed;
use crate::reorder::{PacketLateness, PathDelay, PathDelays};
use alloc::collections::{BTreeMap, VecDeque};
use alloc::vec::Vec;
use byway_engine::{Endpoint, Handle};
use byway_wire::{Duration, Instant, PathId, Writer};

/// A path without a packet for so long no longer counts for the delays.
const DELAY_LIFETIME: Duration = Duration::from_secs(2);
/// The most reports of losses that wait for a path.
const MAX_REPORTS: usize = 1_024;
/// The most sessions of one tunnel.
const MAX_SESSIONS: usize = 2;

/// A packet that waits at the entry.
#[derive(Debug)]
pub(super) struct QueuedPacket {
    pub flow: FlowId,
    pub parcel: PacketBuffer,
    /// The packet's demand on its path: room, or a short delay.
    pub want: PathNeed,
    /// The TCP sequence numbers in the packet: the first, and one past the last.
    pub range: (u32, u32),
}

/// The additional state of a tunnel for one flow.
#[derive(Clone, Copy, Debug)]
pub(super) struct Dedicated {
    /// The flow. `None`: it is not known yet.
    pub flow: Option<FlowId>,
    /// Whether this gateway opened the tunnel. If so, it also closes it.
    pub opened_here: bool,
    /// Whether the peer has accepted the tunnel. It may still close the session at once.
    pub taken: bool,
    /// When to check whether the tunnel is still needed.
    pub look_at: Instant,
}

/// A tunnel to a peer: a bundle of paths under one controller.
#[derive(Debug)]
pub(super) struct Tunnel {
    /// The peer at the tunnel's other end.
    pub peer: PeerIdx,
    /// The state of a tunnel for one flow. `None`: the tunnel serves all flows.
    pub dedicated: Option<Dedicated>,
    /// Live sessions, the newest last.
    pub sessions: Vec<Handle>,
    pub dialling: Option<Handle>,
    /// Packets that wait for the tunnel's paths.
    pub entry: EntryQueue<QueuedPacket>,
    /// Datagrams that a path returned. They are sent first, unchanged.
    pub returned: VecDeque<Vec<u8>>,
    /// The delays of the paths on which packets arrive.
    delays: BTreeMap<(Handle, PathId), (Instant, PathDelays)>,
    /// How late the tunnel's packets arrive.
    pub lateness: PacketLateness,
    /// The estimate of the tunnel, updated from time to time.
    pub way: TunnelEstimate,
    /// Flows whose data the tunnel carried recently. Some may have ended.
    pub sending: Vec<FlowId>,
    /// Whether the tunnel is in the list of tunnels with waiting packets.
    pub waits: bool,
    /// Finds lost packets. `None`: the sessions do so.
    pub loss_detector: Option<LossDetector>,
    /// When each path was last penalised for losses that the gateway found.
    pub epochs: Epochs,
    /// The packets that are missing among the arrived ones, according to the peer's maps.
    pub holes: Holes,
}

impl Tunnel {
    pub fn new(peer: PeerIdx, limits: EntryLimits, loss_detector: Option<LossDetector>) -> Self {
        Self {
            peer,
            dedicated: None,
            sessions: Vec::new(),
            dialling: None,
            entry: EntryQueue::new(limits),
            returned: VecDeque::new(),
            delays: BTreeMap::new(),
            lateness: PacketLateness::default(),
            way: TunnelEstimate::default(),
            sending: Vec::new(),
            waits: false,
            loss_detector,
            epochs: Epochs::new(),
            holes: Holes::default(),
        }
    }

    /// Whether the tunnel serves one flow only.
    pub const fn is_dedicated(&self) -> bool {
        self.dedicated.is_some()
    }

    /// When to check whether the tunnel is still needed. `None`: the peer decides.
    pub fn deadline(&self) -> Option<Instant> {
        self.dedicated.filter(|dedicated| dedicated.opened_here).map(|dedicated| dedicated.look_at)
    }

    /// The session that packets go by.
    pub fn session(&self) -> Option<Handle> {
        self.sessions.last().copied()
    }

    /// Returns the number of the queue in which a flow's packets wait. The flow of a dedicated
    /// tunnel has the number 0.
    pub fn slot(&self, flow: FlowId) -> u32 {
        if self.is_dedicated() { 0 } else { flow.slot() }
    }

    /// Returns the demand of the next datagram on its path, and its bytes with a header of `header`
    /// bytes. `None`: no datagram waits.
    pub fn next_want(&mut self, header: usize) -> Option<(PathNeed, usize)> {
        match self.returned.front() {
            Some(datagram) if Message::is_urgent(datagram) => Some((PathNeed::Soon, datagram.len())),
            Some(datagram) => Some((PathNeed::Room, datagram.len())),
            None => {
                let (_, waiting) = self.entry.peek()?;
                Some((waiting.want, waiting.parcel.len() + header))
            }
        }
    }

    /// Notes that a session is established.
    pub fn on_session(&mut self, now: Instant, handle: Handle, endpoint: &mut Endpoint) {
        if self.dialling == Some(handle) {
            self.dialling = None;
        }
        self.sessions.push(handle);
        self.new_paths();
        if self.sessions.len() > MAX_SESSIONS {
            let oldest = self.sessions.remove(0);
            endpoint.close(now, oldest, 0, "a newer session took its place");
        }
    }

    /// A session, or the attempt at one, is over. Whether there is none now, and was one.
    pub fn on_gone(&mut self, handle: Handle) -> bool {
        let before = self.sessions.len();
        self.sessions.retain(|session| *session != handle);
        self.new_paths();
        let lost = self.sessions.len() < before;
        if self.dialling == Some(handle) {
            self.dialling = None;
        }
        self.delays.retain(|(session, _), _| *session != handle);
        lost && self.sessions.is_empty()
    }

    /// Queues a packet of a flow. The buffers of packets that must leave for it are passed to
    /// `spare`.
    pub fn push(&mut self, waiting: QueuedPacket, mut spare: impl FnMut(Vec<u8>)) {
        let slot = self.slot(waiting.flow);
        self.entry
            .push(slot, waiting.parcel.len(), waiting, |_, dropped| spare(dropped.parcel.into_buffer()));
    }

    /// Handles the map of a peer's packet, and queues reports of missing packets. Returns whether
    /// any report was queued.
    pub fn on_map(&mut self, label: Label, sequence: u32, map: u32) -> bool {
        let returned = &mut self.returned;
        let before = returned.len();
        self.holes.on_arrived(label, sequence, map, |first, end| {
            if returned.len() < MAX_REPORTS {
                let mut datagram = alloc::vec![0; 12];
                Message::Loss { label, first, end }.write(&mut Writer::new(&mut datagram));
                returned.push_back(datagram);
            }
        });
        returned.len() > before
    }

    /// Removes all waiting packets and returns them.
    pub fn release(&mut self) -> Vec<PacketBuffer> {
        let returned = core::mem::take(&mut self.returned);
        let mut released: Vec<PacketBuffer> =
            returned.iter().filter_map(|datagram| PacketBuffer::of_datagram(datagram)).collect();
        while let Some((_, waiting)) = self.entry.pop() {
            released.push(waiting.parcel);
        }
        released
    }

    /// Marks the tunnel as ended, so that its place can be used again.
    pub fn vacate(&mut self) {
        let (limits, loss_detector) = (EntryLimits::default(), None);
        let fresh = Self { waits: self.waits, ..Self::new(self.peer, limits, loss_detector) };
        // What was counted of what waited stays.
        self.entry.clear(0);
        let entry = core::mem::replace(self, fresh).entry;
        self.entry = entry;
    }

    /// Resets the state of paths when the tunnel gets new ones, as these may have the ids of old
    /// ones.
    fn new_paths(&mut self) {
        self.epochs = Epochs::new();
        if let Some(loss_detector) = &mut self.loss_detector {
            loss_detector.clear();
        }
    }

    /// Whether the handle is a session or an attempt of this tunnel.
    pub fn has(&self, handle: Handle) -> bool {
        self.dialling == Some(handle) || self.sessions.contains(&handle)
    }

    /// Notes the delay of a packet that arrived on `path`.
    pub fn on_delay(&mut self, now: Instant, session: Handle, path: PathId, delay: i64) {
        let rtt = self.way.rtt;
        let (last, delays) = self.delays.entry((session, path)).or_insert_with(|| (now, PathDelays::new()));
        *last = now;
        delays.on_packet(now, delay, rtt);
    }

    /// The delays of the paths by which packets come now.
    pub fn delays(&self, now: Instant) -> impl Iterator<Item = PathDelay> + Clone + '_ {
        let fresh = move |(last, _): &&(Instant, PathDelays)| now.since(*last) <= DELAY_LIFETIME;
        self.delays.values().filter(fresh).filter_map(|(_, delays)| delays.view())
    }

    /// Forgets paths by which nothing came for long.
    pub fn forget_delays(&mut self, now: Instant) {
        self.delays.retain(|_, (last, _)| now.since(*last) <= DELAY_LIFETIME * 16);
    }
}
