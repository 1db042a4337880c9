//! A sink's data about a source: the key that owns the name, the number of records in the source's
//! file, and the bytes of these records. If a crash leaves a longer file, the next start cuts the
//! file to these bytes.

use crate::MAX_NUMBER;
use std::fs::File;
use std::os::unix::fs::FileExt as _;

/// Bytes of a slot.
pub const SLOT_LEN: usize = 168;
/// The bytes with which a slot begins.
const SLOT_MAGIC: &[u8; 8] = b"bywnote2";
/// Bytes of a slot of the time before names had an owner.
const OWNERLESS_SLOT_LEN: usize = 48;
/// The bytes with which a slot without an owner begins.
const OWNERLESS_MAGIC: &[u8; 8] = b"bywnote1";
/// Bytes of a slot's checksum.
const CHECKSUM_LEN: usize = 8;
/// Bytes of a file's end by which the sink knows the file again.
const TAIL_LEN: usize = 32;

/// The content of a note about a source's file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Checkpoint {
    /// Counts the notes of a source.
    pub generation: u64,
    /// The number of the record that the sink wants next.
    pub next: u64,
    /// Bytes of the file that hold records.
    pub bytes: u64,
    /// Numbers that have no record.
    pub lost: u64,
    /// The public key of the sources that may use the name. `None`: no source has used it.
    pub key: Option<[u8; 32]>,
    /// The runs that wrote.
    pub runs: RunHistory,
    /// The last of the bytes that were written to the file.
    pub tail: FileTail,
    /// The inode number of the file.
    pub inode: u64,
}

/// The last bytes of a file, at most 32.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FileTail {
    bytes: [u8; TAIL_LEN],
    length: usize,
}

impl FileTail {
    fn new(bytes: &[u8]) -> Self {
        let mut tail = Self { length: bytes.len().min(TAIL_LEN), ..Self::default() };
        tail.bytes.iter_mut().zip(bytes).for_each(|(to, byte)| *to = *byte);
        tail
    }

    fn known(&self) -> &[u8] {
        self.bytes.get(..self.length).unwrap_or_default()
    }

    /// The end once `bytes` are appended.
    #[must_use]
    pub fn followed_by(&self, bytes: &[u8]) -> Self {
        let new = bytes.get(bytes.len().saturating_sub(TAIL_LEN)..).unwrap_or_default();
        let all = [self.known(), new].concat();
        Self::new(all.get(all.len().saturating_sub(TAIL_LEN)..).unwrap_or_default())
    }

    /// The last byte, if any is known.
    #[must_use]
    pub fn last(&self) -> Option<u8> {
        self.known().last().copied()
    }

    /// Whether these are the last bytes of `file` before the offset `end`.
    #[must_use]
    pub fn ends(&self, file: &File, end: u64) -> bool {
        let mut read = [0; TAIL_LEN];
        let (read, known) = (read.get_mut(..self.length).unwrap_or_default(), self.known());
        let at = end.checked_sub(self.length as u64);
        at.is_some_and(|at| file.read_exact_at(read, at).is_ok()) && *read == *known
    }
}

/// The last two runs of a source that wrote under the name. A run is a process, with an identity of
/// its own.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RunHistory {
    /// The run that wrote last; zeros if none did.
    pub last: [u8; 16],
    /// The number of the first record that the last run wrote.
    pub last_from: u64,
    /// The run that wrote before the last one. Zeros: there was none.
    pub before: [u8; 16],
}

impl RunHistory {
    /// The history once `run` has written record `number`.
    #[must_use]
    pub fn written_by(self, run: [u8; 16], number: u64) -> Self {
        if run == self.last {
            return self;
        }
        Self { last: run, last_from: number, before: self.last }
    }
}

impl Checkpoint {
    /// The same numbers, of a file that is empty yet.
    #[must_use]
    pub fn of_empty_file(self, inode: u64) -> Self {
        Self { bytes: 0, tail: FileTail::default(), inode, ..self }
    }

    /// Returns the encoded slot, and the offset for it, in place of the older of the two notes.
    #[must_use]
    pub fn to_slot(self) -> ([u8; SLOT_LEN], u64) {
        let mut slot = [0; SLOT_LEN];
        let numbers = [self.generation, self.next, self.bytes, self.lost, self.runs.last_from];
        let numbers = numbers.map(u64::to_be_bytes).concat();
        let key = self.key.unwrap_or_default();
        let length = (self.tail.length as u64).to_be_bytes();
        let runs = [self.runs.last, self.runs.before].concat();
        let inode = self.inode.to_be_bytes();
        let parts = [&SLOT_MAGIC[..], &numbers, &key, &runs, &length, &self.tail.bytes, &inode].concat();
        slot.iter_mut().zip(&parts).for_each(|(to, byte)| *to = *byte);
        let sum = checksum(slot.get(..SLOT_LEN - CHECKSUM_LEN).unwrap_or_default());
        if let Some(end) = slot.get_mut(SLOT_LEN - CHECKSUM_LEN..) {
            end.copy_from_slice(&sum);
        }
        (slot, self.generation % 2 * SLOT_LEN as u64)
    }

    /// Reads the newer note from a file of notes. `None`: the file is damaged. An empty file means
    /// that nothing was written yet.
    #[must_use]
    pub fn read(file: &[u8]) -> Option<Self> {
        if file.is_empty() {
            return Some(Self::default());
        }
        let newest = |slot: usize| {
            file.chunks_exact(slot).take(2).filter_map(Self::of_slot).max_by_key(|note| note.generation)
        };
        newest(SLOT_LEN).or_else(|| newest(OWNERLESS_SLOT_LEN))
    }

    fn of_slot(slot: &[u8]) -> Option<Self> {
        let (said, sum) = slot.split_at_checked(slot.len().checked_sub(CHECKSUM_LEN)?)?;
        let has_owner = slot.len() == SLOT_LEN;
        let magic = if has_owner { SLOT_MAGIC } else { OWNERLESS_MAGIC };
        if !said.starts_with(magic) || checksum(said) != sum {
            return None;
        }
        let number = |at: usize| {
            let bytes = said.get(8 * at..)?.first_chunk::<8>()?;
            Some(u64::from_be_bytes(*bytes))
        };
        let mut note = Self {
            generation: number(1)?,
            next: number(2)?,
            bytes: number(3)?,
            lost: number(4)?,
            ..Self::default()
        };
        if has_owner {
            let key = *said.get(48..)?.first_chunk::<32>()?;
            note.key = Some(key).filter(|key| *key != [0; 32]);
            note.runs = RunHistory {
                last_from: number(5)?,
                last: *said.get(80..)?.first_chunk::<16>()?,
                before: *said.get(96..)?.first_chunk::<16>()?,
            };
            let length = usize::try_from(number(14)?).ok()?;
            note.tail = FileTail::new(said.get(120..152)?.get(..length)?);
            note.inode = number(19)?;
        }
        (note.next <= MAX_NUMBER).then_some(note)
    }
}

fn checksum(bytes: &[u8]) -> [u8; 8] {
    let mut sum = [0; 8];
    blake3::Hasher::new().update(bytes).finalize_xof().fill(&mut sum);
    sum
}

#[cfg(test)]
mod tests {
    use super::*;

    fn write(file: &mut Vec<u8>, note: Checkpoint) {
        let (slot, at) = note.to_slot();
        file.resize(file.len().max(at as usize + SLOT_LEN), 0);
        file[at as usize..at as usize + SLOT_LEN].copy_from_slice(&slot);
    }

    #[test]
    fn the_newest_whole_note_counts() {
        let mut file = Vec::new();
        assert_eq!(Checkpoint::read(&file), Some(Checkpoint::default()));
        let note = |generation| Checkpoint {
            generation,
            next: 10 * generation,
            bytes: 7,
            lost: 1,
            key: Some([9; 32]),
            runs: RunHistory { last: [3; 16], last_from: 4, before: [5; 16] },
            tail: FileTail::new(b"end\n"),
            inode: 77,
        };
        for generation in 1..5 {
            write(&mut file, note(generation));
            assert_eq!((Checkpoint::read(&file), file.len()), (Some(note(generation)), 2 * SLOT_LEN));
        }
        // The sink was killed while it wrote the next.
        write(&mut file, note(5));
        file[SLOT_LEN + 20] ^= 1;
        assert_eq!(Checkpoint::read(&file), Some(note(4)));
        file[20] ^= 1;
        assert_eq!(Checkpoint::read(&file), None);
        assert_eq!(Checkpoint::read(b"text"), None);
    }

    #[test]
    fn a_note_without_owner_is_read_and_replaced() {
        // A note of bywnote1: generation 3, next 10, 70 bytes, 1 lost.
        let mut old = [&OWNERLESS_MAGIC[..], &[3u64, 10, 70, 1].map(u64::to_be_bytes).concat()].concat();
        let sum = checksum(&old);
        old.extend(sum);
        let mut file = [vec![0; OWNERLESS_SLOT_LEN], old].concat();
        let note = Checkpoint { generation: 3, next: 10, bytes: 70, lost: 1, ..Checkpoint::default() };
        assert_eq!(Checkpoint::read(&file), Some(note));
        let owned = Checkpoint { generation: 4, key: Some([9; 32]), ..note };
        write(&mut file, owned);
        assert_eq!(Checkpoint::read(&file), Some(owned));
    }

    #[test]
    fn a_note_with_a_number_that_no_record_can_have_is_damaged() {
        let mut file = Vec::new();
        write(&mut file, Checkpoint { next: MAX_NUMBER, ..Checkpoint::default() });
        assert!(Checkpoint::read(&file).is_some());
        write(&mut file, Checkpoint { next: MAX_NUMBER + 1, ..Checkpoint::default() });
        assert_eq!(Checkpoint::read(&file), None);
    }

    #[test]
    fn the_last_two_runs_are_known() {
        let (one, two) = ([1; 16], [2; 16]);
        let runs = RunHistory::default().written_by(one, 0).written_by(one, 5).written_by(two, 7);
        assert_eq!(runs, RunHistory { last: two, last_from: 7, before: one });
    }

    #[test]
    fn a_tail_is_what_a_file_ends_with() {
        let mut file = tempfile::tempfile().unwrap();
        let (mut tail, mut all) = (FileTail::default(), Vec::new());
        assert!(tail.ends(&file, 0) && tail.last().is_none());
        for length in [0_u8, 5, 31, 1, 90, 0, 32, 3] {
            let bytes: Vec<u8> = (0..length).map(|byte| byte ^ length).collect();
            std::io::Write::write_all(&mut file, &bytes).unwrap();
            all.extend(&bytes);
            tail = tail.followed_by(&bytes);
            assert!(tail.ends(&file, all.len() as u64) && tail.last() == all.last().copied(), "{length}");
            assert_eq!(tail.length, all.len().min(TAIL_LEN));
        }
        assert!(!tail.ends(&file, 3) && !tail.ends(&file, 100) && !tail.ends(&file, 1_000));
    }
}
