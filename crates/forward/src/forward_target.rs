//! Where a connection is to lead: a host and a port.

use alloc::string::String;
use byway_wire::{DecodeError, Reader, Writer};
use core::fmt;
use core::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use core::str::FromStr;

/// The longest name in bytes: the limit of the DNS (RFC 1035, section 2.3.4) without the root.
const MAX_NAME_LEN: usize = 253;
/// Bytes of a label.
const MAX_LABEL_LEN: usize = 63;
/// Bytes of the longest target on the wire.
pub const MAX_TARGET_LEN: usize = 1 + 1 + MAX_NAME_LEN + 2;

/// Kinds of addresses, as SOCKS5 numbers them (RFC 1928, section 5).
const ADDRESS_TYPE_V4: u8 = 1;
const ADDRESS_TYPE_NAME: u8 = 3;
const ADDRESS_TYPE_V6: u8 = 4;

/// Why a text is no target.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TargetError {
    /// The target has no colon, so it has no port.
    #[error("a port is missing: write HOST:PORT, like localhost:873 or [2001:db8::1]:443")]
    NoPort,
    /// The port is no number from 1 to 65535.
    #[error("a port is a number from 1 to 65535")]
    Port,
    /// The host is neither an address nor a name.
    #[error("a host is an address, or a name of letters, digits, '-', '_' and dots of at most 253 bytes")]
    Host,
}

/// A name of a host, in small letters.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Name(String);

impl Name {
    /// The host name as text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Whether the name always means the host itself (RFC 6761, section 6.3).
    #[must_use]
    pub fn is_localhost(&self) -> bool {
        self.0 == "localhost" || self.0.ends_with(".localhost")
    }
}

impl FromStr for Name {
    type Err = TargetError;

    /// Parses a host name. Removes a dot at the end, which marks a name as complete.
    fn from_str(text: &str) -> Result<Self, TargetError> {
        let text = text.strip_suffix('.').unwrap_or(text);
        let is_sound = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_';
        let is_label =
            |label: &str| (1..=MAX_LABEL_LEN).contains(&label.len()) && label.bytes().all(is_sound);
        // What looks like an address and is none must not be looked up: 1.2.3, 0x7f000001 and
        // 2130706433 are addresses to old resolvers.
        let last = text.rsplit('.').next().unwrap_or_default();
        let is_number = |label: &str| {
            let digits = label.strip_prefix("0x").or_else(|| label.strip_prefix("0X"));
            label.bytes().all(|byte| byte.is_ascii_digit())
                || digits.is_some_and(|digits| digits.bytes().all(|byte| byte.is_ascii_hexdigit()))
        };
        if text.len() > MAX_NAME_LEN || !text.split('.').all(is_label) || is_number(last) {
            return Err(TargetError::Host);
        }
        Ok(Self(text.to_ascii_lowercase()))
    }
}

/// The host of a target: a name or an address.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum TargetHost {
    /// A name, which the exit looks up.
    Name(Name),
    /// An address. An IPv4 address is never written as one of IPv6.
    Address(IpAddr),
}

impl From<IpAddr> for TargetHost {
    fn from(address: IpAddr) -> Self {
        Self::Address(address.to_canonical())
    }
}

impl FromStr for TargetHost {
    type Err = TargetError;

    fn from_str(text: &str) -> Result<Self, TargetError> {
        if let Some(inner) = text.strip_prefix('[').and_then(|text| text.strip_suffix(']')) {
            return inner
                .parse::<Ipv6Addr>()
                .map(|v6| IpAddr::from(v6).into())
                .map_err(|_| TargetError::Host);
        }
        match text.parse::<IpAddr>() {
            Ok(address) => Ok(address.into()),
            Err(_) => text.parse().map(Self::Name),
        }
    }
}

impl fmt::Display for TargetHost {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Name(name) => f.write_str(&name.0),
            Self::Address(IpAddr::V4(v4)) => v4.fmt(f),
            Self::Address(IpAddr::V6(v6)) => write!(f, "[{v6}]"),
        }
    }
}

/// The target of a connection.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Target {
    /// The host that is dialled.
    pub host: TargetHost,
    /// The port; never 0.
    pub port: u16,
}

impl Target {
    /// Writes kind (1), address (4 or 16, or a length and a name) and port (2). SOCKS5 does the
    /// same (RFC 1928, section 4).
    pub fn write(&self, writer: &mut Writer<'_>) {
        match &self.host {
            TargetHost::Address(IpAddr::V4(v4)) => {
                writer.u8(ADDRESS_TYPE_V4);
                writer.bytes(&v4.octets());
            }
            TargetHost::Address(IpAddr::V6(v6)) => {
                writer.u8(ADDRESS_TYPE_V6);
                writer.bytes(&v6.octets());
            }
            TargetHost::Name(Name(name)) => {
                writer.u8(ADDRESS_TYPE_NAME);
                writer.u8(name.len() as u8);
                writer.bytes(name.as_bytes());
            }
        }
        writer.u16(self.port);
    }

    /// Reads a target in the format of [`write`](Self::write). A host name such as "192.0.2.1"
    /// becomes an IP address.
    ///
    /// # Errors
    /// [`DecodeError::Truncated`] if bytes are missing at the end. Any other error means that the
    /// bytes are no target.
    pub fn read(reader: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let host = match reader.u8()? {
            ADDRESS_TYPE_V4 => IpAddr::from(Ipv4Addr::from(reader.array::<4>()?)).into(),
            ADDRESS_TYPE_V6 => IpAddr::from(Ipv6Addr::from(reader.array::<16>()?)).into(),
            ADDRESS_TYPE_NAME => {
                let length = usize::from(reader.u8()?);
                let text = core::str::from_utf8(reader.bytes(length)?);
                let text = text.map_err(|_| DecodeError::Range("name of a host"))?;
                text.parse().map_err(|_| DecodeError::Range("name of a host"))?
            }
            other => return Err(DecodeError::UnknownType(other)),
        };
        match reader.u16()? {
            0 => Err(DecodeError::Range("port")),
            port => Ok(Self { host, port }),
        }
    }
}

impl From<SocketAddr> for Target {
    fn from(address: SocketAddr) -> Self {
        Self { host: address.ip().into(), port: address.port() }
    }
}

impl FromStr for Target {
    type Err = TargetError;

    fn from_str(text: &str) -> Result<Self, TargetError> {
        let (host, port) = text.rsplit_once(':').ok_or(TargetError::NoPort)?;
        // Without brackets the last group of an IPv6 address would be taken for the port.
        if host.contains(':') && !host.starts_with('[') {
            return Err(TargetError::NoPort);
        }
        let port = port_of(port)?;
        Ok(Self { host: host.parse()?, port })
    }
}

/// A port as digits and nothing else.
pub(crate) fn port_of(text: &str) -> Result<u16, TargetError> {
    let digits = text.bytes().all(|byte| byte.is_ascii_digit());
    text.parse().ok().filter(|port| digits && *port != 0).ok_or(TargetError::Port)
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.host, self.port)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::string::ToString as _;

    #[test]
    fn hosts_and_ports_are_read_as_people_write_them() {
        for (text, shown) in [
            ("localhost:873", "localhost:873"),
            ("DB.Example.:5432", "db.example:5432"),
            ("127.0.0.1:1", "127.0.0.1:1"),
            ("[2001:db8::1]:443", "[2001:db8::1]:443"),
            ("[::ffff:10.0.0.1]:22", "10.0.0.1:22"),
        ] {
            assert_eq!(text.parse::<Target>().unwrap().to_string(), shown);
        }
        for (text, error) in [
            ("localhost", TargetError::NoPort),
            ("2001:db8::1:443", TargetError::NoPort),
            ("::1", TargetError::NoPort),
            ("host:", TargetError::Port),
            ("host:0", TargetError::Port),
            ("host:+1", TargetError::Port),
            ("host:65536", TargetError::Port),
            (":80", TargetError::Host),
            ("a..b:80", TargetError::Host),
            ("a b:80", TargetError::Host),
            ("ä:80", TargetError::Host),
            ("[10.0.0.1]:80", TargetError::Host),
            // To old resolvers all of these are 127.0.0.1.
            ("127.1:80", TargetError::Host),
            ("2130706433:80", TargetError::Host),
            ("0x7f000001:80", TargetError::Host),
            ("0177.0.0.1:80", TargetError::Host),
        ] {
            assert_eq!(text.parse::<Target>(), Err(error), "{text}");
        }
        assert!("x.".repeat(127).parse::<Name>().is_ok(), "253 bytes");
        assert!("x.".repeat(128).parse::<Name>().is_err());
    }

    proptest! {
        #[test]
        fn what_is_written_is_read(name in "[a-z0-9_-]{1,63}(\\.[a-z][a-z0-9-]{0,20}){0,3}", v6: [u8; 16], v4: [u8; 4], port in 1_u16..) {
            let hosts = [Some(IpAddr::from(v6).into()), Some(IpAddr::from(v4).into()), name.parse().ok().map(TargetHost::Name)];
            for host in hosts.into_iter().flatten() {
                let target = Target { host, port };
                let mut bytes = [0; MAX_TARGET_LEN];
                let mut writer = Writer::new(&mut bytes);
                target.write(&mut writer);
                let written = writer.written();
                prop_assert_eq!(Target::read(&mut Reader::new(written)), Ok(target.clone()));
                prop_assert_eq!(target.to_string().parse::<Target>(), Ok(target));
                for cut in 0..written.len() {
                    prop_assert_eq!(Target::read(&mut Reader::new(&written[..cut])), Err(DecodeError::Truncated));
                }
            }
        }
    }
}
