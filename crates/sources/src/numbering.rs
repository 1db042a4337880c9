//! How the numbers of a source's records follow those that the sink has written.
//!
//! A source counts its records from the number that the sink wants when they first meet. In a later
//! session the sink may have records of another run under the same name: the run had the source's
//! key, and the source was away. These are not the source's own. Its records follow them.

use crate::checkpoint::RunHistory;
use crate::error::SourceError;
use crate::record_buffer::RecordBuffer;

/// The source's knowledge of the numbers that the sink has written.
#[derive(Debug)]
pub struct Numbering {
    /// The identity of this run.
    run: [u8; 16],
    /// Whether the input begins with the first record that the sink ever got.
    replay: bool,
    /// Whether the sink has said which record it wants, so that records have numbers.
    is_numbered: bool,
    /// The number after the last record that the sink is known to have written.
    written: u64,
    /// Records of the input that the sink has already and that have yet to come.
    pass_over: u64,
}

/// How a session begins.
#[derive(Debug, PartialEq, Eq)]
pub struct SessionStart {
    /// The number of the first record that is sent.
    pub first: u64,
    /// Records that another run wrote since this source was last connected.
    pub foreign: u64,
}

impl Numbering {
    /// Numbering before the first session. `replay`: the input begins with the first record that
    /// the sink ever got.
    pub const fn new(run: [u8; 16], replay: bool) -> Self {
        Self { run, replay, is_numbered: false, written: 0, pass_over: 0 }
    }

    /// The identity of this run.
    pub const fn run(&self) -> [u8; 16] {
        self.run
    }

    /// The number after the last record that the sink is known to have written.
    pub const fn written(&self) -> u64 {
        self.written
    }

    /// Whether the sink has said which record it wants, so that records have numbers.
    pub const fn is_numbered(&self) -> bool {
        self.is_numbered
    }

    /// Records of the input that the sink has and that have yet to come.
    pub const fn missing(&self) -> u64 {
        self.pass_over
    }

    /// Whether the sink has the record that the input gives next.
    pub const fn passes_over(&mut self) -> bool {
        let has = self.pass_over > 0;
        self.pass_over = self.pass_over.saturating_sub(1);
        has
    }

    /// Handles the sink's wish for record `number`, where `runs` wrote the earlier ones. Numbers
    /// the records in `kept`, and drops those already written.
    pub fn welcome(
        &mut self,
        kept: &mut RecordBuffer,
        number: u64,
        runs: RunHistory,
    ) -> Result<SessionStart, SourceError> {
        let other_records =
            |kept: &RecordBuffer| SourceError::OtherRecords { sink: number, here: kept.end() };
        let mut foreign = 0;
        if !std::mem::replace(&mut self.is_numbered, true) {
            let numbered = match number.checked_sub(kept.end()).filter(|more| *more > 0 && self.replay) {
                // All that came so far is there, and so is more of what comes.
                Some(more) => {
                    self.pass_over = more;
                    kept.drop_until(kept.end());
                    kept.number_from(more)
                }
                None if self.replay => {
                    kept.drop_until(number);
                    true
                }
                None => kept.number_from(number),
            };
            if !numbered {
                return Err(other_records(kept));
            }
        } else {
            let own = self.own_end(number, runs);
            foreign = number.saturating_sub(own);
            if foreign > 0 {
                // The numbers of an input that is played again are those of the sink.
                if self.replay || !kept.on_written(own) || !kept.number_from(foreign) {
                    return Err(other_records(kept));
                }
            }
        }
        self.written = number;
        let first = kept.begin(number).ok_or_else(|| other_records(kept))?;
        Ok(SessionStart { first, foreign })
    }

    /// The number after the last record of this run, where the sink has all before `number`.
    fn own_end(&self, number: u64, runs: RunHistory) -> u64 {
        if runs.last == self.run {
            number
        } else if runs.before == self.run {
            self.written.max(runs.last_from)
        } else {
            // Of more runs in between the sink knows no end: what it was heard to write counts.
            self.written
        }
    }

    /// The sink has written all records before `number`.
    pub fn on_written(&mut self, kept: &mut RecordBuffer, number: u64) -> Result<(), SourceError> {
        self.written = self.written.max(number);
        if !kept.on_written(number) {
            return Err(SourceError::OtherRecords { sink: number, here: kept.end() });
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::MAX_NUMBER;
    use crate::record_buffer::NextMessage;
    use std::sync::Arc;

    const OWN: [u8; 16] = [1; 16];
    const OTHER: [u8; 16] = [2; 16];

    fn kept(records: u8) -> RecordBuffer {
        let mut kept = RecordBuffer::new(1_000);
        (0..records).for_each(|record| kept.push(Arc::from([record; 2]), 0));
        kept
    }

    fn said(kept: &mut RecordBuffer) -> Vec<u8> {
        let byte = |said| match said {
            NextMessage::Record(record) => record[0],
            NextMessage::Skipped(_) => u8::MAX,
        };
        std::iter::from_fn(|| kept.say()).map(byte).collect()
    }

    const fn runs(last: [u8; 16], last_from: u64, before: [u8; 16]) -> RunHistory {
        RunHistory { last, last_from, before }
    }

    /// Makes a source of four records, all sent, which the sink numbered from 100 on.
    fn connected() -> (Numbering, RecordBuffer) {
        let (mut numbering, mut kept) = (Numbering::new(OWN, false), kept(4));
        let start = numbering.welcome(&mut kept, 100, runs([9; 16], 0, [0; 16])).unwrap();
        assert_eq!((start, said(&mut kept)), (SessionStart { first: 100, foreign: 0 }, vec![0, 1, 2, 3]));
        (numbering, kept)
    }

    #[test]
    fn records_of_another_run_are_never_counted_as_its_own() {
        // Two of its own were written, and it heard of none. Then another run wrote three.
        let (mut numbering, mut kept) = connected();
        let history = runs(OTHER, 102, OWN);
        let start = numbering.welcome(&mut kept, 105, history).unwrap();
        assert_eq!((start, said(&mut kept)), (SessionStart { first: 105, foreign: 3 }, vec![2, 3]));
        // The session ended before one of these was written.
        let again = numbering.welcome(&mut kept, 105, history).unwrap();
        assert_eq!((again, said(&mut kept)), (SessionStart { first: 105, foreign: 0 }, vec![2, 3]));
        let own = numbering.welcome(&mut kept, 106, runs(OWN, 105, OTHER)).unwrap();
        assert_eq!((own, said(&mut kept)), (SessionStart { first: 106, foreign: 0 }, vec![3]));
    }

    #[test]
    fn after_two_other_runs_what_it_heard_of_counts() {
        let (mut numbering, mut kept) = connected();
        numbering.on_written(&mut kept, 101).unwrap();
        let start = numbering.welcome(&mut kept, 110, runs(OTHER, 108, [3; 16])).unwrap();
        assert_eq!((start, said(&mut kept)), (SessionStart { first: 110, foreign: 9 }, vec![1, 2, 3]));
    }

    #[test]
    fn a_session_that_wrote_nothing_is_followed_by_the_same_numbers() {
        let (mut numbering, mut kept) = connected();
        let start = numbering.welcome(&mut kept, 100, runs([9; 16], 0, [0; 16])).unwrap();
        assert_eq!((start, said(&mut kept).len()), (SessionStart { first: 100, foreign: 0 }, 4));
        // A sink that lost its disk is told where the records begin.
        numbering.on_written(&mut kept, 102).unwrap();
        let start = numbering.welcome(&mut kept, 0, RunHistory::default()).unwrap();
        assert_eq!(start, SessionStart { first: 102, foreign: 0 });
    }

    #[test]
    fn an_input_that_is_played_again_must_reach_what_the_sink_has() {
        let (mut numbering, mut kept) = (Numbering::new(OWN, true), kept(4));
        let start = numbering.welcome(&mut kept, 6, runs(OTHER, 0, [0; 16])).unwrap();
        assert_eq!((start.first, numbering.missing(), kept.is_empty()), (6, 2, true));
        assert!(numbering.passes_over() && numbering.passes_over() && !numbering.passes_over());
        let written_by_another = numbering.welcome(&mut kept, 8, runs([3; 16], 6, OTHER));
        assert!(matches!(written_by_another, Err(SourceError::OtherRecords { sink: 8, here: 6 })));
    }

    #[test]
    fn a_sink_cannot_move_numbers_where_no_record_can_be() {
        let (mut numbering, mut kept) = (Numbering::new(OWN, false), kept(4));
        assert!(numbering.welcome(&mut kept, MAX_NUMBER, RunHistory::default()).is_err());
        let (mut numbering, mut kept) = connected();
        assert!(numbering.welcome(&mut kept, MAX_NUMBER, runs(OTHER, 102, OWN)).is_err());
        let (mut numbering, mut kept) = connected();
        assert!(numbering.on_written(&mut kept, 105).is_err(), "it has what was never said");
        let (mut numbering, mut kept) = connected();
        assert!(numbering.welcome(&mut kept, 105, runs(OWN, 100, OTHER)).is_err());
    }

    /// Wrong runs in a sink's message never make a source drop records that the sink does not have.
    #[test]
    fn a_sink_that_names_wrong_runs_takes_no_record_away() {
        // Before the first session, and past all that was said.
        for (number, last_from) in [(110, 109), (105, 105), (MAX_NUMBER, MAX_NUMBER)] {
            let (mut numbering, mut kept) = connected();
            let start = numbering.welcome(&mut kept, number, runs(OTHER, last_from, OWN));
            assert!(matches!(start, Err(SourceError::OtherRecords { .. })), "{start:?}");
        }
        // Another run is said to have begun before what was written for sure.
        let (mut numbering, mut kept) = connected();
        numbering.on_written(&mut kept, 103).unwrap();
        let start = numbering.welcome(&mut kept, 104, runs(OTHER, 0, OWN)).unwrap();
        assert_eq!((start, said(&mut kept)), (SessionStart { first: 104, foreign: 1 }, vec![3]));
        // The run is said to have written last, and the number is below what was written.
        let start = numbering.welcome(&mut kept, 101, runs(OWN, 0, OTHER)).unwrap();
        assert_eq!((start, said(&mut kept)), (SessionStart { first: 104, foreign: 0 }, vec![3]));
    }
}
