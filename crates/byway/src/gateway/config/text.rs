//! The file as it is written: its tables and keys, and where in it something stands.

use crate::address::Endpoint;
use crate::units::{parse_duration, parse_size};
use byway_gateway::Prefix;
use byway_gateway::rules::Rule;
use byway_gateway::serves::Served;
use byway_transfer::identity::PublicKey;
use byway_wire::relay::Word;
use byway_wire::word::MAX_LEN;
use core::ops::Range;
use serde::de::value::MapAccessDeserializer;
use serde::de::{Deserialize, Deserializer, Error, MapAccess, Visitor};
use std::fmt;
use std::io::Read as _;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::time::Duration;
use thiserror::Error as ThisError;
use toml::Spanned;

/// What is wrong in a file, and where.
#[derive(Clone, Debug, PartialEq, Eq, ThisError)]
#[error("{}:{line}: {what}", file.display())]
pub struct ConfigError {
    /// The file.
    pub file: PathBuf,
    /// The line, from 1.
    pub line: usize,
    /// What is wrong, and what was expected.
    pub what: String,
}

#[derive(Debug, serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct File {
    pub gateway: Option<GatewayText>,
    #[serde(default)]
    pub limits: LimitsText,
    #[serde(default)]
    pub peer: Vec<Spanned<PeerText>>,
    #[serde(default)]
    pub rule: Vec<Rule>,
}

#[derive(Debug, serde::Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(super) struct GatewayText {
    pub key: Option<PathBuf>,
    #[serde(default)]
    pub listen: Vec<As<Endpoint>>,
    pub tun: Option<Spanned<String>>,
    pub mark: Option<Spanned<u16>>,
    pub status: Option<PathBuf>,
    pub serves: Spanned<Vec<ServedText>>,
    pub congestion: Option<Spanned<String>>,
    pub dscp: Option<Spanned<String>>,
    #[serde(default)]
    pub fail_closed: bool,
    #[serde(default)]
    pub observe: bool,
    pub dead_after: Option<Spanned<Time>>,
    pub loss: Option<Spanned<String>>,
    pub window: Option<Spanned<String>>,
    pub bundle: Option<Spanned<String>>,
    pub relays: Option<Spanned<String>>,
    pub timer: Option<Spanned<String>>,
}

#[derive(Debug, Default, serde::Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub(super) struct LimitsText {
    pub flows: Option<Spanned<u64>>,
    pub opening: Option<Spanned<u64>>,
    pub bundles: Option<Spanned<u64>>,
    pub entry: Option<Spanned<Size>>,
    pub entry_of_flow: Option<Spanned<Size>>,
    pub reorder: Option<Spanned<Size>>,
    pub reorder_of_flow: Option<Spanned<Size>>,
    pub cache: Option<Spanned<Size>>,
    pub cache_of_flow: Option<Spanned<Size>>,
}

#[derive(Debug, serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct PeerText {
    pub name: Spanned<String>,
    pub key: Spanned<As<PublicKey>>,
    #[serde(default)]
    pub addresses: Vec<As<SocketAddr>>,
    pub allowed: Spanned<Vec<Prefix>>,
    #[serde(default)]
    pub relays: Vec<Spanned<String>>,
}

/// A value by its text.
#[derive(Clone, Copy, Debug)]
pub(super) struct As<T>(pub T);

/// Bytes: `"64M"`.
#[derive(Clone, Copy, Debug)]
pub(super) struct Size(pub u64);

/// A duration: `"3s"`.
#[derive(Clone, Copy, Debug)]
pub(super) struct Time(pub Duration);

/// Hosts, as a prefix or as a table with ports.
#[derive(Clone, Debug)]
pub(super) struct ServedText(pub Served);

impl<'de, T: FromStr<Err: fmt::Display>> Deserialize<'de> for As<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        text.parse().map(As).map_err(|error| D::Error::custom(format!("`{text}`: {error}")))
    }
}

impl<'de> Deserialize<'de> for Size {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        parse_size(&String::deserialize(deserializer)?).map(Size).map_err(D::Error::custom)
    }
}

impl<'de> Deserialize<'de> for Time {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        parse_duration(&String::deserialize(deserializer)?).map(Time).map_err(D::Error::custom)
    }
}

impl<'de> Deserialize<'de> for ServedText {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(ServedVisitor)
    }
}

struct ServedVisitor;

impl<'de> Visitor<'de> for ServedVisitor {
    type Value = ServedText;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a prefix, such as \"192.168.1.0/24\", or { hosts = \"192.168.1.7\", ports = [873] }")
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<ServedText, E> {
        let hosts = text.parse().map_err(|error| E::custom(format!("`{text}`: {error}")))?;
        Ok(ServedText(Served { hosts, ports: Vec::new() }))
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<ServedText, A::Error> {
        Served::deserialize(MapAccessDeserializer::new(map)).map(ServedText)
    }
}

/// A file and its text, to say where something stands.
pub(super) struct Place<'a> {
    pub file: &'a Path,
    pub text: &'a str,
}

impl Place<'_> {
    pub fn read(&self) -> Result<File, ConfigError> {
        toml::from_str(self.text).map_err(|error| {
            let what = error.message().trim().replace('\n', ", ");
            self.at(error.span().unwrap_or_default(), &what)
        })
    }

    pub fn at(&self, span: Range<usize>, what: &str) -> ConfigError {
        let line = 1 + self.text.bytes().take(span.start).filter(|&byte| byte == b'\n').count();
        ConfigError { file: self.file.to_owned(), line, what: what.to_owned() }
    }

    pub fn whole(&self, what: &str) -> ConfigError {
        self.at(0..0, what)
    }

    /// A relay's word, itself or as `@FILE`. It is a secret: what is wrong with it is said without it.
    pub fn word(&self, directory: &Path, told: &Spanned<String>) -> Result<Word, ConfigError> {
        let word = told.as_ref();
        let Some(file) = word.strip_prefix('@') else {
            return word.trim().parse().map_err(|error| self.at(told.span(), &format!("{error}")));
        };
        let file = directory.join(file);
        let wrong = |error: &dyn fmt::Display| self.at(told.span(), &format!("{}: {error}", file.display()));
        let mut text = String::new();
        std::fs::File::open(&file)
            .and_then(|open| open.take(MAX_LEN as u64 + 1).read_to_string(&mut text))
            .map_err(|error| wrong(&error))?;
        text.trim().parse().map_err(|error: byway_wire::relay::WordError| wrong(&error))
    }
}
