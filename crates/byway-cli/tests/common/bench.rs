//! A place for emulated labs that nobody else uses, and the programs that run on their hosts.

use super::machine::{PATIENCE, must, wait_for};
use serde_json::Value;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Output, Stdio};

pub const BYWAY: &str = env!("CARGO_BIN_EXE_byway");
/// A figure counts only if the lab itself says that the machine was not too busy.
pub const TRIES: usize = 3;

/// A place for labs. Whatever is up there when it is dropped is taken down.
pub struct Bench {
    pub directory: tempfile::TempDir,
    /// The program as somebody else than root may run it, if it is to be run so.
    pub user: Option<PathBuf>,
    running: Vec<Running>,
}

/// A program on a host. Its output and its errors go to files.
struct Running {
    name: String,
    host: String,
    child: Child,
}

impl Bench {
    pub fn new() -> Self {
        Self { directory: tempfile::tempdir().unwrap(), user: None, running: Vec::new() }
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    /// The same, as a word of a command.
    pub fn word(&self, name: &str) -> String {
        self.path(name).to_str().unwrap().to_owned()
    }

    pub fn byway(&self, arguments: &[&str]) -> Command {
        let mut command = match &self.user {
            None => Command::new(BYWAY),
            Some(copy) => {
                let mut command = Command::new("setpriv");
                command.args(["--reuid=65534", "--regid=65534", "--clear-groups"]).arg(copy);
                command
            }
        };
        command.args(arguments).stdin(Stdio::null()).env("BYWAY_LABS", self.path("labs"));
        command
    }

    pub fn run(&self, arguments: &[&str]) -> Output {
        self.byway(arguments).output().unwrap()
    }

    /// The result event of a verb of the lab.
    #[track_caller]
    pub fn json(&self, arguments: &[&str]) -> Value {
        last_event(&must(&mut self.byway(&[&["--json", "lab"], arguments].concat())))
    }

    #[track_caller]
    pub fn up(&self, name: &str, plan: &str) -> Value {
        let file = self.path(&format!("{name}.toml"));
        fs::write(&file, plan).unwrap();
        self.json(&["up", file.to_str().unwrap(), "--seed", "7"])
    }

    /// A program on a host.
    pub fn exec(&self, host: &str, program: &[&str]) -> Command {
        self.byway(&[&["lab", "exec", host, "--"], program].concat())
    }

    /// What became of a program on a host.
    pub fn on(&self, host: &str, program: &[&str]) -> Output {
        self.exec(host, program).output().unwrap()
    }

    /// What a program on a host says, which must do well.
    #[track_caller]
    pub fn says(&self, host: &str, program: &[&str]) -> String {
        must(&mut self.exec(host, program))
    }

    /// The only lab, as it is.
    pub fn status(&self) -> Value {
        self.json(&["status"])["labs"][0].clone()
    }

    /// Whether the lab kept its links on time.
    pub fn is_accurate(&self) -> bool {
        let status = self.status();
        let accurate = status["status"]["accurate"] == true;
        if !accurate {
            eprintln!("too busy to measure: {}", status["status"]["lateness"]);
        }
        accurate
    }

    /// What one direction of a link did.
    pub fn link(&self, name: &str) -> Value {
        let status = self.status();
        let links = status["status"]["links"].as_array().unwrap();
        links.iter().find(|link| link["link"] == name).unwrap().clone()
    }

    /// The IPv4 address of a host.
    pub fn address(&self, host: &str) -> String {
        self.says(host, &["getent", "ahostsv4", host]).split_whitespace().next().unwrap().to_owned()
    }

    /// The round trips of a ping, in milliseconds, sorted.
    pub fn ping(&self, from: &str, options: &[&str]) -> Vec<f64> {
        let said = self.says(from, &[&["ping", "-n"], options].concat());
        let mut times: Vec<f64> = said
            .lines()
            .filter_map(|line| line.split_once("time=")?.1.split(' ').next()?.parse().ok())
            .collect();
        times.sort_by(f64::total_cmp);
        times
    }

    /// Lets `iperf3` answer on a host. It listens before it goes into the background.
    pub fn serve(&self, host: &str) {
        self.says(host, &["iperf3", "-s", "-D"]);
    }

    pub fn iperf(&self, from: &str, options: &[&str]) -> Value {
        serde_json::from_str(&self.says(from, &[&["iperf3", "-J", "-4"], options].concat())).unwrap()
    }

    /// Starts a program on a host, under a name of the test's: its output goes to `NAME.out`, its
    /// errors to `NAME.err`.
    pub fn start(&mut self, name: &str, host: &str, program: &[&str]) {
        // Whoever is sent there is not the program, but its parent outside: the program tells its
        // number inside.
        let number = self.word(&format!("{name}.pid"));
        let telling = ["sh", "-c", "echo $$ >\"$0\" && exec \"$@\"", &number];
        let mut command = self.exec(host, &[&telling, program].concat());
        command.stdout(fs::File::create(self.path(&format!("{name}.out"))).unwrap());
        command.stderr(fs::File::create(self.path(&format!("{name}.err"))).unwrap());
        let child = command.spawn().unwrap();
        self.running.push(Running { name: name.to_owned(), host: host.to_owned(), child });
    }

    /// What a program that was started has said so far.
    pub fn said(&self, name: &str) -> String {
        fs::read_to_string(self.path(&format!("{name}.out"))).unwrap_or_default()
    }

    /// What it complained of so far.
    pub fn complained(&self, name: &str) -> String {
        fs::read_to_string(self.path(&format!("{name}.err"))).unwrap_or_default()
    }

    /// The first line that a program says.
    #[track_caller]
    pub fn line(&self, name: &str) -> String {
        let whole = || self.said(name).split_once('\n').map(|(line, _)| line.to_owned());
        self.wait(&format!("a line of {name}"), whole)
    }

    /// Sends a signal to a program that was started.
    #[track_caller]
    pub fn signal(&self, name: &str, signal: &str) {
        let running = self.running.iter().find(|running| running.name == name).unwrap();
        let number = fs::read_to_string(self.path(&format!("{name}.pid"))).unwrap();
        self.says(&running.host, &["kill", &format!("-{signal}"), number.trim()]);
    }

    /// The same, and waits for its end.
    #[track_caller]
    pub fn stop(&mut self, name: &str, signal: &str) -> ExitStatus {
        self.signal(name, signal);
        self.end(name)
    }

    /// Waits for the end of a program.
    #[track_caller]
    pub fn end(&mut self, name: &str) -> ExitStatus {
        let place = self.running.iter().position(|running| running.name == name).unwrap();
        let mut running = self.running.swap_remove(place);
        let ended = wait_for(PATIENCE, || running.child.try_wait().unwrap());
        self.running.push(running);
        let status = ended.unwrap_or_else(|| panic!("{name} does not end: {}", self.all_said()));
        self.running.pop();
        status
    }

    /// Whether a program has ended.
    pub fn is_over(&mut self, name: &str) -> bool {
        let running = self.running.iter_mut().find(|running| running.name == name);
        running.is_none_or(|running| running.child.try_wait().unwrap().is_some())
    }

    /// Looks until there is what is waited for, and tells what all programs say if that never
    /// comes.
    #[track_caller]
    pub fn wait<T>(&self, what: &str, look: impl FnMut() -> Option<T>) -> T {
        wait_for(PATIENCE, look).unwrap_or_else(|| panic!("waited in vain for {what}{}", self.all_said()))
    }

    /// What all programs that run have said.
    pub fn all_said(&self) -> String {
        let of = |running: &Running| {
            let name = &running.name;
            format!("\n--- {name}\n{}\n--- {name}, errors\n{}", self.said(name), self.complained(name))
        };
        self.running.iter().map(of).collect()
    }
}

impl Drop for Bench {
    fn drop(&mut self) {
        let _ = self.run(&["-q", "lab", "down", "--all"]);
        for running in &mut self.running {
            let _ = running.child.kill();
            let _ = running.child.wait();
        }
    }
}

/// The last of several events.
pub fn last_event(text: &str) -> Value {
    serde_json::from_str(text.lines().last().unwrap_or("null")).unwrap()
}

/// Whether nothing is in a place for labs.
pub fn is_empty(labs: &Path) -> bool {
    fs::read_dir(labs).unwrap().next().is_none()
}
