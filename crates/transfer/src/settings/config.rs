//! The contents of both configuration files: peers, settings, and mistakes.

use super::document::{Document, Entry, Value};
use super::peer_name::{PeerName, named_sender};
use super::schema::{self, PEER_TABLE, PUBLIC_KEY_KEY, SettingKey, TICKET_KEY};
use super::sources::{self, ConfigSources, ReadError};
use crate::identity::PublicKey;
use crate::secret::Secret;
use crate::ticket::Ticket;
use std::collections::BTreeMap;
use std::collections::btree_map::Entry as Known;
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

/// The contents of both configuration files. The user's file takes precedence over the system's.
#[derive(Clone, Debug, Default)]
pub struct Config {
    sources: ConfigSources,
    peers: BTreeMap<PeerName, Peer>,
    settings: Vec<Setting>,
    findings: Vec<Finding>,
}

/// A host with a name.
#[derive(Clone, Debug)]
pub struct Peer {
    /// The file with the peer.
    pub file: PathBuf,
    /// The line of the peer's ticket or key, counted from 1.
    pub line: usize,
    /// Whether the file is the user's.
    pub is_users: bool,
    pass: PeerPass,
}

/// The entry for a peer in the file: a ticket or a key.
#[derive(Clone, Debug)]
enum PeerPass {
    Ticket(Secret<String>),
    /// Only the peer's public key.
    Key(String),
    /// A mistake, which was already reported.
    Mistake,
}

impl Peer {
    /// Returns the peer's ticket.
    ///
    /// # Errors
    /// The file holds none, or what it holds is no ticket.
    pub fn ticket(&self) -> Result<Ticket, Finding> {
        match &self.pass {
            PeerPass::Ticket(ticket) => {
                ticket.expose().trim().parse::<Ticket>().map_err(|error| self.mistake(&error))
            }
            PeerPass::Key(_) => Err(self.mistake(&"this peer has no ticket, so nothing can be sent to it")),
            PeerPass::Mistake => Err(self.mistake(&"this peer has no ticket")),
        }
    }

    /// Returns the peer's public key.
    ///
    /// # Errors
    /// What the file holds is neither a ticket nor a key.
    pub fn key(&self) -> Result<PublicKey, Finding> {
        match &self.pass {
            PeerPass::Key(key) => key.trim().parse().map_err(|error| self.mistake(&error)),
            _ => self.ticket().map(|ticket| ticket.key),
        }
    }

    /// Returns the peer's public key, if it has no ticket.
    pub fn key_alone(&self) -> Option<PublicKey> {
        matches!(self.pass, PeerPass::Key(_)).then(|| self.key().ok()).flatten()
    }

    fn mistake(&self, what: &dyn fmt::Display) -> Finding {
        Finding::new(&self.file, Some(self.line), what.to_string())
    }
}

/// A value in place of an option's default.
#[derive(Clone)]
pub struct Setting {
    /// The option.
    pub key: &'static SettingKey,
    /// The values of the key. Relay words and registry words among them are secrets.
    pub values: Vec<String>,
    /// The file with the setting.
    file: PathBuf,
    /// The setting's line, counted from 1.
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
    /// The mistake, and how to correct it.
    pub text: String,
    /// The weight of the mistake.
    pub weight: FindingWeight,
}

/// The weight of a finding.
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
    /// Reads both files. Mistakes in them are in [`Self::findings`].
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
                    let has_tickets = config.take(path, is_users, &file.text);
                    let is_private = is_users && !sources.is_systems(path);
                    if is_private && file.is_exposed() && has_tickets {
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

    /// Reads a text as the user's file.
    #[must_use]
    pub fn of_text(text: &str) -> Self {
        let mut config = Self::default();
        config.take(Path::new("config.toml"), true, text);
        config
    }

    /// Reads the contents of a file. Returns whether it holds tickets.
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
                [PEER_TABLE, peer, key @ (TICKET_KEY | PUBLIC_KEY_KEY)] => {
                    has_tickets |= key == TICKET_KEY;
                    reader.peer(peer, key, &entry.value, entry.line);
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
                    let text = text + &schema::meant(key, [TICKET_KEY, PUBLIC_KEY_KEY]);
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

    /// Returns the places of the files.
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

    /// Returns all mistakes in the files, also in tickets and in settings that only verbs check.
    #[must_use]
    pub fn findings(&self) -> Vec<Finding> {
        let told = |peer: &&Peer| matches!(peer.pass, PeerPass::Mistake);
        let keys = self.peers.values().filter(|peer| !told(peer)).filter_map(|peer| peer.key().err());
        let weigh = |finding| Finding { weight: FindingWeight::Peer, ..finding };
        let refused = self.settings.iter().filter_map(|set| {
            let why = set
                .key
                .take(&set.values, |words| schema::told(self.allowed_senders(words, "`allow`")))
                .err()?;
            Some(Finding::new(&set.file, Some(set.line), why))
        });
        self.findings.iter().cloned().chain(keys.chain(refused).map(weigh)).collect()
    }

    /// The names of peers that a setting allows to send.
    pub(super) fn allowed_names(&self) -> impl Iterator<Item = (&Setting, PeerName)> {
        let lists = self.settings.iter().filter(|setting| setting.key.has_senders());
        lists.flat_map(|setting| {
            let names = setting.values.iter().filter_map(|text| named_sender(text));
            names.map(move |(name, _)| (setting, name))
        })
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
    /// Indices of headers of tables that are known.
    known_headers: Vec<usize>,
    config: &'a mut Config,
}

impl FileReader<'_> {
    fn found(&mut self, line: usize, weight: FindingWeight, text: String) {
        self.config.findings.push(Finding { weight, ..Finding::new(self.path, Some(line), text) });
    }

    /// Reports tables that are not known, and peers without a ticket and a key.
    fn headers(&mut self, document: &Document) {
        for (at, header) in document.headers.iter().enumerate() {
            self.known_headers.push(at);
            let names: Vec<&str> = header.path.iter().map(|key| key.name.as_str()).collect();
            match *names.as_slice() {
                ["send" | "recv" | PEER_TABLE] => {}
                [PEER_TABLE, peer] => {
                    let is_pass = |entry: &Entry| {
                        [TICKET_KEY, PUBLIC_KEY_KEY]
                            .iter()
                            .any(|key| document.name_of(entry) == [PEER_TABLE, peer, key])
                    };
                    if !document.entries.iter().any(is_pass) {
                        let shown = crate::Printable(peer.as_bytes());
                        let text = format!("the peer `{shown}` has no ticket: write `ticket = \"…\"` below");
                        self.found(header.line, FindingWeight::Peer, text);
                        peer.parse()
                            .into_iter()
                            .for_each(|name| self.enter(name, PeerPass::Mistake, header.line));
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

    fn peer(&mut self, name: &str, key: &str, value: &Value, line: usize) {
        let name = match name.parse::<PeerName>() {
            Ok(read) if read.as_str() == name => read,
            Ok(_) => return self.found(line, FindingWeight::Peer, "the name ends with a colon".into()),
            Err(error) => return self.found(line, FindingWeight::Peer, error.to_string()),
        };
        let Value::Text(text) = value else {
            let text = format!("`{key}` is {}, and must be a text in quotes", value.kind());
            self.found(line, FindingWeight::Peer, text);
            return self.enter(name, PeerPass::Mistake, line);
        };
        let pass = match key {
            TICKET_KEY => PeerPass::Ticket(Secret::new(text.clone())),
            _ => PeerPass::Key(text.clone()),
        };
        self.enter(name, pass, line);
    }

    /// Enters a peer, unless its name is taken. That of one with a mistake is taken, so that
    /// nothing goes to another file's peer of that name. A ticket says more than a key beside it.
    fn enter(&mut self, name: PeerName, pass: PeerPass, line: usize) {
        let peer = Peer { file: self.path.to_owned(), line, is_users: self.is_users, pass };
        let known = self.config.peers.entry(name);
        match (&peer.pass, known) {
            (_, Known::Vacant(place)) => drop(place.insert(peer)),
            (PeerPass::Ticket(_), Known::Occupied(mut known))
                if known.get().file == peer.file && matches!(known.get().pass, PeerPass::Key(_)) =>
            {
                known.insert(peer);
            }
            _ => {}
        }
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

    #[test]
    fn who_is_allowed_to_send_by_a_name_is_a_peer() {
        let key = PublicKey([7; 32]);
        let text = format!(
            "[peer.laptop]\nkey = \"{key}\"\n[recv]\nallow = [\"laptop=in\", \"labtop\", \"{key}\"]\n"
        );
        let config = Config::of_text(&text);
        let [finding] = config.findings().try_into().unwrap();
        assert_eq!(
            (finding.line, finding.text.as_str()),
            (Some(4), "no peer is called `labtop`: `laptop` is meant, perhaps")
        );
        assert_eq!(finding.weight, FindingWeight::Peer);
        let files = Files::new("", "");
        files.write("user", &text, 0o644);
        assert_eq!(files.read().findings().len(), 1, "keys are no secrets");
        let config = Files::new(&text, &format!("[peer.nas]\nkey = \"{key}\"\n")).read();
        let is_mentioned = |name: &str| config.mentions(&name.parse().unwrap());
        let names = ["laptop", "labtop", "nas", "in"].map(is_mentioned);
        assert_eq!(names, [true, true, true, false]);
        let allowed = |text: &str| config.allowed_senders(&[text.parse().unwrap()], "--allow");
        assert!(allowed("laptop=in").unwrap()[0].below.is_some());
        assert!(allowed("laptop=").unwrap_err().is_usage(), "an empty place is not the whole directory");
    }

    #[test]
    fn a_peer_that_only_sends_has_a_key_and_a_ticket_says_more() {
        let key = PublicKey([7; 32]);
        let permission = Secret::new([3; 16]);
        let ticket =
            Ticket { key: PublicKey([8; 32]), permission, addresses: vec![], relays: vec![], names: vec![] };
        let files = Files::new(
            &format!("[peer.laptop]\nkey = \"{key}\"\n[peer.nas]\nkey = \"{key}\"\nticket = \"{ticket}\"\n"),
            &format!("[peer.laptop]\nticket = \"{ticket}\"\n"),
        );
        let config = files.read();
        assert_eq!(config.findings(), []);
        let peer = |name: &str| &config.peers()[&name.parse::<PeerName>().unwrap()];
        assert_eq!(peer("laptop").key(), Ok(key), "the user's file decides");
        assert!(peer("laptop").ticket().unwrap_err().text.contains("nothing can be sent"));
        assert_eq!(peer("nas").key(), Ok(ticket.key));
        let mistyped = told("[peer.nas]\nkey = \"byway-key-x\"\n");
        assert!(
            matches!(mistyped.as_slice(), [(Some(2), text)] if text.contains("mistyped")),
            "{mistyped:?}"
        );
        let kind = told("[peer.nas]\nkey = 7\n");
        assert!(
            matches!(kind.as_slice(), [(Some(2), text)] if text.contains("`key` is a number")),
            "{kind:?}"
        );
    }

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
        let PeerPass::Ticket(ticket) = &config.peers()[&"nas".parse().unwrap()].pass else { panic!() };
        assert_eq!(ticket.expose(), "mine");
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
