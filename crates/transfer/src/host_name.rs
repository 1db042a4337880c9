//! Names of hosts in tickets and in `--advertise`. A sender looks a name up each time it dials.

use byway_forward::forward_target;
use byway_wire::{DecodeError, Reader, Writer};
use std::fmt;
use std::str::FromStr;
use thiserror::Error;

/// The text is no name of a host.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("a host name has letters, digits, hyphens and dots, at most 253 bytes, and does not end in a number")]
pub struct HostNameError;

/// The name of a host, in lower case and without a final dot.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct HostName(forward_target::Name);

impl HostName {
    /// The name as text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        self.0.as_str()
    }

    /// Whether the name always means the host itself (RFC 6761, section 6.3).
    #[must_use]
    pub fn is_localhost(&self) -> bool {
        self.0.is_localhost()
    }
}

impl FromStr for HostName {
    type Err = HostNameError;

    fn from_str(text: &str) -> Result<Self, HostNameError> {
        let name: forward_target::Name = text.parse().map_err(|_| HostNameError)?;
        if name.as_str().contains('_') { Err(HostNameError) } else { Ok(Self(name)) }
    }
}

impl fmt::Display for HostName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// The name of a receiver's host, and the port at which the receiver listens.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct NamedAddress {
    /// The name of the host.
    pub name: HostName,
    /// The port, not 0.
    pub port: u16,
}

impl NamedAddress {
    /// Bytes of the longest one in a ticket: length, name, port.
    pub(crate) const MAX_LEN: usize = 1 + 253 + 2;

    pub(crate) fn write(&self, writer: &mut Writer<'_>) {
        let name = self.name.as_str();
        writer.u8(name.len() as u8); // at most 253
        writer.bytes(name.as_bytes());
        writer.u16(self.port);
    }

    /// Reads a name that is spelled as [`write`](Self::write) spells it.
    pub(crate) fn read(reader: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let length = usize::from(reader.u8()?);
        let text = std::str::from_utf8(reader.bytes(length)?).map_err(|_| DecodeError::Range("host name"))?;
        let name: HostName = text.parse().map_err(|_| DecodeError::Range("host name"))?;
        let port = reader.u16()?;
        if name.as_str() != text {
            return Err(DecodeError::Range("host name"));
        }
        if port == 0 {
            return Err(DecodeError::Range("port"));
        }
        Ok(Self { name, port })
    }
}

impl fmt::Display for NamedAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.name, self.port)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_folded_and_what_looks_like_a_number_is_none() {
        let read = |text: &str| text.parse::<HostName>().map(|name| name.to_string());
        for (text, name) in
            [("NAS.Example.org.", "nas.example.org"), ("a", "a"), ("3com.com", "3com.com"), ("eth0", "eth0")]
        {
            assert_eq!(read(text).as_deref(), Ok(name));
        }
        let (label, long) = ("a".repeat(63), "a.".repeat(126) + "a");
        assert!(read(&label).is_ok() && read(&long).is_ok());
        for text in ["", ".", "1.2.3", "4747", "a..b", "a b", "a_b", "bücher.example", "a:1", "a.7"] {
            assert_eq!(read(text), Err(HostNameError), "{text}");
        }
        assert!(read(&format!("a{label}")).is_err() && read(&format!("a{long}")).is_err());
    }

    #[test]
    fn only_localhost_means_this_host() {
        let is = |text: &str| text.parse::<HostName>().unwrap().is_localhost();
        assert!(is("LOCALHOST") && is("a.localhost.") && !is("localhost.example.org"));
    }
}
