//! Which packet numbers of a path were opened already.

/// Number of packet numbers below the highest that are distinguished. Older ones count as seen.
pub const REPLAY_WINDOW: u64 = 4096;

const WINDOW_WORDS: usize = (REPLAY_WINDOW / 64) as usize;

/// A sliding window over the packet numbers of one path (RFC 4303 section 3.4.3). The window moves
/// only when a packet was opened, so forged packets cannot push genuine numbers out of the window.
#[derive(Clone)]
pub struct ReplayWindow {
    /// The bit of number n is bit n modulo 4096: set if n was accepted.
    bits: [u64; WINDOW_WORDS],
    highest: Option<u64>,
}

impl ReplayWindow {
    /// A window without any accepted number.
    #[must_use]
    pub const fn new() -> Self {
        Self { bits: [0; WINDOW_WORDS], highest: None }
    }

    /// The highest accepted number. `None`: none was accepted.
    #[must_use]
    pub const fn highest(&self) -> Option<u64> {
        self.highest
    }

    /// Whether a packet with this number may be opened: not accepted before, and not older than the
    /// window.
    #[inline]
    #[must_use]
    pub fn check(&self, number: u64) -> bool {
        match self.highest {
            None => true,
            Some(highest) if number > highest => true,
            Some(highest) if highest - number >= REPLAY_WINDOW => false,
            Some(_) => self.word(number) & mask(number) == 0,
        }
    }

    /// Remembers the number of a packet that was opened. Constant time for neighbours; a leap
    /// clears at most the whole window, 64 words.
    #[inline]
    pub fn accept(&mut self, number: u64) {
        let highest = *self.highest.get_or_insert(number);
        if number > highest {
            self.clear(highest, number);
            self.highest = Some(number);
        } else if highest - number >= REPLAY_WINDOW {
            return;
        }
        if let Some(word) = self.bits.get_mut(word_of(number)) {
            *word |= mask(number);
        }
    }

    /// Clears the bits of the numbers after `highest` up to `number`: they stood for numbers that
    /// leave the window.
    fn clear(&mut self, highest: u64, number: u64) {
        if number - highest >= REPLAY_WINDOW {
            self.bits = [0; WINDOW_WORDS];
            return;
        }
        let mut next = highest + 1;
        while next <= number {
            // The rest of this word, or less if `number` lies in it.
            let count = (64 - next % 64).min(number - next + 1);
            let ones = if count == 64 { u64::MAX } else { (1 << count) - 1 };
            if let Some(word) = self.bits.get_mut(word_of(next)) {
                *word &= !(ones << (next % 64));
            }
            match next.checked_add(count) {
                Some(after) => next = after,
                None => return,
            }
        }
    }

    fn word(&self, number: u64) -> u64 {
        self.bits.get(word_of(number)).copied().unwrap_or_default()
    }
}

impl Default for ReplayWindow {
    fn default() -> Self {
        Self::new()
    }
}

impl core::fmt::Debug for ReplayWindow {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("ReplayWindow").field("highest", &self.highest).finish_non_exhaustive()
    }
}

const fn word_of(number: u64) -> usize {
    ((number / 64) % WINDOW_WORDS as u64) as usize
}

const fn mask(number: u64) -> u64 {
    1 << (number % 64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::collections::BTreeSet;
    use proptest::prelude::*;

    /// The specification: everything accepted, for ever.
    #[derive(Default)]
    struct Model(BTreeSet<u64>);

    impl Model {
        fn check(&self, number: u64) -> bool {
            !self.0.contains(&number)
                && self.0.last().is_none_or(|&highest| highest < number || highest - number < REPLAY_WINDOW)
        }
    }

    #[derive(Clone, Copy, Debug)]
    enum Move {
        Ahead(u64),
        Behind(u64),
    }

    fn moves() -> impl Strategy<Value = Move> {
        prop_oneof![
            8 => (0..4u64).prop_map(Move::Ahead),
            4 => (0..200u64).prop_map(Move::Behind),
            2 => (4000..4200u64).prop_map(Move::Behind),
            2 => (0..200u64).prop_map(Move::Ahead),
            1 => (4000..4200u64).prop_map(Move::Ahead),
            1 => (0..(1u64 << 40)).prop_map(Move::Ahead),
        ]
    }

    proptest! {
        #[test]
        fn agrees_with_a_set(start in prop_oneof![0..100u64, u64::MAX - 100_000..u64::MAX],
                             moves in prop::collection::vec(moves(), 1..400)) {
            let (mut window, mut model) = (ReplayWindow::new(), Model::default());
            let mut at = start;
            for step in moves {
                let number = match step {
                    Move::Ahead(by) => at.saturating_add(by),
                    Move::Behind(by) => at.saturating_sub(by),
                };
                prop_assert_eq!(window.check(number), model.check(number), "{}", number);
                if model.check(number) {
                    window.accept(number);
                    model.0.insert(number);
                    prop_assert!(!window.check(number));
                }
                at = at.max(number);
                prop_assert_eq!(window.highest(), model.0.last().copied());
            }
        }
    }

    #[test]
    fn a_leap_by_exactly_the_window_forgets_all_of_it() {
        let mut window = ReplayWindow::new();
        (0..REPLAY_WINDOW).for_each(|number| window.accept(number));
        window.accept(2 * REPLAY_WINDOW - 1);
        assert!((REPLAY_WINDOW..2 * REPLAY_WINDOW - 1).all(|number| window.check(number)));
        assert!((0..REPLAY_WINDOW).all(|number| !window.check(number)));
    }

    #[test]
    fn a_number_older_than_the_window_changes_nothing() {
        let mut window = ReplayWindow::new();
        window.accept(10 * REPLAY_WINDOW);
        window.accept(9 * REPLAY_WINDOW); // shares its bit with the highest
        window.accept(9 * REPLAY_WINDOW - 7);
        assert!(window.check(10 * REPLAY_WINDOW - 7));
    }
}
