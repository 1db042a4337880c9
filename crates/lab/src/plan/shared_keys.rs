//! Keys that several sections of a plan have.

use super::table_reader::{Reader, SpannedError};
use super::units::QuantityKind;
use crate::setup::{PathChoice, TcpOptions};
use byway_control::{ChoiceError, ControllerChoice};
use byway_sim::tcp::PartialAck;
use byway_wire::packet::{BASE_DATAGRAM, MAX_DATAGRAM};

/// The most copies of one transfer.
pub(super) const MAX_COPIES: u32 = 10_000;

/// Bytes of the largest packet of a link: no link of the Internet has less than 68 (RFC 791), and
/// no packet has more than 65,535.
const MTU_RANGE: core::ops::RangeInclusive<f64> = 68.0..=65_535.0;

pub(super) fn when(reader: &Reader<'_>) -> Result<bool, SpannedError> {
    Ok(reader.truth("when")?.unwrap_or(true))
}

pub(super) fn pair(reader: &Reader<'_>, key: &str) -> Result<Option<(String, String)>, SpannedError> {
    match reader.texts(key)? {
        None => Ok(None),
        Some(names) => match <[String; 2]>::try_from(names) {
            Ok([a, b]) if a != b => Ok(Some((a, b))),
            _ => reader.wrong(key, "expected two nodes such as [\"A\", \"B\"]"),
        },
    }
}

/// Reads the name under `key`.
pub(super) fn name(reader: &Reader<'_>, key: &str) -> Result<String, SpannedError> {
    let name = reader.needed(key, "a name", reader.text(key)?)?;
    let plain = |c: char| c.is_alphanumeric() || c == '_' || c == '-';
    if name.is_empty() || !name.chars().all(plain) || name.starts_with(|c: char| c.is_ascii_digit()) {
        return reader.wrong(key, "expected letters, digits, - and _, a letter first");
    }
    Ok(name)
}

/// The largest packet of a link, in bytes.
pub(super) fn mtu(reader: &Reader<'_>) -> Result<Option<usize>, SpannedError> {
    match reader.quantity("mtu", &[QuantityKind::Size, QuantityKind::Number])? {
        None => Ok(None),
        Some((_, bytes)) if MTU_RANGE.contains(&bytes) && libm::trunc(bytes) == bytes => {
            Ok(Some(bytes as usize))
        }
        Some(_) => reader.wrong("mtu", "expected 68 B to 65535 B"),
    }
}

pub(super) fn ways(reader: &Reader<'_>) -> Result<Vec<PathChoice>, SpannedError> {
    let ways = listed(reader, "paths")?;
    if ways.contains(&PathChoice::Registry) && !ways.contains(&PathChoice::Direct) {
        return reader.wrong("paths", "relays of the registry are offered to the receiver over \"direct\"");
    }
    Ok(ways)
}

/// Reads the routes under `key`. The default is the direct one.
pub(super) fn listed(reader: &Reader<'_>, key: &str) -> Result<Vec<PathChoice>, SpannedError> {
    let mut ways = Vec::new();
    for text in reader.texts(key)?.unwrap_or_else(|| vec!["direct".into()]) {
        let way = match text.split_once('*') {
            _ if text == "direct" => PathChoice::Direct,
            _ if text == "registry" => PathChoice::Registry,
            // "R*8": eight of the nodes that begin with R.
            Some((prefix, count)) => match count.parse() {
                Ok(count) if count > 0 => PathChoice::Any(prefix.to_owned(), count),
                _ => return reader.wrong(key, format!("{text:?}: expected for example \"R*8\"")),
            },
            None => PathChoice::Through(text),
        };
        if ways.contains(&way) {
            return reader.wrong(key, "a way stands there twice");
        }
        ways.push(way);
    }
    if ways.is_empty() {
        return reader.wrong(key, "expected at least one way");
    }
    Ok(ways)
}

pub(super) fn congestion(reader: &Reader<'_>, otherwise: &str) -> Result<ControllerChoice, SpannedError> {
    let text = reader.text("congestion")?.unwrap_or_else(|| otherwise.to_owned());
    let mut choice: ControllerChoice =
        text.parse().or_else(|error: ChoiceError| reader.wrong("congestion", error.to_string()))?;
    choice.options.extend(reader.table("options", |options| options.numbers())?.unwrap_or_default());
    Ok(choice)
}

pub(super) fn tcp(reader: &Reader<'_>) -> Result<TcpOptions, SpannedError> {
    let read = reader.table("tcp", |tcp| {
        let usual = match tcp.text("host")?.as_deref() {
            None | Some("papers") => TcpOptions::default(),
            Some("linux") => TcpOptions::linux(),
            Some(other) => {
                return tcp.wrong("host", format!("expected \"linux\" or \"papers\", found {other:?}"));
            }
        };
        Ok(TcpOptions {
            linux: usual.linux,
            delayed_ack: tcp.truth("delayed_ack")?.unwrap_or(usual.delayed_ack),
            receive_window: tcp.size("receive_window")?,
            min_rto: tcp.time("min_rto")?.unwrap_or(usual.min_rto),
            initial_window: tcp.count("initial_window", 1_000)?.unwrap_or(usual.initial_window),
            sack: tcp.truth("sack")?.unwrap_or(usual.sack),
            partial_ack: partial_ack(tcp)?.unwrap_or(usual.partial_ack),
            mss: tcp.count("mss", 9_000)?.unwrap_or(usual.mss),
            relay_packets: tcp.count("relay_packets", 1_000_000)?.unwrap_or(usual.relay_packets),
        })
    })?;
    Ok(read.unwrap_or_default())
}

/// The names of reactions to a partial ACK.
pub(super) const PARTIAL_ACK_NAMES: [(&str, PartialAck); 3] =
    [("steady", PartialAck::Steady), ("impatient", PartialAck::Impatient), ("ends", PartialAck::Ends)];

fn partial_ack(tcp: &Reader<'_>) -> Result<Option<PartialAck>, SpannedError> {
    let Some(asked) = tcp.text("partial_ack")? else { return Ok(None) };
    match PARTIAL_ACK_NAMES.iter().find(|(name, _)| *name == asked) {
        Some((_, partial_ack)) => Ok(Some(*partial_ack)),
        None => tcp
            .wrong("partial_ack", format!("expected \"steady\", \"impatient\" or \"ends\", found {asked:?}")),
    }
}

pub(super) fn datagram(session: &Reader<'_>) -> Result<Option<usize>, SpannedError> {
    match session.count("datagram", MAX_DATAGRAM as u32)? {
        Some(bytes) if (bytes as usize) < BASE_DATAGRAM => {
            session.wrong("datagram", format!("expected at least {BASE_DATAGRAM} bytes, found {bytes}"))
        }
        bytes => Ok(bytes.map(|bytes| bytes as usize)),
    }
}
