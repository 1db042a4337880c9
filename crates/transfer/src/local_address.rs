//! Addresses of this host as they are written in flags: each itself, or by its interface.

use crate::address::{AddressError, Endpoint};
use byway_net::interface_addresses;
use std::fmt;
use std::io;
use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::str::FromStr;
use thiserror::Error;

/// The longest name of an interface in bytes (`IFNAMSIZ` without the final zero).
const MAX_INTERFACE_NAME_LEN: usize = 15;

/// A local address to bind, or an interface for all addresses that it has at that time. A text that
/// could be both is an address.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LocalAddress {
    /// An IP address.
    Address(Endpoint),
    /// An interface. `None`: the text names no port.
    Interface(InterfaceName, Option<u16>),
}

/// The name of a network interface, which need not exist.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InterfaceName(String);

/// The reason why an interface name gives no local address.
#[derive(Debug, Error)]
pub enum NoLocalAddress {
    /// There is no interface of this name.
    #[error("this host has no network interface `{name}`: it has {}", .others.join(", "))]
    Unknown {
        /// The name.
        name: InterfaceName,
        /// The interfaces that there are.
        others: Vec<String>,
    },
    /// The interface has no address that can be bound.
    #[error("the network interface `{0}` has no address yet: connect it, or name another")]
    Addressless(InterfaceName),
    /// The system does not tell.
    #[error("cannot list the network interfaces of this host: {0}")]
    NotListed(#[source] io::Error),
}

impl fmt::Display for InterfaceName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl FromStr for InterfaceName {
    type Err = AddressError;

    /// Reads a name. Digits and dots alone are an address with a mistake, rather than a name.
    fn from_str(text: &str) -> Result<Self, AddressError> {
        let is_part = |letter: char| letter.is_ascii_graphic() && !"/:,@[]".contains(letter);
        let is_name = text.len() <= MAX_INTERFACE_NAME_LEN
            && text.chars().all(is_part)
            && text.contains(|letter: char| letter.is_ascii_alphabetic());
        if is_name { Ok(Self(text.to_owned())) } else { Err(AddressError::Local) }
    }
}

impl FromStr for LocalAddress {
    type Err = AddressError;

    fn from_str(text: &str) -> Result<Self, AddressError> {
        if let Ok(endpoint) = text.parse() {
            return Ok(Self::Address(endpoint));
        }
        let (name, port) = match text.split_once(':') {
            Some((name, port)) => (name, Some(port.parse().map_err(|_| AddressError::Local)?)),
            None => (text, None),
        };
        Ok(Self::Interface(name.parse()?, port))
    }
}

impl LocalAddress {
    /// Reads an address or an interface where a port has no meaning.
    ///
    /// # Errors
    /// The text is neither, or names a port.
    pub fn without_port(text: &str) -> Result<Self, AddressError> {
        match text.parse()? {
            Self::Address(Endpoint { port: Some(_), .. }) | Self::Interface(_, Some(_)) => {
                Err(AddressError::Port)
            }
            local => Ok(local),
        }
    }

    fn resolved(&self, port: u16) -> Result<Vec<SocketAddr>, NoLocalAddress> {
        let (name, port) = match self {
            Self::Address(endpoint) => return Ok(vec![endpoint.or_port(port)]),
            Self::Interface(name, asked) => (name, asked.unwrap_or(port)),
        };
        let mut all = interface_addresses().map_err(NoLocalAddress::NotListed)?;
        let Some(found) = all.remove(&name.0) else {
            return Err(NoLocalAddress::Unknown { name: name.clone(), others: all.into_keys().collect() });
        };
        // The system lists an IPv6 address before it is known to be unique.
        let is_usable = |ip: &IpAddr| UdpSocket::bind((*ip, 0)).is_ok();
        let usable: Vec<SocketAddr> =
            found.into_iter().filter(is_usable).map(|ip| SocketAddr::new(ip, port)).collect();
        if usable.is_empty() { Err(NoLocalAddress::Addressless(name.clone())) } else { Ok(usable) }
    }
}

/// Returns the addresses that options for local addresses mean now. Options without a port get
/// `port`; 0 lets the system choose one.
///
/// # Errors
/// An interface does not exist, or has no address.
pub fn local_addresses(asked: &[LocalAddress], port: u16) -> Result<Vec<SocketAddr>, NoLocalAddress> {
    let mut addresses = Vec::new();
    for local in asked {
        let mut found = local.resolved(port)?;
        // An interface may have an address that is written beside it.
        if let LocalAddress::Interface(..) = local {
            found.retain(|address| !addresses.contains(address));
        }
        addresses.append(&mut found);
    }
    Ok(addresses)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_could_be_either_is_an_address() {
        for text in ["192.0.2.7", "192.0.2.7:4747", "::1", "[::1]:0", "fe::", "dead:beef::1"] {
            let read: LocalAddress = text.parse().unwrap();
            assert_eq!(read, LocalAddress::Address(text.parse().unwrap()), "{text}");
        }
        let interface = |name: &str, port| Ok(LocalAddress::Interface(name.parse().unwrap(), port));
        for (text, name, port) in [
            ("eth0", "eth0", None),
            ("br-lan:4747", "br-lan", Some(4747)),
            ("eth0.7", "eth0.7", None),
            ("fe", "fe", None),
        ] {
            assert_eq!(text.parse(), interface(name, port), "{text}");
        }
        for text in
            ["", "4747", "1.2.3", "1.2.3.4:99999", "eth0:", "eth0:x", "a/b", "[eth0]", "nas.example.org7"]
        {
            assert_eq!(text.parse::<LocalAddress>(), Err(AddressError::Local), "{text}");
        }
        for text in ["eth0:1", "192.0.2.7:1", "[::1]:1"] {
            assert_eq!(LocalAddress::without_port(text), Err(AddressError::Port), "{text}");
        }
        assert_eq!(LocalAddress::without_port("::1"), "::1".parse());
    }

    #[test]
    fn an_interface_stands_for_its_addresses() {
        let resolve = |texts: &[&str], port| {
            let asked: Vec<LocalAddress> = texts.iter().map(|text| text.parse().unwrap()).collect();
            local_addresses(&asked, port)
        };
        let four: SocketAddr = "127.0.0.1:7".parse().unwrap();
        let found = resolve(&["lo"], 7).unwrap();
        assert!(found.contains(&four) && found.iter().all(|it| it.port() == 7), "{found:?}");
        assert_eq!(resolve(&["127.0.0.1", "lo"], 7).unwrap().len(), found.len(), "each once");
        assert!(resolve(&["lo:9"], 7).unwrap().iter().all(|it| it.port() == 9));
        assert_eq!(resolve(&["192.0.2.7:3"], 7).unwrap(), ["192.0.2.7:3".parse().unwrap()]);
        let error = resolve(&["eth99"], 7).unwrap_err().to_string();
        assert!(error.starts_with("this host has no network interface `eth99`: it has "), "{error}");
        assert!(error.contains("lo"), "{error}");
    }
}
