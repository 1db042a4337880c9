//! The file of a source, and the note that tells of it.
//!
//! Others may move, empty or delete the file while the sink runs, as programs do that rotate logs.
//! Each write first looks whether the file still stands under its name.

use crate::checkpoint::{Checkpoint, SLOT_LEN};
use crate::endpoint::NAME_BOUND_CODE;
use crate::sink_plan::FileChange;
use crate::source_name::Name;
use byway_engine::handshake;
use byway_transfer::close::CloseCode;
use byway_transfer::identity::PublicKey;
use std::borrow::Cow;
use std::fs::{self, File, Metadata, OpenOptions};
use std::io::{self, ErrorKind, Read as _, Write as _};
use std::os::unix::fs::{FileExt as _, MetadataExt as _};
use std::path::{Path, PathBuf};

/// The directory of the notes, in the sink's directory.
pub const NOTES_DIRECTORY: &str = ".byway-sink";
/// Number of attempts to write a block whose file is emptied or deleted meanwhile.
const MAX_TRIES: usize = 8;

/// A source's request for its file.
#[derive(Clone, Debug)]
pub struct OpenRequest {
    /// The name of the source.
    pub name: Name,
    /// The public key of the source's host.
    pub key: handshake::PublicKey,
    /// Whether the operator allowed this key for the name. If so, it gets the name from any earlier
    /// owner.
    pub is_listed: bool,
    /// The identity of the source's run, which each process draws at random.
    pub run: [u8; 16],
    /// Whether each record of the source ends with a line feed.
    pub has_lines: bool,
}

/// Records in a row.
#[derive(Debug, Default)]
pub struct Block {
    /// The bytes of the records.
    pub bytes: Vec<u8>,
    /// The number of records in the block.
    pub records: u64,
    /// Number of numbers before or among the records that have no record.
    pub lost: u64,
}

/// A source's file at the sink, and the notes about it.
pub struct SourceFile {
    data: File,
    notes: File,
    checkpoint: Checkpoint,
    path: PathBuf,
    run: [u8; 16],
    /// Whether each record ends with a line feed.
    has_lines: bool,
    /// Whether written data is synced, so that it survives a loss of power.
    sync: bool,
    /// The change of the previous file, until it is reported.
    change: Option<FileChange>,
}

/// Why a file is not opened.
#[derive(Debug, PartialEq, Eq)]
pub struct OpenFault {
    /// The code with which the source's session is closed.
    pub code: u64,
    /// The reason, for the source.
    pub sentence: String,
    /// The reason for the sink's operator, if it differs.
    pub for_operator: Option<String>,
}

impl OpenFault {
    fn new(sentence: String) -> Self {
        Self { code: CloseCode::Failed.number(), sentence, for_operator: None }
    }

    fn other_key(asked: &OpenRequest, owner: [u8; 32]) -> Self {
        let (name, key) = (&asked.name, PublicKey(asked.key.0));
        Self {
            code: NAME_BOUND_CODE,
            sentence: name_is_bound(asked.name.as_str()),
            for_operator: Some(format!(
                "the host {key} asks for the name {name}, which is that of the host {}; to let it have the \
                 name, start the sink with --allow {name}={key}",
                PublicKey(owner)
            )),
        }
    }
}

/// The sentence for a source whose name belongs to another host's key.
pub fn name_is_bound(name: &str) -> String {
    format!(
        "the name {name} is that of another host's source: give another --name, or have the sink started with --allow \
         {name}=KEY, where KEY is what `byway id` prints here"
    )
}

/// The file that a sink finds at the path of a source.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Found {
    /// The file that the sink wrote.
    Own,
    /// There is no file, or it is empty. Earlier records are elsewhere, or lost.
    Empty,
    /// A file of which the end is missing.
    Short,
    /// A file that is not the source's.
    Foreign,
}

/// What stands under the name. `file`: bytes of the file, and its number in its file system;
/// `None`: there is none. `has_tail`: whether it has, where the note says, the last bytes that were
/// written.
fn found(note: Checkpoint, file: Option<(u64, u64)>, has_tail: impl FnOnce() -> bool) -> Found {
    let is_own = match file {
        None | Some((0, _)) if note.bytes > 0 => return Found::Empty,
        None => true,
        Some((length, _)) if length < note.bytes => return Found::Short,
        // Of a file whose first block was being written, the sink knows the number alone.
        Some((length, inode)) if length > 0 && note.bytes == 0 => inode == note.inode,
        _ => has_tail(),
    };
    if is_own { Found::Own } else { Found::Foreign }
}

impl SourceFile {
    /// Opens the file that `asked` names in `directory`. The first key that asks for a name owns
    /// it. `sync`: whether written data survive a loss of power.
    pub fn open(directory: &Path, asked: &OpenRequest, sync: bool) -> Result<Self, OpenFault> {
        let name = asked.name.as_str();
        let (path, notes_path) = (directory.join(name), directory.join(NOTES_DIRECTORY).join(name));
        let cannot = |verb: &str, path: &Path, error: io::Error| {
            OpenFault::new(format!("cannot {verb} {}: {error}", path.display()))
        };
        let said = match File::open(&notes_path) {
            Ok(file) => {
                let mut said = Vec::new();
                let read = file.take(2 * SLOT_LEN as u64).read_to_end(&mut said);
                read.map_err(|error| cannot("read", &notes_path, error))?;
                said
            }
            Err(error) if error.kind() == ErrorKind::NotFound => Vec::new(),
            Err(error) => return Err(cannot("read", &notes_path, error)),
        };
        let note = Checkpoint::read(&said).ok_or_else(|| {
            OpenFault::new(format!(
                "{} is damaged: move it and {} away to begin anew",
                notes_path.display(),
                path.display()
            ))
        })?;
        let owner = note.key.filter(|owner| *owner != asked.key.0 && !asked.is_listed);
        if let Some(owner) = owner {
            return Err(OpenFault::other_key(asked, owner));
        }
        let standing = stat(&path).map_err(|error| cannot("read", &path, error))?;
        let length = standing.as_ref().map(Metadata::len);
        let file_there = standing.as_ref().map(|standing| (standing.len(), standing.ino()));
        let has_tail = || File::open(&path).is_ok_and(|file| note.tail.ends(&file, note.bytes));
        let found = found(note, file_there, has_tail);
        if found == Found::Short || found == Found::Foreign {
            return Err(OpenFault::new(refusal(&path, found, length, note)));
        }
        let data = file(&path, standing.is_none()).map_err(|error| cannot("open", &path, error))?;
        let inode = data.metadata().map_err(|error| cannot("read", &path, error))?.ino();
        let now = if found == Found::Empty { note.of_empty_file(inode) } else { note };
        let now = Checkpoint { key: Some(asked.key.0), inode, ..now };
        let mut options = OpenOptions::new();
        let notes = options.read(true).write(true).create(true).truncate(false).open(&notes_path);
        let notes = notes.map_err(|error| cannot("open", &notes_path, error))?;
        let change = match (found, length) {
            (Found::Empty, None) => Some(FileChange::Missing),
            (Found::Empty, Some(_)) => Some(FileChange::Emptied),
            _ => None,
        };
        let (run, has_lines) = (asked.run, asked.has_lines);
        let mut open = Self { data, notes, checkpoint: note, path, run, has_lines, sync, change };
        let begun = open.data.set_len(now.bytes).and_then(|()| {
            if said.is_empty() || standing.is_none() {
                open.sync_directories(directory)?;
            }
            if now == note { Ok(()) } else { open.keep(now) }
        });
        begun.map_err(|error| cannot("write", &open.path, error))?;
        Ok(open)
    }

    /// The latest note about the file.
    pub const fn note(&self) -> Checkpoint {
        self.checkpoint
    }

    /// Returns the path of the file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Returns the change of the previous file, if it was not reported yet.
    pub const fn take_change(&mut self) -> Option<FileChange> {
        self.change.take()
    }

    /// Checks that the file is still at its path. If it was moved, deleted or emptied, begins a new
    /// one.
    pub fn look(&mut self) -> io::Result<()> {
        let (own, standing) = (self.data.metadata()?, stat(&self.path)?);
        let is_same = |other: &Metadata| (other.dev(), other.ino()) == (own.dev(), own.ino());
        let change = match &standing {
            Some(other) if is_same(other) => match own.len() {
                0 if self.checkpoint.bytes > 0 => FileChange::Emptied,
                length if length < self.checkpoint.bytes => {
                    let refusal = refusal(&self.path, Found::Short, Some(length), self.checkpoint);
                    return Err(io::Error::other(refusal));
                }
                // A block that was cut short: the disk was full.
                length if length > self.checkpoint.bytes => return self.data.set_len(self.checkpoint.bytes),
                _ => return Ok(()),
            },
            Some(other) if other.len() > 0 => {
                let refusal = refusal(&self.path, Found::Foreign, Some(other.len()), self.checkpoint);
                return Err(io::Error::other(refusal));
            }
            _ if own.nlink() == 0 => FileChange::Deleted,
            _ => FileChange::Moved,
        };
        if change != FileChange::Emptied {
            self.data = file(&self.path, standing.is_none())?;
            if let Some(directory) = self.path.parent().map(Path::to_owned) {
                self.sync_directories(&directory)?;
            }
        }
        self.change = Some(change);
        self.keep(self.checkpoint.of_empty_file(self.data.metadata()?.ino()))
    }

    /// Appends a block, and notes that.
    pub fn write(&mut self, block: &Block) -> io::Result<()> {
        let too_many = || io::Error::other("its numbers are used up");
        let numbers = block.records.checked_add(block.lost);
        let next =
            numbers.and_then(|numbers| self.checkpoint.next.checked_add(numbers)).ok_or_else(too_many)?;
        let lost = self.checkpoint.lost.checked_add(block.lost).ok_or_else(too_many)?;
        for _ in 0..MAX_TRIES {
            self.look()?;
            let before = self.checkpoint;
            let bytes = self.with_line_end(&block.bytes);
            (&self.data).write_all(&bytes)?;
            if self.sync {
                self.data.sync_data()?;
            }
            // What was written is known to be in a file before it counts: the file may have been
            // deleted or emptied since the look.
            let (own, added) = (self.data.metadata()?, bytes.len() as u64);
            let at = match own.len().checked_sub(added) {
                _ if own.nlink() == 0 => continue,
                Some(at) if at == before.bytes => at,
                Some(0) if bytes.len() == block.bytes.len() => {
                    self.change = Some(FileChange::Emptied);
                    0
                }
                Some(at) if at > 0 => return Err(io::Error::other("another program writes to it")),
                // It holds a part of the block, or a line end that no line is before.
                Some(_) | None => {
                    self.data.set_len(0)?;
                    continue;
                }
            };
            let note = Checkpoint {
                next,
                lost,
                bytes: at.checked_add(added).ok_or_else(too_many)?,
                runs: before.runs.written_by(self.run, before.next),
                tail: before.tail.followed_by(&bytes),
                ..before
            };
            return self.keep(note);
        }
        Err(io::Error::other("it is emptied or deleted again and again"))
    }

    /// The bytes to append. A last line that has no end gets one before the next line begins.
    fn with_line_end<'a>(&self, bytes: &'a [u8]) -> Cow<'a, [u8]> {
        let is_open =
            self.checkpoint.bytes > 0 && self.checkpoint.tail.last().is_some_and(|last| last != b'\n');
        if self.has_lines && is_open && !bytes.is_empty() {
            Cow::Owned([b"\n", bytes].concat())
        } else {
            Cow::Borrowed(bytes)
        }
    }

    /// Writes a note, with the next generation number.
    fn keep(&mut self, note: Checkpoint) -> io::Result<()> {
        let generation = self.checkpoint.generation.checked_add(1);
        let generation = generation.ok_or_else(|| io::Error::other("its notes are used up"))?;
        let note = Checkpoint { generation, ..note };
        let (slot, at) = note.to_slot();
        self.notes.write_all_at(&slot, at)?;
        if self.sync {
            self.notes.sync_data()?;
        }
        self.checkpoint = note;
        Ok(())
    }

    /// Syncs the directories, so that a new file survives a loss of power.
    fn sync_directories(&self, directory: &Path) -> io::Result<()> {
        if self.sync {
            File::open(directory)?.sync_all()?;
            File::open(directory.join(NOTES_DIRECTORY))?.sync_all()?;
        }
        Ok(())
    }
}

/// The metadata of the file at this path. `None`: there is no file.
fn stat(path: &Path) -> io::Result<Option<Metadata>> {
    match fs::metadata(path) {
        Ok(standing) if standing.is_file() => Ok(Some(standing)),
        Ok(_) => Err(io::Error::other("it is no file")),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

/// Opens a file to append to. A new one is not made where a link leads.
fn file(path: &Path, is_new: bool) -> io::Result<File> {
    OpenOptions::new().append(true).create_new(is_new).open(path)
}

/// The sentence that says why the sink does not write to the file at this path.
fn refusal(path: &Path, found: Found, length: Option<u64>, note: Checkpoint) -> String {
    let path = path.display();
    match found {
        Found::Short => format!(
            "{path} has {} bytes, and {} were written: put it back, or move it away to begin a new file",
            length.unwrap_or_default(),
            note.bytes
        ),
        _ => format!("{path} is there already, and is no file of this sink: move it away"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::MAX_NUMBER;
    use crate::sink_files::prepare;
    use byway_engine::handshake;
    use std::fs;
    use tempfile::TempDir;

    const RUN: [u8; 16] = [7; 16];

    fn block(text: &str, lost: u64) -> Block {
        Block { bytes: text.into(), records: text.lines().count() as u64, lost }
    }

    fn asked(name: &str, key: u8) -> OpenRequest {
        let key = handshake::PublicKey([key; 32]);
        OpenRequest { name: name.parse().unwrap(), key, is_listed: false, run: RUN, has_lines: true }
    }

    /// A sink's directory, with the file of a source.
    struct Host(TempDir);

    impl Host {
        fn new() -> Self {
            let directory = tempfile::tempdir().unwrap();
            prepare(directory.path()).unwrap();
            Self(directory)
        }

        fn path(&self, name: &str) -> PathBuf {
            self.0.path().join(name)
        }

        fn open(&self) -> Result<SourceFile, OpenFault> {
            SourceFile::open(self.0.path(), &asked("radar7", 1), true)
        }

        #[track_caller]
        fn has(&self, name: &str, text: &str) {
            assert_eq!(fs::read_to_string(self.path(name)).unwrap(), text, "{name}");
        }
    }

    #[test]
    fn a_file_goes_on_behind_what_is_noted() {
        let host = Host::new();
        let mut file = host.open().unwrap();
        file.write(&block("one\ntwo\n", 0)).unwrap();
        file.write(&block("five\n", 2)).unwrap();
        // The sink was killed while it wrote.
        fs::write(host.path("radar7"), "one\ntwo\nfive\nsi").unwrap();
        let mut file = host.open().unwrap();
        assert_eq!((file.checkpoint.next, file.checkpoint.bytes, file.checkpoint.lost), (5, 13, 2));
        assert_eq!((file.checkpoint.runs.last, file.checkpoint.runs.last_from), (RUN, 0));
        file.write(&block("six\n", 0)).unwrap();
        host.has("radar7", "one\ntwo\nfive\nsix\n");
        // It was killed while it wrote the first block of all.
        let first = SourceFile::open(host.0.path(), &asked("first", 1), false).unwrap();
        fs::write(host.path("first"), "on").unwrap();
        drop(first);
        SourceFile::open(host.0.path(), &asked("first", 1), false)
            .unwrap()
            .write(&block("one\n", 0))
            .unwrap();
        host.has("first", "one\n");
    }

    #[test]
    fn what_the_sink_did_not_write_stays_as_it_is() {
        let host = Host::new();
        let refused = |words: &str| {
            let before = fs::read(host.path("radar7")).unwrap();
            let fault = host.open().err().unwrap();
            assert!(fault.sentence.contains(words), "{fault:?}");
            assert_eq!(fs::read(host.path("radar7")).unwrap(), before);
        };
        fs::write(host.path("radar7"), "mine").unwrap();
        refused("is there already");
        fs::remove_file(host.path("radar7")).unwrap();
        host.open().unwrap().write(&block("one\ntwo\n", 0)).unwrap();
        fs::write(host.path("radar7"), "one\n").unwrap();
        refused("has 4 bytes, and 8 were written");
        fs::write(host.path("radar7"), "mine and longer").unwrap();
        refused("is no file of this sink");
        // A copy that was put back is as good.
        fs::remove_file(host.path("radar7")).unwrap();
        fs::write(host.path("radar7"), "one\ntwo\n").unwrap();
        let mut file = host.open().unwrap();
        // An older file that is put in the place of an empty one is not emptied.
        fs::rename(host.path("radar7"), host.path("radar7.1")).unwrap();
        file.look().unwrap();
        drop(file);
        fs::rename(host.path("radar7.1"), host.path("radar7")).unwrap();
        refused("is no file of this sink");
        // What is made where a link leads is no file of the sink's.
        fs::remove_file(host.path("radar7")).unwrap();
        std::os::unix::fs::symlink(host.path("elsewhere"), host.path("radar7")).unwrap();
        assert!(host.open().is_err() && !host.path("elsewhere").exists());
    }

    #[test]
    fn a_file_that_is_moved_emptied_or_deleted_is_followed_by_a_new_one() {
        let host = Host::new();
        let mut file = host.open().unwrap();
        let path = host.path("radar7");
        file.write(&block("1\n2\n", 0)).unwrap();
        assert_eq!(file.take_change(), None);
        fs::rename(&path, host.path("moved")).unwrap();
        // Also while no record comes.
        file.look().unwrap();
        host.has("radar7", "");
        assert_eq!((file.take_change(), file.checkpoint.bytes), (Some(FileChange::Moved), 0));
        file.write(&block("3\n", 0)).unwrap();
        fs::rename(&path, host.path("moved2")).unwrap();
        fs::write(&path, "").unwrap();
        file.write(&block("4\n", 0)).unwrap();
        assert_eq!(file.take_change(), Some(FileChange::Moved));
        fs::copy(&path, host.path("copied")).unwrap();
        fs::OpenOptions::new().write(true).truncate(true).open(&path).unwrap();
        file.write(&block("5\n6\n", 0)).unwrap();
        assert_eq!(file.take_change(), Some(FileChange::Emptied));
        host.has("radar7", "5\n6\n");
        fs::remove_file(&path).unwrap();
        file.write(&block("7\n", 0)).unwrap();
        assert_eq!((file.take_change(), file.checkpoint.next), (Some(FileChange::Deleted), 7));
        for (name, text) in [("moved", "1\n2\n"), ("moved2", "3\n"), ("copied", "4\n"), ("radar7", "7\n")] {
            host.has(name, text);
        }
        // While a file stands there that is not the sink's, nothing is written.
        fs::rename(&path, host.path("moved3")).unwrap();
        fs::write(&path, "mine").unwrap();
        assert!(file.write(&block("8\n", 0)).unwrap_err().to_string().contains("no file of this sink"));
        fs::remove_file(&path).unwrap();
        file.write(&block("8\n", 0)).unwrap();
        // Nor to one of which a part is missing.
        file.write(&block("9\n", 0)).unwrap();
        fs::OpenOptions::new().write(true).open(&path).unwrap().set_len(2).unwrap();
        assert!(file.write(&block("10\n", 0)).unwrap_err().to_string().contains("has 2 bytes, and 4 were"));
        host.has("radar7", "8\n");
        host.has("moved3", "7\n");
    }

    #[test]
    fn files_may_be_moved_emptied_or_deleted_while_no_sink_runs() {
        let host = Host::new();
        let mut file = host.open().unwrap();
        file.write(&block("1\n2\n", 0)).unwrap();
        let away = |how: &dyn Fn(&Path), change: FileChange| {
            how(&host.path("radar7"));
            let mut file = host.open().unwrap();
            assert_eq!((file.take_change(), file.checkpoint.bytes), (Some(change), 0));
            let number = file.checkpoint.next + 1;
            file.write(&block(&format!("{number}\n"), 0)).unwrap();
            host.has("radar7", &format!("{number}\n"));
            assert_eq!(host.open().unwrap().take_change(), None);
        };
        away(&|path| fs::rename(path, host.path("moved")).unwrap(), FileChange::Missing);
        away(&|path| fs::remove_file(path).unwrap(), FileChange::Missing);
        away(&|path| fs::write(path, "").unwrap(), FileChange::Emptied);
        assert_eq!(host.open().unwrap().checkpoint.next, 5);
        host.has("moved", "1\n2\n");
    }

    #[test]
    fn a_last_line_without_end_gets_one_before_the_next() {
        let host = Host::new();
        let mut file = host.open().unwrap();
        file.write(&block("one\ntwo", 0)).unwrap();
        host.has("radar7", "one\ntwo");
        file.write(&block("", 3)).unwrap();
        let mut file = host.open().unwrap();
        host.has("radar7", "one\ntwo");
        file.write(&block("three\n", 0)).unwrap();
        host.has("radar7", "one\ntwo\nthree\n");
        // Records that are no lines follow each other as they come.
        let request = OpenRequest { has_lines: false, ..asked("raw", 1) };
        let mut file = SourceFile::open(host.0.path(), &request, false).unwrap();
        file.write(&block("ab", 0)).unwrap();
        file.write(&block("cd", 0)).unwrap();
        host.has("raw", "abcd");
    }

    #[test]
    fn a_file_that_is_rotated_in_mid_line_is_followed_by_one_that_begins_with_a_line() {
        let host = Host::new();
        let mut file = host.open().unwrap();
        let path = host.path("radar7");
        let away: [&dyn Fn(); 4] = [
            &|| fs::rename(&path, host.path("moved")).unwrap(),
            &|| fs::remove_file(&path).unwrap(),
            &|| fs::OpenOptions::new().write(true).truncate(true).open(&path).map(drop).unwrap(),
            // The name becomes a link to the file of the day.
            &|| {
                fs::rename(&path, host.path("day1")).unwrap();
                fs::write(host.path("day2"), "").unwrap();
                std::os::unix::fs::symlink("day2", &path).unwrap();
            },
        ];
        for (number, away) in away.iter().enumerate() {
            file.write(&block("cut of", 0)).unwrap();
            away();
            file.write(&block("next\n", 0)).unwrap();
            host.has("radar7", "next\n");
            assert!(file.take_change().is_some(), "{number}");
        }
        host.has("moved", "cut of");
        host.has("day1", "next\ncut of");
        host.has("day2", "next\n");
        assert_eq!(file.checkpoint.next, 8);
        // A link that leads nowhere is another's affair, and nothing is made there.
        fs::remove_file(&path).unwrap();
        std::os::unix::fs::symlink("day3", &path).unwrap();
        assert!(file.write(&block("held back\n", 0)).is_err() && !host.path("day3").exists());
        fs::remove_file(&path).unwrap();
        file.write(&block("held back\n", 0)).unwrap();
        host.has("radar7", "held back\n");
    }

    #[test]
    fn a_name_is_that_of_the_key_that_used_it_first_or_that_is_listed() {
        let host = Host::new();
        let open = |request: &OpenRequest| SourceFile::open(host.0.path(), request, false);
        // It has the name from the first session on, also if nothing was written in it.
        drop(open(&asked("radar7", 1)).unwrap());
        let fault = open(&asked("radar7", 2)).err().unwrap();
        assert!(
            fault.code == NAME_BOUND_CODE && fault.sentence.contains("the name radar7 is that of"),
            "{fault:?}"
        );
        assert!(fault.for_operator.unwrap().contains(&format!("--allow radar7={}", PublicKey([2; 32]))));
        drop(open(&asked("radar7", 1)).unwrap());
        drop(open(&OpenRequest { is_listed: true, ..asked("radar7", 2) }).unwrap());
        assert_eq!(open(&asked("radar7", 1)).err().unwrap().code, NAME_BOUND_CODE, "the name has moved");
        drop(open(&asked("radar8", 1)).unwrap());
    }

    #[test]
    fn numbers_that_do_not_fit_are_refused_and_nothing_is_written() {
        let host = Host::new();
        let mut file = host.open().unwrap();
        file.write(&block("one\n", MAX_NUMBER - 1)).unwrap();
        let before = file.note();
        for lost in [u64::MAX - before.next, u64::MAX] {
            let refused = file.write(&block("two\n", lost)).unwrap_err();
            assert!(refused.to_string().contains("used up"), "{refused}");
        }
        assert_eq!(file.note(), before);
        host.has("radar7", "one\n");
    }
}
