//! The bytes of streams, objects and datagrams that are exchanged. They depend on what they belong
//! to and on their offset, so that bytes in a wrong place differ.

use byway_sim::Random;
use std::sync::OnceLock;

/// The bytes repeat after this length. It is a prime, so no size of pieces divides it.
const CONTENT_PERIOD: u64 = 65_521;

/// Identifies the contents of an object or stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum ContentId {
    /// An object that the sender, or the receiver (`back`), has.
    Object { number: u32, back: bool },
    /// The bytes that the sender, or the receiver (`back`), writes to a stream.
    Stream { number: u32, back: bool },
    /// A datagram of the sender or the receiver.
    Datagram { number: u32, back: bool },
}

impl ContentId {
    /// The index in the table at which the contents begin.
    fn begins(self) -> u64 {
        let (kind, number, back) = match self {
            Self::Object { number, back } => (0, number, back),
            Self::Stream { number, back } => (1, number, back),
            Self::Datagram { number, back } => (2, number, back),
        };
        u64::from(number) * 7_919 + kind * 20_011 + u64::from(back) * 31_337
    }

    /// The bytes of the content from `offset` on.
    pub(super) fn bytes(self, offset: u64, length: usize) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(length);
        self.each_run(offset, length, |run| {
            bytes.extend_from_slice(run);
            true
        });
        bytes
    }

    /// Whether `bytes` are the contents from `offset` on.
    pub(super) fn is(self, offset: u64, bytes: &[u8]) -> bool {
        let mut rest = bytes;
        self.each_run(offset, bytes.len(), |run| {
            let Some((first, behind)) = rest.split_at_checked(run.len()) else { return false };
            rest = behind;
            first == run
        })
    }

    /// Passes the contents to `take` in runs, until `take` returns false.
    fn each_run(self, offset: u64, length: usize, mut take: impl FnMut(&[u8]) -> bool) -> bool {
        static CONTENT_TABLE: OnceLock<Vec<u8>> = OnceLock::new();
        let table = CONTENT_TABLE.get_or_init(|| {
            let mut table = vec![0; CONTENT_PERIOD as usize];
            Random::new(CONTENT_PERIOD).fill(&mut table);
            table
        });
        let mut at = ((self.begins() + offset) % CONTENT_PERIOD) as usize;
        let mut left = length;
        while left > 0 {
            let rest = table.get(at..).unwrap_or_default();
            let run = rest.get(..left.min(rest.len())).unwrap_or_default();
            if !take(run) {
                return false;
            }
            left -= run.len();
            at = 0;
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::ContentId;

    #[test]
    fn bytes_are_known_by_what_they_belong_to_and_where() {
        let object = ContentId::Object { number: 3, back: false };
        let bytes = object.bytes(100_000, 200_000);
        assert_eq!(bytes.len(), 200_000);
        assert!(object.is(100_000, &bytes) && object.is(100_007, &bytes[7..]));
        assert!(!object.is(100_001, &bytes));
        for other in [
            ContentId::Object { number: 4, back: false },
            ContentId::Object { number: 3, back: true },
            ContentId::Stream { number: 3, back: false },
        ] {
            assert!(!other.is(100_000, &bytes));
        }
        let mut damaged = bytes;
        damaged[150_000] ^= 1;
        assert!(!object.is(100_000, &damaged));
    }
}
