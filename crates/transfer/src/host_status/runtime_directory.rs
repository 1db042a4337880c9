//! Where the sockets of running processes are.

use std::ffi::OsString;
use std::fs::{self, DirBuilder};
use std::io::{self, ErrorKind};
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _};
use std::path::{Path, PathBuf};

/// Where root's processes and services of the host have theirs, each service in a folder.
const HOST_DIRECTORY: &str = "/run/byway-status";
/// The folder of root's processes.
const ROOT_FOLDER: &str = "root";
/// Where the runtime directories of users are.
const USERS_DIRECTORY: &str = "/run/user";
/// The folder with status sockets in a user's runtime directory.
const USER_FOLDER: &str = "byway/status";

/// A directory with status sockets, which only its owner may enter.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RuntimeDirectory {
    path: PathBuf,
}

impl RuntimeDirectory {
    /// The directory for processes of `user`. `$BYWAY_RUNTIME_DIR` is taken as it is. Without it,
    /// this is /run/byway-status/root for root. For others it is `byway/status` in
    /// `$XDG_RUNTIME_DIR`, or /tmp/byway-USER/status where there is none.
    #[must_use]
    pub fn locate(user: u32, env: impl Fn(&str) -> Option<OsString>) -> Self {
        if let Some(chosen) = chosen(&env) {
            return chosen;
        }
        if user == 0 {
            return Self { path: Path::new(HOST_DIRECTORY).join(ROOT_FOLDER) };
        }
        let runtime = env("XDG_RUNTIME_DIR").map(PathBuf::from).filter(|path| path.is_absolute());
        let path = runtime.map(|runtime| runtime.join(USER_FOLDER));
        Self { path: path.unwrap_or_else(|| format!("/tmp/byway-{user}/status").into()) }
    }

    /// The directories that `user` may ask: the user's own, and for root those of services and of
    /// all users.
    #[must_use]
    pub fn visible(user: u32, env: impl Fn(&str) -> Option<OsString>) -> Vec<Self> {
        let own = Self::locate(user, &env);
        if user != 0 || chosen(&env).is_some() {
            return vec![own];
        }
        let mut all = vec![own];
        let services = entries(Path::new(HOST_DIRECTORY));
        let users = entries(Path::new(USERS_DIRECTORY)).into_iter().map(|user| user.join(USER_FOLDER));
        for path in services.into_iter().chain(users) {
            let directory = Self { path };
            if !all.contains(&directory) {
                all.push(directory);
            }
        }
        all
    }

    /// The directory's path.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Makes the directory if there is none.
    ///
    /// # Errors
    /// It cannot be made, or others could put something into it: it is a link, belongs to another
    /// user, or has a mode beyond 0700.
    pub fn create(&self, user: u32) -> io::Result<()> {
        DirBuilder::new().recursive(true).mode(0o700).create(&self.path)?;
        let found = fs::symlink_metadata(&self.path)?;
        if found.is_dir() && found.uid() == user && found.mode() & 0o077 == 0 {
            return Ok(());
        }
        let what = format!("{} is not a directory of this user alone", self.path.display());
        Err(io::Error::new(ErrorKind::PermissionDenied, what))
    }
}

fn chosen(env: &impl Fn(&str) -> Option<OsString>) -> Option<RuntimeDirectory> {
    env("BYWAY_RUNTIME_DIR").map(|path| RuntimeDirectory { path: path.into() })
}

/// What is in a directory; nothing if it cannot be read.
fn entries(path: &Path) -> Vec<PathBuf> {
    fs::read_dir(path).into_iter().flatten().flatten().map(|entry| entry.path()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::{PermissionsExt as _, symlink};

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
        let at = |name: &str| RuntimeDirectory { path: place.path().join(name) };
        at("own").create(user).unwrap();
        at("own").create(user).unwrap();
        assert!(at("own").create(user + 1).is_err(), "of another user");
        symlink(at("own").path(), at("link").path()).unwrap();
        assert!(at("link").create(user).is_err());
        fs::set_permissions(at("own").path(), fs::Permissions::from_mode(0o770)).unwrap();
        assert!(at("own").create(user).is_err());
    }
}
