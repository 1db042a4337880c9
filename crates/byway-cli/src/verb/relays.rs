//! `byway relays`: lists the relays that a registry offers.

use crate::args::Global;
use crate::args::verbs::Relays;
use crate::exit::{Exit, Failure};
use crate::output::{Align, Event, Fields, Outcome, Output, Table};
use crate::units::{Bytes, Rate};
use anyhow::Result;
use byway_registry::message::Listed;
use serde::Serialize;

/// A relay that a registry offers.
#[derive(Serialize)]
struct OfferedRelay {
    relay: String,
    addresses: Vec<String>,
    carriers: &'static [&'static str],
    operator: String,
    region: String,
    load_bps: u64,
    rate: Option<u64>,
    quota: Option<u64>,
    seen_seconds_ago: u16,
}

impl OfferedRelay {
    fn of(listed: &Listed) -> Self {
        let terms = listed.word.terms();
        Self {
            relay: listed.relay.to_string(),
            addresses: listed.word.relays().iter().map(ToString::to_string).collect(),
            carriers: listed.carriers(),
            operator: listed.operator.to_string(),
            region: listed.region.to_string(),
            load_bps: listed.load.saturating_mul(8),
            rate: terms.rate.bytes_per_second(),
            quota: terms.quota.bytes_per_day(),
            seen_seconds_ago: listed.seen,
        }
    }
}

/// Asks, and shows the answer.
pub(super) fn run(global: &Global, arguments: &Relays, output: &mut Output) -> Result<Exit> {
    let identity = global.state()?.identity()?;
    let list = byway_transfer::registry::ask(&identity, &arguments.registry.value()?)?
        .map_err(|error| Failure::new(Exit::of_registry(&error), error.to_string()))?;
    let columns = ["address", "over", "operator", "region"].map(|heading| (heading, Align::Left));
    let numbers = ["load", "per day", "seen"].map(|heading| (heading, Align::Right));
    let mut table = Table::new(columns.into_iter().chain(numbers));
    let relays: Vec<OfferedRelay> = list.relays.iter().map(OfferedRelay::of).collect();
    for relay in &relays {
        let quota = relay.quota.map_or_else(|| "any".into(), |bytes| Bytes(bytes).to_string());
        let (load, seen) =
            (Rate(relay.load_bps as f64).to_string(), format!("{} s ago", relay.seen_seconds_ago));
        let (addresses, carriers) = (relay.addresses.join(" "), relay.carriers.join(" "));
        table.row([addresses, carriers, relay.operator.clone(), relay.region.clone(), load, quota, seen]);
    }
    output.answer_table(&table)?;
    output.emit(&Event::result("relays", Exit::Ok, Outcome::Told(Fields::one("relays", &relays))));
    Ok(Exit::Ok)
}
