//! Measures of gateways.

use super::undefined_value::Undefined;
use crate::record::{GatewayRecord, Record};
use crate::spelling;
use crate::stats;

/// The record of the gateways with this name.
pub(super) fn named<'r>(record: &'r Record, name: &str) -> Result<&'r GatewayRecord, Undefined> {
    record.gateways.iter().find(|gateways| gateways.name == name).ok_or_else(|| {
        let names = record.gateways.iter().map(|gateways| gateways.name.as_str());
        Undefined::wrong(spelling::unknown("pair of gateways", name, names))
    })
}

fn carried(gateways: &GatewayRecord) -> Result<f64, Undefined> {
    match gateways.released {
        0 => Err(Undefined::no_data(format!("the gateways `{}` carried nothing", gateways.name))),
        released => Ok(released as f64),
    }
}

/// The share of packets that waited at most `millis` milliseconds to be put in order.
pub(super) fn waits(gateways: &GatewayRecord, millis: f64) -> Result<f64, Undefined> {
    let all = carried(gateways)?;
    if !gateways.waits.iter().any(|(bound, _)| *bound as f64 == millis) {
        let bounds: Vec<String> = gateways.waits.iter().map(|(bound, _)| bound.to_string()).collect();
        return Err(Undefined::wrong(format!("of waits is known only: {} ms", bounds.join(", "))));
    }
    let within = gateways.waits.iter().filter(|(bound, _)| *bound as f64 <= millis);
    Ok(within.map(|(_, count)| *count as f64).sum::<f64>() / all)
}

/// Returns the share of packets that waited until their timer expired.
pub(super) fn in_vain(gateways: &GatewayRecord) -> Result<f64, Undefined> {
    Ok(gateways.timed_out as f64 / carried(gateways)?)
}

/// Packets that the entry had no room for.
pub(super) const fn refused(gateways: &GatewayRecord) -> f64 {
    gateways.dropped as f64
}

/// Returns a percentile of the time, in milliseconds, from sending a packet until the entry found
/// it lost.
pub(super) fn found(gateways: &GatewayRecord, percent: f64) -> Result<f64, Undefined> {
    if gateways.found.is_empty() {
        return Err(Undefined::no_data(
            "the gateways found nothing lost, or left that to their session (`loss`, `cache`)",
        ));
    }
    let after: Vec<f64> = gateways.found.iter().map(|&after| f64::from(after)).collect();
    stats::quantile(&after, percent / 100.0)
        .ok_or_else(|| Undefined::wrong(format!("percentile {percent}: expected 0 to 100")))
}
