//! A tree of mixed files, the same for the same seed: for tests and demonstrations.

use crate::contained_dir::times;
use crate::manifest::{Counts, Timestamp};
use byway_wire::seeded_random::Random;
use rustix::fs::{AtFlags, CWD};
use std::ffi::OsStr;
use std::fs::{self, File, Permissions};
use std::io::{self, BufWriter, Write};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};

/// The numbers of files, directories and bytes in the tree that [`generate`] made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Generated {
    /// The counts of the tree, without its top directory.
    pub counts: Counts,
}

/// The largest small file in bytes. Most files of the tree are small.
const MAX_SMALL_LEN: u64 = 8 << 10;
/// Bytes of the largest medium file.
const MAX_MEDIUM_LEN: u64 = 1 << 20;
/// Large files, which have most of the bytes.
const LARGE_FILE_COUNT: u64 = 3;
/// The number of files in one directory.
const FILES_PER_DIRECTORY: u64 = 50;
/// Small files at most, however large the tree: beyond, their bytes go to the medium ones.
const MAX_SMALL_FILES: u64 = 2_000;

struct TreeMaker {
    top: PathBuf,
    random: Random,
    counts: Counts,
    /// Directories with their modes, which are set last, with their times.
    directories: Vec<(PathBuf, u32)>,
}

/// Makes files of `total_bytes` in all, in `directory`, which should be empty or missing. Small
/// files hold at most a tenth, medium files three tenths, three large files the rest.
///
/// # Errors
/// A file or directory cannot be made.
pub fn generate(directory: &Path, seed: u64, total_bytes: u64) -> io::Result<Generated> {
    fs::create_dir_all(directory)?;
    let mut maker = TreeMaker {
        top: directory.to_owned(),
        random: Random::new(seed),
        counts: Counts::default(),
        directories: Vec::new(),
    };
    maker.oddities()?;
    let mut left = total_bytes;
    let mut small = (total_bytes / 10).min(MAX_SMALL_FILES * MAX_SMALL_LEN / 2);
    let mut index = 0;
    while small > 0 && index < MAX_SMALL_FILES {
        let size = (1 + maker.below(MAX_SMALL_LEN)).min(small);
        maker.numbered("small", index, size)?;
        (small, left, index) = (small - size, left - size, index + 1);
    }
    let mut medium = (total_bytes / 10 * 3).min(left);
    index = 0;
    while medium > 0 {
        let size = (MAX_SMALL_LEN + maker.below(MAX_MEDIUM_LEN)).min(medium);
        maker.numbered("medium", index, size)?;
        (medium, left, index) = (medium - size, left - size, index + 1);
    }
    for index in 0..LARGE_FILE_COUNT {
        let size = if index + 1 == LARGE_FILE_COUNT { left } else { left / 2 };
        maker.numbered("large", index, size)?;
        left -= size;
    }
    maker.finish()
}

impl TreeMaker {
    /// A number below `bound`, which is small beside 2^64, so that the bias is none to speak of.
    const fn below(&mut self, bound: u64) -> u64 {
        self.random.bits() % bound
    }

    /// Makes unusual entries, such as an empty file, an empty directory, a dangling link, a deep
    /// path, and a name that is not UTF-8.
    fn oddities(&mut self) -> io::Result<()> {
        self.directory("empty-directory", 0o700)?;
        self.file(Path::new("empty-file"), 0, 0o644)?;
        self.file(Path::new(OsStr::from_bytes(b"not-utf8-\xff\xfe")), 0, 0o600)?;
        self.file(Path::new("name with \"quotes\" and\ttab"), 0, 0o640)?;
        self.file(Path::new("read-only"), 0, 0o444)?;
        self.file(Path::new("program"), 0, 0o755)?;
        let mut deep = PathBuf::from("deep");
        self.directory(&deep, 0o755)?;
        for level in 0..12 {
            deep.push(format!("level-{level}"));
            self.directory(&deep, 0o755)?;
        }
        self.file(&deep.join("bottom"), 0, 0o644)?;
        self.directory("locked", 0o555)?;
        self.link("link-to-file", "program")?;
        self.link("link-to-directory", "deep/level-0")?;
        self.link("link-to-nowhere", "/nonexistent/../gone")
    }

    /// Makes file number `index` of a kind, in the present directory of that kind.
    fn numbered(&mut self, kind: &str, index: u64, size: u64) -> io::Result<()> {
        if index == 0 {
            self.directory(kind, 0o755)?;
        }
        let directory = PathBuf::from(format!("{kind}/{:03}", index / FILES_PER_DIRECTORY));
        if index.is_multiple_of(FILES_PER_DIRECTORY) {
            self.directory(&directory, 0o750)?;
        }
        self.file(&directory.join(format!("{index:05}.bin")), size, 0o644)
    }

    fn directory(&mut self, path: impl AsRef<Path>, mode: u32) -> io::Result<()> {
        let path = self.top.join(path);
        fs::create_dir(&path)?;
        self.counts.directories += 1;
        self.directories.push((path, mode));
        Ok(())
    }

    fn file(&mut self, path: &Path, size: u64, mode: u32) -> io::Result<()> {
        let file = File::create_new(self.top.join(path))?;
        let mut writer = BufWriter::with_capacity(1 << 16, &file);
        let mut left = size;
        while left > 0 {
            let word = self.random.bits().to_le_bytes();
            let take = left.min(8);
            writer.write_all(word.get(..take as usize).unwrap_or_default())?;
            left -= take;
        }
        writer.flush()?;
        drop(writer);
        file.set_permissions(Permissions::from_mode(mode))?;
        rustix::fs::futimens(&file, &times(self.time()))?;
        self.counts.files += 1;
        self.counts.bytes += size;
        Ok(())
    }

    fn link(&mut self, path: &str, target: &str) -> io::Result<()> {
        let path = self.top.join(path);
        symlink(target, &path)?;
        rustix::fs::utimensat(CWD, &path, &times(self.time()), AtFlags::SYMLINK_NOFOLLOW)?;
        self.counts.symlinks += 1;
        Ok(())
    }

    /// Some time between 1965 and 2022, to the nanosecond.
    fn time(&mut self) -> Timestamp {
        let seconds = self.below(1_800_000_000) as i64 - 150_000_000;
        Timestamp { seconds, nanoseconds: self.below(1_000_000_000) as u32 }
    }

    /// Sets the modes and times of directories, inner ones first.
    fn finish(mut self) -> io::Result<Generated> {
        while let Some((path, mode)) = self.directories.pop() {
            let time = self.time();
            fs::set_permissions(&path, Permissions::from_mode(mode))?;
            rustix::fs::utimensat(CWD, &path, &times(time), AtFlags::empty())?;
        }
        Ok(Generated { counts: self.counts })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_seed_makes_the_same_tree() {
        let [one, two, other] = [1, 1, 2].map(|seed| {
            let top = tempfile::tempdir().unwrap();
            let made = generate(top.path(), seed, 300_001).unwrap();
            assert_eq!(made.counts.bytes, 300_001);
            (top, made)
        });
        assert_eq!(one.1, two.1);
        assert_eq!(crate::compare(one.0.path(), two.0.path()).unwrap(), []);
        assert_ne!(crate::compare(one.0.path(), other.0.path()).unwrap(), []);
    }

    #[test]
    fn a_tree_without_bytes_still_has_its_oddities() {
        let top = tempfile::tempdir().unwrap();
        let made = generate(top.path(), 1, 0).unwrap();
        assert_eq!((made.counts.bytes, made.counts.symlinks), (0, 3));
        assert!(top.path().join(OsStr::from_bytes(b"not-utf8-\xff\xfe")).exists());
    }
}
