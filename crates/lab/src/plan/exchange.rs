//! `[transfer.exchange]`: sessions between hosts that live as hosts do.

use super::node::{Node, Value};
use super::shared_keys::datagram;
use super::table_reader::{Reader, SpannedError, quantity};
use super::units::{self, QuantityKind};
use crate::setup::{ClockSetup, ExchangeOptions, StreamSetup};
use byway_engine::path_choice::PathRule;
use byway_wire::Duration;

/// The most bytes of an object, or of a direction of a stream. With [`MAX_PARTS`] of each the sum
/// fits into 64 bits.
const MAX_BYTES: f64 = 1e12;
/// The most objects of a list, and streams.
const MAX_PARTS: usize = 10_000;
const MAX_DATAGRAMS: u32 = 1_000_000;
/// The most parts per million by which a clock may run slow. At a million it would stop.
const MAX_DRIFT_PPM: f64 = 999_999.0;

pub(super) fn options(reader: &Reader<'_>) -> Result<ExchangeOptions, SpannedError> {
    let objects = sizes(reader, "objects")?;
    let objects_present = reader.count("objects_present", MAX_PARTS as u32)?.unwrap_or_default() as usize;
    if objects_present > objects.len() {
        return reader
            .wrong("objects_present", format!("expected at most {}, as many as there are", objects.len()));
    }
    let streams = reader.each("streams", stream)?;
    if streams.len() > MAX_PARTS {
        return reader.wrong("streams", format!("expected at most {MAX_PARTS}"));
    }
    Ok(ExchangeOptions {
        objects,
        objects_present,
        objects_back: sizes(reader, "objects_back")?,
        streams,
        datagrams: reader.count("datagrams", MAX_DATAGRAMS)?.unwrap_or_default(),
        writes: reader.rate("writes")?,
        reads: reader.rate("reads")?,
        memory: reader.size("memory")?,
        datagram: datagram(reader)?,
        path_rule: path_rule(reader)?,
        tcp: reader.truth("tcp")?.unwrap_or(false),
        uplinks: reader.texts("uplinks")?.unwrap_or_default(),
        ticket_names_relays: reader.truth("ticket_names_relays")?.unwrap_or(false),
        words_hold: reader.time("words_hold")?,
        sender_clock: reader.table("sender_clock", clock)?.unwrap_or_default(),
        receiver_clock: reader.table("receiver_clock", clock)?.unwrap_or_default(),
    })
}

/// The name of byway's own path choice.
const OWN_PATH_CHOICE: &str = "byway";

fn path_rule(reader: &Reader<'_>) -> Result<Option<PathRule>, SpannedError> {
    let Some(name) = reader.text("path_choice")? else { return Ok(None) };
    if name == OWN_PATH_CHOICE {
        return Ok(None);
    }
    let Some(rule) = PathRule::ALL.into_iter().find(|rule| rule.name() == name) else {
        let names = PathRule::ALL.map(PathRule::name).join("\", \"");
        return reader.wrong("path_choice", format!("expected \"{OWN_PATH_CHOICE}\", \"{names}\""));
    };
    Ok(Some(rule))
}

fn stream(reader: &Reader<'_>) -> Result<StreamSetup, SpannedError> {
    let bytes = reader.needed("bytes", QuantityKind::Size.expected(), bytes(reader, "bytes")?)?;
    let reset_after = self::bytes(reader, "reset_after")?;
    if reset_after.is_some_and(|after| after > bytes) {
        return reader.wrong("reset_after", format!("expected at most the {bytes} bytes that are written"));
    }
    Ok(StreamSetup {
        bytes,
        answer: self::bytes(reader, "answer")?.unwrap_or_default(),
        in_turn: reader.truth("in_turn")?.unwrap_or(false),
        reset_after,
    })
}

fn clock(reader: &Reader<'_>) -> Result<ClockSetup, SpannedError> {
    let drift_ppm = reader.number("drift_ppm")?.unwrap_or_default();
    if !(-MAX_DRIFT_PPM..=MAX_DRIFT_PPM).contains(&drift_ppm) {
        return reader.wrong("drift_ppm", "expected a number between -999999 and 999999: a clock goes on");
    }
    let step = match reader.node("step")? {
        None => None,
        Some(node) => match times(&node) {
            Some(step) => Some(step),
            None => {
                let what = "expected when it jumps and by how much, such as [\"10 s\", \"1 h\"]";
                return reader.wrong("step", what);
            }
        },
    };
    Ok(ClockSetup { ahead: reader.time("ahead")?.unwrap_or_default(), drift_ppm, step })
}

/// A list of two times.
fn times(node: &Node) -> Option<(Duration, Duration)> {
    let Value::List(list) = &node.value else { return None };
    let [first, second] = list.as_slice() else { return None };
    let time = |node: &Node| match &node.value {
        Value::Text(text) => match units::parse(text)? {
            (QuantityKind::Time, seconds) => units::duration(seconds),
            _ => None,
        },
        _ => None,
    };
    Some((time(first)?, time(second)?))
}

/// A size that may be none at all.
fn bytes(reader: &Reader<'_>, key: &str) -> Result<Option<u64>, SpannedError> {
    reader.node(key)?.map(|node| size(&node, key)).transpose()
}

/// A list of sizes, of which any may be 0 B.
fn sizes(reader: &Reader<'_>, key: &str) -> Result<Vec<u64>, SpannedError> {
    let list = reader.list(key)?.unwrap_or_default();
    if list.len() > MAX_PARTS {
        return reader.wrong(key, format!("expected at most {MAX_PARTS}"));
    }
    list.iter().map(|node| size(node, key)).collect()
}

fn size(node: &Node, key: &str) -> Result<u64, SpannedError> {
    match quantity(node, key, &[QuantityKind::Size])? {
        (_, bytes) if (0.0..=MAX_BYTES).contains(&bytes) => Ok(libm::round(bytes) as u64),
        _ => Err((node.span.clone(), format!("`{key}`: expected 0 B to 1 TB"))),
    }
}
