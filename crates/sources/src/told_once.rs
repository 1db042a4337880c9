//! Warnings that are given once, though their cause comes again and again.

use std::collections::BTreeMap;

/// Subjects whose last warning is known. Of more, warnings are given each time.
const MAX_SUBJECTS: usize = 1024;

/// The last warning about each subject.
#[derive(Debug, Default)]
pub struct ToldOnce(BTreeMap<String, String>);

impl ToldOnce {
    /// Whether `warning` differs from the last warning about `subject`.
    pub fn is_news(&mut self, subject: &str, warning: &str) -> bool {
        if self.0.get(subject).is_some_and(|told| told == warning) {
            return false;
        }
        if self.0.len() >= MAX_SUBJECTS && !self.0.contains_key(subject) {
            self.0.pop_first();
        }
        self.0.insert(subject.to_owned(), warning.to_owned());
        true
    }

    /// The cause is over: the same warning would be news.
    pub fn is_over(&mut self, subject: &str) {
        self.0.remove(subject);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_warning_is_news_once_and_again_after_its_cause_was_over() {
        let mut told = ToldOnce::default();
        assert!(told.is_news("a", "full") && !told.is_news("a", "full"));
        assert!(told.is_news("b", "full") && told.is_news("a", "gone") && !told.is_news("a", "gone"));
        told.is_over("a");
        assert!(told.is_news("a", "gone") && !told.is_news("b", "full"));
        (0..5_000).for_each(|subject| assert!(told.is_news(&format!("{subject}"), "full")));
        assert!(told.0.len() <= MAX_SUBJECTS);
    }
}
