//! The configuration files: their places and contents.

use std::ffi::OsString;
use std::fs::{self, File};
use std::io::{self, Read as _};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use zeroize::Zeroizing;

/// The file of the system.
const SYSTEM_FILE: &str = "/etc/byway/config.toml";
/// The most bytes of a file.
const MAX_FILE_LEN: u64 = 1 << 20;
/// Bits of a mode that let other users write.
const OTHERS_WRITE: u32 = 0o022;
/// Bits of a mode that let other users read, write or execute.
const OTHERS_ALL: u32 = 0o077;

/// The configuration files of this process.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ConfigSources {
    /// The user's file, which need not exist.
    pub user: Option<PathBuf>,
    /// The system's file, which need not exist.
    pub system: Option<PathBuf>,
    /// The home directory, for which `~/` stands in both files.
    pub home: Option<PathBuf>,
    /// Whether a person chose the user's file, so that it must exist.
    pub is_chosen: bool,
}

impl ConfigSources {
    /// The user's file is `$BYWAY_CONFIG`, else `config.toml` in `$XDG_CONFIG_HOME/byway`, else in
    /// `~/.config/byway`. As XDG says, a relative `$XDG_CONFIG_HOME` is ignored.
    #[must_use]
    pub fn locate(env: impl Fn(&str) -> Option<OsString>) -> Self {
        let given = |name: &str| env(name).filter(|value| !value.is_empty()).map(PathBuf::from);
        let absolute = |name: &str| given(name).filter(|path| path.is_absolute());
        let home = absolute("HOME");
        let usual = || absolute("XDG_CONFIG_HOME").or_else(|| Some(home.as_ref()?.join(".config")));
        let chosen = given("BYWAY_CONFIG");
        let is_chosen = chosen.is_some();
        let user = chosen.or_else(|| Some(usual()?.join("byway/config.toml")));
        Self { user, system: Some(SYSTEM_FILE.into()), home, is_chosen }
    }

    /// Returns the files in order of precedence, and whether each is the user's.
    pub(super) fn files(&self) -> impl Iterator<Item = (&Path, bool)> {
        let system = self.system.as_deref().filter(|path| self.user.as_deref() != Some(*path));
        self.user.as_deref().map(|path| (path, true)).into_iter().chain(system.map(|path| (path, false)))
    }

    /// Whether a file is the system's, which all users read.
    pub(super) fn is_systems(&self, path: &Path) -> bool {
        self.system.as_deref() == Some(path)
    }
}

/// A file that was read.
pub(super) struct ReadFile {
    pub text: Zeroizing<String>,
    /// The mode of the file, nine bits.
    pub mode: u32,
    /// The user and the group that own the file.
    pub owner: (u32, u32),
}

impl ReadFile {
    /// Whether other users can read the file.
    pub(super) const fn is_exposed(&self) -> bool {
        self.mode & OTHERS_ALL != 0
    }

    /// Returns the mode for writing the file again, with no new permissions. Other users keep read
    /// access only to the system's file (`for_all`).
    pub(super) const fn kept_mode(&self, for_all: bool) -> u32 {
        self.mode & if for_all { !OTHERS_WRITE } else { !OTHERS_ALL }
    }
}

/// Why a file is not read.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    /// The system cannot read the file.
    #[error("cannot read it: {0}")]
    System(#[from] io::Error),
    /// The path leads to a directory, a device or the like.
    #[error("it is no file")]
    NoFile,
    /// Other users can write the file, and could redirect this user's data.
    #[error("others can write it (mode {mode:03o}): run `chmod go-w {}`", .path.display())]
    Writable {
        /// The path of the file.
        path: PathBuf,
        /// The mode of the file.
        mode: u32,
    },
    /// Another user owns the file, and could redirect this user's data.
    #[error("it belongs to another user (id {0}): give it to the one who runs byway, or use --no-config")]
    Foreign(u32),
    /// The file is too long.
    #[error("it has more than {MAX_FILE_LEN} bytes")]
    Long,
    /// The file is not UTF-8.
    #[error("it is not text in UTF-8")]
    NoText,
}

/// Reads a file. `None`: there is none.
pub(super) fn read(path: &Path) -> Result<Option<ReadFile>, ReadError> {
    // A pipe would wait for a writer.
    let metadata = match fs::metadata(path) {
        Ok(metadata) => metadata,
        // The home of a user without one may be a file, as /dev/null. HOME may be another user's,
        // whose directory tells this one nothing.
        Err(error)
            if matches!(
                error.kind(),
                io::ErrorKind::NotFound | io::ErrorKind::NotADirectory | io::ErrorKind::PermissionDenied
            ) =>
        {
            return Ok(None);
        }
        Err(error) => return Err(error.into()),
    };
    if !metadata.is_file() {
        return Err(ReadError::NoFile);
    }
    let file = File::open(path)?;
    let metadata = file.metadata()?;
    let mode = metadata.mode() & 0o777;
    if mode & OTHERS_WRITE != 0 {
        return Err(ReadError::Writable { path: path.to_owned(), mode });
    }
    if metadata.uid() != 0 && metadata.uid() != rustix::process::geteuid().as_raw() {
        return Err(ReadError::Foreign(metadata.uid()));
    }
    let mut text = Zeroizing::new(String::new());
    match file.take(MAX_FILE_LEN + 1).read_to_string(&mut text) {
        Ok(length) if length as u64 > MAX_FILE_LEN => Err(ReadError::Long),
        Ok(_) => Ok(Some(ReadFile { text, mode, owner: (metadata.uid(), metadata.gid()) })),
        Err(error) if error.kind() == io::ErrorKind::InvalidData => Err(ReadError::NoText),
        Err(error) => Err(error.into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt as _;

    #[test]
    fn the_users_file_follows_the_variable_then_xdg_then_home() {
        let locate = |config: &str, xdg: &str, home: &str| {
            let env = |name: &str| match name {
                "BYWAY_CONFIG" => Some(OsString::from(config)),
                "XDG_CONFIG_HOME" => Some(OsString::from(xdg)),
                "HOME" => Some(OsString::from(home)),
                _ => None,
            };
            ConfigSources::locate(env).user.map(|path| path.display().to_string())
        };
        assert_eq!(locate("c.toml", "/x", "/h").unwrap(), "c.toml");
        assert!(!ConfigSources::locate(|_| None).is_chosen);
        assert_eq!(locate("", "/x", "/h").unwrap(), "/x/byway/config.toml");
        assert_eq!(locate("", "x", "/h").unwrap(), "/h/.config/byway/config.toml");
        assert_eq!(locate("", "", ""), None);
        assert_eq!(ConfigSources::locate(|_| None).system.unwrap(), Path::new(SYSTEM_FILE));
    }

    #[test]
    fn only_plain_files_that_nobody_else_writes_are_read() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("c");
        assert!(read(&path).unwrap().is_none() && read(Path::new("/dev/null/c")).unwrap().is_none());
        let refused = |path: &Path| read(path).map(|file| file.is_some()).unwrap_err().to_string();
        assert_eq!(refused(directory.path()), "it is no file");
        fs::write(&path, [0xff]).unwrap();
        let mode = |mode| fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
        mode(0o600);
        assert_eq!(refused(&path), "it is not text in UTF-8");
        fs::write(&path, "x".repeat((MAX_FILE_LEN + 1) as usize)).unwrap();
        assert!(refused(&path).contains("more than 1048576 bytes"));
        fs::write(&path, "text").unwrap();
        for (bits, exposed) in [(0o600, false), (0o400, false), (0o644, true), (0o640, true)] {
            mode(bits);
            let file = read(&path).unwrap().unwrap();
            assert_eq!((file.text.as_str(), file.is_exposed()), ("text", exposed));
            assert_eq!((file.kept_mode(false), file.kept_mode(true)), (bits & 0o700, bits & 0o755));
        }
        for bits in [0o620, 0o602, 0o666] {
            mode(bits);
            assert!(refused(&path).contains("run `chmod go-w "), "{bits:o}");
        }
    }
}
