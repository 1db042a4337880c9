//! The network, and what changes.

use super::values::{Keys, list, number, rate, size, text, time};
use crate::setup::{
    Change, Changed, Discipline, EndChange, EndChoice, LinkSetup, LinkSpec, QueueLimit, UdpFilter,
};
use std::collections::BTreeMap;

pub(super) fn topology(name: &str, parameters: &BTreeMap<String, f64>) -> Keys {
    let mut keys = Keys::default();
    keys.set("name", text(name));
    parameters.iter().for_each(|(parameter, value)| keys.set(parameter, number(*value)));
    keys
}

/// The keys of a section about one direction, or about no direction.
struct Direction<'a> {
    /// The name of the key with both nodes, and the nodes. `None`: the section has no direction.
    ends: Option<(&'static str, &'a str, &'a str)>,
    /// The keys before the nodes.
    first: Keys,
    rest: Keys,
}

/// Sections for `all`. Two opposite directions with equal keys share a section.
fn joined(all: Vec<Direction<'_>>) -> Vec<Keys> {
    let mut sections = Vec::new();
    let mut all = all.into_iter().peekable();
    while let Some(one) = all.next() {
        let mut keys = one.first;
        if let Some((key, from, to)) = one.ends {
            let back = all.next_if(|next| {
                next.ends == Some((key, to, from)) && next.first == keys && next.rest == one.rest
            });
            keys.set(key, list([text(from), text(to)]));
            keys.set_if(back.is_none(), "one_way", || "true".to_owned());
        }
        sections.push(one.rest.behind(keys));
    }
    sections
}

pub(super) fn links(links: &[LinkSetup]) -> Vec<Keys> {
    joined(links.iter().map(link).collect())
}

fn link(link: &LinkSetup) -> Direction<'_> {
    Direction {
        ends: Some(("between", &link.from, &link.to)),
        first: Keys::default(),
        rest: line(&link.spec),
    }
}

fn line(spec: &LinkSpec) -> Keys {
    let mut keys = Keys::default();
    keys.maybe("rate", spec.rate, rate);
    keys.maybe("delay", spec.delay, time);
    keys.maybe("queue", spec.queue, |queue| match queue {
        QueueLimit::Packets(packets) => text(&format!("{packets} packets")),
        QueueLimit::Bytes(bytes) => size(bytes),
        QueueLimit::Time(long) => time(long),
    });
    keys.maybe("loss", spec.loss, number);
    keys.maybe("jitter", spec.jitter, time);
    keys.maybe("stalls", spec.stalls, |stalls| {
        let mut times = Keys::default();
        times.set("period", time(stalls.period));
        times.set("min", time(stalls.min));
        times.set("max", time(stalls.max));
        times.table()
    });
    keys.maybe("corruption", spec.corruption, number);
    keys.maybe("duplication", spec.duplication, number);
    keys.maybe("reordering", spec.reordering, |(share, delay)| {
        let mut held = Keys::default();
        held.set("share", number(share));
        held.set("delay", time(delay));
        held.table()
    });
    keys.maybe("discipline", spec.discipline, discipline);
    keys.maybe("burst_loss", spec.burst_loss, |(share, mean)| {
        let mut burst = Keys::default();
        burst.set("rate", number(share));
        burst.set("mean", number(mean));
        burst.table()
    });
    keys.maybe("mtu", spec.mtu, |bytes| size(bytes as u64));
    keys.maybe("mark_above", spec.mark_above, |packets| text(&format!("{packets} packets")));
    keys.set_if(spec.bleaches, "bleaches", || "true".to_owned());
    keys.set_if(!spec.partitions.is_empty(), "partition", || {
        list(spec.partitions.iter().map(|&(from, until)| list([time(from), time(until)])))
    });
    keys
}

fn discipline(discipline: Discipline) -> String {
    let mut keys = Keys::default();
    match discipline {
        Discipline::Red { min, max, max_p, weight, gentle } => {
            keys.set("kind", text("red"));
            for (key, value) in [("min", min), ("max", max), ("max_p", max_p), ("weight", weight)] {
                keys.set(key, number(value));
            }
            keys.set("gentle", gentle.to_string());
        }
        Discipline::CoDel { target, interval } => {
            keys.set("kind", text("codel"));
            keys.set("target", time(target));
            keys.set("interval", time(interval));
        }
        Discipline::FqCodel { target, interval, quantum, queues } => {
            keys.set("kind", text("fq-codel"));
            keys.set("target", time(target));
            keys.set("interval", time(interval));
            keys.set("quantum", quantum.to_string());
            keys.set("queues", queues.to_string());
        }
    }
    keys.table()
}

pub(super) fn changes(changes: &[Change]) -> Vec<Keys> {
    joined(changes.iter().map(change).collect())
}

fn change(change: &Change) -> Direction<'_> {
    let (mut first, mut rest) = (Keys::default(), Keys::default());
    first.set("at", time(change.at));
    let mut ends = None;
    match &change.what {
        Changed::Link { from, to, rate: bits, delay, loss, up, mtu } => {
            ends = Some(("link", from.as_str(), to.as_str()));
            rest.maybe("rate", *bits, rate);
            rest.maybe("delay", *delay, time);
            rest.maybe("loss", *loss, number);
            rest.maybe("mtu", *mtu, |bytes| size(bytes as u64));
            rest.maybe("up", *up, |up| up.to_string());
        }
        Changed::Udp { from, to, filter } => {
            ends = Some(("link", from.as_str(), to.as_str()));
            rest.set("udp", filter.map_or_else(|| text("passes"), udp));
        }
        Changed::End { transfer, end, what } => {
            rest.set("transfer", text(transfer));
            let end = match end {
                EndChoice::Sender => "sender",
                EndChoice::Receiver => "receiver",
            };
            rest.set("end", text(end));
            happens(*what, &mut rest);
        }
        Changed::Registry { up } => rest.set("registry", up.to_string()),
        Changed::Relay { node, up } => {
            rest.set("node", text(node));
            rest.set("up", up.to_string());
        }
    }
    Direction { ends, first, rest }
}

fn udp(filter: UdpFilter) -> String {
    let mut keys = Keys::default();
    keys.set("share", number(filter.share));
    keys.set("above", size(filter.above as u64));
    keys.table()
}

/// Writes a change at an end of an exchange.
fn happens(what: EndChange, keys: &mut Keys) {
    let word = match what {
        EndChange::Restart => "restart",
        EndChange::Freeze(true) => "freeze",
        EndChange::Freeze(false) => "thaw",
        EndChange::Rebind => "rebind",
        EndChange::NatFilter(true) => "nat-filters",
        EndChange::NatFilter(false) => "nat-opens",
        EndChange::Move => "move",
        EndChange::Reads(true) => "reads",
        EndChange::Reads(false) => "stops-reading",
        EndChange::Reset => "reset",
        EndChange::Socket { up: false, .. } => "socket-down",
        EndChange::Socket { up: true, .. } => "socket-up",
    };
    keys.set("what", text(word));
    if let EndChange::Socket { number, .. } = what {
        keys.set("socket", number.to_string());
    }
}
