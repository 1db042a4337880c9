//! The file as it is written: its tables and keys, and where in it something stands.

use super::config_source::{As, ConfigError, ConfigSource};
use super::relay::RelayText;
use byway_gateway::gateway_options::{GATEWAY_OPTIONS, GatewayOption, Value as OptionValue, ValueKind};
use byway_gateway::rules::Rule;
use byway_gateway::serves::Served;
use byway_gateway::{Ports, Prefix};
use byway_transfer::address::Endpoint;
use byway_transfer::identity::PublicKey;
use byway_transfer::units::{parse_duration, parse_size};
use serde::de::value::MapAccessDeserializer;
use serde::de::{Deserialize, Deserializer, Error, IgnoredAny, MapAccess, Visitor};
use std::collections::BTreeMap;
use std::fmt;
use std::net::SocketAddr;
use std::path::PathBuf;
use toml::{Spanned, Value};

#[derive(Debug, serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct File {
    pub gateway: Option<GatewayText>,
    /// See [`OptionsText`].
    #[serde(default)]
    #[allow(dead_code, reason = "it may stand there")]
    limits: IgnoredAny,
    #[serde(default)]
    pub peer: Vec<Spanned<PeerText>>,
    #[serde(default)]
    pub rule: Vec<Rule>,
    pub relay: Option<RelayText>,
    #[serde(default)]
    pub guest: Vec<Spanned<GuestText>>,
}

impl File {
    /// Parses the file: its tables, and its options.
    pub fn read(source: &ConfigSource<'_>) -> Result<(Self, OptionsText), ConfigError> {
        let wrong = |error: toml::de::Error| {
            let what = error.message().trim().replace('\n', ", ");
            source.at(error.span().unwrap_or_default(), &what)
        };
        let options: OptionsText = toml::from_str(source.text).map_err(wrong)?;
        if let Some((key, value, known)) = options.unknown() {
            let what = format!("unknown field `{key}`, expected one of `{}`", known.join("`, `"));
            return Err(source.at(value.span(), &what));
        }
        Ok((toml::from_str(source.text).map_err(wrong)?, options))
    }
}

/// The keys of `[gateway]` that are not options.
#[derive(Debug, serde::Deserialize)]
pub(super) struct GatewayText {
    pub key: Option<PathBuf>,
    #[serde(default)]
    pub listen: Vec<As<Endpoint>>,
    pub tun: Option<Spanned<String>>,
    pub mark: Option<Spanned<u16>>,
    pub status: Option<PathBuf>,
    pub serves: Option<Spanned<Vec<ServedText>>>,
    pub congestion: Option<Spanned<String>>,
    pub dscp: Option<Spanned<String>>,
    pub registry: Option<Spanned<String>>,
}

/// The keys of [`GatewayText`].
const GATEWAY_KEYS: [&str; 9] =
    ["key", "listen", "tun", "mark", "status", "serves", "congestion", "dscp", "registry"];

/// The options in `[gateway]` and `[gateway.limits]`, by key.
#[derive(Debug, serde::Deserialize)]
pub(super) struct OptionsText {
    #[serde(default)]
    gateway: BTreeMap<String, Spanned<Value>>,
    #[serde(default)]
    limits: BTreeMap<String, Spanned<Value>>,
}

impl OptionsText {
    /// The value that the file gives to `option`. `None`: the file does not have it.
    pub fn of(&self, option: &GatewayOption) -> Option<&Spanned<Value>> {
        let table = if option.limit { &self.limits } else { &self.gateway };
        table.get(option.name)
    }

    /// A key that is neither an option nor another valid key, and the keys that are valid there.
    fn unknown(&self) -> Option<(&str, &Spanned<Value>, Vec<&'static str>)> {
        [(&self.gateway, false), (&self.limits, true)].into_iter().find_map(|(table, limit)| {
            let beside = if limit { &[][..] } else { &GATEWAY_KEYS };
            let options =
                GATEWAY_OPTIONS.iter().filter(|option| option.limit == limit).map(|option| option.name);
            let known: Vec<&str> = beside.iter().copied().chain(options).collect();
            let (key, value) = table.iter().find(|(key, _)| !known.contains(&key.as_str()))?;
            Some((key.as_str(), value, known))
        })
    }
}

/// The value written for an option, checked for the option's type.
pub(super) fn value<'a>(option: &GatewayOption, written: &'a Value) -> Result<OptionValue<'a>, String> {
    let wrong =
        |expected: &str| format!("`{}`: expected {expected}, found {}", option.name, written.type_str());
    match (option.kind, written) {
        (ValueKind::Name, Value::String(name)) => Ok(OptionValue::Name(name)),
        (ValueKind::Flag, Value::Boolean(flag)) => Ok(OptionValue::Flag(*flag)),
        (ValueKind::Count, Value::Integer(count)) => {
            u64::try_from(*count).map(OptionValue::Count).map_err(|_| "expected at least 1".to_owned())
        }
        (ValueKind::Bytes, Value::String(text)) => {
            parse_size(text).map(OptionValue::Bytes).map_err(|error| error.to_string())
        }
        (ValueKind::Time, Value::String(text)) => {
            let time = parse_duration(text).map_err(|error| error.to_string())?;
            let nanos = u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
            Ok(OptionValue::Time(byway_wire::Duration::from_nanos(nanos)))
        }
        (ValueKind::Name, _) => Err(wrong("a name")),
        (ValueKind::Flag, _) => Err(wrong("true or false")),
        (ValueKind::Count, _) => Err(wrong("a whole number")),
        (ValueKind::Bytes, _) => Err(wrong("bytes, such as \"64M\"")),
        (ValueKind::Time, _) => Err(wrong("a duration, such as \"3s\"")),
    }
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

#[derive(Debug, serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct GuestText {
    pub name: Spanned<String>,
    pub key: Spanned<As<PublicKey>>,
    #[serde(default)]
    pub hosts: Vec<Prefix>,
    pub ports: Option<Spanned<Vec<Ports>>>,
}

/// Hosts, as a prefix or as a table with ports.
#[derive(Clone, Debug)]
pub(super) struct ServedText(pub Served);

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
