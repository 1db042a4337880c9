//! Warnings about single entries of a tree: a person gets to read the first ones, and that there
//! are more.

use crate::event_loop::news_channel::NewsSender;
use crate::events::TransferEvent;

/// The most warnings of one transfer that the user sees.
const MAX_WARNINGS: u64 = 100;

/// The warnings of one transfer, and how many were given.
pub(crate) struct Warnings {
    news: NewsSender<TransferEvent>,
    given: u64,
}

impl Warnings {
    pub const fn new(news: NewsSender<TransferEvent>) -> Self {
        Self { news, given: 0 }
    }

    /// Gives another warning. Its text is made only if the user will see it.
    pub fn give(&mut self, text: impl FnOnce() -> String) {
        self.given += 1;
        let text = match self.given {
            ..=MAX_WARNINGS => text(),
            given if given == MAX_WARNINGS + 1 => "there are more such entries".into(),
            _ => return,
        };
        // Nobody reads: nobody needs to know.
        let _ = self.news.try_send(TransferEvent::Warning(text));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event_loop::news_channel::news_channel;

    #[test]
    fn a_person_reads_so_many_and_that_there_are_more() {
        let (news, read) = news_channel(1_000);
        let mut warnings = Warnings::new(news);
        (0..MAX_WARNINGS + 5).for_each(|number| warnings.give(|| number.to_string()));
        drop(warnings);
        let read: Vec<TransferEvent> = read.try_iter().collect();
        assert_eq!(read.len() as u64, MAX_WARNINGS + 1);
        assert!(
            matches!(read.last(), Some(TransferEvent::Warning(text)) if text == "there are more such entries")
        );
    }
}
