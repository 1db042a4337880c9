//! HTTP CONNECT as programs speak it to a proxy (RFC 9110, section 9.3.6).
//!
//! ```text
//! program: CONNECT host:port HTTP/1.1, headers, an empty line
//! lane:    HTTP/1.1 200, an empty line; or a status that says why not
//! ```

use byway_forward::forward_target::Target;
use byway_forward::stream_request::Refusal;

/// Bytes of the longest head of a request.
const MAX_HEAD_LEN: usize = 8 << 10;
const END_OF_HEAD: &[u8] = b"\r\n\r\n";
/// The answer of a proxy that is connected.
pub(crate) const CONNECTED_REPLY: &[u8] = b"HTTP/1.1 200 Connection established\r\n\r\n";
const NO_REQUEST: &[u8] = b"HTTP/1.1 400 Bad Request\r\nConnection: close\r\nContent-Length: 0\r\n\r\n";
const NO_CONNECT: &[u8] = b"HTTP/1.1 405 Method Not Allowed\r\nAllow: CONNECT\r\nConnection: close\r\n\
    Content-Length: 45\r\n\r\nthis proxy serves CONNECT alone: use https:\r\n";
const HEAD_TOO_LONG: &[u8] =
    b"HTTP/1.1 431 Request Header Fields Too Large\r\nConnection: close\r\nContent-Length: 0\r\n\r\n";

/// What follows from the bytes of a program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum ConnectAction {
    /// Wait for more bytes.
    Wait,
    /// The program asks for this target.
    Connect(Target),
    /// Send this answer, and close the connection.
    Close(&'static [u8]),
}

/// A request that arrives in pieces.
#[derive(Debug, Default)]
pub(crate) struct ConnectRequest {
    head: Vec<u8>,
}

impl ConnectRequest {
    /// Takes bytes from the program. Returns how many were used: what follows the head is the
    /// program's first data.
    pub fn take(&mut self, bytes: &[u8]) -> (usize, ConnectAction) {
        let before = self.head.len();
        let room = MAX_HEAD_LEN - before.min(MAX_HEAD_LEN);
        self.head.extend_from_slice(bytes.get(..bytes.len().min(room)).unwrap_or_default());
        // The end may have begun in the bytes before.
        let from = before.saturating_sub(END_OF_HEAD.len() - 1);
        let found = self.head.get(from..).unwrap_or_default();
        let end = found.windows(END_OF_HEAD.len()).position(|window| window == END_OF_HEAD);
        match end {
            Some(at) => {
                let length = from + at + END_OF_HEAD.len();
                (length - before, target(self.head.get(..length).unwrap_or_default()))
            }
            None if self.head.len() >= MAX_HEAD_LEN => {
                (self.head.len() - before, ConnectAction::Close(HEAD_TOO_LONG))
            }
            None => (self.head.len() - before, ConnectAction::Wait),
        }
    }
}

/// The target of a whole head.
fn target(head: &[u8]) -> ConnectAction {
    let line = head.split(|byte| *byte == b'\r').next().unwrap_or_default();
    let Ok(line) = core::str::from_utf8(line) else { return ConnectAction::Close(NO_REQUEST) };
    let mut words = line.split(' ');
    let (method, target, version, rest) = (words.next(), words.next(), words.next(), words.next());
    match (method, target, version, rest) {
        (Some("CONNECT"), Some(target), Some("HTTP/1.1" | "HTTP/1.0"), None) => {
            target.parse().map_or(ConnectAction::Close(NO_REQUEST), ConnectAction::Connect)
        }
        (Some(_), Some(_), Some("HTTP/1.1" | "HTTP/1.0"), None) => ConnectAction::Close(NO_CONNECT),
        _ => ConnectAction::Close(NO_REQUEST),
    }
}

/// The answer to a request whose target cannot be reached.
pub(crate) const fn refusal_answer(refusal: Refusal) -> &'static [u8] {
    match refusal {
        Refusal::Forbidden | Refusal::Near => {
            b"HTTP/1.1 403 Forbidden\r\nConnection: close\r\nContent-Length: 0\r\n\r\n"
        }
        Refusal::Timeout => b"HTTP/1.1 504 Gateway Timeout\r\nConnection: close\r\nContent-Length: 0\r\n\r\n",
        Refusal::Full => {
            b"HTTP/1.1 503 Service Unavailable\r\nConnection: close\r\nContent-Length: 0\r\n\r\n"
        }
        Refusal::Name | Refusal::Unreachable | Refusal::Refused | Refusal::Failed => {
            b"HTTP/1.1 502 Bad Gateway\r\nConnection: close\r\nContent-Length: 0\r\n\r\n"
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// What is said, and which bytes stay, if the bytes come in pieces.
    fn spoken(said: &[u8], piece: usize) -> (ConnectAction, usize) {
        let (mut request, mut at) = (ConnectRequest::default(), 0);
        while at < said.len() {
            let (used, action) = request.take(&said[at..said.len().min(at + piece)]);
            at += used;
            if action != ConnectAction::Wait {
                return (action, at);
            }
        }
        (ConnectAction::Wait, at)
    }

    #[test]
    fn a_request_is_read_in_any_pieces_and_what_follows_stays() {
        let head = b"CONNECT S3.example.com:443 HTTP/1.1\r\nHost: x\r\nProxy-Connection: y\r\n\r\n";
        let said = [&head[..], b"\x16\x03\x01"].concat();
        for piece in [1, 2, 3, 7, 500] {
            let asked = ConnectAction::Connect("s3.example.com:443".parse().unwrap());
            assert_eq!(spoken(&said, piece), (asked, head.len()), "{piece}");
        }
        assert_eq!(spoken(&head[..head.len() - 1], 9).0, ConnectAction::Wait);
        let v6 = spoken(b"CONNECT [2001:db8::1]:443 HTTP/1.0\r\n\r\n", 4).0;
        assert_eq!(v6, ConnectAction::Connect("[2001:db8::1]:443".parse().unwrap()));
    }

    #[test]
    fn what_is_not_served_is_told_why() {
        for (said, answer) in [
            (&b"GET http://a/ HTTP/1.1\r\n\r\n"[..], NO_CONNECT),
            (b"CONNECT a HTTP/1.1\r\n\r\n", NO_REQUEST),
            (b"CONNECT a:443\r\n\r\n", NO_REQUEST),
            (b"CONNECT a:443 HTTP/1.1 x\r\n\r\n", NO_REQUEST),
            (b"CONNECT 2130706433:80 HTTP/1.1\r\n\r\n", NO_REQUEST),
            (b"\xff\xfe\r\n\r\n", NO_REQUEST),
            (&[b'x'; MAX_HEAD_LEN + 1], HEAD_TOO_LONG),
        ] {
            assert_eq!(spoken(said, 100).0, ConnectAction::Close(answer));
        }
        let (head, body) =
            NO_CONNECT.split_at(NO_CONNECT.windows(4).position(|it| it == b"\r\n\r\n").unwrap() + 4);
        let length = format!("Content-Length: {}", body.len());
        assert!(String::from_utf8(head.to_vec()).unwrap().contains(&length), "{length}");
    }

    proptest! {
        #[test]
        fn nothing_is_kept_beyond_the_longest_head(said: Vec<u8>, piece in 1_usize..300, times in 1_usize..200) {
            let mut request = ConnectRequest::default();
            for _ in 0..times {
                let (used, action) = request.take(said.get(..piece).unwrap_or(&said));
                prop_assert!(used <= said.len() && request.head.len() <= MAX_HEAD_LEN);
                if action != ConnectAction::Wait {
                    break;
                }
            }
        }
    }
}
