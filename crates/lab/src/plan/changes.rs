//! `[[change]]`: what changes during the run, in the network and at its hosts.

use super::shared_keys::{mtu, pair, when};
use super::table_reader::{Reader, SpannedError};
use super::units::QuantityKind;
use crate::setup::{Carrier, Change, Changed, EndChange, EndChoice, RegistrySetup, Transfer, UdpFilter};

/// The most bytes of a UDP payload.
const MAX_UDP_PAYLOAD_LEN: f64 = 65_535.0;
/// The changes at an end of an exchange, as a plan names them.
const END_CHANGES: &str = "restart, freeze, thaw, rebind, nat-filters, nat-opens, move, reads, stops-reading, reset, socket-down or socket-up";

/// Reads all changes, in order of time. They may name `transfers` and the hosts of `registry`.
pub(super) fn all(
    reader: &Reader<'_>,
    transfers: &[Transfer],
    registry: Option<&RegistrySetup>,
) -> Result<Vec<Change>, SpannedError> {
    let all = reader.each("change", |reader| {
        let present = when(reader)?;
        let at = reader.needed("at", QuantityKind::Time.expected(), reader.time("at")?)?;
        let changed = change(reader, transfers, registry, present)?;
        Ok(changed.into_iter().filter(|_| present).map(|what| Change { at, what }).collect::<Vec<_>>())
    })?;
    let mut all: Vec<Change> = all.into_iter().flatten().collect();
    all.sort_by_key(|change| change.at);
    Ok(all)
}

/// Reads one `[[change]]`. If this variant leaves it out (`present` is false), the things that it
/// names may be missing too.
fn change(
    reader: &Reader<'_>,
    transfers: &[Transfer],
    registry: Option<&RegistrySetup>,
    present: bool,
) -> Result<Vec<Changed>, SpannedError> {
    let link = pair(reader, "link")?;
    let changes = of_link(reader, link.as_ref())?;
    let transfer = reader.text("transfer")?;
    let end = of_end(reader, transfer.as_deref())?;
    let node = reader.text("node")?;
    let up = reader.truth("up")?;
    let running = reader.truth("registry")?;
    match (link, node, transfer, running) {
        (Some(_), None, None, None) if !changes.is_empty() => Ok(changes),
        (None, Some(node), None, None) => match up {
            Some(up) => Ok(vec![Changed::Relay { node, up }]),
            None => reader.wrong("node", "expected `up` beside it, true or false"),
        },
        (None, None, Some(name), None) => {
            let known = transfers.iter().find(|transfer| transfer.name == name);
            if present && !known.is_some_and(|known| matches!(known.carrier, Carrier::Exchange(_))) {
                return reader.wrong("transfer", format!("there is no exchange called {name:?}"));
            }
            Ok(end.into_iter().collect())
        }
        (None, None, None, Some(up)) => {
            if present && registry.is_none() {
                return reader.wrong("registry", "there is no [registry] that could change");
            }
            Ok(vec![Changed::Registry { up }])
        }
        _ => reader.wrong(
            "at",
            "expected `link` with a new rate, delay, loss, mtu, up or udp, `node` with up, \
             `transfer` with end and what, or `registry`",
        ),
    }
}

/// Reads the changes of a link, in one direction or both.
fn of_link(reader: &Reader<'_>, link: Option<&(String, String)>) -> Result<Vec<Changed>, SpannedError> {
    let one_way = reader.truth("one_way")?.unwrap_or(false);
    let (rate, delay, loss, up) =
        (reader.rate("rate")?, reader.time("delay")?, reader.share("loss")?, reader.truth("up")?);
    let mtu = mtu(reader)?;
    let udp = udp(reader)?;
    let Some((a, b)) = link else { return Ok(Vec::new()) };
    let pipe = rate.is_some() || delay.is_some() || loss.is_some() || up.is_some() || mtu.is_some();
    let mut changes = Vec::new();
    for (from, to) in [(a, b), (b, a)].into_iter().take(if one_way { 1 } else { 2 }) {
        let ends = || (from.clone(), to.clone());
        if pipe {
            let (from, to) = ends();
            changes.push(Changed::Link { from, to, rate, delay, loss, up, mtu });
        }
        if let Some(filter) = udp {
            let (from, to) = ends();
            changes.push(Changed::Udp { from, to, filter });
        }
    }
    Ok(changes)
}

/// Reads `udp`: `"passes"`, or a filter. The outer `None`: the key is missing.
fn udp(reader: &Reader<'_>) -> Result<Option<Option<UdpFilter>>, SpannedError> {
    if reader.is_text("udp")? {
        return match reader.text("udp")?.as_deref() {
            Some("passes") => Ok(Some(None)),
            _ => {
                reader.wrong("udp", "expected \"passes\", or a table such as { share = 1, above = \"0 B\" }")
            }
        };
    }
    let filter = reader.table("udp", |udp| {
        let above = match udp.quantity("above", &[QuantityKind::Size])? {
            None => 0,
            Some((_, bytes)) if (0.0..=MAX_UDP_PAYLOAD_LEN).contains(&bytes) => libm::round(bytes) as usize,
            Some(_) => return udp.wrong("above", "expected a payload of 0 B to 65535 B"),
        };
        Ok(UdpFilter { share: udp.share("share")?.unwrap_or(1.0), above })
    })?;
    Ok(filter.map(Some))
}

/// Reads a change at an end of `transfer`. `None`: the change names no end.
fn of_end(reader: &Reader<'_>, transfer: Option<&str>) -> Result<Option<Changed>, SpannedError> {
    let (end, what) = (reader.text("end")?, reader.text("what")?);
    let socket = reader.count("socket", u32::from(u16::MAX))?;
    let Some(transfer) = transfer else {
        return match [("end", end.is_some()), ("what", what.is_some()), ("socket", socket.is_some())]
            .into_iter()
            .find(|(_, there)| *there)
        {
            Some((key, _)) => reader.wrong(key, "expected `transfer` beside it, the name of an exchange"),
            None => Ok(None),
        };
    };
    let end = match reader.needed("end", "\"sender\" or \"receiver\"", end)?.as_str() {
        "sender" => EndChoice::Sender,
        "receiver" => EndChoice::Receiver,
        other => return reader.wrong("end", format!("expected \"sender\" or \"receiver\", found {other:?}")),
    };
    let number = socket.unwrap_or_default() as u16;
    let what = match reader.needed("what", END_CHANGES, what)?.as_str() {
        "restart" => EndChange::Restart,
        "freeze" => EndChange::Freeze(true),
        "thaw" => EndChange::Freeze(false),
        "rebind" => EndChange::Rebind,
        "nat-filters" => EndChange::NatFilter(true),
        "nat-opens" => EndChange::NatFilter(false),
        "move" => EndChange::Move,
        "reads" => EndChange::Reads(true),
        "stops-reading" => EndChange::Reads(false),
        "reset" => EndChange::Reset,
        "socket-down" => EndChange::Socket { number, up: false },
        "socket-up" => EndChange::Socket { number, up: true },
        other => return reader.wrong("what", format!("expected {END_CHANGES}, found {other:?}")),
    };
    if socket.is_some() && !matches!(what, EndChange::Socket { .. }) {
        return reader.wrong("socket", "expected socket-down or socket-up beside it");
    }
    Ok(Some(Changed::End { transfer: transfer.to_owned(), end, what }))
}

/// Reads an attacker's actions against exchanges.
pub(super) fn attack(reader: &Reader<'_>) -> Result<crate::setup::Attack, SpannedError> {
    Ok(crate::setup::Attack {
        replayed: reader.share("replayed")?.unwrap_or_default(),
        forged: reader.share("forged")?.unwrap_or_default(),
    })
}
