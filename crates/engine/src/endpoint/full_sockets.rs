//! Sockets that are full, and who waits for them.

use super::handle::Handle;
use crate::connection::full_sockets::FullSockets;
use alloc::collections::BTreeSet;
use byway_wire::RoomChange;

/// What is known of the host's sockets.
#[derive(Debug, Default)]
pub(super) struct SocketWaiters {
    full: FullSockets,
    /// Connections that would send by a socket that is full.
    waiting: BTreeSet<Handle>,
}

impl SocketWaiters {
    /// Which sockets are full.
    pub const fn full(&self) -> &FullSockets {
        &self.full
    }

    /// A connection is gone.
    pub fn forget(&mut self, handle: Handle) {
        self.waiting.remove(&handle);
    }

    /// A socket is full, or has room again.
    pub fn change(&mut self, change: RoomChange) {
        self.full.set(change.local, !change.room);
    }

    /// A connection has nothing more to send: perhaps since it `waits` for room.
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
