//! Where the sockets of running processes are.

use rustix::fs::{CWD, Mode, OFlags, ResolveFlags, fstat, openat, openat2};
use std::ffi::OsString;
use std::fs::{self, DirBuilder, Permissions};
use std::io::{self, ErrorKind};
use std::os::fd::OwnedFd;
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

/// The directory for sockets of root's processes and of the host's services, each service in a
/// folder.
const HOST_DIRECTORY: &str = "/run/byway-status";
/// The folder of root's processes.
const ROOT_FOLDER: &str = "root";
/// The directory that holds the runtime directories of users.
const USERS_DIRECTORY: &str = "/run/user";
/// The folder with status sockets in a user's runtime directory.
const USER_FOLDER: &str = "byway/status";

/// The end of a socket's name.
pub(super) const SOCKET_SUFFIX: &str = ".socket";

/// A directory with status sockets, which only its owner may enter.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RuntimeDirectory {
    path: PathBuf,
    /// The user who must own the directory. `None`: the user to whom the service manager gave it.
    owner: Option<u32>,
    /// Whether the user named the directory, so that the path may contain symbolic links.
    is_chosen: bool,
}

/// An open directory, and its owner.
pub(super) struct OpenDirectory {
    pub directory: OwnedFd,
    pub owner: u32,
}

impl RuntimeDirectory {
    /// Returns the directory for processes of `user`: `$BYWAY_RUNTIME_DIR` unchanged, or else
    /// /run/byway-status/root for root. For other users it is `byway/status` in `$XDG_RUNTIME_DIR`,
    /// or /tmp/byway-USER/status.
    #[must_use]
    pub fn locate(user: u32, env: impl Fn(&str) -> Option<OsString>) -> Self {
        let owner = Some(user);
        if let Some(path) = env("BYWAY_RUNTIME_DIR") {
            return Self { path: path.into(), owner, is_chosen: true };
        }
        let runtime = env("XDG_RUNTIME_DIR").map(PathBuf::from).filter(|path| path.is_absolute());
        let path = match (user, runtime) {
            (0, _) => Path::new(HOST_DIRECTORY).join(ROOT_FOLDER),
            (_, Some(runtime)) => runtime.join(USER_FOLDER),
            (_, None) => format!("/tmp/byway-{user}/status").into(),
        };
        Self { path, owner, is_chosen: false }
    }

    /// Returns the directories that `user` may query: the user's own, and for root also those of
    /// services and of all users.
    #[must_use]
    pub fn visible(user: u32, env: impl Fn(&str) -> Option<OsString>) -> Vec<Self> {
        let own = Self::locate(user, &env);
        if user != 0 || own.is_chosen {
            return vec![own];
        }
        let mut all = vec![own];
        let services = entries(Path::new(HOST_DIRECTORY)).into_iter().map(|path| (path, None));
        let users = entries(Path::new(USERS_DIRECTORY)).into_iter().filter_map(|path| {
            let owner = path.file_name()?.to_str()?.parse().ok()?;
            Some((path.join(USER_FOLDER), Some(owner)))
        });
        for (path, owner) in services.chain(users) {
            if all.iter().all(|known| known.path != path) {
                all.push(Self { path, owner, is_chosen: false });
            }
        }
        all
    }

    /// The directory's path.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Whether processes can be asked there, or may be one day: there is no directory yet.
    ///
    /// # Errors
    /// It is no place for its owner alone, so that nobody tells anything there.
    pub fn check(&self) -> io::Result<()> {
        match self.open() {
            Ok(_) => Ok(()),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(()),
            // What the system says has no path.
            Err(error) if error.raw_os_error().is_some() => {
                Err(io::Error::new(error.kind(), format!("{}: {error}", self.path.display())))
            }
            Err(error) => Err(error),
        }
    }

    /// Opens the directory, and makes it if it is missing.
    ///
    /// # Errors
    /// It cannot be made, or others could put something into it.
    pub(super) fn create(&self) -> io::Result<OpenDirectory> {
        if self.owner == Some(0) && !self.is_chosen {
            match DirBuilder::new().create(HOST_DIRECTORY) {
                // Services have theirs in it, too.
                Ok(()) => fs::set_permissions(HOST_DIRECTORY, Permissions::from_mode(0o755))?,
                Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
                Err(error) => return Err(error),
            }
        }
        DirBuilder::new().recursive(true).mode(0o700).create(&self.path)?;
        self.open()
    }

    /// Opens the directory.
    ///
    /// # Errors
    /// There is none, or it is no place for its owner alone. It is a link, has a mode beyond 0700,
    /// or belongs to another user. Or its parent does not belong to its owner or to root, or
    /// others may write to the parent.
    pub(super) fn open(&self) -> io::Result<OpenDirectory> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let directory = match self.is_chosen {
            true => openat(CWD, &self.path, flags, Mode::empty())?,
            false => openat2(CWD, &self.path, flags, Mode::empty(), ResolveFlags::NO_SYMLINKS)?,
        };
        let found = fstat(&directory)?;
        let owner = found.st_uid;
        let is_owned = self.owner.is_none_or(|expected| expected == owner) && found.st_mode & 0o077 == 0;
        // Whoever chose a directory knows what is above it.
        let is_kept = self.is_chosen || {
            let parent = fs::symlink_metadata(self.path.parent().unwrap_or(&self.path))?;
            [0, owner].contains(&parent.uid()) && parent.mode() & 0o022 == 0
        };
        if is_owned && is_kept {
            return Ok(OpenDirectory { directory, owner });
        }
        let what = format!("{} is not a directory of one user alone (mode 0700)", self.path.display());
        Err(io::Error::new(ErrorKind::PermissionDenied, what))
    }
}

/// Returns the entries of a directory, or none if it cannot be read.
fn entries(path: &Path) -> Vec<PathBuf> {
    fs::read_dir(path).into_iter().flatten().flatten().map(|entry| entry.path()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    fn located(user: u32, variables: &[(&str, &str)]) -> String {
        let env = |name: &str| variables.iter().find(|it| it.0 == name).map(|it| it.1.into());
        RuntimeDirectory::locate(user, env).path.display().to_string()
    }

    #[test]
    fn each_user_has_one() {
        let runtime = ("XDG_RUNTIME_DIR", "/run/user/7");
        assert_eq!(located(0, &[runtime]), "/run/byway-status/root");
        assert_eq!(located(7, &[runtime]), "/run/user/7/byway/status");
        assert_eq!(located(7, &[("XDG_RUNTIME_DIR", "here")]), "/tmp/byway-7/status");
        for user in [0, 7] {
            assert_eq!(located(user, &[runtime, ("BYWAY_RUNTIME_DIR", "/run/recv")]), "/run/recv");
        }
    }

    #[test]
    fn one_that_others_can_write_to_is_refused() {
        let place = tempfile::tempdir().unwrap();
        let user = rustix::process::geteuid().as_raw();
        let mode = |name: &str, mode| {
            fs::set_permissions(place.path().join(name), Permissions::from_mode(mode)).unwrap();
        };
        let of = |name: &str, owner, is_chosen| RuntimeDirectory {
            path: place.path().join(name),
            owner: Some(owner),
            is_chosen,
        };
        let at = |name: &str| of(name, user, false);
        at("above/own").create().unwrap();
        at("above/own").create().unwrap();
        assert!(of("above/own", user + 1, false).create().is_err(), "of another user");
        symlink(place.path().join("above/own"), place.path().join("above/link")).unwrap();
        symlink(place.path().join("above"), place.path().join("aside")).unwrap();
        for is_chosen in [false, true] {
            assert!(of("above/link", user, is_chosen).open().is_err());
            assert_eq!(of("aside/own", user, is_chosen).open().is_ok(), is_chosen);
        }
        mode("above", 0o777);
        assert!(at("above/own").open().is_err(), "others can put another in its place");
        assert!(of("above/own", user, true).open().is_ok());
        mode("above", 0o755);
        mode("above/own", 0o770);
        assert!(at("above/own").open().is_err());
    }
}
