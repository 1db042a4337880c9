//! Looks at a tree and changes nothing: for a sender that wants to know what a transfer would do.
//! It says what is new, what would be replaced or kept, and what would be deleted.

use super::mirror::{EntryFate, GoneEntry, Mirror};
use crate::contained_dir::{Beneath, is_newer_file, is_regular, mtime};
use crate::error::SinkError;
use crate::manifest::{ComparePlan, Counts, MANIFEST_VERSION, Metadata, Record, RecordReader};
use crate::name::{Subdirectory, check_name};
use crate::receiver_report::{LookedAt, Reason, Report};
use byway_wire::DecodeError;
use rustix::fs::{FileType, Mode, OFlags};
use rustix::io::Errno;
use std::path::Path;

/// Bytes of reports after which [`Look::work`] rests.
const MAX_QUEUED_REPORT_BYTES: usize = 256 << 10;

/// A tree that a sender asks about.
#[derive(Debug)]
pub struct Look {
    /// `None`: the receiver's directory does not exist yet.
    tree: Option<Beneath>,
    deletes: bool,
    reader: RecordReader,
    plan: Option<ComparePlan>,
    mirror: Option<Mirror>,
    announced: Counts,
    has_begun: bool,
    has_ended: bool,
    is_complete: bool,
    out: Vec<u8>,
}

impl Look {
    /// Opens `directory`, or `below` in it, for a dry run. Missing directories are not made.
    /// `deletes`: whether a transfer may delete.
    ///
    /// # Errors
    /// It cannot be opened.
    pub fn open(directory: &Path, below: Option<&Subdirectory>, deletes: bool) -> Result<Self, SinkError> {
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let opened = rustix::fs::open(directory, flags, Mode::empty()).and_then(|root| match below {
            Some(below) => Beneath::new(root).open(below.as_bytes(), flags),
            None => Ok(root),
        });
        let tree = match opened {
            Ok(root) => Some(Beneath::new(root)),
            Err(Errno::NOENT) => None,
            Err(errno) => return Err(SinkError::from_io(directory, errno.into())),
        };
        Ok(Self {
            tree,
            deletes,
            reader: RecordReader::default(),
            plan: None,
            mirror: None,
            announced: Counts::default(),
            has_begun: false,
            has_ended: false,
            is_complete: false,
            out: Vec::new(),
        })
    }

    /// Handles the next bytes of the manifest stream.
    ///
    /// # Errors
    /// The bytes are no valid manifest.
    pub fn records(&mut self, bytes: &[u8]) -> Result<(), SinkError> {
        let mut reader = std::mem::take(&mut self.reader);
        let fed = reader.feed(bytes, |record| self.record(record));
        self.reader = reader;
        fed
    }

    /// Finds the entries that would be deleted, after the last record. Returns whether there is
    /// more to do.
    pub fn work(&mut self) -> bool {
        while self.has_ended && !self.is_complete && self.out.len() < MAX_QUEUED_REPORT_BYTES {
            match self.mirror.as_mut().and_then(|mirror| mirror.next_gone(true)) {
                Some(gone) => self.would_delete(&gone),
                None => {
                    let Counts { files, bytes, .. } = self.announced;
                    Report::Done { files, bytes, failed: 0 }.encode(&mut self.out);
                    self.is_complete = true;
                }
            }
        }
        self.has_ended && !self.is_complete
    }

    /// Takes the bytes to send on the stream of reports.
    pub fn reports(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.out)
    }

    /// Whether all reports are made, including DONE.
    #[must_use]
    pub const fn is_complete(&self) -> bool {
        self.is_complete
    }

    fn record(&mut self, record: Record<'_>) -> Result<(), SinkError> {
        let unordered = || SinkError::from(DecodeError::Range("order of records"));
        match record {
            Record::Start { version } if !self.has_begun && version != MANIFEST_VERSION => {
                return Err(SinkError::Version(version));
            }
            Record::Start { .. } if !self.has_begun => self.has_begun = true,
            _ if !self.has_begun || self.has_ended => return Err(unordered()),
            Record::Compare(plan) if self.plan.is_none() => {
                self.plan = Some(plan);
                self.mirror = (plan.deletes && self.deletes).then(Mirror::looking);
                if plan.deletes && !self.deletes {
                    self.refuse(&[], Reason::DeletesNothing);
                }
            }
            Record::Filter { excludes, pattern } => {
                if let Some(mirror) = &mut self.mirror {
                    mirror.filter.add(pattern, excludes).map_err(|_| DecodeError::Range("pattern"))?;
                }
            }
            Record::Root { path } if path.is_empty() || check_name(path).is_ok() => {
                self.mirror.as_mut().map_or(Ok(()), |mirror| mirror.enter_root(path))?;
            }
            Record::Keep { path: b"" } => drop(self.mirror.as_mut().map(Mirror::keep_all)),
            Record::Keep { path } if check_name(path).is_ok() => {
                self.mirror.as_mut().map_or(Ok(()), |mirror| mirror.keep(path))?;
            }
            Record::Directory { path, .. } => {
                self.announced.directories += 1;
                self.directory(path)?;
            }
            Record::Symlink { mtime: time, path, target } => {
                self.announced.symlinks += 1;
                let replaces_newer = self.plan.is_some_and(|plan| plan.replaces_newer);
                self.entry(path, 0, |stat, tree| {
                    if is_newer_file(stat, time) && !replaces_newer {
                        return Some(LookedAt::Newer);
                    }
                    let is_same = tree.readlink(path).is_ok_and(|now| now == target);
                    let is_link = FileType::from_raw_mode(stat.st_mode) == FileType::Symlink;
                    (!(is_link && is_same)).then_some(LookedAt::Replaced)
                })?;
            }
            Record::HardLink { mtime: time, path, first, .. } if check_name(first).is_ok() => {
                self.announced.files += 1;
                let replaces_newer = self.plan.is_some_and(|plan| plan.replaces_newer);
                self.entry(path, 0, |stat, tree| match tree.stat(first) {
                    Ok(first) if is_newer_file(&first, time) && !replaces_newer => Some(LookedAt::Newer),
                    Ok(first) if (first.st_dev, first.st_ino) == (stat.st_dev, stat.st_ino) => None,
                    _ if is_newer_file(stat, time) && !replaces_newer => Some(LookedAt::Newer),
                    _ => Some(LookedAt::Replaced),
                })?;
            }
            Record::File { size, metadata, path, .. } => {
                self.announced.files += 1;
                self.announced.bytes = self.announced.bytes.saturating_add(size);
                let plan = self.plan.unwrap_or_default();
                self.entry(path, size, |stat, _| standing(plan, size, metadata, stat))?;
            }
            Record::End(counts) if counts == self.announced => {
                self.mirror.iter_mut().for_each(Mirror::leave_all);
                self.has_ended = true;
            }
            Record::Total { .. } | Record::Holes(_) => {}
            _ => return Err(unordered()),
        }
        while let Some(gone) = self.mirror.as_mut().and_then(|mirror| mirror.next_gone(false)) {
            self.would_delete(&gone);
        }
        Ok(())
    }

    fn directory(&mut self, path: &[u8]) -> Result<(), SinkError> {
        self.arrive(path)?;
        let Some(tree) = &mut self.tree else { return Ok(()) };
        let Ok(stat) = tree.stat(path) else { return Ok(()) };
        if FileType::from_raw_mode(stat.st_mode) != FileType::Directory {
            match self.mirror.as_ref().and_then(|mirror| mirror.in_the_way(path)) {
                Some(gone) => self.would_delete(&gone),
                None => self.refuse(path, Reason::NotADirectory),
            }
        } else if self.mirror.as_mut().is_some_and(|mirror| mirror.enter(tree, path, false).is_err()) {
            self.refuse(path, Reason::NotDeleted);
        }
        Ok(())
    }

    /// Reports the effect on a file or link. `judge` decides if an entry of its name exists.
    fn entry(
        &mut self,
        path: &[u8],
        size: u64,
        judge: impl FnOnce(&rustix::fs::Stat, &mut Beneath) -> Option<LookedAt>,
    ) -> Result<(), SinkError> {
        self.arrive(path)?;
        if check_name(path).is_err() {
            self.refuse(path, Reason::Name);
            return Ok(());
        }
        let stat = self.tree.as_mut().map_or(Err(Errno::NOENT), |tree| tree.stat(path));
        let found = match (stat, &mut self.tree) {
            (Ok(stat), _) if FileType::from_raw_mode(stat.st_mode) == FileType::Directory => {
                let gone = self.mirror.as_ref().and_then(|mirror| mirror.in_the_way(path));
                let goes = |gone: &GoneEntry| match (&self.mirror, &mut self.tree) {
                    (Some(mirror), Some(tree)) => {
                        matches!(mirror.fate(tree, gone, path), Ok(EntryFate::Goes(_)))
                    }
                    _ => false,
                };
                let Some(gone) = gone.filter(goes) else {
                    self.refuse(path, Reason::IsDirectory);
                    return Ok(());
                };
                self.would_delete(&gone);
                Some(LookedAt::New)
            }
            (Ok(stat), Some(tree)) => judge(&stat, tree),
            (Err(Errno::LOOP), _) if self.mirror.is_none() => {
                self.refuse(path, Reason::Link);
                return Ok(());
            }
            _ => Some(LookedAt::New),
        };
        if let Some(what) = found {
            Report::Looked { what, amount: size, path: path.to_vec() }.encode(&mut self.out);
        }
        Ok(())
    }

    fn arrive(&mut self, path: &[u8]) -> Result<(), SinkError> {
        match self.mirror.as_mut().filter(|_| check_name(path).is_ok()) {
            Some(mirror) => Ok(mirror.arrive(path)?),
            None => Ok(()),
        }
    }

    fn would_delete(&mut self, gone: &GoneEntry) {
        let (Some(mirror), Some(tree)) = (&self.mirror, &mut self.tree) else { return };
        let mut paths = vec![gone.path.clone()];
        while let Some(path) = paths.pop() {
            match mirror.fate(tree, gone, &path) {
                Ok(EntryFate::Goes(amount)) => {
                    Report::Looked { what: LookedAt::Deleted, amount, path }.encode(&mut self.out);
                }
                Ok(EntryFate::GoesInPart(within)) => paths.extend(within),
                Ok(EntryFate::Stays | EntryFate::Changed) | Err(Errno::NOENT) => {}
                Err(_) => {
                    let detail = String::new();
                    Report::Refused { path, reason: Reason::NotDeleted, detail }.encode(&mut self.out);
                }
            }
        }
    }

    fn refuse(&mut self, path: &[u8], reason: Reason) {
        Report::Refused { path: path.to_vec(), reason, detail: String::new() }.encode(&mut self.out);
    }
}

/// Returns what a transfer would do to the receiver's file that already has the name of the
/// sender's. `None`: nothing, as size and modification time are equal.
fn standing(plan: ComparePlan, size: u64, metadata: Metadata, stat: &rustix::fs::Stat) -> Option<LookedAt> {
    if !is_regular(stat) {
        return Some(LookedAt::Replaced);
    }
    let has_size = u64::try_from(stat.st_size) == Ok(size);
    match mtime(stat) {
        time if time > metadata.mtime && !plan.replaces_newer => Some(LookedAt::Newer),
        _ if has_size && size > 0 && plan.contents => Some(LookedAt::Compared),
        time if has_size && time == metadata.mtime => None,
        _ => Some(LookedAt::Replaced),
    }
}
