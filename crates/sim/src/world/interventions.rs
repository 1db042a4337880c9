//! A test's changes to a world from outside. It acts as an application, an attacker, a NAT or an
//! administrator.

use super::nat_filter::NatFilter;
use super::network::EdgeLink;
use super::{Handle, LinkId, Node};
use super::{NodeId, TapVerdict, TappedDatagram, World};
use crate::pipe::Pipe;
use byway_wire::{Duration, Ecn, Input, Instant, LinkChange, Local};
use core::net::SocketAddr;

impl World {
    /// Runs an action of a node's application, such as open, write or read. The machine then runs.
    pub fn act<T: Node, R>(&mut self, node: Handle<T>, action: impl FnOnce(&mut T, Instant) -> R) -> R {
        let now = self.now;
        let slot = self.slot_mut(node.id);
        let local = slot.clock.local(now);
        let Some(concrete) = slot.node.any_mut().downcast_mut::<T>() else {
            panic!("{:?} is not of this world", node.id)
        };
        let result = action(concrete, local);
        self.settle(node.id.0);
        result
    }

    /// Returns a link that is a pipe, for a change while the world runs.
    ///
    /// # Panics
    /// If it is not a [`Pipe`].
    pub fn pipe(&mut self, link: LinkId) -> &mut Pipe {
        self.network.stop_ahead(link.0);
        match &mut self.network.edge_mut(link).body {
            EdgeLink::Pipe(pipe) => pipe,
            EdgeLink::Other(_) => panic!("{link:?} is not a pipe"),
        }
    }

    /// Sets a closure that may see, change or drop every datagram that a node sends, before its
    /// first link.
    pub fn tap(&mut self, tap: impl FnMut(TappedDatagram<'_>) -> TapVerdict + 'static) {
        self.tap = Some(Box::new(tap));
    }

    /// Removes the tap.
    pub fn untap(&mut self) {
        self.tap = None;
    }

    /// Lets a datagram, forged or replayed, arrive at `to` without any link. It arrives at time
    /// `at`, not before now.
    pub fn inject(&mut self, at: Instant, from: SocketAddr, to: SocketAddr, ecn: Ecn, payload: &[u8]) {
        let slot = self.network.claim(from, to, None);
        self.network.parcel(slot).payload.extend_from_slice(payload);
        self.network.inject(at.max(self.now), slot, payload.len() as u32, ecn);
    }

    /// Rebinds a socket, as a NAT does: the world now sees the socket at `address`, and the machine
    /// is not told. Add routes for a new IP address.
    ///
    /// # Panics
    /// The address is taken, or there is no socket `local`.
    pub fn rebind(&mut self, node: impl Into<NodeId>, local: Local, address: SocketAddr) {
        let id = node.into();
        let old = self.socket(id, local).seen;
        self.owners.remove(&old);
        let taken = self.owners.insert(address, (id.0, local.0));
        assert!(taken.is_none(), "{}: {address} is taken", self.slot(id).name);
        self.generation += 1;
        let socket = self.socket(id, local);
        socket.seen = address;
        socket.forget_routes();
    }

    /// Puts a NAT in front of a socket that lets in only replies: packets from addresses and ports
    /// to which the socket sent within `lifetime`. `None`: it lets in everything.
    ///
    /// # Panics
    /// There is no socket `local`.
    pub fn set_nat_filter(&mut self, node: impl Into<NodeId>, local: Local, lifetime: Option<Duration>) {
        self.socket(node.into(), local).filter = lifetime.map(NatFilter::new);
    }

    /// Moves a socket to another address, and notifies the machine.
    ///
    /// # Panics
    /// If the address is taken, or the node has no such local.
    pub fn move_local(&mut self, node: impl Into<NodeId>, local: Local, address: SocketAddr) {
        let id = node.into();
        self.rebind(id, local, address);
        let socket = self.socket(id, local);
        socket.told = address;
        let change = LinkChange { local, address, up: socket.up };
        self.input(id.0, Input::Link(change));
        self.settle(id.0);
    }

    /// Takes a socket down or up, and notifies the machine. While the socket is down, no packet
    /// arrives at it, and sending fails.
    ///
    /// # Panics
    /// If the node has no socket `local`.
    pub fn set_up(&mut self, node: impl Into<NodeId>, local: Local, up: bool) {
        let id = node.into();
        let socket = self.socket(id, local);
        socket.up = up;
        let change = LinkChange { local, address: socket.told, up };
        self.input(id.0, Input::Link(change));
        self.settle(id.0);
    }

    /// Sets the largest UDP payload, in bytes, that a socket sends (`None`: no limit). Sending more
    /// fails with [`SendErrorKind::TooLarge`](byway_wire::SendErrorKind::TooLarge), as if the
    /// socket's interface had a small MTU.
    ///
    /// # Panics
    /// If the node has no socket `local`.
    pub fn set_largest(&mut self, node: impl Into<NodeId>, local: Local, payload: Option<usize>) {
        self.socket(node.into(), local).largest = payload.unwrap_or(usize::MAX);
    }

    /// Freezes a node, as if its process were stopped: it gets no packet and is not woken. After
    /// the thaw, it sees the present time.
    pub fn freeze(&mut self, node: impl Into<NodeId>, frozen: bool) {
        let id = node.into();
        self.slot_mut(id).frozen = frozen;
        if !frozen {
            self.wake_soon(id.0);
        }
    }

    /// Kills a node's process. Until [`restart`](Self::restart) the node gets nothing, is not woken
    /// and sends nothing. Packets that come for it are lost. Packets that it has sent travel on.
    pub fn crash(&mut self, node: impl Into<NodeId>) {
        self.freeze(node, true);
    }

    /// Starts a new process of a node, after a [`crash`](Self::crash) or while the old process
    /// runs. The new process `fresh` has the same sockets and clock, and remembers nothing. Returns
    /// the old node.
    pub fn restart<T: Node>(&mut self, node: Handle<T>, fresh: T) -> T {
        self.replace(node, fresh)
    }

    /// Puts a fresh node in the place of one that died: same sockets, same clock. Returns the old
    /// one.
    pub fn replace<T: Node>(&mut self, node: Handle<T>, fresh: T) -> T {
        let slot = self.slot_mut(node.id);
        slot.frozen = false;
        let Some(place) = slot.node.any_mut().downcast_mut::<T>() else {
            panic!("{:?} is not of this world", node.id)
        };
        let old = core::mem::replace(place, fresh);
        self.introduce(node.id.0);
        old
    }
}
