//! Which of the host's sockets are full.

use alloc::vec::Vec;
use byway_wire::Local;

/// A set of sockets that counts its changes, so that a copy can tell whether it is up to date.
#[derive(Clone, Debug, Default)]
pub(crate) struct FullSockets {
    bits: Vec<u64>,
    count: usize,
    changes: u64,
}

impl FullSockets {
    /// Returns the place of a socket's bit. Sockets, counted from 0, and TCP connections, from
    /// 32768, alternate, so that a few of each share a machine word.
    const fn place(local: Local) -> (usize, u64) {
        let place = local.0.rotate_left(1);
        ((place / 64) as usize, 1 << (place % 64))
    }

    /// Whether a socket is full.
    #[inline]
    pub fn has(&self, local: Local) -> bool {
        let (word, bit) = Self::place(local);
        self.bits.get(word).is_some_and(|word| word & bit != 0)
    }

    /// A socket is full, or has room.
    pub fn set(&mut self, local: Local, full: bool) {
        let (word, bit) = Self::place(local);
        if full && word >= self.bits.len() {
            self.bits.resize(word + 1, 0);
        }
        if let Some(word) = self.bits.get_mut(word) {
            let before = word.count_ones() as usize;
            *word = if full { *word | bit } else { *word & !bit };
            self.count = self.count + word.count_ones() as usize - before;
        }
        debug_assert_eq!(
            self.count,
            self.bits.iter().map(|word| word.count_ones() as usize).sum::<usize>(),
            "full sockets are counted"
        );
        self.changes += 1;
    }

    /// Whether any socket is full.
    #[inline]
    pub const fn any(&self) -> bool {
        self.count > 0
    }

    /// Copies the contents of `other` without allocation.
    pub fn follow(&mut self, other: &Self) {
        self.bits.clone_from(&other.bits);
        (self.count, self.changes) = (other.count, other.changes);
    }

    /// Whether `copy` is still equal to this.
    #[inline]
    pub const fn is_as(&self, copy: &Self) -> bool {
        self.changes == copy.changes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_socket_is_full_until_it_has_room() {
        let mut full = FullSockets::default();
        let copy = full.clone();
        full.set(Local(65_535), false);
        assert!(full.bits.is_empty());
        for local in [0, 63, 64, 32_768, 65_534] {
            assert!(!full.has(Local(local)));
            full.set(Local(local), true);
            assert!(full.has(Local(local)) && !full.has(Local(local ^ 1)));
        }
        full.set(Local(64), false);
        assert!(
            !full.has(Local(64)) && full.has(Local(63)) && !full.is_as(&copy) && full.is_as(&full.clone())
        );
    }
}
