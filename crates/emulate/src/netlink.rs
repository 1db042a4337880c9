//! Turns off the offloads of a device by the kernel's generic netlink family "ethtool"
//! (<https://docs.kernel.org/networking/ethtool-netlink.html>). With offloads, a virtual Ethernet
//! carries packets of up to 64 KB without valid checksums, unlike a real line.

use rustix::net::netlink::{GENERIC, SocketAddrNetlink};
use rustix::net::{AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, recv, sendto, socket_with};
use std::io;
use std::os::fd::OwnedFd;

/// Offloads that make packets differ from those on a real line: segmentation, receive coalescing,
/// and checksums in the device.
const OFFLOAD_FEATURES: [&str; 11] = [
    "tx-checksum-ip-generic",
    "tx-checksum-sctp",
    "tx-scatter-gather",
    "tx-scatter-gather-fraglist",
    "tx-tcp-segmentation",
    "tx-tcp6-segmentation",
    "tx-udp-segmentation",
    "tx-generic-segmentation",
    "rx-gro",
    "rx-gro-list",
    "rx-udp-gro-forwarding",
];

const NLM_F_REQUEST: u16 = 1;
const NLM_F_ACK: u16 = 4;
const NLMSG_ERROR: u16 = 2;
const NLA_F_NESTED: u16 = 0x8000;
/// The id of generic netlink's controller, its command that looks up a family, and the attributes
/// of that command.
const GENL_ID_CTRL: u16 = 16;
const CTRL_CMD_GETFAMILY: u8 = 3;
const CTRL_ATTR_FAMILY_ID: u16 = 1;
const CTRL_ATTR_FAMILY_NAME: u16 = 2;
/// The number of `ETHTOOL_MSG_FEATURES_SET`, and its attributes.
const FEATURES_SET: u8 = 12;
const FEATURES_HEADER: u16 = 1;
const FEATURES_WANTED: u16 = 3;
const HEADER_DEV_NAME: u16 = 2;
const BITSET_BITS: u16 = 3;
const BITSET_BITS_BIT: u16 = 1;
const BITSET_BIT_NAME: u16 = 2;
const GENL_HEADER: usize = 4;
const NETLINK_HEADER: usize = 16;

/// A conversation with the kernel about devices of the network namespace in which it began.
pub(crate) struct Ethtool {
    socket: OwnedFd,
    family: u16,
}

impl Ethtool {
    /// # Errors
    /// The kernel has no such family, or refuses to speak.
    pub(crate) fn open() -> io::Result<Self> {
        let socket =
            socket_with(AddressFamily::NETLINK, SocketType::RAW, SocketFlags::CLOEXEC, Some(GENERIC))?;
        let mut name = Vec::new();
        attribute(&mut name, CTRL_ATTR_FAMILY_NAME, b"ethtool\0");
        let answer = ask(&socket, GENL_ID_CTRL, NLM_F_REQUEST, CTRL_CMD_GETFAMILY, &name)?;
        let family = attributes(answer.get(NETLINK_HEADER + GENL_HEADER..).unwrap_or_default())
            .find(|(kind, _)| *kind == CTRL_ATTR_FAMILY_ID)
            .and_then(|(_, value)| Some(u16::from_ne_bytes(value.try_into().ok()?)));
        let missing = || io::Error::new(io::ErrorKind::Unsupported, "the kernel has no ethtool over netlink");
        Ok(Self { socket, family: family.ok_or_else(missing)? })
    }

    /// Turns off the offloads of the device called `device`. Skips offloads that this kernel does
    /// not know.
    ///
    /// # Errors
    /// The kernel's error code, if it refuses the change.
    pub(crate) fn plain(&self, device: &str) -> io::Result<()> {
        match self.set(device, &OFFLOAD_FEATURES) {
            // Names came and went over the years: then each by itself, and what is unknown is off.
            Err(error) if error.raw_os_error() == Some(rustix::io::Errno::OPNOTSUPP.raw_os_error()) => {
                for offload in OFFLOAD_FEATURES {
                    match self.set(device, &[offload]) {
                        Err(error)
                            if error.raw_os_error() != Some(rustix::io::Errno::OPNOTSUPP.raw_os_error()) =>
                        {
                            return Err(error);
                        }
                        _ => {}
                    }
                }
                Ok(())
            }
            other => other,
        }
    }

    fn set(&self, device: &str, off: &[&str]) -> io::Result<()> {
        let (mut header, mut bits, mut bitset, mut message) =
            (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        attribute(&mut header, HEADER_DEV_NAME, &terminated(device));
        for name in off {
            // A bit without a value is off.
            let mut bit = Vec::new();
            attribute(&mut bit, BITSET_BIT_NAME, &terminated(name));
            attribute(&mut bits, BITSET_BITS_BIT | NLA_F_NESTED, &bit);
        }
        attribute(&mut bitset, BITSET_BITS | NLA_F_NESTED, &bits);
        attribute(&mut message, FEATURES_HEADER | NLA_F_NESTED, &header);
        attribute(&mut message, FEATURES_WANTED | NLA_F_NESTED, &bitset);
        ask(&self.socket, self.family, NLM_F_REQUEST | NLM_F_ACK, FEATURES_SET, &message).map(drop)
    }
}

fn terminated(name: &str) -> Vec<u8> {
    name.bytes().chain([0]).collect()
}

/// Writes an attribute. It is length, kind, value, and padding to four bytes.
fn attribute(to: &mut Vec<u8>, kind: u16, value: &[u8]) {
    to.extend(((value.len() + 4) as u16).to_ne_bytes());
    to.extend(kind.to_ne_bytes());
    to.extend(value);
    to.resize(to.len().next_multiple_of(4), 0);
}

/// Splits bytes into netlink attributes: the type and the content of each.
fn attributes(mut bytes: &[u8]) -> impl Iterator<Item = (u16, &[u8])> {
    std::iter::from_fn(move || {
        let length = usize::from(u16::from_ne_bytes(bytes.get(..2)?.try_into().ok()?));
        let kind = u16::from_ne_bytes(bytes.get(2..4)?.try_into().ok()?);
        let value = bytes.get(4..length)?;
        bytes = bytes.get(length.next_multiple_of(4)..).unwrap_or_default();
        Some((kind, value))
    })
}

/// Asks the kernel, and waits for the first message that answers.
fn ask(socket: &OwnedFd, family: u16, flags: u16, command: u8, attributes: &[u8]) -> io::Result<Vec<u8>> {
    let mut message = Vec::new();
    message.extend(((NETLINK_HEADER + GENL_HEADER + attributes.len()) as u32).to_ne_bytes());
    message.extend(family.to_ne_bytes());
    message.extend(flags.to_ne_bytes());
    message.extend([0; 8]);
    message.extend([command, 1, 0, 0]);
    message.extend(attributes);
    sendto(socket, &message, SendFlags::empty(), &SocketAddrNetlink::new(0, 0))?;
    let mut answer = vec![0; 64 << 10];
    loop {
        let (length, _) = recv(socket, answer.as_mut_slice(), RecvFlags::empty())?;
        let kind = answer.get(4..6).and_then(|two| two.try_into().ok()).map_or(0, u16::from_ne_bytes);
        let code = answer.get(16..20).and_then(|four| four.try_into().ok()).map_or(0, i32::from_ne_bytes);
        if kind == NLMSG_ERROR && code != 0 {
            return Err(io::Error::from_raw_os_error(-code));
        }
        // The kernel may first say what changed, if somebody else listens; the answer to a request
        // that wants one is last.
        if flags & NLM_F_ACK == 0 || kind == NLMSG_ERROR {
            answer.truncate(length);
            return Ok(answer);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn attributes_are_written_as_they_are_read() {
        let mut bytes = Vec::new();
        attribute(&mut bytes, 1, b"abc");
        attribute(&mut bytes, 2 | NLA_F_NESTED, b"");
        attribute(&mut bytes, 3, &[1; 8]);
        assert_eq!(bytes.len() % 4, 0);
        let read: Vec<_> = attributes(&bytes).collect();
        assert_eq!(read, [(1, b"abc".as_slice()), (2 | NLA_F_NESTED, b""), (3, &[1; 8])]);
    }

    #[test]
    fn a_broken_answer_ends_the_list() {
        for broken in [&[0_u8; 3][..], &[3, 0, 1, 0], &[200, 0, 1, 0, 5]] {
            assert_eq!(attributes(broken).count(), 0);
        }
    }
}
