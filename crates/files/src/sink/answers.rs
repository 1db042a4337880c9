//! What is said of each file of the sender: it is here, it is wanted, or its chunks are compared.

use super::Sink;
use crate::contained_dir::mtime;
use crate::manifest::{ComparePlan, Metadata};
use crate::receiver_report::{ObjectRange, Report};
use byway_wire::ObjectId;
use rustix::fs::{FileType, Mode, OFlags};

/// What a file of the sender is at the receiver.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Comparison {
    /// It is here, with the same size and time.
    Same,
    /// One that was modified later is here.
    Newer,
    /// It is to be sent whole.
    Wanted,
    /// Its chunks here, if there are any, are offered to the sender.
    Chunks,
}

/// Answers about consecutive objects become one report.
#[derive(Debug, Default)]
pub(super) struct Answers {
    run: Option<(Answer, ObjectRange)>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Answer {
    Same,
    Wanted,
}

impl Answers {
    pub(super) fn wanted(&mut self, object: ObjectId, out: &mut Vec<u8>) {
        self.give(Answer::Wanted, object, out);
    }

    fn give(&mut self, answer: Answer, object: ObjectId, out: &mut Vec<u8>) {
        if let Some((kind, objects)) = &mut self.run
            && *kind == answer
            && objects.extend(object)
        {
            return;
        }
        self.flush(out);
        self.run = Some((answer, ObjectRange::one(object)));
    }

    /// Writes what was said.
    pub(super) fn flush(&mut self, out: &mut Vec<u8>) {
        match self.run.take() {
            Some((Answer::Same, objects)) => Report::Same(objects).encode(out),
            Some((Answer::Wanted, objects)) => Report::Wanted(objects).encode(out),
            None => {}
        }
    }
}

impl Sink {
    /// Compares a file of the sender with what has its name here.
    pub(super) fn compare(&mut self, path: &[u8], size: u64, metadata: &Metadata) -> Comparison {
        let Some(ComparePlan { resumes, contents, replaces_newer }) = self.plan else {
            return Comparison::Wanted;
        };
        let resumed = if resumes && size > 0 { Comparison::Chunks } else { Comparison::Wanted };
        let is_regular =
            |stat: &rustix::fs::Stat| FileType::from_raw_mode(stat.st_mode) == FileType::RegularFile;
        let Some(stat) = self.tree.stat(path).ok().filter(is_regular) else { return resumed };
        let has_size = u64::try_from(stat.st_size) == Ok(size);
        if mtime(&stat) > metadata.mtime && !replaces_newer {
            return Comparison::Newer;
        }
        if has_size && size > 0 && contents {
            return Comparison::Chunks;
        }
        if has_size && mtime(&stat) == metadata.mtime {
            return match self.correct_mode(path, &stat, metadata) {
                Ok(()) => Comparison::Same,
                // It is replaced by a file with the right mode.
                Err(_) => Comparison::Wanted,
            };
        }
        resumed
    }

    /// Gives a file here the mode of the sender's.
    pub(super) fn correct_mode(
        &mut self,
        path: &[u8],
        stat: &rustix::fs::Stat,
        metadata: &Metadata,
    ) -> rustix::io::Result<()> {
        let mode = Mode::from_raw_mode(metadata.mode.into());
        if Mode::from_raw_mode(stat.st_mode) == mode {
            return Ok(());
        }
        let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY;
        rustix::fs::fchmod(self.tree.open(path, flags)?, mode)
    }

    /// A file is here already, and nothing of it travels.
    pub(super) fn same(&mut self, object: ObjectId, size: u64) {
        self.answers.give(Answer::Same, object, &mut self.out);
        self.summary.files += 1;
        self.summary.unchanged += 1;
        for bytes in [&mut self.summary.bytes, &mut self.summary.kept, &mut self.summary.skipped] {
            *bytes = bytes.saturating_add(size);
        }
    }
}
