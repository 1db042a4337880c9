//! Whether two trees are the same. It compares names, types, contents, modes, times to the
//! nanosecond, and targets of links.

use crate::manifest::Metadata;
use crate::name::Printable;
use crate::source_options::SourceOptions;
use crate::tree_walk::{Entry, Walk, Warning, to_path};
use std::cmp::Ordering;
use std::fmt;
use std::fs::File;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// One way in which two trees differ.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Difference {
    /// The path of the entry, from the top of both trees.
    pub path: PathBuf,
    /// The difference, as the end of a sentence.
    pub what: String,
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", Printable(self.path.as_os_str().as_bytes()), self.what)
    }
}

/// Compares what the directories `a` and `b` contain, not their own modes and times. A file is
/// compared itself, with its name. Ignores FIFOs, sockets, devices and partial files in
/// directories, which are never sent. An unreadable entry is a difference.
///
/// # Errors
/// `a` or `b` cannot be opened.
pub fn compare(a: &Path, b: &Path) -> io::Result<Vec<Difference>> {
    let (mut left, mut right) = (TreeSide::open(a)?, TreeSide::open(b)?);
    let mut differences = Vec::new();
    let mut pair = (left.next(&mut differences), right.next(&mut differences));
    loop {
        let order = match (&pair.0, &pair.1) {
            (None, None) => return Ok(differences),
            (Some(_), None) => Ordering::Less,
            (None, Some(_)) => Ordering::Greater,
            (Some(one), Some(two)) => one.order(two),
        };
        match order {
            Ordering::Less => {
                let only = pair.0.take();
                differences.extend(only.map(|entry| entry.difference("only in the first".to_owned())));
            }
            Ordering::Greater => {
                let only = pair.1.take();
                differences.extend(only.map(|entry| entry.difference("only in the second".to_owned())));
            }
            Ordering::Equal => {
                if let (Some(one), Some(two)) = (pair.0.take(), pair.1.take()) {
                    differences.extend(one.against(two));
                }
            }
        }
        if pair.0.is_none() {
            pair.0 = left.next(&mut differences);
        }
        if pair.1.is_none() {
            pair.1 = right.next(&mut differences);
        }
    }
}

struct TreeSide(Walk);

impl TreeSide {
    fn open(path: &Path) -> io::Result<Self> {
        let start = if path.is_dir() { path.join(".") } else { path.to_owned() };
        Walk::open(&[start], &SourceOptions::DEFAULT).map(Self).map_err(io::Error::other)
    }

    fn next(&mut self, differences: &mut Vec<Difference>) -> Option<TreeItem> {
        loop {
            let (path, what) = match self.0.step()? {
                Entry::Warning(Warning { path, kind }) => {
                    if kind.is_loss() {
                        let what = format!("cannot be compared ({kind:?})");
                        differences.push(Difference { path, what });
                    }
                    continue;
                }
                Entry::Directory { path, metadata } => (path, ItemContent::Directory(metadata)),
                // This walk opens files, and was told nothing of patterns, links and roots.
                Entry::File { file: None, .. }
                | Entry::Excluded { .. }
                | Entry::HardLink { .. }
                | Entry::Root { .. } => continue,
                Entry::File { path, status, file: Some(file), .. } => {
                    (path, ItemContent::File(status.size, status.metadata, file))
                }
                Entry::Symlink { path, mtime, target } => {
                    (path, ItemContent::Symlink(Metadata { mode: 0, mtime }, target))
                }
            };
            return Some(TreeItem { path, what });
        }
    }
}

struct TreeItem {
    path: Vec<u8>,
    what: ItemContent,
}

enum ItemContent {
    Directory(Metadata),
    File(u64, Metadata, File),
    Symlink(Metadata, Vec<u8>),
}

impl TreeItem {
    /// The order of the walk.
    fn order(&self, other: &Self) -> Ordering {
        let components =
            |path: &'_ [u8]| path.split(|byte| *byte == b'/').map(<[u8]>::to_vec).collect::<Vec<_>>();
        components(&self.path).cmp(&components(&other.path))
    }

    fn difference(self, what: String) -> Difference {
        Difference { path: to_path(self.path), what }
    }

    /// Every difference between two entries of one name.
    fn against(self, other: Self) -> Vec<Difference> {
        let mut found = Vec::new();
        let (one, two) = match (&self.what, &other.what) {
            (ItemContent::Directory(one), ItemContent::Directory(two)) => (one, two),
            (ItemContent::File(size, one, file), ItemContent::File(other_size, two, other_file)) => {
                if size != other_size {
                    found.push(format!("{size} bytes, and {other_size} in the second"));
                } else {
                    match (hash(file), hash(other_file)) {
                        (Ok(one), Ok(two)) if one == two => {}
                        (Ok(_), Ok(_)) => found.push("other contents".to_owned()),
                        (Err(error), _) | (_, Err(error)) => found.push(format!("cannot be read ({error})")),
                    }
                }
                (one, two)
            }
            (ItemContent::Symlink(one, target), ItemContent::Symlink(two, other_target)) => {
                if target != other_target {
                    found.push(format!(
                        "points to {}, and {} in the second",
                        Printable(target),
                        Printable(other_target)
                    ));
                }
                (one, two)
            }
            _ => return vec![self.difference("another type of file".to_owned())],
        };
        if one.mode != two.mode {
            found.push(format!("mode {:o}, and {:o} in the second", one.mode, two.mode));
        }
        if one.mtime != two.mtime {
            found.push("another time of modification".to_owned());
        }
        let path = to_path(self.path);
        found.into_iter().map(|what| Difference { path: path.clone(), what }).collect()
    }
}

fn hash(mut file: &File) -> io::Result<blake3::Hash> {
    let mut hasher = blake3::Hasher::new();
    io::copy(&mut file, &mut hasher)?;
    Ok(hasher.finalize())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::os::unix::fs::{PermissionsExt, symlink};

    #[test]
    fn files_are_compared_by_name_and_contents() {
        let [one, two] = [0, 1].map(|_| tempfile::tempdir().unwrap());
        let [first, second] = [&one, &two].map(|top| top.path().join("file"));
        fs::write(&first, "same").unwrap();
        fs::copy(&first, &second).unwrap();
        let time = fs::metadata(&first).unwrap().modified().unwrap();
        fs::File::options().write(true).open(&second).unwrap().set_modified(time).unwrap();
        assert_eq!(compare(&first, &second).unwrap(), []);
        fs::write(&second, "SAME").unwrap();
        assert!(compare(&first, &second).unwrap()[0].to_string().starts_with("file: other contents"));
        assert!(compare(&first, &two.path().join("none")).is_err());
    }

    #[test]
    fn every_kind_of_difference_is_found() {
        let [one, two] = [0, 1].map(|_| {
            let top = tempfile::tempdir().unwrap();
            crate::generate(top.path(), 9, 50_000).unwrap();
            top
        });
        let differences = || -> Vec<String> {
            compare(one.path(), two.path()).unwrap().iter().map(ToString::to_string).collect()
        };
        assert!(differences().is_empty());
        let at = |name: &str| two.path().join(name);
        fs::write(at("deep.x"), "").unwrap();
        fs::remove_dir(at("empty-directory")).unwrap();
        fs::write(at("empty-file"), "1").unwrap();
        fs::set_permissions(at("program"), fs::Permissions::from_mode(0o700)).unwrap();
        fs::remove_file(at("link-to-file")).unwrap();
        symlink("elsewhere", at("link-to-file")).unwrap();
        fs::remove_file(at("read-only")).unwrap();
        fs::create_dir(at("read-only")).unwrap();
        let big = fs::read(at("large/000/00002.bin")).unwrap();
        fs::write(at("large/000/00002.bin"), vec![7; big.len()]).unwrap();
        let found = differences().join("\n");
        for line in [
            "deep.x: only in the second",
            "empty-directory: only in the first",
            "empty-file: 0 bytes, and 1 in the second",
            "empty-file: another time of modification",
            "program: mode 755, and 700 in the second",
            "link-to-file: points to program, and elsewhere in the second",
            "read-only: another type of file",
            "large/000/00002.bin: other contents",
        ] {
            assert!(found.contains(line), "{line} in\n{found}");
        }
    }
}
