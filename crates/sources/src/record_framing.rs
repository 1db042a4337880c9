//! Cuts input into records. A record includes its line end, or the length in front of it. So all
//! records joined together are the input again.

/// Bytes of a length in front of a record, most significant first.
const PREFIX: usize = 4;

/// Where one record ends and the next begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Framing {
    /// After each line feed.
    Lines,
    /// A length of four bytes, most significant first, stands before each record.
    Prefixed,
    /// Each record has so many bytes; at least one.
    Fixed(usize),
}

/// Why input has no records.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FramingError {
    /// A record is too long.
    #[error("record {number} of the input is longer than {most} bytes: {}", hint(*.framing))]
    TooLong {
        /// Which, counted from 1.
        number: u64,
        /// What a record may have.
        most: usize,
        /// How it is framed.
        framing: Framing,
    },
    /// The input ends before a record does.
    #[error("the input ends in the middle of record {number}, of which {missing} bytes are missing at least")]
    CutShort {
        /// Which, counted from 1.
        number: u64,
        /// Bytes that are missing at least.
        missing: usize,
    },
}

const fn hint(framing: Framing) -> &'static str {
    match framing {
        Framing::Lines => "if it has no lines, give --record N or --prefixed",
        Framing::Prefixed => "are the lengths 4 bytes, most significant first?",
        Framing::Fixed(_) => "give a smaller --record",
    }
}

/// Cuts input into records.
#[derive(Clone, Debug)]
pub struct RecordFramer {
    framing: Framing,
    most: usize,
    begun: Vec<u8>,
    done: u64,
}

impl RecordFramer {
    /// Cuts records of at most `most` bytes each.
    #[must_use]
    pub const fn new(framing: Framing, most: usize) -> Self {
        Self { framing, most, begun: Vec::new(), done: 0 }
    }

    /// Takes in the next bytes of the input. Calls `take` with each record that is complete.
    ///
    /// # Errors
    /// A record is too long. The input after such a record cannot be cut into records.
    pub fn push(&mut self, mut bytes: &[u8], mut take: impl FnMut(&[u8])) -> Result<(), FramingError> {
        while !bytes.is_empty() {
            let (wanted, ends) = self.wanted(bytes)?;
            let (now, rest) = bytes.split_at(wanted.min(bytes.len()));
            bytes = rest;
            if ends && self.begun.is_empty() {
                self.check(now.len())?;
                take(now);
                self.done += 1;
                continue;
            }
            self.check(self.begun.len() + now.len())?;
            self.begun.extend_from_slice(now);
            if ends {
                take(&self.begun);
                self.begun.clear();
                self.done += 1;
            }
        }
        Ok(())
    }

    /// How many of these bytes come next, and whether the record ends with them.
    fn wanted(&self, bytes: &[u8]) -> Result<(usize, bool), FramingError> {
        let have = self.begun.len();
        let whole = match self.framing {
            Framing::Lines => {
                let end = bytes.iter().position(|byte| *byte == b'\n');
                return Ok(end.map_or((bytes.len(), false), |at| (at + 1, true)));
            }
            Framing::Fixed(size) => size.max(1),
            Framing::Prefixed => {
                let mut prefix = [0; PREFIX];
                let head = self.begun.iter().chain(bytes).take(PREFIX);
                let known = prefix.iter_mut().zip(head).map(|(to, from)| *to = *from).count();
                if known < PREFIX {
                    return Ok((bytes.len(), false));
                }
                usize::try_from(u32::from_be_bytes(prefix)).unwrap_or(usize::MAX).saturating_add(PREFIX)
            }
        };
        self.check(whole)?;
        let left = whole.saturating_sub(have);
        Ok((left, bytes.len() >= left))
    }

    const fn check(&self, length: usize) -> Result<(), FramingError> {
        if length > self.most {
            return Err(FramingError::TooLong {
                number: self.done + 1,
                most: self.most,
                framing: self.framing,
            });
        }
        Ok(())
    }

    /// The input is over. A last line needs no line feed.
    ///
    /// # Errors
    /// It ends in the middle of a record.
    pub fn finish(&mut self, mut take: impl FnMut(&[u8])) -> Result<(), FramingError> {
        if self.begun.is_empty() {
            return Ok(());
        }
        let (number, have) = (self.done + 1, self.begun.len());
        let missing = match self.framing {
            Framing::Lines => {
                take(&self.begun);
                self.begun.clear();
                self.done += 1;
                return Ok(());
            }
            Framing::Fixed(size) => size.saturating_sub(have),
            Framing::Prefixed => match self.begun.first_chunk::<PREFIX>() {
                Some(prefix) => usize::try_from(u32::from_be_bytes(*prefix)).unwrap_or(usize::MAX) + PREFIX,
                None => PREFIX,
            }
            .saturating_sub(have),
        };
        Err(FramingError::CutShort { number, missing })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn cut(framing: Framing, input: &[u8], piece: usize) -> (Vec<Vec<u8>>, Result<(), FramingError>) {
        let (mut cutter, mut records) = (RecordFramer::new(framing, 100), Vec::new());
        let mut done = Ok(());
        for bytes in input.chunks(piece) {
            done = done.and_then(|()| cutter.push(bytes, |record| records.push(record.to_vec())));
        }
        let done = done.and_then(|()| cutter.finish(|record| records.push(record.to_vec())));
        (records, done)
    }

    #[test]
    fn lines_lengths_and_blocks() {
        let texts = |records: Vec<Vec<u8>>| -> Vec<String> {
            records.into_iter().map(|it| String::from_utf8(it).unwrap()).collect()
        };
        let (records, done) = cut(Framing::Lines, b"one\n\nthree\nfour", 3);
        assert_eq!(
            (texts(records), done),
            (["one\n", "\n", "three\n", "four"].map(String::from).into(), Ok(()))
        );
        let (records, done) = cut(Framing::Fixed(3), b"abcdefgh", 2);
        assert_eq!(texts(records), ["abc", "def"]);
        assert_eq!(done, Err(FramingError::CutShort { number: 3, missing: 1 }));
        let (records, done) = cut(Framing::Prefixed, b"\0\0\0\x02hi\0\0\0\0\0\0\0\x05abc", 5);
        assert_eq!(texts(records), ["\0\0\0\x02hi", "\0\0\0\0"]);
        assert_eq!(done, Err(FramingError::CutShort { number: 3, missing: 2 }));
    }

    #[test]
    fn a_record_that_is_too_long_is_told_at_once_and_takes_no_memory() {
        let long = [b'x'; 101];
        let (records, done) = cut(Framing::Lines, &[b"a\n", &long[..]].concat(), 7);
        let told = done.unwrap_err().to_string();
        assert!(records.len() == 1 && told.contains("record 2") && told.contains("--record"), "{told}");
        let (_, done) = cut(Framing::Prefixed, b"\xff\xff\xff\xff", 4);
        assert!(matches!(done, Err(FramingError::TooLong { number: 1, .. })), "{done:?}");
        assert!(cut(Framing::Fixed(101), b"a", 1).1.is_err());
        assert!(cut(Framing::Lines, &[&long[..99], b"\n"].concat(), 50).1.is_ok());
    }

    proptest! {
        /// However input comes in pieces, the same records come of it, and together they are the
        /// input.
        #[test]
        fn pieces_do_not_matter(
            input in proptest::collection::vec(prop_oneof![Just(b'\n'), Just(0), Just(3), any::<u8>()], 0..300),
            piece in 1usize..50,
            size in 1usize..9,
        ) {
            for framing in [Framing::Lines, Framing::Prefixed, Framing::Fixed(size)] {
                let whole = cut(framing, &input, usize::MAX);
                prop_assert_eq!(&cut(framing, &input, piece).0, &whole.0);
                let all = whole.0.concat();
                prop_assert!(input.starts_with(&all));
                prop_assert!(whole.1.is_err() || all.len() == input.len());
            }
        }
    }
}
