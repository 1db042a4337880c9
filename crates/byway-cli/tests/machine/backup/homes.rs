//! Two hosts with an empty home directory each, and a person who may log in from one to the other.

use crate::common::assert_same;
use crate::common::machine::{PATIENCE, must, wait_for};
use crate::common::spaces::Spaces;
use std::fs;
use std::io::Write as _;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

/// The host with the data.
pub const HOME: &str = "home";
/// The host to which backups go. It has an SSH server.
pub const NAS: &str = "nas";
/// What a person types where a program asks for a password.
const PASSWORD: &[u8] = b"correct horse\ncorrect horse\n";
/// Runs the line `$2` with a home directory and a `/srv` of its own: `ssh` asks the system, not
/// HOME.
const AT_HOME: &str = "mount --bind \"$0\" /root && mount --bind \"$1\" /srv && cd && \
                       exec bash -c \"set -o pipefail; $2\"";

/// What is on the two hosts; what runs there ends when this is dropped.
pub struct Homes<'a> {
    spaces: &'a Spaces,
    directory: tempfile::TempDir,
    running: Vec<(String, Child)>,
    ticket: String,
    /// Lines that set variables for those after them.
    exports: String,
}

/// The two hosts, with a line between them.
pub fn hosts(tag: &str) -> Spaces {
    let spaces = Spaces::new(tag, &[HOME, NAS]);
    spaces.line([(HOME, "d0", "10.77.0.1"), (NAS, "d1", "10.77.0.2")]);
    spaces.wait(HOME, "d0");
    spaces.wait(NAS, "d1");
    spaces
}

impl<'a> Homes<'a> {
    pub fn new(spaces: &'a Spaces) -> Self {
        let (ticket, exports) = (String::new(), String::new());
        let directory = tempfile::tempdir().unwrap();
        let mut homes = Self { spaces, directory, running: Vec::new(), ticket, exports };
        for host in [HOME, NAS] {
            fs::create_dir_all(homes.srv(host)).unwrap();
            let ssh = homes.home(host).join(".ssh");
            fs::create_dir_all(&ssh).unwrap();
            fs::set_permissions(ssh, fs::Permissions::from_mode(0o700)).unwrap();
        }
        byway_files::generate(&homes.home(HOME).join("photos"), 1, 2_000_000).unwrap();
        homes.serve_ssh();
        homes
    }

    /// An SSH server on the NAS. Whoever is at home may log in, and knows its key.
    fn serve_ssh(&mut self) {
        let (host, user) = (self.directory.path().join("host-key"), self.home(HOME).join(".ssh/id_ed25519"));
        for key in [&host, &user] {
            must(Command::new("ssh-keygen").args(["-q", "-t", "ed25519", "-N", "", "-f"]).arg(key));
        }
        let known = fs::read_to_string(host.with_extension("pub")).unwrap();
        fs::write(self.home(HOME).join(".ssh/known_hosts"), format!("nas {known}")).unwrap();
        fs::copy(user.with_extension("pub"), self.home(NAS).join(".ssh/authorized_keys")).unwrap();
        fs::create_dir_all("/run/sshd").unwrap();
        let line = format!(
            "exec /usr/sbin/sshd -D -f /dev/null -o HostKey={} -o ListenAddress=127.0.0.1:22 -o PidFile=none \
             -o UsePAM=no -o Subsystem='sftp internal-sftp'",
            host.display()
        );
        let server = self.shell(NAS, &line).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        self.running.push(("sshd".to_owned(), server));
        self.listens(NAS, "22");
    }

    /// The home directory of a host.
    pub fn home(&self, host: &str) -> PathBuf {
        self.directory.path().join(host)
    }

    /// What a host has as `/srv`.
    pub fn srv(&self, host: &str) -> PathBuf {
        self.directory.path().join(format!("srv-{host}"))
    }

    /// A tree of the home is what was copied.
    #[track_caller]
    pub fn same(&self, tree: &str, copy: impl AsRef<Path>) {
        assert_same(&self.home(HOME).join(tree), copy.as_ref());
    }

    /// A line in the shell of somebody who has just logged in.
    fn shell(&self, host: &str, line: &str) -> Command {
        let program = Path::new(env!("CARGO_BIN_EXE_byway")).parent().unwrap();
        let line = format!("{}{line}", if host == HOME { self.exports.as_str() } else { "" });
        let mut command = self.spaces.on(host);
        command.args(["bash", "-c", AT_HOME]).arg(self.home(host)).arg(self.srv(host)).arg(line).env_clear();
        command
            .env("HOME", "/root")
            .env("PATH", format!("{}:/usr/sbin:/usr/bin:/sbin:/bin", program.display()));
        command.stdin(Stdio::null());
        command
    }

    /// What a line says that does well.
    #[track_caller]
    pub fn run(&self, host: &str, line: &str) -> String {
        must(&mut self.shell(host, line))
    }

    /// Types a line of a page, with the newest ticket in the place of TICKET. A program that goes
    /// on is left in the background as soon as it is ready.
    #[track_caller]
    pub fn types(&mut self, host: &str, line: &str) {
        let line = line.replace("TICKET", &self.ticket);
        let goes_on = ["byway recv ", "byway forward ", "rclone serve ", "rsync --daemon "];
        if line.starts_with("export ") {
            self.exports += &format!("{line}; ");
        } else if let Some(program) = goes_on.iter().find(|program| line.starts_with(*program)) {
            self.starts(host, program, &line);
        } else {
            self.ends(host, &line);
        }
    }

    /// Types a line, and a password where the program asks for one.
    #[track_caller]
    fn ends(&self, host: &str, line: &str) {
        let mut command = self.shell(host, line);
        let mut child =
            command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        // Who asks for none may have ended before.
        let _ = child.stdin.take().unwrap().write_all(PASSWORD);
        let output = child.wait_with_output().unwrap();
        let [said, told] = [&output.stdout, &output.stderr].map(|bytes| String::from_utf8_lossy(bytes));
        assert!(output.status.success(), "{line}: {:?} {said} {told}", output.status);
    }

    #[track_caller]
    fn starts(&mut self, host: &str, program: &str, line: &str) {
        // One receiver for each directory.
        if let Some(before) =
            self.running.iter().position(|(name, _)| name == program && program == "byway recv ")
        {
            let (_, mut receiver) = self.running.swap_remove(before);
            receiver.kill().unwrap();
            receiver.wait().unwrap();
        }
        let said = self.directory.path().join(format!("said-{}", self.running.len()));
        let both = fs::File::create(&said).unwrap();
        let mut command = self.shell(host, &format!("exec {line}"));
        command.stdout(both.try_clone().unwrap()).stderr(both);
        self.running.push((program.to_owned(), command.spawn().unwrap()));
        let found = |sign: &str| {
            let found = wait_for(PATIENCE, || {
                let text = fs::read_to_string(&said).ok()?;
                let (whole, _) = text.rsplit_once('\n')?;
                whole.lines().find(|line| line.contains(sign)).map(str::to_owned)
            });
            found.unwrap_or_else(|| panic!("{line}: {}", fs::read_to_string(&said).unwrap()))
        };
        match program {
            "byway recv " => self.ticket = found("byway1-"),
            "byway forward " => drop(found("the receiver answers")),
            _ => {
                let port = line.rsplit(' ').find_map(|word| word.rsplit(':').next()?.parse::<u16>().ok());
                self.listens(host, &port.unwrap().to_string());
            }
        }
    }

    #[track_caller]
    fn listens(&self, host: &str, port: &str) {
        let listens =
            || self.spaces.says(host, &["ss", "-Hltn"]).contains(&format!(":{port} ")).then_some(());
        assert!(wait_for(PATIENCE, listens).is_some(), "nobody listens at {port}");
    }
}

impl Drop for Homes<'_> {
    fn drop(&mut self) {
        for (_, child) in &mut self.running {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}
