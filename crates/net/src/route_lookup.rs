//! Finds the interface by which the system would send, for a given source and destination address,
//! and whether a destination is the host itself. A bound socket does not tell its interface, so the
//! routing tables are asked over netlink (RFC 3549). Nothing is sent.

use rustix::net::{AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, recv, send, socket_with};
use std::io;
use std::net::IpAddr;

// linux/rtnetlink.h, linux/netlink.h.
const RTM_NEWROUTE: u16 = 24;
const RTM_GETROUTE: u16 = 26;
const NLMSG_ERROR: u16 = 2;
const NLM_F_REQUEST: u16 = 1;
const RTA_DST: u16 = 1;
const RTA_SRC: u16 = 2;
const RTA_OIF: u16 = 4;
/// Bytes of `nlmsghdr`.
const NLMSG_HEADER_LEN: usize = 16;
/// Bytes of `rtmsg`, which the attributes follow.
const ROUTE_HEADER_LEN: usize = 12;
/// The offset of the route's type in `rtmsg`, and the types for this host: `RTN_LOCAL`,
/// `RTN_BROADCAST`, `RTN_ANYCAST`.
const ROUTE_TYPE_AT: usize = 7;
const OWN_ROUTES: [u8; 3] = [2, 3, 4];

/// The number of the interface by which datagrams from `source` to `destination` leave. `None` if
/// there is no route.
///
/// # Errors
/// The netlink query failed, or its answer makes no sense.
pub fn way_out(source: IpAddr, destination: IpAddr) -> io::Result<Option<u32>> {
    ask(&question(Some(source), destination), read)
}

/// Whether datagrams to this address arrive at this host itself: the kernel has a local, broadcast
/// or anycast route there. False without a route.
///
/// # Errors
/// The netlink query failed, or its answer makes no sense.
pub fn is_own(destination: IpAddr) -> io::Result<bool> {
    ask(&question(None, destination), read_own)
}

fn ask<T>(question: &[u8], read: impl Fn(&[u8]) -> Option<T>) -> io::Result<T> {
    // Protocol 0 is `NETLINK_ROUTE`.
    let socket = socket_with(AddressFamily::NETLINK, SocketType::RAW, SocketFlags::CLOEXEC, None)?;
    send(&socket, question, SendFlags::empty())?;
    let mut answer = [0; 4096];
    // The answer is there as soon as the question is taken.
    let (length, _) = recv(&socket, &mut answer[..], RecvFlags::DONTWAIT)?;
    read(answer.get(..length).unwrap_or_default()).ok_or_else(|| {
        io::Error::new(io::ErrorKind::InvalidData, "the system's answer about a route makes no sense")
    })
}

fn question(source: Option<IpAddr>, destination: IpAddr) -> Vec<u8> {
    let (family, bits) = match destination {
        IpAddr::V4(_) => (AddressFamily::INET, 32),
        IpAddr::V6(_) => (AddressFamily::INET6, 128),
    };
    let mut message = vec![0; NLMSG_HEADER_LEN];
    message.extend([family.as_raw() as u8, bits, bits, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
    let attributes = [Some((RTA_DST, destination)), source.map(|source| (RTA_SRC, source))];
    for (kind, address) in attributes.into_iter().flatten() {
        let bytes = match address {
            IpAddr::V4(ip) => ip.octets().to_vec(),
            IpAddr::V6(ip) => ip.octets().to_vec(),
        };
        message.extend((4 + bytes.len() as u16).to_ne_bytes());
        message.extend(kind.to_ne_bytes());
        message.extend(bytes);
    }
    let length = (message.len() as u32).to_ne_bytes();
    let header = [&length[..], &RTM_GETROUTE.to_ne_bytes(), &NLM_F_REQUEST.to_ne_bytes()].concat();
    message.splice(..header.len(), header);
    message
}

/// The outgoing interface in an answer. `Some(None)`: there is no route. `None`: the bytes are no
/// answer.
fn read(answer: &[u8]) -> Option<Option<u32>> {
    let kind = u16::from_ne_bytes(*answer.get(4..)?.first_chunk()?);
    let body = answer.get(NLMSG_HEADER_LEN..)?;
    match kind {
        NLMSG_ERROR => (i32::from_ne_bytes(*body.first_chunk()?) != 0).then_some(None),
        RTM_NEWROUTE => {
            let mut rest = body.get(ROUTE_HEADER_LEN..)?;
            while let Some((head, after)) = rest.split_first_chunk::<4>() {
                let [a, b, c, d] = *head;
                let (length, kind) = (usize::from(u16::from_ne_bytes([a, b])), u16::from_ne_bytes([c, d]));
                let value = after.get(..length.checked_sub(4)?)?;
                if kind == RTA_OIF {
                    return Some(Some(u32::from_ne_bytes(*value.first_chunk()?)));
                }
                // Attributes begin at multiples of four.
                rest = rest.get(length.next_multiple_of(4)..)?;
            }
            // Unreachable and black-holed destinations have routes too, by no interface.
            Some(None)
        }
        _ => None,
    }
}

/// Whether an answer names a route to the host itself. `None`: the bytes are no answer.
fn read_own(answer: &[u8]) -> Option<bool> {
    let kind = u16::from_ne_bytes(*answer.get(4..)?.first_chunk()?);
    let body = answer.get(NLMSG_HEADER_LEN..)?;
    match kind {
        NLMSG_ERROR => (i32::from_ne_bytes(*body.first_chunk()?) != 0).then_some(false),
        RTM_NEWROUTE => Some(OWN_ROUTES.contains(body.get(ROUTE_TYPE_AT)?)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::{Ipv4Addr, Ipv6Addr};

    #[test]
    fn loopback_is_left_by_loopback() {
        let lo = nix::net::if_::if_nametoindex("lo").unwrap();
        let v4 = IpAddr::from(Ipv4Addr::LOCALHOST);
        assert_eq!(way_out(v4, v4).unwrap(), Some(lo));
    }

    #[test]
    fn the_kernel_tells_which_addresses_are_the_hosts_own() {
        for own in ["127.0.0.1", "127.9.9.9"] {
            assert!(is_own(own.parse().unwrap()).unwrap(), "{own}");
        }
        for other in ["198.51.100.7", "2001:db8::7"] {
            assert!(!is_own(other.parse().unwrap()).unwrap(), "{other}");
        }
        // Whatever this machine has besides.
        for interface in crate::interfaces().unwrap() {
            assert!(is_own(interface.address).unwrap(), "{interface:?}");
        }
        let route =
            |kind: u8| [&[0; 4], &RTM_NEWROUTE.to_ne_bytes()[..], &[0; 17], &[kind], &[0; 8]].concat();
        assert_eq!(
            [1, 2, 3, 4, 5, 7].map(|kind| read_own(&route(kind)).unwrap()).map(u8::from),
            [0, 1, 1, 1, 0, 0]
        );
        assert_eq!((read_own(&route(2)[..20]), read_own(&[0; 40])), (None, None));
    }

    #[test]
    fn questions_are_frozen() {
        let v4 = question(Some([10, 0, 0, 1].into()), [192, 0, 2, 7].into());
        assert_eq!(v4.len(), 16 + 12 + 8 + 8);
        assert_eq!(
            v4[..8],
            [&44_u32.to_ne_bytes()[..], &26_u16.to_ne_bytes(), &1_u16.to_ne_bytes()].concat()
        );
        assert_eq!(v4[16..19], [2, 32, 32]);
        assert_eq!((&v4[32..36], &v4[40..44]), (&[192, 0, 2, 7][..], &[10, 0, 0, 1][..]));
        let v6 = question(Some(Ipv6Addr::LOCALHOST.into()), Ipv6Addr::LOCALHOST.into());
        assert_eq!((v6.len(), v6[16]), (16 + 12 + 20 + 20, 10));
    }

    #[test]
    fn answers_of_any_kind_are_read() {
        let answer = |kind: u16, body: &[u8]| [&[0; 4], &kind.to_ne_bytes()[..], &[0; 10], body].concat();
        let attribute = |kind: u16, value: &[u8]| {
            [&(4 + value.len() as u16).to_ne_bytes()[..], &kind.to_ne_bytes(), value].concat()
        };
        let route = |attributes: &[u8]| answer(RTM_NEWROUTE, &[&[0; ROUTE_HEADER_LEN], attributes].concat());
        let table = [attribute(15, &[1]), vec![0; 3]].concat();
        let by_seven = [table.clone(), attribute(RTA_OIF, &7_u32.to_ne_bytes())].concat();
        assert_eq!(read(&route(&by_seven)), Some(Some(7)));
        assert_eq!(read(&route(&table)), Some(None));
        assert_eq!(read(&answer(NLMSG_ERROR, &(-101_i32).to_ne_bytes())), Some(None));
        assert_eq!(read(&answer(3, &[0; 40])), None);
        for broken in [&attribute(9, &[1, 2, 3, 4])[..6], &[0, 0, 0, 0], &[200, 0, 4, 0]] {
            assert_eq!(read(&route(broken)), None, "{broken:?}");
        }
        for length in 0..16 {
            assert_eq!(read(&route(&[])[..length]), None);
        }
    }
}
