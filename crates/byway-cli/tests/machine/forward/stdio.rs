//! `byway forward --stdio` as the `ProxyCommand` of real programs: `ssh`, `sftp`, `rsync` and `git`
//! reach an SSH server of another host. Then what killing them leaves, two hundred at once, and how
//! many round trips a connection takes to begin.

use super::services::serve_ssh;
use crate::common::bench::{BYWAY, Bench, TRIES};
use crate::common::machine::{Measured, PATIENCE, must, wait_for};
use crate::common::spaces::Spaces;
use crate::common::{Running, assert_same, script};
use libtest_mimic::Failed;
use rustix::process::{Pid, Signal, kill_process};
use std::fs;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpListener;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// Open files that a receiver may have after its first connection and had not before.
const MAX_LASTING_FILES: usize = 8;
/// Programs at once.
const CROWD: usize = 200;
/// Bytes that each of a crowd sends.
const CROWD_BYTES: usize = 20_000;
/// Time for the two ends' own work while a connection begins, with a build for tests.
const OWN_WORK: Duration = Duration::from_millis(90);
/// The round trip of the line on which the beginning is measured.
const RTT: Duration = Duration::from_millis(200);
/// A target that speaks first.
const GREETER: &str = "import socket
server = socket.create_server(('127.0.0.1', 2000))
print('ready', flush=True)
while True:
    program = server.accept()[0]
    program.sendall(b'hello\\n')
    program.recv(1)
    program.close()
";

/// A host with an SSH server and a receiver that leads there, and a host with the ticket.
struct Site {
    spaces: Spaces,
    directory: tempfile::TempDir,
    receiver: Running,
    server: Option<Child>,
}

impl Site {
    fn new(tag: &str, allow: &str) -> Self {
        let spaces = Spaces::new(tag, &["snd", "rcv"]);
        spaces.line([("snd", "d0", "10.77.0.1"), ("rcv", "d1", "10.77.0.2")]);
        spaces.wait("snd", "d0");
        spaces.wait("rcv", "d1");
        let directory = tempfile::tempdir().unwrap();
        let path = |name: &str| directory.path().join(name);
        for name in ["here", "there", "bin"] {
            fs::create_dir_all(path(name)).unwrap();
        }
        let into = path("in");
        let arguments = ["recv", into.to_str().unwrap(), "--allow-forward", allow];
        let mut receiver = spaces.byway("rcv", &path("state-rcv"), &arguments);
        fs::write(path("ticket"), receiver.event("ready")["ticket"].as_str().unwrap()).unwrap();
        Self { spaces, directory, receiver, server: None }
    }

    /// Starts the SSH server.
    fn with_ssh(mut self) -> Self {
        let server = serve_ssh(&self.spaces, "rcv", &self.path("there"), &self.path("here"));
        self.server = Some(server);
        let listens = || self.spaces.says("rcv", &["ss", "-Hltn"]).contains(":22 ").then_some(());
        assert!(wait_for(PATIENCE, listens).is_some());
        self
    }

    fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    fn word(&self, name: &str) -> String {
        self.path(name).to_str().unwrap().to_owned()
    }

    /// What a user writes as `ProxyCommand`.
    fn proxy(&self, target: &str) -> String {
        format!("{BYWAY} forward --stdio {target} --to @{}", self.word("ticket"))
    }

    /// The script `ssh` and its options, as words.
    fn ssh(&self) -> [String; 3] {
        [self.word("bin/ssh"), "-o".into(), format!("ProxyCommand={}", self.proxy("localhost:22"))]
    }

    /// A command of the shell on the sender's host.
    fn shell(&self, line: &str) -> Command {
        let mut command = self.spaces.on("snd");
        command.args(["bash", "-c", &format!("set -o pipefail; {line}")]).current_dir(self.path("here"));
        command.env("BYWAY_STATE_DIR", self.path("state-snd")).env("HOME", self.path("here"));
        command.stdin(Stdio::null());
        command
    }

    /// Waits until the receiver has no connection to the SSH server.
    #[track_caller]
    fn is_free(&self) {
        let open = ["ss", "-Htn", "state", "established", "dport = :22"];
        let free = || self.spaces.says("rcv", &open).trim().is_empty().then_some(());
        assert!(wait_for(PATIENCE, free).is_some(), "{}", self.spaces.says("rcv", &open));
    }

    /// Files that the receiver has open.
    fn files(&self) -> usize {
        fs::read_dir(format!("/proc/{}/fd", self.receiver.id())).unwrap().count()
    }
}

impl Drop for Site {
    fn drop(&mut self) {
        if let Some(server) = &mut self.server {
            let _ = server.kill();
            let _ = server.wait();
        }
    }
}

/// What people have reaches the other host by one line.
pub fn programs() -> Result<(), Failed> {
    let site = Site::new("p", "localhost:22").with_ssh();
    let [ssh, option, proxy] = site.ssh();
    let ssh = format!("{ssh} {option} '{proxy}'");
    let there = site.word("there");
    must(&mut site.shell("head -c 3000000 /dev/urandom > big"));
    // Both directions, and the exit code of the command.
    let sum = must(&mut site.shell(&format!("{ssh} nas 'tee {there}/big | sha256sum' < big")));
    assert_eq!(sum, must(&mut site.shell("sha256sum < big")));
    must(&mut site.shell(&format!("{ssh} nas 'cat {there}/big' | cmp - big")));
    let seven = site.shell(&format!("{ssh} nas exit 7")).output()?;
    assert_eq!((seven.status.code(), seven.stderr.as_slice()), (Some(7), b"".as_slice()));
    byway_files::generate(&site.path("here/tree"), 6, 1 << 20)?;
    must(&mut site.shell(&format!("rsync -a -e \"{ssh}\" tree nas:{there}/")));
    assert_same(&site.path("here/tree"), &site.path("there/tree"));
    let by_way = site.word("bin/by-way");
    script(by_way.as_ref(), &format!("exec {ssh} \"$@\""));
    let batch = format!("put big {there}/again\\nget {there}/again back\\n");
    must(&mut site.shell(&format!("printf '{batch}' | sftp -q -S {by_way} -b - nas && cmp big back")));
    let repository = format!("{there}/repository");
    must(&mut site.shell(&format!(
        "git init -q {repository} && cd {repository} && cp ../big . && git add big && \
         git -c user.name=n -c user.email=n@example.org commit -qm one"
    )));
    let clone = format!("GIT_SSH_COMMAND={by_way} git clone -q nas:{repository} clone && cmp clone/big big");
    must(&mut site.shell(&clone));
    site.is_free();
    // One that is refused: one line of byway, and what ssh says of a proxy that has gone.
    let refused = site.word("bin/ssh");
    let refused = format!("{refused} -o 'ProxyCommand={}' nas true", site.proxy("localhost:23"));
    let output = site.shell(&refused).output()?;
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(255), "{said}");
    let own: Vec<&str> = said.lines().filter(|line| line.starts_with("byway: ")).collect();
    assert_eq!(
        own,
        ["byway: localhost:23: the receiver does not allow this target: it needs --allow-forward"]
    );
    Ok(())
}

/// Whoever is killed, the receiver's side is free soon.
pub fn killed() -> Result<(), Failed> {
    let site = Site::new("k", "localhost:22").with_ssh();
    for (victim, signal) in [("proxy", Signal::TERM), ("proxy", Signal::HUP), ("ssh", Signal::KILL)] {
        let id = site.path("id");
        let _ = fs::remove_file(&id);
        // Under nohup, which ignores SIGHUP, the tests pass, too.
        let program = format!("env --default-signal=HUP {}", site.proxy("localhost:22"));
        let proxy = format!("sh -c 'echo $$ > {}; exec {program}'", id.display());
        let mut command = site.spaces.on("snd");
        command.args([&site.word("bin/ssh"), "-o", &format!("ProxyCommand={proxy}")]);
        command.args(["nas", "echo begun; sleep 1000"]).stdin(Stdio::null()).stdout(Stdio::piped());
        let mut ssh = command.env("BYWAY_STATE_DIR", site.path("state-snd")).stderr(Stdio::null()).spawn()?;
        let mut line = String::new();
        BufReader::new(ssh.stdout.take().unwrap()).read_line(&mut line)?;
        assert_eq!(line, "begun\n");
        let proxy = Pid::from_raw(fs::read_to_string(&id)?.trim().parse()?).unwrap();
        let begun = Instant::now();
        kill_process(if victim == "ssh" { Pid::from_child(&ssh) } else { proxy }, signal)?;
        ssh.wait()?;
        site.is_free();
        let gone = || fs::metadata(format!("/proc/{}", proxy.as_raw_nonzero())).is_err().then_some(());
        assert!(wait_for(PATIENCE, gone).is_some(), "the proxy of a killed {victim} lives on");
        println!("{victim} {signal:?}: free after {:?}", begun.elapsed());
    }
    Ok(())
}

/// Each gets its connection, or a line that says why not. Nothing of them stays.
pub fn crowd() -> Result<(), Failed> {
    let site = Site::new("c", "localhost:2001");
    let listener = site.spaces.at("rcv", || TcpListener::bind("127.0.0.1:2001").unwrap());
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            std::thread::spawn(move || {
                let mut stream = stream.unwrap();
                let mut bytes = Vec::new();
                if stream.read_to_end(&mut bytes).is_ok() {
                    let _ = write!(stream, "{}", bytes.len());
                }
            });
        }
    });
    let begin = || {
        let mut command =
            site.shell(&format!("head -c {CROWD_BYTES} /dev/zero | {}", site.proxy("localhost:2001")));
        command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
    };
    // What this process had open when it started the receiver may be among them.
    let before = site.files();
    // The first makes the key of this host.
    assert_eq!(begin().wait_with_output()?.stdout, CROWD_BYTES.to_string().as_bytes());
    let crowd: Vec<Child> = (0..CROWD).map(|_| begin()).collect();
    let mut served = 0;
    for one in crowd {
        let output = one.wait_with_output()?;
        let said = String::from_utf8_lossy(&output.stderr);
        if output.status.success() {
            assert_eq!((output.stdout.as_slice(), &*said), (CROWD_BYTES.to_string().as_bytes(), ""));
            served += 1;
        } else {
            assert!(said.starts_with("byway: ") && said.lines().count() == 1, "{said}");
            assert!(output.stdout.is_empty());
        }
    }
    println!("{served} of {CROWD} were served at once");
    assert!(served >= CROWD / 2, "{served}");
    let freed = wait_for(PATIENCE, || (site.files() <= before + MAX_LASTING_FILES).then_some(()));
    assert!(freed.is_some(), "{} files were open, and {} are", before, site.files());
    assert_eq!(begin().wait_with_output()?.stdout, CROWD_BYTES.to_string().as_bytes());
    Ok(())
}

/// From the start of the program to the first byte of a target that speaks first, two round trips
/// pass: the session's handshake, and the connection.
pub fn beginning() -> Measured {
    let plan = "[[link]]\nbetween = [\"alice\", \"bob\"]\nrate = \"100 Mbit/s\"\ndelay = \"100 ms\"\n";
    for _ in 0..TRIES {
        let bench = Bench::new();
        bench.up("line", plan);
        let mut greeter = bench.exec("bob", &["/usr/bin/python3", "-c", GREETER]);
        let mut greeter = greeter.stdout(Stdio::piped()).spawn()?;
        BufReader::new(greeter.stdout.take().unwrap()).read_line(&mut String::new())?;
        let directory = bench.word("in");
        let mut receiver =
            bench.exec("bob", &[BYWAY, "recv", &directory, "--allow-forward", "localhost:2000"]);
        let mut receiver = receiver
            .env("BYWAY_STATE_DIR", bench.path("bob"))
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()?;
        let mut ticket = String::new();
        BufReader::new(receiver.stdout.take().unwrap()).read_line(&mut ticket)?;
        let clock = format!(
            "s=$(date +%s%N); {BYWAY} forward --stdio localhost:2000 --to {} < /dev/null | \
             (read -r hello; echo $hello $(( ($(date +%s%N) - s) / 1000000 )); cat)",
            ticket.trim()
        );
        let mut took = Vec::new();
        for _ in 0..5 {
            let mut run = bench.exec("alice", &["bash", "-c", &clock]);
            let said = must(run.env("BYWAY_STATE_DIR", bench.path("alice")));
            took.push(said.trim().strip_prefix("hello ").unwrap().parse().map(Duration::from_millis)?);
        }
        let accurate = bench.is_accurate();
        for child in [&mut greeter, &mut receiver] {
            child.kill()?;
            child.wait()?;
        }
        took.sort();
        println!("first byte after {took:?}, on a line of {RTT:?} there and back");
        if accurate {
            assert!(took[2] <= RTT * 2 + OWN_WORK, "{took:?}");
            return Ok(Some(()));
        }
    }
    Ok(None)
}
