//! From bytes to a tree: judging contents, moving into place, and what waits until every file is
//! there.

use super::contents::{Contents, Incoming};
use super::deferred_work::PendingSymlink;
use super::{Finish, Sink, SinkState};
use crate::contained_dir::{is_newer_file, mtime, times};
use crate::error::SinkError;
use crate::manifest::Metadata;
use crate::name::{check_name, split};
use crate::receiver_report::{Reason, Report};
use byway_wire::ObjectId;
use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;
use std::io;

/// The cost of a rename, link or directory, in bytes of the budget of [`Sink::work`].
const ENTRY_COST: u64 = 16 * 1_024;
/// Reports that may wait to be taken before [`Sink::work`] rests, in bytes.
const MAX_QUEUED_REPORT_BYTES: usize = 1 << 20;

impl Sink {
    /// Hashes the data of an earlier attempt; at the end makes links and sets directories'
    /// metadata. Reads about `budget` bytes. Returns whether more work can be done now.
    ///
    /// # Errors
    /// The disk is full or cannot be used any more.
    pub fn work(&mut self, budget: u64) -> Result<bool, SinkError> {
        let mut left = budget.max(1);
        while left > 0 {
            if self.out.len() > MAX_QUEUED_REPORT_BYTES
                || matches!(self.state, SinkState::Broken | SinkState::Complete)
            {
                return Ok(false);
            }
            let spent = if self.is_recalling() {
                self.recall(left)?
            } else if self.state == SinkState::Ended && self.objects.is_empty() && self.orphans.is_empty() {
                self.settle_one()?;
                ENTRY_COST
            } else {
                return Ok(false);
            };
            left = left.saturating_sub(spent);
        }
        Ok(!matches!(self.state, SinkState::Complete))
    }

    /// Makes a directory that only its owner can access, and stores its final metadata for the end.
    pub(super) fn make_directory(&mut self, path: &[u8], metadata: Metadata) -> Result<(), SinkError> {
        if let Err(error) = check_name(path) {
            self.refuse(path.to_vec(), Reason::Name, error.to_string());
            return Ok(());
        }
        self.clear_for_directory(path);
        self.note_fresh(path);
        match self.tree.make_directory(path).map(drop) {
            Ok(()) => {
                self.enter_mirrored(path);
                self.deferred_work.directory(path, metadata, self.options.memory)
            }
            Err(errno) => self.refuse_io(path.to_vec(), errno.into()),
        }
    }

    pub(super) fn refuse_io(&mut self, path: Vec<u8>, error: io::Error) -> Result<(), SinkError> {
        let (reason, detail) = self.judge(error)?;
        self.refuse(path, reason, detail);
        Ok(())
    }

    /// Verifies a complete file whose hash is known. Moves it to its final place, or marks it as
    /// failed.
    pub(super) fn conclude(&mut self, object: ObjectId) -> Result<Finish, SinkError> {
        let Some(incoming) = self.objects.get_mut(object) else { return Ok(Finish::Settled) };
        let failed = self.summary.failed;
        if incoming.hash.is_none() || incoming.hashes.root() != incoming.hash {
            self.fail(object, Reason::Integrity, String::new());
        } else if matches!(incoming.contents, Contents::Placed) {
            self.put_right(object)?;
        } else {
            let created = incoming.create(object, &mut self.partials);
            let durable = self.options.durable;
            match created.and_then(|()| incoming.dress(object, &mut self.partials, durable)) {
                Ok(()) => self.put_in_place(object)?,
                Err(errno) => self.fail_io(object, errno.into())?,
            }
        }
        let verified = self.summary.failed == failed;
        Ok(if verified { Finish::Verified } else { Finish::Failed(self.last_failure) })
    }

    fn put_in_place(&mut self, object: ObjectId) -> Result<(), SinkError> {
        let placed = match self.place(object) {
            // The directory held open was removed by somebody: look again.
            Err(Errno::NOENT) => {
                self.tree.forget();
                self.place(object)
            }
            Err(Errno::ISDIR) => {
                let path = self.objects.get(object).map(|incoming| incoming.path.clone());
                let is_free = path.is_some_and(|path| self.clear_for_file(&path));
                if is_free { self.place(object) } else { Err(Errno::ISDIR) }
            }
            placed => placed,
        };
        match placed {
            Ok(()) => self.verified(object),
            Err(errno) => return self.fail_io(object, errno.into()),
        }
        Ok(())
    }

    /// Moves a complete file to its final name.
    fn place(&mut self, object: ObjectId) -> rustix::io::Result<()> {
        let Some(Incoming { path, key, hashes, .. }) = self.objects.get(object) else {
            return Err(Errno::NOENT);
        };
        let (directory, leaf) = split(path);
        let directory = self.tree.make_parents(directory)?;
        self.partials.place(object, (*key, &hashes.layout), directory, leaf)
    }

    /// A file that was in place before has the right contents. Its mode and time may have changed.
    fn put_right(&mut self, object: ObjectId) -> Result<(), SinkError> {
        let Some(Incoming { path, metadata, .. }) = self.objects.get(object) else {
            return Ok(());
        };
        let (path, metadata) = (path.clone(), *metadata);
        let right = self.tree.stat(&path).and_then(|stat| {
            self.correct_mode(&path, &stat, &metadata)?;
            if mtime(&stat) == metadata.mtime {
                return Ok(());
            }
            let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY;
            rustix::fs::futimens(self.tree.open(&path, flags)?, &times(metadata.mtime))
        });
        match right {
            Ok(()) => self.verified(object),
            Err(errno) => return self.fail_io(object, errno.into()),
        }
        Ok(())
    }

    fn verified(&mut self, object: ObjectId) {
        let Some(incoming) = self.objects.remove(object) else { return };
        let layout = incoming.hashes.layout;
        let size = layout.size;
        self.keys.remove(&incoming.key);
        self.holes_held -= incoming.hashes.holes.count();
        self.summary.files += 1;
        self.summary.bytes = self.summary.bytes.saturating_add(size);
        self.summary.kept = self.summary.kept.saturating_add(incoming.kept);
        Report::Verified { object }.encode(&mut self.out);
    }

    fn place_link(&mut self, link: &PendingSymlink) -> rustix::io::Result<()> {
        let (directory, leaf) = split(&link.path);
        let directory = self.tree.make_parents(directory)?;
        self.partials.place_link(&link.target, link.mtime, directory, leaf)
    }

    /// Makes one link of either kind, deletes one entry, or handles one directory, or else the end.
    fn settle_one(&mut self) -> Result<(), SinkError> {
        if let Some(link) = self.deferred_work.next_hard_link() {
            return self.make_hard_link(link);
        }
        if self.delete_next() {
            return Ok(());
        }
        if let Some(link) = self.deferred_work.next_link() {
            let there = self.tree.stat(&link.path);
            if self.keeps_newer() && there.is_ok_and(|there| is_newer_file(&there, link.mtime)) {
                self.keep_newer_link(link.path);
                return Ok(());
            }
            let placed = match self.place_link(&link) {
                Err(Errno::ISDIR) if self.clear_for_file(&link.path) => self.place_link(&link),
                placed => placed,
            };
            return match placed {
                Ok(()) => Ok(()),
                Err(errno) => self.refuse_io(link.path, errno.into()),
            };
        }
        if let Some(directory) = self.deferred_work.next_directory() {
            let flags = OFlags::RDONLY | OFlags::DIRECTORY;
            let settled = self.tree.open(&directory.path, flags).and_then(|opened| {
                // The time last: a change of mode leaves it alone, but not the other way round on
                // every file system.
                rustix::fs::fchmod(&opened, Mode::from_raw_mode(directory.metadata.mode.into()))?;
                rustix::fs::futimens(&opened, &times(directory.metadata.mtime))
            });
            return match settled {
                Ok(()) => Ok(()),
                Err(errno) => self.refuse_io(directory.path, errno.into()),
            };
        }
        if self.options.sync {
            self.partials.sync().map_err(|errno| SinkError::from_io(&self.path, errno.into()))?;
        }
        // Leftovers that cannot be removed harm nobody: the tree is complete.
        let _ = self.partials.clean();
        self.report_trash();
        let summary = self.summary;
        Report::Done { files: summary.files, bytes: summary.bytes, failed: summary.failed }
            .encode(&mut self.out);
        self.state = SinkState::Complete;
        Ok(())
    }
}
