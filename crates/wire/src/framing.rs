//! Datagrams over a TCP connection. The length of each datagram precedes the datagram, as in RFC
//! 4571 section 2.
//!
//! ```text
//! length (2, big-endian, 1 to 65535), payload
//! ```
//!
//! A receiver closes the connection at a length of zero, or at a length above the receiver's limit.

use alloc::vec::Vec;

/// Bytes of a length.
pub const LENGTH_PREFIX_LEN: usize = 2;

/// The bytes are no frame, or the frame is longer than permitted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a frame without a payload, or a longer one than is taken")]
pub struct NoFrame;

/// The length field for a datagram of `payload` bytes. `None`: the datagram is empty or longer than
/// 65,535 bytes.
#[must_use]
pub fn prefix(payload: usize) -> Option<[u8; LENGTH_PREFIX_LEN]> {
    u16::try_from(payload).ok().filter(|length| *length > 0).map(u16::to_be_bytes)
}

/// Cuts the bytes of a connection into datagrams. It holds the received part of one frame, at most
/// 65,537 bytes.
#[derive(Debug)]
pub struct TcpFrames {
    /// The beginning of a frame whose rest has yet to come.
    begun: Vec<u8>,
    longest: usize,
}

impl Default for TcpFrames {
    fn default() -> Self {
        Self { begun: Vec::new(), longest: usize::from(u16::MAX) }
    }
}

impl TcpFrames {
    /// Refuses payloads of more than `longest` bytes from now on. So no more than `longest` bytes
    /// of payload are held.
    pub const fn set_longest(&mut self, longest: usize) {
        self.longest = longest;
    }

    /// Returns the length of the frame's payload. `None`: its two length bytes have not both
    /// arrived.
    fn length(&self, bytes: &[u8]) -> Result<Option<usize>, NoFrame> {
        match bytes {
            [high, low, ..] => match usize::from(u16::from_be_bytes([*high, *low])) {
                0 => Err(NoFrame),
                length if length > self.longest => Err(NoFrame),
                length => Ok(Some(length)),
            },
            _ => Ok(None),
        }
    }

    /// Takes the next received bytes of the connection, and calls `each` with the payload of each
    /// complete frame.
    ///
    /// # Errors
    /// The length of a frame is 0 or above the receiver's limit. The connection must then be
    /// closed.
    pub fn take(&mut self, mut bytes: &mut [u8], mut each: impl FnMut(&mut [u8])) -> Result<(), NoFrame> {
        while !self.begun.is_empty() {
            let missing = match self.length(&self.begun)? {
                None => LENGTH_PREFIX_LEN - self.begun.len(),
                Some(length) => LENGTH_PREFIX_LEN + length - self.begun.len(),
            };
            let (next, rest) = bytes.split_at_mut(missing.min(bytes.len()));
            bytes = rest;
            self.begun.extend_from_slice(next);
            match self.length(&self.begun)? {
                Some(length) if self.begun.len() == LENGTH_PREFIX_LEN + length => {
                    each(self.begun.get_mut(LENGTH_PREFIX_LEN..).unwrap_or_default());
                    self.begun.clear();
                    // Most frames come whole, so the memory for one in parts is not kept.
                    self.begun.shrink_to(0);
                }
                _ if bytes.is_empty() => return Ok(()),
                _ => {}
            }
        }
        while let Some(length) = self.length(bytes)? {
            if bytes.len() < LENGTH_PREFIX_LEN + length {
                break;
            }
            let (frame, rest) = bytes.split_at_mut(LENGTH_PREFIX_LEN + length);
            bytes = rest;
            each(frame.get_mut(LENGTH_PREFIX_LEN..).unwrap_or_default());
        }
        self.begun.extend_from_slice(bytes);
        Ok(())
    }

    /// Bytes of a frame whose rest has yet to come.
    #[must_use]
    pub const fn begun(&self) -> usize {
        self.begun.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec;

    fn framed(payloads: &[&[u8]]) -> Vec<u8> {
        payloads.iter().flat_map(|it| [&prefix(it.len()).unwrap()[..], it].concat()).collect()
    }

    #[test]
    fn on_the_wire() {
        assert_eq!(framed(&[b"ab", b"c"]), [0, 2, b'a', b'b', 0, 1, b'c']);
        assert_eq!((prefix(0), prefix(65_536), prefix(65_535)), (None, None, Some([255, 255])));
    }

    /// However the bytes are cut, the frames are the same.
    #[test]
    fn frames_come_out_whole_however_they_come_in() {
        let long = vec![7; 65_535];
        let payloads: [&[u8]; 5] = [b"first", b"x", &long, b"yz", b"last"];
        let bytes = framed(&payloads);
        for step in [1, 2, 3, 5, 7, 1_000, 65_536, 200_000] {
            let mut frames = TcpFrames::default();
            let mut got: Vec<Vec<u8>> = Vec::new();
            for piece in bytes.clone().chunks_mut(step) {
                frames.take(piece, |payload| got.push(payload.to_vec())).unwrap();
                assert!(frames.begun() < LENGTH_PREFIX_LEN + 65_535);
            }
            assert_eq!(got, payloads, "{step}");
            assert_eq!(frames.begun(), 0);
        }
    }

    #[test]
    fn a_frame_without_a_payload_ends_it() {
        for bytes in [&[0, 0][..], &[0, 1, 9, 0, 0, 5]] {
            for step in [1, 2, 6] {
                let mut frames = TcpFrames::default();
                let ended = bytes.to_vec().chunks_mut(step).any(|it| frames.take(it, |_| {}).is_err());
                assert!(ended, "{bytes:?} by {step}");
            }
        }
    }

    /// A frame that is too long is refused by its length, before any of its bytes are kept.
    #[test]
    fn a_frame_that_is_too_long_ends_it() {
        let mut frames = TcpFrames::default();
        frames.set_longest(1_000);
        let mut got = 0;
        let mut bytes = [&prefix(1_000).unwrap()[..], &[1; 1_000], &prefix(1_001).unwrap()].concat();
        assert_eq!(frames.take(&mut bytes, |payload| got += payload.len()), Err(NoFrame));
        assert_eq!((got, frames.begun()), (1_000, 0));
    }
}
