//! Addresses and networks as they are written: in flags, and in a gateway's file.

use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::str::FromStr;
use thiserror::Error;

/// Why a text is no address or network.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum AddressError {
    /// Neither IP nor IP:PORT.
    #[error(
        "write an IP address with or without a port: 192.0.2.7, 192.0.2.7:4747, 2001:db8::7 or [2001:db8::7]:4747"
    )]
    Endpoint,
    /// No network.
    #[error("write a network as ADDRESS/PREFIX, for example 10.0.0.0/8 or fd00::/8")]
    Network,
    /// The address has bits that its prefix does not cover.
    #[error("{given} has bits outside its prefix: write {meant}")]
    HostBits {
        /// What was written.
        given: String,
        /// What was probably meant.
        meant: Network,
    },
}

/// A local address, with or without a port.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Endpoint {
    /// The address; unspecified (`0.0.0.0`, `::`) for all of the host's.
    pub ip: IpAddr,
    /// The port, if one was asked for.
    pub port: Option<u16>,
}

impl Endpoint {
    /// The address with `default` where no port was asked for; port 0 lets the system pick a free one.
    #[must_use]
    pub fn or_port(self, default: u16) -> SocketAddr {
        SocketAddr::new(self.ip, self.port.unwrap_or(default))
    }
}

impl FromStr for Endpoint {
    type Err = AddressError;

    fn from_str(text: &str) -> Result<Self, AddressError> {
        if let Ok(address) = text.parse::<SocketAddr>() {
            return Ok(Self { ip: address.ip(), port: Some(address.port()) });
        }
        let bare = text.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')).unwrap_or(text);
        bare.parse().map(|ip| Self { ip, port: None }).map_err(|_| AddressError::Endpoint)
    }
}

/// A network in CIDR notation (RFC 4632 section 3.1, RFC 4291 section 2.3).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Network {
    /// Its first address.
    pub address: IpAddr,
    /// How many leading bits its addresses share.
    pub prefix: u8,
}

impl Network {
    /// Whether `ip` lies in the network. An IPv4-mapped IPv6 address counts as the IPv4 address it is.
    #[must_use]
    pub fn contains(&self, ip: IpAddr) -> bool {
        let ip = ip.to_canonical();
        ip.is_ipv4() == self.address.is_ipv4() && first(ip, self.prefix) == self.address
    }
}

impl fmt::Display for Network {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.address, self.prefix)
    }
}

impl FromStr for Network {
    type Err = AddressError;

    /// `ADDRESS/PREFIX`, or a single `ADDRESS`.
    fn from_str(text: &str) -> Result<Self, AddressError> {
        let (ip, prefix) = text.split_once('/').map_or((text, None), |(ip, prefix)| (ip, Some(prefix)));
        let ip = ip.parse::<IpAddr>().map_err(|_| AddressError::Network)?.to_canonical();
        let width = if ip.is_ipv4() { 32 } else { 128 };
        let prefix = match prefix {
            None => width,
            Some(text) => text.parse().ok().filter(|bits| *bits <= width).ok_or(AddressError::Network)?,
        };
        let network = Self { address: first(ip, prefix), prefix };
        if network.address == ip {
            Ok(network)
        } else {
            Err(AddressError::HostBits { given: text.to_owned(), meant: network })
        }
    }
}

/// `ip` with all but its first `prefix` bits cleared.
fn first(ip: IpAddr, prefix: u8) -> IpAddr {
    match ip {
        IpAddr::V4(ip) => {
            let mask = u32::MAX.checked_shl(32u32.saturating_sub(prefix.into())).unwrap_or(0);
            IpAddr::V4((ip.to_bits() & mask).into())
        }
        IpAddr::V6(ip) => {
            let mask = u128::MAX.checked_shl(128u32.saturating_sub(prefix.into())).unwrap_or(0);
            IpAddr::V6((ip.to_bits() & mask).into())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn endpoints_in_every_spelling() {
        for (text, expected) in [
            ("192.0.2.7", "192.0.2.7:9"),
            ("192.0.2.7:4747", "192.0.2.7:4747"),
            ("::1", "[::1]:9"),
            ("[::1]", "[::1]:9"),
            ("[::1]:0", "[::1]:0"),
        ] {
            assert_eq!(text.parse::<Endpoint>().unwrap().or_port(9).to_string(), expected, "{text}");
        }
        for text in ["", "4747", "localhost", "1.2.3", "1.2.3.4:99999", "[1::", "eth0"] {
            assert_eq!(text.parse::<Endpoint>(), Err(AddressError::Endpoint), "{text}");
        }
    }

    #[test]
    fn networks_hold_what_their_prefix_says() {
        let network = |text: &str| text.parse::<Network>().unwrap();
        let ip = |text: &str| text.parse::<IpAddr>().unwrap();
        assert!(network("10.0.0.0/8").contains(ip("10.255.0.1")));
        assert!(network("10.0.0.0/8").contains(ip("::ffff:10.0.0.1")));
        assert!(!network("10.0.0.0/8").contains(ip("11.0.0.0")));
        assert!(!network("0.0.0.0/0").contains(ip("::1")));
        assert!(network("0.0.0.0/0").contains(ip("255.255.255.255")));
        assert!(network("::/0").contains(ip("ff::1")));
        assert!(
            network("127.0.0.1").contains(ip("127.0.0.1")) && !network("127.0.0.1").contains(ip("127.0.0.2"))
        );
        assert!(network("fd00::/8").contains(ip("fdff::1")));
        for text in ["", "10.0.0.0/33", "::/129", "10.0.0.0/", "10.0.0.0/-1", "ten/8"] {
            assert_eq!(text.parse::<Network>(), Err(AddressError::Network), "{text}");
        }
        let error = "10.0.0.1/8".parse::<Network>().unwrap_err();
        assert_eq!(error.to_string(), "10.0.0.1/8 has bits outside its prefix: write 10.0.0.0/8");
    }
}
