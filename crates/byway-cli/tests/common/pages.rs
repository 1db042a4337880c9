//! Reads the documentation pages of the project for tests. `tests/it/pages.rs` checks the pages,
//! and `tests/machine/pages.rs` runs their command lines.
//!
//! Every fenced block says its language after the three backticks:
//!
//! | block | what is done with it |
//! |---|---|
//! | `sh` | its lines run from top to bottom, all blocks of a page in one session of one host |
//! | `toml NAME`, `json NAME`, `ini NAME`, `sshconfig NAME` | written to the file NAME in the session before its first line runs; read by what it is for |
//! | `text` | nothing: a picture, or what a program prints |
//!
//! The lines of `sh` blocks run in this environment:
//!
//! | in a line | meaning |
//! |---|---|
//! | `byway recv`, `relay`, `gateway --config` | runs in the background until another one starts |
//! | TICKET, WORD, KEY | the newest ticket, the newest relay word, the sender's public key |
//! | `ticket.txt`, `relay.word` | files with TICKET, WORD; the test starts a missing receiver, relay |
//! | `~` | a scratch HOME and the current directory; receivers and relays use another HOME |
//! | `~/photos`, `~/data` | small directories |
//! | 45.2.0.2 | the host on which the lines run, as root: a network namespace |
//! | 45.2.0.1 | the host on which relays run |
//! | 203.0.113.7, 203.0.113.9 | in the pages a router's addresses; here 45.2.0.2 and 45.2.0.1 |
//! | `byway lab run PLAN.toml` | runs one seed, unless the line sets `--seeds` |
//! | `byway lab harm` | makes 40 requests, unless the line sets `--requests` |
//! | a line of the page [`TOOLS`] | runs on two hosts, see `tests/machine/forward.rs` |
//! | a line of the page [`BACKUP`] | runs on two hosts, see `tests/machine/backup.rs` |
//! | a line in [`NOT_RUN`] | does not run; byway's parser must still accept the arguments |

use std::fs::{self, File};
use std::path::{Path, PathBuf};

/// Lines that no test runs: a whole line, or how it begins if it ends with a blank here; and why.
pub const NOT_RUN: &[(&str, &str)] = &[
    ("git clone ", "there is no network"),
    ("cd byway", "there is no clone"),
    ("byway lab new-controller ", "there is no clone; .ci/own-controller runs its page"),
    ("cd my-law", "there is no clone; .ci/own-controller runs its page"),
    ("cargo ", "it builds for minutes, or it is what runs this test"),
    ("TMPDIR=/dev/shm cargo bench ", "it builds for minutes"),
    ("RUSTC_BOOTSTRAP=1 cargo fuzz ", "it builds for minutes"),
    ("sudo crates/byway-cli/benches/gateway.sh ", "it measures, with a release build"),
    ("EACH=4 ONE=1 SEED=1 crates/byway-cli/benches/chance.sh ", "it measures, with a release build"),
    ("crates/rivals/benches/tcp.sh ", "it measures, with a release build"),
    ("mkdir ", "a session has no SSH server; tests/machine/newcomer.rs types it"),
    ("restic -r sftp:nas:backup ", "a session has no SSH server; tests/machine/newcomer.rs types it"),
    ("sudo crates/byway-cli/benches/backup.py ", "it measures, with a release build"),
    ("sudo crates/byway-cli/benches/governor.py ", "it measures, with a release build"),
    ("byway lane ", "it serves until it is stopped; crates/lane/tests/it/programs.rs runs it"),
    ("HTTPS_PROXY=http://localhost:1080 ", "there is no store; benches/lane.py measures restic and rsync"),
    (
        "rsync -a photos rsync://localhost:8730/backup/",
        "there is no store; benches/lane.py measures restic and rsync",
    ),
    ("sudo crates/byway-cli/benches/lane.py ", "it measures, with a release build"),
    ("byway pair ", "it waits for a person at another host; tests/it/pair.rs pairs"),
    ("crates/byway-cli/benches/unchanged.sh", "it measures, with a release build"),
    ("crates/byway-cli/benches/standing.sh ", "it measures, with a release build"),
    ("byway relay word ", "the relay of a session is another host's; tests/it/relay_words.rs gives words"),
    ("byway relay words", "the relay of a session is another host's; tests/it/relay_words.rs lists them"),
    ("byway relay revoke ", "the relay of a session is another host's; tests/it/relay_words.rs revokes them"),
    ("sudo byway relay ", "it needs the state of a unit"),
    ("byway limit ", "nothing of a session goes on; tests/it/status.rs changes limits"),
    ("byway view", "it waits for a browser; crates/view/browser looks at the page"),
    ("ssh -L ", "a session has no SSH server"),
    ("byway sink ", "a session has no sink; tests/it/live.rs runs it"),
    ("radar | byway source ", "there is no radar; tests/it/live.rs runs sources"),
    ("sudo apt-get ", "it changes the host"),
    ("sudo ufw ", "it changes the host, and is not on every host"),
    ("tar xf ", "it unpacks a release; .ci/installed does"),
    ("sudo cp ", "it changes the host"),
    ("sudo systemctl ", "it needs systemd; .ci/installed runs the units"),
    ("sudo systemd-sysusers", "it needs systemd"),
    ("sudo systemd-tmpfiles ", "it needs systemd"),
    ("sudo journalctl ", "it needs systemd"),
    ("sudo byway id ", "it needs the state of a unit"),
    ("sudo -u byway byway id ", "it needs the user of the units"),
    ("sudo install ", "it changes the host"),
    ("systemctl --user ", "it needs systemd; .ci/installed runs the units"),
    ("journalctl --user ", "it needs systemd"),
    ("loginctl ", "it needs systemd"),
    ("sudo ip -6 rule del priority 25207", "the sites of its page have IPv4 alone, so there is no such rule"),
    ("byway lab run --quick", "all experiments take minutes"),
    ("byway lab run lossy.toml --emulate ", "it takes four minutes"),
    ("byway lab harm", "it takes 16 minutes"),
    (
        "byway lab harm --simulated --rate 100 ",
        "docs/lab.md has a line of the kind, which takes 8 s of a processor",
    ),
    ("byway lab harm --against cubic,byway ", "it takes two minutes"),
    ("byway lab scoreboard --quick", "it takes minutes with a build for tests"),
    ("byway lab scoreboard --seeds 5", "it takes hours"),
    (
        "byway lab scoreboard --quick --lines jitter ",
        "it takes minutes with a build for tests; .ci/run asks one law",
    ),
];

/// The pages whose lines run on two hosts.
pub const TOOLS: &str = "docs/tools.md";
pub const BACKUP: &str = "docs/backup.md";

/// A page.
pub struct Page {
    /// Its path in the project.
    pub name: String,
    pub text: String,
    pub blocks: Vec<Block>,
}

/// A fenced block.
pub struct Block {
    /// The line of its first backticks, from 1.
    pub line: usize,
    pub language: String,
    /// What stands behind the language.
    pub file: Option<String>,
    pub text: String,
}

/// A line of a block of `sh`.
pub struct Line {
    /// `README.md:57`
    pub place: String,
    pub text: String,
}

/// Whether whoever runs this may read the pages.
pub fn are_readable() -> bool {
    File::open(Path::new(env!("CARGO_MANIFEST_DIR")).join("../../README.md")).is_ok()
}

/// The directory of the project.
pub fn project() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap()
}

/// Every page: those in the directory of the project, in `docs`, and below it.
pub fn all() -> Vec<Page> {
    let mut pages = Vec::new();
    for directory in ["", "docs/", "docs/decisions/"] {
        let mut names: Vec<String> = fs::read_dir(project().join(directory))
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .filter(|name| name.ends_with(".md"))
            .collect();
        names.sort();
        pages.extend(names.into_iter().map(|name| Page::read(format!("{directory}{name}"))));
    }
    assert!(pages.len() > 5, "the pages are not where they were");
    pages
}

impl Page {
    fn read(name: String) -> Self {
        let text = fs::read_to_string(project().join(&name)).unwrap();
        let mut blocks: Vec<Block> = Vec::new();
        let mut open = false;
        for (number, line) in text.lines().enumerate() {
            match line.trim_start().strip_prefix("```") {
                Some(_) if open => open = false,
                Some(info) => {
                    let mut words = info.split_whitespace().map(str::to_owned);
                    let language = words.next().unwrap_or_default();
                    let (line, text) = (number + 1, String::new());
                    blocks.push(Block { line, language, file: words.next(), text });
                    open = true;
                }
                None if open => {
                    let block = blocks.last_mut().unwrap();
                    block.text += line;
                    block.text += "\n";
                }
                None => {}
            }
        }
        assert!(!open, "{name}: a block does not end");
        Self { name, text, blocks }
    }

    /// Every line of its blocks of `sh`, without comments; one that ends with a backslash goes on
    /// in the next.
    pub fn lines(&self) -> Vec<Line> {
        let mut lines = Vec::new();
        for block in self.blocks.iter().filter(|block| block.language == "sh") {
            let mut begun: Option<Line> = None;
            for (number, text) in block.text.lines().enumerate() {
                let place = format!("{}:{}", self.name, block.line + 1 + number);
                let mut line = begun.take().unwrap_or(Line { place, text: String::new() });
                line.text += text.trim().trim_end_matches('\\');
                if text.trim_end().ends_with('\\') {
                    begun = Some(line);
                } else if !line.text.is_empty() && !line.text.starts_with('#') {
                    lines.push(line);
                }
            }
        }
        lines
    }

    /// Its files: name and text.
    pub fn files(&self) -> impl Iterator<Item = (&str, &Block)> {
        self.blocks.iter().filter_map(|block| Some((block.file.as_deref()?, block)))
    }
}

/// Why a line is not run, if it is in the list.
pub fn not_run(line: &str) -> Option<&'static str> {
    NOT_RUN.iter().find(|(entry, _)| is_of(line, entry)).map(|(_, why)| *why)
}

/// Whether a line is what an entry of the list means.
pub fn is_of(line: &str, entry: &str) -> bool {
    if entry.ends_with(' ') { line.starts_with(entry) } else { line == entry }
}

/// The commands of a line that are byway's, as words without redirections.
pub fn byway_commands(line: &str) -> Vec<Vec<String>> {
    let mut commands = Vec::new();
    for command in line.split(['|', ';', '&']) {
        let words = command.split_whitespace().take_while(|word| !word.starts_with(['>', '<', '#']));
        // `sudo`, and what is put into the environment.
        let mut words = words.skip_while(|word| *word == "sudo" || word.contains('='));
        if words.next() == Some("byway") {
            commands.push(unquoted(words));
        }
    }
    commands
}

/// The words as a shell reads them: blanks between single quotes part nothing.
fn unquoted<'a>(parts: impl Iterator<Item = &'a str>) -> Vec<String> {
    let (mut words, mut is_open) = (Vec::<String>::new(), false);
    for part in parts {
        match words.last_mut().filter(|_| is_open) {
            Some(word) => *word += &format!(" {part}"),
            None => words.push(part.to_owned()),
        }
        is_open ^= !part.matches('\'').count().is_multiple_of(2);
    }
    words.iter().map(|word| word.replace('\'', "")).collect()
}
