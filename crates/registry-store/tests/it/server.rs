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

/// Where the programs of the latest PostgreSQL on this host are.
fn programs() -> Option<PathBuf> {
    let programs = fs::read_dir("/usr/lib/postgresql").ok()?.flatten().map(|entry| entry.path().join("bin"));
    programs.filter(|path| path.join("initdb").exists()).max()
}

impl Server {
    /// Whether one can be started.
    #[allow(dead_code, reason = "each test program uses its part")]
    pub fn is_possible() -> bool {
        programs().is_some()
    }

    /// Starts one. `None`: there is no PostgreSQL on this host.
    pub fn start() -> Option<Self> {
        let programs = programs()?;
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
        server.run(
            "initdb",
            &["--no-sync", "--auth=trust", "--username=byway", "--encoding=UTF8", "-D", &server.data()],
        );
        server.start_again();
        Some(server)
    }

    /// Whether the server could be started over what is in its directory.
    fn go(&self) -> bool {
        let options = format!(
            "-c listen_addresses= -c unix_socket_directories={} -c fsync=off -c max_connections=90",
            self.path().display()
        );
        let log = self.path().join("log").display().to_string();
        self.does("pg_ctl", &["-D", &self.data(), "-l", &log, "-o", &options, "-w", "start"])
    }

    /// Kills the server with SIGKILL: what it has not written is lost.
    #[allow(dead_code, reason = "each test program uses its part")]
    pub fn kill(&self) {
        let file = fs::read_to_string(self.path().join("data/postmaster.pid")).unwrap();
        let id = file.lines().next().unwrap();
        assert!(Command::new("kill").args(["-KILL", id]).status().unwrap().success());
    }

    /// Starts it, also after that.
    pub fn start_again(&self) {
        // The processes that it had begun end by themselves, and it does not start beside them.
        let begun = (0..100).any(|_| {
            let begun = self.go();
            if !begun {
                std::thread::sleep(std::time::Duration::from_millis(300));
            }
            begun
        });
        assert!(begun, "{}", fs::read_to_string(self.path().join("log")).unwrap_or_default());
    }

    fn path(&self) -> &Path {
        self.directory.path()
    }

    fn data(&self) -> String {
        self.path().join("data").display().to_string()
    }

    fn run(&self, program: &str, arguments: &[&str]) {
        assert!(self.does(program, arguments), "{program} {arguments:?}");
    }

    /// Whether a program of PostgreSQL's does well.
    fn does(&self, program: &str, arguments: &[&str]) -> bool {
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
        command.stderr(Stdio::null()).status().unwrap().success()
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
        // A panic here would hide the one that ends the test.
        self.does("pg_ctl", &["-D", &self.data(), "-m", "immediate", "stop"]);
    }
}
