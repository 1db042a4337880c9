//! Moves to the trash what the sender no longer has. It waits until every file is in place, unless
//! too many paths wait.

use super::Sink;
use super::mirror::{EntryFate, GoneEntry, Mirror};
use crate::error::SinkError;
use crate::manifest::ComparePlan;
use crate::name::check_name;
use crate::receiver_report::{Reason, Report};
use byway_wire::DecodeError;
use rustix::fs::FileType;
use rustix::io::Errno;

impl Sink {
    /// Sets how the sender's tree is compared, and whether the receiver deletes.
    pub(super) fn begin_comparing(&mut self, plan: ComparePlan) -> Result<(), SinkError> {
        self.plan = Some(plan);
        if !plan.deletes {
            return Ok(());
        }
        if !self.options.deletes {
            self.stays(Vec::new(), Reason::DeletesNothing, String::new());
            return Ok(());
        }
        let stat = self.partials.touch().map_err(|errno| SinkError::from_io(&self.path, errno.into()))?;
        self.mirror = Some(Box::new(Mirror::new(&stat)));
        Ok(())
    }

    /// Handles a record about entries that are not deleted.
    pub(super) fn protect(
        &mut self,
        protect: impl FnOnce(&mut Mirror) -> Result<(), SinkError>,
    ) -> Result<(), SinkError> {
        if !self.plan.is_some_and(|plan| plan.deletes) {
            return Err(DecodeError::Range("order of records").into());
        }
        match self.mirror.as_mut() {
            Some(mirror) => protect(mirror)?,
            None => return Ok(()),
        }
        self.delete_early();
        Ok(())
    }

    /// Notes that the sender has an entry at a path, even if it fails here.
    pub(super) fn arrive(&mut self, path: &[u8]) -> Result<(), SinkError> {
        if let Some(mirror) = self.mirror.as_mut()
            && check_name(path).is_ok()
        {
            mirror.arrive(path)?;
            self.delete_early();
        }
        Ok(())
    }

    /// Makes room for a directory of the sender: another entry of its name is moved to the trash.
    pub(super) fn clear_for_directory(&mut self, path: &[u8]) {
        let Some(gone) = self.mirror.as_ref().and_then(|mirror| mirror.in_the_way(path)) else { return };
        let is_other = |stat: &rustix::fs::Stat| FileType::from_raw_mode(stat.st_mode) != FileType::Directory;
        if self.tree.stat(path).is_ok_and(|stat| is_other(&stat)) {
            self.delete(gone);
        }
    }

    /// Moves a directory away that has the name of a file or link of the sender. Returns whether
    /// its name is free.
    pub(super) fn clear_for_file(&mut self, path: &[u8]) -> bool {
        let Some(gone) = self.mirror.as_ref().and_then(|mirror| mirror.in_the_way(path)) else {
            return false;
        };
        let Some(mirror) = self.mirror.as_ref() else { return false };
        // Of a directory that holds what stays, nothing goes in vain.
        if !matches!(mirror.fate(&mut self.tree, &gone, path), Ok(EntryFate::Goes(_))) {
            return false;
        }
        self.delete(gone);
        matches!(self.tree.stat(path), Err(Errno::NOENT))
    }

    /// The records of a directory begin, which is in place.
    pub(super) fn enter_mirrored(&mut self, path: &[u8]) {
        let is_new = self.fresh == path || self.is_fresh(path);
        let Some(mirror) = self.mirror.as_mut() else { return };
        if let Err(errno) = mirror.enter(&mut self.tree, path, is_new) {
            self.stays(path.to_vec(), Reason::NotDeleted, std::io::Error::from(errno).to_string());
        }
    }

    /// Stops all deleting, because the sender's tree is not complete here. A file that is gone
    /// under one name may still come under another.
    pub(super) fn delete_nothing(&mut self) {
        if self.mirror.as_mut().is_some_and(|mirror| mirror.keep_all()) {
            self.stays(Vec::new(), Reason::Incomplete, String::new());
        }
    }

    /// Deletes the next entry. Returns whether there was one.
    pub(super) fn delete_next(&mut self) -> bool {
        if self.losses > 0 {
            self.delete_nothing();
        }
        let gone = self.mirror.as_mut().and_then(|mirror| mirror.next_gone(true));
        gone.map(|gone| self.delete(gone)).is_some()
    }

    fn delete_early(&mut self) {
        while let Some(gone) = self.mirror.as_mut().and_then(|mirror| mirror.next_gone(false)) {
            self.delete(gone);
        }
    }

    /// Moves an entry to the trash. Of a directory that holds protected entries, it moves all other
    /// entries.
    fn delete(&mut self, gone: GoneEntry) {
        let Some(mut mirror) = self.mirror.take() else { return };
        // Another transfer may have moved a directory that is held open.
        self.tree.forget();
        let mut paths = vec![gone.path.clone()];
        while let Some(path) = paths.pop() {
            let deleted = mirror.fate(&mut self.tree, &gone, &path).and_then(|fate| {
                match fate {
                    EntryFate::Goes(entries) => {
                        mirror.discard(&mut self.tree, &path)?;
                        self.summary.deleted += entries;
                    }
                    EntryFate::GoesInPart(within) => paths.extend(within),
                    EntryFate::Stays => {}
                    EntryFate::Changed => {
                        self.stays(path.clone(), Reason::ChangedMeanwhile, String::new());
                    }
                }
                Ok(())
            });
            match deleted {
                // Somebody else has removed it.
                Ok(()) | Err(Errno::NOENT) => {}
                Err(errno) => {
                    let detail = std::io::Error::from(errno).to_string();
                    self.stays(path, Reason::NotDeleted, detail);
                }
            }
        }
        self.summary.trash = mirror.folder().map(|folder| folder.name());
        self.mirror = Some(mirror);
    }

    /// Reports an entry that is not deleted, and the reason.
    fn stays(&mut self, path: Vec<u8>, reason: Reason, detail: String) {
        Report::Refused { path: path.clone(), reason, detail: detail.clone() }.encode(&mut self.out);
        self.summary.undeleted += 1;
        self.keep_problem(path, reason, detail);
    }

    /// Reports the entries that were moved to the trash, at the end.
    pub(super) fn report_trash(&mut self) {
        let Some(folder) = self.mirror.as_ref().and_then(|mirror| mirror.folder()) else { return };
        folder.close();
        Report::Trashed { entries: self.summary.deleted, folder: folder.name() }.encode(&mut self.out);
    }
}
