//! `byway limit`: other bandwidth limits for what runs on this host.

use super::status::{ANSWER_TIMEOUT, directories, warn_if_untold};
use crate::args::status::Limit;
use crate::exit::{Exit, Failure};
use crate::messages;
use crate::output::{Event, Outcome, Output, printable};
use crate::units::{Rate, RateLimits};
use anyhow::Result;
use byway_net::unix_millis;
use byway_transfer::host_status::{Request, ask_all};
use serde_json::Value;

/// Asks every process for the limits, and says which obey.
pub(super) fn run(arguments: &Limit, output: &mut Output) -> Result<Exit> {
    let (peer, limits) = arguments.read().map_err(|error| Failure::new(Exit::Usage, error.to_string()))?;
    let void_after = Some(unix_millis().saturating_add(ANSWER_TIMEOUT.as_millis() as u64));
    let peer = peer.map(String::from);
    let rate = |bytes: Option<u64>| bytes.map_or_else(|| "off".into(), |it| Rate::of(it, 1.0).to_string());
    let (request, shown) = match limits {
        None => (Request::OwnLimit { peer, void_after }, messages::status::OWN_LIMIT.into()),
        Some(RateLimits { up, down }) => {
            let shown = if up == down { rate(up) } else { format!("{}:{}", rate(up), rate(down)) };
            (Request::Limit { peer, up, down, void_after }, shown)
        }
    };
    warn_if_untold(output);
    let mut obeyed = 0;
    for answer in ask_all(&directories(), &request, ANSWER_TIMEOUT) {
        let Ok(reply) = answer.reply else {
            output.complain(&printable(&format!("{}:{}", answer.name, messages::status::NO_ANSWER)));
            continue;
        };
        if reply.get("limited").and_then(Value::as_bool) != Some(true) {
            continue;
        }
        obeyed += 1;
        let text = |name: &str| reply.get(name).and_then(Value::as_str);
        let pid = reply.get("pid").and_then(Value::as_u64).unwrap_or_default();
        let verb = text("verb").unwrap_or_default();
        output.answer(&printable(&messages::status::limited(verb, text("peer"), pid, &shown)))?;
        output.emit(&Event::told("limited", &reply));
    }
    if obeyed == 0 {
        return Err(Failure::new(Exit::NotFound, messages::status::NOTHING_LIMITED).into());
    }
    output.emit(&Event::result("limit", Exit::Ok, Outcome::Nothing {}));
    Ok(Exit::Ok)
}
