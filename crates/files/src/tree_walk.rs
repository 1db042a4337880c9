//! Walks files and directories depth first, one entry at a time, in each directory in the order of
//! the names' bytes: `a`, `a/x`, `a/y`, `b`. Memory holds only the names in the directories above
//! the current entry.

use crate::contained_dir::Beneath;
use crate::error::SourceError;
use crate::file_status::{FileStatus, metadata, mtime};
use crate::linked_names::LinkedNames;
use crate::manifest::{Metadata, Timestamp};
use crate::name::{NameError, Printable, check_name, join, split};
use crate::not_copied::NotCopied;
use crate::source_options::SourceOptions;
use crate::tree_selection::{TreeFilter, TreeSelection, below_root};
use rustix::fd::AsFd;
use rustix::fs::{Access, AtFlags, Dir, FileType, Mode, OFlags, Stat};
use rustix::io::Errno;
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;
use std::fs::File;
use std::io;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// An entry of the tree that is not sent, or not unchanged.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Warning {
    /// The path of the entry in the manifest.
    pub path: PathBuf,
    /// The kind of problem.
    pub kind: WarningKind,
}

/// The problem with an entry.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum WarningKind {
    /// A FIFO, socket or device, which has no contents to send.
    Special,
    /// A FIFO, socket or device that the user named, and so expects to be sent.
    NamedSpecial,
    /// A directory of unfinished files that an earlier transfer left.
    Leftover,
    /// A directory of byway's own that the user named.
    NamedLeftover,
    /// The entry could not be read. The value is the system's error.
    Unreadable(String),
    /// The file changed while it was read, so the data sent are not of one version.
    Changed,
    /// The path of the entry is longer than can be sent.
    LongPath,
    /// More files than objects can be numbered.
    TooMany,
    /// An earlier named path holds an entry of the same path.
    NameTaken,
    /// A named directory is empty, and the receiver would delete all entries that are not in it.
    EmptyTree,
}

impl WarningKind {
    /// Whether the warning makes the transfer incomplete. Entries that can never be sent do not.
    #[must_use]
    pub const fn is_loss(&self) -> bool {
        !matches!(self, Self::Special | Self::Leftover)
    }
}

impl fmt::Display for Warning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: ", Printable(self.path.as_os_str().as_bytes()))?;
        match &self.kind {
            WarningKind::Special => f.write_str("skipped, neither file nor directory nor link"),
            WarningKind::NamedSpecial => f.write_str(
                "not sent, neither file nor directory nor link: to send what can be read from it, use `byway send -`",
            ),
            WarningKind::Leftover => f.write_str("skipped, files of byway's own from earlier transfers"),
            WarningKind::NamedLeftover => {
                f.write_str("not sent, files of byway's own from earlier transfers")
            }
            WarningKind::Unreadable(cause) => write!(f, "not sent, cannot be read ({cause})"),
            WarningKind::Changed => {
                f.write_str("not sent, it changed while it was read: send it again at rest")
            }
            WarningKind::LongPath => f.write_str("not sent, its path is too long"),
            WarningKind::TooMany => f.write_str("not sent, too many files for one transfer"),
            WarningKind::NameTaken => {
                f.write_str("not sent, one that was named before it arrives under the same name")
            }
            WarningKind::EmptyTree => f.write_str(
                "empty, so nothing is deleted at the receiver: is a disk missing that is mounted there?",
            ),
        }
    }
}

/// An entry that a walk meets.
#[derive(Debug)]
pub(crate) enum Entry {
    Directory {
        path: Vec<u8>,
        metadata: Metadata,
    },
    /// A file, opened if the walk opens files.
    File {
        path: Vec<u8>,
        start: usize,
        status: FileStatus,
        file: Option<File>,
    },
    Symlink {
        path: Vec<u8>,
        mtime: Timestamp,
        target: Vec<u8>,
    },
    /// A further name of a file that the walk met before.
    HardLink {
        path: Vec<u8>,
        size: u64,
        mtime: Timestamp,
        /// The path of the file.
        first: Vec<u8>,
    },
    /// An entry that patterns exclude, with all that it holds.
    Excluded {
        path: Vec<u8>,
    },
    /// A tree begins. Its path is empty for all that a directory holds.
    Root {
        path: Vec<u8>,
    },
    Warning(Warning),
}

/// The names of one directory that are still to be visited, last first.
#[derive(Debug)]
struct Level {
    path: Vec<u8>,
    names: Vec<Vec<u8>>,
}

/// One of the paths that were named.
#[derive(Debug)]
struct Start {
    /// The directory held open.
    base: usize,
    /// The name of the start in its directory. Empty: all entries of the directory.
    name: Vec<u8>,
    /// The name of the link that led there, which is the name in the manifest.
    link: Option<Vec<u8>>,
}

impl Start {
    /// Returns the path below the base of the entry that has `path` in the manifest.
    fn local<'a>(&self, path: &'a [u8]) -> Cow<'a, [u8]> {
        match self.link.as_ref().and_then(|link| path.strip_prefix(link.as_slice())) {
            Some(rest) => Cow::Owned([self.name.as_slice(), rest].concat()),
            None => Cow::Borrowed(path),
        }
    }
}

/// A walk under way.
#[derive(Debug)]
pub(crate) struct Walk {
    /// Directories held open. Entries in them have the same path in the manifest, unless a link led
    /// there.
    bases: Vec<Beneath>,
    starts: Vec<Start>,
    /// The number of the start under way.
    start: usize,
    /// Starts that were begun.
    begun: usize,
    /// The path of the tree that is walked, to which patterns and lists relate.
    root: Vec<u8>,
    selection: Arc<TreeSelection>,
    levels: Vec<Level>,
    /// Whether each tree begins with [`Entry::Root`].
    tells_roots: bool,
    /// Whether anything in the tree of the current start is sent.
    has_sent_below: bool,
    /// Whether the next tree has begun so.
    has_told_root: bool,
    /// The warning about a directory that follows the directory itself.
    late_warning: Option<Warning>,
    /// Whether files are opened, or only found to be readable: that takes fewer calls.
    pub opens: bool,
    /// The user and the group of this process. Files of that user can be read without asking, if
    /// their owner may.
    process: (u32, u32),
    special_modes: bool,
    /// `None`: each name is a file of its own.
    linked: Option<LinkedNames>,
    /// The counts of metadata met so far that are not copied.
    pub not_copied: NotCopied,
}

impl Walk {
    /// Makes a walk over `paths`; see [`crate::Source::open`] for the meaning of a path.
    pub(crate) fn open(paths: &[PathBuf], options: &SourceOptions) -> Result<Self, SourceError> {
        if paths.is_empty() {
            return Err(SourceError::Nothing);
        }
        let mut walk = Self {
            bases: Vec::new(),
            starts: Vec::new(),
            start: 0,
            begun: 0,
            root: Vec::new(),
            selection: Arc::default(),
            levels: Vec::new(),
            tells_roots: options.deletes,
            has_sent_below: false,
            has_told_root: false,
            late_warning: None,
            opens: true,
            process: (rustix::process::geteuid().as_raw(), rustix::process::getegid().as_raw()),
            special_modes: options.special_modes,
            linked: options.hard_links.then(LinkedNames::default),
            not_copied: NotCopied::default(),
        };
        // One descriptor per directory, however many of its files a shell's pattern names.
        let mut known: BTreeMap<PathBuf, usize> = BTreeMap::new();
        let mut names: BTreeMap<Vec<u8>, &PathBuf> = BTreeMap::new();
        for path in paths {
            let failed = |errno| unreachable_path(path, errno);
            let mut start = walk.named_start(path, options.into_root, &mut known).map_err(failed)?;
            if !start.name.is_empty() {
                let stat = walk.beneath(start.base).and_then(|beneath| beneath.stat(&start.name));
                if FileType::from_raw_mode(stat.map_err(failed)?.st_mode) == FileType::Symlink {
                    start = walk.followed(path, start.name, &mut known).map_err(failed)?;
                }
                let name = start.link.as_ref().unwrap_or(&start.name);
                if let Some(first) = names.insert(name.clone(), path) {
                    return Err(SourceError::SameName(first.clone(), path.clone()));
                }
            }
            walk.starts.push(start);
        }
        Ok(walk)
    }

    /// Returns the directory to hold open for `path`, and the name in it.
    fn named_start(
        &mut self,
        path: &Path,
        into_root: bool,
        known: &mut BTreeMap<PathBuf, usize>,
    ) -> Result<Start, Errno> {
        let mut means_contents = names_contents(path);
        // A slash behind a name asks for a directory, as everywhere.
        if !means_contents && (into_root || path.as_os_str().as_bytes().ends_with(b"/")) {
            let metadata = std::fs::metadata(path).map_err(|error| errno_of(&error))?;
            means_contents = into_root && metadata.is_dir();
        }
        match path.file_name() {
            Some(name) if !means_contents => {
                let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty());
                self.start_at(parent.unwrap_or(Path::new(".")), name.as_bytes().to_vec(), known)
            }
            _ => self.start_at(path, Vec::new(), known),
        }
    }

    /// Returns the target of the link at `path`, which gets the link's name.
    fn followed(
        &mut self,
        path: &Path,
        link: Vec<u8>,
        known: &mut BTreeMap<PathBuf, usize>,
    ) -> Result<Start, Errno> {
        let target = path.canonicalize().map_err(|error| errno_of(&error))?;
        // The directory above all others has no name below which its entries could stand.
        let (Some(parent), Some(name)) = (target.parent(), target.file_name()) else {
            return Err(Errno::INVAL);
        };
        Ok(Start { link: Some(link), ..self.start_at(parent, name.as_bytes().to_vec(), known)? })
    }

    fn start_at(
        &mut self,
        directory: &Path,
        name: Vec<u8>,
        known: &mut BTreeMap<PathBuf, usize>,
    ) -> Result<Start, Errno> {
        let base = match known.get(directory) {
            Some(base) => *base,
            None => {
                let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
                let root = rustix::fs::open(directory, flags, Mode::empty())?;
                self.bases.push(Beneath::new(root));
                known.insert(directory.to_owned(), self.bases.len() - 1);
                self.bases.len() - 1
            }
        };
        Ok(Start { base, name, link: None })
    }

    fn beneath(&mut self, base: usize) -> Result<&mut Beneath, Errno> {
        self.bases.get_mut(base).ok_or(Errno::NOENT)
    }

    /// Returns the directory held open for the start `start`, and the path in it of the entry that
    /// has `path` in the manifest.
    fn local<'a>(&mut self, start: usize, path: &'a [u8]) -> Result<(&mut Beneath, Cow<'a, [u8]>), Errno> {
        let start = self.starts.get(start).ok_or(Errno::NOENT)?;
        let beneath = self.bases.get_mut(start.base).ok_or(Errno::NOENT)?;
        Ok((beneath, start.local(path)))
    }

    /// Restricts the walk to the selected entries.
    pub(crate) fn select(self, selection: Arc<TreeSelection>) -> Self {
        Self { selection, ..self }
    }

    /// Returns the patterns of excluded entries.
    pub(crate) fn filter(&self) -> &TreeFilter {
        &self.selection.filter
    }

    /// The next entry, if there is one.
    pub(crate) fn step(&mut self) -> Option<Entry> {
        if let Some(warning) = self.late_warning.take() {
            return Some(Entry::Warning(warning));
        }
        loop {
            let Some(level) = self.levels.last_mut() else {
                let start = self.starts.get(self.begun)?;
                let name = start.link.as_ref().unwrap_or(&start.name).clone();
                if self.tells_roots && !std::mem::replace(&mut self.has_told_root, true) {
                    return Some(Entry::Root { path: name });
                }
                self.has_told_root = false;
                self.has_sent_below = false;
                (self.start, self.begun) = (self.begun, self.begun + 1);
                self.root.clone_from(&name);
                if !name.is_empty() {
                    return Some(named(self.visit(name)));
                }
                if let Err(warning) = self.list(Vec::new()) {
                    return Some(Entry::Warning(warning));
                }
                continue;
            };
            match level.names.pop() {
                Some(name) => {
                    let path = join(&level.path, &name);
                    let entry = self.visit(path);
                    self.has_sent_below |= !matches!(entry, Entry::Warning(_) | Entry::Excluded { .. });
                    return Some(entry);
                }
                None => {
                    self.levels.pop();
                    let is_over = self.levels.is_empty() && self.tells_roots && !self.root.is_empty();
                    if is_over && !self.has_sent_below {
                        return Some(warning(&self.root, WarningKind::EmptyTree));
                    }
                }
            }
        }
    }

    /// Opens a file again that this walk met.
    pub(crate) fn reopen(&mut self, start: usize, path: &[u8]) -> io::Result<File> {
        let (base, path) = self.local(start, path)?;
        let (directory, leaf) = split(&path);
        Ok(open_file(base.directory(directory)?, leaf)?)
    }

    fn visit(&mut self, path: Vec<u8>) -> Entry {
        match check_name(&path) {
            Ok(()) => {}
            Err(NameError::Reserved) => return warning(&path, WarningKind::Leftover),
            Err(_) => return warning(&path, WarningKind::LongPath),
        }
        if self.is_taken(&path) {
            return warning(&path, WarningKind::NameTaken);
        }
        self.look(&path).unwrap_or_else(|errno| match errno {
            // It went away meanwhile.
            _ if self.excludes(&path, false) && self.excludes(&path, true) => Entry::Excluded { path },
            Errno::NAMETOOLONG => warning(&path, WarningKind::LongPath),
            errno => warning(&path, unreadable(errno)),
        })
    }

    fn excludes(&self, path: &[u8], is_directory: bool) -> bool {
        let below = below_root(&self.root, path);
        below.is_some_and(|below| self.selection.filter.excludes(below, is_directory))
    }

    fn look(&mut self, path: &[u8]) -> Result<Entry, Errno> {
        let (start, (user, _), opens) = (self.start, self.process, self.opens);
        // Not by `local`, which borrows the selection too.
        let named = self.starts.get(start).ok_or(Errno::NOENT)?;
        let (base, local) = (self.bases.get_mut(named.base).ok_or(Errno::NOENT)?, named.local(path));
        let (directory, leaf) = split(&local);
        let directory = base.directory(directory)?;
        let mut stat = rustix::fs::statat(directory, leaf, AtFlags::SYMLINK_NOFOLLOW)?;
        let kind = FileType::from_raw_mode(stat.st_mode);
        let below = below_root(&self.root, path);
        if below.is_some_and(|it| self.selection.filter.excludes(it, kind == FileType::Directory)) {
            return Ok(Entry::Excluded { path: path.to_vec() });
        }
        let listed = self.selection.listed.as_ref().zip(below);
        if kind != FileType::Directory && listed.is_some_and(|(listed, below)| !listed.holds(below)) {
            // Something below it is listed.
            return Err(Errno::NOTDIR);
        }
        let entry = match kind {
            FileType::Directory => {
                // It has its place in the tree even if what it holds cannot be read.
                self.late_warning = self.list(path.to_vec()).err();
                self.note_set_id(&stat);
                Entry::Directory { path: path.to_vec(), metadata: metadata(&stat) }
            }
            FileType::RegularFile if !opens => {
                // Nothing but a missing bit takes it from its owner.
                let own = stat.st_uid == user && stat.st_mode & Mode::RUSR.bits() != 0;
                let access = || rustix::fs::accessat(directory, leaf, Access::READ_OK, AtFlags::EACCESS);
                match if own { Ok(()) } else { access() } {
                    // Without the call (Linux 5.8) it is found when the file is opened.
                    Ok(()) | Err(Errno::NOSYS | Errno::INVAL) => {}
                    Err(errno) => return Err(errno),
                }
                Entry::File { path: path.to_vec(), start, status: FileStatus::new(&stat), file: None }
            }
            FileType::RegularFile => {
                let file = open_file(directory, leaf)?;
                stat = rustix::fs::fstat(&file)?;
                if FileType::from_raw_mode(stat.st_mode) != FileType::RegularFile {
                    return Ok(warning(path, WarningKind::Changed));
                }
                Entry::File { path: path.to_vec(), start, status: FileStatus::new(&stat), file: Some(file) }
            }
            FileType::Symlink => {
                let target = rustix::fs::readlinkat(directory, leaf, Vec::new())?.into_bytes();
                Entry::Symlink { path: path.to_vec(), mtime: mtime(&stat), target }
            }
            _ => return Ok(warning(path, WarningKind::Special)),
        };
        self.not_copied.note_owner(&stat, self.process);
        Ok(match entry {
            Entry::File { .. } => self.link(&stat, path).unwrap_or(entry),
            entry => entry,
        })
    }

    /// Whether something of an earlier start arrives under `path`. Two directories become one.
    fn is_taken(&mut self, path: &[u8]) -> bool {
        if !self.starts.iter().any(|start| start.name.is_empty()) {
            return false; // each start has a name of its own
        }
        let Some(kind) = self.kind(self.start, path) else { return false };
        let is_directory = kind == FileType::Directory;
        !self.excludes(path, is_directory)
            && (0..self.start).any(|earlier| {
                let name = self.starts.get(earlier).map(|it| it.link.as_ref().unwrap_or(&it.name).as_slice());
                let rest = name.and_then(|name| path.strip_prefix(name));
                let is_inside = name == Some(b"") || matches!(rest, Some([] | [b'/', ..]));
                is_inside && self.kind(earlier, path).is_some_and(|first| !is_directory || first != kind)
            })
    }

    /// Returns the type of the entry at `path` below a start. `None`: there is none.
    fn kind(&mut self, start: usize, path: &[u8]) -> Option<FileType> {
        let stat = self.local(start, path).and_then(|(base, local)| base.stat(&local)).ok()?;
        Some(FileType::from_raw_mode(stat.st_mode))
    }

    /// The link in place of a file that the walk has met under another name.
    fn link(&mut self, stat: &Stat, path: &[u8]) -> Option<Entry> {
        self.note_set_id(stat);
        if stat.st_nlink <= 1 {
            return None;
        }
        let Some(linked) = &mut self.linked else {
            self.not_copied.hard_links += 1;
            return None;
        };
        let first = linked.first(stat, path)?;
        let status = FileStatus::new(stat);
        Some(Entry::HardLink { path: path.to_vec(), size: status.size, mtime: status.metadata.mtime, first })
    }

    fn note_set_id(&mut self, stat: &Stat) {
        let is_dropped = !self.special_modes && stat.st_mode & (Mode::SUID | Mode::SGID).bits() != 0;
        self.not_copied.special_modes += u64::from(is_dropped);
    }

    /// Puts the names of the directory at `path` next in turn.
    fn list(&mut self, path: Vec<u8>) -> Result<(), Warning> {
        let below = if path == self.root { Some(&b""[..]) } else { below_root(&self.root, &path) };
        let listed = self.selection.listed.as_ref().zip(below);
        if let Some(mut names) = listed.and_then(|(listed, below)| listed.names(below)) {
            names.reverse();
            self.levels.push(Level { path, names });
            return Ok(());
        }
        let opened = self
            .local(self.start, &path)
            .and_then(|(base, local)| base.open(&local, OFlags::RDONLY | OFlags::DIRECTORY));
        let names = opened.and_then(|opened| {
            self.not_copied.note_attributes(&opened);
            let mut names = Vec::new();
            for entry in Dir::new(opened)? {
                let entry = entry?;
                let name = entry.file_name().to_bytes();
                if name != b"." && name != b".." {
                    names.push(name.to_vec());
                }
            }
            names.sort_unstable_by(|a, b| b.cmp(a));
            Ok(names)
        });
        match names {
            Ok(names) => {
                self.levels.push(Level { path, names });
                Ok(())
            }
            Err(errno) => Err(Warning { path: to_path(path), kind: unreadable(errno) }),
        }
    }
}

/// Changes the warning about an entry that a user named, so that the transfer counts as incomplete.
fn named(entry: Entry) -> Entry {
    let Entry::Warning(Warning { path, kind }) = entry else { return entry };
    let kind = match kind {
        WarningKind::Special => WarningKind::NamedSpecial,
        WarningKind::Leftover => WarningKind::NamedLeftover,
        other => other,
    };
    Entry::Warning(Warning { path, kind })
}

/// Whether a path means the entries of a directory without the directory, as it has no name of its
/// own.
#[must_use]
pub fn names_contents(path: &Path) -> bool {
    let bytes = path.as_os_str().as_bytes();
    let end = bytes.iter().rposition(|byte| *byte != b'/').map_or(0, |last| last + 1);
    let bare = bytes.get(..end).unwrap_or_default();
    bare == b"." || bare.ends_with(b"/.") || path.file_name().is_none()
}

/// Opens without following a link, without waiting for a writer of a FIFO, without gaining a
/// terminal.
fn open_file(directory: impl AsFd, leaf: &[u8]) -> rustix::io::Result<File> {
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    Ok(File::from(rustix::fs::openat(directory, leaf, flags, Mode::empty())?))
}

pub(crate) fn to_path(bytes: Vec<u8>) -> PathBuf {
    PathBuf::from(std::ffi::OsString::from_vec(bytes))
}

fn warning(path: &[u8], kind: WarningKind) -> Entry {
    Entry::Warning(Warning { path: to_path(path.to_vec()), kind })
}

fn unreadable(errno: Errno) -> WarningKind {
    WarningKind::Unreadable(io::Error::from(errno).to_string())
}

fn errno_of(error: &io::Error) -> Errno {
    Errno::from_io_error(error).unwrap_or(Errno::IO)
}

fn unreachable_path(path: &Path, errno: Errno) -> SourceError {
    match errno {
        Errno::NOENT => SourceError::NotFound(path.to_owned()),
        errno => SourceError::Unreadable { path: path.to_owned(), cause: errno.into() },
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    const INTO_ROOT: SourceOptions = SourceOptions { into_root: true, ..SourceOptions::DEFAULT };

    fn walked(paths: &[PathBuf]) -> Vec<String> {
        selected(paths, TreeSelection::default())
    }

    fn selected(paths: &[PathBuf], selection: TreeSelection) -> Vec<String> {
        walked_by(Walk::open(paths, &SourceOptions::DEFAULT).unwrap().select(Arc::new(selection)))
    }

    fn walked_by(mut walk: Walk) -> Vec<String> {
        std::iter::from_fn(|| walk.step())
            .map(|entry| match entry {
                Entry::Directory { path, .. } => format!("{}/", Printable(&path)),
                Entry::File { path, status, .. } => format!("{} {}", Printable(&path), status.size),
                Entry::Symlink { path, target, .. } => {
                    format!("{} -> {}", Printable(&path), Printable(&target))
                }
                Entry::HardLink { path, first, .. } => {
                    format!("{} = {}", Printable(&path), Printable(&first))
                }
                Entry::Excluded { path } => format!("- {}", Printable(&path)),
                Entry::Root { path } => format!("root {}", Printable(&path)),
                Entry::Warning(warning) => format!("! {warning}"),
            })
            .collect()
    }

    #[test]
    fn a_named_directory_keeps_its_name_unless_its_contents_are_meant() {
        let top = tempfile::tempdir().unwrap();
        let at = |name: &str| top.path().join(name);
        fs::create_dir_all(at("photos/b")).unwrap();
        fs::create_dir_all(at("photos/empty")).unwrap();
        fs::write(at("photos/b.txt"), "12").unwrap();
        fs::write(at("photos/b/x"), "123").unwrap();
        fs::create_dir(at("photos/.byway-partial")).unwrap();
        std::os::unix::fs::symlink("/nowhere", at("photos/link")).unwrap();
        std::os::unix::fs::symlink("photos", at("alias")).unwrap();
        let _socket = std::os::unix::net::UnixListener::bind(at("photos/sock")).unwrap();
        let contents = [
            "! .byway-partial: skipped, files of byway's own from earlier transfers",
            "b/",
            "b/x 3",
            "b.txt 2",
            "empty/",
            "link -> /nowhere",
            "! sock: skipped, neither file nor directory nor link",
        ];
        for path in ["photos/.", "photos/./", "alias/.", "photos/b/.."] {
            assert_eq!(walked(&[at(path)]), contents, "{path}");
        }
        for path in ["photos", "photos/", "alias", "alias//"] {
            let into_root = Walk::open(&[at(path)], &INTO_ROOT).unwrap();
            assert_eq!(walked_by(into_root), contents, "{path}");
            let named = walked(&[at(path)]);
            let name = path.trim_end_matches('/');
            let below = contents[1..].iter().map(|line| match line.strip_prefix("! ") {
                Some(line) => format!("! {name}/{line}"),
                None => format!("{name}/{line}"),
            });
            let expected = [format!("{name}/"), format!("{name}/.byway-partial/")];
            assert_eq!(named, expected.into_iter().chain(below).collect::<Vec<_>>(), "{path}");
        }
        let into_root = Walk::open(&[at("photos/b.txt"), at("photos/b")], &INTO_ROOT).unwrap();
        assert_eq!(walked_by(into_root), ["b.txt 2", "x 3"]);
    }

    #[test]
    fn a_named_link_is_followed_and_gives_its_name() {
        let top = tempfile::tempdir().unwrap();
        let at = |name: &str| top.path().join(name);
        fs::create_dir_all(at("data/2026")).unwrap();
        fs::write(at("data/2026/x"), "123").unwrap();
        let link = |target: &str, name: &str| std::os::unix::fs::symlink(target, at(name)).unwrap();
        link("data/2026/x", "latest");
        link("latest", "data/other");
        link("data/2026", "year");
        link("gone", "dangling");
        link("loop", "loop");
        link("/", "all");
        assert_eq!(walked(&[at("latest"), at("year")]), ["latest 3", "year/", "year/x 3"]);
        assert_eq!(walked(&[at("data")]), ["data/", "data/2026/", "data/2026/x 3", "data/other -> latest"]);
        let mut walk = Walk::open(&[at("year"), at("latest")], &SourceOptions::DEFAULT).unwrap();
        let mut texts = Vec::new();
        while let Some(entry) = walk.step() {
            if let Entry::File { path, start, .. } = entry {
                texts.push(io::read_to_string(walk.reopen(start, &path).unwrap()).unwrap());
            }
        }
        assert_eq!(texts, ["123", "123"]);
        assert!(matches!(
            Walk::open(&[at("dangling")], &SourceOptions::DEFAULT),
            Err(SourceError::NotFound(_))
        ));
        for path in ["loop", "all", "latest/"] {
            let refused = Walk::open(&[at(path)], &SourceOptions::DEFAULT);
            assert!(matches!(refused, Err(SourceError::Unreadable { .. })), "{path}");
        }
    }

    #[test]
    fn what_patterns_exclude_is_not_walked_and_what_was_named_is() {
        let top = tempfile::tempdir().unwrap();
        let at = |name: &str| top.path().join(name);
        fs::create_dir_all(at("tree/cache/deep")).unwrap();
        fs::create_dir_all(at("tree/tree")).unwrap();
        for file in ["tree/a.o", "tree/b", "tree/cache/c", "tree/tree/keep.o", "tree/tree/b"] {
            fs::write(at(file), "1").unwrap();
        }
        let mut selection = TreeSelection::default();
        for (pattern, excludes) in [("*.o", true), ("cache/", true), ("/b", true), ("keep.o", false)] {
            selection.filter.add(pattern.as_bytes(), excludes).unwrap();
        }
        let named = ["tree/", "- tree/a.o", "- tree/b", "- tree/cache", "tree/tree/", "tree/tree/b 1"];
        let named = [&named[..], &["tree/tree/keep.o 1"]].concat();
        assert_eq!(selected(&[at("tree")], selection.clone()), named);
        let contents = ["- a.o", "- b", "- cache", "tree/", "tree/b 1", "tree/keep.o 1"];
        assert_eq!(selected(&[at("tree/.")], selection.clone()), contents);
        assert_eq!(selected(&[at("tree/a.o")], selection), ["a.o 1"]);
    }

    #[test]
    fn of_a_list_each_path_is_walked_or_missed() {
        let top = tempfile::tempdir().unwrap();
        let at = |name: &str| top.path().join(name);
        fs::create_dir_all(at("tree/a/b/c")).unwrap();
        for file in ["tree/a/x", "tree/a/b/y", "tree/a/b/c/z", "tree/w"] {
            fs::write(at(file), "1").unwrap();
        }
        let mut listed = crate::tree_selection::ListedPaths::default();
        for path in ["a/b/c", "a/x", "gone", "w/below"] {
            listed.add(path.as_bytes()).unwrap();
        }
        let selection = TreeSelection { listed: Some(listed), ..TreeSelection::default() };
        let expected = ["tree/", "tree/a/", "tree/a/b/", "tree/a/b/c/", "tree/a/b/c/z 1", "tree/a/x 1"];
        let walked = selected(&[at("tree")], selection);
        assert_eq!(walked[..6], expected);
        assert!(walked[6].starts_with("! tree/gone: not sent, cannot be read (No such file"), "{walked:?}");
        assert!(walked[7].starts_with("! tree/w: not sent, cannot be read (Not a directory"), "{walked:?}");
        assert_eq!(walked.len(), 8);
    }

    #[test]
    fn of_two_files_that_would_arrive_under_one_name_the_first_is_sent() {
        let top = tempfile::tempdir().unwrap();
        let at = |name: &str| top.path().join(name);
        for directory in ["a/both", "b/both", "b/file", "both"] {
            fs::create_dir_all(at(directory)).unwrap();
        }
        for file in ["a/both/1", "a/both/2", "a/file", "b/both/2", "b/both/3", "b/file/x", "both/3"] {
            fs::write(at(file), "").unwrap();
        }
        let walked = selected(&[at("a/."), at("b/."), at("both")], TreeSelection::default());
        let taken = |path: &str| {
            format!("! {path}: not sent, one that was named before it arrives under the same name")
        };
        let expected = ["both/", "both/1 0", "both/2 0", "file 0"].map(String::from);
        assert_eq!(walked[..4], expected);
        let second = ["both/".into(), taken("both/2"), "both/3 0".into(), taken("file")];
        assert_eq!(walked[4..8], second);
        assert_eq!(walked[8..], ["both/".into(), taken("both/3")]);
    }

    #[test]
    fn names_that_cannot_be_sent_are_said_at_once() {
        let top = tempfile::tempdir().unwrap();
        let at = |name: &str| top.path().join(name);
        fs::create_dir_all(at("a")).unwrap();
        fs::write(at("a/x"), "").unwrap();
        fs::write(at("x"), "").unwrap();
        assert!(matches!(Walk::open(&[], &SourceOptions::DEFAULT), Err(SourceError::Nothing)));
        assert!(matches!(
            Walk::open(&[PathBuf::new()], &SourceOptions::DEFAULT),
            Err(SourceError::NotFound(_))
        ));
        assert!(matches!(Walk::open(&[at("gone")], &SourceOptions::DEFAULT), Err(SourceError::NotFound(_))));
        assert!(matches!(Walk::open(&[at("gone/")], &SourceOptions::DEFAULT), Err(SourceError::NotFound(_))));
        assert!(matches!(
            Walk::open(&[at("x/y")], &SourceOptions::DEFAULT),
            Err(SourceError::Unreadable { .. })
        ));
        assert!(matches!(
            Walk::open(&[at("x"), at("a/x")], &SourceOptions::DEFAULT),
            Err(SourceError::SameName(..))
        ));
    }
}
