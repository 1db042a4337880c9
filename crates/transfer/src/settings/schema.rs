//! The keys that a configuration file may have, and what each may be set to.

use super::document::Value;
use super::peer_name::{named_sender, nearest};
use crate::address::Advertised;
use crate::allowed_sender::AllowedSender;
use crate::limits::rate_timetable::RateTimetable;
use crate::local_address::LocalAddress;
use crate::receiver_addresses::check_advertised;
use crate::secret_words::{self, WordArgument};
use byway_files::Subdirectory;
use byway_registry::word::RegistryWord;
use byway_wire::relay;
use std::error::Error;
use std::fmt::Display;
use std::path::{Path, PathBuf};
use std::str::FromStr;

/// The table that holds a table for each peer.
pub(super) const PEER_TABLE: &str = "peer";
/// The keys of a peer: a ticket, or the public key of one that only sends.
pub(super) const TICKET_KEY: &str = "ticket";
pub(super) const PUBLIC_KEY_KEY: &str = "key";

/// The classes of transfers.
const PRIORITY_NAMES: [&str; 2] = ["background", "normal"];

/// A key of the file that sets an option of the command line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SettingKey {
    /// The verb with the option, which is also the name of the table. Empty: every verb has the
    /// option, and the key stands before the first table.
    pub table: &'static str,
    /// The option's name, without `--`.
    pub key: &'static str,
    kind: SettingKind,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum SettingKind {
    Flag,
    Path,
    Priority,
    Rate,
    LocalAddresses,
    Advertised,
    Keys,
    RelayWords,
    RegistryWords,
}

/// All keys except those of peers.
pub const SETTING_KEYS: [SettingKey; 12] = {
    use SettingKind as K;
    const fn of(table: &'static str, key: &'static str, kind: SettingKind) -> SettingKey {
        SettingKey { table, key, kind }
    }
    [
        of("", "state-dir", K::Path),
        of("", "progress", K::Flag),
        of("send", "priority", K::Priority),
        of("send", "bwlimit", K::Rate),
        of("send", "retry", K::Flag),
        of("send", "relay", K::RelayWords),
        of("send", "registry", K::RegistryWords),
        of("recv", "bwlimit", K::Rate),
        of("recv", "allow", K::Keys),
        of("recv", "relay", K::RelayWords),
        of("recv", "advertise", K::Advertised),
        of("recv", "listen", K::LocalAddresses),
    ]
};

/// The key of this name in this table.
pub(super) fn find(table: &str, key: &str) -> Option<&'static SettingKey> {
    SETTING_KEYS.iter().find(|known| known.table == table && known.key == key)
}

/// Whether any table has a setting of this name.
pub(super) fn is_setting(key: &str) -> bool {
    SETTING_KEYS.iter().any(|known| known.key == key)
}

/// Returns the message about an unknown key of `table`.
pub(super) fn unknown_key(table: &str, key: &str) -> String {
    let known = SETTING_KEYS.iter().filter(|known| known.table == table).map(|known| known.key);
    format!("there is no key `{}`{}", crate::Printable(key.as_bytes()), meant(key, known))
}

/// Returns the message about an unknown table.
pub(super) fn unknown_table(table: &str) -> String {
    let tables = ["send", "recv", PEER_TABLE];
    format!("there is no table `{}`{}", crate::Printable(table.as_bytes()), meant(table, tables))
}

/// Returns the known name that is most like a mistyped one, as the end of a sentence.
pub(super) fn meant<'a>(wanted: &str, names: impl IntoIterator<Item = &'a str>) -> String {
    nearest(wanted, names).map(|near| format!(": `{near}` is meant, perhaps")).unwrap_or_default()
}

/// A value that cannot be used: its line, and why.
pub(super) type BadValue = (usize, String);

impl SettingKey {
    /// Whether the value is `true` or `false`.
    #[must_use]
    pub const fn is_flag(&self) -> bool {
        matches!(self.kind, SettingKind::Flag)
    }

    /// Whether a comma parts the values of the option.
    #[must_use]
    pub const fn is_split_at_commas(&self) -> bool {
        matches!(self.kind, SettingKind::Keys | SettingKind::RelayWords | SettingKind::RegistryWords)
    }

    /// Checks all values together as the verb does, which reads the files that they name.
    /// `take_senders` checks the senders of `allow`, who may be peers.
    ///
    /// # Errors
    /// What the verb would say.
    pub(super) fn take(
        &self,
        values: &[String],
        take_senders: impl FnOnce(&[WordArgument<AllowedSender>]) -> Result<(), String>,
    ) -> Result<(), String> {
        match self.kind {
            SettingKind::Advertised => {
                let advertised: Vec<Advertised> =
                    values.iter().filter_map(|text| text.parse().ok()).collect();
                check_advertised(&advertised).map_err(|why| why.to_string())
            }
            SettingKind::Keys => take_senders(&words(values)),
            SettingKind::RelayWords => told(secret_words::values::<relay::Word>(&words(values), "`relay`")),
            SettingKind::RegistryWords => {
                told(secret_words::values::<RegistryWord>(&words(values), "`registry`"))
            }
            // There is one value, or each stands for itself.
            SettingKind::Flag
            | SettingKind::Path
            | SettingKind::Priority
            | SettingKind::Rate
            | SettingKind::LocalAddresses => Ok(()),
        }
    }

    /// Returns the key's value as the command line takes it: one text, or several if the option may
    /// be repeated. `home` replaces `~/`.
    pub(super) fn read(
        &self,
        value: &Value,
        line: usize,
        home: Option<&Path>,
    ) -> Result<Vec<String>, BadValue> {
        let wrong = |what: &str| (line, format!("`{}` is {}, and must be {what}", self.key, value.kind()));
        match (self.kind, value) {
            (SettingKind::Flag, Value::Flag(flag)) => Ok(vec![flag.to_string()]),
            (SettingKind::Flag, _) => Err(wrong("true or false")),
            (_, Value::Text(text)) => Ok(vec![self.check(text, home).map_err(|why| (line, why))?]),
            (kind, Value::List(values)) if kind.is_repeated() => values
                .iter()
                .map(|(line, value)| match value {
                    Value::Text(text) => self.check(text, home).map_err(|why| (*line, why)),
                    other => {
                        Err((*line, format!("`{}` has {}, and must have texts", self.key, other.kind())))
                    }
                })
                .collect(),
            (kind, _) if kind.is_repeated() => Err(wrong("a text or a list of texts")),
            _ => Err(wrong("a text in quotes")),
        }
    }

    /// Whether the key's values name senders.
    pub(super) const fn has_senders(&self) -> bool {
        matches!(self.kind, SettingKind::Keys)
    }

    /// Checks a text, and returns it as the option takes it.
    fn check(&self, text: &str, home: Option<&Path>) -> Result<String, String> {
        let parsed = |outcome: Result<(), String>| outcome.map(|()| text.to_owned());
        if self.is_split_at_commas() && text.contains(',') {
            return Err(format!("`{}`: a comma parts two values: write each as a text of its own", self.key));
        }
        match self.kind {
            SettingKind::Flag => parsed(Ok(())),
            SettingKind::Path => whole_path(text, home).map_err(|why| format!("`{}`: {why}", self.key)),
            SettingKind::Priority if PRIORITY_NAMES.contains(&text) => parsed(Ok(())),
            SettingKind::Priority => Err(format!("`{}` is background or normal", self.key)),
            SettingKind::Rate => parsed(self.parse::<RateTimetable>(text)),
            SettingKind::LocalAddresses => parsed(self.parse::<LocalAddress>(text)),
            SettingKind::Advertised => parsed(self.parse::<Advertised>(text)),
            SettingKind::Keys => match named_sender(text) {
                Some((_, place)) => parsed(place.map_or(Ok(()), |place| self.parse::<Subdirectory>(place))),
                None => self.word::<AllowedSender>(text, home),
            },
            SettingKind::RelayWords => self.word::<relay::Word>(text, home),
            SettingKind::RegistryWords => self.word::<RegistryWord>(text, home),
        }
    }

    fn parse<T: FromStr<Err: Display>>(&self, text: &str) -> Result<(), String> {
        text.parse::<T>().map(drop).map_err(|why| format!("`{}`: {why}", self.key))
    }

    /// Checks a word or `@FILE`.
    fn word<T: FromStr<Err: Display>>(&self, text: &str, home: Option<&Path>) -> Result<String, String> {
        match text.strip_prefix('@') {
            Some(path) => {
                let path = whole_path(path, home).map_err(|why| format!("`{}`: {why}", self.key))?;
                Ok(format!("@{path}"))
            }
            None => self.parse::<T>(text).map(|()| text.to_owned()),
        }
    }
}

impl SettingKind {
    const fn is_repeated(self) -> bool {
        matches!(
            self,
            Self::LocalAddresses | Self::Advertised | Self::Keys | Self::RelayWords | Self::RegistryWords
        )
    }
}

fn words<T>(values: &[String]) -> Vec<WordArgument<T>> {
    values.iter().filter_map(|text| text.parse().ok()).collect()
}

/// Returns an error with its causes, as one sentence.
pub(super) fn told<T>(outcome: Result<T, impl Error + 'static>) -> Result<(), String> {
    outcome.map(drop).map_err(|error| {
        let (mut text, mut cause) = (error.to_string(), error.source());
        while let Some(inner) = cause {
            text += &format!(": {inner}");
            cause = inner.source();
        }
        text
    })
}

/// A path that means the same wherever the program is started.
fn whole_path(text: &str, home: Option<&Path>) -> Result<String, String> {
    let path = match (text.strip_prefix("~/"), home) {
        (Some(rest), Some(home)) => home.join(rest),
        _ => PathBuf::from(text),
    };
    let whole = path.to_str().filter(|_| path.is_absolute());
    whole.map(str::to_owned).ok_or_else(|| "write the whole path, from `/` or `~/` on".to_owned())
}

#[cfg(test)]
mod tests {
    use super::super::config::Config;
    use super::*;
    use crate::identity::PublicKey;

    fn read(table: &str, key: &str, value: Value) -> Result<Vec<String>, BadValue> {
        find(table, key).unwrap().read(&value, 7, Some(Path::new("/home/me")))
    }

    fn text(text: &str) -> Value {
        Value::Text(text.into())
    }

    #[test]
    fn values_become_what_the_command_line_takes() {
        assert_eq!(read("", "state-dir", text("~/keys")).unwrap(), ["/home/me/keys"]);
        assert_eq!(read("", "progress", Value::Flag(false)).unwrap(), ["false"]);
        for limit in ["10Mbit", "08:00,512K 23:00,off"] {
            assert_eq!(read("recv", "bwlimit", text(limit)).unwrap(), [limit]);
        }
        assert_eq!(read("send", "bwlimit", text("10Mbit")).unwrap(), ["10Mbit"]);
        assert_eq!(read("send", "priority", text("normal")).unwrap(), ["normal"]);
        assert_eq!(read("send", "relay", text("@~/r")).unwrap(), ["@/home/me/r"]);
        let two = Value::List(vec![(8, text("@/a")), (9, text("@/b"))]);
        assert_eq!(read("recv", "relay", two).unwrap(), ["@/a", "@/b"]);
        assert_eq!(read("recv", "listen", text("127.0.0.1:0")).unwrap(), ["127.0.0.1:0"]);
        assert_eq!(read("recv", "listen", text("eth0:4747")).unwrap(), ["eth0:4747"]);
        assert_eq!(read("recv", "advertise", text("nas.example.org")).unwrap(), ["nas.example.org"]);
    }

    fn take_senders(words: &[WordArgument<AllowedSender>]) -> Result<(), String> {
        told(Config::default().allowed_senders(words, "`allow`"))
    }

    #[test]
    fn what_cannot_be_used_is_told_with_its_line() {
        for (table, key, value, line, part) in [
            ("", "progress", text("yes"), 7, "`progress` is a text, and must be true or false"),
            ("", "state-dir", text("keys"), 7, "whole path"),
            ("", "state-dir", Value::List(vec![]), 7, "must be a text in quotes"),
            ("send", "bwlimit", text("fast"), 7, "`bwlimit`: "),
            ("send", "bwlimit", text("8:00,1M"), 7, "`bwlimit`: `8:00` is no time of day"),
            ("send", "bwlimit", Value::Number, 7, "`bwlimit` is a number, and must be a text"),
            ("send", "priority", text("high"), 7, "background or normal"),
            ("send", "relay", text("nonsense"), 7, "`relay`: "),
            ("send", "relay", text("@r"), 7, "whole path"),
            ("recv", "allow", Value::List(vec![(8, text("bob/"))]), 8, "printed by `byway id`"),
            ("recv", "allow", Value::List(vec![(8, text("bob=../x"))]), 8, "dot component"),
            ("recv", "listen", Value::List(vec![(9, Value::Flag(true))]), 9, "must have texts"),
            ("send", "relay", Value::List(vec![(8, text("@/a,@/b"))]), 8, "a comma parts two values"),
            ("send", "registry", text("@/a,b"), 7, "a comma parts two values"),
            ("recv", "allow", text(&format!("{}=a,b", PublicKey([3; 32]))), 7, "a comma parts two values"),
        ] {
            let (at, why) = read(table, key, value).unwrap_err();
            assert!(at == line && why.contains(part), "{key}: {at}: {why}");
        }
        let key = PublicKey([3; 32]);
        for (table, key, values, part) in [
            ("recv", "allow", vec![format!("{key}=a"), format!("{key}=b")], "`allow`: byway-key-"),
            (
                "recv",
                "allow",
                vec![format!("{key}=a"), format!("{key}=b")],
                "named twice, with two directories",
            ),
            ("recv", "allow", vec!["@/none".into()], "`allow`: cannot read /none: "),
            ("recv", "advertise", ["a", "b", "c", "d", "e"].map(str::to_owned).to_vec(), "gives 5 names"),
            (
                "recv",
                "advertise",
                (0..17).map(|last| format!("192.0.2.{last}")).collect(),
                "gives 17 addresses",
            ),
            ("recv", "advertise", vec!["nas:0".into()], "leads to no host"),
            ("recv", "advertise", vec!["0.0.0.0".into()], "leads to no host"),
        ] {
            let why = find(table, key).unwrap().take(&values, take_senders).unwrap_err();
            assert!(why.contains(part), "{key}: {why}");
        }
        assert_eq!(
            find("recv", "advertise").unwrap().take(&["nas".into(), "192.0.2.1".into()], take_senders),
            Ok(())
        );
        assert_eq!(unknown_key("send", "retyr"), "there is no key `retyr`: `retry` is meant, perhaps");
        assert_eq!(unknown_table("\u{1b}"), "there is no table `\\u{1b}`");
    }
}
