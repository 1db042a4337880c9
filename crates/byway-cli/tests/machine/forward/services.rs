//! Services of a host, as administrators set them up: an rsync daemon, a PostgreSQL, an SSH server,
//! and files over WebDAV.

use crate::common::machine::{PATIENCE, must, wait_for, works};
use crate::common::script;
use crate::common::spaces::Spaces;
use rustix::process::{Pid, Signal, kill_process};
use std::fs::{self, File};
use std::os::unix::fs::{PermissionsExt as _, chown};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

/// The ports of all.
const PORTS: [u16; 4] = [873, 5432, 22, 8080];
/// PostgreSQL does not run as root.
const USER: &str = "nobody";

/// Services that run; ended when dropped.
pub struct Services<'a> {
    spaces: &'a Spaces,
    host: &'static str,
    /// Each with the signal that ends it.
    running: Vec<(Child, Signal)>,
    postgres: tempfile::TempDir,
}

/// Where the programs of the latest PostgreSQL on this host are.
fn programs() -> Option<PathBuf> {
    let programs = fs::read_dir("/usr/lib/postgresql").ok()?.flatten().map(|entry| entry.path().join("bin"));
    programs.filter(|path| path.join("initdb").exists()).max()
}

fn text(path: &Path) -> &str {
    path.to_str().unwrap()
}

/// Starts an SSH server on the host `on`, with keys in the directory `there`, and makes the keys of
/// a user in `here`. Also writes a script named `ssh`. It calls the real `ssh` with options that
/// name the user's files in `here`, because `ssh` ignores HOME. The server's name is `nas`, or
/// `localhost` at port 2222.
pub fn serve_ssh(spaces: &Spaces, on: &str, there: &Path, here: &Path) -> Child {
    let (host, user) = (there.join("host-key"), here.join("user-key"));
    for key in [&host, &user] {
        must(Command::new("ssh-keygen").args(["-q", "-t", "ed25519", "-N", "", "-f", text(key)]));
    }
    let known = fs::read_to_string(there.join("host-key.pub")).unwrap();
    fs::write(here.join("known"), format!("[localhost]:2222,nas {known}")).unwrap();
    fs::create_dir_all("/run/sshd").unwrap();
    let options = [
        format!("HostKey={}", host.display()),
        format!("AuthorizedKeysFile={}", here.join("user-key.pub").display()),
        "ListenAddress=127.0.0.1:22".to_owned(),
        "PidFile=none".to_owned(),
        "StrictModes=no".to_owned(),
        "UsePAM=no".to_owned(),
        "Subsystem=sftp internal-sftp".to_owned(),
    ];
    let options: Vec<&str> = options.iter().flat_map(|option| ["-o", option.as_str()]).collect();
    let mut server = spaces.on(on);
    server.args(["/usr/sbin/sshd", "-D", "-f", "/dev/null"]).args(options);
    let server = server.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    let line = format!(
        "exec /usr/bin/ssh -F none -o UserKnownHostsFile={} -i {} \"$@\"",
        here.join("known").display(),
        user.display()
    );
    script(&here.parent().unwrap().join("bin/ssh"), &line);
    server
}

impl<'a> Services<'a> {
    pub fn are_possible() -> bool {
        programs().is_some() && Path::new("/usr/sbin/sshd").exists() && works("setpriv --version")
    }

    /// Starts all on a host whose person has the home `there`. The person of `here` may log in.
    pub fn start(spaces: &'a Spaces, host: &'static str, there: &Path, here: &Path) -> Self {
        byway_files::generate(&there.join("data/work"), 6, 3 << 20).unwrap();
        // Without symbolic links, which a daemon changes so that they stay below its module.
        let photos = here.join("photos/2026");
        fs::create_dir_all(&photos).unwrap();
        for number in 0..20_usize {
            let bytes: Vec<u8> = (0..number * 20_000).map(|at| ((at * number) >> 3) as u8).collect();
            fs::write(photos.join(format!("{number}.jpg")), bytes).unwrap();
        }
        fs::write(
            there.join("data/a.jpg"),
            (0..700_000_u32).map(|it| (it.wrapping_mul(it) >> 7) as u8).collect::<Vec<_>>(),
        )
        .unwrap();
        let mut services = Self { spaces, host, running: Vec::new(), postgres: tempfile::tempdir().unwrap() };
        services.rsync(there);
        let data = there.join("data");
        services.serve(&["rclone", "serve", "webdav", text(&data), "--addr", "127.0.0.1:8080"]);
        services.ssh(there, here);
        services.postgres();
        for port in PORTS {
            let listens = wait_for(PATIENCE, || {
                spaces.says(host, &["ss", "-Hltn"]).contains(&format!(":{port} ")).then_some(())
            });
            assert!(listens.is_some(), "nobody listens at {port}");
        }
        services
    }

    /// Starts a PostgreSQL alone, with the database `shop`.
    pub fn database(spaces: &'a Spaces, host: &'static str) -> Self {
        let mut services = Self { spaces, host, running: Vec::new(), postgres: tempfile::tempdir().unwrap() };
        services.postgres();
        services
    }

    fn serve(&mut self, command: &[&str]) {
        let mut child = self.spaces.on(self.host);
        child.args(command).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        self.running.push((child.spawn().unwrap(), Signal::KILL));
    }

    fn rsync(&mut self, there: &Path) {
        let configuration = there.join("rsyncd.conf");
        let data = there.join("data");
        let module = format!(
            "use chroot = no\nmunge symlinks = no\nuid = 0\ngid = 0\n[data]\npath = {}\nread only = no\n",
            data.display()
        );
        fs::write(&configuration, module).unwrap();
        let listen = ["--address", "127.0.0.1", "--port", "873"];
        self.serve(
            &[&["rsync", "--daemon", "--no-detach", "--config", text(&configuration)], &listen[..]].concat(),
        );
    }

    fn ssh(&mut self, there: &Path, here: &Path) {
        self.running.push((serve_ssh(self.spaces, self.host, there, here), Signal::KILL));
    }

    /// A PostgreSQL with a table of some megabytes.
    fn postgres(&mut self) {
        let directory = self.postgres.path().to_owned();
        fs::set_permissions(&directory, fs::Permissions::from_mode(0o755)).unwrap();
        let passwd = fs::read_to_string("/etc/passwd").unwrap();
        let line = passwd.lines().find(|line| line.starts_with(&format!("{USER}:"))).unwrap();
        let numbers: Vec<u32> = line.split(':').filter_map(|field| field.parse().ok()).collect();
        chown(&directory, Some(numbers[0]), Some(numbers[1])).unwrap();
        let data = directory.join("data");
        must(self.of_postgres("initdb").args(["--no-sync", "--auth=trust", "--username=shop", text(&data)]));
        let log = directory.join("log");
        let started = wait_for(PATIENCE, || self.postgres_starts(&data, &log).then_some(()));
        assert!(
            started.is_some(),
            "PostgreSQL does not start: {}",
            fs::read_to_string(&log).unwrap_or_default()
        );
        let statement =
            "CREATE TABLE orders AS SELECT n, md5(n::text) AS what FROM generate_series(1, 60000) n";
        let local = ["psql", "-h", "127.0.0.1", "-U", "shop", "-d", "postgres", "-qc"];
        self.spaces.says(self.host, &[&local[..], &["CREATE DATABASE shop"]].concat());
        let local = ["psql", "-h", "127.0.0.1", "-U", "shop", "-d", "shop", "-qc"];
        self.spaces.says(self.host, &[&local[..], &[statement]].concat());
    }

    /// Starts the server; whether it answers. One that ends first is not among those that run.
    fn postgres_starts(&mut self, data: &Path, log: &Path) -> bool {
        let mut server = self.of_postgres("postgres");
        server.args(["-D", text(data), "-k", text(data), "-p", "5432"]);
        for setting in ["listen_addresses=127.0.0.1", "fsync=off", "shared_buffers=16MB"] {
            server.args(["-c", setting]);
        }
        let log = File::options().append(true).create(true).open(log).unwrap();
        let mut server = server.stdin(Stdio::null()).stdout(Stdio::null()).stderr(log).spawn().unwrap();
        let ready = ["pg_isready", "-q", "-h", "127.0.0.1"];
        let answers = wait_for(PATIENCE, || {
            let ended = server.try_wait().unwrap().is_some();
            (ended || self.spaces.on(self.host).args(ready).status().unwrap().success()).then_some(!ended)
        });
        // It then ends its processes and gives its shared memory back.
        self.running.push((server, Signal::QUIT));
        answers == Some(true)
    }

    /// A program of PostgreSQL's, as a user that it takes.
    fn of_postgres(&self, program: &str) -> Command {
        let mut command = self.spaces.on(self.host);
        command.args(["setpriv", "--reuid", USER, "--regid", "nogroup", "--clear-groups"]);
        command.arg(programs().unwrap().join(program)).current_dir("/");
        command
    }

    /// What the page's lines brought is what there is.
    pub fn check(&self, there: &Path, here: &Path) {
        let same = |a: &Path, b: &Path| {
            assert_eq!(byway_files::compare(a, b).unwrap(), [], "{} and {}", a.display(), b.display());
        };
        same(&there.join("data/work"), &here.join("copy/work"));
        same(&here.join("photos"), &there.join("data/photos"));
        for name in ["a.jpg", "b.jpg"] {
            assert!(
                fs::read(here.join(name)).unwrap() == fs::read(there.join("data/a.jpg")).unwrap(),
                "{name}"
            );
        }
        for entry in fs::read_dir(here.join("photos")).unwrap().flatten() {
            let copied = there.join("data/backup").join(entry.file_name());
            assert!(copied.exists(), "{} is not there", copied.display());
        }
        // Newer versions write a word of their own into each dump.
        let dump = |text: &str| -> Vec<String> {
            let own = |line: &&str| !line.starts_with("\\restrict") && !line.starts_with("\\unrestrict");
            text.lines().filter(own).map(str::to_owned).collect()
        };
        let direct = ["pg_dump", "-h", "127.0.0.1", "-U", "shop", "shop"];
        let (direct, forwarded) =
            (self.spaces.says(self.host, &direct), fs::read_to_string(here.join("shop.sql")).unwrap());
        assert!(direct.len() > 1_000_000, "{} bytes", direct.len());
        assert!(dump(&direct) == dump(&forwarded), "another dump");
        let name = fs::read_to_string(here.join("name.txt")).unwrap();
        assert_eq!(name, must(Command::new("uname").arg("-n")));
    }
}

impl Drop for Services<'_> {
    fn drop(&mut self) {
        for (child, signal) in &mut self.running {
            let _ = kill_process(Pid::from_child(child), *signal);
            let _ = wait_for(PATIENCE, || child.try_wait().ok().flatten());
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}
