//! What makes a ticket good beyond the process that printed it: the permission in it, and the port.

use crate::secret::Secret;
use crate::word;
use std::fs::{self, DirBuilder, File, OpenOptions, TryLockError};
use std::io::{self, Read, Seek, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

const PREFIX: &str = "byway-receiver-secret-";
const LEN: usize = 16 + 2;

/// What a receiver says in its tickets, kept for one directory until its transfer is complete. One process at a time has
/// it; another that receives into the same directory gets one that is not kept.
#[derive(Debug)]
pub struct Standing {
    permission: Secret<[u8; 16]>,
    port: Option<u16>,
    kept: Option<Kept>,
    is_known: bool,
}

/// A locked file, empty or with one word.
#[derive(Debug)]
struct Kept {
    path: PathBuf,
    file: File,
    is_empty: bool,
}

impl Standing {
    /// One that is not kept.
    ///
    /// # Errors
    /// The system gives no randomness.
    pub fn passing() -> io::Result<Self> {
        let mut permission = [0; 16];
        getrandom::fill(&mut permission).map_err(|error| io::Error::other(error.to_string()))?;
        Ok(Self { permission: Secret::new(permission), port: None, kept: None, is_known: false })
    }

    /// The one kept at `path`, or a new one: also where what is kept is damaged, or others could read it.
    pub(super) fn open(path: &Path) -> io::Result<Self> {
        if let Some(directory) = path.parent() {
            DirBuilder::new().recursive(true).mode(0o700).create(directory)?;
        }
        let mut options = OpenOptions::new();
        let file = options.read(true).write(true).create(true).truncate(false).mode(0o600).open(path)?;
        match file.try_lock() {
            Err(TryLockError::WouldBlock) => return Self::passing(),
            Err(TryLockError::Error(error)) => return Err(error),
            Ok(()) => {}
        }
        let mut kept = Kept { path: path.to_owned(), file, is_empty: true };
        let (standing, is_known) = match kept.read()? {
            Some((permission, port)) => {
                (Self { permission, port: Some(port), kept: None, is_known: true }, true)
            }
            None => (Self::passing()?, false),
        };
        kept.is_empty = !is_known;
        Ok(Self { kept: Some(kept), ..standing })
    }

    /// What the receiver recognises its ticket by.
    #[must_use]
    pub const fn permission(&self) -> &Secret<[u8; 16]> {
        &self.permission
    }

    /// The port that tickets named before.
    #[must_use]
    pub const fn port(&self) -> Option<u16> {
        self.port
    }

    /// Whether an earlier run printed a ticket that is good still.
    #[must_use]
    pub const fn is_known(&self) -> bool {
        self.is_known
    }

    /// Whether the next run will have it.
    #[must_use]
    pub fn is_kept(&self) -> bool {
        self.kept.as_ref().is_some_and(|kept| !kept.is_empty)
    }

    /// Keeps it for the next run, which is to listen on `port`.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn keep(&mut self, port: u16) -> io::Result<()> {
        self.port = Some(port);
        let payload = Secret::new([&self.permission.expose()[..], &port.to_be_bytes()].concat());
        let line = Secret::new(word::encode(PREFIX, payload.expose()) + "\n");
        match &mut self.kept {
            Some(kept) => kept.write(line.expose()),
            None => Ok(()),
        }
    }

    /// The next run prints another ticket.
    pub fn forget(&mut self) {
        if let Some(kept) = &mut self.kept {
            self.is_known = false;
            // It stays good if it cannot be cut short: a nuisance at most.
            kept.is_empty = kept.file.set_len(0).is_ok();
        }
    }
}

impl Kept {
    fn read(&mut self) -> io::Result<Option<(Secret<[u8; 16]>, u16)>> {
        if self.file.metadata()?.mode() & 0o077 != 0 {
            fs::set_permissions(&self.path, fs::Permissions::from_mode(0o600))?;
            return Ok(None);
        }
        let mut text = Vec::new();
        (&self.file).take(word::MAX_LEN as u64).read_to_end(&mut text)?;
        let text = Secret::new(String::from_utf8(text).unwrap_or_default());
        let payload = word::decode(PREFIX, text.expose()).ok();
        let payload = payload.and_then(|payload| <[u8; LEN]>::try_from(payload).ok()).map(Secret::new);
        Ok(payload.and_then(|payload| {
            let (permission, port) = payload.expose().split_first_chunk::<16>()?;
            Some((Secret::new(*permission), u16::from_be_bytes(*port.first_chunk()?)))
        }))
    }

    fn write(&mut self, line: &str) -> io::Result<()> {
        self.file.set_len(0)?;
        self.file.rewind()?;
        self.file.write_all(line.as_bytes())?;
        self.is_empty = false;
        self.file.sync_all()
    }
}

impl Drop for Kept {
    fn drop(&mut self) {
        if self.is_empty {
            let _ = fs::remove_file(&self.path);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn place() -> (tempfile::TempDir, PathBuf) {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("receiving/x");
        (directory, path)
    }

    #[test]
    fn the_next_run_has_what_this_one_kept_and_another_process_has_not() {
        let (_guard, path) = place();
        let mut first = Standing::open(&path).unwrap();
        first.keep(4_711).unwrap();
        let permission = first.permission().clone();
        let other = Standing::open(&path).unwrap();
        assert!(other.permission() != &permission && other.port().is_none() && !other.is_kept());
        drop((first, other));
        let mut again = Standing::open(&path).unwrap();
        assert!(again.is_known() && again.is_kept());
        assert_eq!((again.permission(), again.port()), (&permission, Some(4_711)));
        again.forget();
        assert!(!again.is_kept());
        // A transfer that begins after another was complete makes it worth keeping again.
        again.keep(4_711).unwrap();
        assert!(again.is_kept());
        again.forget();
        drop(again);
        assert!(!path.exists());
        assert!(Standing::open(&path).unwrap().permission() != &permission);
    }

    #[test]
    fn what_is_damaged_or_exposed_is_not_used() {
        let (_guard, path) = place();
        let mut standing = Standing::open(&path).unwrap();
        standing.keep(1).unwrap();
        drop(standing);
        let good = fs::read(&path).unwrap();
        type Damage = fn(&Path, &[u8]);
        let damages: [Damage; 5] = [
            |path, good| fs::write(path, &good[..good.len() - 4]).unwrap(),
            |path, _| fs::write(path, [0xff; 50]).unwrap(),
            |path, _| fs::write(path, word::encode(PREFIX, &[1; 17])).unwrap(),
            |path, _| fs::write(path, word::encode("byway-identity-secret-", &[1; LEN])).unwrap(),
            |path, _| fs::set_permissions(path, fs::Permissions::from_mode(0o644)).unwrap(),
        ];
        for damage in damages {
            fs::write(&path, &good).unwrap();
            fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
            assert!(Standing::open(&path).unwrap().is_known());
            damage(&path, &good);
            let standing = Standing::open(&path).unwrap();
            assert!(!standing.is_known());
            drop(standing);
        }
        assert!(!path.exists(), "nothing was kept");
    }
}
