//! SOCKS5 as programs speak it to the entry (RFC 1928): CONNECT without authentication. Host names
//! are resolved at the exit.
//!
//! ```text
//! program: 5, count, methods          entry: 5, 0          (no authentication)
//! program: 5, 1, 0, target            entry: 5, reply, 0, 1, 0.0.0.0, 0
//! ```

use crate::forward_target::Target;
use crate::stream_request::Refusal;
use alloc::vec::Vec;
use byway_wire::{DecodeError, Reader};

const SOCKS_VERSION: u8 = 5;
/// Methods of authentication: none needed, and none that suits.
const NO_AUTHENTICATION: u8 = 0;
const NO_ACCEPTABLE_METHOD: u8 = 0xff;
const CONNECT_COMMAND: u8 = 1;
/// Bytes of the longest greeting, and of the longest request.
const MAX_GREETING_LEN: usize = 2 + 255;
const MAX_REQUEST_LEN: usize = 3 + 1 + 1 + 255 + 2;

/// The entry's next step after bytes of a SOCKS5 client.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SocksAction {
    /// Wait for more bytes.
    Wait,
    /// Send these bytes to the client, and read its next message.
    Say(Vec<u8>),
    /// Connect to this target, as the program asks. [`reply`] makes the answer once the result is
    /// known.
    Connect(Target),
    /// Send these bytes, which may be none, to the client, and close the connection.
    Close(Vec<u8>),
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum SocksState {
    #[default]
    Greeting,
    Request,
    Over,
}

/// The SOCKS5 negotiation at the beginning of a program's connection.
#[derive(Debug, Default)]
pub struct Socks {
    state: SocksState,
    kept: Vec<u8>,
}

/// Replies (RFC 1928, section 6).
mod replies {
    pub const REQUEST_SUCCEEDED: u8 = 0;
    pub const GENERAL_FAILURE: u8 = 1;
    pub const NOT_ALLOWED: u8 = 2;
    pub const HOST_UNREACHABLE: u8 = 4;
    pub const CONNECTION_REFUSED: u8 = 5;
    pub const TTL_EXPIRED: u8 = 6;
    pub const COMMAND_NOT_SUPPORTED: u8 = 7;
    pub const ADDRESS_TYPE_NOT_SUPPORTED: u8 = 8;
}

/// The reply to a program's CONNECT request. Its address is zero, because the address at the exit
/// is of no use to the program.
#[must_use]
pub const fn reply(outcome: Result<(), Refusal>) -> [u8; 10] {
    let code = match outcome {
        Ok(()) => replies::REQUEST_SUCCEEDED,
        Err(Refusal::Forbidden | Refusal::Near) => replies::NOT_ALLOWED,
        Err(Refusal::Name | Refusal::Unreachable) => replies::HOST_UNREACHABLE,
        Err(Refusal::Refused) => replies::CONNECTION_REFUSED,
        Err(Refusal::Timeout) => replies::TTL_EXPIRED,
        Err(Refusal::Full | Refusal::Failed) => replies::GENERAL_FAILURE,
    };
    written(code)
}

const fn written(code: u8) -> [u8; 10] {
    [SOCKS_VERSION, code, 0, 1, 0, 0, 0, 0, 0, 0]
}

impl Socks {
    /// Reads bytes from the program. Returns the number of bytes used. Bytes behind a request are
    /// the program's first data.
    pub fn take(&mut self, bytes: &[u8]) -> (usize, SocksAction) {
        let most = match self.state {
            SocksState::Greeting => MAX_GREETING_LEN,
            SocksState::Request => MAX_REQUEST_LEN,
            SocksState::Over => return (0, SocksAction::Wait),
        };
        let before = self.kept.len();
        let room = most.saturating_sub(before);
        self.kept.extend_from_slice(bytes.get(..bytes.len().min(room)).unwrap_or_default());
        let mut reader = Reader::new(&self.kept);
        let next = match self.state {
            SocksState::Greeting => greeting(&mut reader),
            _ => request(&mut reader),
        };
        let length = self.kept.len() - reader.remaining();
        match next {
            Ok(next) => {
                self.state = match next {
                    SocksAction::Say(_) => SocksState::Request,
                    _ => SocksState::Over,
                };
                self.kept.clear();
                (length - before, next)
            }
            Err(SocksFailure::Truncated) if self.kept.len() < most => {
                (self.kept.len() - before, SocksAction::Wait)
            }
            Err(fault) => {
                self.state = SocksState::Over;
                (bytes.len(), SocksAction::Close(fault.told()))
            }
        }
    }
}

/// Why a program is not served.
enum SocksFailure {
    /// Bytes are missing.
    Truncated,
    /// The program does not speak SOCKS5, so it gets no reply.
    Foreign,
    /// The program gets a reply with this code.
    Reply(u8),
}

impl SocksFailure {
    fn told(self) -> Vec<u8> {
        match self {
            Self::Reply(code) => written(code).to_vec(),
            Self::Foreign | Self::Truncated => Vec::new(),
        }
    }
}

impl From<DecodeError> for SocksFailure {
    fn from(error: DecodeError) -> Self {
        match error {
            DecodeError::Truncated => Self::Truncated,
            DecodeError::UnknownType(_) => Self::Reply(replies::ADDRESS_TYPE_NOT_SUPPORTED),
            _ => Self::Reply(replies::GENERAL_FAILURE),
        }
    }
}

fn greeting(reader: &mut Reader<'_>) -> Result<SocksAction, SocksFailure> {
    if reader.u8()? != SOCKS_VERSION {
        return Err(SocksFailure::Foreign);
    }
    let count = usize::from(reader.u8()?);
    let methods = reader.bytes(count)?;
    Ok(match methods.contains(&NO_AUTHENTICATION) {
        true => SocksAction::Say([SOCKS_VERSION, NO_AUTHENTICATION].to_vec()),
        false => SocksAction::Close([SOCKS_VERSION, NO_ACCEPTABLE_METHOD].to_vec()),
    })
}

fn request(reader: &mut Reader<'_>) -> Result<SocksAction, SocksFailure> {
    if reader.u8()? != SOCKS_VERSION {
        return Err(SocksFailure::Foreign);
    }
    let command = reader.u8()?;
    let _reserved = reader.u8()?;
    if command != CONNECT_COMMAND {
        return Err(SocksFailure::Reply(replies::COMMAND_NOT_SUPPORTED));
    }
    Ok(SocksAction::Connect(Target::read(reader)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    const HELLO: &[u8] = &[5, 2, 1, 0];
    const ASKS: &[u8] = &[5, 1, 0, 3, 1, b'a', 0, 80];

    /// Returns the steps for bytes that arrive in pieces of this size, and the rest.
    fn spoken(bytes: &[u8], piece: usize) -> (Vec<SocksAction>, Vec<u8>) {
        let (mut socks, mut nexts, mut left) = (Socks::default(), Vec::new(), Vec::new());
        for chunk in bytes.chunks(piece) {
            let mut chunk = chunk;
            while !chunk.is_empty() && socks.state != SocksState::Over {
                let (used, next) = socks.take(chunk);
                chunk = &chunk[used..];
                if next != SocksAction::Wait {
                    nexts.push(next);
                }
            }
            left.extend_from_slice(chunk);
        }
        (nexts, left)
    }

    #[test]
    fn a_program_asks_for_a_target() {
        let said = || [HELLO, ASKS, b"GET /"].concat();
        for piece in 1..said().len() {
            let (nexts, left) = spoken(&said(), piece);
            assert_eq!(
                nexts,
                [SocksAction::Say([5, 0].to_vec()), SocksAction::Connect("a:80".parse().unwrap())]
            );
            assert_eq!(left, b"GET /");
        }
    }

    #[test]
    fn what_is_not_served_is_told_why() {
        let close = |said: &[u8]| SocksAction::Close(said.to_vec());
        for (said, last) in [
            (&b"GET / HTTP/1.1"[..], close(&[])),
            (&[4, 1, 0, 80, 10, 0, 0, 1, 0], close(&[])),
            (&[5, 1, 2], close(&[5, 0xff])),
            (&[5, 0], close(&[5, 0xff])),
            (&[&[5, 1, 0][..], &[5, 2, 0, 1, 1, 2, 3, 4, 0, 80]].concat(), close(&written(7))),
            (&[&[5, 1, 0][..], &[5, 1, 0, 2, 1, 2, 3, 4, 0, 80]].concat(), close(&written(8))),
            (&[&[5, 1, 0][..], &[5, 1, 0, 3, 1, b' ', 0, 80]].concat(), close(&written(1))),
            (&[&[5, 1, 0][..], &[5, 1, 0, 1, 1, 2, 3, 4, 0, 0]].concat(), close(&written(1))),
            (&[&[5, 1, 0][..], b"GET"].concat(), close(&[])),
        ] {
            for piece in [1, 2, 100] {
                assert_eq!(spoken(said, piece).0.last(), Some(&last), "{said:?}");
            }
        }
        assert_eq!(reply(Ok(())), [5, 0, 0, 1, 0, 0, 0, 0, 0, 0]);
        assert_eq!(Refusal::ALL.map(|refusal| reply(Err(refusal))[1]), [2, 2, 4, 5, 4, 6, 1, 1]);
    }

    #[test]
    fn nothing_is_kept_beyond_the_longest_word() {
        let mut socks = Socks::default();
        assert_eq!(socks.take(&[5, 255]), (2, SocksAction::Wait));
        assert_eq!(socks.take(&[1; 254]), (254, SocksAction::Wait));
        assert_eq!(socks.take(&[0; 1000]), (1, SocksAction::Say([5, 0].to_vec())));
        assert_eq!(socks.take(&[5, 1, 0, 3, 255]), (5, SocksAction::Wait));
        assert_eq!(socks.take(&[b'x'; 254]), (254, SocksAction::Wait));
        assert_eq!(
            socks.take(b"x\0\x50more").1,
            SocksAction::Close(written(1).to_vec()),
            "a name of 255 bytes"
        );
        assert_eq!(socks.take(b"more"), (0, SocksAction::Wait));
    }
}
