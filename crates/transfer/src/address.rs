//! Addresses as they are written: in flags, and in a gateway's file.

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
}

/// A local address, with or without a port.
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
        bare.parse().map(|ip| Self { ip, port: None }).map_err(|_| AddressError::Endpoint)
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
}
