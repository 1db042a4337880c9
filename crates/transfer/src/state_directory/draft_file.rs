//! Files that are written whole or not at all.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::{
    DirBuilderExt as _, MetadataExt as _, OpenOptionsExt as _, PermissionsExt as _, chown, fchown,
};
use std::path::{Path, PathBuf};

/// Replaces the contents of a file atomically. Only the owner can access it.
pub(crate) fn put(path: &Path, text: &str) -> io::Result<()> {
    if let Some(directory) = path.parent() {
        DirBuilder::new().recursive(true).mode(0o700).create(directory)?;
    }
    let draft = DraftFile::write(path, text)?;
    fs::rename(draft.path(), path).and_then(|()| sync_parent(path))
}

/// Replaces a file as [`put`] does, for the user and group that own the directory. So a service can
/// read a file that root writes.
pub(crate) fn put_for_owner(path: &Path, text: &str) -> io::Result<()> {
    let directory = path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    DirBuilder::new().recursive(true).mode(0o700).create(directory)?;
    let owner = fs::metadata(directory)?;
    let draft = DraftFile::write_for(path, text, Some((owner.uid(), owner.gid())))?;
    fs::rename(draft.path(), path).and_then(|()| sync_parent(path))
}

/// Replaces a file as [`put`] does, in an existing directory, with this mode, and for this user and
/// group if they are not this process's.
pub(crate) fn put_as(path: &Path, text: &str, mode: u32, owner: Option<(u32, u32)>) -> io::Result<()> {
    let draft = DraftFile::write(path, text)?;
    let made = fs::metadata(draft.path())?;
    if let Some((user, group)) = owner.filter(|owner| *owner != (made.uid(), made.gid())) {
        // The group is lost where this process is not in it. The mode gives a group nothing.
        let other = (user != made.uid()).then_some(user);
        chown(draft.path(), other, Some(group)).or_else(|error| other.map_or(Ok(()), |_| Err(error)))?;
    }
    fs::set_permissions(draft.path(), fs::Permissions::from_mode(mode))?;
    fs::rename(draft.path(), path).and_then(|()| sync_parent(path))
}

/// A temporary file beside its target. Dropping it removes the file, if it was not renamed.
pub(super) struct DraftFile {
    path: PathBuf,
}

impl DraftFile {
    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    pub(super) fn write(target: &Path, text: &str) -> io::Result<Self> {
        Self::write_for(target, text, None)
    }

    /// Writes as [`write`](Self::write) does, for this user and group if the user is not this
    /// process's.
    fn write_for(target: &Path, text: &str, owner: Option<(u32, u32)>) -> io::Result<Self> {
        let mut nonce = [0; 8];
        getrandom::fill(&mut nonce).map_err(|error| io::Error::other(error.to_string()))?;
        let mut name = target.file_name().unwrap_or_default().to_owned();
        name.push(format!(".{:016x}.tmp", u64::from_be_bytes(nonce)));
        let path = target.with_file_name(name);
        let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&path)?;
        let draft = Self { path };
        // By the open file: whoever owns the directory may have put another in its place.
        if let Some((user, group)) = owner
            && file.metadata()?.uid() != user
        {
            fchown(&file, Some(user), Some(group))?;
        }
        file.write_all(text.as_bytes())?;
        file.sync_all()?;
        Ok(draft)
    }
}

impl Drop for DraftFile {
    fn drop(&mut self) {
        // Renamed away: nothing to remove. Else: a leftover at worst, harmless and readable by its
        // owner only.
        let _ = fs::remove_file(&self.path);
    }
}

/// Syncs the directory that holds `path`, so that the name is kept, too.
pub(super) fn sync_parent(path: &Path) -> io::Result<()> {
    let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    File::open(parent)?.sync_all()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_root_puts_into_a_directory_belongs_to_whom_the_directory_belongs_to() {
        let place = tempfile::tempdir().unwrap();
        let path = place.path().join("state/list");
        put_for_owner(&path, "first").unwrap();
        let of = |path: &Path| fs::metadata(path).map(|found| (found.uid(), found.gid())).unwrap();
        assert_eq!(of(&path), of(place.path()));
        // Only root can give files away.
        if chown(path.parent().unwrap(), Some(12_345), Some(12_346)).is_ok() {
            put_for_owner(&path, "second").unwrap();
            assert_eq!(of(&path), (12_345, 12_346));
        }
        assert_eq!(fs::metadata(&path).unwrap().mode() & 0o777, 0o600);
    }
}
