//! Words that the operator gave under names, each with a grant id of its own. The relay knows which
//! of them hold, and counts what each carried.

use alloc::vec::Vec;
use byway_wire::relay::{Grant, Scope};

/// A named relay word of the operator.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NamedWord {
    /// The id of the relay word's grant.
    pub grant: u32,
    /// Whether the relay word was revoked.
    pub is_revoked: bool,
    /// Bytes that the relay carried for the relay word, in both directions.
    pub carried: u64,
}

/// The operator's named relay words, in the order of their ids.
#[derive(Debug, Default)]
pub(crate) struct NamedWords(Vec<NamedWord>);

impl NamedWords {
    /// Replaces the relay words. A word that was among them before keeps its count if that is
    /// larger.
    pub(crate) fn replace(&mut self, words: impl IntoIterator<Item = NamedWord>) {
        let mut new: Vec<NamedWord> = words.into_iter().collect();
        new.sort_unstable_by_key(|word| word.grant);
        for word in &mut new {
            let known = self.find(word.grant).and_then(|at| self.0.get(at));
            word.carried = word.carried.max(known.map_or(0, |known| known.carried));
        }
        self.0 = new;
    }

    pub(crate) fn as_slice(&self) -> &[NamedWord] {
        &self.0
    }

    /// Whether a relay word of this grant is valid: it has no name, or its name was not revoked.
    pub(crate) fn holds(&self, grant: &Grant) -> bool {
        !grant.terms.scope.contains(Scope::NAMED)
            || self.find(grant.id).and_then(|at| self.0.get(at)).is_some_and(|word| !word.is_revoked)
    }

    /// Counts the forwarded bytes, if the grant has a name.
    pub(crate) fn count(&mut self, grant: &Grant, bytes: u64) {
        if grant.terms.scope.contains(Scope::NAMED)
            && let Some(word) = self.find(grant.id).and_then(|at| self.0.get_mut(at))
        {
            word.carried = word.carried.saturating_add(bytes);
        }
    }

    fn find(&self, grant: u32) -> Option<usize> {
        self.0.binary_search_by_key(&grant, |word| word.grant).ok()
    }
}
