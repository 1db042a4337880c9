//! The nftables table marks TCP packets, so that the kernel routes them to the gateway. They go
//! from this site's hosts to hosts that peers may serve. Their addresses and ports match a
//! `background` rule, which says that flows are carried. The gateway checks DSCP and `pass` rules.

use super::kernel_inputs::KernelInputs;
use super::marks::{Family, MARK_MASK, table};
use crate::rules::{Action, Direction, Rule, explain};
use crate::{Ports, Prefix};
use alloc::borrow::ToOwned as _;
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::fmt::{Display, Write as _};

/// The input of `nft -f -`. One transaction creates the table if there is none, deletes it, and
/// creates it again. So it works whether or not there was a table, and no packet finds the table
/// missing.
pub(super) fn ruleset(site: &KernelInputs<'_>) -> String {
    let KernelInputs { tun, mark, here, there, rules, .. } = site;
    let table = table(tun);
    let mut text = format!("table inet {table}\ndelete table inet {table}\ntable inet {table} {{\n");
    let mut jumps = String::new();
    let mut chains = String::new();
    for family in [Family::V4, Family::V6] {
        let (Some(here), Some(there)) = (set(here, family), set(there, family)) else { continue };
        let (ip, suffix) = (word(family), if family == Family::V4 { "4" } else { "6" });
        let matches: Vec<String> =
            rules.rules.iter().enumerate().flat_map(|rule| clauses(rule, family)).collect();
        if matches.is_empty() {
            continue;
        }
        let _ = writeln!(jumps, "        {ip} saddr {here} {ip} daddr {there} goto rules{suffix}");
        let _ = writeln!(chains, "    chain rules{suffix} {{");
        for line in matches {
            let _ = writeln!(chains, "        {line}");
        }
        let _ = writeln!(chains, "    }}");
    }
    let keep = !MARK_MASK;
    let _ = write!(
        text,
        "    chain take {{\n        counter meta mark set meta mark & {keep:#010x} | {mark:#010x}\n    }}\n{chains}    \
         chain prerouting {{\n        type filter hook prerouting priority mangle; policy accept;\n        \
         iifname \"{tun}\" accept\n        meta l4proto != tcp accept\n{jumps}    }}\n}}\n"
    );
    text
}

/// The nftables rules for one byway rule and one version of IP. They match packets that leave this
/// site. `rule.from` is for the host that opens a flow. If this host is at this site, it is the
/// packets' source. Otherwise it is their destination.
fn clauses((place, rule): (usize, &Rule), family: Family) -> Vec<String> {
    if rule.action != Action::Background {
        return Vec::new();
    }
    let (Some(from), Some(to)) = (addresses(&rule.from, family), addresses(&rule.to, family)) else {
        return Vec::new();
    };
    let (from_ports, to_ports) = (ports(&rule.from_ports), ports(&rule.to_ports));
    let ip = word(family);
    let clause = |source: &Option<String>,
                  source_ports: &Option<String>,
                  destination: &Option<String>,
                  destination_ports: &Option<String>| {
        let mut line = String::new();
        for (what, values) in [
            (format!("{ip} saddr"), source),
            (format!("{ip} daddr"), destination),
            ("tcp sport".to_owned(), source_ports),
            ("tcp dport".to_owned(), destination_ports),
        ] {
            if let Some(values) = values {
                let _ = write!(line, "{what} {values} ");
            }
        }
        line
    };
    let comment = comment(place, rule);
    let mut clauses = Vec::new();
    if rule.direction != Direction::Inbound {
        clauses.push(clause(&from, &from_ports, &to, &to_ports));
    }
    if rule.direction != Direction::Outbound {
        clauses.push(clause(&to, &to_ports, &from, &from_ports));
    }
    clauses.dedup();
    clauses.into_iter().map(|line| format!("{line}goto take{comment}")).collect()
}

/// The rule as a sentence, which `nft list ruleset` shows. A comment has at most 128 bytes.
fn comment(place: usize, rule: &Rule) -> String {
    let sentence: String = explain(place, rule)
        .chars()
        .filter(|c| c.is_ascii() && !c.is_ascii_control() && !"\"\\".contains(*c))
        .collect();
    let short = match sentence.char_indices().nth(120) {
        Some((end, _)) => format!("{}...", sentence.get(..end).unwrap_or_default()),
        None => sentence,
    };
    format!(" comment \"{short}\"")
}

const fn word(family: Family) -> &'static str {
    match family {
        Family::V4 => "ip",
        Family::V6 => "ip6",
    }
}

/// The prefixes of one IP version, as an nftables set. `None`: there are none.
fn set(prefixes: &[Prefix], family: Family) -> Option<String> {
    let own: Vec<Prefix> = prefixes.iter().copied().filter(|prefix| family.has(prefix)).collect();
    // One that another covers adds nothing.
    let mut kept: Vec<Prefix> = own
        .iter()
        .copied()
        .filter(|prefix| !own.iter().any(|other| other != prefix && other.covers(prefix)))
        .collect();
    kept.sort_unstable();
    kept.dedup();
    (!kept.is_empty()).then(|| braces(&kept))
}

/// The addresses of a rule. `Some(None)` means any, and `None` means none of this version of IP.
fn addresses(prefixes: &[Prefix], family: Family) -> Option<Option<String>> {
    if prefixes.is_empty() { Some(None) } else { set(prefixes, family).map(Some) }
}

/// The ports of a rule as an nftables set, with adjacent ranges merged. `None`: any port.
fn ports(list: &[Ports]) -> Option<String> {
    let mut ranges: Vec<(u16, u16)> = list.iter().map(|ports| (ports.first(), ports.last())).collect();
    ranges.sort_unstable();
    let mut merged: Vec<(u16, u16)> = Vec::new();
    for (first, last) in ranges {
        match merged.last_mut() {
            Some(before) if first <= before.1.saturating_add(1) => before.1 = before.1.max(last),
            _ => merged.push((first, last)),
        }
    }
    let merged: Vec<Ports> = merged.into_iter().filter_map(|(first, last)| Ports::new(first, last)).collect();
    (!merged.is_empty() && merged != [Ports::ALL]).then(|| braces(&merged))
}

fn braces(list: &[impl Display]) -> String {
    let list: Vec<String> = list.iter().map(ToString::to_string).collect();
    format!("{{ {} }}", list.join(", "))
}
