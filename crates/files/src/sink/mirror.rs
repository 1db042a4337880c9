//! Which entries of the receiver the sender no longer has. The records of a directory come in the
//! order of its names, and all of them before those of a later one. So only the names of the
//! directories above the current record are held.

use crate::contained_dir::Beneath;
use crate::name::{join, split};
use crate::trash::TrashFolder;
use crate::tree_selection::{TreeFilter, below_root};
use byway_wire::DecodeError;
use rustix::fs::{Dir, FileType, OFlags, Stat};
use rustix::io::{Errno, Result};
use std::collections::{BTreeSet, VecDeque};

/// Bytes of paths that may wait until every file is in place. Further ones do not wait.
const MAX_QUEUED_BYTES: usize = 16 << 20;
/// The most files with several names that are noted. A deleted name of a further one may stay until
/// the next transfer.
const MAX_SHARED_FILES: usize = 1 << 20;
/// The most roots of one transfer.
const MAX_ROOTS: usize = 65_536;
/// The prefix of byway's own entries, which are never moved.
const OWN_PREFIX: &[u8] = b".byway-";

/// A mirror under way.
#[derive(Debug, Default)]
pub(super) struct Mirror {
    pub filter: TreeFilter,
    /// When the transfer began, by the clock of the file system: seconds and nanoseconds.
    began_at: (i64, i64),
    /// The paths of the trees so far, the current one at the end.
    roots: Vec<Vec<u8>>,
    root_names: BTreeSet<Vec<u8>>,
    levels: Vec<MirrorLevel>,
    /// Entries that the sender no longer has, and that have not been moved yet.
    gone: VecDeque<GoneEntry>,
    /// Bytes of the paths in `gone`.
    queued_bytes: usize,
    /// Files with several names that the sender has, by device and inode.
    shared: BTreeSet<(u64, u64)>,
    folder: Option<TrashFolder>,
}

/// A directory whose records are coming.
#[derive(Debug)]
struct MirrorLevel {
    path: Vec<u8>,
    /// Names here that no record has had yet.
    names: BTreeSet<Vec<u8>>,
    /// The name of the last record.
    last_name: Vec<u8>,
}

/// An entry that the sender no longer has.
#[derive(Debug)]
pub(super) struct GoneEntry {
    pub path: Vec<u8>,
    /// The length of the path of the entry's tree.
    root_len: usize,
}

/// The decision about an entry.
pub(super) enum EntryFate {
    /// The whole entry is moved. The value counts the entry and all that it holds.
    Goes(u64),
    /// The entry is a directory that has changed, or that may hold an entry that stays. The value
    /// lists the directory's own entries.
    GoesInPart(Vec<Vec<u8>>),
    /// The entry stays: patterns exclude it, or it is byway's own.
    Stays,
    /// The entry stays: a user has changed it since the transfer began.
    Changed,
}

impl Mirror {
    /// Makes the mirror of a transfer. `stat`, of a directory made for the transfer, gives the time
    /// of its beginning.
    pub(super) fn new(stat: &Stat) -> Self {
        Self { began_at: status_change(stat), ..Self::default() }
    }

    /// A mirror that only looks: nothing counts as changed meanwhile.
    pub(super) fn looking() -> Self {
        Self { began_at: (i64::MAX, 0), ..Self::default() }
    }

    /// A tree begins.
    ///
    /// # Errors
    /// It overlaps an earlier one, which may have other entries for the same directory.
    pub(super) fn enter_root(&mut self, path: &[u8]) -> std::result::Result<(), DecodeError> {
        self.leave_all();
        let is_above = |(end, byte): (usize, &u8)| {
            *byte == b'/' && path.get(..end).is_some_and(|above| self.root_names.contains(above))
        };
        let below = self.root_names.range([path, b"/"].concat()..).next();
        let overlaps = self.root_names.contains(path)
            || self.root_names.contains(&b""[..])
            || path.is_empty() && !self.root_names.is_empty()
            || path.iter().enumerate().any(is_above)
            || below.is_some_and(|below| below_root(path, below).is_some());
        if overlaps || self.roots.len() == MAX_ROOTS {
            return Err(DecodeError::Range("roots"));
        }
        self.root_names.insert(path.to_vec());
        self.roots.push(path.to_vec());
        // Nothing beside a root is gone, nor at the top of one without a name. Their levels keep
        // the order of the records.
        for path in [split(path).0, path] {
            self.levels.push(MirrorLevel {
                path: path.to_vec(),
                names: BTreeSet::new(),
                last_name: Vec::new(),
            });
        }
        Ok(())
    }

    /// A record names an entry, which is therefore not gone.
    ///
    /// # Errors
    /// An entry before it in the order has come already, or the entry itself.
    pub(super) fn arrive(&mut self, path: &[u8]) -> std::result::Result<(), DecodeError> {
        self.tick_off(path, false)
    }

    fn tick_off(&mut self, path: &[u8], may_repeat: bool) -> std::result::Result<(), DecodeError> {
        while let Some(level) = self.levels.last_mut() {
            let Some(below) = below_root(&level.path, path) else {
                self.leave();
                continue;
            };
            let name = below.split(|byte| *byte == b'/').next().unwrap_or_default();
            let repeats = name == level.last_name && name == below && !may_repeat;
            if name < level.last_name.as_slice() || repeats {
                return Err(DecodeError::Range("order of records"));
            }
            level.names.remove(name);
            level.last_name = name.to_vec();
            break;
        }
        Ok(())
    }

    /// An entry is kept; or all that is in a directory, if its records are coming.
    pub(super) fn keep(&mut self, path: &[u8]) -> std::result::Result<(), DecodeError> {
        while self.levels.last().is_some_and(|it| it.path != path && below_root(&it.path, path).is_none()) {
            self.leave();
        }
        match self.levels.last_mut() {
            Some(level) if level.path == path => {
                level.names.clear();
                Ok(())
            }
            _ => self.tick_off(path, true),
        }
    }

    /// The records of a directory begin. `is_new`: nothing is in it yet.
    ///
    /// # Errors
    /// It cannot be listed, so that nothing in it is known to be gone.
    pub(super) fn enter(&mut self, tree: &mut Beneath, path: &[u8], is_new: bool) -> Result<()> {
        let Some(root) = self.roots.last() else { return Ok(()) };
        if path != root && below_root(root, path).is_none() {
            return Ok(());
        }
        let names = if is_new { Vec::new() } else { names(tree, path)? };
        let names = names.into_iter().filter(|name| !name.starts_with(OWN_PREFIX)).collect();
        self.levels.push(MirrorLevel { path: path.to_vec(), names, last_name: Vec::new() });
        Ok(())
    }

    /// The records end: all that no record named is gone.
    pub(super) fn leave_all(&mut self) {
        while !self.levels.is_empty() {
            self.leave();
        }
    }

    fn leave(&mut self) {
        let Some(MirrorLevel { path, names, .. }) = self.levels.pop() else { return };
        let root_len = self.roots.last().map_or(0, Vec::len);
        for name in names {
            let path = join(&path, &name);
            self.queued_bytes += path.len();
            self.gone.push_back(GoneEntry { path, root_len });
        }
    }

    /// The next entry to move. With `all` false only if too many wait.
    pub(super) fn next_gone(&mut self, all: bool) -> Option<GoneEntry> {
        if !all && self.queued_bytes <= MAX_QUEUED_BYTES {
            return None;
        }
        let gone = self.gone.pop_front()?;
        self.queued_bytes -= gone.path.len();
        Some(gone)
    }

    /// Returns the entry in the way of a record, if that record's directory is mirrored.
    pub(super) fn in_the_way(&self, path: &[u8]) -> Option<GoneEntry> {
        let (directory, _) = split(path);
        let covers = |root: &&Vec<u8>| {
            !directory.is_empty() && (directory == root.as_slice() || below_root(root, directory).is_some())
        };
        let root = self.roots.iter().find(covers)?;
        Some(GoneEntry { path: path.to_vec(), root_len: root.len() })
    }

    /// Decides about an entry at `path`, in the tree of `gone`.
    pub(super) fn fate(&self, tree: &mut Beneath, gone: &GoneEntry, path: &[u8]) -> Result<EntryFate> {
        let stat = tree.stat(path)?;
        let is_directory = FileType::from_raw_mode(stat.st_mode) == FileType::Directory;
        if self.is_protected(gone, path, is_directory) {
            return Ok(EntryFate::Stays);
        }
        if !is_directory {
            return Ok(if self.is_changed(&stat) { EntryFate::Changed } else { EntryFate::Goes(1) });
        }
        let own = list(tree, path)?;
        let (mut entries, mut listed) = (1, vec![(path.to_vec(), own.clone())]);
        let mut is_whole = !self.is_changed(&stat);
        while let Some((directory, names)) = listed.pop().filter(|_| is_whole) {
            for name in names {
                let path = join(&directory, &name);
                let stat = tree.stat(&path)?;
                let is_directory = FileType::from_raw_mode(stat.st_mode) == FileType::Directory;
                entries += 1;
                is_whole &= !self.is_changed(&stat) && !self.is_protected(gone, &path, is_directory);
                if is_directory && is_whole {
                    // What cannot be looked into may hold what stays.
                    match list(tree, &path) {
                        Ok(names) => listed.push((path, names)),
                        Err(_) => is_whole = false,
                    }
                }
            }
        }
        Ok(match is_whole {
            true => EntryFate::Goes(entries),
            false => EntryFate::GoesInPart(own.iter().map(|name| join(path, name)).collect()),
        })
    }

    /// Nothing more goes. Returns whether anything would have gone.
    pub(super) fn keep_all(&mut self) -> bool {
        self.leave_all();
        self.queued_bytes = 0;
        self.roots.clear();
        !std::mem::take(&mut self.gone).is_empty()
    }

    /// Moves an entry to the trash.
    pub(super) fn discard(&mut self, tree: &mut Beneath, path: &[u8]) -> Result<()> {
        if self.folder.is_none() {
            let seconds = u64::try_from(self.began_at.0).unwrap_or_default();
            self.folder = Some(TrashFolder::make(tree.directory(b"")?, seconds)?);
        }
        // The move changes the status of its other names, which may have to go as well.
        if let Some(stat) = tree.stat(path).ok().filter(|stat| stat.st_nlink > 1) {
            self.note_shared(&stat);
        }
        let taken = self.folder.as_mut().map_or(Err(Errno::NOENT), |folder| folder.take(tree, path));
        // A directory that was moved may be held open, or one in it.
        tree.forget();
        taken
    }

    pub(super) const fn folder(&self) -> Option<&TrashFolder> {
        self.folder.as_ref()
    }

    fn is_protected(&self, gone: &GoneEntry, path: &[u8], is_directory: bool) -> bool {
        let root = gone.path.get(..gone.root_len).unwrap_or_default();
        let below = below_root(root, path).unwrap_or(path);
        split(path).1.starts_with(OWN_PREFIX) || self.filter.excludes(below, is_directory)
    }

    /// Notes a file with several names, of which the sender has one. The transfer's changes to that
    /// name change the status of the other names.
    pub(super) fn note_shared(&mut self, stat: &Stat) {
        if self.shared.len() < MAX_SHARED_FILES {
            self.shared.insert((stat.st_dev, stat.st_ino));
        }
    }

    /// Whether a user changed, moved or made an entry since the transfer began.
    fn is_changed(&self, stat: &Stat) -> bool {
        let written = (stat.st_mtime, i64::try_from(stat.st_mtime_nsec).unwrap_or_default());
        let is_shared = || self.shared.contains(&(stat.st_dev, stat.st_ino));
        status_change(stat) > self.began_at && (written > self.began_at || !is_shared())
    }
}

fn status_change(stat: &Stat) -> (i64, i64) {
    (stat.st_ctime, i64::try_from(stat.st_ctime_nsec).unwrap_or_default())
}

fn names(tree: &mut Beneath, path: &[u8]) -> Result<Vec<Vec<u8>>> {
    read_names(tree.open(path, OFlags::RDONLY | OFlags::DIRECTORY)?)
}

/// The names in a directory. `EXDEV` if something is mounted there.
fn list(tree: &mut Beneath, path: &[u8]) -> Result<Vec<Vec<u8>>> {
    read_names(tree.open_unmounted(path, OFlags::RDONLY | OFlags::DIRECTORY)?)
}

fn read_names(directory: rustix::fd::OwnedFd) -> Result<Vec<Vec<u8>>> {
    let mut names = Vec::new();
    for entry in Dir::new(directory)? {
        let entry = entry?;
        let name = entry.file_name().to_bytes();
        if name != b"." && name != b".." {
            names.push(name.to_vec());
        }
    }
    Ok(names)
}
