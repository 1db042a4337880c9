//! Observers of a world while it runs.

use super::driven_node::NodeId;
use super::link_id::LinkId;
use crate::link::{DropReason, Occupancy};
use byway_wire::{Duration, Ecn, Instant, Local};
use core::net::SocketAddr;

/// Something that happened to a packet on a link ([`World::observe`](crate::World::observe)).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LinkFact {
    /// The time of the event.
    pub at: Instant,
    /// The link of the event.
    pub link: LinkId,
    /// The sender of the packet, according to its header.
    pub from: SocketAddr,
    /// The address that the packet goes to.
    pub to: SocketAddr,
    /// Bytes of UDP payload, including those that are only a length. The link adds its overhead.
    pub size: usize,
    /// The ECN mark of the packet, after the link's own marking.
    pub ecn: Ecn,
    /// The event.
    pub event: LinkEvent,
}

/// An event of a packet on a link. An accepted packet is delivered, or dropped later by a queue
/// discipline such as CoDel. A copy that the link made is delivered without having been accepted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LinkEvent {
    /// The link accepted the packet.
    Accepted {
        /// The queue now, with this packet unless its service begins at once.
        waiting: Occupancy,
        /// The packet's waiting time. `None`: the discipline decides that later.
        wait: Option<Duration>,
    },
    /// The packet will not arrive.
    Dropped(DropReason),
    /// The packet has arrived at the far end.
    Delivered,
}

pub(super) type Observer = Box<dyn FnMut(&LinkFact)>;

/// A datagram as a packet capture at a node's socket would show it
/// ([`World::capture`](crate::World::capture)).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Captured<'a> {
    /// When, in the world's time.
    pub at: Instant,
    /// The node at which the event happened.
    pub node: NodeId,
    /// The node's socket.
    pub local: Local,
    /// Whether the datagram left or arrived.
    pub way: CaptureDirection,
    /// The source address of the datagram, as the network sees it.
    pub from: SocketAddr,
    /// The destination address of the datagram.
    pub to: SocketAddr,
    /// The ECN mark of the datagram.
    pub ecn: Ecn,
    /// The bytes of the datagram, as far as there are any.
    pub payload: &'a [u8],
    /// Bytes beyond the payload that are only a length.
    pub phantom: usize,
}

/// Whether a captured datagram left or came.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CaptureDirection {
    /// The datagram leaves the node, after the [tap](crate::World::tap).
    Sent,
    /// The datagram is given to the node.
    Arrived,
}

pub(super) type Capture = Box<dyn FnMut(&Captured<'_>)>;
