//! The files that byway keeps between runs, readable only by their owner: keys, journals
//! ([`byway_files::Journals`]) and ticket secrets ([`TicketState`]). A key file has one line: a
//! prefix for the kind of key, 32 secret bytes, a checksum ([`byway_wire::checked_text`]).

mod draft_file;
pub(crate) mod state_error;
mod ticket_state;

pub(crate) use draft_file::{put, put_as, put_for_owner};
pub use state_error::StateError;
pub use ticket_state::TicketState;

use crate::identity::Identity;
use crate::secret::Secret;
use crate::ticket::Ticket;
use byway_wire::checked_text::{self, TextError};
use draft_file::{DraftFile, sync_parent};
use state_error::Result;
use std::ffi::OsString;
use std::fs::{self, DirBuilder, File};
use std::io::{self, Read};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};
use zeroize::{Zeroize, Zeroizing};

/// The file of the host's key pair.
const IDENTITY_FILE: KeyFile = KeyFile { prefix: "byway-identity-secret-", what: "identity" };
/// The file of a relay's key.
const RELAY_KEY_FILE: KeyFile = KeyFile { prefix: "byway-relay-secret-", what: "relay key" };

/// The directory with all files that byway keeps between runs.
#[derive(Clone, Debug)]
pub struct StateDir {
    root: PathBuf,
}

impl StateDir {
    /// `chosen` if given, else `$XDG_DATA_HOME/byway`, else `~/.local/share/byway` (XDG Base
    /// Directory 0.8; a relative `XDG_DATA_HOME` is ignored, as it says). Nothing is created yet.
    pub fn locate(chosen: Option<&Path>, env: impl Fn(&str) -> Option<OsString>) -> Result<Self> {
        if let Some(root) = chosen {
            return Ok(Self { root: root.to_owned() });
        }
        let absolute = |name: &str| env(name).map(PathBuf::from).filter(|path| path.is_absolute());
        let data = absolute("XDG_DATA_HOME").or_else(|| Some(absolute("HOME")?.join(".local/share")));
        let data = data.ok_or(StateError::NoHome)?;
        Ok(Self { root: data.join("byway") })
    }

    /// The host's key pair, made on first use.
    pub fn identity(&self) -> Result<Identity> {
        Self::identity_in(&self.identity_path())
    }

    /// The file of [`StateDir::identity`].
    #[must_use]
    pub fn identity_path(&self) -> PathBuf {
        self.root.join("identity")
    }

    /// The key pair in a file, made on first use.
    pub fn identity_in(path: &Path) -> Result<Identity> {
        Ok(Identity::new(IDENTITY_FILE.open(path)?))
    }

    /// Returns the directory in which a sender saves the state of incomplete transfers.
    #[must_use]
    pub fn sending(&self) -> PathBuf {
        self.root.join("sending")
    }

    /// Returns the file of the transfers that ended in the last 30 days.
    #[must_use]
    pub fn history_path(&self) -> PathBuf {
        self.root.join("history.jsonl")
    }

    /// Returns the directory with the last lists of registries.
    #[must_use]
    pub fn registries(&self) -> PathBuf {
        self.root.join("registries")
    }

    /// The default file of a registry on this host.
    #[must_use]
    pub fn registry_path(&self) -> PathBuf {
        self.root.join("registry.db")
    }

    /// Opens the saved state of a receiver into `directory`, so that tickets of earlier runs stay
    /// valid. `once`: the receiver takes a single transfer. Its ticket is saved separately, and
    /// ends with that transfer.
    pub fn receiving(&self, directory: &Path, once: bool) -> Result<TicketState> {
        let full = fs::canonicalize(directory).map_err(StateError::io("find", directory))?;
        let name = blake3::hash(full.as_os_str().as_bytes()).to_hex();
        let name = name.get(..32).unwrap_or_default();
        let name = if once { format!("{name}-once") } else { name.to_owned() };
        let path = self.root.join("receiving").join(name);
        TicketState::open(&path)
    }

    /// The file with the ticket that `byway recv` printed last, for `byway pair`.
    #[must_use]
    pub fn last_ticket_path(&self) -> PathBuf {
        self.root.join("last-ticket")
    }

    /// Keeps the ticket that a receiver printed.
    pub fn keep_last_ticket(&self, ticket: &Ticket) -> Result<()> {
        let path = self.last_ticket_path();
        let text = Zeroizing::new(format!("{ticket}\n"));
        put(&path, &text).map_err(StateError::io("keep the ticket in", &path))
    }

    /// The ticket that a receiver printed last. `None`: none did.
    pub fn last_ticket(&self) -> Result<Option<Ticket>> {
        let path = self.last_ticket_path();
        let text = match fs::read_to_string(&path) {
            Ok(text) => Zeroizing::new(text),
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(StateError::io("read the ticket in", &path)(error)),
        };
        let damaged = |_| StateError::Damaged { path, holds: "holds no whole byway ticket".into() };
        text.trim().parse().map(Some).map_err(damaged)
    }

    /// The default file of [`StateDir::relay_key`].
    #[must_use]
    pub fn relay_key_path(&self) -> PathBuf {
        self.root.join("relay-key")
    }

    /// Returns the key from which a relay's words are made. It is made on first use, in `path` or
    /// else in [`StateDir::relay_key_path`].
    pub fn relay_key(&self, path: Option<&Path>) -> Result<Secret<[u8; 32]>> {
        RELAY_KEY_FILE.open(path.unwrap_or(&self.relay_key_path()))
    }

    /// Returns the key as [`StateDir::relay_key`] does, or an error if there is no key.
    pub(crate) fn existing_relay_key(&self, path: Option<&Path>) -> Result<Secret<[u8; 32]>> {
        let own = self.relay_key_path();
        let path = path.unwrap_or(&own);
        let file = File::open(path).map_err(StateError::io("read the relay key in", path))?;
        RELAY_KEY_FILE.read(path, file)
    }

    /// Returns the file in which a relay saves its byte counts and its epochs at registries. Each
    /// key file of a relay has one.
    #[must_use]
    pub fn relay_kept_path(&self, key: Option<&Path>) -> PathBuf {
        self.beside_relay_key("relay-kept", key)
    }

    /// Returns the file of a relay's named words. Each key file of a relay has one.
    #[must_use]
    pub fn relay_words_path(&self, key: Option<&Path>) -> PathBuf {
        self.beside_relay_key("relay-words", key)
    }

    fn beside_relay_key(&self, name: &str, key: Option<&Path>) -> PathBuf {
        let Some(key) = key else { return self.root.join(name) };
        let full = fs::canonicalize(key).unwrap_or_else(|_| key.to_owned());
        let hash = blake3::hash(full.as_os_str().as_bytes()).to_hex();
        self.root.join(format!("{name}-{}", hash.get(..32).unwrap_or_default()))
    }

    /// Returns the file with the key by which registries know an end host as a relay.
    #[must_use]
    pub fn lending_key_path(&self) -> PathBuf {
        self.root.join("lending-key")
    }

    /// Replaces the relay key by a new one, which makes every earlier relay word invalid.
    pub fn roll_relay_key(&self, path: Option<&Path>) -> Result<Secret<[u8; 32]>> {
        RELAY_KEY_FILE.replace(path.unwrap_or(&self.relay_key_path()))
    }
}

/// A kind of key file: its prefix and its name in errors.
struct KeyFile {
    prefix: &'static str,
    what: &'static str,
}

impl KeyFile {
    /// Reads the key, or makes one if the file does not exist.
    fn open(&self, path: &Path) -> Result<Secret<[u8; 32]>> {
        match File::open(path) {
            Ok(file) => self.read(path, file),
            Err(error) if error.kind() == io::ErrorKind::NotFound => self.create(path),
            Err(error) => Err(StateError::io(format!("read the {} in", self.what), path)(error)),
        }
    }

    fn read(&self, path: &Path, file: File) -> Result<Secret<[u8; 32]>> {
        let what = self.what;
        let cannot = || StateError::io(format!("read the {what} in"), path);
        let mode = file.metadata().map_err(cannot())?.mode() & 0o777;
        if mode & 0o077 != 0 {
            return Err(StateError::Exposed { what, path: path.to_owned(), mode });
        }
        let mut text = String::new();
        let read = file.take(checked_text::MAX_LEN as u64).read_to_string(&mut text);
        let payload = match read {
            Ok(_) => checked_text::decode(self.prefix, &text),
            Err(error) if error.kind() == io::ErrorKind::InvalidData => Err(TextError::Prefix),
            Err(error) => return Err(cannot()(error)),
        };
        text.zeroize();
        let damaged = |holds: String| StateError::Damaged { path: path.to_owned(), holds };
        let bytes = payload.map_err(|error| match error {
            TextError::Prefix => damaged(format!("does not hold a byway {what}")),
            _ => damaged(format!("holds a damaged byway {what}")),
        })?;
        let key = <[u8; 32]>::try_from(bytes).map_err(|_| damaged("holds a key of another length".into()))?;
        Ok(Secret::new(key))
    }

    /// Makes a key. Of two that do so at once, one wins and both use its key.
    fn create(&self, path: &Path) -> Result<Secret<[u8; 32]>> {
        let cannot = || StateError::io(format!("keep a new {} in", self.what), path);
        if let Some(directory) = path.parent() {
            DirBuilder::new().recursive(true).mode(0o700).create(directory).map_err(cannot())?;
        }
        let draft = DraftFile::write(path, self.generate()?.expose()).map_err(cannot())?;
        match fs::hard_link(draft.path(), path) {
            Ok(()) => sync_parent(path).map_err(cannot())?,
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            Err(error) => return Err(cannot()(error)),
        }
        self.read(path, File::open(path).map_err(cannot())?)
    }

    fn replace(&self, path: &Path) -> Result<Secret<[u8; 32]>> {
        let cannot = || StateError::io(format!("replace the {} in", self.what), path);
        if !path.try_exists().map_err(cannot())? {
            return self.create(path);
        }
        let draft = DraftFile::write(path, self.generate()?.expose()).map_err(cannot())?;
        fs::rename(draft.path(), path).and_then(|()| sync_parent(path)).map_err(cannot())?;
        self.read(path, File::open(path).map_err(cannot())?)
    }

    /// A new random key as a line of the file.
    fn generate(&self) -> Result<Secret<String>> {
        let mut key = [0; 32];
        getrandom::fill(&mut key).map_err(StateError::NoRandomness)?;
        let line = checked_text::encode(self.prefix, &key) + "\n";
        key.zeroize();
        Ok(Secret::new(line))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    fn state() -> (tempfile::TempDir, StateDir) {
        let parent = tempfile::tempdir().unwrap();
        let root = parent.path().join("a/b");
        (parent, StateDir { root })
    }

    fn mode(path: &Path) -> u32 {
        fs::metadata(path).unwrap().mode() & 0o777
    }

    #[test]
    fn an_identity_is_made_once_and_only_its_owner_can_read_it() {
        let (_guard, state) = state();
        let first = state.identity().unwrap();
        assert_eq!(state.identity().unwrap().public(), first.public());
        assert_eq!(mode(&state.root.join("identity")), 0o600);
        assert_eq!(mode(&state.root), 0o700);
        assert_eq!(fs::read_dir(&state.root).unwrap().count(), 1, "no draft stays behind");
    }

    #[test]
    fn whoever_comes_second_takes_the_key_of_the_first() {
        let (_guard, state) = state();
        let keys: Vec<_> = std::thread::scope(|scope| {
            let threads: Vec<_> =
                (0..8).map(|_| scope.spawn(|| state.identity().unwrap().public())).collect();
            threads.into_iter().map(|thread| thread.join().unwrap()).collect()
        });
        assert!(keys.iter().all(|key| *key == keys[0]));
    }

    #[test]
    fn damaged_foreign_and_exposed_files_are_told_apart() {
        let (_guard, state) = state();
        let path = state.root.join("identity");
        state.identity().unwrap();
        let good = fs::read_to_string(&path).unwrap();
        let refused = |text: &[u8]| {
            fs::write(&path, text).unwrap();
            state.identity().unwrap_err().to_string()
        };
        assert!(refused(&good.as_bytes()[..40]).contains("holds a damaged byway identity"));
        assert!(refused(b"").contains("does not hold a byway identity"));
        assert!(refused(&[0xff; 32]).contains("does not hold a byway identity"));
        state.relay_key(None).unwrap();
        let relay = fs::read(state.relay_key_path()).unwrap();
        assert!(refused(&relay).contains("does not hold a byway identity"));
        fs::write(&path, &good).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o640)).unwrap();
        assert!(refused(good.as_bytes()).contains("mode 640"));
    }

    #[test]
    fn rolling_the_relay_key_makes_another_one() {
        let (_guard, state) = state();
        let elsewhere = state.root.join("keys/edge");
        for path in [None, Some(elsewhere.as_path())] {
            let old = state.relay_key(path).unwrap();
            assert_eq!(state.relay_key(path).unwrap(), old);
            let new = state.roll_relay_key(path).unwrap();
            assert_ne!(new, old);
            assert_eq!(state.relay_key(path).unwrap(), new);
        }
        assert_eq!(mode(&elsewhere), 0o600);
    }

    #[test]
    fn the_directory_follows_flag_then_xdg_then_home() {
        let locate = |chosen: Option<&str>, xdg: Option<&str>, home: Option<&str>| {
            let env = |name: &str| match name {
                "XDG_DATA_HOME" => xdg.map(OsString::from),
                "HOME" => home.map(OsString::from),
                _ => None,
            };
            StateDir::locate(chosen.map(Path::new), env).map(|state| state.root)
        };
        assert_eq!(locate(Some("here"), Some("/x"), Some("/h")).unwrap(), Path::new("here"));
        assert_eq!(locate(None, Some("/x"), Some("/h")).unwrap(), Path::new("/x/byway"));
        assert_eq!(locate(None, Some("x"), Some("/h")).unwrap(), Path::new("/h/.local/share/byway"));
        assert!(matches!(locate(None, None, None), Err(StateError::NoHome)));
    }
}
