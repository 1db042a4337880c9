//! `byway registry`: where relays enrol, and senders ask for them.

use crate::args::Global;
use crate::args::registry::{Registry, RegistryCommand, WordIssue};
use crate::exit::{Exit, Failure};
use crate::messages;
use crate::output::{Align, Event, Fields, Outcome, Output, Table};
use crate::signals::Hangup;
use crate::units::{Bytes, Rate, Span};
use anyhow::{Context as _, Result};
use byway_net::unix_seconds;
use byway_registry::registry;
use byway_registry::word::{MAX_ADDRESSES, RegistryWord, WordKind};
use byway_registry_store::operator_http;
use byway_registry_store::operator_store::{Revoked, Words};
use byway_registry_store::operator_view::{Done, Listing, RelayLine, StartReport, WordLine};
use byway_registry_store::{Issue, OperatorStore, RegistryPlan, Running, open};
use byway_transfer::local_address::local_addresses;
use byway_transfer::reachability::Role;
use byway_transfer::sockets;
use byway_wire::Duration;
use std::collections::BTreeSet;
use std::net::{IpAddr, SocketAddr};

/// The default port of a registry.
const DEFAULT_PORT: u16 = 4750;
/// The text shown for a word or a relay without a limit.
const NO_LIMIT_TEXT: &str = "any";
/// The text shown for a word that does not expire.
const NO_EXPIRY_TEXT: &str = "ever";
/// Time between two checks for signals.
const SIGNAL_POLL_INTERVAL: Duration = Duration::from_millis(200);

/// Serves until it is stopped, or runs the operator's command.
pub(super) fn run(global: &Global, arguments: &Registry, output: &mut Output) -> Result<Exit> {
    let store = match &arguments.store {
        Some(store) => store.clone(),
        None => global.state()?.registry_path().display().to_string(),
    };
    let keeper = |name: &str| open(name).with_context(|| messages::registry::cannot_open(name));
    let outcome = match &arguments.command {
        None => return serve(global, keeper(&store)?, arguments, output),
        Some(RegistryCommand::Word(word)) => issue(&mut *keeper(&store)?, word, output)?,
        Some(RegistryCommand::List) => {
            let listing = Listing::of(&mut *keeper(&store)?, unix_seconds())?;
            show(&listing, unix_seconds(), output)?;
            Fields::of(&listing)
        }
        Some(RegistryCommand::Revoke { name }) => {
            let what = match keeper(&store)?.revoke(name, unix_seconds())? {
                Revoked::Word(word) if word.kind == WordKind::Use => messages::registry::REVOKED_WORD_FOR_USE,
                Revoked::Word(_) => messages::registry::REVOKED_WORD_FOR_JOINING,
                Revoked::Relay(_) => messages::registry::REVOKED_RELAY,
            };
            output.say(what);
            Fields::one("revoked", name)
        }
        Some(RegistryCommand::Backup { file }) => {
            keeper(&store)?.backup(file)?;
            Fields::one("file", file)
        }
        Some(RegistryCommand::Check { file }) => {
            let name = file.as_ref().map_or_else(|| store.clone(), |file| file.display().to_string());
            if !name.contains("://") && !std::path::Path::new(&name).exists() {
                return Err(Failure::new(Exit::NotFound, messages::registry::no_store(&name)).into());
            }
            keeper(&name)?.check()?;
            output.say(&messages::registry::no_damage(&name));
            Fields::one("file", &name)
        }
    };
    output.emit(&Event::result("registry", Exit::Ok, Outcome::Told(outcome)));
    Ok(Exit::Ok)
}

/// Prints a table of the registry's words and a table of its relays.
fn show(listing: &Listing, now: u64, output: &mut Output) -> Result<()> {
    output.answer_table(&words(&listing.words, now))?;
    if !listing.relays.is_empty() {
        output.answer("")?;
        output.answer_table(&relays(&listing.relays))?;
    }
    Ok(())
}

fn words(words: &[WordLine], now: u64) -> Table {
    let columns = ["word", "name", "state"].map(|heading| (heading, Align::Left));
    let numbers = ["uses left", "rate", "per day", "good for"].map(|heading| (heading, Align::Right));
    let mut table = Table::new(columns.into_iter().chain(numbers)).keyed_by(2);
    for word in words {
        let left = word.expires.map(|until| until.saturating_sub(now));
        let state = match (word.revoked, left) {
            (true, _) => "revoked",
            (false, Some(0)) => "expired",
            (false, _) => "good",
        };
        table.row([
            word.kind.into(),
            word.name.clone(),
            state.into(),
            word.uses.map_or_else(|| NO_LIMIT_TEXT.into(), |uses| uses.to_string()),
            word.rate.map_or_else(|| NO_LIMIT_TEXT.into(), |rate| Rate::of(rate, 1.0).to_string()),
            word.quota.map_or_else(|| NO_LIMIT_TEXT.into(), |quota| Bytes(quota).to_string()),
            left.map_or_else(|| NO_EXPIRY_TEXT.into(), |left| Span(left as f64).to_string()),
        ]);
    }
    table
}

fn relays(relays: &[RelayLine]) -> Table {
    let columns =
        ["relay", "address", "over", "operator", "region", "state"].map(|heading| (heading, Align::Left));
    let numbers = ["load", "rate", "per day", "seen"].map(|heading| (heading, Align::Right));
    let mut table = Table::new(columns.into_iter().chain(numbers));
    for relay in relays {
        table.row([
            relay.relay.clone(),
            relay.addresses.join(" "),
            relay.carriers.join(" "),
            quoted(&relay.operator),
            quoted(&relay.region),
            if relay.revoked { "revoked" } else { "enrolled" }.into(),
            Rate::of(relay.load, 1.0).to_string(),
            relay.rate.map_or_else(|| NO_LIMIT_TEXT.into(), |rate| Rate::of(rate, 1.0).to_string()),
            relay.quota.map_or_else(|| NO_LIMIT_TEXT.into(), |quota| Bytes(quota).to_string()),
            relay.seen_seconds_ago.map_or_else(|| "never".into(), ago),
        ]);
    }
    table
}

/// Quotes a text that a relay wrote, so that no reader takes it for the registry's own.
fn quoted(text: &str) -> String {
    if text.is_empty() { String::new() } else { format!("\"{}\"", text.replace('"', "'")) }
}

fn ago(seconds: u64) -> String {
    if seconds < 60 { format!("{seconds} s ago") } else { format!("{} ago", Span(seconds as f64)) }
}

fn issue(keeper: &mut dyn OperatorStore, word: &WordIssue, output: &mut Output) -> Result<Fields> {
    let (now, words) = (unix_seconds(), Words::of(keeper)?);
    let kind = if word.uses.is_some() { WordKind::Join } else { WordKind::Use };
    let unnamed = || format!("relay-{:08x}", byway_net::seed().map_or(0, u32::from_be_bytes));
    let row = keeper.issue(
        &Issue {
            kind,
            name: word.name.clone().unwrap_or_else(unnamed),
            uses: word.uses,
            rate: word.rate,
            quota: word.quota,
            expires: word.expires.map(|expires| now.saturating_add(expires.as_secs())),
        },
        now,
    )?;
    let text = words.word(&row).reveal();
    output.answer(&text)?;
    Ok(Fields::of(&Done { name: row.name, word: text }))
}

fn serve(
    global: &Global,
    keeper: Box<dyn OperatorStore>,
    arguments: &Registry,
    output: &mut Output,
) -> Result<Exit> {
    let listen = local_addresses(&arguments.listen, DEFAULT_PORT)?;
    let probe_sockets = local_addresses(&arguments.probe_from, 0)?;
    let probe_from: Vec<IpAddr> = probe_sockets.iter().map(SocketAddr::ip).collect();
    let mut sockets = sockets::answering(sockets::serving(&listen, DEFAULT_PORT)?);
    if let Some(clipped) = sockets::clipped(&sockets) {
        output.say(&clipped);
    }
    let listening: Vec<String> = sockets.iter().map(|socket| socket.address().to_string()).collect();
    let ports: BTreeSet<u16> = sockets.iter().map(|socket| socket.address().port()).collect();
    let mut addresses = match arguments.advertise.as_slice() {
        [] => sockets::reachable_at(&sockets),
        told => told.iter().map(|endpoint| endpoint.or_port(DEFAULT_PORT)).collect(),
    };
    if arguments.advertise.is_empty() && listen.is_empty() {
        addresses.retain(|address| !probe_from.contains(&address.ip()));
    }
    if let Some(both) = addresses.iter().find(|address| probe_from.contains(&address.ip())) {
        let sentence = messages::registry::probes_pass_nat(both.ip());
        return Err(Failure::new(Exit::Usage, sentence).into());
    }
    addresses.truncate(MAX_ADDRESSES);
    if !probe_sockets.is_empty() {
        sockets.extend(sockets::serving(&probe_sockets, 0)?);
    }
    let signals = output.catch_signals(Hangup::Stop)?;
    output.publish("registry", None, &global.state()?);
    let running = Running::start(RegistryPlan { keeper, sockets, addresses: addresses.clone(), probe_from })?;
    let page = arguments.http.map(|address| operator_http::serve(address, running.view())).transpose()?;
    let [join, ask] = [running.join_word(), running.use_word()].map(RegistryWord::reveal);
    let address = addresses.iter().map(ToString::to_string).collect::<Vec<_>>();
    output.emit(&Event::told(
        "ready",
        &StartReport::new(&address, &listening, page.as_ref().map(|page| page.address()), [&join, &ask]),
    ));
    output.answer_lines(&messages::registry::words(&join, &ask))?;
    output.say(messages::registry::WHAT_NEXT);
    output.say(&messages::transfer::listening(&listening));
    output.say(&Role::Registry.firewall(&ports));
    // Who names an address knows who reaches it.
    if let Some(message) = Role::Registry.warning(&addresses).filter(|_| arguments.advertise.is_empty()) {
        output.emit(&Event::Warning { message });
    }
    let exit = loop {
        if let Some(registry::LogEvent::Refused(reason)) = running.next(SIGNAL_POLL_INTERVAL) {
            output.detail(&messages::registry::refused_request(reason));
        }
        if let Some(exit) = signals.stop() {
            break Exit::of_service(exit);
        }
        if running.is_over() {
            break Exit::Error;
        }
    };
    drop(page);
    let done = byway_registry_store::operator_view::Did::of(&running.stop()?);
    output.say(&done.to_string());
    output.emit(&Event::result("registry", exit, Outcome::Told(Fields::of(&done))));
    Ok(exit)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_is_in_units_that_people_read() {
        let word = WordLine {
            name: "alice".into(),
            kind: "use",
            uses: None,
            rate: Some(1 << 20),
            quota: Some(48 << 30),
            expires: Some(1_798_420_129),
            revoked: false,
        };
        let of = |word: &WordLine, now| words(std::slice::from_ref(word), now).to_string();
        let shown = of(&word, 1_798_420_129 - 2_595_600);
        let row = shown.lines().nth(1).unwrap().split_whitespace().collect::<Vec<_>>().join(" ");
        assert_eq!(row, "use alice good any 8.39 Mbit/s 48.0 GiB 30d 01h", "{shown}");
        assert!(of(&word, 1_798_420_129).contains("expired"));
        assert!(of(&WordLine { revoked: true, ..word }, 0).contains("revoked"));
    }

    #[test]
    fn what_a_relay_says_of_itself_neither_drives_a_terminal_nor_looks_like_the_registrys_words() {
        let relay = RelayLine {
            relay: "00".into(),
            operator: "A\u{202e}B\u{200b}C\u{2028}D\u{3164}E\" revoked".into(),
            region: "\u{1b}[2J\n".into(),
            addresses: vec!["192.0.2.7:4748".into()],
            carriers: &["udp"],
            rate: None,
            quota: None,
            load: 5,
            seen_seconds_ago: Some(3),
            revoked: false,
        };
        let shown = relays(&[relay]).to_string();
        for hostile in ["\u{202e}", "\u{200b}", "\u{2028}", "\u{3164}", "\u{1b}"] {
            assert!(!shown.contains(hostile), "{shown:?}");
        }
        assert_eq!(shown.lines().count(), 2, "{shown}");
        assert!(shown.contains("40.0 bit/s") && shown.contains("3 s ago"), "{shown}");
        assert!(shown.contains("D\\u{3164}E' revoked\""), "{shown}");
    }
}
