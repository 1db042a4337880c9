//! Connections of ordinary programs such as `rsync` go through `byway forward`, over a direct line
//! and two relays. The test runs every line of `docs/tools.md`. Programs must fetch the same bytes
//! as without byway.
//!
//! Needs root and these programs.

mod connections;
pub mod services;
mod stdio;

use crate::common::machine::{Measured, PATIENCE, measures, missing, must, run, test, wait_for, works};
use crate::common::pages;
use crate::common::spaces::Spaces;
use crate::namespaces::{Hosts, PRIVATE, Running};
use libtest_mimic::{Failed, Trial};
use serde_json::Value;
use services::Services;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

/// Megabits per second of one connection over three lines of 10 that are wanted.
const WANTED: f64 = 24.0;

/// A file of a service of the receiver, with PySocks.
const PY_SOCKS: &str = "/usr/bin/python3 -c \"
import socks
program = socks.socksocket()
program.set_proxy(socks.SOCKS5, '127.0.0.1', 1080, rdns=True)
program.connect(('localhost', 8080))
program.sendall(b'GET /a.jpg HTTP/1.0\\r\\n\\r\\n')
answer = b''
while piece := program.recv(65536):
    answer += piece
open('c.jpg', 'wb').write(answer.split(b'\\r\\n\\r\\n', 1)[1])
\"";

pub fn tests() -> Vec<Trial> {
    let programs = ["rsync --version", "rclone version", "curl --version", "ssh -V", "psql --version"];
    let py_socks = run(&["/usr/bin/python3", "-c", "import socks"]);
    let there = Spaces::possible(&["tc -V"]) && programs.into_iter().all(works) && Services::are_possible();
    let lacks = missing(
        there && py_socks,
        "it needs root, the programs ip, tc, rsync, rclone, curl, ssh and sshd, PySocks and a PostgreSQL",
    );
    let lines = missing(
        Spaces::possible(&["tc -V"]) && works("iperf3 --version"),
        "it needs root and the programs ip, tc and iperf3",
    );
    let ssh = missing(
        Spaces::possible(&["ss -V"])
            && ["rsync --version", "ssh -V", "git --version"].into_iter().all(works)
            && Path::new("/usr/sbin/sshd").exists(),
        "it needs root and the programs ip, ss, rsync, ssh, sshd and git",
    );
    let lab = missing(
        Spaces::possible(&[]) && works("/usr/bin/python3 --version"),
        "it needs root and the programs ip and python3",
    );
    let spaces = missing(Spaces::possible(&["tc -V"]), "it needs root and the programs ip and tc");
    vec![
        test("forward::tools_bring_over_three_lines_what_they_bring_without", lacks, tools),
        measures("forward::one_connection_fills_three_lines", lines, fills),
        test("forward::half_of_a_connection_ends_and_a_port_is_forbidden", spaces, connections::halves),
        test("forward::stdio_is_the_proxy_command_of_ssh_sftp_rsync_and_git", ssh, stdio::programs),
        test("forward::stdio_that_is_killed_frees_both_sides", ssh, stdio::killed),
        test("forward::stdio_two_hundred_times_at_once_leaves_nothing", spaces, stdio::crowd),
        measures("forward::stdio_begins_within_two_round_trips", lab, stdio::beginning),
        measures("forward::connections_that_nobody_reads_cost_others_little", spaces, connections::unread),
        measures(
            "forward::connections_that_nobody_reads_cost_others_little_without_a_limit",
            spaces,
            connections::unread_without_a_limit,
        ),
        measures("forward::ten_thousand_idle_connections_take_little_memory", spaces, connections::crowd),
    ]
}

/// Two relays, a receiver that allows what is asked for, and their words.
struct World {
    hosts: Hosts,
    directory: tempfile::TempDir,
    relays: Vec<String>,
    running: Vec<Running>,
}

impl World {
    fn new(tag: &str) -> Self {
        let hosts = Hosts::new(tag);
        let directory = tempfile::tempdir().unwrap();
        let (mut relays, mut running) = (Vec::new(), Vec::new());
        for (host, listen) in [("r1", "10.77.1.2:4748"), ("r2", "10.77.2.2:4748")] {
            let arguments = [&["relay", "--listen", listen], PRIVATE.as_slice()].concat();
            let (relay, ready) = hosts.start(host, directory.path(), &arguments);
            relays.push(ready["word"].as_str().unwrap().to_owned());
            running.push(relay);
        }
        Self { hosts, directory, relays, running }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    /// Starts a receiver; its ticket.
    fn receive(&mut self, arguments: &[&str]) -> String {
        let (receiver, ready) = self.hosts.start("rcv", self.directory.path(), arguments);
        self.running.push(receiver);
        ready["ticket"].as_str().unwrap().to_owned()
    }

    /// Starts a forward through the relays; where it listens.
    fn forward(&mut self, arguments: &[&str]) -> Vec<String> {
        self.forward_by("", arguments)
    }

    /// The same by a sender of its own, with a key of its own.
    fn forward_by(&mut self, sender: &str, arguments: &[&str]) -> Vec<String> {
        let relays: Vec<&str> = self.relays.iter().flat_map(|word| ["--relay", word.as_str()]).collect();
        let arguments = [&["forward"], arguments, &relays].concat();
        let (forward, ready) = self.hosts.start("snd", &self.path(sender), &arguments);
        self.running.push(forward);
        let listen = ready["listen"].as_array().unwrap();
        listen.iter().map(|it| it.as_str().unwrap().to_owned()).collect()
    }
}

/// One connection, which knows nothing of paths, has what three lines have.
fn fills() -> Measured {
    let mut world = World::new("f");
    let ticket = world.receive(&["recv", "/nowhere/in", "--allow-forward", "localhost:5201"]);
    let listens = world.forward(&["0:localhost:5201", "--to", &ticket, "--priority", "normal"]);
    let port = listens[0].rsplit(':').next().unwrap().to_owned();
    let mut server = world.hosts.spaces().on("rcv");
    let mut server = server.args(["iperf3", "-s", "-1"]).stdout(Stdio::null()).spawn()?;
    let listening = wait_for(PATIENCE, || {
        world.hosts.spaces().says("rcv", &["ss", "-Hltn"]).contains(":5201").then_some(())
    });
    assert!(listening.is_some());
    let client = ["iperf3", "-c", "127.0.0.1", "-p", &port, "-t", "15", "-O", "5", "-J"];
    let report: Value = serde_json::from_str(&world.hosts.spaces().says("snd", &client))?;
    let rate = report["end"]["sum_received"]["bits_per_second"].as_f64().unwrap() / 1e6;
    server.wait()?;
    println!("one connection over three lines of 10 Mbit/s: {rate:.1} Mbit/s");
    assert!(rate >= WANTED, "{rate} Mbit/s");
    Ok(Some(()))
}

/// A host's part of the page: its home, and what runs in the background there.
struct Host<'a> {
    world: &'a World,
    name: &'static str,
    home: PathBuf,
    running: Vec<Child>,
}

impl Host<'_> {
    fn shell(&self, line: &str) -> Command {
        let mut command = self.world.hosts.spaces().on(self.name);
        command.args(["bash", "-c", &format!("set -o pipefail; {line}")]);
        command.current_dir(&self.home).env("HOME", &self.home).env_remove("BYWAY_STATE_DIR");
        let path = format!("{}:/usr/sbin:/usr/bin:/sbin:/bin", self.world.path("bin").display());
        command.env("PATH", path).stdin(Stdio::null());
        command
    }

    /// Starts a line in the background; what it says on standard output and standard error goes to
    /// a file.
    fn start(&mut self, line: &str, said: &Path) {
        let both = fs::File::create(said).unwrap();
        let mut command = self.shell(&format!("exec {line}"));
        command.stdout(both.try_clone().unwrap()).stderr(both);
        self.running.push(command.spawn().unwrap());
    }

    /// Runs a line, which must do well.
    fn run(&self, line: &str) -> String {
        must(&mut self.shell(line))
    }
}

impl Drop for Host<'_> {
    fn drop(&mut self) {
        for child in &mut self.running {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

/// The lines of the page, on two hosts.
fn tools() -> Result<(), Failed> {
    let world = World::new("w");
    let host = |name: &'static str| {
        let home = world.path(&format!("home-{name}"));
        fs::create_dir_all(&home).unwrap();
        Host { world: &world, name, home, running: Vec::new() }
    };
    fs::create_dir_all(world.path("bin"))?;
    std::os::unix::fs::symlink(env!("CARGO_BIN_EXE_byway"), world.path("bin/byway"))?;
    let (mut here, mut there) = (host("snd"), host("rcv"));
    let services = Services::start(world.hosts.spaces(), "rcv", &there.home, &here.home);
    let page = pages::all().into_iter().find(|page| page.name == pages::TOOLS).expect("the page");
    let (mut ticket, mut count) = (String::new(), 0);
    for line in page.lines() {
        let said = world.path(&format!("said-{count}"));
        let text = line.text.replace("TICKET", &ticket);
        let text = text.replace("W1", &world.relays[0]).replace("W2", &world.relays[1]);
        count += 1;
        let starts = |host: &mut Host<'_>, sign: &str| {
            host.running.drain(..).for_each(|mut child| {
                child.kill().unwrap();
                child.wait().unwrap();
            });
            host.start(&text, &said);
            let found = wait_for(PATIENCE, || {
                let text = fs::read_to_string(&said).ok()?;
                text.lines().find(|line| line.contains(sign)).map(str::to_owned)
            });
            found.unwrap_or_else(|| panic!("{}: {}", line.place, fs::read_to_string(&said).unwrap()))
        };
        match () {
            () if text.starts_with("byway recv ") => ticket = starts(&mut there, "byway1-"),
            () if text.starts_with("byway forward ") => drop(starts(&mut here, "the receiver answers")),
            () => drop(here.run(&text)),
        }
    }
    assert!(count >= 8, "{count} lines");
    // Another hand's SOCKS5, whose forward the page began last.
    here.run(PY_SOCKS);
    assert!(fs::read(here.home.join("c.jpg"))? == fs::read(there.home.join("data/a.jpg"))?);
    services.check(&there.home, &here.home);
    Ok(())
}
