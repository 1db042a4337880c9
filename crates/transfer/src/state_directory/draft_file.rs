//! Files that are written whole or not at all.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::{
    DirBuilderExt as _, MetadataExt as _, OpenOptionsExt as _, PermissionsExt as _, chown,
};
use std::path::{Path, PathBuf};

/// Puts a text in place of what a file held, for its owner alone: the one or the other, whatever
/// happens meanwhile.
pub(crate) fn put(path: &Path, text: &str) -> io::Result<()> {
    if let Some(directory) = path.parent() {
        DirBuilder::new().recursive(true).mode(0o700).create(directory)?;
    }
    let draft = DraftFile::write(path, text)?;
    fs::rename(draft.path(), path).and_then(|()| sync_parent(path))
}

/// As [`put`], in a directory that exists, with this mode, and for this user and group if they are
/// not this process's.
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

/// A file beside the one it is to become; gone when dropped, whether it became that or not.
pub(super) struct DraftFile {
    path: PathBuf,
}

impl DraftFile {
    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    pub(super) fn write(target: &Path, text: &str) -> io::Result<Self> {
        let mut nonce = [0; 8];
        getrandom::fill(&mut nonce).map_err(|error| io::Error::other(error.to_string()))?;
        let mut name = target.file_name().unwrap_or_default().to_owned();
        name.push(format!(".{:016x}.tmp", u64::from_be_bytes(nonce)));
        let path = target.with_file_name(name);
        let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&path)?;
        let draft = Self { path };
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
