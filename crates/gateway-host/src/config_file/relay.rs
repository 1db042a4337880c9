//! `[relay]`: a relay beside the gateway, for its peers, and for a registry's clients if one is
//! named.

use super::config_source::{As, ConfigError, ConfigSource};
use byway_gateway::Prefix;
use byway_registry::word::{RegistryWord, WordKind};
use byway_transfer::address::Endpoint;
use byway_transfer::units::{Bytes, Rate, UnitError, parse_rate, parse_size};
use byway_wire::relay::MAX_ADDRESSES;
use serde::Deserialize;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use toml::Spanned;

/// The default UDP port of a relay.
pub const RELAY_PORT: u16 = 4748;

/// A relay beside the gateway.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RelayConfig {
    /// The addresses and ports that the relay listens on. Empty: all addresses, on [`RELAY_PORT`].
    pub listen: Vec<SocketAddr>,
    /// The addresses at which peers reach the relay. Empty: those on which it listens.
    pub advertise: Vec<SocketAddr>,
    /// Networks to which the relay may send, in addition to the public Internet and the peers'
    /// addresses.
    pub allow_destination: Vec<Prefix>,
    /// Bytes per second of a peer.
    pub rate: Option<u64>,
    /// Bytes per day of a peer.
    pub quota: Option<u64>,
    /// Bytes per day in all.
    pub per_day: Option<u64>,
    /// Bytes per month in all.
    pub per_month: Option<u64>,
    /// The relay's key file; `None`: this host's relay key.
    pub key: Option<PathBuf>,
    /// The registry that the relay enrols at.
    pub registry: Option<RegistryWord>,
    /// The name of the relay's operator, for the registry.
    pub operator: String,
    /// The region of the relay, for the registry.
    pub region: String,
}

impl RelayConfig {
    /// Returns a sentence about the relay.
    #[must_use]
    pub fn explain(&self) -> String {
        let listen = match self.listen.as_slice() {
            [] => format!("all addresses, UDP port {RELAY_PORT}"),
            told => told.iter().map(|address| format!("{address} (UDP)")).collect::<Vec<_>>().join(", "),
        };
        let rate = self.rate.map(|rate| format!(", each {}", Rate::of(rate, 1.0)));
        let quota = self.quota.map(|quota| format!(", each {} a day", Bytes(quota)));
        let all = [(self.per_day, " a day"), (self.per_month, " a month")];
        let all = all.iter().filter_map(|(limit, of)| Some(format!(", {}{of} in all", Bytes((*limit)?))));
        let limits: String = rate.into_iter().chain(quota).chain(all).collect();
        let listed = if self.registry.is_some() { ", and for a registry's clients" } else { "" };
        format!("A relay beside it listens at {listen}, for its peers{listed}{limits}.")
    }
}

/// The table `[relay]` as written in the file.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(super) struct RelayText {
    #[serde(default)]
    listen: Vec<As<Endpoint>>,
    advertise: Option<Spanned<Vec<As<Endpoint>>>>,
    #[serde(default)]
    allow_destination: Vec<Prefix>,
    rate: Option<Spanned<String>>,
    quota: Option<Spanned<String>>,
    per_day: Option<Spanned<String>>,
    per_month: Option<Spanned<String>>,
    key: Option<PathBuf>,
    registry: Option<Spanned<String>>,
    #[serde(default)]
    operator: String,
    #[serde(default)]
    region: String,
}

impl RelayText {
    /// Whether the file itself contains the registry word, which is a secret.
    pub fn has_word(&self) -> bool {
        self.registry.as_ref().is_some_and(|word| !word.as_ref().starts_with('@'))
    }

    pub fn read(self, place: &ConfigSource<'_>, directory: &Path) -> Result<RelayConfig, ConfigError> {
        let amount = |told: Option<Spanned<String>>, parse: fn(&str) -> Result<u64, UnitError>| {
            let parse = |told: Spanned<String>| {
                parse(told.as_ref()).map_err(|error| place.at(told.span(), &error.to_string()))
            };
            told.map(parse).transpose()
        };
        let size = |told| amount(told, parse_size);
        if let Some(told) = self.advertise.as_ref().filter(|told| told.as_ref().len() > MAX_ADDRESSES) {
            let what = format!("a relay is found at {MAX_ADDRESSES} addresses at most");
            return Err(place.at(told.span(), &what));
        }
        let advertise = self.advertise.map(Spanned::into_inner).unwrap_or_default();
        let or_port = |asked: &As<Endpoint>| asked.0.or_port(RELAY_PORT);
        Ok(RelayConfig {
            listen: self.listen.iter().map(or_port).collect(),
            advertise: advertise.iter().map(or_port).collect(),
            allow_destination: self.allow_destination,
            rate: amount(self.rate, parse_rate)?,
            quota: size(self.quota)?,
            per_day: size(self.per_day)?,
            per_month: size(self.per_month)?,
            key: self.key.map(|key| directory.join(key)),
            registry: registry(place, directory, self.registry.as_ref(), WordKind::Join)?,
            operator: self.operator,
            region: self.region,
        })
    }
}

/// Parses a registry word of this kind.
pub(super) fn registry(
    place: &ConfigSource<'_>,
    directory: &Path,
    told: Option<&Spanned<String>>,
    kind: WordKind,
) -> Result<Option<RegistryWord>, ConfigError> {
    let Some(told) = told else { return Ok(None) };
    let word: RegistryWord = place.word(directory, told)?;
    if word.kind == kind {
        return Ok(Some(word));
    }
    let what = match kind {
        WordKind::Use => "this word enrols relays: `registry` in [gateway] takes one that asks for relays",
        WordKind::Join => "this word asks for relays: `registry` in [relay] takes one that enrols relays",
    };
    Err(place.at(told.span(), what))
}
