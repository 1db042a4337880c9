//! Sockets that are full, and who waits for them.

use super::handle::Handle;
use crate::connection::full_sockets::FullSockets;
use alloc::collections::BTreeSet;
use byway_wire::RoomChange;

/// The host's full sockets, and the connections that wait for room.
#[derive(Debug, Default)]
pub(super) struct SocketWaiters {
    full: FullSockets,
    /// Connections that would send by a socket that is full.
    waiting: BTreeSet<Handle>,
}

impl SocketWaiters {
    /// Returns the full sockets.
    pub const fn full(&self) -> &FullSockets {
        &self.full
    }

    /// Handles the end of a connection.
    pub fn forget(&mut self, handle: Handle) {
        self.waiting.remove(&handle);
    }

    /// A socket is full, or has room again.
    pub fn change(&mut self, change: RoomChange) {
        self.full.set(change.local, !change.room);
    }

    /// Notes that a connection has no more packets to send, perhaps because it `waits` for a full
    /// socket.
    #[inline]
    pub fn note(&mut self, handle: Handle, waits: impl FnOnce() -> bool) {
        if self.full.any() && waits() {
            self.waiting.insert(handle);
        }
    }

    /// The next that waited, to look again.
    pub fn next_waiting(&mut self) -> Option<Handle> {
        self.waiting.pop_first()
    }
}
