//! The report of a gateway, for a person.

mod sentences;

use byway_gateway::report::{BundleReport, FlowReport, GatewayReport, PeerReport};
use std::fmt;

/// A report in words, without a line feed at its end.
pub struct ReportText<'a>(pub &'a GatewayReport);

/// The bundle that is a flow's own.
fn own_bundle<'a>(flow: &FlowReport, peers: &'a [PeerReport]) -> Option<&'a BundleReport> {
    let mut bundles = peers.iter().flat_map(|peer| &peer.bundles);
    bundles.find(|bundle| (&bundle.from, &bundle.to) == (&flow.from, &flow.to))
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
        writeln!(f, "{}", sentences::uptime(report))?;
        for peer in &report.peers {
            writeln!(f, "{}", sentences::peer(peer))?;
            peer.paths.iter().try_for_each(|path| writeln!(f, "{}", sentences::path(path)))?;
        }
        report.guests.iter().try_for_each(|guest| writeln!(f, "{}", sentences::guest(guest)))?;
        if let Some(relay) = &report.relay {
            writeln!(f, "{}", sentences::relay(relay))?;
        }
        report
            .rules
            .iter()
            .try_for_each(|rule| writeln!(f, "{}", sentences::rule(rule, report.observing)))?;
        for flow in &report.largest {
            writeln!(f, "{}", sentences::flow(flow, own_bundle(flow, &report.peers)))?;
        }
        let told = report.counters.iter().filter(|(_, count)| **count > 0);
        let told: Vec<String> = told.map(|(name, count)| format!("{name} {count}")).collect();
        if !told.is_empty() {
            writeln!(f, "{}", told.join(", "))?;
        }
        for option in report.options.iter().filter(|option| !option.usual) {
            writeln!(f, "{}", sentences::option(option))?;
        }
        if let Some(median) = median(&report.found_after) {
            writeln!(f, "{}", sentences::losses_found(report.found_after.len(), median))?;
        }
        if let Some(cache) = report.cache {
            writeln!(f, "{}", sentences::cache(cache))?;
        }
        f.write_str(&sentences::reordering(report))
    }
}
