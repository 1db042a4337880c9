//! A PostgreSQL of the test's own, in a directory that goes away.

use std::fs;
use std::os::unix::fs::{PermissionsExt as _, chown};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use tempfile::TempDir;

/// A server that runs, reached by a socket in its directory.
pub struct Server {
    directory: TempDir,
    programs: PathBuf,
    /// Who runs it, if the test is root: PostgreSQL does not run as root.
    user: Option<String>,
}

impl Server {
    /// Starts one. `None`: there is no PostgreSQL on this host.
    pub fn start() -> Option<Self> {
        let programs =
            fs::read_dir("/usr/lib/postgresql").ok()?.flatten().map(|entry| entry.path().join("bin"));
        let programs = programs.filter(|path| path.join("initdb").exists()).max()?;
        let directory = tempfile::tempdir().unwrap();
        let user = rustix::process::getuid().is_root().then(|| {
            let passwd = fs::read_to_string("/etc/passwd").unwrap_or_default();
            let known = passwd.lines().any(|line| line.starts_with("postgres:"));
            if known { "postgres".to_owned() } else { "nobody".to_owned() }
        });
        let server = Self { directory, programs, user };
        fs::set_permissions(server.path(), fs::Permissions::from_mode(0o755)).unwrap();
        if let Some(user) = &server.user {
            let passwd = fs::read_to_string("/etc/passwd").unwrap();
            let line = passwd.lines().find(|line| line.starts_with(&format!("{user}:"))).unwrap();
            let numbers: Vec<u32> = line.split(':').filter_map(|field| field.parse().ok()).collect();
            chown(server.path(), Some(numbers[0]), Some(numbers[1])).unwrap();
        }
        let data = server.data();
        server.run(
            "initdb",
            &["--no-sync", "--auth=trust", "--username=byway", "--encoding=UTF8", "-D", &data],
        );
        let options = format!(
            "-c listen_addresses= -c unix_socket_directories={} -c fsync=off -c max_connections=90",
            server.path().display()
        );
        let log = server.path().join("log").display().to_string();
        server.run("pg_ctl", &["-D", &data, "-l", &log, "-o", &options, "-w", "start"]);
        Some(server)
    }

    fn path(&self) -> &Path {
        self.directory.path()
    }

    fn data(&self) -> String {
        self.path().join("data").display().to_string()
    }

    fn run(&self, program: &str, arguments: &[&str]) {
        let program = self.programs.join(program);
        let mut command = match &self.user {
            Some(user) => {
                let mut command = Command::new("setpriv");
                command.args(["--reuid", user, "--regid", user, "--init-groups"]).arg(&program);
                command
            }
            None => Command::new(&program),
        };
        command.args(arguments).current_dir("/").stdin(Stdio::null()).stdout(Stdio::null());
        let status = command.stderr(Stdio::null()).status().unwrap();
        assert!(status.success(), "{}: {status}", program.display());
    }

    /// Runs a statement.
    pub fn execute(&self, statement: &str) {
        let host = self.path().display().to_string();
        self.run("psql", &["-h", &host, "-U", "byway", "-d", "postgres", "-qc", statement]);
    }

    /// A data base of this name, empty.
    pub fn data_base(&self, name: &str) -> String {
        self.execute(&format!("CREATE DATABASE {name}"));
        let host = self.path().display().to_string().replace('/', "%2F");
        format!("postgres://byway@{host}/{name}?sslmode=disable")
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.run("pg_ctl", &["-D", &self.data(), "-m", "immediate", "stop"]);
    }
}
