//! Further names of files: hard links to what this transfer placed or found.

use super::Sink;
use super::deferred_work::PendingHardLink;
use crate::contained_dir::{is_newer_file, is_regular, mtime};
use crate::error::SinkError;
use crate::name::split;
use crate::receiver_report::Reason;
use rustix::fs::Stat;
use rustix::io::Errno;

impl Sink {
    /// Gives a file one more name. It must have the announced size and time, since the right file
    /// may have failed to arrive.
    pub(super) fn make_hard_link(&mut self, link: PendingHardLink) -> Result<(), SinkError> {
        let first = self.tree.stat(&link.first).ok();
        let is_newer = |first: &Stat| self.keeps_newer() && is_newer_file(first, link.mtime);
        if let Some(first) = first.filter(is_newer) {
            return self.link_to_newer(&link, &first);
        }
        let Some(first) = first.filter(|stat| has_announced(stat, &link)) else {
            self.refuse(link.path, Reason::Other, "the first name of the file did not arrive".to_owned());
            return Ok(());
        };
        match self.tree.stat(&link.path) {
            Ok(there) if (there.st_dev, there.st_ino) == (first.st_dev, first.st_ino) => {
                self.summary.files += 1;
                return Ok(());
            }
            Ok(there) if self.keeps_newer() && is_newer_file(&there, link.mtime) => {
                self.keep_newer_link(link.path);
                return Ok(());
            }
            Ok(there) => self.note_shared(&there),
            Err(_) => {}
        }
        let placed = match self.place_hard_link(&link) {
            Err(Errno::ISDIR) if self.clear_for_file(&link.path) => self.place_hard_link(&link),
            placed => placed,
        };
        match placed {
            Ok(()) => {
                self.summary.files += 1;
                Ok(())
            }
            Err(errno) => self.refuse_io(link.path, errno.into()),
        }
    }

    /// Gives one more name to a file that is newer than the sender's, and is kept. Another file
    /// that has the name stays.
    fn link_to_newer(&mut self, link: &PendingHardLink, first: &Stat) -> Result<(), SinkError> {
        if matches!(self.tree.stat(&link.path), Err(Errno::NOENT))
            && let Err(errno) = self.place_hard_link(link)
        {
            return self.refuse_io(link.path.clone(), errno.into());
        }
        self.note_shared(first);
        self.keep_newer_link(link.path.clone());
        Ok(())
    }

    fn place_hard_link(&mut self, link: &PendingHardLink) -> Result<(), Errno> {
        let (directory, leaf) = split(&link.first);
        self.partials.begin_hard_link(self.tree.directory(directory)?, leaf)?;
        let (directory, leaf) = split(&link.path);
        self.partials.place_hard_link(self.tree.make_parents(directory)?, leaf)
    }
}

fn has_announced(stat: &Stat, link: &PendingHardLink) -> bool {
    is_regular(stat) && u64::try_from(stat.st_size) == Ok(link.size) && mtime(stat) == link.mtime
}
