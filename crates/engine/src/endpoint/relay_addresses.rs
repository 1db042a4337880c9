//! Which addresses a relay may have. This side greets any relay that a peer offers, so addresses
//! that belong to no single host are refused. This host's own loopback is refused too, if the peer
//! is elsewhere.

use core::net::{IpAddr, SocketAddr};

/// Why an address cannot be a relay's.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AddressProblem {
    /// The port is 0.
    #[error("port 0 is nobody's")]
    Port,
    /// The address is in 0.0.0.0/8, or is `::`.
    #[error("the address is unspecified: it names no host")]
    Unspecified,
    /// The address is in 224.0.0.0/4 or ff00::/8.
    #[error("the address is a multicast group")]
    Multicast,
    /// The address is in 240.0.0.0/4, to which 255.255.255.255 belongs.
    #[error("the address is broadcast or reserved")]
    Broadcast,
    /// 127.0.0.0/8, `::1`, though the peer is elsewhere.
    #[error("the address is this host's own, and the peer is on another")]
    Loopback,
}

/// Returns why a relay cannot be at `address`. `None`: it can. A relay on loopback can be shared
/// only with a peer that `is_here` too.
pub(super) fn unfit(address: SocketAddr, is_here: bool) -> Option<AddressProblem> {
    if address.port() == 0 {
        return Some(AddressProblem::Port);
    }
    // An IPv4 address in IPv6 clothes leads where it leads without.
    let ip = address.ip().to_canonical();
    let (nowhere, reserved) = match ip {
        IpAddr::V4(ip) => (ip.octets()[0] == 0, ip.octets()[0] >= 240),
        IpAddr::V6(ip) => (ip.is_unspecified(), false),
    };
    match ip {
        _ if nowhere => Some(AddressProblem::Unspecified),
        ip if ip.is_multicast() => Some(AddressProblem::Multicast),
        _ if reserved => Some(AddressProblem::Broadcast),
        ip if ip.is_loopback() && !is_here => Some(AddressProblem::Loopback),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_relay_is_one_host_and_not_this_one() {
        for (text, why) in [
            ("192.0.2.1:4748", None),
            ("10.0.0.1:1", None),
            ("[2001:db8::1]:4748", None),
            ("[fe80::1]:4748", None),
            ("192.0.2.1:0", Some(AddressProblem::Port)),
            ("0.0.0.0:4748", Some(AddressProblem::Unspecified)),
            ("0.1.2.3:4748", Some(AddressProblem::Unspecified)),
            ("[::]:4748", Some(AddressProblem::Unspecified)),
            ("[::ffff:0.0.0.0]:4748", Some(AddressProblem::Unspecified)),
            ("224.0.0.251:5353", Some(AddressProblem::Multicast)),
            ("[ff02::1]:4748", Some(AddressProblem::Multicast)),
            ("255.255.255.255:4748", Some(AddressProblem::Broadcast)),
            ("240.0.0.1:4748", Some(AddressProblem::Broadcast)),
            ("127.0.0.1:4748", Some(AddressProblem::Loopback)),
            ("127.9.9.9:4748", Some(AddressProblem::Loopback)),
            ("[::1]:4748", Some(AddressProblem::Loopback)),
            ("[::ffff:127.0.0.1]:4748", Some(AddressProblem::Loopback)),
        ] {
            let address: SocketAddr = text.parse().expect("an address");
            assert_eq!(unfit(address, false), why, "{text}");
            assert_eq!(unfit(address, true), why.filter(|why| *why != AddressProblem::Loopback), "{text}");
        }
    }
}
