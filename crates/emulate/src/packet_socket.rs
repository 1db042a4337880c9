//! Packet sockets (packet(7)). They show all that crosses a device, as frames, with the time at
//! which the kernel saw them.

use byway_net::Clock;
use byway_wire::{Duration, Instant};
use nix::cmsg_space;
use nix::ifaddrs::getifaddrs;
use nix::sys::socket::{
    AddressFamily, ControlMessageOwned, LinkAddr, MsgFlags, SockFlag, SockProtocol, SockType, bind, recvmsg,
    setsockopt, socket, sockopt,
};
use nix::sys::time::TimeSpec;
use rustix::net::{SendFlags, send};
use rustix::time::{ClockId, clock_gettime};
use std::cell::Cell;
use std::io::{self, IoSliceMut};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};

/// Bytes that may wait until the keeper reads them: half a second at 200 Mbit/s.
const BUFFER_BYTES: usize = 32 << 20;

/// The end of a wire: a device whose frames are taken from the kernel, and given to it.
#[derive(Debug)]
pub(crate) struct Port {
    socket: OwnedFd,
    /// The kernel's latest count of dropped frames since the socket was opened.
    missed: Cell<u32>,
}

/// Room for the control messages that the kernel adds to a frame.
pub(crate) struct ControlBuffer(Vec<u8>);

impl ControlBuffer {
    pub(crate) fn new() -> Self {
        Self(cmsg_space!(TimeSpec, u32))
    }
}

/// A frame that was fetched.
pub(crate) struct ReceivedFrame {
    /// The length of the frame in bytes.
    pub(crate) length: usize,
    /// The kernel's timestamp of the frame, by the wall clock.
    pub(crate) stamp: Option<WallTime>,
    /// Number of frames that the kernel dropped since the frame before.
    pub(crate) missed: u64,
}

/// A time of the wall clock, in nanoseconds.
#[derive(Clone, Copy, Debug)]
pub(crate) struct WallTime(u64);

impl Port {
    /// Opens a packet socket on a device in this thread's network namespace.
    pub(crate) fn open(device: &str) -> io::Result<Self> {
        let socket = socket(
            AddressFamily::Packet,
            SockType::Raw,
            SockFlag::SOCK_CLOEXEC | SockFlag::SOCK_NONBLOCK,
            SockProtocol::EthAll,
        )?;
        // Forced beyond the system's limit where that is allowed; where it is not, bursts may be
        // lost, and are counted.
        if setsockopt(&socket, sockopt::RcvBufForce, &BUFFER_BYTES).is_err() {
            setsockopt(&socket, sockopt::RcvBuf, &BUFFER_BYTES)?;
        }
        setsockopt(&socket, sockopt::ReceiveTimestampns, &true)?;
        setsockopt(&socket, sockopt::RxqOvfl, &1)?;
        bind(socket.as_raw_fd(), &address(device)?)?;
        Ok(Self { socket, missed: Cell::new(0) })
    }

    /// Reads the next frame into `buffer`. `None`: no frame waits.
    pub(crate) fn fetch(
        &self,
        buffer: &mut [u8],
        control: &mut ControlBuffer,
    ) -> io::Result<Option<ReceivedFrame>> {
        let mut room = [IoSliceMut::new(buffer)];
        let flags = MsgFlags::MSG_DONTWAIT;
        let message = recvmsg::<LinkAddr>(self.socket.as_raw_fd(), &mut room, Some(&mut control.0), flags);
        let message = match message {
            Ok(message) => message,
            Err(nix::errno::Errno::EAGAIN | nix::errno::Errno::EINTR) => return Ok(None),
            // The device went down or away, and says so once: then nothing comes.
            Err(nix::errno::Errno::ENETDOWN | nix::errno::Errno::ENODEV) => return Ok(None),
            Err(error) => return Err(error.into()),
        };
        let (mut stamp, mut total) = (None, self.missed.get());
        for item in message.cmsgs()? {
            match item {
                ControlMessageOwned::ScmTimestampns(time) => stamp = Some(WallTime(wall_nanos(time))),
                ControlMessageOwned::RxqOvfl(dropped) => total = dropped,
                _ => {}
            }
        }
        let length = message.bytes;
        let missed = u64::from(total.wrapping_sub(self.missed.get()));
        self.missed.set(total);
        Ok(Some(ReceivedFrame { length, stamp, missed }))
    }

    /// Whether the kernel took the frame.
    pub(crate) fn put(&self, frame: &[u8]) -> bool {
        loop {
            match send(&self.socket, frame, SendFlags::DONTWAIT) {
                Err(rustix::io::Errno::INTR) => {}
                other => return other.is_ok(),
            }
        }
    }
}

impl AsFd for Port {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

fn address(device: &str) -> io::Result<LinkAddr> {
    let found = getifaddrs()?.find_map(|entry| {
        let link = entry.address.as_ref()?.as_link_addr().copied()?;
        (entry.interface_name == device).then_some(link)
    });
    found.ok_or_else(|| io::Error::new(io::ErrorKind::NotFound, format!("there is no device {device}")))
}

fn wall_nanos(time: TimeSpec) -> u64 {
    let seconds = u64::try_from(time.tv_sec()).unwrap_or(0);
    seconds * 1_000_000_000 + u64::try_from(time.tv_nsec()).unwrap_or(0)
}

/// The two clocks, read together: the kernel's stamps use one, and the links use the other.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ClockPair {
    now: Instant,
    wall: u64,
}

/// The oldest timestamp of a frame that is believed. An older one means that the wall clock was
/// set.
const MAX_STAMP_AGE: Duration = Duration::from_secs(1);

impl ClockPair {
    pub(crate) fn read(clock: &Clock) -> Self {
        let wall = clock_gettime(ClockId::Realtime);
        let wall = wall_nanos(TimeSpec::new(wall.tv_sec, wall.tv_nsec));
        Self { now: clock.now(), wall }
    }

    /// The arrival time of a frame with this kernel timestamp. So a late read of the frame does not
    /// count as delay.
    pub(crate) fn came(&self, stamp: Option<WallTime>) -> Instant {
        let age = stamp.and_then(|stamp| self.wall.checked_sub(stamp.0)).map(Duration::from_nanos);
        match age {
            Some(age) if age <= MAX_STAMP_AGE => self.now - age,
            _ => self.now,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stamp_is_an_age_unless_the_clock_was_set() {
        let now = Instant::from_millis(5_000);
        let clocks = ClockPair { now, wall: 1_700_000_000_000_000_000 };
        let came = |ago: i64| clocks.came(Some(WallTime(clocks.wall.saturating_add_signed(-ago))));
        assert_eq!(came(250_000), now - Duration::from_micros(250));
        assert_eq!(came(-1), now, "from the future");
        assert_eq!(came(2_000_000_000), now, "too old");
        assert_eq!(clocks.came(None), now);
    }
}
