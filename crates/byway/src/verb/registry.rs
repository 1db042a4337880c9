//! `byway registry`: where relays enrol, and senders ask for them.

use crate::args::Global;
use crate::args::registry::{Registry, RegistryCommand, WordIssue};
use crate::exit::{Exit, Failure};
use crate::messages;
use crate::output::{Event, Fields, Outcome, Output};
use crate::signals::{Hangup, Signals};
use anyhow::{Context as _, Result};
use byway_net::unix_seconds;
use byway_registry::registry;
use byway_registry::word::{MAX_ADDRESSES, RegistryWord, WordKind};
use byway_registry_store::operator_http::Page;
use byway_registry_store::operator_store::{Revoked, Words};
use byway_registry_store::operator_view::{Done, Listing, StartReport};
use byway_registry_store::{Issue, OperatorStore, RegistryPlan, Running, open};
use byway_transfer::sockets;
use byway_wire::Duration;
use std::net::SocketAddr;

/// The port that a registry listens on unless told otherwise.
const PORT: u16 = 4750;
/// Time between two looks at signals.
const TICK: Duration = Duration::from_millis(200);

/// Serves until it is stopped, or does what its operator asks.
pub(super) fn run(global: &Global, arguments: &Registry, output: &mut Output) -> Result<Exit> {
    let store = match &arguments.store {
        Some(store) => store.clone(),
        None => global.state()?.registry_path().display().to_string(),
    };
    let keeper = |name: &str| open(name).with_context(|| messages::registry::cannot_open(name));
    let outcome = match &arguments.command {
        None => return serve(keeper(&store)?, arguments, output),
        Some(RegistryCommand::Word(word)) => issue(&mut *keeper(&store)?, word, output)?,
        Some(RegistryCommand::List) => {
            let listing = Listing::of(&mut *keeper(&store)?, unix_seconds())?;
            output.answer_lines(&listing.to_string())?;
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

fn issue(keeper: &mut dyn OperatorStore, word: &WordIssue, output: &mut Output) -> Result<Fields> {
    let now = unix_seconds();
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
    let text = Words::of(keeper)?.word(&row).reveal();
    output.answer(&text)?;
    Ok(Fields::of(&Done { name: row.name, word: text }))
}

fn serve(keeper: Box<dyn OperatorStore>, arguments: &Registry, output: &mut Output) -> Result<Exit> {
    let listen: Vec<SocketAddr> = arguments.listen.iter().map(|endpoint| endpoint.or_port(PORT)).collect();
    let probe_from = &arguments.probe_from;
    let mut sockets = sockets::answering(sockets::serving(&listen, PORT)?);
    if let Some(clipped) = sockets::clipped(&sockets) {
        output.say(&clipped);
    }
    let listening: Vec<String> = sockets.iter().map(|socket| socket.address().to_string()).collect();
    let mut addresses = match arguments.advertise.as_slice() {
        [] => sockets::reachable_at(&sockets),
        told => told.iter().map(|endpoint| endpoint.or_port(PORT)).collect(),
    };
    if arguments.advertise.is_empty() && listen.is_empty() {
        addresses.retain(|address| !probe_from.contains(&address.ip()));
    }
    if let Some(both) = addresses.iter().find(|address| probe_from.contains(&address.ip())) {
        let sentence = messages::registry::probes_pass_nat(both.ip());
        return Err(Failure::new(Exit::Usage, sentence).into());
    }
    addresses.truncate(MAX_ADDRESSES);
    if !probe_from.is_empty() {
        let any = probe_from.iter().map(|ip| SocketAddr::new(*ip, 0));
        sockets.extend(sockets::serving(&any.collect::<Vec<_>>(), 0)?);
    }
    let signals = Signals::install(Hangup::Stop, || {}).context(messages::common::CANNOT_CATCH_SIGNALS)?;
    output.heed(&signals);
    let running = Running::start(RegistryPlan {
        keeper,
        sockets,
        addresses: addresses.clone(),
        probe_from: probe_from.clone(),
    })?;
    let page = arguments.http.map(|address| Page::serve(address, running.view())).transpose();
    let page = page.with_context(|| messages::registry::cannot_serve_pages(arguments.http))?;
    let [join, ask] = [running.join_word(), running.use_word()].map(RegistryWord::reveal);
    let address = addresses.iter().map(ToString::to_string).collect::<Vec<_>>();
    output.emit(&Event::told(
        "ready",
        &StartReport::new(&address, &listening, page.as_ref().map(Page::address), [&join, &ask]),
    ));
    output.answer_lines(&messages::registry::words(&join, &ask))?;
    let exit = loop {
        if let Some(registry::LogEvent::Refused(reason)) = running.next(TICK) {
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
