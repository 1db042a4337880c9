//! The descriptors that an owner has its driver watch besides the machine's sockets: thousands of
//! local TCP connections, listeners and pipes.

use rustix::event::epoll::{self, CreateFlags, EventData, EventFlags};
use rustix::io::Errno;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;

/// The owner's name for a descriptor that is watched.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Token(pub u32);

/// A watched descriptor became ready for more than was last reported.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ready {
    /// The token of the descriptor that is ready.
    pub token: Token,
    /// A read brings something now: bytes, a connection, the end, or an error.
    pub readable: bool,
    /// Whether a write would take bytes, or return an error.
    pub writable: bool,
}

/// The descriptors that a driver waits for (epoll). Any thread may add and remove descriptors. The
/// application learns of a ready descriptor once (edge-triggered). So it reads or writes until
/// [`WouldBlock`](io::ErrorKind::WouldBlock), or calls the [`Waker`](crate::Waker) to be called
/// again.
#[derive(Clone, Debug)]
pub struct Watch(Arc<OwnedFd>);

/// The kind of descriptor that an epoll event is about, in the upper 32 bits of the event's data.
/// The lower 32 bits are the owner's token, or the number of a socket or of a TCP connection being
/// established.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum EventSource {
    Source,
    Socket,
    Device,
    Waker,
    Addresses,
    Dialing,
}

impl EventSource {
    pub(crate) const fn data(self, number: u32) -> u64 {
        (self as u64) << 32 | number as u64
    }

    pub(crate) const fn of(data: u64) -> (Self, u32) {
        let kind = match data >> 32 {
            0 => Self::Source,
            1 => Self::Socket,
            2 => Self::Device,
            3 => Self::Waker,
            4 => Self::Addresses,
            _ => Self::Dialing,
        };
        (kind, data as u32)
    }
}

impl Watch {
    pub(crate) fn new() -> io::Result<Self> {
        Ok(Self(Arc::new(epoll::create(CreateFlags::CLOEXEC)?)))
    }

    /// Watches the non-blocking `source`; events carry `token`. After a descriptor with this token
    /// was removed, its events may still arrive until the next call of `Owner::turn`.
    ///
    /// # Errors
    ///
    /// The descriptor is watched already, cannot be waited for (a regular file), or is one too
    /// many.
    pub fn add(&self, source: impl AsFd, token: Token) -> io::Result<()> {
        // If `source` is ready already, an event says so at once.
        let both = EventFlags::IN | EventFlags::OUT | EventFlags::RDHUP | EventFlags::ET;
        self.enter(source, EventSource::Source.data(token.0), both)
    }

    /// Stops watching `source`. Closing it has the same effect, unless it was duplicated.
    ///
    /// # Errors
    ///
    /// What the system says: it is not watched.
    pub fn remove(&self, source: impl AsFd) -> io::Result<()> {
        Ok(epoll::delete(&*self.0, source)?)
    }

    pub(crate) fn enter(&self, source: impl AsFd, data: u64, flags: EventFlags) -> io::Result<()> {
        Ok(epoll::add(&*self.0, source, EventData::new_u64(data), flags)?)
    }

    pub(crate) fn change(&self, source: impl AsFd, data: u64, flags: EventFlags) -> Result<(), Errno> {
        epoll::modify(&*self.0, source, EventData::new_u64(data), flags)
    }
}

impl AsFd for Watch {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}
