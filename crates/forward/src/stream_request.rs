//! The request at the beginning of a forwarded connection's stream. The entry, which accepted the
//! connection of a local program, asks for a target. The exit, which dials this target from the
//! other host, answers whether it is connected.
//!
//! ```text
//! entry: version 1 (1), target (4 to 256), then the program's bytes
//! exit:  0 (1), then the target's bytes; or why not (1), and the end of the stream
//! ```
//!
//! The program's bytes may follow the request at once: they wait in the stream until the target is
//! connected.

use crate::forward_target::{MAX_TARGET_LEN, Target};
use alloc::vec::Vec;
use byway_wire::{DecodeError, Reader, Writer};

const REQUEST_VERSION: u8 = 1;
/// The answer to a request that was granted.
pub const CONNECTED_ANSWER: u8 = 0;
/// Bytes of the longest request.
pub const MAX_REQUEST_LEN: usize = 1 + MAX_TARGET_LEN;

/// Codes with which streams are given up, as in RESET_STREAM and STOP_SENDING.
pub mod code {
    /// The connection at the other end was reset, or its program is gone.
    pub const CONNECTION_RESET: u64 = 1;
    /// The request makes no sense.
    pub const MALFORMED_REQUEST: u64 = 2;
}

/// Why an exit does not connect.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// No rule of the exit allows the target.
    #[error("the receiver does not allow this target: it needs --allow-forward")]
    Forbidden,
    /// The name leads to the receiver itself or its link, and no rule names that.
    #[error(
        "the name leads to an address of the receiver itself or its link, which --allow-forward must name"
    )]
    Near,
    /// The exit cannot resolve the target's host name.
    #[error("the receiver cannot resolve the name")]
    Name,
    /// Nobody listens at the port.
    #[error("the target refused the connection: nobody listens at this port")]
    Refused,
    /// No route leads to the target.
    #[error("the receiver has no route to the target")]
    Unreachable,
    /// The target does not answer.
    #[error("the target does not answer")]
    Timeout,
    /// The exit has reached its limit of connections.
    #[error("the receiver holds as many connections as it may")]
    Full,
    /// The exit failed for another reason.
    #[error("the receiver cannot connect")]
    Failed,
}

impl Refusal {
    /// All refusals, in the order of their codes, which begin at 1.
    pub const ALL: [Self; 8] = [
        Self::Forbidden,
        Self::Near,
        Self::Name,
        Self::Refused,
        Self::Unreachable,
        Self::Timeout,
        Self::Full,
        Self::Failed,
    ];

    /// The answer's byte on the wire.
    #[must_use]
    pub fn code(self) -> u8 {
        let place = Self::ALL.iter().position(|it| *it == self);
        place.map_or(u8::MAX, |place| place as u8 + 1)
    }

    /// Decodes the byte of an answer. An unknown code, of a later version, counts as `Failed`.
    ///
    /// # Errors
    /// It is a refusal.
    pub fn check(answer: u8) -> Result<(), Self> {
        match answer {
            CONNECTED_ANSWER => Ok(()),
            other => Err(Self::ALL.get(usize::from(other) - 1).copied().unwrap_or(Self::Failed)),
        }
    }
}

/// The bytes of a request.
#[must_use]
pub fn request(target: &Target) -> Vec<u8> {
    let mut bytes = [0; MAX_REQUEST_LEN];
    let mut writer = Writer::new(&mut bytes);
    writer.u8(REQUEST_VERSION);
    target.write(&mut writer);
    Vec::from(writer.written())
}

/// A request that arrives in pieces, and the bytes read so far.
#[derive(Debug, Default)]
pub struct Request {
    kept: Vec<u8>,
}

impl Request {
    /// Reads the next bytes of the stream. Returns how many of them belong to the request, and the
    /// target once the request is complete.
    ///
    /// # Errors
    /// The bytes are no valid request.
    pub fn take(&mut self, bytes: &[u8]) -> Result<(usize, Option<Target>), DecodeError> {
        let before = self.kept.len();
        let room = MAX_REQUEST_LEN - before.min(MAX_REQUEST_LEN);
        self.kept.extend_from_slice(bytes.get(..bytes.len().min(room)).unwrap_or_default());
        let mut reader = Reader::new(&self.kept);
        match read(&mut reader) {
            Ok(target) => {
                let used = self.kept.len() - reader.remaining();
                Ok((used - before, Some(target)))
            }
            Err(DecodeError::Truncated) if self.kept.len() < MAX_REQUEST_LEN => {
                Ok((self.kept.len() - before, None))
            }
            Err(error) => Err(error),
        }
    }
}

fn read(reader: &mut Reader<'_>) -> Result<Target, DecodeError> {
    match reader.u8()? {
        REQUEST_VERSION => Target::read(reader),
        other => Err(DecodeError::UnknownType(other)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_is_frozen() {
        assert_eq!(request(&"[2001:db8::1]:443".parse().unwrap()).len(), 20);
        assert_eq!(request(&"10.0.0.1:80".parse().unwrap()), [1, 1, 10, 0, 0, 1, 0, 80]);
        assert_eq!(request(&"ab:80".parse().unwrap()), [1, 3, 2, b'a', b'b', 0, 80]);
    }

    #[test]
    fn a_request_comes_in_pieces_and_leaves_what_follows() {
        let target: Target = "db.example:5432".parse().unwrap();
        let bytes = [request(&target), b"SELECT 1".to_vec()].concat();
        let length = bytes.len() - 8;
        for cut in 0..bytes.len() {
            let mut request = Request::default();
            let (first, found) = request.take(&bytes[..cut]).unwrap();
            if cut >= length {
                assert_eq!((first, found), (length, Some(target.clone())));
                continue;
            }
            assert_eq!((first, found), (cut, None));
            assert_eq!(request.take(&bytes[cut..]).unwrap(), (length - cut, Some(target.clone())));
        }
    }

    #[test]
    fn what_is_no_request_is_told_at_once() {
        for wrong in
            [&[2][..], &[1, 2], &[1, 3, 1, b' ', 0, 80], &[1, 1, 1, 2, 3, 4, 0, 0], &[1, 3, 0, 0, 80]]
        {
            assert!(Request::default().take(wrong).is_err(), "{wrong:?}");
        }
    }

    #[test]
    fn refusals_have_codes() {
        for refusal in Refusal::ALL {
            assert_eq!(Refusal::check(refusal.code()), Err(refusal));
        }
        assert_eq!(Refusal::check(CONNECTED_ANSWER), Ok(()));
        assert_eq!(Refusal::check(200), Err(Refusal::Failed));
        assert_eq!((Refusal::Forbidden.code(), Refusal::Failed.code()), (1, 8));
    }
}
