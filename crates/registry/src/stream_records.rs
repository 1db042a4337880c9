//! Records on a stream: a length of two bytes, then the record's bytes.

use alloc::vec::Vec;

/// Bytes of the length before a record.
pub const HEAD_LEN: usize = 2;
/// Bytes of the longest record that is written.
pub const MAX_RECORD_LEN: usize = 60_000;

/// Puts the pieces of a stream together. It holds the last piece, and at most one unfinished
/// record.
#[derive(Debug)]
pub struct Records {
    bytes: Vec<u8>,
    at: usize,
    longest: usize,
}

/// The error for a record above the permitted length.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a record of {0} bytes is longer than is taken")]
pub struct TooLong(pub usize);

impl Records {
    /// Takes records of `longest` bytes at most.
    #[must_use]
    pub const fn new(longest: usize) -> Self {
        Self { bytes: Vec::new(), at: 0, longest }
    }

    /// Adds the next piece of the stream.
    pub fn push(&mut self, piece: &[u8]) {
        if self.at > 0 {
            self.bytes.drain(..self.at.min(self.bytes.len()));
            self.at = 0;
        }
        self.bytes.extend_from_slice(piece);
    }

    /// The next record that is whole.
    ///
    /// # Errors
    /// It is longer than is taken.
    pub fn take(&mut self) -> Result<Option<&[u8]>, TooLong> {
        let rest = self.bytes.get(self.at..).unwrap_or_default();
        let Some((head, rest)) = rest.split_first_chunk::<HEAD_LEN>() else { return Ok(None) };
        let length = usize::from(u16::from_be_bytes(*head));
        if length > self.longest {
            return Err(TooLong(length));
        }
        let Some(record) = rest.get(..length) else { return Ok(None) };
        self.at += HEAD_LEN + length;
        Ok(Some(record))
    }

    /// Whether an incomplete record has arrived.
    #[must_use]
    pub fn is_amid(&self) -> bool {
        self.at < self.bytes.len()
    }
}

/// Appends a record to `stream`. One that is too long is not written.
pub fn append(stream: &mut Vec<u8>, record: &[u8]) {
    if record.len() <= MAX_RECORD_LEN
        && let Ok(length) = u16::try_from(record.len())
    {
        stream.extend_from_slice(&length.to_be_bytes());
        stream.extend_from_slice(record);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_long_one_is_refused_before_it_is_there() {
        let mut records = Records::new(10);
        records.push(&[0, 11]);
        assert_eq!(records.take(), Err(TooLong(11)));
    }

    proptest! {
        #[test]
        fn whatever_the_pieces_the_records_are_the_same(
            sent in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..50), 0..10), piece in 1_usize..40,
        ) {
            let mut stream = Vec::new();
            sent.iter().for_each(|record| append(&mut stream, record));
            let (mut records, mut got) = (Records::new(100), Vec::new());
            for part in stream.chunks(piece) {
                records.push(part);
                while let Some(record) = records.take().unwrap() {
                    got.push(record.to_vec());
                }
            }
            prop_assert_eq!(got, sent);
            prop_assert!(!records.is_amid());
        }
    }
}
