//! `byway pair`: two hosts learn each other's keys by a short code.

use crate::args::Global;
use crate::args::pairing::Pair;
use crate::exit::{Exit, Failure};
use crate::messages;
use crate::output::{Event, Fields, Outcome, Output};
use crate::signals::Hangup;
use anyhow::Result;
use byway_transfer::pairing::{
    Introduction, PairingCode, PairingError, PairingNews, PairingPlan, keep_peer, pair,
};
use byway_transfer::secret_words;
use byway_transfer::settings::{PeerError, PeerName};
use byway_transfer::ticket::Ticket;
use byway_wire::relay::Word;
use serde::Serialize;
use std::net::{SocketAddr, ToSocketAddrs as _};

/// The event with the pairing code, for programs.
#[derive(Serialize)]
struct ShownCode {
    code: String,
    relay: String,
    command: String,
}

/// The event with the paired host, for programs.
#[derive(Serialize)]
struct PairedHost {
    name: String,
    key: String,
    /// Whether the host receives, so that its name stands for its ticket.
    ticket: bool,
    file: String,
}

/// The parsed arguments of the command.
struct Request {
    code: Option<PairingCode>,
    /// The relay behind the code, as HOST:PORT.
    host: Option<String>,
    name: Option<PeerName>,
}

/// Pairs with another host, and saves its key or ticket under a name.
pub(super) fn run(global: &Global, arguments: &Pair, output: &mut Output) -> Result<Exit> {
    global.usable()?;
    let Request { code, host, name } = request(arguments)?;
    if let Some(name) = &name
        && let Some(peer) = global.config.peers().get(name)
        && !(peer.is_users && peer.key_alone().is_some())
    {
        return Err(Failure::new(Exit::Usage, messages::pairing::name_taken(name, &peer.file)).into());
    }
    if global.config.sources().user.is_none() {
        return Err(PeerError::NoFile.into());
    }
    let state = global.state()?;
    let key = state.identity()?.public();
    let ticket = match &arguments.ticket {
        Some(ticket) => Some(ticket.value()?),
        // One of a key that this host has no more is nobody's.
        None => state.last_ticket()?.filter(|ticket| ticket.key == key),
    };
    let (relay, word) = meeting_place(global, arguments, host.as_deref(), ticket.as_ref())?;
    if ticket.is_none() && code.is_none() {
        output.say_lines(messages::pairing::GIVES_NO_TICKET);
    }
    let introduction = Introduction { name: own_name(), key, ticket };
    let signals = output.catch_signals(Hangup::Stop)?;
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
        (Ok(told), _) => keep(global, name.as_ref(), &told, output),
        (Err(PairingError::Stopped), Some(exit)) => {
            output.stopping();
            output.emit(&Event::failure("pair", exit, &PairingError::Stopped.to_string()));
            Ok(exit)
        }
        (Err(error), _) => Err(Failure::new(exit_of(&error), error.to_string()).into()),
    }
}

/// Parses the arguments. If the only argument is not a code, it is the name.
fn request(arguments: &Pair) -> Result<Request> {
    let name = arguments.name.clone();
    let Some(text) = &arguments.code else { return Ok(Request { code: None, host: None, name }) };
    let (code, host) = text.split_once('@').map_or((text.as_str(), None), |(code, host)| (code, Some(host)));
    let is_code = text.starts_with(|first: char| first.is_ascii_digit()) || PairingCode::lacks_number(text);
    match (code.parse(), text.parse()) {
        (Ok(code), _) => Ok(Request { code: Some(code), host: host.map(str::to_owned), name }),
        (Err(_), Ok(only)) if name.is_none() && !is_code => {
            Ok(Request { code: None, host: None, name: Some(only) })
        }
        (Err(error), _) => Err(Failure::new(Exit::Usage, error.to_string()).into()),
    }
}

/// Returns the addresses of the relay at which both hosts meet, and the relay word if this host has
/// one.
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

/// Returns the name that this host proposes for itself: the first label of its host name.
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

/// Saves the other host under a name in the configuration file, and prints the result.
fn keep(
    global: &Global,
    chosen: Option<&PeerName>,
    told: &Introduction,
    output: &mut Output,
) -> Result<Exit> {
    let (name, file) = keep_peer(&global.config, chosen, told)?;
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
