//! `byway pair`: two hosts learn each other's keys by a short code.

use crate::args::Global;
use crate::args::pairing::Pair;
use crate::exit::{Exit, Failure};
use crate::messages;
use crate::output::{Event, Fields, Outcome, Output};
use crate::signals::{Hangup, Signals};
use anyhow::{Context as _, Result};
use byway_transfer::pairing::{Introduction, PairingCode, PairingError, PairingNews, PairingPlan, pair};
use byway_transfer::secret_words;
use byway_transfer::settings::{PeerEdit, PeerError, PeerName, edit_peers};
use byway_transfer::ticket::Ticket;
use byway_wire::relay::Word;
use serde::Serialize;
use std::net::{SocketAddr, ToSocketAddrs as _};
use std::path::PathBuf;

/// What a host is called whose own name is none for a peer.
const NAMELESS_PEER: &str = "peer";
/// Names that are tried for a host whose name is taken: `nas`, `nas-2`, and so on.
const MAX_NAME_TRIES: u32 = 100;

/// What an event tells of the code.
#[derive(Serialize)]
struct ShownCode {
    code: String,
    relay: String,
    command: String,
}

/// What an event tells of the other host.
#[derive(Serialize)]
struct PairedHost {
    name: String,
    key: String,
    /// Whether it receives, so that its name stands for a ticket.
    ticket: bool,
    file: String,
}

/// What the person typed.
struct Request {
    code: Option<PairingCode>,
    /// The relay behind the code, as HOST:PORT.
    host: Option<String>,
    name: Option<PeerName>,
}

/// Pairs, and keeps what was learned.
pub(super) fn run(global: &Global, arguments: &Pair, output: &mut Output) -> Result<Exit> {
    global.usable()?;
    let Request { code, host, name } = request(arguments)?;
    if let Some(name) = &name
        && let Some(peer) = global.config.peers().get(name)
    {
        return Err(Failure::new(Exit::Usage, messages::pairing::name_taken(name, &peer.file)).into());
    }
    let state = global.state()?;
    let ticket = match &arguments.ticket {
        Some(ticket) => Some(ticket.value()?),
        None => state.last_ticket()?,
    };
    let (relay, word) = meeting_place(global, arguments, host.as_deref(), ticket.as_ref())?;
    if ticket.is_none() && code.is_none() {
        output.say_lines(messages::pairing::GIVES_NO_TICKET);
    }
    let introduction = Introduction { name: own_name(), key: state.identity()?.public(), ticket };
    let signals = Signals::install(Hangup::Stop, || {}).context(messages::common::CANNOT_CATCH_SIGNALS)?;
    output.heed(&signals);
    let mut stop = None;
    let mut broken = Ok(());
    let told = pair(&PairingPlan { relay, word, code, introduction, seed: byway_net::seed()? }, |news| {
        if let PairingNews::Code(code, relay) = news {
            broken = show(code, relay, output);
        }
        stop = signals.stop();
        stop.is_none() && broken.is_ok()
    });
    broken?;
    match (told, stop) {
        (Ok(told), _) => keep(global, name, &told, output),
        (Err(PairingError::Stopped), Some(exit)) => {
            output.stopping();
            Ok(exit)
        }
        (Err(error), _) => Err(Failure::new(exit_of(&error), error.to_string()).into()),
    }
}

/// Takes the arguments apart. Where the first is no code and the only one, it is the name.
fn request(arguments: &Pair) -> Result<Request> {
    let name = arguments.name.clone();
    let Some(text) = &arguments.code else { return Ok(Request { code: None, host: None, name }) };
    let (code, host) = text.split_once('@').map_or((text.as_str(), None), |(code, host)| (code, Some(host)));
    match (code.parse(), text.parse()) {
        (Ok(code), _) => Ok(Request { code: Some(code), host: host.map(str::to_owned), name }),
        (Err(_), Ok(only)) if name.is_none() && !text.starts_with(|first: char| first.is_ascii_digit()) => {
            Ok(Request { code: None, host: None, name: Some(only) })
        }
        (Err(error), _) => Err(Failure::new(Exit::Usage, error.to_string()).into()),
    }
}

/// The relay's addresses, and the word if this host has one.
fn meeting_place(
    global: &Global,
    arguments: &Pair,
    host: Option<&str>,
    ticket: Option<&Ticket>,
) -> Result<(Vec<SocketAddr>, Option<Word>)> {
    if let Some(host) = host {
        let wrong = |error| Failure::new(Exit::Usage, messages::pairing::relay_not_found(host, error));
        return Ok((host.to_socket_addrs().map_err(wrong)?.collect(), None));
    }
    let mut words: Vec<Word> = secret_words::values(&arguments.relay, "--relay")?;
    for setting in global.config.settings().iter().filter(|setting| setting.key.key == "relay") {
        let texts = setting.values.iter().map(|text| text.parse()).collect::<Result<Vec<_>, _>>()?;
        words.extend(secret_words::values::<Word>(&texts, "relay")?);
    }
    words.extend(ticket.iter().flat_map(|ticket| &ticket.relays).map(|relay| relay.word.clone()));
    let word = words.into_iter().next();
    let word = word.ok_or_else(|| Failure::new(Exit::Usage, messages::pairing::NO_RELAY))?;
    Ok((word.relays().to_vec(), Some(word)))
}

/// What this host proposes to be called: the first part of its name.
fn own_name() -> Option<PeerName> {
    let names = rustix::system::uname();
    let first = names.nodename().to_str().ok()?.split('.').next()?.to_ascii_lowercase();
    first.parse().ok().filter(|_| first != "localhost")
}

fn show(code: PairingCode, relay: SocketAddr, output: &mut Output) -> std::io::Result<()> {
    let command = messages::pairing::command(code, relay);
    output.emit(&Event::told(
        "code",
        &ShownCode { code: code.to_string(), relay: relay.to_string(), command: command.clone() },
    ));
    output.answer(&code.to_string())?;
    output.say(&messages::pairing::at_the_other_host(&command));
    Ok(())
}

/// Gives the other host a name in the configuration file.
fn keep(global: &Global, chosen: Option<PeerName>, told: &Introduction, output: &mut Output) -> Result<Exit> {
    let (name, file) = add(global, chosen, told)?;
    let say = match told.ticket {
        Some(_) => messages::pairing::receives,
        None => messages::pairing::sends,
    };
    output.say_lines(&say(&name, &told.key, &file));
    let host = PairedHost {
        name: name.to_string(),
        key: told.key.to_string(),
        ticket: told.ticket.is_some(),
        file: file.display().to_string(),
    };
    output.emit(&Event::result("pair", Exit::Ok, Outcome::Told(Fields::of(&host))));
    Ok(Exit::Ok)
}

/// Adds the other host under the chosen name or its own, or one with a number behind it.
fn add(global: &Global, chosen: Option<PeerName>, told: &Introduction) -> Result<(PeerName, PathBuf)> {
    let name = chosen.or_else(|| told.name.clone()).map(Ok).unwrap_or_else(|| NAMELESS_PEER.parse())?;
    let mut tried = name.clone();
    for number in 2..=MAX_NAME_TRIES {
        let edit = match &told.ticket {
            Some(ticket) => PeerEdit::Add(&tried, ticket),
            None => PeerEdit::AddKey(&tried, &told.key),
        };
        match edit_peers(&global.config, &edit) {
            Ok(file) => return Ok((tried, file)),
            Err(PeerError::Exists { .. }) => tried = format!("{name}-{number}").parse()?,
            Err(error) => return Err(error.into()),
        }
    }
    Err(PeerError::Exists { name, file: global.config.sources().user.clone().unwrap_or_default() }.into())
}

const fn exit_of(error: &PairingError) -> Exit {
    use PairingError as E;
    match error {
        E::Socket(_) | E::Silent(_) | E::Over | E::Gone => Exit::Network,
        E::Refused(_) | E::NoHost(_) | E::Taken(_) | E::WrongCode | E::Stranger => Exit::NotAuthorised,
        E::Full | E::Malformed(_) | E::RelayMalformed | E::TooLong => Exit::Error,
        E::Oneself | E::ForeignTicket => Exit::Usage,
        E::Stopped => Exit::Interrupted,
    }
}
