//! `gw.toml`: what a gateway is told, and the line of every mistake in it. `docs/gateway.md` says
//! what it may say.

mod config_schema;
mod config_source;
mod relay;

pub use config_source::ConfigError;
pub use relay::{RELAY_PORT, RelayConfig};

use crate::GatewayError;
use byway_control::{ChoiceError, Class, ControllerChoice, SenderKind, controller};
use byway_engine::handshake;
use byway_engine::seal::Suites;
use byway_gateway::gateway_options::GATEWAY_OPTIONS;
use byway_gateway::kernel::{DEFAULT_DEVICE, KernelInputs, KernelPlan};
use byway_gateway::machine::{self, Settings};
use byway_gateway::rules::Rules;
use byway_gateway::serves::{MAX_PORTS, Served, announce};
use byway_gateway::{Ports, Prefix};
use byway_registry::word::{self as registry, WordKind};
use byway_transfer::address::Endpoint;
use byway_transfer::default_dscp;
use byway_transfer::identity::{Identity, PublicKey};
use byway_transfer::state_directory::StateDir;
use byway_wire::Dscp;
use byway_wire::relay::Word;
use config_schema::{File, GatewayText, GuestText, OptionsText, PeerText};
use config_source::{As, ConfigSource};
use relay::RelayText;
use std::fs;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use toml::Spanned;

/// The default UDP port of a gateway.
pub const GATEWAY_PORT: u16 = 4749;
/// The default firewall mark of captured packets. The routing table for these packets and the
/// priority of its routing rule have the same number. 0x6277 is "bw" in ASCII.
pub const DEFAULT_MARK: u16 = 0x6277;

/// Bytes of the longest name of a device (Linux, `IFNAMSIZ` without the last zero).
const MAX_DEVICE_NAME_LEN: usize = 15;

/// The configuration of a gateway, as read from its file.
#[derive(Clone, Debug)]
pub struct GatewayConfig {
    /// The path of the configuration file.
    pub file: PathBuf,
    /// Whether the file holds a secret (a relay word) and can be read by others.
    pub exposed: bool,
    /// The gateway's key file; `None`: this host's identity.
    pub key: Option<PathBuf>,
    /// The addresses and ports that the gateway listens on. Empty: all addresses, on
    /// [`GATEWAY_PORT`].
    pub listen: Vec<SocketAddr>,
    /// The name of the gateway's TUN device.
    pub tun: String,
    /// The mark, table and priority of the gateway's kernel rules.
    pub mark: u16,
    /// The socket that answers `byway gateway status`. `None`: the default of
    /// [`GatewayConfig::status_socket`].
    pub status: Option<PathBuf>,
    /// The congestion controller of the gateway's sessions.
    pub congestion: ControllerChoice,
    /// The DSCP code point of the gateway's packets. `None`: the default.
    pub dscp: Option<Dscp>,
    /// The networks of the hosts behind the gateway.
    pub serves: Vec<Served>,
    /// The other gateways with which this one has sessions.
    pub peers: Vec<PeerSection>,
    /// The rules that decide which flows are background.
    pub rules: Rules,
    /// The settings of the gateway.
    pub settings: Settings,
    /// Hosts that may ask to be served.
    pub guests: Vec<GuestSection>,
    /// The relay that runs beside the gateway. `None`: no relay runs.
    pub relay: Option<RelayConfig>,
    /// A registry to ask for relays.
    pub registry: Option<registry::RegistryWord>,
    /// Whether the command line demands `observe`, and `fail_closed`, whatever the file says.
    pub insisted: [bool; 2],
}

/// A host that may ask to be served.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GuestSection {
    /// The guest's name, for people.
    pub name: String,
    /// The guest's public key.
    pub key: PublicKey,
    /// Networks in which the guest may be served. Empty: any address.
    pub hosts: Vec<Prefix>,
    /// Ports at which the guest may be served. Empty: all ports.
    pub ports: Vec<Ports>,
}

/// Another gateway, with which this one may have a session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PeerSection {
    /// The peer's name, for people.
    pub name: String,
    /// The peer's public key.
    pub key: PublicKey,
    /// The peer's addresses and ports. Empty: only the peer connects to this gateway.
    pub addresses: Vec<SocketAddr>,
    /// Networks of hosts that the peer may announce as served by it.
    pub allowed: Vec<Prefix>,
    /// Relay words of relays through which the peer can be reached.
    pub relays: Vec<Word>,
}

impl GuestSection {
    /// Returns a sentence about the hosts and ports for which the guest may be served.
    #[must_use]
    pub fn explain(&self) -> String {
        let list = |texts: Vec<String>, any: &str, before: &str| match texts.as_slice() {
            [] => any.to_owned(),
            texts => format!("{before}{}", texts.join(", ")),
        };
        let hosts = list(self.hosts.iter().map(ToString::to_string).collect(), "wherever it is", "in ");
        let ports = list(self.ports.iter().map(ToString::to_string).collect(), "", ", ports ");
        format!("The guest {} may ask to be served at its own address, {hosts}{ports}.", self.name)
    }
}

impl GatewayConfig {
    /// Reads a configuration file.
    ///
    /// # Errors
    /// The file cannot be read, or its content is wrong. Wrong content is a usage error that names
    /// the line.
    pub fn read(file: &Path) -> Result<Self, GatewayError> {
        let unread = |source| GatewayError::Unread { file: file.to_owned(), source };
        let text = fs::read_to_string(file).map_err(unread)?;
        let mode = fs::metadata(file).map_or(0, |metadata| metadata.mode());
        let mut config = Self::parse(file, &text)?;
        config.exposed &= mode & 0o077 != 0;
        Ok(config)
    }

    /// Returns a warning if other users of the host can read a file with a secret. `None`: they
    /// cannot, or it has none.
    #[must_use]
    pub fn exposure(&self) -> Option<String> {
        let file = self.file.display();
        self.exposed.then(|| {
            format!(
                "other users can read {file}, which holds a relay's secret word: run `chmod 600 {file}`, or write `@FILE` instead"
            )
        })
    }

    /// Reads the configuration `text` of the file at `file`. Relative paths in it are relative to
    /// the file's directory.
    ///
    /// # Errors
    /// What is wrong, and in which line.
    pub fn parse(file: &Path, text: &str) -> Result<Self, ConfigError> {
        let directory = file.parent().unwrap_or(Path::new(""));
        let place = ConfigSource { file, text };
        let (File { gateway, peer, rule, relay, guest, .. }, options) = File::read(&place)?;
        let Some(gateway) = gateway else {
            return Err(place.whole("there is no [gateway] table: say there what this gateway serves"));
        };
        let mut words = peer.iter().flat_map(|peer| &peer.as_ref().relays).chain(&gateway.registry);
        let exposed = words.any(|word| !word.as_ref().starts_with('@'))
            || relay.as_ref().is_some_and(RelayText::has_word);
        let relay = relay.map(|relay| relay.read(&place, directory)).transpose()?;
        let registry = relay::registry(&place, directory, gateway.registry.as_ref(), WordKind::Use)?;
        let settings = settings(&place, &options)?;
        let guests = guests(&place, guest)?;
        let serves = serves(&place, &gateway, !guests.is_empty())?;
        let congestion = congestion(&place, gateway.congestion.as_ref())?;
        let dscp = marking(&place, gateway.dscp.as_ref())?;
        let tun = tun(&place, gateway.tun)?;
        let peers = peers(&place, directory, peer)?;
        let mark = gateway.mark.map_or(Ok(DEFAULT_MARK), |mark| match *mark.as_ref() {
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
            listen: gateway.listen.iter().map(|asked: &As<Endpoint>| asked.0.or_port(GATEWAY_PORT)).collect(),
            tun,
            mark,
            status: gateway.status.map(|status| directory.join(status)),
            congestion,
            dscp,
            serves,
            peers,
            rules: Rules { rules: rule },
            settings,
            guests,
            relay,
            registry,
            insisted: [false; 2],
        })
    }

    /// Applies the options of the command line: to only observe, and to fail closed.
    pub fn insist(&mut self, insisted: [bool; 2]) {
        self.insisted = insisted;
        self.settings.observe |= insisted[0];
        self.settings.fail_closed |= insisted[1];
    }

    /// The file of the gateway's key pair: the one that the configuration names, or that of this
    /// host's identity. `state`: the command line's state directory.
    ///
    /// # Errors
    /// The configuration names no key file, and no state directory is known.
    pub fn key_file(&self, state: Option<&Path>) -> Result<PathBuf, GatewayError> {
        match &self.key {
            Some(file) => Ok(file.clone()),
            None => Ok(StateDir::locate(state, |name| std::env::var_os(name))?.identity_path()),
        }
    }

    /// Fails if a peer has this gateway's own key.
    ///
    /// # Errors
    /// As said; a usage error with what to do.
    pub fn own_key(&self, identity: &Identity) -> Result<(), GatewayError> {
        match self.peers.iter().find(|peer| peer.key == identity.public()) {
            Some(peer) => Err(GatewayError::OwnKey { file: self.file.clone(), peer: peer.name.clone() }),
            None => Ok(()),
        }
    }

    /// The configuration of the gateway's `machine`. `serial`: the serial number of its
    /// [announcement](byway_gateway::serves::AnnouncementPart::serial). It must grow at each start:
    /// for example, use the Unix time in seconds.
    ///
    /// # Errors
    /// A peer has this gateway's own key.
    pub fn site(
        &self,
        identity: &Identity,
        seed: [u8; 32],
        serial: u32,
    ) -> Result<machine::MachineConfig, GatewayError> {
        self.own_key(identity)?;
        let peer = |peer: &PeerSection| machine::PeerConfig {
            name: peer.name.clone(),
            key: handshake::PublicKey(peer.key.0),
            addresses: peer.addresses.clone(),
            allowed: peer.allowed.clone(),
            relays: peer.relays.iter().map(|word| (word.clone(), None)).collect(),
        };
        let guest = |guest: &GuestSection| machine::GuestConfig {
            name: guest.name.clone(),
            key: handshake::PublicKey(guest.key.0),
            hosts: guest.hosts.clone(),
            ports: guest.ports.clone(),
        };
        Ok(machine::MachineConfig {
            identity: handshake::Identity::from_secret(*identity.secret().expose()),
            suites: Suites::SECURE,
            seed,
            connection: byway_engine::Config {
                dscp: self.dscp.unwrap_or_else(|| default_dscp(&self.congestion.name)),
                ..byway_engine::Config::default()
            },
            congestion: self.congestion.clone(),
            peers: self.peers.iter().map(peer).collect(),
            rules: self.rules.clone(),
            serves: self.serves.clone(),
            serial,
            guests: self.guests.iter().map(guest).collect(),
            settings: self.settings,
        })
    }

    /// The kernel configuration while no guest is served. It has routes for all hosts that peers
    /// may announce.
    #[must_use]
    pub fn plan(&self) -> KernelPlan {
        let everywhere =
            [Prefix::of(Ipv4Addr::UNSPECIFIED.into(), 0), Prefix::of(Ipv6Addr::UNSPECIFIED.into(), 0)];
        let may = |guest: &GuestSection| match guest.hosts.as_slice() {
            [] => everywhere.to_vec(),
            hosts => hosts.to_vec(),
        };
        let possible: Vec<Prefix> = self.guests.iter().flat_map(may).collect();
        KernelPlan { routing: self.plan_for(&possible).routing, ..self.plan_for(&[]) }
    }

    /// Returns the kernel configuration while these guests are served, too.
    #[must_use]
    pub fn plan_for(&self, guests: &[Prefix]) -> KernelPlan {
        let here: Vec<Prefix> =
            self.serves.iter().map(|served| served.hosts).chain(guests.iter().copied()).collect();
        let there: Vec<Prefix> = self.elsewhere().collect();
        KernelPlan::new(KernelInputs {
            tun: &self.tun,
            mark: self.mark,
            here: &here,
            there: &there,
            rules: &self.rules,
            fail_closed: self.settings.fail_closed,
        })
    }

    /// Networks of all hosts that peers may announce.
    pub fn elsewhere(&self) -> impl Iterator<Item = Prefix> {
        self.peers.iter().flat_map(|peer| peer.allowed.iter().copied())
    }

    /// Returns the socket for `byway gateway status`. Its name contains the device, so that several
    /// gateways can run on a host.
    #[must_use]
    pub fn status_socket(&self) -> PathBuf {
        self.status.clone().unwrap_or_else(|| status_socket(&self.tun))
    }
}

/// The default status socket of the gateway with the TUN device `tun`.
#[must_use]
pub fn status_socket(tun: &str) -> PathBuf {
    Path::new("/run").join(format!("byway-gateway-{tun}.sock"))
}

/// Reads the settings from the file's options. They are set in the order of `GATEWAY_OPTIONS`,
/// because some depend on others.
fn settings(place: &ConfigSource<'_>, told: &OptionsText) -> Result<Settings, ConfigError> {
    let mut settings = Settings::default();
    for option in GATEWAY_OPTIONS {
        let Some(value) = told.of(option) else { continue };
        let wrong = |what: String| place.at(value.span(), &what);
        option
            .set(&mut settings, config_schema::value(option, value.as_ref()).map_err(wrong)?)
            .map_err(wrong)?;
    }
    Ok(settings)
}

fn serves(
    place: &ConfigSource<'_>,
    gateway: &GatewayText,
    has_guests: bool,
) -> Result<Vec<Served>, ConfigError> {
    let Some(told) = &gateway.serves else {
        let what = "missing field `serves`: name the prefixes of the hosts here, such as \"192.168.1.0/24\"";
        return if has_guests { Ok(Vec::new()) } else { Err(place.whole(what)) };
    };
    let serves: Vec<Served> = told.as_ref().iter().map(|served| served.0.clone()).collect();
    if serves.is_empty() && !has_guests {
        return Err(place.at(
            told.span(),
            "a gateway that serves no hosts carries nothing: name their prefixes, such as \"192.168.1.0/24\"",
        ));
    }
    if let Some(served) = serves.iter().find(|served| served.ports.len() > MAX_PORTS) {
        let what = format!("{} has more than {MAX_PORTS} ranges of ports", served.hosts);
        return Err(place.at(told.span(), &what));
    }
    announce(0, &serves).map(|_| serves).ok_or_else(|| {
        place.at(told.span(), "that is more than can be announced to peers: use wider prefixes")
    })
}

fn congestion(
    place: &ConfigSource<'_>,
    told: Option<&Spanned<String>>,
) -> Result<ControllerChoice, ConfigError> {
    let Some(told) = told else {
        return Ok(ControllerChoice {
            name: Class::Background.default_name().to_owned(),
            ..ControllerChoice::default()
        });
    };
    let chosen = told.as_ref().parse().and_then(|choice| {
        controller(&choice, SenderKind::Session, 0)?;
        Ok(choice)
    });
    chosen.map_err(|error: ChoiceError| place.at(told.span(), &error.to_string()))
}

fn marking(place: &ConfigSource<'_>, told: Option<&Spanned<String>>) -> Result<Option<Dscp>, ConfigError> {
    let Some(told) = told else { return Ok(None) };
    match told.as_ref().as_str() {
        "le" => Ok(Some(Dscp::LowerEffort)),
        "none" => Ok(Some(Dscp::BestEffort)),
        other => {
            let what = format!("sessions are not marked as `{other}`: choose one of le, none");
            Err(place.at(told.span(), &what))
        }
    }
}

fn tun(place: &ConfigSource<'_>, told: Option<Spanned<String>>) -> Result<String, ConfigError> {
    let Some(told) = told else { return Ok(DEFAULT_DEVICE.to_owned()) };
    let good = |name: &str| {
        let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
        name.len() <= MAX_DEVICE_NAME_LEN && name.chars().all(plain) && !name.trim_matches('.').is_empty()
    };
    if !good(told.as_ref()) {
        let what = "the name of a device has 1 to 15 letters, digits, `-`, `_` or `.`";
        return Err(place.at(told.span(), what));
    }
    Ok(told.into_inner())
}

fn guests(place: &ConfigSource<'_>, told: Vec<Spanned<GuestText>>) -> Result<Vec<GuestSection>, ConfigError> {
    let mut guests: Vec<GuestSection> = Vec::with_capacity(told.len());
    for guest in told {
        let GuestText { name, key, hosts, ports } = guest.into_inner();
        if guests.iter().any(|other| other.name == *name.as_ref()) {
            return Err(place.at(name.span(), &format!("there is another guest `{}`", name.as_ref())));
        }
        if let Some(other) = guests.iter().find(|other| other.key == key.as_ref().0) {
            return Err(place.at(key.span(), &format!("the guest `{}` has this key, too", other.name)));
        }
        if ports.as_ref().is_some_and(|ports| ports.as_ref().len() > MAX_PORTS) {
            let what = format!("a guest has at most {MAX_PORTS} ranges of ports");
            return Err(place.at(name.span(), &what));
        }
        let ports = ports.map(Spanned::into_inner).unwrap_or_default();
        guests.push(GuestSection { name: name.into_inner(), key: key.into_inner().0, hosts, ports });
    }
    Ok(guests)
}

fn peers(
    place: &ConfigSource<'_>,
    directory: &Path,
    told: Vec<Spanned<PeerText>>,
) -> Result<Vec<PeerSection>, ConfigError> {
    let mut peers: Vec<PeerSection> = Vec::with_capacity(told.len());
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
        peers.push(PeerSection {
            name: name.into_inner(),
            key: key.into_inner().0,
            addresses: addresses.into_iter().map(|address| address.0).collect(),
            allowed: allowed.into_inner(),
            relays,
        });
    }
    Ok(peers)
}
