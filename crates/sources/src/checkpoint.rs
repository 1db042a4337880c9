//! What a sink stores about a source: how many records the source's file holds, and how many bytes
//! these records take. If a crash leaves a longer file, the next start cuts the file to these
//! bytes.

/// Bytes of a slot.
pub const SLOT: usize = 48;
const MAGIC: &[u8; 8] = b"bywnote1";

/// What is noted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Checkpoint {
    /// Counts the notes of a source.
    pub generation: u64,
    /// The number of the record that is wanted next.
    pub next: u64,
    /// Bytes of the file that hold records.
    pub bytes: u64,
    /// Numbers that have no record.
    pub lost: u64,
}

impl Checkpoint {
    /// The slot's bytes, and where they go: over the older note.
    #[must_use]
    pub fn to_slot(self) -> ([u8; SLOT], u64) {
        let mut slot = [0; SLOT];
        let fields = [self.generation, self.next, self.bytes, self.lost].map(u64::to_be_bytes);
        let words = std::iter::once(*MAGIC).chain(fields);
        for (to, word) in slot.chunks_exact_mut(8).zip(words) {
            to.copy_from_slice(&word);
        }
        let sum = checksum(slot.get(..SLOT - 8).unwrap_or_default());
        if let Some(end) = slot.get_mut(SLOT - 8..) {
            end.copy_from_slice(&sum);
        }
        (slot, self.generation % 2 * SLOT as u64)
    }

    /// What a file of notes says. `None`: it is damaged. An empty one says that nothing was written
    /// yet.
    #[must_use]
    pub fn read(file: &[u8]) -> Option<Self> {
        if file.is_empty() {
            return Some(Self::default());
        }
        file.chunks_exact(SLOT).take(2).filter_map(Self::of_slot).max_by_key(|note| note.generation)
    }

    fn of_slot(slot: &[u8]) -> Option<Self> {
        let (said, sum) = slot.split_at_checked(SLOT - 8)?;
        if !said.starts_with(MAGIC) || checksum(said) != sum {
            return None;
        }
        let mut fields = said.chunks_exact(8).skip(1).map(|word| {
            let word: [u8; 8] = word.try_into().unwrap_or_default();
            u64::from_be_bytes(word)
        });
        Some(Self {
            generation: fields.next()?,
            next: fields.next()?,
            bytes: fields.next()?,
            lost: fields.next()?,
        })
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
        file.resize(file.len().max(at as usize + SLOT), 0);
        file[at as usize..at as usize + SLOT].copy_from_slice(&slot);
    }

    #[test]
    fn the_newest_whole_note_counts() {
        let mut file = Vec::new();
        assert_eq!(Checkpoint::read(&file), Some(Checkpoint::default()));
        let note = |generation| Checkpoint { generation, next: 10 * generation, bytes: 7, lost: 1 };
        for generation in 1..5 {
            write(&mut file, note(generation));
            assert_eq!((Checkpoint::read(&file), file.len()), (Some(note(generation)), 2 * SLOT));
        }
        // The sink was killed while it wrote the next.
        write(&mut file, note(5));
        file[SLOT + 20] ^= 1;
        assert_eq!(Checkpoint::read(&file), Some(note(4)));
        file[20] ^= 1;
        assert_eq!(Checkpoint::read(&file), None);
        assert_eq!(Checkpoint::read(b"text"), None);
    }
}
