//! Addresses as they are written: in flags, and in a gateway's file.

use crate::host_name::HostName;
use std::net::{IpAddr, SocketAddr};
use std::str::FromStr;
use thiserror::Error;

/// Why a text is no address.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum AddressError {
    /// The text is neither IP nor IP:PORT.
    #[error(
        "write an IP address with or without a port: 192.0.2.7, 192.0.2.7:4747, 2001:db8::7 or [2001:db8::7]:4747"
    )]
    Endpoint,
    /// The text is the name of a host where an address is asked for.
    #[error("a host name cannot stand here; {}", Self::Endpoint)]
    Name,
    /// The text is neither an address nor the name of a host, with or without a port.
    #[error(
        "write an IP address or a host name, with or without a port: 192.0.2.7:4747, [2001:db8::7]:4747, \
         nas.example.org or nas.example.org:4747"
    )]
    Host,
    /// The text is neither a local address nor the name of an interface, with or without a port.
    #[error(
        "write an IP address or a network interface, with or without a port: 192.0.2.7:4747, \
         [2001:db8::7]:4747, eth0 or eth0:4747"
    )]
    Local,
    /// A port is given where none may be.
    #[error("write the address or the network interface without a port")]
    Port,
}

/// An address, with or without a port.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Endpoint {
    /// The address; unspecified (`0.0.0.0`, `::`) for all of the host's.
    pub ip: IpAddr,
    /// The port. `None`: the text names no port.
    pub port: Option<u16>,
}

impl Endpoint {
    /// The address with `default` where no port was asked for; port 0 lets the system pick a free
    /// one.
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
        bare.parse().map(|ip| Self { ip, port: None }).map_err(|_| match named(text) {
            Some(_) => AddressError::Name,
            None => AddressError::Endpoint,
        })
    }
}

/// An advertised place of a host: an address or a name, with or without a port.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Advertised {
    /// An IP address.
    Address(Endpoint),
    /// A name, which senders look up. `None`: the text names no port.
    Name(HostName, Option<u16>),
}

impl FromStr for Advertised {
    type Err = AddressError;

    fn from_str(text: &str) -> Result<Self, AddressError> {
        match text.parse() {
            Ok(endpoint) => Ok(Self::Address(endpoint)),
            Err(_) => named(text).map(|(name, port)| Self::Name(name, port)).ok_or(AddressError::Host),
        }
    }
}

/// A host name with or without a port; `None`: the text is none.
fn named(text: &str) -> Option<(HostName, Option<u16>)> {
    let (name, port) = match text.split_once(':') {
        Some((name, port)) => (name, Some(port.parse().ok()?)),
        None => (text, None),
    };
    Some((name.parse().ok()?, port))
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
        for text in ["", "4747", "1.2.3", "1.2.3.4:99999", "[1::", "nas.example.org:99999"] {
            assert_eq!(text.parse::<Endpoint>(), Err(AddressError::Endpoint), "{text}");
        }
        for text in ["localhost", "eth0", "nas.example.org:4747"] {
            assert_eq!(text.parse::<Endpoint>(), Err(AddressError::Name), "{text}");
        }
    }

    #[test]
    fn what_is_advertised_is_an_address_or_a_name() {
        let name = |text: &str, port| Ok(Advertised::Name(text.parse().unwrap(), port));
        assert_eq!("NAS.example.org".parse(), name("nas.example.org", None));
        assert_eq!("localhost:4747".parse(), name("localhost", Some(4747)));
        assert_eq!("::1".parse(), "::1".parse().map(Advertised::Address));
        for text in ["", "1.2.3", "1.2.3.4:99999", "nas:", "nas:x", "nas:1:2", "a_b", "[nas]:1"] {
            assert_eq!(text.parse::<Advertised>(), Err(AddressError::Host), "{text}");
        }
    }
}
