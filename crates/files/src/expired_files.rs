//! Removes what sender and receiver kept of an unfinished transfer, 30 days after the latest change
//! in its directory, and what a receiver moved to its trash.
//!
//! Changes are dated by the status change time (ctime), because byway sets the
//! modification time to the original file's.

use crate::contained_dir::Beneath;
use crate::manifest::Timestamp;
use crate::name::{PARTIAL_DIRECTORY, TRASH_DIRECTORY, join};
use crate::trash::is_trash_name;
use rustix::fd::{AsFd, OwnedFd};
use rustix::fs::{AtFlags, Dir, FileType, FlockOperation, Mode, OFlags};
use rustix::io::Result;
use std::ffi::CString;
use std::path::Path;
use std::time::Duration;

/// Time for which the files of an unfinished transfer are kept after their last use, and the trash
/// of a transfer after its end.
pub const RETENTION_TIME: Duration = Duration::from_secs(30 * 24 * 3600);

/// The most entries of one directory that are examined. The rest is left for another day.
const MAX_ENTRIES: usize = 4_096;

/// Removes unfinished transfers below the sink's `directory` that did not change for
/// [`RETENTION_TIME`]. Returns how many files it removed.
pub fn expire_partials(directory: &Path, now: Timestamp) -> usize {
    let Ok(root) = open(directory) else { return 0 };
    let Ok(all) = open_at(&root, PARTIAL_DIRECTORY) else { return 0 };
    let expired = expire(&all, now);
    drop(all);
    // Only if nothing is left in it.
    let _ = rustix::fs::unlinkat(&root, PARTIAL_DIRECTORY, AtFlags::REMOVEDIR);
    expired
}

/// Removes journals of transfers below `directory` that did not change for [`RETENTION_TIME`].
/// Returns of how many transfers.
pub fn expire_journals(directory: &Path, now: Timestamp) -> usize {
    open(directory).map_or(0, |all| expire(&all, now))
}

/// Removes entries from the trash of the sink's `directory` that transfers moved there over
/// [`RETENTION_TIME`] ago. Returns the number of these transfers.
pub fn expire_trash(directory: &Path, now: Timestamp) -> usize {
    let Ok(root) = open(directory) else { return 0 };
    let Ok(all) = open_at(&root, TRASH_DIRECTORY) else { return 0 };
    let Some(limit) = now.seconds.checked_sub(RETENTION_TIME.as_secs().cast_signed()) else { return 0 };
    let is_expired = |name: &CString| {
        is_trash_name(name.to_bytes()) && remove_folder(&all, name, limit).is_ok_and(|removed| removed)
    };
    let expired = names(&all).iter().filter(|name| is_expired(name)).count();
    drop(all);
    // Only if nothing is left in it.
    let _ = rustix::fs::unlinkat(&root, TRASH_DIRECTORY, AtFlags::REMOVEDIR);
    expired
}

/// Removes a folder of the trash that is older than `limit`, if no transfer uses it. Only the
/// folder is dated: what it holds may be as old as it likes. Nothing is removed that is mounted
/// there.
fn remove_folder(all: &OwnedFd, name: &CString, limit: i64) -> Result<bool> {
    let folder = open_at(all, name)?;
    if rustix::fs::fstat(&folder)?.st_ctime >= limit {
        return Ok(false);
    }
    rustix::fs::flock(&folder, FlockOperation::NonBlockingLockExclusive)?;
    let mut tree = Beneath::new(folder);
    let (mut directories, mut at) = (vec![Vec::new()], 0);
    while let Some(path) = directories.get(at).cloned() {
        at += 1;
        let opened = tree.open_unmounted(&path, OFlags::RDONLY | OFlags::DIRECTORY)?;
        // Its owner could not remove what it holds otherwise.
        let _ = rustix::fs::fchmod(&opened, Mode::RWXU);
        let held = Dir::read_from(&opened)?.map(|entry| Ok(entry?.file_name().to_owned()));
        let held = held.collect::<Result<Vec<CString>>>()?;
        for name in held.iter().filter(|name| !matches!(name.to_bytes(), b"." | b"..")) {
            let stat = rustix::fs::statat(&opened, name, AtFlags::SYMLINK_NOFOLLOW)?;
            match FileType::from_raw_mode(stat.st_mode) {
                FileType::Directory => directories.push(join(&path, name.to_bytes())),
                _ => rustix::fs::unlinkat(&opened, name, AtFlags::empty())?,
            }
        }
    }
    for path in directories.iter().skip(1).rev() {
        let (directory, leaf) = crate::name::split(path);
        rustix::fs::unlinkat(tree.directory(directory)?, leaf, AtFlags::REMOVEDIR)?;
    }
    rustix::fs::unlinkat(all, name, AtFlags::REMOVEDIR)?;
    Ok(true)
}

/// Removes expired transfers below a directory. Those that cannot be removed are left for another
/// run.
fn expire(all: &OwnedFd, now: Timestamp) -> usize {
    let Some(limit) = now.seconds.checked_sub(RETENTION_TIME.as_secs().cast_signed()) else { return 0 };
    names(all)
        .into_iter()
        .filter(|name| is_transfer(name) && remove(all, name, limit).is_ok_and(|removed| removed))
        .count()
}

/// Removes one transfer's directory if everything in it is older than `limit`, and no process uses
/// it.
fn remove(all: &OwnedFd, name: &CString, limit: i64) -> Result<bool> {
    let old = |stat: rustix::fs::Stat| stat.st_ctime < limit;
    let stat = rustix::fs::statat(all, name, AtFlags::SYMLINK_NOFOLLOW)?;
    if FileType::from_raw_mode(stat.st_mode) != FileType::Directory || !old(stat) {
        return Ok(false);
    }
    let directory = open_at(all, name)?;
    rustix::fs::flock(&directory, FlockOperation::NonBlockingLockExclusive)?;
    let files = names(&directory);
    for file in &files {
        if !old(rustix::fs::statat(&directory, file, AtFlags::SYMLINK_NOFOLLOW)?) {
            return Ok(false);
        }
    }
    for file in &files {
        rustix::fs::unlinkat(&directory, file, AtFlags::empty())?;
    }
    rustix::fs::unlinkat(all, name, AtFlags::REMOVEDIR)?;
    Ok(true)
}

/// Whether a name is that of a transfer: 32 hexadecimal digits. Other files are not removed.
fn is_transfer(name: &CString) -> bool {
    let name = name.to_bytes();
    name.len() == 32 && name.iter().all(u8::is_ascii_hexdigit)
}

fn names(directory: impl AsFd) -> Vec<CString> {
    let Ok(entries) = Dir::read_from(directory) else { return Vec::new() };
    let names = entries.flatten().map(|entry| entry.file_name().to_owned());
    names.filter(|name| !matches!(name.to_bytes(), b"." | b"..")).take(MAX_ENTRIES).collect()
}

fn open(directory: &Path) -> Result<OwnedFd> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    rustix::fs::open(directory, flags, Mode::empty())
}

fn open_at(above: &OwnedFd, name: impl rustix::path::Arg) -> Result<OwnedFd> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    rustix::fs::openat(above, name, flags, Mode::empty())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Journals, Sink, SinkOptions};
    use std::fs::{self, File};

    /// The time `days` days after a file that is made now.
    fn after(days: i64) -> Timestamp {
        let made = tempfile::NamedTempFile::new().unwrap();
        let seconds = std::os::unix::fs::MetadataExt::ctime(&made.as_file().metadata().unwrap());
        Timestamp { seconds: seconds + days * 24 * 3600, nanoseconds: 0 }
    }

    #[test]
    fn what_nobody_touched_for_a_month_goes_and_nothing_else_does() {
        let top = tempfile::tempdir().unwrap();
        let partial = top.path().join(PARTIAL_DIRECTORY);
        for name in ["0123456789abcdef0123456789abcdef", "notes", "0123456789abcdef"] {
            fs::create_dir_all(partial.join(name)).unwrap();
            // As old as the file that it is a copy of.
            let file = File::create(partial.join(name).join("file")).unwrap();
            rustix::fs::futimens(&file, &crate::contained_dir::times(Timestamp::default())).unwrap();
        }
        fs::write(top.path().join("0123456789abcdef0123456789abcdef"), "of the owner").unwrap();
        for (days, expired) in [(0, 0), (29, 0), (31, 1), (62, 0)] {
            assert_eq!(expire_partials(top.path(), after(days)), expired, "{days}");
        }
        let left = fs::read_dir(&partial).unwrap().count();
        assert_eq!((left, fs::read_dir(top.path()).unwrap().count()), (2, 2));
        assert_eq!(expire_partials(&top.path().join("missing"), after(99)), 0);
    }

    #[test]
    fn a_transfer_that_runs_is_not_removed_however_old() {
        let top = tempfile::tempdir().unwrap();
        let later = after(40);
        let sink = Sink::open(top.path(), SinkOptions::default()).unwrap();
        assert_eq!(expire_partials(top.path(), later), 0);
        let directory = top.path().join("sending").join("00".repeat(16));
        let journals = Journals::open(&directory).unwrap();
        assert_eq!(expire_journals(&top.path().join("sending"), later), 0);
        drop((sink, journals));
        assert_eq!(expire_journals(&top.path().join("sending"), later), 1);
        assert!(!directory.exists());
        assert_eq!(expire_partials(top.path(), later), 0, "the sink left nothing");
    }

    #[test]
    fn a_link_is_not_followed() {
        let top = tempfile::tempdir().unwrap();
        let outside = top.path().join("outside");
        fs::create_dir(&outside).unwrap();
        fs::write(outside.join("treasure"), "gold").unwrap();
        let sending = top.path().join("sending");
        fs::create_dir(&sending).unwrap();
        std::os::unix::fs::symlink(&outside, sending.join("00".repeat(16))).unwrap();
        assert_eq!(expire_journals(&sending, after(40)), 0);
        assert!(outside.join("treasure").exists());
    }

    #[test]
    fn the_trash_is_kept_for_a_month_however_old_its_files_are() {
        let top = tempfile::tempdir().unwrap();
        let trash = top.path().join(TRASH_DIRECTORY);
        let folder = trash.join("2026-11-29-195005");
        let outside = top.path().join("outside");
        for directory in [&folder.join("a/b"), &folder.join("empty"), &trash.join("notes"), &outside] {
            fs::create_dir_all(directory).unwrap();
        }
        fs::write(outside.join("treasure"), "gold").unwrap();
        std::os::unix::fs::symlink("../../../outside", folder.join("a/link")).unwrap();
        let file = File::create(folder.join("a/b/file")).unwrap();
        rustix::fs::futimens(&file, &crate::contained_dir::times(Timestamp::default())).unwrap();
        fs::write(trash.join("file"), "of the owner").unwrap();
        for (days, expired) in [(0, 0), (29, 0), (31, 1), (62, 0)] {
            assert_eq!(expire_trash(top.path(), after(days)), expired, "{days}");
            assert_eq!(folder.exists(), days < 30);
        }
        assert_eq!(fs::read_dir(&trash).unwrap().count(), 2, "what is no transfer's stays");
        assert_eq!(fs::read(outside.join("treasure")).unwrap(), b"gold");
        fs::remove_dir(trash.join("notes")).unwrap();
        fs::remove_file(trash.join("file")).unwrap();
        assert_eq!(expire_trash(top.path(), after(99)), 0);
        assert!(!trash.exists());
    }

    #[test]
    fn a_trash_in_use_is_not_removed_and_a_link_not_followed() {
        let top = tempfile::tempdir().unwrap();
        let root = || File::open(top.path()).unwrap();
        let folder = crate::trash::TrashFolder::make(root().as_fd(), 0).unwrap();
        let later = after(40);
        assert_eq!(expire_trash(top.path(), later), 0);
        drop(folder);
        assert_eq!(expire_trash(top.path(), later), 1);
        let other = tempfile::tempdir().unwrap();
        fs::create_dir_all(other.path().join("2026-11-29-195005")).unwrap();
        std::os::unix::fs::symlink(other.path(), top.path().join(TRASH_DIRECTORY)).unwrap();
        assert_eq!(expire_trash(top.path(), later), 0);
        assert!(other.path().join("2026-11-29-195005").exists());
    }
}
