//! The receiver's answers about files of the sender: the file is here, it is wanted, or its chunks
//! are compared.

use crate::receiver_report::{ObjectRange, Report};
use byway_wire::ObjectId;

/// The relation of a sender's file to the entry of its name here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum FileStanding {
    /// The file is here, with the same size and time.
    Same,
    /// One that was modified later is here.
    Newer,
    /// The whole file is to be sent.
    Wanted,
    /// The file's chunks here, if any, are offered to the sender.
    Chunks,
}

/// Answers about consecutive objects become one report.
#[derive(Debug, Default)]
pub(super) struct Answers {
    run: Option<(Answer, ObjectRange)>,
}

/// An answer that many objects may have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Answer {
    /// The file is here.
    Same,
    /// The file is to be sent whole.
    Wanted,
}

impl Answers {
    /// Adds an answer for the next object.
    pub(super) fn give(&mut self, answer: Answer, object: ObjectId, out: &mut Vec<u8>) {
        if let Some((kind, objects)) = &mut self.run
            && *kind == answer
            && objects.extend(object)
        {
            return;
        }
        self.flush(out);
        self.run = Some((answer, ObjectRange::one(object)));
    }

    /// Writes the answers so far.
    pub(super) fn flush(&mut self, out: &mut Vec<u8>) {
        match self.run.take() {
            Some((Answer::Same, objects)) => Report::Same(objects).encode(out),
            Some((Answer::Wanted, objects)) => Report::Wanted(objects).encode(out),
            None => {}
        }
    }
}
