//! `gw.toml`: what a gateway is told, and the line of every mistake in it. `docs/gateway.md` says what it may say.

mod text;

pub use text::ConfigError;

use crate::address::Endpoint;
use crate::exit::{Exit, Failure};
use crate::marking::{self, Marking};
use anyhow::{Context as _, Result};
use byway_control::{Choice, ChoiceError, Class, Sender, controller};
use byway_engine::handshake;
use byway_engine::seal::Suites;
use byway_gateway::loss::Rule;
use byway_gateway::pick::{Policy, Relays};
use byway_gateway::reorder::Timer;
use byway_gateway::rules::Rules;
use byway_gateway::serves::{MOST_PORTS, Served, announce};
use byway_gateway::machine::{self, Bundle, Settings};
use byway_gateway::{Prefix, cache, entry, flow, reorder, window};
use byway_transfer::identity::{Identity, PublicKey};
use byway_transfer::state::StateDir;
use byway_wire::Duration;
use byway_wire::relay::Word;
use clap::ValueEnum as _;
use std::fs;
use std::net::SocketAddr;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use text::{File, GatewayText, LimitsText, PeerText, Place};
use toml::Spanned;

/// The UDP port of a gateway unless told otherwise.
pub const PORT: u16 = 4749;
/// The TUN device of a gateway unless told otherwise.
pub const TUN: &str = "byway0";
/// The firewall mark of captured packets, the number of their routing table and the priority of the rule that leads there, unless
/// told otherwise: "bw".
pub const MARK: u16 = 0x6277;

/// Longest name of a device (Linux, `IFNAMSIZ` without the last zero).
const DEVICE_NAME: usize = 15;
/// Bundles of single flows to one peer that may be asked for: each keeps its paths alive.
const MOST_BUNDLES: u64 = 4_096;
/// A peer of which nothing is heard for less than this could be a short disturbance; for longer than that, hosts give up.
const DEAD_AFTER: [std::time::Duration; 2] =
    [std::time::Duration::from_secs(1), std::time::Duration::from_secs(60)];

/// What a gateway is told.
#[derive(Clone, Debug)]
pub struct GatewayConfig {
    /// The file that says so.
    pub file: PathBuf,
    /// Whether the file holds a secret (a relay's word) and can be read by others.
    pub exposed: bool,
    /// Its key file; `None`: this host's identity.
    pub key: Option<PathBuf>,
    /// Where it listens; none: at all addresses, on [`PORT`].
    pub listen: Vec<SocketAddr>,
    /// Its TUN device.
    pub tun: String,
    /// Mark, table and priority of its rules.
    pub mark: u16,
    /// Where it answers `byway gateway status`; `None`: where [`GatewayConfig::status_socket`] says.
    pub status: Option<PathBuf>,
    /// The controller of its sessions.
    pub congestion: Choice,
    /// The code point of its sessions, if it is told one.
    pub dscp: Option<Marking>,
    /// Hosts behind it.
    pub serves: Vec<Served>,
    /// Other gateways.
    pub peers: Vec<Peer>,
    /// Which flows are background.
    pub rules: Rules,
    /// How it behaves.
    pub settings: Settings,
    /// Whether it was told to observe, and to fail closed, whatever its file says.
    pub insisted: [bool; 2],
}

/// Another gateway.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Peer {
    /// What people call it.
    pub name: String,
    /// Its key.
    pub key: PublicKey,
    /// Where it may be reached; none: it connects to us.
    pub addresses: Vec<SocketAddr>,
    /// Hosts for which it may speak.
    pub allowed: Vec<Prefix>,
    /// Relays to reach it through.
    pub relays: Vec<Word>,
}

impl GatewayConfig {
    /// Reads a file.
    ///
    /// # Errors
    /// It cannot be read (not found, or as the system says), or says something wrong: a usage error with the line.
    pub fn read(file: &Path) -> Result<Self> {
        let shown = file.display();
        let text = fs::read_to_string(file).with_context(|| format!("cannot read {shown}"))?;
        let mode = fs::metadata(file).map_or(0, |metadata| metadata.mode());
        let mut config =
            Self::parse(file, &text).map_err(|error| Failure::new(Exit::Usage, error.to_string()))?;
        config.exposed &= mode & 0o077 != 0;
        Ok(config)
    }

    /// Reads `text`, which stands in `file`. Files that it names are relative to its directory.
    ///
    /// # Errors
    /// What is wrong, and in which line.
    pub fn parse(file: &Path, text: &str) -> Result<Self, ConfigError> {
        let directory = file.parent().unwrap_or(Path::new(""));
        let place = Place { file, text };
        let File { gateway, limits, peer, rule } = place.read()?;
        let Some(gateway) = gateway else {
            return Err(place.whole("there is no [gateway] table: say there what this gateway serves"));
        };
        let exposed =
            peer.iter().flat_map(|peer| &peer.as_ref().relays).any(|word| !word.as_ref().starts_with('@'));
        let settings = settings(&place, &gateway, &limits)?;
        let serves = serves(&place, &gateway)?;
        let congestion = congestion(&place, gateway.congestion.as_ref())?;
        let dscp = marking(&place, gateway.dscp.as_ref())?;
        let tun = tun(&place, gateway.tun)?;
        let peers = peers(&place, directory, peer)?;
        let mark = gateway.mark.map_or(Ok(MARK), |mark| match *mark.as_ref() {
            0 | 253..=255 => Err(place.at(
                mark.span(),
                "the mark is also the number of a routing table: 0 and 253 to 255 are taken",
            )),
            mark => Ok(mark),
        })?;
        Ok(Self {
            file: file.to_owned(),
            exposed,
            key: gateway.key.map(|key| directory.join(key)),
            listen: gateway.listen.iter().map(|asked: &text::As<Endpoint>| asked.0.or_port(PORT)).collect(),
            tun,
            mark,
            status: gateway.status.map(|status| directory.join(status)),
            congestion,
            dscp,
            serves,
            peers,
            rules: Rules { rules: rule },
            settings,
            insisted: [false; 2],
        })
    }

    /// Lets it observe, and fail closed, where the command line says so.
    pub fn insist(&mut self, insisted: [bool; 2]) {
        self.insisted = insisted;
        self.settings.observe |= insisted[0];
        self.settings.fail_closed |= insisted[1];
    }

    /// The file of the gateway's key pair: the one it is told, or else this host's.
    ///
    /// # Arguments
    /// `state` is the directory of the command line, if it names one.
    ///
    /// # Errors
    /// Nothing says where this host's is.
    pub fn key_file(&self, state: Option<&Path>) -> Result<PathBuf> {
        match &self.key {
            Some(file) => Ok(file.clone()),
            None => Ok(StateDir::locate(state, |name| std::env::var_os(name))?.identity_path()),
        }
    }

    /// Fails if a peer has this gateway's own key.
    ///
    /// # Errors
    /// As said; a usage error with what to do.
    pub fn own_key(&self, identity: &Identity) -> Result<()> {
        if let Some(peer) = self.peers.iter().find(|peer| peer.key == identity.public()) {
            let sentence = format!(
                "{}: the peer `{}` has this gateway's own key: write what `byway id` prints over there",
                self.file.display(),
                peer.name
            );
            return Err(Failure::new(Exit::Usage, sentence).into());
        }
        Ok(())
    }

    /// What the gateway is made with.
    ///
    /// # Arguments
    /// `serial` is that of the [announcement](byway_gateway::serves::Part::serial): the seconds of Unix time do.
    ///
    /// # Errors
    /// A peer has this gateway's own key.
    pub fn site(&self, identity: &Identity, seed: [u8; 32], serial: u32) -> Result<machine::Config> {
        self.own_key(identity)?;
        let peer = |peer: &Peer| machine::Peer {
            name: peer.name.clone(),
            key: handshake::PublicKey(peer.key.0),
            addresses: peer.addresses.clone(),
            allowed: peer.allowed.clone(),
            relays: peer.relays.iter().map(|word| (word.clone(), None)).collect(),
        };
        Ok(machine::Config {
            identity: handshake::Identity::from_secret(*identity.secret().expose()),
            suites: Suites::SECURE,
            seed,
            connection: byway_engine::Config {
                dscp: marking::dscp(self.dscp, &self.congestion.name),
                ..byway_engine::Config::default()
            },
            congestion: self.congestion.clone(),
            peers: self.peers.iter().map(peer).collect(),
            rules: self.rules.clone(),
            serves: self.serves.clone(),
            serial,
            settings: self.settings,
        })
    }

    /// All hosts behind other gateways.
    pub fn elsewhere(&self) -> impl Iterator<Item = Prefix> {
        self.peers.iter().flat_map(|peer| peer.allowed.iter().copied())
    }

    /// Where the gateway answers `byway gateway status`: by its device, so that several can run on a host.
    #[must_use]
    pub fn status_socket(&self) -> PathBuf {
        self.status.clone().unwrap_or_else(|| status_socket(&self.tun))
    }
}

/// Where the gateway with this device answers unless told otherwise.
#[must_use]
pub fn status_socket(tun: &str) -> PathBuf {
    Path::new("/run").join(format!("byway-gateway-{tun}.sock"))
}

fn settings(place: &Place<'_>, gateway: &GatewayText, limits: &LimitsText) -> Result<Settings, ConfigError> {
    let default = Settings::default();
    let dead_after = match &gateway.dead_after {
        None => default.dead_after,
        Some(told) => {
            let time = told.as_ref().0;
            if time < DEAD_AFTER[0] || time > DEAD_AFTER[1] {
                return Err(place.at(told.span(), "expected between 1s and 60s"));
            }
            Duration::from_nanos(u64::try_from(time.as_nanos()).unwrap_or(u64::MAX))
        }
    };
    let count = |told: &Option<Spanned<u64>>, default: usize, most: u64| match told {
        None => Ok(default),
        Some(told) => match *told.as_ref() {
            0 => Err(place.at(told.span(), "expected at least 1")),
            number if number > most => Err(place.at(told.span(), &format!("expected at most {most}"))),
            number => Ok(usize::try_from(number).unwrap_or(usize::MAX)),
        },
    };
    let bytes = |told: &Option<Spanned<text::Size>>, default: usize| match told {
        None => Ok(default),
        // Less than this would not hold one packet that the kernel puts together (GRO, 64 KiB).
        Some(told) if told.as_ref().0 < 128 << 10 => Err(place.at(told.span(), "expected at least 128K")),
        Some(told) => Ok(usize::try_from(told.as_ref().0).unwrap_or(usize::MAX)),
    };
    let flows = count(&limits.flows, default.flows.flows, 1_000_000)?;
    let entry = bytes(&limits.entry, default.entry.bytes)?;
    let exit = bytes(&limits.reorder, default.exit.bytes)?;
    let cache = match (&limits.cache, &limits.cache_of_flow) {
        (None, None) => None,
        (None, Some(told)) => {
            let what = "without `cache`, the bytes of all flows, nothing is kept of a flow";
            return Err(place.at(told.span(), what));
        }
        (all, of_flow) => {
            let default = cache::Limits::default();
            let all = bytes(all, default.bytes)?;
            let flow_bytes = bytes(of_flow, default.flow_bytes)?.min(all);
            Some(cache::Limits { bytes: all, flow_bytes, ..default })
        }
    };
    Ok(Settings {
        loss: loss(place, gateway.loss.as_ref())?,
        window: window(place, gateway.window.as_ref(), default.window)?,
        cache,
        bundle: bundle(place, gateway.bundle.as_ref())?,
        timer: timer(place, gateway.timer.as_ref())?,
        policy: Policy { relays: relays(place, gateway.relays.as_ref())?, ..default.policy },
        bundles: count(&limits.bundles, default.bundles, MOST_BUNDLES)?,
        observe: gateway.observe,
        fail_closed: gateway.fail_closed,
        dead_after,
        flows: flow::Limits {
            flows,
            opening: count(&limits.opening, default.flows.opening.min(flows), flows as u64)?,
            ..default.flows
        },
        entry: entry::Limits {
            bytes: entry,
            flow_bytes: bytes(&limits.entry_of_flow, default.entry.flow_bytes)?.min(entry),
            ..default.entry
        },
        exit: reorder::ExitLimits {
            bytes: exit,
            flow: reorder::FlowLimits {
                bytes: bytes(&limits.reorder_of_flow, default.exit.flow.bytes)?.min(exit),
                ..default.exit.flow
            },
            ..default.exit
        },
        ..default
    })
}

fn serves(place: &Place<'_>, gateway: &GatewayText) -> Result<Vec<Served>, ConfigError> {
    let serves: Vec<Served> = gateway.serves.as_ref().iter().map(|served| served.0.clone()).collect();
    if serves.is_empty() {
        return Err(place.at(
            gateway.serves.span(),
            "a gateway that serves no hosts carries nothing: name their prefixes, such as \"192.168.1.0/24\"",
        ));
    }
    if let Some(served) = serves.iter().find(|served| served.ports.len() > MOST_PORTS) {
        let what = format!("{} has more than {MOST_PORTS} ranges of ports", served.hosts);
        return Err(place.at(gateway.serves.span(), &what));
    }
    announce(0, &serves).map(|_| serves).ok_or_else(|| {
        place.at(gateway.serves.span(), "that is more than can be announced to peers: use wider prefixes")
    })
}

fn loss(place: &Place<'_>, told: Option<&Spanned<String>>) -> Result<Rule, ConfigError> {
    let Some(told) = told else { return Ok(Rule::default()) };
    Rule::named(told.as_ref()).ok_or_else(|| {
        let known: Vec<&str> = Rule::NAMES.iter().map(|(name, _)| *name).collect();
        let what = format!("no rule finds losses as `{}`: choose one of {}", told.as_ref(), known.join(", "));
        place.at(told.span(), &what)
    })
}

fn window(
    place: &Place<'_>,
    told: Option<&Spanned<String>>,
    default: Option<window::Rule>,
) -> Result<Option<window::Rule>, ConfigError> {
    let Some(told) = told else { return Ok(default) };
    window::named(told.as_ref()).ok_or_else(|| {
        let known = window::NAMES.map(|(name, _)| name).join(", ");
        let what = format!("windows are not treated as `{}`: choose one of {known}", told.as_ref());
        place.at(told.span(), &what)
    })
}

fn bundle(place: &Place<'_>, told: Option<&Spanned<String>>) -> Result<Bundle, ConfigError> {
    let Some(told) = told else { return Ok(Bundle::default()) };
    Bundle::named(told.as_ref()).ok_or_else(|| {
        let known = Bundle::NAMES.map(|(name, _)| name).join(", ");
        let what = format!("paths are not bundled for a `{}`: choose one of {known}", told.as_ref());
        place.at(told.span(), &what)
    })
}

fn relays(place: &Place<'_>, told: Option<&Spanned<String>>) -> Result<Relays, ConfigError> {
    let Some(told) = told else { return Ok(Policy::default().relays) };
    Relays::named(told.as_ref()).ok_or_else(|| {
        let known = Relays::NAMES.map(|(name, _)| name).join(", ");
        let what = format!("relays are not used as `{}`: choose one of {known}", told.as_ref());
        place.at(told.span(), &what)
    })
}

fn timer(place: &Place<'_>, told: Option<&Spanned<String>>) -> Result<Timer, ConfigError> {
    let Some(told) = told else { return Ok(Timer::default()) };
    Timer::named(told.as_ref()).filter(|timer| !timer.needs_clocks()).ok_or_else(|| {
        let known = Timer::NAMES.iter().filter(|(_, timer)| !timer.needs_clocks());
        let known: Vec<&str> = known.map(|(name, _)| *name).collect();
        let what =
            format!("packets do not wait by a timer `{}`: choose one of {}", told.as_ref(), known.join(", "));
        place.at(told.span(), &what)
    })
}

fn congestion(place: &Place<'_>, told: Option<&Spanned<String>>) -> Result<Choice, ConfigError> {
    let Some(told) = told else {
        return Ok(Choice { name: Class::Background.default_name().to_owned(), ..Choice::default() });
    };
    let chosen = told.as_ref().parse().and_then(|choice| {
        controller(&choice, Sender::Session, 0)?;
        Ok(choice)
    });
    chosen.map_err(|error: ChoiceError| place.at(told.span(), &error.to_string()))
}

fn marking(place: &Place<'_>, told: Option<&Spanned<String>>) -> Result<Option<Marking>, ConfigError> {
    let Some(told) = told else { return Ok(None) };
    Marking::from_str(told.as_ref(), false).map(Some).map_err(|_| {
        let what = format!("sessions are not marked as `{}`: choose one of le, none", told.as_ref());
        place.at(told.span(), &what)
    })
}

fn tun(place: &Place<'_>, told: Option<Spanned<String>>) -> Result<String, ConfigError> {
    let Some(told) = told else { return Ok(TUN.to_owned()) };
    let good = |name: &str| {
        let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
        name.len() <= DEVICE_NAME && name.chars().all(plain) && !name.trim_matches('.').is_empty()
    };
    if !good(told.as_ref()) {
        let what = "the name of a device has 1 to 15 letters, digits, `-`, `_` or `.`";
        return Err(place.at(told.span(), what));
    }
    Ok(told.into_inner())
}

fn peers(
    place: &Place<'_>,
    directory: &Path,
    told: Vec<Spanned<PeerText>>,
) -> Result<Vec<Peer>, ConfigError> {
    let mut peers: Vec<Peer> = Vec::with_capacity(told.len());
    for peer in told {
        let PeerText { name, key, addresses, allowed, relays } = peer.into_inner();
        let span = name.span();
        if peers.iter().any(|other| other.name == *name.as_ref()) {
            return Err(place.at(span, &format!("there is another peer `{}`", name.as_ref())));
        }
        if let Some(other) = peers.iter().find(|other| other.key == key.as_ref().0) {
            return Err(place.at(key.span(), &format!("the peer `{}` has this key, too", other.name)));
        }
        if allowed.as_ref().is_empty() {
            let what = "a peer that may speak for no hosts is of no use: name the prefixes behind it";
            return Err(place.at(allowed.span(), what));
        }
        if addresses.iter().any(|address| address.0.port() == 0 || address.0.ip().is_unspecified()) {
            let what = format!("an address of the peer `{}` is none that can be reached", name.as_ref());
            return Err(place.at(span, &what));
        }
        let relays = relays.iter().map(|word| place.word(directory, word)).collect::<Result<_, _>>()?;
        peers.push(Peer {
            name: name.into_inner(),
            key: key.into_inner().0,
            addresses: addresses.into_iter().map(|address| address.0).collect(),
            allowed: allowed.into_inner(),
            relays,
        });
    }
    Ok(peers)
}

#[cfg(test)]
mod tests;
