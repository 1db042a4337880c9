//! `byway peer` and `byway config`: receivers with names, and the files that hold them.

use crate::args::Global;
use crate::args::peers::{Peer, PeerCommand};
use crate::exit::Exit;
use crate::messages;
use crate::output::{Align, Event, Fields, Outcome, Output, Table};
use anyhow::Result;
use byway_transfer::settings::{FindingWeight, PeerEdit, edit_peers};
use serde::Serialize;

/// A row of the list of peers, in JSON.
#[derive(Serialize)]
struct ListedPeer {
    name: String,
    key: String,
    addresses: Vec<String>,
    relays: usize,
    file: String,
}

/// A mistake in a configuration file, in JSON.
#[derive(Serialize)]
struct ToldFinding {
    file: String,
    line: Option<usize>,
    warning: bool,
    text: String,
}

/// Runs the subcommand of `byway peer`.
pub(super) fn run(global: &Global, arguments: &Peer, output: &mut Output) -> Result<Exit> {
    let edit = |edit| edit_peers(&global.config, &edit);
    let told = match &arguments.command {
        PeerCommand::Add { name, ticket, replace } => {
            let ticket = ticket.value()?;
            let change = if *replace { PeerEdit::Replace } else { PeerEdit::Add };
            messages::peer::added(name, &edit(change(name, &ticket))?)
        }
        PeerCommand::Rename { old, new } => {
            edit(PeerEdit::Rename(old, new))?;
            messages::peer::renamed(old, new)
        }
        PeerCommand::Remove { name } => messages::peer::removed(name, &edit(PeerEdit::Remove(name))?),
        PeerCommand::List => return list(global, output),
    };
    output.say(&told);
    output.emit(&Event::result("peer", Exit::Ok, Outcome::Nothing {}));
    Ok(Exit::Ok)
}

fn list(global: &Global, output: &mut Output) -> Result<Exit> {
    global.usable()?;
    let mut peers = Vec::new();
    for (name, peer) in global.config.peers() {
        let told = peer.key().map(|key| {
            let ticket = peer.ticket().ok();
            let names = ticket.iter().flat_map(|ticket| ticket.names.iter().map(ToString::to_string));
            let addresses = ticket.iter().flat_map(|ticket| ticket.addresses.iter().map(ToString::to_string));
            ListedPeer {
                name: name.to_string(),
                key: key.to_string(),
                addresses: names.chain(addresses).collect(),
                relays: ticket.as_ref().map_or(0, |ticket| ticket.relays.len()),
                file: peer.file.display().to_string(),
            }
        });
        match told {
            Ok(listed) => peers.push(listed),
            Err(finding) => output.emit(&Event::Warning { message: finding.to_string() }),
        }
    }
    let columns =
        [("name", Align::Left), ("key", Align::Left), ("relays", Align::Right), ("addresses", Align::Left)];
    let mut table = Table::new(columns);
    for peer in &peers {
        table.row([peer.name.clone(), peer.key.clone(), peer.relays.to_string(), peer.addresses.join(" ")]);
    }
    match peers.is_empty() {
        true => output.say(messages::peer::NO_PEER),
        false => output.answer_table(&table)?,
    }
    output.emit(&Event::result("peer", Exit::Ok, Outcome::Told(Fields::one("peers", &peers))));
    Ok(Exit::Ok)
}

/// Prints the mistakes in the configuration files.
pub(super) fn check(global: &Global, output: &mut Output) -> Result<Exit> {
    let found = global.config.findings();
    let is_warning = |weight| weight == FindingWeight::Warning;
    let told = found.iter().map(|finding| ToldFinding {
        file: finding.file.display().to_string(),
        line: finding.line,
        warning: is_warning(finding.weight),
        text: finding.text.clone(),
    });
    for finding in &found {
        let text = finding.to_string();
        output.answer(&if is_warning(finding.weight) { messages::transfer::warning(text) } else { text })?;
    }
    if found.is_empty() {
        output.answer(messages::peer::NO_MISTAKE)?;
    }
    let exit = if found.iter().all(|it| is_warning(it.weight)) { Exit::Ok } else { Exit::Usage };
    let fields = Fields::one("findings", &told.collect::<Vec<_>>());
    output.emit(&Event::result("config", exit, Outcome::Told(fields)));
    Ok(exit)
}
