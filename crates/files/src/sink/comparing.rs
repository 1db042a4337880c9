//! Compares files of the sender with those that are here.

use super::Sink;
use super::answers::{Answer, FileStanding};
use crate::contained_dir::{is_newer_file, is_regular, mtime};
use crate::manifest::{ComparePlan, Metadata};
use crate::receiver_report::{Reason, Report};
use byway_wire::ObjectId;
use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;

impl Sink {
    /// Notes a directory that is to be made and does not exist yet. One below another that this
    /// transfer made says nothing new.
    pub(super) fn note_fresh(&mut self, path: &[u8]) {
        if self.plan.is_some() && !self.is_fresh(path) && matches!(self.tree.stat(path), Err(Errno::NOENT)) {
            self.fresh = path.to_vec();
        }
    }

    /// Whether a path lies below a directory that this transfer made.
    pub(super) fn is_fresh(&self, path: &[u8]) -> bool {
        let rest = path.strip_prefix(self.fresh.as_slice());
        !self.fresh.is_empty() && rest.is_some_and(|rest| rest.first() == Some(&b'/'))
    }

    /// Keeps a file that is newer than the sender's, and says so by `report`.
    pub(super) fn keep_newer(&mut self, report: impl FnOnce(String) -> Report, path: &[u8]) {
        report(String::new()).encode(&mut self.out);
        if !self.plan.is_some_and(|plan| plan.expects_newer) {
            self.note(path.to_vec(), Reason::Newer, String::new());
        }
    }

    /// Keeps a file that is newer than the sender's link of the same name.
    pub(super) fn keep_newer_link(&mut self, path: Vec<u8>) {
        let refused = |detail| Report::Refused { path: path.clone(), reason: Reason::Newer, detail };
        self.keep_newer(refused, &path);
    }

    /// Notes a file here that the sender has, and that may have other names.
    pub(super) fn note_shared(&mut self, stat: &rustix::fs::Stat) {
        if let Some(mirror) = self.mirror.as_mut().filter(|_| stat.st_nlink > 1) {
            mirror.note_shared(stat);
        }
    }

    /// Whether a newer file here is kept.
    pub(super) fn keeps_newer(&self) -> bool {
        self.plan.is_some_and(|plan| !plan.replaces_newer)
    }

    /// Compares a file of the sender with the entry of its name here.
    pub(super) fn compare(&mut self, path: &[u8], size: u64, metadata: &Metadata) -> FileStanding {
        let Some(ComparePlan { resumes, contents, replaces_newer, .. }) = self.plan else {
            return FileStanding::Wanted;
        };
        let resumed = if resumes && size > 0 { FileStanding::Chunks } else { FileStanding::Wanted };
        if self.is_fresh(path) {
            return resumed;
        }
        let Some(stat) = self.tree.stat(path).ok().filter(is_regular) else { return resumed };
        self.note_shared(&stat);
        let has_size = u64::try_from(stat.st_size) == Ok(size);
        if is_newer_file(&stat, metadata.mtime) && !replaces_newer {
            return FileStanding::Newer;
        }
        if has_size && size > 0 && contents {
            return FileStanding::Chunks;
        }
        if has_size && mtime(&stat) == metadata.mtime {
            let mode = Mode::from_raw_mode(metadata.mode.into());
            if stat.st_nlink > 1 && Mode::from_raw_mode(stat.st_mode) != mode {
                // The mode would be that of its other names, too.
                return FileStanding::Wanted;
            }
            return match self.correct_mode(path, &stat, metadata) {
                Ok(()) => FileStanding::Same,
                // It is replaced by a file with the right mode.
                Err(_) => FileStanding::Wanted,
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

    /// Notes that a file is already here, so that no data of it are sent.
    pub(super) fn same(&mut self, object: ObjectId, size: u64) {
        self.answers.give(Answer::Same, object, &mut self.out);
        self.summary.files += 1;
        self.summary.unchanged += 1;
        for bytes in [&mut self.summary.bytes, &mut self.summary.kept, &mut self.summary.skipped] {
            *bytes = bytes.saturating_add(size);
        }
    }
}
