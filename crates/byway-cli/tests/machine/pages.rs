//! Runs the command lines in the project's documentation pages, as `tests/common/pages.rs`
//! describes. The lines of one page run one after the other on one host: a network namespace with
//! its own processes and its own `/run`.

use crate::common::assert_same;
use crate::common::machine::{PATIENCE, is_root, missing, run, test, test_of, wait_for};
use crate::common::pages::{self, Line, Page, not_run};
use byway_transfer::ticket::looks_like_ticket;
use libtest_mimic::{Failed, Trial};
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, ExitStatus, Stdio};
use std::time::Duration;

/// The longest until a program that was told to end does.
const END: Duration = Duration::from_secs(60);
/// What makes a host: it needs no root where the kernel lets anybody have namespaces.
const HOST: [&str; 6] = ["--net", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc"];
/// A script that builds the network for the test of one documentation page. The page's command
/// lines run on one host. A second host, `relay`, and public addresses are needed: a relay forwards
/// neither to private addresses nor to its own host.
const NETWORK: &str = "
    set -e
    mount -t tmpfs tmpfs /run
    ip netns add relay
    ip link add eth0 type veth peer name eth0 netns relay
    ip link set lo up
    ip address add 45.2.0.2/24 dev eth0
    ip link set eth0 up
    ip route add default via 45.2.0.1
    nsenter --net=/run/netns/relay sh -c '
        ip link set lo up
        ip address add 45.2.0.1/24 dev eth0
        ip link set eth0 up
        nft \"add table ip router
            add chain ip router arriving { type nat hook prerouting priority -100; }
            add rule ip router arriving ip daddr 203.0.113.9 dnat to 45.2.0.1\"'
    nft 'add table ip router
        add chain ip router output { type nat hook output priority -100; }
        add rule ip router output ip daddr 203.0.113.7 dnat to 45.2.0.2
        add table inet filter
        add chain inet filter input { type filter hook input priority 0; }'";

const WHAT_TO_DO: &str = "Lines of a page run as printed: mend the page or the program. If the line cannot run in a test, say so, \
                          with the reason, in NOT_RUN of crates/byway-cli/tests/common/pages.rs.";

pub fn tests() -> Vec<Trial> {
    // .ci/run calls this program as somebody who may read neither.
    if File::open(env!("CARGO_BIN_EXE_byway")).is_err() || !pages::are_readable() {
        let lacks = missing(false, "it needs leave to read the pages and the program");
        return vec![test("pages::every_page", lacks, || Ok(()))];
    }
    let user: &[&str] = if is_root() { &[] } else { &["--user", "--map-root-user"] };
    let possible = run(&[&["unshare"], user, &HOST, &["nft", "add", "table", "inet", "filter"]].concat());
    let lacks =
        missing(possible, "it needs root or namespaces for everybody, and the programs unshare, ip and nft");
    let page = |page: Page| {
        let name = format!("pages::{}", page.name);
        test_of(name, lacks, move || Session::new(&page).run(&page))
    };
    let two_hosts = [pages::TOOLS, pages::BACKUP];
    let has_lines = |page: &Page| !page.lines().is_empty() && !two_hosts.contains(&page.name.as_str());
    pages::all().into_iter().filter(has_lines).map(page).collect()
}

/// A host on which the lines of a page run.
struct Session {
    directory: tempfile::TempDir,
    host: Child,
    /// The host ends when this is closed.
    _open: ChildStdin,
    /// The first process of the host, as it is called outside.
    first: String,
    running: Vec<Background>,
    key: String,
}

/// A line that runs in the background.
struct Background {
    verb: &'static str,
    line: Line,
    process: Child,
    output: PathBuf,
    /// What it printed for others to use: a ticket or a word.
    said: String,
}

impl Session {
    fn new(page: &Page) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let mut unshare = Command::new("unshare");
        if !is_root() {
            unshare.args(["--user", "--map-root-user"]);
        }
        let mut host =
            unshare.args(HOST).args(["cat"]).stdin(Stdio::piped()).stdout(Stdio::null()).spawn().unwrap();
        let children = format!("/proc/{0}/task/{0}/children", host.id());
        let first = wait_for(END, || {
            let first = fs::read_to_string(&children).ok()?.trim().to_owned();
            let there = fs::read_to_string(format!("/proc/{first}/comm")).ok()?.trim() == "cat";
            there.then_some(first)
        });
        let open = host.stdin.take().unwrap();
        let (first, running) = (first.expect("a host"), Vec::new());
        let mut session = Self { directory, host, _open: open, first, running, key: String::new() };
        for directory in ["here/photos/2026", "here/data", "there", "bin"] {
            fs::create_dir_all(session.path(directory)).unwrap();
        }
        for (file, size) in
            [("here/photos/2026/a.jpg", 300_000), ("here/photos/b.jpg", 5), ("here/data/c", 70_000)]
        {
            fs::write(session.path(file), vec![b'x'; size]).unwrap();
        }
        for (name, block) in page.files() {
            let file = session.path("here").join(name);
            fs::create_dir_all(file.parent().unwrap()).unwrap();
            fs::write(file, &block.text).unwrap();
        }
        std::os::unix::fs::symlink(env!("CARGO_BIN_EXE_byway"), session.path("bin/byway")).unwrap();
        // Everybody is root on this host.
        std::os::unix::fs::symlink("/usr/bin/env", session.path("bin/sudo")).unwrap();
        session.prepare();
        session
    }

    /// The network, and the sender's key.
    fn prepare(&mut self) {
        self.must(NETWORK);
        let up = wait_for(END, || self.must("ip -o link show dev eth0").contains("state UP").then_some(()));
        up.expect("a line that is up");
        self.key = self.must("byway id").trim().to_owned();
    }

    fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    /// A command of the shell on the host: the sender's, or that of another host's person.
    fn shell(&self, home: &str, text: &str) -> Command {
        let home = self.path(home);
        let mut command = Command::new("nsenter");
        command.args(["--target", &self.first, "--net", "--mount", "--pid"]);
        if !is_root() {
            command.args(["--user", "--preserve-credentials"]);
        }
        command.arg(format!("--wd={}", home.display())).args(["bash", "-c", text]);
        let path = format!(
            "{}:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
            self.path("bin").display()
        );
        command.env_clear().env("HOME", &home).env("PATH", path).env("BYWAY_LABS", self.path("labs"));
        command.stdin(Stdio::null());
        command
    }

    /// What a command that prepares the session says.
    fn must(&self, text: &str) -> String {
        let output = self.shell("here", text).output().unwrap();
        assert!(output.status.success(), "{text}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap()
    }

    fn run(mut self, page: &Page) -> Result<(), Failed> {
        for line in page.lines() {
            if not_run(&line.text).is_some() {
                continue;
            }
            if !is_root() && needs_root(&line.text) {
                eprintln!("skipped: {}: it needs root", line.place);
                continue;
            }
            self.line(line).map_err(|why| format!("{why}\n{WHAT_TO_DO}"))?;
        }
        while let Some(last) = self.running.pop() {
            last.end().map_err(|why| format!("{why}\n{WHAT_TO_DO}"))?;
        }
        Ok(())
    }

    fn line(&mut self, line: Line) -> Result<(), String> {
        for (word, verb, usual) in [
            ("TICKET", "recv", "byway recv ~/in"),
            ("@ticket.txt", "recv", "byway recv ~/in"),
            ("WORD", "relay", "byway relay"),
        ] {
            if line.text.split_whitespace().any(|found| found == word) && self.of(verb).is_none() {
                let place = format!("{}, which needs a {verb}", line.place);
                self.start(verb, Line { place, text: usual.to_owned() })?;
            }
        }
        match ["recv", "relay", "gateway"].into_iter().find(|verb| is_background(verb, &line.text)) {
            Some(verb) => self.start(verb, line),
            None => self.foreground(&line),
        }
    }

    fn of(&self, verb: &str) -> Option<&Background> {
        self.running.iter().find(|running| running.verb == verb)
    }

    /// The line with what byway printed in the place of the words that stand for it.
    fn filled(&self, line: &Line) -> String {
        let said = |verb| self.of(verb).map_or("", |running| running.said.as_str());
        let words = line.text.split(' ').map(|word| match word {
            "TICKET" => said("recv"),
            "WORD" => said("relay"),
            "KEY" => self.key.as_str(),
            word => word,
        });
        let text = words.collect::<Vec<_>>().join(" ").replace(" KEY=", &format!(" {}=", self.key));
        // A plan's other seeds show nothing more of the page, nor do more requests.
        let is_plan = text.starts_with("byway lab run ") && text.contains(".toml");
        if is_plan && !text.contains("--seeds") {
            format!("{text} --seeds 1")
        } else if text.starts_with("byway lab harm ") && !text.contains("--requests") {
            format!("{text} --requests 40")
        } else {
            text
        }
    }

    fn start(&mut self, verb: &'static str, line: Line) -> Result<(), String> {
        if let Some(before) = self.running.iter().position(|running| running.verb == verb) {
            self.running.remove(before).end()?;
        }
        let home = if verb == "gateway" { "here" } else { "there" };
        let output = self.path(&format!("output.{verb}"));
        let place = if verb == "relay" {
            "exec nsenter --net=/run/netns/relay bash -c \"$LINE\""
        } else {
            "exec bash -c \"$LINE\""
        };
        let mut command = self.shell(home, place);
        command.env("LINE", self.filled(&line));
        let both = File::create(&output).unwrap();
        let process = command.stdout(both.try_clone().unwrap()).stderr(both).spawn().unwrap();
        let mut started = Background { verb, line, process, output, said: String::new() };
        let status = "byway gateway status";
        let found = wait_for(END, || match verb {
            "gateway" if !started.has_ended() => {
                self.shell("here", status).output().ok()?.status.success().then(String::new)
            }
            _ if started.has_ended() => Some(String::new()),
            "recv" => word_in(&started.output, looks_like_ticket),
            "relay" => word_in(&started.output, |line| line.starts_with("byway-relay")),
            _ => None,
        });
        match found {
            Some(said) if !started.has_ended() => started.said = said,
            _ => return Err(started.fault("did not begin")),
        }
        for (verb, file) in [("recv", "ticket.txt"), ("relay", "relay.word")] {
            for home in ["here", "there"].into_iter().filter(|_| started.verb == verb) {
                fs::write(self.path(home).join(file), &started.said).unwrap();
            }
        }
        self.running.push(started);
        Ok(())
    }

    fn foreground(&mut self, line: &Line) -> Result<(), String> {
        if line.text.starts_with("sudo ") {
            // A gateway that is killed leaves what the page says how to remove.
            while let Some(gateway) = self.running.iter().position(|running| running.verb == "gateway") {
                self.running.remove(gateway).end()?;
            }
        }
        let text = self.filled(line);
        let output = self.path("said");
        let both = File::create(&output).unwrap();
        let mut command = self.shell("here", &format!("set -o pipefail; {text}"));
        let mut process = command.stdout(both.try_clone().unwrap()).stderr(both).spawn().unwrap();
        let status = ended(&mut process, PATIENCE);
        if status.is_none_or(|status| !status.success()) {
            stop(&mut process, "KILL");
            let receiver = self.of("recv").map_or_else(String::new, |receiver| last_lines(&receiver.output));
            let how =
                status.map_or_else(|| "did not end".to_owned(), |status| format!("ended with {status}"));
            return Err(format!(
                "{}: `{}` {how}: {}\n{receiver}",
                line.place,
                line.text,
                last_lines(&output)
            ));
        }
        if let Some((there, _)) = text.split_once("iperf3 -s -D") {
            // It goes to the background before it listens.
            let looks = format!("{there} ss -Hltn");
            let listens = wait_for(END, || self.must(&looks).contains(":5201").then_some(()));
            listens.ok_or_else(|| format!("{}: iperf3 does not listen", line.place))?;
        }
        if line.text.starts_with("byway send ~/photos ") {
            assert_same(&self.path("here/photos"), &self.path("there/in/photos"));
        }
        let once = |running: &Background| running.verb == "recv" && running.line.text.contains("--once");
        if let Some(receiver) =
            self.running.iter().position(|running| once(running) && line.text.contains("byway send"))
        {
            let mut receiver = self.running.remove(receiver);
            let status = ended(&mut receiver.process, END);
            if status.is_none_or(|status| !status.success()) {
                return Err(receiver.fault("does not end after its transfer"));
            }
        }
        Ok(())
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        let _ = self.host.kill();
        let _ = self.host.wait();
    }
}

impl Background {
    fn has_ended(&mut self) -> bool {
        self.process.try_wait().unwrap().is_some()
    }

    /// Ends it, which must still run, and must not have been refused.
    fn end(mut self) -> Result<(), String> {
        if self.has_ended() {
            return Err(self.fault("ended by itself"));
        }
        if last_lines(&self.output).contains("it refuses") {
            return Err(self.fault("is refused by its relay"));
        }
        stop(&mut self.process, if self.verb == "gateway" { "KILL" } else { "TERM" });
        if ended(&mut self.process, END).is_none() {
            stop(&mut self.process, "KILL");
            return Err(self.fault("does not end when it is told to"));
        }
        Ok(())
    }

    fn fault(&self, what: &str) -> String {
        format!("{}: `{}` {what}: {}", self.line.place, self.line.text, last_lines(&self.output))
    }
}

fn needs_root(line: &str) -> bool {
    line.starts_with("sudo ") || line.starts_with("byway gateway ") && !line.contains(" check ")
}

fn is_background(verb: &str, line: &str) -> bool {
    match verb {
        "gateway" => line.contains("byway gateway --config "),
        _ => {
            let rest = line.strip_prefix(&format!("byway {verb}"));
            // Neither another verb that begins so, nor a subcommand.
            rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(' ')) && !is_of_words(line)
        }
    }
}

/// Whether a line gives, lists or revokes words of a relay.
fn is_of_words(line: &str) -> bool {
    ["word ", "words", "revoke "].iter().any(|what| line.starts_with(&format!("byway relay {what}")))
}

/// Sends a signal to the processes of a line. The one that went to the host for them waits for
/// their end.
fn stop(process: &mut Child, signal: &str) {
    for below in below(process.id()) {
        run(&["kill", &format!("-{signal}"), &below.to_string()]);
    }
}

/// The processes that a process began, and those that they began.
fn below(process: u32) -> Vec<u32> {
    let children = fs::read_to_string(format!("/proc/{process}/task/{process}/children")).unwrap_or_default();
    let children = children.split_whitespace().filter_map(|child| child.parse().ok());
    children.flat_map(|child| [vec![child], below(child)].concat()).collect()
}

fn ended(process: &mut Child, patience: Duration) -> Option<ExitStatus> {
    wait_for(patience, || process.try_wait().unwrap())
}

fn word_in(file: &Path, is_word: impl Fn(&str) -> bool) -> Option<String> {
    let text = fs::read_to_string(file).unwrap_or_default();
    // A line that has come to its end.
    let (whole, _) = text.rsplit_once('\n')?;
    whole.lines().find(|line| is_word(line)).map(str::to_owned)
}

fn last_lines(file: &Path) -> String {
    let text = fs::read(file).map(|bytes| String::from_utf8_lossy(&bytes).into_owned()).unwrap_or_default();
    let lines: Vec<_> = text.lines().collect();
    lines[lines.len().saturating_sub(12)..].join("\n")
}
