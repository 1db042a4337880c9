//! The data that a sender puts into its HELLO, encrypted for the receiver alone.
//!
//! ```text
//! version 1 (1), kind (1), permission (16), transfer (16)
//! kind 3, connections: then the class in which both sides send, background 0 or normal 1 (1)
//! ```
//!
//! | `kind` | purpose of the connection |
//! |---|---|
//! | 0 | files |
//! | 1 | a stream |
//! | 2 | a ping |
//! | 3 | connections of programs |
//! | 4 | an [application](crate::application_protocol): other fields follow `permission` |
//! | 5 | a question: what would a transfer of files do? |
//!
//! `permission` is the secret in the ticket that the receiver printed. `transfer` is the transfer's
//! id. In a ping it may be the id of another session of the same sender. The receiver then answers
//! whether it has that session ([`close`](crate::close), 8 or 9). 0: nothing is asked.

use crate::application_protocol::{APPLICATION_KIND, Application, PREAMBLE_VERSION, Protocol};
use crate::secret::Secret;
use byway_control::Class;
use byway_wire::{DecodeError, Reader, Writer};

/// Bytes of the longest preamble.
const PREAMBLE_LEN: usize = 1 + 1 + 16 + 16 + 1;

/// The purpose of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ConnectionPurpose {
    /// A transfer of files and directories.
    Tree,
    /// One stream, from standard input to standard output.
    Pipe,
    /// A ping: to see whether the receiver answers.
    Ping,
    /// Forwarded connections of programs. Both sides send with this class.
    Forward(Class),
    /// A dry run: the sender asks what a transfer of files and directories would do.
    Look,
}

/// The data that a sender puts into its first message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Preamble {
    /// The purpose of the connection.
    pub kind: ConnectionPurpose,
    /// The permission that the ticket has.
    pub permission: Secret<[u8; 16]>,
    /// Names the transfer: the same when it is tried again. In a ping, the session asked about.
    pub transfer: [u8; 16],
}

/// Why the data in a HELLO is not a valid preamble.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PreambleError {
    /// The preamble has another version of the transfer protocol.
    #[error(
        "the sender speaks version {0} of the transfer protocol, this side version 1: update the older one"
    )]
    Version(u8),
    /// The bytes are none of ours.
    #[error("the sender's first words make no sense: {0}")]
    Format(#[from] DecodeError),
    /// An application speaks, to a receiver.
    #[error(
        "this is `byway recv`, which takes files and streams, and the other side is an application that speaks {0}: \
         give it the ticket of the application that listens"
    )]
    Application(Protocol),
}

/// The first message of a peer that connects: a transfer or an application.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FirstMessage {
    /// A sender of files or of a stream, or a ping.
    Transfer(Preamble),
    /// The sender is an application.
    Application(Application),
}

impl FirstMessage {
    /// Reads the data in a HELLO.
    ///
    /// # Errors
    /// It is of another version, or nothing that a byway says.
    pub fn read(bytes: &[u8]) -> Result<Self, PreambleError> {
        let mut reader = Reader::new(bytes);
        match reader.u8()? {
            PREAMBLE_VERSION => {}
            other => return Err(PreambleError::Version(other)),
        }
        let kind = match reader.u8()? {
            0 => ConnectionPurpose::Tree,
            1 => ConnectionPurpose::Pipe,
            2 => ConnectionPurpose::Ping,
            3 => ConnectionPurpose::Forward(Class::Background),
            5 => ConnectionPurpose::Look,
            APPLICATION_KIND => return Ok(Self::Application(Application::read(&mut reader)?)),
            _ => return Err(DecodeError::Range("kind of transfer").into()),
        };
        let mut preamble =
            Preamble { kind, permission: Secret::new(reader.array()?), transfer: reader.array()? };
        if let ConnectionPurpose::Forward(class) = &mut preamble.kind {
            *class = match reader.u8()? {
                0 => Class::Background,
                1 => Class::Normal,
                _ => return Err(DecodeError::Range("class").into()),
            };
        }
        if reader.is_empty() {
            Ok(Self::Transfer(preamble))
        } else {
            Err(DecodeError::Range("length").into())
        }
    }
}

impl Preamble {
    /// The session that a ping asks about.
    pub(crate) fn question(&self) -> Option<[u8; 16]> {
        (self.kind == ConnectionPurpose::Ping && self.transfer != [0; 16]).then_some(self.transfer)
    }

    /// The bytes for the HELLO.
    #[must_use]
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = [0; PREAMBLE_LEN];
        let mut writer = Writer::new(&mut bytes);
        writer.u8(PREAMBLE_VERSION);
        writer.u8(match self.kind {
            ConnectionPurpose::Tree => 0,
            ConnectionPurpose::Pipe => 1,
            ConnectionPurpose::Ping => 2,
            ConnectionPurpose::Forward(_) => 3,
            ConnectionPurpose::Look => 5,
        });
        writer.bytes(self.permission.expose());
        writer.bytes(&self.transfer);
        if let ConnectionPurpose::Forward(class) = self.kind {
            writer.u8(match class {
                Class::Background => 0,
                Class::Normal => 1,
            });
        }
        writer.written().to_vec()
    }

    /// Reads the HELLO of a transfer, of a ping, or of forwarded connections.
    ///
    /// # Errors
    /// The bytes are of another version, are an application's, or are no HELLO of byway.
    pub fn read(bytes: &[u8]) -> Result<Self, PreambleError> {
        match FirstMessage::read(bytes)? {
            FirstMessage::Transfer(preamble) => Ok(preamble),
            FirstMessage::Application(application) => Err(PreambleError::Application(application.protocol)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_preamble_is_frozen() {
        let preamble = Preamble {
            kind: ConnectionPurpose::Pipe,
            permission: Secret::new([0xaa; 16]),
            transfer: [0xbb; 16],
        };
        let bytes = preamble.to_bytes();
        assert_eq!(bytes[..2], [1, 1]);
        assert_eq!((bytes[2..18].to_vec(), bytes[18..].to_vec()), (vec![0xaa; 16], vec![0xbb; 16]));
        assert_eq!(Preamble::read(&bytes), Ok(preamble.clone()));
        assert_eq!(Preamble::read(&bytes[..33]), Err(DecodeError::Truncated.into()));
        assert_eq!(Preamble::read(&[&bytes[..], &[0]].concat()), Err(DecodeError::Range("length").into()));
        assert_eq!(Preamble::read(&[2]), Err(PreambleError::Version(2)));
        let forward = |kind| Preamble { kind, ..preamble.clone() };
        for (class, byte) in [(Class::Background, 0), (Class::Normal, 1)] {
            let forward = forward(ConnectionPurpose::Forward(class));
            let bytes = forward.to_bytes();
            assert_eq!((bytes.len(), bytes[1], bytes[34]), (35, 3, byte));
            assert_eq!(Preamble::read(&bytes), Ok(forward));
            assert_eq!(Preamble::read(&bytes[..34]), Err(DecodeError::Truncated.into()));
            assert_eq!(
                Preamble::read(&[&bytes[..34], &[2]].concat()),
                Err(DecodeError::Range("class").into())
            );
        }
        assert_eq!(Preamble::read(&[1, 6]), Err(DecodeError::Range("kind of transfer").into()));
        assert_eq!(Preamble::read(&[]), Err(DecodeError::Truncated.into()));
    }
}
