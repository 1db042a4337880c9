//! Helpers that the tests of the program share. They start its processes, read their output and
//! stop them by process id. Hosts in network namespaces, emulated labs, and two sites with gateways
//! each have a file of their own.
#![allow(
    dead_code,
    clippy::unwrap_used,
    reason = "a test ends where it fails; each test binary uses its part"
)]

pub mod bench;
pub mod machine;
pub mod pages;
pub mod parcel;
pub mod peak;
pub mod processor;
pub mod sites;
pub mod spaces;

use byway_transfer::ticket::looks_like_ticket;
use machine::PATIENCE;
use std::fs::File;
use std::io::{BufRead, BufReader, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

/// Copies `byway` to a place where every user may run it. The copy is made by a separate process,
/// `install`: children of this process would inherit the open file, and the kernel runs no file
/// that is open for writing.
pub fn for_anybody(program: &Path) {
    let copied =
        Command::new("install").args(["-m", "755", env!("CARGO_BIN_EXE_byway")]).arg(program).status();
    assert!(copied.unwrap().success());
}

/// A script of the shell at `path` that does what `line` says. `install` writes it, for the same
/// reason as in [`for_anybody`].
pub fn script(path: &Path, line: &str) {
    let mut writing = Command::new("install");
    let writing = writing.args(["-m", "755", "/dev/stdin"]).arg(path);
    let mut writing = writing.stdin(Stdio::piped()).spawn().unwrap();
    let written = writing.stdin.take().unwrap().write_all(format!("#!/bin/sh\n{line}\n").as_bytes());
    assert!(written.is_ok() && writing.wait().unwrap().success(), "{}", path.display());
}

/// A place for one test: a directory that goes away, and a state directory per host in it.
pub struct Place {
    directory: tempfile::TempDir,
}

impl Place {
    pub fn new() -> Self {
        Self { directory: tempfile::tempdir().unwrap() }
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    /// `byway` with these arguments, as on `host`.
    pub fn command(&self, host: &str, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_byway"));
        command.args(arguments).env_clear().env("HOME", self.path(host)).current_dir(self.directory.path());
        command.env("BYWAY_RUNTIME_DIR", self.path("run"));
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    }

    /// Runs it to its end.
    pub fn run(&self, host: &str, arguments: &[&str]) -> Ended {
        Running::start(self.command(host, arguments)).end()
    }

    /// A receiver of one transfer, or of more, and its ticket.
    pub fn recv(&self, arguments: &[&str]) -> (Running, String) {
        let arguments = [&["recv", "--listen", "127.0.0.1:0"], arguments].concat();
        let mut running = Running::start(self.command("receiver", &arguments));
        let ticket = running.line();
        (running, ticket)
    }

    /// A receiver of a stream, whose bytes go to the file `out`, and its ticket.
    pub fn recv_pipe(&self) -> (Child, String) {
        let errors = self.path("errors");
        let mut command = self.command("receiver", &["recv", "-", "--listen", "127.0.0.1:0"]);
        command.stdout(File::create(self.path("out")).unwrap()).stderr(File::create(&errors).unwrap());
        let child = command.spawn().unwrap();
        (child, ticket_in(&errors))
    }

    /// A relay that may reach this host, and its word.
    pub fn relay(&self, arguments: &[&str]) -> (Running, String) {
        let fixed = ["relay", "--listen", "127.0.0.1:0", "--allow-destination", "127.0.0.0/8"];
        let mut running = Running::start(self.command("relay", &[&fixed, arguments].concat()));
        let word = running.line();
        (running, word)
    }
}

/// The ticket that a receiver writes into the file `errors`, once it does.
pub fn ticket_in(errors: &Path) -> String {
    let ticket = (0..1_000).find_map(|_| {
        std::thread::sleep(Duration::from_millis(10));
        let text = std::fs::read_to_string(errors).unwrap();
        text.lines().find(|line| looks_like_ticket(line)).map(str::to_owned)
    });
    ticket.unwrap()
}

/// A process; killed if the test ends before it.
pub struct Running {
    child: Option<Child>,
    stdout: Option<BufReader<ChildStdout>>,
    stderr: Receiver<Vec<u8>>,
}

/// A process that ended.
pub struct Ended {
    pub code: Option<i32>,
    pub stdout: Vec<u8>,
    pub stderr: String,
}

impl Running {
    pub fn start(mut command: Command) -> Self {
        let mut child = command.spawn().unwrap();
        let stdout = child.stdout.take().map(BufReader::new);
        let (give, stderr) = channel();
        let mut errors = child.stderr.take().unwrap();
        std::thread::spawn(move || {
            let mut text = Vec::new();
            errors.read_to_end(&mut text).unwrap();
            give.send(text).unwrap_or_default();
        });
        Self { child: Some(child), stdout, stderr }
    }

    pub fn id(&self) -> i32 {
        self.child.as_ref().unwrap().id().try_into().unwrap()
    }

    /// The next line of standard output.
    pub fn line(&mut self) -> String {
        let mut line = String::new();
        self.stdout.as_mut().unwrap().read_line(&mut line).unwrap();
        if line.is_empty() {
            panic!("it said nothing and ended: {}", self.collect().stderr);
        }
        line.trim_end().to_owned()
    }

    pub fn interrupt(&self) {
        self.signal("INT");
    }

    /// Sends it a signal, by its name without SIG.
    pub fn signal(&self, name: &str) {
        // `kill` is a program everywhere, and the library has no call for it.
        let done = Command::new("kill").args([&format!("-{name}"), &self.id().to_string()]).status().unwrap();
        assert!(done.success());
    }

    /// The next event of this name; those before it are skipped.
    pub fn event(&mut self, name: &str) -> serde_json::Value {
        loop {
            let event: serde_json::Value = serde_json::from_str(&self.line()).unwrap();
            if event["event"] == name {
                return event;
            }
        }
    }

    /// Waits for its end.
    pub fn end(mut self) -> Ended {
        self.collect()
    }

    fn collect(&mut self) -> Ended {
        let mut child = self.child.take().unwrap();
        let id = child.id().to_string();
        let (done, wait) = channel();
        let watch = std::thread::spawn(move || {
            if wait.recv_timeout(PATIENCE).is_err() {
                let _ = Command::new("kill").args(["-KILL", &id]).status();
            }
        });
        let mut stdout = Vec::new();
        // Where a test gave it another one, there is nothing to collect.
        self.stdout.take().map(|mut out| out.read_to_end(&mut stdout).unwrap());
        let status = child.wait().unwrap();
        done.send(()).unwrap_or_default();
        watch.join().unwrap();
        let stderr = String::from_utf8_lossy(&self.stderr.recv().unwrap()).into_owned();
        Ended { code: status.code(), stdout, stderr }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if let Some(mut child) = self.child.take() {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

impl Ended {
    /// It ended with this code, and one sentence on standard error that holds `words`.
    #[track_caller]
    pub fn failed(&self, code: i32, words: &str) {
        assert_eq!(self.code, Some(code), "{}", self.stderr);
        let sentences: Vec<&str> = self.stderr.lines().filter(|line| line.starts_with("byway: ")).collect();
        assert_eq!(sentences.len(), 1, "{}", self.stderr);
        assert!(sentences[0].contains(words), "{}", sentences[0]);
    }

    #[track_caller]
    pub fn succeeded(&self) {
        assert_eq!(self.code, Some(0), "{}", self.stderr);
    }

    /// The last event.
    pub fn result(&self) -> serde_json::Value {
        let text = std::str::from_utf8(&self.stdout).unwrap();
        let result: serde_json::Value = serde_json::from_str(text.lines().last().unwrap()).unwrap();
        assert_eq!((&result["v"], &result["event"]), (&1.into(), &"result".into()));
        result
    }
}

/// Whether two trees are the same, to the last nanosecond.
#[track_caller]
pub fn assert_same(a: &Path, b: &Path) {
    let differences = byway_files::compare(a, b).unwrap();
    assert!(differences.is_empty(), "{}: {}", differences.len(), differences[0]);
}
