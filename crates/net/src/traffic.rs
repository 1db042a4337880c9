//! The system's counters of the bytes that an interface has sent and received, read over netlink
//! (RFC 3549). Netlink shows the process's own network namespace. The files in `/sys` may show
//! another namespace.

use rustix::fd::OwnedFd;
use rustix::net::{AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, recv, send, socket_with};
use std::io;

// linux/rtnetlink.h, linux/netlink.h, linux/if_link.h.
const RTM_NEWSTATS: u16 = 92;
const RTM_GETSTATS: u16 = 94;
const NLM_F_REQUEST: u16 = 1;
const IFLA_STATS_LINK_64: u16 = 1;
/// Bytes of `nlmsghdr`.
const NLMSG_HEADER_LEN: usize = 16;
/// Bytes of `if_stats_msg`, which the attributes follow.
const STATS_HEADER_LEN: usize = 12;
/// The offset of the received bytes in `rtnl_link_stats64`.
const RX_BYTES_AT: usize = 2 * 8;
/// The offset of the sent bytes in `rtnl_link_stats64`.
const TX_BYTES_AT: usize = 3 * 8;

/// Reads the byte counters of one interface.
#[derive(Debug)]
pub struct Traffic {
    socket: OwnedFd,
    index: u32,
}

impl Traffic {
    /// The counters of the interface with this number.
    ///
    /// # Errors
    /// The system gives no socket.
    pub fn of(index: u32) -> io::Result<Self> {
        // Protocol 0 is `NETLINK_ROUTE`.
        let socket = socket_with(AddressFamily::NETLINK, SocketType::RAW, SocketFlags::CLOEXEC, None)?;
        Ok(Self { socket, index })
    }

    /// Bytes sent and received so far.
    ///
    /// # Errors
    /// The interface is gone, or the system does not say.
    pub fn bytes(&self) -> io::Result<(u64, u64)> {
        send(&self.socket, &question(self.index), SendFlags::empty())?;
        let mut answer = [0; 1024];
        // The answer is there as soon as the question is taken.
        let (length, _) = recv(&self.socket, &mut answer[..], RecvFlags::DONTWAIT)?;
        read(answer.get(..length).unwrap_or_default())
            .ok_or_else(|| io::Error::new(io::ErrorKind::NotFound, "the system counts nothing there"))
    }
}

fn question(index: u32) -> [u8; NLMSG_HEADER_LEN + STATS_HEADER_LEN] {
    let mut message = [0; NLMSG_HEADER_LEN + STATS_HEADER_LEN];
    let mut put = |at: usize, bytes: &[u8]| {
        if let Some(room) = message.get_mut(at..at + bytes.len()) {
            room.copy_from_slice(bytes);
        }
    };
    put(0, &((NLMSG_HEADER_LEN + STATS_HEADER_LEN) as u32).to_ne_bytes());
    put(4, &RTM_GETSTATS.to_ne_bytes());
    put(6, &NLM_F_REQUEST.to_ne_bytes());
    put(NLMSG_HEADER_LEN + 4, &index.to_ne_bytes());
    put(NLMSG_HEADER_LEN + 8, &(1_u32 << (IFLA_STATS_LINK_64 - 1)).to_ne_bytes());
    message
}

/// Bytes sent and received.
fn read(answer: &[u8]) -> Option<(u64, u64)> {
    if u16::from_ne_bytes(*answer.get(4..)?.first_chunk()?) != RTM_NEWSTATS {
        return None;
    }
    let mut rest = answer.get(NLMSG_HEADER_LEN + STATS_HEADER_LEN..)?;
    while let Some((head, after)) = rest.split_first_chunk::<4>() {
        let [a, b, c, d] = *head;
        let (length, kind) = (usize::from(u16::from_ne_bytes([a, b])), u16::from_ne_bytes([c, d]));
        let value = after.get(..length.checked_sub(4)?)?;
        if kind == IFLA_STATS_LINK_64 {
            let number = |at: usize| Some(u64::from_ne_bytes(*value.get(at..)?.first_chunk()?));
            return Some((number(TX_BYTES_AT)?, number(RX_BYTES_AT)?));
        }
        // Attributes begin at multiples of four.
        rest = rest.get(length.next_multiple_of(4)..)?;
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::UdpSocket;

    #[test]
    fn what_passes_over_loopback_is_counted() {
        let lo = Traffic::of(nix::net::if_::if_nametoindex("lo").unwrap()).unwrap();
        let (sent, received) = lo.bytes().unwrap();
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        socket.send_to(&[7; 10_000], socket.local_addr().unwrap()).unwrap();
        let (sent_then, received_then) = lo.bytes().unwrap();
        assert!(sent_then >= sent + 10_000 && received_then >= received + 10_000);
        assert!(Traffic::of(u32::MAX / 2).unwrap().bytes().is_err());
    }

    #[test]
    fn answers_of_any_kind_are_read() {
        let answer = |kind: u16, body: &[u8]| {
            [&[0; 4], &kind.to_ne_bytes()[..], &[0; 10], &[0; STATS_HEADER_LEN], body].concat()
        };
        let attribute = |kind: u16, value: &[u8]| {
            [&(4 + value.len() as u16).to_ne_bytes()[..], &kind.to_ne_bytes(), value].concat()
        };
        let numbers: Vec<u8> = (1..=24_u64).flat_map(u64::to_ne_bytes).collect();
        let other = [attribute(7, &[1]), vec![0; 3]].concat();
        let both = [other.clone(), attribute(IFLA_STATS_LINK_64, &numbers)].concat();
        assert_eq!(read(&answer(RTM_NEWSTATS, &both)), Some((4, 3)));
        for broken in
            [&other[..], &attribute(IFLA_STATS_LINK_64, &numbers[..30]), &[0, 0, 0, 0], &[200, 0, 4, 0], &[]]
        {
            assert_eq!(read(&answer(RTM_NEWSTATS, broken)), None, "{broken:?}");
        }
        assert_eq!(read(&answer(2, &both)), None);
        for length in 0..40 {
            assert_eq!(read(&answer(RTM_NEWSTATS, &[])[..length.min(28)]), None);
        }
    }
}
