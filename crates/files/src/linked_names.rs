//! Which files were met before under another name. Only files with names still to come are
//! remembered.

use rustix::fs::Stat;
use std::collections::BTreeMap;

/// The files with names still to come, by device and inode.
#[derive(Debug, Default)]
pub(crate) struct LinkedNames(BTreeMap<(u64, u64), LinkedFile>);

#[derive(Debug)]
struct LinkedFile {
    first: Vec<u8>,
    /// Number of names not met yet, by the file system's count.
    names_left: u64,
}

impl LinkedNames {
    /// The first name of a file with several. `None`: `path` is the first.
    pub(crate) fn first(&mut self, stat: &Stat, path: &[u8]) -> Option<Vec<u8>> {
        let key = (stat.st_dev, stat.st_ino);
        let Some(file) = self.0.get_mut(&key) else {
            self.0.insert(key, LinkedFile { first: path.to_vec(), names_left: stat.st_nlink - 1 });
            return None;
        };
        file.names_left = file.names_left.saturating_sub(1);
        if file.names_left > 0 {
            return Some(file.first.clone());
        }
        self.0.remove(&key).map(|file| file.first)
    }
}
