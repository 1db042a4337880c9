//! The data of an application's HELLO, encrypted for the listener alone.
//!
//! ```text
//! version 1 (1), kind 4 (1), permission (16), length (1), protocol; what follows is for later versions
//! ```

use crate::secret::Secret;
use byway_wire::{DecodeError, Reader};
use std::fmt;
use std::str::FromStr;

/// The version of the data in a HELLO, which each kind begins with.
pub(crate) const PREAMBLE_VERSION: u8 = 1;
/// The kind of a connection of an application.
pub(crate) const APPLICATION_KIND: u8 = 4;
/// Bytes of the longest name of a protocol.
pub const PROTOCOL_MAX: usize = 32;

/// The name of an application's protocol, like those of ALPN (RFC 7301): up to 32 printable ASCII
/// characters without spaces. The empty name stands for applications that give none.
#[derive(Clone, Copy, PartialEq, Eq, Default)]
pub struct Protocol {
    length: u8,
    name: [u8; PROTOCOL_MAX],
}

/// Why a text is no name of a protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ProtocolNameError {
    /// The name is longer than [`PROTOCOL_MAX`] bytes.
    #[error("the name of a protocol has {0} bytes: {PROTOCOL_MAX} are the most")]
    TooLong(usize),
    /// A byte that is not printable ASCII, or a space.
    #[error("the name of a protocol is printable ASCII without spaces, and byte {0} of it is not")]
    Unprintable(usize),
}

impl Protocol {
    /// The protocol's name.
    #[must_use]
    pub fn as_str(&self) -> &str {
        let name = self.name.get(..self.length.into()).unwrap_or_default();
        std::str::from_utf8(name).unwrap_or_default()
    }

    fn from_bytes(bytes: &[u8]) -> Result<Self, ProtocolNameError> {
        let mut protocol = Self::default();
        let name = protocol.name.get_mut(..bytes.len()).ok_or(ProtocolNameError::TooLong(bytes.len()))?;
        if let Some(at) = bytes.iter().position(|byte| !byte.is_ascii_graphic()) {
            return Err(ProtocolNameError::Unprintable(at));
        }
        name.copy_from_slice(bytes);
        protocol.length = bytes.len() as u8; // at most 32
        Ok(protocol)
    }
}

impl FromStr for Protocol {
    type Err = ProtocolNameError;

    fn from_str(text: &str) -> Result<Self, ProtocolNameError> {
        Self::from_bytes(text.as_bytes())
    }
}

impl fmt::Display for Protocol {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.as_str() {
            "" => f.write_str("no named protocol"),
            name => write!(f, "the protocol {name}"),
        }
    }
}

impl fmt::Debug for Protocol {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self.as_str(), f)
    }
}

/// The first message of an application that connects.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Application {
    /// The permission that the ticket has.
    pub permission: Secret<[u8; 16]>,
    /// The protocol that the application speaks.
    pub protocol: Protocol,
}

impl Application {
    /// The bytes for the HELLO.
    #[must_use]
    pub fn to_bytes(&self) -> Vec<u8> {
        let name = self.protocol.as_str().as_bytes();
        [&[PREAMBLE_VERSION, APPLICATION_KIND], &self.permission.expose()[..], &[self.protocol.length], name]
            .concat()
    }

    /// Reads the fields after the version and the kind.
    pub(crate) fn read(reader: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let permission = Secret::new(reader.array()?);
        let length = usize::from(reader.u8()?);
        let protocol = Protocol::from_bytes(reader.bytes(length)?)
            .map_err(|_| DecodeError::Range("name of a protocol"))?;
        Ok(Self { permission, protocol })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hello_preamble::FirstMessage;

    #[test]
    fn what_an_application_says_is_frozen() {
        let said = Application { permission: Secret::new([0xaa; 16]), protocol: "drop/1".parse().unwrap() };
        let bytes = said.to_bytes();
        assert_eq!(bytes[..2], [1, 4]);
        assert_eq!((&bytes[2..18], &bytes[18..]), (&[0xaa; 16][..], &b"\x06drop/1"[..]));
        assert_eq!(FirstMessage::read(&bytes), Ok(FirstMessage::Application(said.clone())));
        assert_eq!(FirstMessage::read(&[&bytes[..], b"later"].concat()), Ok(FirstMessage::Application(said)));
        assert_eq!(FirstMessage::read(&bytes[..24]), Err(DecodeError::Truncated.into()));
        let range = Err(DecodeError::Range("name of a protocol").into());
        assert_eq!(FirstMessage::read(&[&bytes[..18], b"\x03a b"].concat()), range);
        assert_eq!(FirstMessage::read(&[&bytes[..18], &[33; 34]].concat()), range);
    }

    #[test]
    fn a_name_is_short_and_printable() {
        let longest = "x".repeat(PROTOCOL_MAX);
        assert_eq!(longest.parse::<Protocol>().unwrap().as_str(), longest);
        assert_eq!("x".repeat(33).parse::<Protocol>(), Err(ProtocolNameError::TooLong(33)));
        assert_eq!("a\nb".parse::<Protocol>(), Err(ProtocolNameError::Unprintable(1)));
        assert_eq!("å".parse::<Protocol>(), Err(ProtocolNameError::Unprintable(0)));
        assert_eq!(Protocol::default().to_string(), "no named protocol");
    }
}
