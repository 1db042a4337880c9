//! Sockets that are full, and who waits for them.

use super::handle::Handle;
use super::{Endpoint, Slot};
use crate::connection::full::Full;
use alloc::collections::BTreeSet;
use byway_wire::RoomChange;

/// What is known of the host's sockets.
#[derive(Debug, Default)]
pub(super) struct Room {
    full: Full,
    /// Connections that would send by a socket that is full.
    waiting: BTreeSet<Handle>,
}

impl Room {
    /// Which sockets are full.
    pub const fn full(&self) -> &Full {
        &self.full
    }

    /// A connection is gone.
    pub fn forget(&mut self, handle: Handle) {
        self.waiting.remove(&handle);
    }
}

impl Endpoint {
    /// A socket is full, or has room again: whoever waited looks anew.
    pub(super) fn on_room(&mut self, change: RoomChange) {
        self.room.full.set(change.local, !change.room);
        while change.room
            && let Some(handle) = self.room.waiting.pop_first()
        {
            self.touch(handle);
        }
    }

    /// A connection has nothing more to send: perhaps for want of room.
    #[inline]
    pub(super) fn note_waiting(&mut self, handle: Handle) {
        if self.room.full.any()
            && let Some(Slot::Connection { connection, .. }) =
                self.entries.get(&handle).map(|entry| &entry.slot)
            && connection.waits_for_room()
        {
            self.room.waiting.insert(handle);
        }
    }
}
