//! Notice of changes of the host's addresses, interfaces and routes: rtnetlink(7).

use rustix::io::Errno;
use rustix::net::netlink::SocketAddrNetlink;
use rustix::net::{AddressFamily, RecvFlags, SocketFlags, SocketType, bind, recv, socket_with};
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

/// Messages that tell of links, and of addresses and routes of both versions of IP
/// (`RTMGRP_LINK`, `RTMGRP_IPV4_IFADDR`, `RTMGRP_IPV4_ROUTE`, `RTMGRP_IPV6_IFADDR` and
/// `RTMGRP_IPV6_ROUTE` of linux/rtnetlink.h).
const CHANGE_GROUPS_MASK: u32 = 0x1 | 0x10 | 0x40 | 0x100 | 0x400;
/// The most messages that are taken at once. The rest is taken next time.
const MAX_MESSAGES: usize = 64;

/// The kernel's messages about changes of the host's links, addresses and routes. Only the fact of
/// a change is used.
#[derive(Debug)]
pub struct AddressChanges(OwnedFd);

impl AddressChanges {
    /// Asks the kernel to tell.
    ///
    /// # Errors
    /// The system has no rtnetlink, or no descriptor.
    pub fn open() -> io::Result<Self> {
        let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
        // The protocol of number 0, NETLINK_ROUTE.
        let socket = socket_with(AddressFamily::NETLINK, SocketType::RAW, flags, None)?;
        bind(&socket, &SocketAddrNetlink::new(0, CHANGE_GROUPS_MASK))?;
        Ok(Self(socket))
    }

    /// Whether something changed since the last call.
    #[must_use]
    pub fn take(&self) -> bool {
        let mut has_changed = false;
        for _ in 0..MAX_MESSAGES {
            // A message is cut to this buffer.
            match recv(&self.0, &mut [0_u8; 16], RecvFlags::empty()) {
                Ok(_) => has_changed = true,
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => return has_changed,
                // Messages were lost.
                Err(_) => return true,
            }
        }
        true
    }
}

impl AsFd for AddressChanges {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}
