//! A rule as a sentence.

use super::classification::{Action, Direction, Rule};
use alloc::format;
use alloc::string::{String, ToString};
use core::fmt::Display;

/// The rule at `place` (from 0) of a table in one sentence.
#[must_use]
pub fn explain(place: usize, rule: &Rule) -> String {
    let name = rule.name.as_ref().map_or_else(String::new, |name| format!(" ({name})"));
    let opened = match rule.direction {
        Direction::Outbound => "TCP flows opened by hosts behind this gateway",
        Direction::Inbound => "TCP flows opened by hosts behind other gateways",
        Direction::Both => "TCP flows opened on either side",
    };
    let from = side("from", &rule.from, &rule.from_ports);
    let to = side("to", &rule.to, &rule.to_ports);
    let marked = match rule.dscp.as_slice() {
        [] => String::new(),
        list => format!(", marked DSCP {}", one_of(list)),
    };
    let fate = match rule.action {
        Action::Background => "are carried as background",
        Action::Pass => "pass untouched",
    };
    let end = if from.is_empty() && to.is_empty() && marked.is_empty() { "" } else { "," };
    format!("Rule {}{name}: {opened}{from}{to}{marked}{end} {fate}.", place + 1)
}

fn side(word: &str, addresses: &[impl Display], ports: &[impl Display]) -> String {
    let ports = match ports {
        [] => String::new(),
        list => format!("port {}", one_of(list)),
    };
    match (addresses, ports.as_str()) {
        ([], "") => String::new(),
        ([], ports) => format!(", {word} {ports}"),
        (list, "") => format!(", {word} {}", one_of(list)),
        (list, ports) => format!(", {word} {} {ports}", one_of(list)),
    }
}

fn one_of(list: &[impl Display]) -> String {
    match list {
        [] => String::new(),
        [one] => one.to_string(),
        [first @ .., last] => {
            let mut text = String::new();
            for item in first {
                if !text.is_empty() {
                    text.push_str(", ");
                }
                text.push_str(&item.to_string());
            }
            format!("{text} or {last}")
        }
    }
}
