//! Where a relay sends: hosts of the public Internet, and networks that the operator adds. A
//! receiver consents by greeting the relay from its own address. This is not enough, because a host
//! inside the relay's own network may be tricked into such a greeting.

use alloc::vec::Vec;
use byway_wire::Prefix;
use core::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

/// The destinations to which a relay sends.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Policy {
    allowed: Vec<Prefix>,
    own: Vec<IpAddr>,
}

impl Policy {
    /// Public unicast addresses only.
    #[must_use]
    pub const fn public() -> Self {
        Self { allowed: Vec::new(), own: Vec::new() }
    }

    /// Allows one more network as a destination, for example the private network of a test.
    #[must_use]
    pub fn allow(mut self, network: Prefix) -> Self {
        self.allowed.push(network);
        self
    }

    /// Names an address of the relay's own host that its sockets do not show, because of a NAT or
    /// because the sockets are bound to all addresses. The relay sends there only if an allowed
    /// network contains the address.
    #[must_use]
    pub fn own(mut self, ip: IpAddr) -> Self {
        self.own.push(ip);
        self
    }

    /// Whether the relay sends to this address (in the form that [`byway_wire::relay::canonical`]
    /// gives). It never sends to port 0, nor to an unspecified, multicast or broadcast address.
    #[must_use]
    pub fn allows(&self, destination: SocketAddr) -> bool {
        let ip = destination.ip();
        let one_host = match ip {
            IpAddr::V4(v4) => !v4.is_broadcast(),
            IpAddr::V6(v6) => v6.to_ipv4_mapped().is_none(),
        };
        if destination.port() == 0 || ip.is_unspecified() || ip.is_multicast() || !one_host {
            return false;
        }
        if self.allowed.iter().any(|network| network.contains(ip)) {
            return true;
        }
        !self.own.contains(&ip)
            && match ip {
                IpAddr::V4(ip) => is_public_v4(ip),
                IpAddr::V6(ip) => is_public_v6(ip),
            }
    }
}

/// Whether an address is public: none of the IANA IPv4 special-purpose addresses (RFC 6890 and its
/// registry), nor multicast.
fn is_public_v4(ip: Ipv4Addr) -> bool {
    !matches!(
        ip.octets(),
        [0 | 10 | 127, ..]                // this network, private, loopback
            | [100, 64..=127, ..]         // carrier-grade NAT
            | [169, 254, ..]              // link-local, and the metadata services of clouds
            | [172, 16..=31, ..]          // private
            | [192, 0, 0 | 2, _]          // protocol assignments, documentation
            | [192, 88, 99, _]            // 6to4 relays
            | [192, 168, ..]              // private
            | [198, 18..=19, ..]          // benchmarks
            | [198, 51, 100, _]           // documentation
            | [203, 0, 113, _]            // documentation
            | [224..=255, ..] // multicast, reserved, broadcast
    )
}

/// Whether an address is in the global unicast block 2000::/3, but in none of the special-purpose
/// blocks there (RFC 6890 and its registry). Loopback, link-local, unique local and mapped IPv4
/// addresses are outside this block.
fn is_public_v6(ip: Ipv6Addr) -> bool {
    match ip.segments() {
        [0x2001, 0..=0x01ff, ..] => false, // protocol assignments: Teredo, benchmarks, ORCHID
        [0x2001, 0x0db8, ..] => false,     // documentation
        [0x2002, ..] => false,             // 6to4, which hides IPv4 addresses
        [0x3fff, 0..=0x0fff, ..] => false, // documentation
        [first, ..] => first & 0xe000 == 0x2000,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn allows(policy: &Policy, ip: &str) -> bool {
        policy.allows(SocketAddr::new(ip.parse().unwrap(), 4748))
    }

    #[test]
    fn the_public_internet_and_nothing_else() {
        let policy = Policy::public();
        for ip in [
            "1.1.1.1",
            "100.63.255.255",
            "100.128.0.0",
            "172.15.0.1",
            "172.32.0.1",
            "192.0.1.1",
            "198.17.0.1",
        ]
        .into_iter()
        .chain(["223.255.255.255", "2a00:1450::1", "2606:4700::1", "2001:200::1", "3ffe::1"])
        {
            assert!(allows(&policy, ip), "{ip}");
        }
        for ip in [
            "0.0.0.0",
            "0.1.2.3",
            "10.0.0.1",
            "100.64.0.1",
            "100.127.255.255",
            "127.0.0.1",
            "169.254.169.254",
        ]
        .into_iter()
        .chain(["172.16.0.1", "172.31.255.255", "192.0.0.1", "192.0.2.1", "192.88.99.1", "192.168.1.1"])
        .chain(["198.18.0.1", "198.19.0.1", "198.51.100.1", "203.0.113.1", "224.0.0.1", "240.0.0.1"])
        .chain([
            "255.255.255.255",
            "::",
            "::1",
            "::ffff:1.1.1.1",
            "64:ff9b::a00:1",
            "64:ff9b:1::1",
            "fc00::1",
        ])
        .chain(["fd12::1", "fe80::1", "ff02::1", "2001::1", "2001:2::1", "2001:db8::1", "2002:a00:1::1"])
        .chain(["3fff::1", "100::1", "::127.0.0.1", "5f00::1"])
        {
            assert!(!allows(&policy, ip), "{ip}");
        }
        assert!(!policy.allows("1.1.1.1:0".parse().unwrap()));
    }

    #[test]
    fn what_the_operator_allows_and_what_he_cannot() {
        let any = |ip: &str, bits| Prefix::of(ip.parse().unwrap(), bits);
        let policy =
            Policy::public().allow(any("10.1.0.0", 16)).allow(any("fd00::", 8)).allow(any("0.0.0.0", 0));
        let policy = policy.allow(any("::", 0)).own("9.9.9.9".parse().unwrap());
        assert!(allows(&policy, "127.0.0.1") && allows(&policy, "fd12::1"));
        for never in ["0.0.0.0", "::", "224.0.0.1", "ff02::1", "255.255.255.255", "::ffff:10.0.0.1"] {
            assert!(!allows(&policy, never), "{never}");
        }
        let policy = Policy::public().allow(any("10.1.0.0", 16)).own("9.9.9.9".parse().unwrap());
        assert!(allows(&policy, "10.1.255.1") && !allows(&policy, "10.2.0.1") && !allows(&policy, "9.9.9.9"));
    }
}
