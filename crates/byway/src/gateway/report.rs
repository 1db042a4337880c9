//! What a gateway is doing, for a person.

use crate::units::Bytes;
use byway_gateway::report::{
    BundleReport, CacheReport, FlowReport, GatewayReport, OptionReport, PathReport, PeerReport, RuleReport,
};
use std::fmt;

/// A report in words, without a line feed at its end.
pub struct ReportText<'a>(pub &'a GatewayReport);

/// Whom a peer serves, as far as it may.
fn served(peer: &PeerReport) -> String {
    let known = if peer.serves.is_empty() { "nobody yet".to_owned() } else { peer.serves.join(", ") };
    match peer.refused {
        0 => known,
        refused => {
            format!("{known} ({refused} prefixes that it announces are not within its `allowed` here)")
        }
    }
}

/// What became of the flows of a rule.
fn decided(rule: &RuleReport, observing: bool) -> String {
    let RuleReport { flows, bytes, .. } = rule;
    let name = rule.name.as_ref().map(|name| format!(" ({name})")).unwrap_or_default();
    let who = rule.rule.map_or_else(|| "decided by peers".to_owned(), |rule| format!("rule {rule}{name}"));
    let does = match (rule.action.as_str(), observing) {
        ("pass", _) => return format!("{who}: {flows} flows passed"),
        (_, true) => "would be carried",
        (_, false) => "carried",
    };
    format!("{who}: {flows} flows {does}, {}", Bytes(*bytes))
}

/// What a flow carried, and the bundle that is its own.
fn flow(flow: &FlowReport, peers: &[PeerReport]) -> String {
    let rule = flow.rule.map(|rule| format!(", rule {rule}")).unwrap_or_default();
    let mut bundles = peers.iter().flat_map(|peer| &peer.bundles);
    let own = bundles.find(|bundle| (&bundle.from, &bundle.to) == (&flow.from, &flow.to));
    format!(
        "  {} > {}{rule}, {}: {} sent, {} received{}",
        flow.from,
        flow.to,
        flow.peer,
        Bytes(flow.sent_bytes),
        Bytes(flow.received_bytes),
        own.map(bundle).unwrap_or_default()
    )
}

fn bundle(bundle: &BundleReport) -> String {
    let sum = |of: fn(&PathReport) -> u64| Bytes(bundle.paths.iter().map(of).sum());
    let (window, in_flight) = (sum(|path| path.window), sum(|path| path.in_flight));
    match bundle.paths.len() {
        0 => "; its bundle is not there yet".to_owned(),
        paths => format!("; a bundle of its own: {paths} paths, window {window}, {in_flight} in flight"),
    }
}

/// The middle value, or the mean of the two in the middle.
fn median(values: &[f64]) -> Option<f64> {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let last = sorted.len().checked_sub(1)?;
    let (low, high) = (sorted.get(last / 2)?, sorted.get(last.div_ceil(2))?);
    Some(low * 0.5 + high * 0.5)
}

impl fmt::Display for ReportText<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self(report) = self;
        let observing = if report.observing { ", observing only" } else { "" };
        writeln!(f, "up for {:.0} s, {} flows{observing}", report.uptime, report.flows)?;
        for peer in &report.peers {
            let state = if peer.up { "up" } else { "down: flows take the plain route" };
            let trouble = peer.trouble.as_ref().map(|trouble| format!(" ({trouble})")).unwrap_or_default();
            let own = match peer.bundles.len() {
                0 => String::new(),
                bundles => format!(" ({bundles} with a bundle of their own)"),
            };
            writeln!(
                f,
                "{}: {state}{trouble}{}; serves {}; {} flows{own}, {} carried, {} waiting, {} dropped",
                peer.name,
                if peer.relays { ", relays for us" } else { "" },
                served(peer),
                peer.flows,
                Bytes(peer.carried_bytes),
                Bytes(peer.waiting as u64),
                peer.dropped
            )?;
            for path in &peer.paths {
                write!(
                    f,
                    "  path {} to {}: {}, window {}, {} in flight, RTT {:.1} ms",
                    path.path,
                    path.route,
                    path.state,
                    Bytes(path.window),
                    Bytes(path.in_flight),
                    path.srtt * 1e3
                )?;
                if let Some(queueing) = path.queueing {
                    write!(f, ", {:.1} ms queued", queueing * 1e3)?;
                }
                let sent = Bytes(path.sent_bytes);
                write!(f, ", {sent} sent in packets of up to {} B, {} lost", path.datagram, path.lost)?;
                match &path.why {
                    Some(why) => writeln!(f, " ({why})")?,
                    None => writeln!(f)?,
                }
            }
        }
        for guest in &report.guests {
            let ports = if guest.ports.is_empty() {
                String::new()
            } else {
                format!(", ports {}", guest.ports.join(", "))
            };
            let up = if guest.up { "" } else { " (not heard of now)" };
            writeln!(f, "guest {} is served at {}{ports}{up}", guest.name, guest.host)?;
        }
        if let Some(relay) = &report.relay {
            let [bytes, today] = [relay.bytes, relay.today_bytes].map(Bytes);
            writeln!(f, "relays for peers at {}: {bytes} carried, {today} today", relay.listen.join(", "))?;
        }
        for rule in &report.rules {
            writeln!(f, "{}", decided(rule, report.observing))?;
        }
        for flow in &report.largest {
            writeln!(f, "{}", self::flow(flow, &report.peers))?;
        }
        let told = report.counters.iter().filter(|(_, count)| **count > 0);
        let told: Vec<String> = told.map(|(name, count)| format!("{name} {count}")).collect();
        if !told.is_empty() {
            writeln!(f, "{}", told.join(", "))?;
        }
        for OptionReport { name, value, help, .. } in report.options.iter().filter(|option| !option.usual) {
            writeln!(f, "{name} = {value} ({help})")?;
        }
        if let Some(median) = median(&report.found_after) {
            let count = report.found_after.len();
            writeln!(
                f,
                "the last {count} losses were found {:.0} ms after they were sent (median)",
                median * 1e3
            )?;
        }
        if let Some(cache) = report.cache {
            let CacheReport { bytes, unkept, resent, suppressed } = cache;
            writeln!(
                f,
                "cache: {} kept, {resent} packets sent again, {suppressed} duplicate ACKs suppressed, {unkept} packets without room",
                Bytes(bytes as u64)
            )?;
        }
        write!(
            f,
            "{:.1} % of packets waited less than 20 ms to be put in order, {:.2} % in vain",
            report.waited_under_20ms * 100.0,
            report.waited_in_vain * 100.0
        )
    }
}
