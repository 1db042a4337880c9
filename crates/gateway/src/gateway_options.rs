//! The options of a gateway: a table with one row per option. All code that handles options uses
//! this table: for example the readers of configuration files, `byway gateway check`, `--help` and
//! the manual.

use crate::machine::{Bundle, Settings};
use crate::path_selection::RelayPreference;
use crate::{cache, receive_window};
use alloc::format;
use alloc::string::{String, ToString as _};
use alloc::vec::Vec;
use byway_wire::Duration;
use core::fmt;

/// A peer of which nothing is heard for less than this could be a short disturbance; for longer
/// than that, hosts give up.
const DEAD_AFTER: [Duration; 2] = [Duration::from_secs(1), Duration::from_secs(60)];
/// Bundles of single flows to one peer that may be asked for: each keeps its paths alive.
const MAX_BUNDLES: u64 = 4_096;
const MAX_FLOWS: u64 = 1_000_000;
/// The least bytes of a buffer. Less would not hold one packet that the kernel puts together (GRO,
/// 64 KiB).
const MIN_BYTES: u64 = 128 << 10;

/// The kind of value that an option takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ValueKind {
    /// One of several names.
    Name,
    /// `true` or `false`.
    Flag,
    /// A whole number.
    Count,
    /// A number of bytes.
    Bytes,
    /// A duration.
    Time,
}

/// The value of an option.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Value<'a> {
    /// One of several names.
    Name(&'a str),
    /// `true` or `false`.
    Flag(bool),
    /// A whole number.
    Count(u64),
    /// A number of bytes.
    Bytes(u64),
    /// A duration.
    Time(Duration),
}

impl fmt::Display for Value<'_> {
    /// Writes the value as in the file, without quotation marks.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Name(name) => f.write_str(name),
            Self::Flag(flag) => write!(f, "{flag}"),
            Self::Count(count) => write!(f, "{count}"),
            Self::Bytes(bytes) if bytes % (1 << 20) == 0 => write!(f, "{}M", bytes >> 20),
            Self::Bytes(bytes) if bytes % (1 << 10) == 0 => write!(f, "{}K", bytes >> 10),
            Self::Bytes(bytes) => write!(f, "{bytes}"),
            Self::Time(time) => write!(f, "{}s", time.as_secs_f64()),
        }
    }
}

/// An option of a gateway.
pub struct GatewayOption {
    /// The name of the option.
    pub name: &'static str,
    /// The option's help text, without its possible names.
    pub help: &'static str,
    /// Whether the option is a limit. Limits have their own table in the file.
    pub limit: bool,
    /// The kind of the option's value.
    pub kind: ValueKind,
    /// The possible names, each with its meaning. The meaning of the default is empty.
    pub names: &'static [(&'static str, &'static str)],
    set: fn(&mut Settings, Value<'_>) -> Result<(), String>,
    get: fn(&Settings) -> Option<Value<'static>>,
}

impl GatewayOption {
    /// Returns the option with this name, among the limits or the other options.
    #[must_use]
    pub fn named(name: &str, limit: bool) -> Option<&'static Self> {
        GATEWAY_OPTIONS.iter().find(|option| option.name == name && option.limit == limit)
    }

    /// Sets the option in `settings`. Options that depend on other options follow them in
    /// [`GATEWAY_OPTIONS`].
    ///
    /// # Errors
    /// What was expected.
    pub fn set(&self, settings: &mut Settings, value: Value<'_>) -> Result<(), String> {
        match value {
            Value::Name(told)
                if self.kind == ValueKind::Name && !self.names.iter().any(|(name, _)| *name == told) =>
            {
                let known: Vec<&str> = self.names.iter().map(|(name, _)| *name).collect();
                Err(format!("`{}` is not `{told}`: choose one of {}", self.name, known.join(", ")))
            }
            value => (self.set)(settings, value),
        }
    }

    /// Returns the option's value in `settings`. `None`: it is off.
    #[must_use]
    pub fn get(&self, settings: &Settings) -> Option<Value<'static>> {
        (self.get)(settings)
    }

    /// Returns the option's help text, with its possible names.
    #[must_use]
    pub fn explained(&self) -> String {
        let names: Vec<&str> = self.names.iter().map(|(name, _)| *name).collect();
        match names.as_slice() {
            [most @ .., last] if !most.is_empty() => format!("{}: {} or {last}", self.help, most.join(", ")),
            _ => self.help.to_string(),
        }
    }

    /// Whether the option's value differs between two settings.
    #[must_use]
    pub fn differs(&self, one: &Settings, other: &Settings) -> bool {
        self.get(one) != self.get(other)
    }

    /// Returns the meaning of the option's value. `None`: the value is not a name, or is the
    /// default.
    #[must_use]
    pub fn meaning(&self, settings: &Settings) -> Option<&'static str> {
        let Some(Value::Name(value)) = self.get(settings) else { return None };
        let (_, meaning) = self.names.iter().find(|(name, _)| *name == value)?;
        Some(*meaning).filter(|meaning| !meaning.is_empty())
    }
}

/// Every option of a gateway.
pub const GATEWAY_OPTIONS: &[GatewayOption] = &[
    flag(
        "observe",
        "carry nothing, and show what would be carried",
        |settings, value| set_flag(&mut settings.observe, value),
        |settings| Some(Value::Flag(settings.observe)),
    ),
    flag(
        "fail-closed",
        "let background flows wait while there is no session",
        |settings, value| set_flag(&mut settings.fail_closed, value),
        |settings| Some(Value::Flag(settings.fail_closed)),
    ),
    flag(
        "detours",
        "send through relays that run beside other peers' gateways",
        |settings, value| set_flag(&mut settings.detours, value),
        |settings| Some(Value::Flag(settings.detours)),
    ),
    flag(
        "introduce",
        "tell peers of each other: where they are, and which hosts they serve",
        |settings, value| set_flag(&mut settings.introduce, value),
        |settings| Some(Value::Flag(settings.introduce)),
    ),
    GatewayOption {
        name: "dead-after",
        help: "a peer of which nothing is heard for so long is dead: 1s to 60s",
        limit: false,
        kind: ValueKind::Time,
        names: &[],
        set: |settings, value| match value {
            Value::Time(time) if (DEAD_AFTER[0]..=DEAD_AFTER[1]).contains(&time) => {
                settings.dead_after = time;
                Ok(())
            }
            _ => Err("expected between 1s and 60s".to_string()),
        },
        get: |settings| Some(Value::Time(settings.dead_after)),
    },
    choice(
        "window",
        "how the windows in ACKs are rewritten",
        &[
            ("delivered", ""),
            (
                "off",
                "Hosts are told the windows of their peers as they are, however much waits in the gateways.",
            ),
        ],
        |settings, value| {
            set_name(&mut settings.window, &receive_window::ALL_WINDOW_RULES, receive_window::name, value)
        },
        |settings| Some(Value::Name(receive_window::name(settings.window))),
    ),
    choice(
        "relays",
        "which relays carry",
        &[
            ("prefer", ""),
            (
                "any",
                "Relays are used however far off the direct path they are: packets wait to be put in order for those on the longest.",
            ),
        ],
        |settings, value| {
            set_name(&mut settings.policy.relays, &RelayPreference::ALL, RelayPreference::name, value)
        },
        |settings| Some(Value::Name(settings.policy.relays.name())),
    ),
    choice(
        "bundle",
        "what a bundle of paths is for",
        &[
            ("site", ""),
            (
                "flow",
                "Each flow that it takes in has a bundle of paths of its own (Harp), as long as there are fewer than `bundles` for its peer.",
            ),
        ],
        |settings, value| set_name(&mut settings.bundle, &Bundle::ALL, Bundle::name, value),
        |settings| Some(Value::Name(settings.bundle.name())),
    ),
    limit(
        "flows",
        "flows that are carried at once",
        ValueKind::Count,
        |settings, value| {
            let flows = count(value, MAX_FLOWS)?;
            settings.flows.opening = settings.flows.opening.min(flows);
            settings.flows.flows = flows;
            Ok(())
        },
        |settings| Some(Value::Count(settings.flows.flows as u64)),
    ),
    limit(
        "opening",
        "of the flows, those not open yet: what a flood of SYNs can take",
        ValueKind::Count,
        |settings, value| {
            settings.flows.opening = count(value, settings.flows.flows as u64)?;
            Ok(())
        },
        |settings| Some(Value::Count(settings.flows.opening as u64)),
    ),
    limit(
        "bundles",
        "flows to each peer with a bundle of their own, if `bundle = \"flow\"`",
        ValueKind::Count,
        |settings, value| {
            settings.bundles = count(value, MAX_BUNDLES)?;
            Ok(())
        },
        |settings| Some(Value::Count(settings.bundles as u64)),
    ),
    limit(
        "entry",
        "bytes that wait for the paths to one peer",
        ValueKind::Bytes,
        |settings, value| {
            settings.entry.bytes = bytes(value)?;
            settings.entry.flow_bytes = settings.entry.flow_bytes.min(settings.entry.bytes);
            Ok(())
        },
        |settings| Some(Value::Bytes(settings.entry.bytes as u64)),
    ),
    limit(
        "entry-of-flow",
        "of what waits for paths, bytes of one flow",
        ValueKind::Bytes,
        |settings, value| {
            settings.entry.flow_bytes = bytes(value)?.min(settings.entry.bytes);
            Ok(())
        },
        |settings| Some(Value::Bytes(settings.entry.flow_bytes as u64)),
    ),
    limit(
        "reorder",
        "bytes that wait to be put in order, of all flows",
        ValueKind::Bytes,
        |settings, value| {
            settings.exit.bytes = bytes(value)?;
            settings.exit.flow.bytes = settings.exit.flow.bytes.min(settings.exit.bytes);
            Ok(())
        },
        |settings| Some(Value::Bytes(settings.exit.bytes as u64)),
    ),
    limit(
        "reorder-of-flow",
        "of what waits to be put in order, bytes of one flow",
        ValueKind::Bytes,
        |settings, value| {
            settings.exit.flow.bytes = bytes(value)?.min(settings.exit.bytes);
            Ok(())
        },
        |settings| Some(Value::Bytes(settings.exit.flow.bytes as u64)),
    ),
    limit(
        "cache",
        "bytes kept to send lost packets again; without it, none are",
        ValueKind::Bytes,
        |settings, value| {
            let (bytes, usual) = (bytes(value)?, cache::CacheLimits::default());
            settings.cache =
                Some(cache::CacheLimits { bytes, flow_bytes: usual.flow_bytes.min(bytes), ..usual });
            Ok(())
        },
        |settings| settings.cache.map(|cache| Value::Bytes(cache.bytes as u64)),
    ),
    limit(
        "cache-of-flow",
        "of what is kept, bytes of one flow",
        ValueKind::Bytes,
        |settings, value| {
            let Some(cache) = &mut settings.cache else {
                return Err("without `cache`, the bytes of all flows, nothing is kept of a flow".to_string());
            };
            cache.flow_bytes = bytes(value)?.min(cache.bytes);
            Ok(())
        },
        |settings| settings.cache.map(|cache| Value::Bytes(cache.flow_bytes as u64)),
    ),
];

type Setter = fn(&mut Settings, Value<'_>) -> Result<(), String>;
type Getter = fn(&Settings) -> Option<Value<'static>>;

const fn flag(name: &'static str, help: &'static str, set: Setter, get: Getter) -> GatewayOption {
    GatewayOption { name, help, limit: false, kind: ValueKind::Flag, names: &[], set, get }
}

const fn choice(
    name: &'static str,
    help: &'static str,
    names: &'static [(&'static str, &'static str)],
    set: Setter,
    get: Getter,
) -> GatewayOption {
    GatewayOption { name, help, limit: false, kind: ValueKind::Name, names, set, get }
}

const fn limit(
    name: &'static str,
    help: &'static str,
    kind: ValueKind,
    set: Setter,
    get: Getter,
) -> GatewayOption {
    GatewayOption { name, help, limit: true, kind, names: &[], set, get }
}

fn set_flag(place: &mut bool, value: Value<'_>) -> Result<(), String> {
    let Value::Flag(flag) = value else { return Err("expected true or false".to_string()) };
    *place = flag;
    Ok(())
}

fn set_name<T: Copy>(
    place: &mut T,
    all: &[T],
    name: impl Fn(T) -> &'static str,
    value: Value<'_>,
) -> Result<(), String> {
    let Value::Name(told) = value else { return Err("expected a name".to_string()) };
    *place = all.iter().copied().find(|one| name(*one) == told).ok_or("expected another name")?;
    Ok(())
}

fn count(value: Value<'_>, most: u64) -> Result<usize, String> {
    match value {
        Value::Count(0) => Err("expected at least 1".to_string()),
        Value::Count(count) if count > most => Err(format!("expected at most {most}")),
        Value::Count(count) => Ok(usize::try_from(count).unwrap_or(usize::MAX)),
        _ => Err("expected a whole number".to_string()),
    }
}

fn bytes(value: Value<'_>) -> Result<usize, String> {
    match value {
        Value::Bytes(bytes) if bytes < MIN_BYTES => Err("expected at least 128K".to_string()),
        Value::Bytes(bytes) => Ok(usize::try_from(bytes).unwrap_or(usize::MAX)),
        _ => Err("expected bytes".to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn set(name: &str, settings: &mut Settings, value: Value<'_>) -> Result<(), String> {
        GATEWAY_OPTIONS.iter().find(|option| option.name == name).unwrap().set(settings, value)
    }

    #[test]
    fn what_is_written_is_read_again() {
        let mut settings = Settings { cache: Some(cache::CacheLimits::default()), ..Settings::default() };
        set("flows", &mut settings, Value::Count(500)).unwrap();
        assert_eq!(settings.flows.opening, 500, "no more than all");
        set("window", &mut settings, Value::Name("off")).unwrap();
        set("cache-of-flow", &mut settings, Value::Bytes(200_000)).unwrap();
        let mut again = Settings::default();
        for option in GATEWAY_OPTIONS {
            option.set(&mut again, option.get(&settings).unwrap()).unwrap();
            assert!(!option.differs(&settings, &again), "{}", option.name);
        }
        assert_eq!(again, settings);
    }

    #[test]
    fn every_name_is_known_and_the_default_needs_no_words() {
        let usual = Settings::default();
        for option in GATEWAY_OPTIONS.iter().filter(|option| option.kind == ValueKind::Name) {
            assert_eq!(option.meaning(&usual), None, "{}", option.name);
            for (name, meaning) in option.names {
                let mut settings = usual;
                option.set(&mut settings, Value::Name(name)).unwrap();
                assert_eq!(option.get(&settings), Some(Value::Name(name)));
                assert_eq!(option.differs(&settings, &usual), !meaning.is_empty());
                assert_eq!(option.meaning(&settings).unwrap_or_default(), *meaning);
            }
        }
    }

    #[test]
    fn what_is_written_and_explained_reads_well() {
        let explained = |name, limit| GatewayOption::named(name, limit).unwrap().explained();
        assert_eq!(explained("bundle", false), "what a bundle of paths is for: site or flow");
        assert_eq!(explained("entry", true), "bytes that wait for the paths to one peer");
        let written = [8 << 20, 9 << 10, 1_000].map(|bytes| Value::Bytes(bytes).to_string());
        assert_eq!(written, ["8M", "9K", "1000"]);
        assert_eq!(Value::Time(Duration::from_millis(2_500)).to_string(), "2.5s");
    }

    #[test]
    fn what_is_wrong_is_told_and_changes_nothing() {
        let mut settings = Settings::default();
        for (name, value, what) in [
            ("window", Value::Name("literal"), "`window` is not `literal`: choose one of delivered, off"),
            ("relays", Value::Name("exclude"), "`relays` is not `exclude`: choose one of prefer, any"),
            ("bundle", Value::Flag(true), "expected a name"),
            ("observe", Value::Count(1), "expected true or false"),
            ("flows", Value::Count(0), "at least 1"),
            ("opening", Value::Count(16_385), "at most 16384"),
            ("bundles", Value::Count(4_097), "at most 4096"),
            ("entry", Value::Bytes(1_000), "at least 128K"),
            ("cache-of-flow", Value::Bytes(1 << 20), "without `cache`"),
            ("dead-after", Value::Time(Duration::from_secs(61)), "between 1s and 60s"),
        ] {
            let told = set(name, &mut settings, value).unwrap_err();
            assert!(told.contains(what), "{told}");
            assert_eq!(settings, Settings::default());
        }
    }
}
