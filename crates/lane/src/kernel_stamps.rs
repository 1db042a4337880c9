//! The kernel's time stamps of what a TCP socket sends (`SO_TIMESTAMPING`): when a segment went to
//! the network device's queue, and when its ACK came.

use crate::write_ledger::{Stamp, StampKind};
use nix::sys::socket::sockopt::{TcpMaxSeg, Timestamping};
use nix::sys::socket::{ControlMessageOwned, MsgFlags, TimestampingFlag, getsockopt, recvmsg, setsockopt};
use std::io::{self, IoSliceMut};
use std::os::fd::{AsFd, AsRawFd as _};

/// `SOF_TIMESTAMPING_TX_SCHED` and `SOF_TIMESTAMPING_TX_ACK` of linux/net_tstamp.h.
const TX_SCHED: u32 = 1 << 8;
const TX_ACK: u32 = 1 << 9;
/// `SCM_TSTAMP_SCHED` and `SCM_TSTAMP_ACK` of linux/errqueue.h.
const SCHED_STAMP: u32 = 1;
const ACK_STAMP: u32 = 2;
/// `SO_EE_ORIGIN_TIMESTAMPING` of linux/errqueue.h.
const TIMESTAMPING_ORIGIN: u8 = 4;
/// Bytes of the control messages of one stamp: three times of 16 bytes, and an error with an
/// address.
const CONTROL_LEN: usize = 256;
/// The most stamps read of one socket at once. Others are read in the next turn.
pub(crate) const MAX_STAMPS: usize = 256;

/// Has the kernel stamp what an established connection sends from now on.
pub(crate) fn begin(socket: impl AsFd) -> io::Result<()> {
    let flags = TimestampingFlag::SOF_TIMESTAMPING_SOFTWARE
        | TimestampingFlag::SOF_TIMESTAMPING_OPT_ID
        | TimestampingFlag::SOF_TIMESTAMPING_OPT_TSONLY
        | TimestampingFlag::from_bits_retain(TX_SCHED | TX_ACK);
    Ok(setsockopt(&socket, Timestamping, &flags)?)
}

/// Bytes of a full segment of a connection.
pub(crate) fn segment_len(socket: impl AsFd) -> io::Result<usize> {
    Ok(getsockopt(&socket, TcpMaxSeg)? as usize)
}

/// Reads the stamps that wait, in their order, at most [`MAX_STAMPS`].
pub(crate) fn read(socket: impl AsFd, mut take: impl FnMut(Stamp)) {
    let mut control = [0; CONTROL_LEN];
    for _ in 0..MAX_STAMPS {
        let mut nothing: [IoSliceMut<'_>; 0] = [];
        let flags = MsgFlags::MSG_ERRQUEUE | MsgFlags::MSG_DONTWAIT;
        let fd = socket.as_fd().as_raw_fd();
        let Ok(message) = recvmsg::<()>(fd, &mut nothing, Some(&mut control), flags) else { return };
        let (mut wall, mut about) = (None, None);
        for told in message.cmsgs().into_iter().flatten() {
            match told {
                ControlMessageOwned::ScmTimestampsns(stamps) => wall = Some(stamps.system),
                ControlMessageOwned::Ipv4RecvErr(error, _) | ControlMessageOwned::Ipv6RecvErr(error, _)
                    if error.ee_origin == TIMESTAMPING_ORIGIN =>
                {
                    about = Some((error.ee_info, error.ee_data));
                }
                _ => {}
            }
        }
        let (Some(wall), Some((kind, byte))) = (wall, about) else { continue };
        let kind = match kind {
            SCHED_STAMP => StampKind::Sent,
            ACK_STAMP => StampKind::Acknowledged,
            _ => continue,
        };
        let wall_nanos = wall.tv_sec().saturating_mul(1_000_000_000).saturating_add(wall.tv_nsec());
        take(Stamp { kind, byte, wall_nanos });
    }
}
