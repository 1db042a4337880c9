//! `byway limit`: other bandwidth limits for what runs on this host.

use super::status::{ANSWER_TIMEOUT, directories};
use crate::args::status::Limit;
use crate::exit::{Exit, Failure};
use crate::messages;
use crate::output::{Event, Outcome, Output};
use anyhow::Result;
use byway_transfer::host_status::{Request, ask_all};
use serde_json::Value;

/// Asks every process for the limits, and says which obey.
pub(super) fn run(arguments: &Limit, output: &mut Output) -> Result<Exit> {
    let (peer, limits) = arguments.read().map_err(|error| Failure::new(Exit::Usage, error.to_string()))?;
    let request = Request::Limit { peer: peer.map(String::from), up: limits.up, down: limits.down };
    let rate = |bytes: Option<u64>| {
        bytes.map_or_else(|| "off".into(), |it| format!("{}/s", crate::units::Bytes(it)))
    };
    let shown = match limits.up == limits.down {
        true => rate(limits.up),
        false => format!("{}:{}", rate(limits.up), rate(limits.down)),
    };
    let mut obeyed = 0;
    for answer in ask_all(&directories(), &request, ANSWER_TIMEOUT) {
        let Ok(reply) = answer.reply else {
            output.complain(&format!("{}:{}", answer.name, messages::status::NO_ANSWER));
            continue;
        };
        if reply.get("limited").and_then(Value::as_bool) != Some(true) {
            continue;
        }
        obeyed += 1;
        let text = |name: &str| reply.get(name).and_then(Value::as_str);
        let pid = reply.get("pid").and_then(Value::as_u64).unwrap_or_default();
        output.answer(&messages::status::limited(
            text("verb").unwrap_or_default(),
            text("peer"),
            pid,
            &shown,
        ))?;
        output.emit(&Event::told("limited", &reply));
    }
    if obeyed == 0 {
        return Err(Failure::new(Exit::NotFound, messages::status::NOTHING_LIMITED).into());
    }
    output.emit(&Event::result("limit", Exit::Ok, Outcome::Nothing {}));
    Ok(Exit::Ok)
}
