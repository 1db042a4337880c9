//! The opening: a small packet with which a host opens its own NAT or firewall for a peer.
//!
//! ```text
//! OPENING  0x6b, token (8)
//! ```
//!
//! A peer asks for it over a session, through a relay, and says the token there (the frame
//! ADDRESSES). The packet may be lost: it serves on its way out. Where it arrives, the token shows
//! that the peer sent it, and its source is an address at which the peer can be reached.

use super::message::MESSAGE_OPENING;
use crate::codec::{DecodeError, Reader, Writer};

/// Bytes of an opening.
pub const OPENING_LEN: usize = 9;

/// A packet that opens the sender's NAT for its destination.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Opening {
    /// The token from the peer's request, which only the two hosts know.
    pub token: [u8; 8],
}

impl Opening {
    /// Reads an opening.
    pub fn read(packet: &[u8]) -> Result<Self, DecodeError> {
        let mut reader = Reader::new(packet);
        match reader.u8()? {
            MESSAGE_OPENING => {}
            other => return Err(DecodeError::UnknownType(other)),
        }
        let opening = Self { token: reader.array()? };
        if reader.is_empty() { Ok(opening) } else { Err(DecodeError::Range("length")) }
    }

    /// Writes [`OPENING_LEN`] bytes.
    pub fn write(&self, writer: &mut Writer<'_>) {
        writer.u8(MESSAGE_OPENING);
        writer.bytes(&self.token);
    }
}

#[cfg(test)]
mod tests {
    use super::super::message::tests::bytes;
    use super::*;

    #[test]
    fn in_hex() {
        let opening = Opening { token: *b"TOKEN678" };
        let written = bytes(|writer| opening.write(writer));
        assert_eq!(written, b"\x6bTOKEN678");
        assert_eq!((written.len(), Opening::read(&written)), (OPENING_LEN, Ok(opening)));
        assert_eq!(Opening::read(b"\x6bTOKEN67"), Err(DecodeError::Truncated));
        assert_eq!(Opening::read(b"\x6bTOKEN6789"), Err(DecodeError::Range("length")));
        assert_eq!(Opening::read(b"\x6aTOKEN678"), Err(DecodeError::UnknownType(0x6a)));
    }
}
