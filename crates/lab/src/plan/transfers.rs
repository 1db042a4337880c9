//! `[[transfer]]`: bulk data, and what carries it.

use super::node::{Node, Value};
use super::shared_keys::{MAX_COPIES, congestion, datagram, name, tcp, ways, when};
use super::table_reader::{Reader, SpannedError};
use super::units::{self, QuantityKind};
use super::{exchange, gateways};
use crate::setup::{Carrier, Demand, Gateways, NodeChoice, PathChoice, SessionOptions, Transfer};
use byway_wire::Duration;

fn end(reader: &Reader<'_>, key: &str) -> Result<NodeChoice, SpannedError> {
    let any = format!("{key}_any");
    match (reader.text(key)?, reader.text(&any)?) {
        (Some(node), None) => Ok(NodeChoice::Node(node)),
        (None, Some(prefix)) => Ok(NodeChoice::Any(prefix)),
        _ => reader.wrong(key, format!("expected a node, or `{any}` with how the names of nodes begin")),
    }
}

fn session(reader: &Reader<'_>) -> Result<SessionOptions, SpannedError> {
    let read = reader.table("session", |session| {
        let word = |key: &str, is: &str, usual: &str| match session.text(key)?.as_deref() {
            None => Ok(false),
            Some(word) if word == is => Ok(true),
            Some(word) if word == usual => Ok(false),
            Some(word) => session.wrong(key, format!("expected {is:?} or {usual:?}, found {word:?}")),
        };
        Ok(SessionOptions {
            pnack_first_gap: word("pnack", "first-gap", "adaptive")?,
            ack_direct: word("ack_path", "direct", "fastest")?,
            tau: session.number("tau")?,
            datagram: datagram(session)?,
            real_bytes: session.truth("real_bytes")?.unwrap_or(false),
        })
    })?;
    Ok(read.unwrap_or_default())
}

fn demand(reader: &Reader<'_>) -> Result<Demand, SpannedError> {
    let steps = reader.list("steps")?;
    match (reader.size("size")?, reader.rate("rate")?, steps) {
        (None, None, None) => Ok(Demand::Unlimited),
        (Some(size), None, None) => Ok(Demand::Size(size)),
        (None, Some(rate), None) => Ok(Demand::Rate(vec![(Duration::ZERO, rate)])),
        (None, None, Some(steps)) => steps.iter().map(step).collect::<Result<_, _>>().map(Demand::Rate),
        _ => reader.wrong("size", "expected one of size, rate and steps"),
    }
}

/// `["30 s", "8 Mbit/s"]`.
fn step(node: &Node) -> Result<(Duration, u64), SpannedError> {
    let wrong =
        || (node.span.clone(), "expected a time and a rate such as [\"30 s\", \"8 Mbit/s\"]".to_owned());
    let Value::List(list) = &node.value else { return Err(wrong()) };
    let mut parts = list.iter().map(|node| match &node.value {
        Value::Text(text) => units::parse(text),
        _ => None,
    });
    match (parts.next().flatten(), parts.next().flatten(), parts.next()) {
        (Some((QuantityKind::Time, at)), Some((QuantityKind::Rate, rate)), None) if rate >= 0.0 => {
            Ok((units::duration(at).ok_or_else(wrong)?, libm::round(rate) as u64))
        }
        _ => Err(wrong()),
    }
}

pub(super) fn transfer(reader: &Reader<'_>, known: &[Gateways]) -> Result<Vec<Transfer>, SpannedError> {
    let present = when(reader)?;
    // Whatever carries it, so that a sweep may choose.
    reader.knows(&["gateways"]);
    let (name, group) = names(reader)?;
    let count = reader.count("count", MAX_COPIES)?;
    let (tcp, session) = (tcp(reader)?, session(reader)?);
    let exchange = reader.table("exchange", exchange::options)?;
    let carrier = match reader.text("carrier")?.as_deref() {
        None | Some("session") => Carrier::Session(session),
        Some("tcp") => Carrier::Tcp(tcp),
        Some("tcp-relays") => Carrier::TcpRelays(tcp),
        Some("gateways") => Carrier::Gateways(tcp, gateways::of(reader, known)?),
        Some("exchange") => {
            let what = "a table such as { objects = [\"1 MB\"] }";
            Carrier::Exchange(reader.needed("exchange", what, exchange)?)
        }
        Some(other) => {
            let what = format!("expected session, exchange, tcp, tcp-relays or gateways, found {other:?}");
            return reader.wrong("carrier", what);
        }
    };
    let sessions = matches!(carrier, Carrier::Session(_) | Carrier::Exchange(_));
    let otherwise = if sessions { "background" } else { "newreno" };
    let demand = match (&carrier, demand(reader)?) {
        (Carrier::Exchange(options), Demand::Unlimited) => Demand::Size(options.bytes()),
        (Carrier::Exchange(_), _) => {
            let key = ["size", "rate", "steps"].into_iter().find(|key| reader.has(key)).unwrap_or("carrier");
            return reader.wrong(key, "an exchange ends with its objects and streams: they say how much");
        }
        (_, demand) => demand,
    };
    let mut paths = ways(reader)?;
    if let Carrier::Gateways(_, by) = &carrier {
        let by = known.iter().find(|gateways| gateways.name == *by);
        paths = by.map(|gateways| gateways.paths.clone()).unwrap_or_default();
    }
    if paths.contains(&PathChoice::Registry) && !sessions {
        return reader.wrong("paths", "only sessions ask a registry");
    }
    let one = Transfer {
        name,
        group,
        from: end(reader, "from")?,
        to: end(reader, "to")?,
        paths,
        carrier,
        congestion: congestion(reader, otherwise)?,
        demand,
        start: reader.time("start")?.unwrap_or_default(),
        start_jitter: reader.time("start_jitter")?.unwrap_or_default(),
        stop: reader.time("stop")?,
    };
    if matches!((&one.from, &one.to), (NodeChoice::Node(a), NodeChoice::Node(b)) if a == b) {
        return reader.wrong("to", "expected another node than `from`");
    }
    if one.stop.is_some_and(|stop| stop <= one.start) {
        return reader.wrong("stop", "expected a time after `start`");
    }
    if !present {
        return Ok(Vec::new());
    }
    Ok(match count {
        None => vec![one],
        Some(count) => (1..=count).map(|number| numbered(&one, number)).collect(),
    })
}

/// Name and group. A transfer is a group by itself unless it names one; then it may be called as
/// the group's copies are.
fn names(reader: &Reader<'_>) -> Result<(String, String), SpannedError> {
    if !reader.has("group") {
        let name = name(reader, "name")?;
        return Ok((name.clone(), name));
    }
    let group = name(reader, "group")?;
    let told = reader.text("name")?.unwrap_or_default();
    let number = told.strip_prefix(&group).and_then(|rest| rest.strip_prefix('.'));
    let copy = number.is_some_and(|number| number.parse::<u32>().is_ok());
    Ok((if copy { told } else { name(reader, "name")? }, group))
}

/// The number behind the sign `sign`, where `text` begins with both, and the rest of `text`.
fn operand(text: &str, sign: char) -> Option<(u32, &str)> {
    let rest = text.strip_prefix(sign)?;
    let digits = rest.find(|it: char| !it.is_ascii_digit()).unwrap_or(rest.len());
    Some((rest[..digits].parse().ok()?, &rest[digits..]))
}

/// The copy of this number. `#` in the names of its nodes is the number, `#+10` ten more than it,
/// `#*4` four times it, and `#*4-3` three less than that.
fn numbered(one: &Transfer, number: u32) -> Transfer {
    let own = |name: &str| {
        let mut parts = name.split('#');
        let first = parts.next().unwrap_or_default().to_owned();
        parts.fold(first, |before, part| {
            let (times, rest) = operand(part, '*').unwrap_or((1, part));
            let number = number.saturating_mul(times);
            let (less, rest) = if times > 1 { operand(rest, '-') } else { None }.unwrap_or((0, rest));
            let (more, rest) = operand(rest, '+').unwrap_or((0, rest));
            let number = number.saturating_sub(less).saturating_add(more);
            format!("{before}{number}{rest}")
        })
    };
    let at = |end: &NodeChoice| match end {
        NodeChoice::Node(node) => NodeChoice::Node(own(node)),
        any @ NodeChoice::Any(_) => any.clone(),
    };
    let paths = one.paths.iter().map(|way| match way {
        PathChoice::Through(node) => PathChoice::Through(own(node)),
        way => way.clone(),
    });
    Transfer {
        name: format!("{}.{number}", one.name),
        from: at(&one.from),
        to: at(&one.to),
        paths: paths.collect(),
        ..one.clone()
    }
}
