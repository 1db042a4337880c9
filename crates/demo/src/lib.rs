//! The demo: a file transfer on one machine, with a sender, a receiver and two relays. Their
//! packets go over sockets on loopback, through the link models of the simulator, which run in real
//! time.

mod error;
pub mod lines;
pub mod network;

pub use error::DemoError;

use byway_control::Class;
use byway_engine::Config;
use byway_files::{Modes, SourceOptions};
use byway_net::Socket;
use byway_transfer::identity::Identity;
use byway_transfer::secret::Secret;
use byway_transfer::ticket::Ticket;
use byway_transfer::{
    Destination, Payload, Receiving, ReceivingDirectory, ReceivingPlan, Sending, SendingPlan, SentTransfer,
    TicketOwner, TransferEvent,
};
use byway_wire::Duration;
use byway_wire::relay::Word;
use error::Result;
use lines::PathSpec;
use network::RelayLine;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::Path;
use std::sync::Arc;

/// Time between two looks at progress.
const POLL_INTERVAL: Duration = Duration::from_millis(100);
/// Time that a receiver may take to end after its sender learned that everything arrived.
const GOODBYE_TIMEOUT: Duration = Duration::from_secs(5);

/// The network of a demo, used in all its rounds.
pub struct DemoNetwork {
    direct: PathSpec,
    relayed: Vec<(PathSpec, RelayLine)>,
}

impl DemoNetwork {
    /// Lays the lines and sets the relays up.
    ///
    /// # Errors
    /// The system gives no sockets or threads.
    pub fn new(lines: &[PathSpec; 3]) -> Result<Self> {
        let [direct, detours @ ..] = lines;
        let relayed = (1..).zip(detours).map(|(id, line)| Ok((line.clone(), network::relayed(line, id)?)));
        Ok(Self { direct: direct.clone(), relayed: relayed.collect::<Result<_>>()? })
    }

    /// The demo's name of the line by which datagrams to `remote` leave.
    #[must_use]
    pub fn name(&self, remote: SocketAddr) -> &'static str {
        let of_relay = self.relayed.iter().find(|(_, relay)| relay.word.relays().contains(&remote));
        of_relay.map_or(self.direct.name, |(line, _)| line.name)
    }

    fn words(&self) -> Vec<Word> {
        self.relayed.iter().map(|(_, relay)| relay.word.clone()).collect()
    }
}

/// Sends the directory tree at `source` to a new receiver, which writes to `sink`. With `detours`,
/// packets also take the paths through both relays. `None`: `watch` stopped the transfer by
/// returning false.
///
/// # Errors
/// The errors of a transfer.
pub fn transfer(
    network: &DemoNetwork,
    source: &Path,
    sink: &Path,
    detours: bool,
    mut watch: impl FnMut(TransferEvent) -> bool,
) -> Result<Option<SentTransfer>> {
    let (sender, receiver) = (Identity::generate()?, Identity::generate()?);
    let permission = Secret::new(byway_net::seed()?);
    let socket = Socket::bind(SocketAddr::new(Ipv4Addr::LOCALHOST.into(), 0))?;
    let direct = network::direct(&network.direct, socket.address())?;
    let ticket = Ticket {
        key: receiver.public(),
        permission: permission.clone(),
        addresses: vec![direct.front],
        relays: Vec::new(),
        names: Vec::new(),
    };
    let receiving = Receiving::start(ReceivingPlan {
        identity: receiver,
        permission,
        allow: Vec::new(),
        owner: TicketOwner::default(),
        destination: Destination::Directory(ReceivingDirectory {
            path: sink.to_owned(),
            modes: Modes::Kept,
            deletes: false,
        }),
        forwards: Default::default(),
        most_forwards: 0,
        once: true,
        limit: None,
        relays: Vec::new(),
        sockets: vec![socket],
        listeners: Vec::new(),
        config: Config::default(),
    })?;
    let sending = Sending::start(SendingPlan {
        identity: sender,
        ticket,
        registry: None,
        yields_to_host: false,
        relays: if detours { network.words() } else { Vec::new() },
        payload: Payload::Tree {
            paths: vec![source.to_owned()],
            options: SourceOptions { special_modes: true, ..SourceOptions::default() },
            selection: Arc::default(),
        },
        below: None,
        journals: None,
        controller: Class::Normal.controller(u64::from_be_bytes(byway_net::seed()?)),
        sockets: vec![Socket::bind(SocketAddr::new(Ipv4Addr::LOCALHOST.into(), 0))?],
        follow: None,
        tcp: false,
        tcp_congestion: byway_net::TcpCongestion::Cubic,
        byte_limit: None,
        config: Config::default(),
    })?;
    let mut goes_on = true;
    while !sending.is_over() {
        while let Some(news) = sending.next(POLL_INTERVAL) {
            goes_on = goes_on && watch(news);
        }
        while receiving.next(Duration::ZERO).is_some() {}
        if !goes_on {
            sending.cancel();
        }
    }
    let mut sent = sending.join()?;
    if !goes_on {
        return Ok(None);
    }
    std::mem::replace(&mut sent.outcome, Ok(())).map_err(DemoError::Transfer)?;
    // The receiver hears the goodbye, or has everything and may go without.
    let ticks = GOODBYE_TIMEOUT.as_millis() / POLL_INTERVAL.as_millis();
    for _ in 0..ticks {
        if receiving.is_over() {
            break;
        }
        while receiving.next(POLL_INTERVAL).is_some() {}
    }
    receiving.cancel();
    receiving.join()?;
    Ok(Some(sent))
}
