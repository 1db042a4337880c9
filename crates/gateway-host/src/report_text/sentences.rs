//! Sentences of `byway gateway status`, and of a gateway at SIGUSR1 and at its end: a line of
//! figures for each part of a report.

use crate::port_list::with_ports;
use byway_gateway::report::{
    BundleReport, CacheReport, FlowReport, GatewayReport, GuestReport, OptionReport, PathReport, PeerReport,
    RelayReport, RuleReport,
};
use byway_transfer::units::Bytes;

pub(super) fn uptime(report: &GatewayReport) -> String {
    let observing = if report.observing { ", observing only" } else { "" };
    format!("up for {:.0} s, {} flows{observing}", report.uptime, report.flows)
}

pub(super) fn peer(peer: &PeerReport) -> String {
    let state = if peer.up { "up" } else { "down: flows take the plain route" };
    let trouble = peer.trouble.as_ref().map(|trouble| format!(" ({trouble})")).unwrap_or_default();
    let relays = if peer.relays { ", relays for this gateway" } else { "" };
    let own = match peer.bundles.len() {
        0 => String::new(),
        bundles => format!(" ({bundles} with a bundle of their own)"),
    };
    format!(
        "{}: {state}{trouble}{relays}; serves {}; {} flows{own}, {} carried, {} waiting, {} dropped",
        peer.name,
        served(peer),
        peer.flows,
        Bytes(peer.carried_bytes),
        Bytes(peer.waiting as u64),
        peer.dropped
    )
}

/// Returns the hosts that a peer serves, as far as it may, and the number of refused prefixes.
fn served(peer: &PeerReport) -> String {
    let known = if peer.serves.is_empty() { "no hosts yet".to_owned() } else { peer.serves.join(", ") };
    match peer.refused {
        0 => known,
        refused => {
            format!("{known} ({refused} prefixes that it announces are not within its `allowed` here)")
        }
    }
}

pub(super) fn path(path: &PathReport) -> String {
    let queueing = path.queueing.map(|delay| format!(", {:.1} ms queued", delay * 1e3)).unwrap_or_default();
    let rtt = path.srtt.map(|rtt| format!(", RTT {:.1} ms", rtt * 1e3)).unwrap_or_default();
    let why = path.why.as_ref().map(|why| format!(" ({why})")).unwrap_or_default();
    format!(
        "  path {} to {}: {}, window {}, {} in flight{rtt}{queueing}, {} sent in packets of up to {} B, {} lost{why}",
        path.path,
        path.route,
        path.state,
        Bytes(path.window),
        Bytes(path.in_flight),
        Bytes(path.sent_bytes),
        path.datagram,
        path.lost
    )
}

pub(super) fn guest(guest: &GuestReport) -> String {
    let up = if guest.up { "" } else { " (silent now)" };
    format!("guest {} is served at {}{}{up}", guest.name, guest.host, with_ports(&guest.ports))
}

pub(super) fn relay(relay: &RelayReport) -> String {
    let [bytes, today] = [relay.bytes, relay.today_bytes].map(Bytes);
    format!("relays for peers at {}: {bytes} carried, {today} today", relay.listen.join(", "))
}

/// Returns a line about the flows of a rule.
pub(super) fn rule(rule: &RuleReport, observing: bool) -> String {
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

/// Returns a line about a flow's bytes, and about its own bundle.
pub(super) fn flow(flow: &FlowReport, own: Option<&BundleReport>) -> String {
    let rule = flow.rule.map(|rule| format!(", rule {rule}")).unwrap_or_default();
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
        0 => "; its bundle has no path yet".to_owned(),
        paths => format!("; a bundle of its own: {paths} paths, window {window}, {in_flight} in flight"),
    }
}

pub(super) fn option(option: &OptionReport) -> String {
    format!("{} = {} ({})", option.name, option.value, option.help)
}

/// `median` is in seconds.
pub(super) fn losses_found(count: usize, median: f64) -> String {
    format!("the last {count} losses were found {:.0} ms after they were sent (median)", median * 1e3)
}

pub(super) fn cache(cache: CacheReport) -> String {
    let CacheReport { bytes, unkept, resent, suppressed } = cache;
    format!(
        "cache: {} kept, {resent} packets sent again, {suppressed} duplicate ACKs suppressed, {unkept} packets not kept for lack of room",
        Bytes(bytes as u64)
    )
}

/// Returns a line about packets that were put in order before a host got them.
pub(super) fn reordering(report: &GatewayReport) -> String {
    format!(
        "{:.1} % of packets waited less than 20 ms to be put in order, {:.2} % in vain",
        report.waited_under_20ms * 100.0,
        report.waited_in_vain * 100.0
    )
}
