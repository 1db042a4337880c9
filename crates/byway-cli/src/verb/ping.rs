//! `byway ping`: is the receiver there, over which paths, and how far away.

use super::transfer_events::looked_up;
use crate::args::Global;
use crate::args::verbs::Ping;
use crate::exit::Exit;
use crate::output::{Align, Event, Outcome, Output, PingPath, Table};
use anyhow::Result;
use byway_transfer::registry::FindPlan;
use byway_transfer::{PingPlan, PingSummary, looked_up_destinations, ping, secret_words, sockets};
use byway_wire::Duration;
use byway_wire::relay::Word;

/// Pings, and prints a line per path.
pub(super) fn run(global: &Global, arguments: &Ping, output: &mut Output) -> Result<Exit> {
    let ticket = global.config.ticket(&arguments.ticket)?;
    let relays: Vec<Word> = secret_words::values(&arguments.relay, "--relay")?;
    let registry = arguments.registry.as_ref().map(|word| word.value()).transpose()?;
    let state = global.state()?;
    let destinations = looked_up_destinations(&ticket, &relays, registry.as_ref());
    let plan = PingPlan {
        identity: state.identity()?,
        sockets: sockets::sending(&[], &destinations)?,
        ticket,
        relays,
        registry: registry.map(|word| FindPlan::new(word, Some(state.registries()))),
        tcp: !arguments.no_tcp,
        rounds: arguments.count,
    };
    let pings = ping(plan)?;
    pings.names.into_iter().for_each(|step| looked_up(step, output));
    for trouble in pings.troubles {
        output.emit(&Event::Warning { message: trouble });
    }
    if let Some((error, tried)) = pings.unreached {
        return Ok(super::transfer_events::unreached("ping", &error, &tried, output));
    }
    let paths: Vec<PingPath> = pings.routes.iter().map(summary).collect();
    let mut table = Table::new([
        ("path", Align::Left),
        ("answers", Align::Right),
        ("smallest RTT", Align::Right),
        ("mean RTT", Align::Right),
    ]);
    for path in &paths {
        let shown = |rtt: Option<f64>| rtt.map_or_else(|| String::from("-"), |rtt| format!("{rtt:.2} ms"));
        let answers = format!("{} of {}", path.received, path.sent);
        table.row([path.route.clone(), answers, shown(path.min_rtt_ms), shown(path.mean_rtt_ms)]);
    }
    output.answer(&table.to_string())?;
    output.emit(&Event::result("ping", Exit::Ok, Outcome::Ping { paths }));
    Ok(Exit::Ok)
}

fn summary(pinged: &PingSummary) -> PingPath {
    let count = u32::try_from(pinged.rtts.len()).unwrap_or(u32::MAX);
    let mean = pinged.rtts.iter().sum::<Duration>().checked_div(count);
    let millis = |rtt: Duration| rtt.as_secs_f64() * 1e3;
    PingPath {
        route: pinged.name.clone(),
        sent: pinged.sent,
        received: count,
        min_rtt_ms: pinged.rtts.iter().min().copied().map(millis),
        mean_rtt_ms: mean.map(millis),
    }
}
