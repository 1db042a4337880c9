//! Cuts input into records. A record includes its line end, or the length in front of it. So all
//! records joined together are the input again.

/// Bytes of a length in front of a record, most significant first.
const LENGTH_PREFIX_LEN: usize = 4;

/// How an input is divided into records.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Framing {
    /// After each line feed.
    Lines,
    /// Each record is preceded by its length: four bytes, most significant first.
    Prefixed,
    /// Each record has this number of bytes, at least 1.
    Fixed(usize),
}

/// The treatment of a line that is longer than the longest record.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum LongLines {
    /// The line's beginning becomes a record, with a line end.
    #[default]
    Cut,
    /// The line is left out.
    Skipped,
}

/// Why input has no records.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FramingError {
    /// A record is too long.
    #[error("record {number} of the input is longer than {most} bytes: {}", hint(*.framing))]
    TooLong {
        /// The record's number, counted from 1.
        number: u64,
        /// The most bytes of a record.
        most: usize,
        /// How the input is divided into records.
        framing: Framing,
    },
    /// The input ends before a record does.
    #[error("the input ends in the middle of record {number}, of which {missing} bytes are missing at least")]
    CutShort {
        /// The record's number, counted from 1.
        number: u64,
        /// Bytes that are missing at least.
        missing: usize,
    },
}

const fn hint(framing: Framing) -> &'static str {
    match framing {
        Framing::Lines => "give --record N or --prefixed",
        Framing::Prefixed => "are the lengths 4 bytes, most significant first?",
        Framing::Fixed(_) => "give a smaller --record",
    }
}

/// Cuts input into records.
#[derive(Clone, Debug)]
pub struct RecordFramer {
    framing: Framing,
    long_lines: LongLines,
    most: usize,
    begun: Vec<u8>,
    done: u64,
    /// Whether the rest of a line that is too long is left out.
    in_long_line: bool,
    /// Lines that were too long.
    long_count: u64,
}

impl RecordFramer {
    /// Cuts records of at most `most` bytes each.
    #[must_use]
    pub const fn new(framing: Framing, long_lines: LongLines, most: usize) -> Self {
        Self { framing, long_lines, most, begun: Vec::new(), done: 0, in_long_line: false, long_count: 0 }
    }

    /// The number of lines so far that were too long.
    #[must_use]
    pub const fn long_count(&self) -> u64 {
        self.long_count
    }

    /// Takes in the next bytes of the input. Calls `take` with each record that is complete.
    ///
    /// # Errors
    /// A record that is no line is too long. The input after such a record cannot be cut into
    /// records.
    pub fn push(&mut self, mut bytes: &[u8], mut take: impl FnMut(&[u8])) -> Result<(), FramingError> {
        while !bytes.is_empty() {
            let (wanted, ends) = self.wanted(bytes)?;
            let (now, rest) = bytes.split_at(wanted.min(bytes.len()));
            bytes = rest;
            if self.framing == Framing::Lines && self.leaves_out(now, ends, &mut take) {
                continue;
            }
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

    /// Whether `now`, the next bytes of a line, belong to a line that is too long. `ends`: whether
    /// the line ends with them.
    fn leaves_out(&mut self, now: &[u8], ends: bool, mut take: impl FnMut(&[u8])) -> bool {
        let begins = !self.in_long_line && self.begun.len() + now.len() > self.most;
        if begins {
            self.long_count += 1;
            if self.long_lines == LongLines::Cut {
                let room = self.most.saturating_sub(self.begun.len() + 1);
                let mut record = std::mem::take(&mut self.begun);
                record.extend_from_slice(now.get(..room).unwrap_or(now));
                record.truncate(self.most.saturating_sub(1));
                record.push(b'\n');
                take(&record);
                self.done += 1;
            }
            self.begun.clear();
        }
        let is_left_out = begins || self.in_long_line;
        self.in_long_line = is_left_out && !ends;
        is_left_out
    }

    /// Returns how many of these bytes belong to the present record, and whether the record ends
    /// with them.
    fn wanted(&self, bytes: &[u8]) -> Result<(usize, bool), FramingError> {
        let have = self.begun.len();
        let whole = match self.framing {
            Framing::Lines => {
                let end = bytes.iter().position(|byte| *byte == b'\n');
                return Ok(end.map_or((bytes.len(), false), |at| (at + 1, true)));
            }
            Framing::Fixed(size) => size.max(1),
            Framing::Prefixed => {
                let mut prefix = [0; LENGTH_PREFIX_LEN];
                let head = self.begun.iter().chain(bytes).take(LENGTH_PREFIX_LEN);
                let known = prefix.iter_mut().zip(head).map(|(to, from)| *to = *from).count();
                if known < LENGTH_PREFIX_LEN {
                    return Ok((bytes.len(), false));
                }
                usize::try_from(u32::from_be_bytes(prefix))
                    .unwrap_or(usize::MAX)
                    .saturating_add(LENGTH_PREFIX_LEN)
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
            Framing::Prefixed => match self.begun.first_chunk::<LENGTH_PREFIX_LEN>() {
                Some(prefix) => {
                    usize::try_from(u32::from_be_bytes(*prefix)).unwrap_or(usize::MAX) + LENGTH_PREFIX_LEN
                }
                None => LENGTH_PREFIX_LEN,
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
        let (mut cutter, mut records) = (RecordFramer::new(framing, LongLines::Cut, 100), Vec::new());
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
        let (_, done) = cut(Framing::Prefixed, b"\xff\xff\xff\xff", 4);
        assert!(matches!(done, Err(FramingError::TooLong { number: 1, .. })), "{done:?}");
        assert!(cut(Framing::Fixed(101), b"a", 1).1.is_err());
        assert!(cut(Framing::Lines, &[&long[..99], b"\n"].concat(), 50).1.is_ok());
    }

    /// Returns the lengths of the records from lines of these lengths, and the number of lines that
    /// were too long.
    fn lines(long_lines: LongLines, lengths: &[usize], ends: bool, piece: usize) -> (Vec<usize>, u64) {
        let lines: Vec<Vec<u8>> = lengths.iter().map(|length| vec![b'x'; *length]).collect();
        let mut input = lines.join(&b'\n');
        input.extend(ends.then_some(b'\n'));
        let (mut cutter, mut records) = (RecordFramer::new(Framing::Lines, long_lines, 100), Vec::new());
        for bytes in input.chunks(piece) {
            cutter.push(bytes, |record| records.push(record.to_vec())).unwrap();
            assert!(cutter.begun.len() <= 100, "no more than a record is held");
        }
        cutter.finish(|record| records.push(record.to_vec())).unwrap();
        let text = |record: &Vec<u8>| record.iter().filter(|byte| **byte == b'x').count();
        (records.iter().map(text).collect(), cutter.long_count())
    }

    #[test]
    fn a_line_that_is_too_long_is_cut_or_skipped_and_the_next_is_as_it_came() {
        for piece in [1, 7, 99, 100, 101, 1_000] {
            for ends in [true, false] {
                let cut = |lengths: &[usize]| lines(LongLines::Cut, lengths, ends, piece);
                assert_eq!(cut(&[5, 99, 6]), (vec![5, 99, 6], 0), "{piece}");
                assert_eq!(cut(&[5, 100, 6]), (vec![5, 99, 6], 1), "{piece}");
                assert_eq!(cut(&[5, 450, 300, 6]), (vec![5, 99, 99, 6], 2), "{piece}");
                let skipped = |lengths: &[usize]| lines(LongLines::Skipped, lengths, ends, piece);
                assert_eq!(skipped(&[5, 450, 300, 6]), (vec![5, 6], 2), "{piece}");
                assert_eq!(skipped(&[5, 450]), (vec![5], 1), "{piece}");
                assert_eq!(cut(&[450]), (vec![99], 1), "{piece}");
            }
        }
    }

    proptest! {
        /// However the input is cut into pieces, the same records result, and together they are the
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
                let has_long_lines =
                    framing == Framing::Lines && input.split_inclusive(|it| *it == b'\n').any(|line| line.len() > 100);
                prop_assert!(has_long_lines || input.starts_with(&all));
                prop_assert!(has_long_lines || whole.1.is_err() || all.len() == input.len());
            }
        }
    }
}
