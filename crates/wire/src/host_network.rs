//! The networks whose addresses count as one host's.

use core::net::IpAddr;

/// The network of an address: a /24 of IPv4 (the longest prefix that is commonly routed), or a /56
/// of IPv6 (what one customer gets). A host with one address of such a network may have all of
/// them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum NetworkPrefix {
    /// The first three bytes of an IPv4 address: a /24.
    V4([u8; 3]),
    /// The first seven bytes of an IPv6 address.
    V6([u8; 7]),
}

impl NetworkPrefix {
    /// The network that an address is in.
    #[must_use]
    pub const fn of(address: IpAddr) -> Self {
        match address.to_canonical() {
            IpAddr::V4(address) => {
                let [a, b, c, _] = address.octets();
                Self::V4([a, b, c])
            }
            IpAddr::V6(address) => {
                let [a, b, c, d, e, f, g, ..] = address.octets();
                Self::V6([a, b, c, d, e, f, g])
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_customer_is_one_network() {
        let of = |text: &str| NetworkPrefix::of(text.parse().unwrap());
        assert_eq!(of("192.0.2.1"), of("::ffff:192.0.2.254"));
        assert_ne!(of("192.0.2.1"), of("192.0.3.1"));
        assert_eq!(of("2001:db8:0:1200::1"), of("2001:db8:0:12ff:1::"));
        assert_ne!(of("2001:db8:0:1200::1"), of("2001:db8:0:1300::1"));
    }
}
