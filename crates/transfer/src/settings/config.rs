//! What the configuration files say together: peers, settings, and what is wrong with them.

use super::document::{Document, Value};
use super::peer_name::PeerName;
use super::schema::{self, PEER_TABLE, SettingKey, TICKET_KEY};
use super::sources::{self, ConfigSources, ReadError};
use crate::secret::Secret;
use crate::ticket::Ticket;
use std::collections::BTreeMap;
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

/// What both files say. The user's file wins over the system's.
#[derive(Clone, Debug, Default)]
pub struct Config {
    sources: ConfigSources,
    peers: BTreeMap<PeerName, Peer>,
    settings: Vec<Setting>,
    findings: Vec<Finding>,
}

/// A receiver with a name.
#[derive(Clone, Debug)]
pub struct Peer {
    /// The file that names it.
    pub file: PathBuf,
    /// The line of its ticket, counted from 1.
    pub line: usize,
    /// Whether the file is the user's.
    pub is_users: bool,
    ticket: Secret<String>,
}

impl Peer {
    /// Its ticket.
    ///
    /// # Errors
    /// What the file holds is no ticket.
    pub fn ticket(&self) -> Result<Ticket, Finding> {
        let ticket = self.ticket.expose().trim().parse::<Ticket>();
        ticket.map_err(|error| Finding::new(&self.file, Some(self.line), error.to_string()))
    }
}

/// A value in place of an option's default.
#[derive(Clone)]
pub struct Setting {
    /// The option.
    pub key: &'static SettingKey,
    /// Its values. Words among them are secrets.
    pub values: Vec<String>,
    /// The file that sets it.
    file: PathBuf,
    /// Its line, counted from 1.
    line: usize,
}

impl fmt::Debug for Setting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Setting").field("key", &self.key).finish_non_exhaustive()
    }
}

/// Something about a file that a person should know.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// The file.
    pub file: PathBuf,
    /// The line, counted from 1. `None`: the file as a whole.
    pub line: Option<usize>,
    /// What is wrong, and what to do.
    pub text: String,
    /// How much it matters.
    pub weight: FindingWeight,
}

/// How much a finding matters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FindingWeight {
    /// Nothing is done with the file.
    Refused,
    /// The system does not give the file.
    Unread,
    /// One peer cannot be used.
    Peer,
    /// All can be used.
    Warning,
}

impl Finding {
    pub(super) fn new(file: &Path, line: Option<usize>, text: String) -> Self {
        Self { file: file.to_owned(), line, text, weight: FindingWeight::Refused }
    }

    pub(super) fn of(file: &Path, error: ReadError) -> Self {
        let weight = match error {
            ReadError::System(_) => FindingWeight::Unread,
            _ => FindingWeight::Refused,
        };
        Self { weight, ..Self::new(file, None, error.to_string()) }
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.file.display())?;
        if let Some(line) = self.line {
            write!(f, ":{line}")?;
        }
        write!(f, ": {}", self.text)
    }
}

impl std::error::Error for Finding {}

impl Config {
    /// Reads both files. What is wrong with them is in [`Self::findings`].
    #[must_use]
    pub fn read(sources: ConfigSources) -> Self {
        let mut config = Self { sources: sources.clone(), ..Self::default() };
        for (path, is_users) in sources.files() {
            match sources::read(path) {
                Ok(None) if is_users && sources.is_chosen => {
                    let missing = io::Error::from(io::ErrorKind::NotFound);
                    config.findings.push(Finding::of(path, ReadError::System(missing)));
                }
                Ok(None) => {}
                Ok(Some(file)) => {
                    let before = config.peers.len();
                    let has_tickets = config.take(path, is_users, &file.text);
                    let is_private = is_users && !sources.is_systems(path);
                    if is_private && file.is_exposed() && (has_tickets || config.peers.len() > before) {
                        let text = format!(
                            "it holds tickets, and others can read it (mode {:03o}): run `chmod go-rwx {}`",
                            file.mode,
                            path.display()
                        );
                        let weight = FindingWeight::Warning;
                        config.findings.push(Finding { weight, ..Finding::new(path, None, text) });
                    }
                }
                Err(error) => config.findings.push(Finding::of(path, error)),
            }
        }
        config
    }

    /// What a text says as the user's file.
    #[must_use]
    pub fn of_text(text: &str) -> Self {
        let mut config = Self::default();
        config.take(Path::new("config.toml"), true, text);
        config
    }

    /// Takes in what a file says. Returns whether it names a peer.
    fn take(&mut self, path: &Path, is_users: bool, text: &str) -> bool {
        let document = match Document::read(text) {
            Ok(document) => document,
            Err(mistake) => {
                self.findings.push(Finding::new(path, Some(mistake.line), mistake.to_string()));
                return false;
            }
        };
        let home = self.sources.home.clone();
        let known_headers = Vec::new();
        let mut reader = FileReader { path, is_users, home, known_headers, config: self };
        reader.headers(&document);
        let mut has_tickets = false;
        for entry in &document.entries {
            let name = document.name_of(entry);
            match *name.as_slice() {
                [PEER_TABLE, peer, TICKET_KEY] => {
                    has_tickets = true;
                    reader.peer(peer, &entry.value, entry.line);
                }
                [PEER_TABLE, _, key] if schema::is_setting(key) => {
                    let text = format!(
                        "`{key}` stands below a peer: write it above the first table, or below `[send]` or \
                         `[recv]`"
                    );
                    reader.found(entry.line, FindingWeight::Refused, text);
                }
                [PEER_TABLE, _, key] => {
                    let text = format!("a peer has no key `{}`", crate::Printable(key.as_bytes()));
                    let text = text + &schema::meant(key, [TICKET_KEY]);
                    reader.found(entry.line, FindingWeight::Peer, text);
                }
                [PEER_TABLE, ..] => {
                    let text = "write a table for each peer, as in `[peer.nas]`, and in it its ticket";
                    reader.found(entry.line, FindingWeight::Peer, text.into());
                }
                [key] => reader.setting("", key, &entry.value, entry.line),
                [table @ ("send" | "recv"), key] => reader.setting(table, key, &entry.value, entry.line),
                // The header of the table was told of.
                _ if entry.header.is_some_and(|at| !reader.known_headers.contains(&at)) => {}
                [table @ ("send" | "recv"), ref rest @ ..] => {
                    let text = schema::unknown_key(table, &rest.join("."));
                    reader.found(entry.line, FindingWeight::Refused, text);
                }
                [table, ..] => {
                    reader.found(entry.line, FindingWeight::Refused, schema::unknown_table(table));
                }
                [] => {}
            }
        }
        has_tickets
    }

    /// Where it was read from.
    #[must_use]
    pub const fn sources(&self) -> &ConfigSources {
        &self.sources
    }

    /// The peers by name.
    #[must_use]
    pub const fn peers(&self) -> &BTreeMap<PeerName, Peer> {
        &self.peers
    }

    /// Values in place of defaults.
    #[must_use]
    pub fn settings(&self) -> &[Setting] {
        &self.settings
    }

    /// All that is wrong with the files: also tickets, and what verbs would say of their settings.
    #[must_use]
    pub fn findings(&self) -> Vec<Finding> {
        // What is wrong where a ticket is empty was found before.
        let told = |peer: &&Peer| peer.ticket.expose().is_empty();
        let tickets = self.peers.values().filter(|peer| !told(peer)).filter_map(|peer| peer.ticket().err());
        let weigh = |finding| Finding { weight: FindingWeight::Peer, ..finding };
        let refused = self.settings.iter().filter_map(|set| {
            let why = set.key.take(&set.values).err()?;
            Some(Finding::new(&set.file, Some(set.line), why))
        });
        self.findings.iter().cloned().chain(tickets.map(weigh)).chain(refused).collect()
    }

    /// An error if the files cannot be heeded.
    ///
    /// # Errors
    /// The first finding of that weight.
    pub fn usable(&self) -> Result<(), Finding> {
        let bars =
            |finding: &&Finding| matches!(finding.weight, FindingWeight::Refused | FindingWeight::Unread);
        self.findings.iter().find(bars).map_or(Ok(()), |finding| Err(finding.clone()))
    }
}

/// A file whose entries are taken in.
struct FileReader<'a> {
    path: &'a Path,
    is_users: bool,
    home: Option<PathBuf>,
    /// Headers of tables that have a meaning, by their places.
    known_headers: Vec<usize>,
    config: &'a mut Config,
}

impl FileReader<'_> {
    fn found(&mut self, line: usize, weight: FindingWeight, text: String) {
        self.config.findings.push(Finding { weight, ..Finding::new(self.path, Some(line), text) });
    }

    /// Tells of tables that nothing reads, and of peers without a ticket.
    fn headers(&mut self, document: &Document) {
        for (at, header) in document.headers.iter().enumerate() {
            self.known_headers.push(at);
            let names: Vec<&str> = header.path.iter().map(|key| key.name.as_str()).collect();
            match *names.as_slice() {
                ["send" | "recv" | PEER_TABLE] => {}
                [PEER_TABLE, peer] => {
                    let ticket = [PEER_TABLE, peer, TICKET_KEY];
                    if !document.entries.iter().any(|entry| document.name_of(entry) == ticket) {
                        let shown = crate::Printable(peer.as_bytes());
                        let text = format!("the peer `{shown}` has no ticket: write `ticket = \"…\"` below");
                        self.found(header.line, FindingWeight::Peer, text);
                        peer.parse()
                            .into_iter()
                            .for_each(|name| self.enter(name, String::new(), header.line));
                    }
                }
                _ => {
                    self.known_headers.pop();
                    let text = schema::unknown_table(&names.join("."));
                    self.found(header.line, FindingWeight::Refused, text);
                }
            }
        }
    }

    fn peer(&mut self, name: &str, value: &Value, line: usize) {
        let name = match name.parse::<PeerName>() {
            Ok(read) if read.as_str() == name => read,
            Ok(_) => return self.found(line, FindingWeight::Peer, "the name ends with a colon".into()),
            Err(error) => return self.found(line, FindingWeight::Peer, error.to_string()),
        };
        let Value::Text(ticket) = value else {
            let text = format!("`{TICKET_KEY}` is {}, and must be a text in quotes", value.kind());
            self.found(line, FindingWeight::Peer, text);
            return self.enter(name, String::new(), line);
        };
        self.enter(name, ticket.clone(), line);
    }

    /// Enters a peer, unless its name is taken. One with a mistake has an empty ticket: its name is
    /// taken, so that nothing goes to another file's peer of that name.
    fn enter(&mut self, name: PeerName, ticket: String, line: usize) {
        let ticket = Secret::new(ticket);
        let peer = Peer { file: self.path.to_owned(), line, is_users: self.is_users, ticket };
        self.config.peers.entry(name).or_insert(peer);
    }

    fn setting(&mut self, table: &str, key: &str, value: &Value, line: usize) {
        let Some(known) = schema::find(table, key) else {
            return self.found(line, FindingWeight::Refused, schema::unknown_key(table, key));
        };
        match known.read(value, line, self.home.as_deref()) {
            Ok(values) => {
                if !self.config.settings.iter().any(|setting| setting.key == known) {
                    let file = self.path.to_owned();
                    self.config.settings.push(Setting { key: known, values, file, line });
                }
            }
            Err((line, text)) => self.found(line, FindingWeight::Refused, text),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::os::unix::fs::PermissionsExt as _;

    struct Files(tempfile::TempDir);

    impl Files {
        fn new(user: &str, system: &str) -> Self {
            let files = Self(tempfile::tempdir().unwrap());
            for (name, text) in [("user", user), ("system", system)] {
                files.write(name, text, 0o600);
            }
            files
        }

        fn path(&self, name: &str) -> PathBuf {
            self.0.path().join(name)
        }

        fn write(&self, name: &str, text: &str, mode: u32) {
            fs::write(self.path(name), text).unwrap();
            fs::set_permissions(self.path(name), fs::Permissions::from_mode(mode)).unwrap();
        }

        fn read(&self) -> Config {
            let (user, system) = (Some(self.path("user")), Some(self.path("system")));
            Config::read(ConfigSources { user, system, home: None, is_chosen: false })
        }
    }

    fn told(user: &str) -> Vec<(Option<usize>, String)> {
        let found = Files::new(user, "").read().findings();
        found.into_iter().map(|finding| (finding.line, finding.text)).collect()
    }

    #[test]
    fn the_users_file_wins_over_the_systems() {
        let files = Files::new(
            "progress = true\n[peer.nas]\nticket = \"mine\"\n[send]\nbwlimit = \"1M\"\n",
            "progress = false\n[peer.nas]\nticket = \"a\"\n[peer.office]\nticket = \"b\"\n\
             [send]\nbwlimit = \"2M\"\npriority = \"normal\"\n",
        );
        let config = files.read();
        assert!(config.usable().is_ok());
        let peers = config.peers().iter().map(|(name, peer)| (name.as_str(), peer.is_users, peer.line));
        assert_eq!(peers.collect::<Vec<_>>(), [("nas", true, 3), ("office", false, 5)]);
        assert_eq!(config.peers()[&"nas".parse().unwrap()].ticket.expose(), "mine");
        let set = |setting: &Setting| (setting.key.table, setting.key.key, setting.values.concat());
        let settings: Vec<_> = config.settings().iter().map(set).collect();
        assert_eq!(
            settings,
            [
                ("", "progress", "true".into()),
                ("send", "bwlimit", "1M".into()),
                ("send", "priority", "normal".into())
            ]
        );
        assert!(!format!("{config:?}").contains("mine"), "a ticket is a secret");
    }

    #[test]
    fn whatever_is_wrong_has_its_line() {
        for (text, line, part) in [
            ("progres = true", 1, "no key `progres`: `progress` is meant"),
            ("\n[sned]\nretry = true", 2, "no table `sned`: `send` is meant"),
            ("[send.now]\nretry = true", 1, "no table `send.now`"),
            ("sned.retry = true", 1, "no table `sned`"),
            ("[send]\n\nretry.often = true", 3, "no key `retry.often`"),
            ("[send]\nretry = \"yes\"", 2, "`retry` is a text, and must be true or false"),
            ("[send]\nretry = yes", 2, "in quotes"),
            ("[peer.nas]\ntickets = \"x\"", 1, "the peer `nas` has no ticket"),
            ("[peer.-n]\nticket = \"x\"", 2, "begins with a letter"),
            ("[peer.nas]\nticket = 7", 2, "`ticket` is a number"),
            ("[peer.nas]\nticket = \"byway1-x\"", 2, "icket"),
            ("[peer]\nnas = \"byway1-x\"", 2, "a table for each peer"),
        ] {
            let told = told(text);
            assert!(told.iter().any(|(at, why)| *at == Some(line) && why.contains(part)), "{text}: {told:?}");
        }
        assert_eq!(
            told("[peer.nas]\ntickets = \"x\"")[1].1,
            "a peer has no key `tickets`: `ticket` is meant, perhaps"
        );
        let bad = Files::new("[peer.nas]\nticket = 7\n[peer.lab]\nticket = \"x\"", "").read();
        assert!(bad.usable().is_ok(), "another peer can be used");
        let file = Files::new("", "retry = 1");
        let error = file.read().usable().unwrap_err().to_string();
        assert_eq!(error, format!("{}:1: there is no key `retry`", file.path("system").display()));
    }

    #[test]
    fn files_of_others_and_open_files_are_told_apart() {
        let files = Files::new("", "");
        let ticket = "[peer.nas]\nticket = \"x\"\n";
        files.write("user", ticket, 0o644);
        files.write("system", "progress = true", 0o644);
        let config = files.read();
        let warnings: Vec<Finding> =
            config.findings().into_iter().filter(|it| it.weight == FindingWeight::Warning).collect();
        assert!(config.usable().is_ok());
        assert_eq!(warnings.len(), 1, "{warnings:?}");
        assert!(warnings[0].text.contains("others can read it (mode 644)"), "{warnings:?}");
        files.write("user", ticket, 0o664);
        let config = files.read();
        assert!(config.usable().unwrap_err().text.contains("chmod go-w") && config.peers().is_empty());
    }
}
