//! One variant of a plan, with nothing left to choose but the seed.

mod exchange;
mod gateways;
mod path_choice;

use byway_control::ControllerChoice;
use byway_sim::PipeConfig;
use byway_sim::aqm::{self, CodelConfig, FqCodelConfig, RedConfig};
use byway_sim::pipe::{GilbertElliott, Stalls};
use byway_sim::tcp::PartialAck;
use byway_wire::Duration;
pub use exchange::{Attack, ClockSetup, EndChange, EndChoice, ExchangeOptions, StreamSetup, UdpFilter};
pub use gateways::Gateways;
pub use path_choice::PathChoice;
use std::collections::BTreeMap;

/// A world with its traffic and changes, without a seed.
#[derive(Clone, Debug)]
pub struct Setup {
    /// The label of each axis of the sweep for this variant, in the order of the plan.
    pub axes: Vec<(String, String)>,
    /// The simulated time of a run.
    pub duration: Duration,
    /// Whether a run ends as soon as every transfer with a size is over.
    pub until_done: bool,
    /// The time from which measures count by default.
    pub cut: Duration,
    /// Time between two samples.
    pub sample: Duration,
    /// The network that the hosts are in.
    pub network: Network,
    /// The most by which jitter delays packets where hosts enter the network, as a share of the
    /// delay of a host's first link, 0 to 1.
    pub access_jitter: f64,
    /// The changes during the run, in order of time.
    pub changes: Vec<Change>,
    /// The registry that senders ask for relays.
    pub registry: Option<RegistrySetup>,
    /// Pairs of gateways, which carry the flows of hosts. Names are unique.
    pub gateways: Vec<Gateways>,
    /// Bulk data. Names are unique.
    pub transfers: Vec<Transfer>,
    /// The requests that people wait for.
    pub requests: Vec<Requests>,
    /// Traffic that does not respond to congestion.
    pub cross: Vec<Cross>,
    /// The probability that a host is woken an extra time after an event, before it is due.
    pub early_wakes: f64,
    /// An attacker's actions against exchanges.
    pub attack: Attack,
    /// The most bytes that packets in flight may take. A world that could need more is refused.
    pub memory: u64,
}

/// A registry in the network, and the relays that it knows at the beginning.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RegistrySetup {
    /// The node of the registry's host.
    pub at: String,
    /// The nodes of the registry's relays: [`PathChoice::Through`] and [`PathChoice::Any`].
    pub relays: Vec<PathChoice>,
    /// The part of its host's only line that each relay lends, behind the traffic of that host.
    /// `None`: the relays are not on end hosts, and forward all that comes.
    pub lend: Option<LendLimit>,
}

/// The part of its line that an end host lends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LendLimit {
    /// The most that the line has shown.
    Climb,
    /// A rate in bits per second.
    Rate(u64),
}

/// The network before the seed is known.
#[derive(Clone, Debug, Default)]
pub struct Network {
    /// The name and parameters of a topology. `None`: the plan lists all links itself.
    pub named: Option<(String, BTreeMap<String, f64>)>,
    /// Links to add to the topology, or to replace in it.
    pub links: Vec<LinkSetup>,
}

/// A link in one direction, as the plan describes it.
#[derive(Clone, Debug)]
pub struct LinkSetup {
    /// The node at which the link begins.
    pub from: String,
    /// The node at which the link ends.
    pub to: String,
    /// The properties of the link. Of a link of the topology, only those that the plan changes.
    pub spec: LinkSpec,
}

/// The properties of a link. `None` keeps the value of the topology or of the default pipe.
#[derive(Clone, Debug, Default)]
pub struct LinkSpec {
    /// Bits per second, headers included.
    pub rate: Option<u64>,
    /// The propagation delay in one direction.
    pub delay: Option<Duration>,
    /// The limit of the link's queue.
    pub queue: Option<QueueLimit>,
    /// The probability with which a packet is lost, from 0 to 1.
    pub loss: Option<f64>,
    /// The most by which jitter delays a packet.
    pub jitter: Option<Duration>,
    /// When nothing arrives for a while.
    pub stalls: Option<Stalls>,
    /// Probability that bits flip.
    pub corruption: Option<f64>,
    /// Probability that a packet arrives twice.
    pub duplication: Option<f64>,
    /// Probability that a packet is held up, and for how long.
    pub reordering: Option<(f64, Duration)>,
    /// RED, CoDel or FQ-CoDel instead of drop-tail.
    pub discipline: Option<Discipline>,
    /// Lost share and mean burst in packets (Gilbert-Elliott).
    pub burst_loss: Option<(f64, f64)>,
    /// The largest packet in bytes, headers included. Larger ones are dropped.
    pub mtu: Option<usize>,
    /// The number of waiting packets from which on the link marks ECN-capable packets CE.
    pub mark_above: Option<usize>,
    /// Whether the link clears ECN marks.
    pub bleaches: bool,
    /// Times in which nothing passes.
    pub partitions: Vec<(Duration, Duration)>,
}

/// The limit of a line's queue.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum QueueLimit {
    /// A number of packets, without the one being sent.
    Packets(usize),
    /// A number of bytes.
    Bytes(u64),
    /// The bytes that the line sends in this time.
    Time(Duration),
}

/// An active queue management algorithm.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Discipline {
    /// Random Early Detection as in ns-2, thresholds in packets.
    Red {
        /// Least average that drops.
        min: f64,
        /// Average from which (gently) everything drops.
        max: f64,
        /// The probability of a drop at the threshold `max`, from 0 to 1.
        max_p: f64,
        /// Weight of the average.
        weight: f64,
        /// Whether the probability rises on beyond `max`, as in gentle RED.
        gentle: bool,
    },
    /// CoDel, RFC 8289.
    CoDel {
        /// CoDel's TARGET: the queueing delay that it tolerates.
        target: Duration,
        /// CoDel's INTERVAL: the time over which it takes the smallest delay.
        interval: Duration,
    },
    /// FQ-CoDel (RFC 8290). A flow consists of the packets from one address to another.
    FqCodel {
        /// The TARGET of each queue.
        target: Duration,
        /// The INTERVAL of each queue.
        interval: Duration,
        /// Bytes that a flow may send in one turn.
        quantum: u32,
        /// The number of queues.
        queues: usize,
    },
}

/// Something changes at a time.
#[derive(Clone, Debug)]
pub struct Change {
    /// When the change comes.
    pub at: Duration,
    /// The change at that time.
    pub what: Changed,
}

/// A change in the network or at its hosts.
#[derive(Clone, Debug)]
pub enum Changed {
    /// A change of a link in one direction. A change of both directions is two of these.
    Link {
        /// The node at which the link begins.
        from: String,
        /// The node at which the link ends.
        to: String,
        /// The link's new rate in bits per second.
        rate: Option<u64>,
        /// The link's new propagation delay.
        delay: Option<Duration>,
        /// The link's new probability of loss, from 0 to 1.
        loss: Option<f64>,
        /// Whether the link is up from then on.
        up: Option<bool>,
        /// The link's new largest packet in bytes.
        mtu: Option<usize>,
    },
    /// A middlebox in one direction of a link.
    Udp {
        /// The node at which the link begins.
        from: String,
        /// The node at which the link ends.
        to: String,
        /// The packets that the middlebox drops from then on. `None`: it drops none.
        filter: Option<UdpFilter>,
    },
    /// An end of an exchange.
    End {
        /// The transfer's name.
        transfer: String,
        /// The end that changes: sender or receiver.
        end: EndChoice,
        /// The change at that end.
        what: EndChange,
    },
    /// The registry's host is suspended (`false`), or resumed.
    Registry {
        /// Whether the registry is up from then on.
        up: bool,
    },
    /// The relay at a node crashes, or starts again with nothing in memory.
    Relay {
        /// The node that changes.
        node: String,
        /// Whether the relay is up from then on.
        up: bool,
    },
}

/// Bulk data from one host to another over one or more paths.
#[derive(Clone, Debug)]
pub struct Transfer {
    /// The unique name. If the plan asks for several copies, a number is added.
    pub name: String,
    /// The name in the plan, which several transfers may share.
    pub group: String,
    /// The node where the sender sits.
    pub from: NodeChoice,
    /// The node where the receiver sits.
    pub to: NodeChoice,
    /// The routes that the transfer may use.
    pub paths: Vec<PathChoice>,
    /// The kind of connection that carries the transfer.
    pub carrier: Carrier,
    /// The congestion controller of the transfer.
    pub congestion: ControllerChoice,
    /// The amount of data to send.
    pub demand: Demand,
    /// When the transfer begins.
    pub start: Duration,
    /// The most by which the start is delayed at random.
    pub start_jitter: Duration,
    /// The time at which the transfer is stopped. `None`: it is not stopped.
    pub stop: Option<Duration>,
}

/// The node of a host.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum NodeChoice {
    /// The place is this node.
    Node(String),
    /// A node that the seed chooses among those whose names have this prefix. Both ends never share
    /// a node.
    Any(String),
}

/// The program that carries a transfer.
#[derive(Clone, Debug)]
#[expect(clippy::large_enum_variant, reason = "a world has few transfers")]
pub enum Carrier {
    /// A session of byway's engine. Routes through nodes use relays there.
    Session(SessionOptions),
    /// A session between hosts that restart, sleep and move, with many objects and streams.
    Exchange(ExchangeOptions),
    /// Reference TCP hosts, with a subflow for each route.
    Tcp(TcpOptions),
    /// A TCP connection to a relay at each node, and another from there (Wang et al.).
    TcpRelays(TcpOptions),
    /// Reference TCP hosts with one route, behind the gateways with this name.
    Gateways(TcpOptions, String),
}

/// The options in which a session differs from byway's defaults, for the papers' sake.
#[derive(Clone, Debug, Default)]
pub struct SessionOptions {
    /// Losses are reported at the first gap instead of after three later packets.
    pub pnack_first_gap: bool,
    /// ACKs travel by the direct path only.
    pub ack_direct: bool,
    /// RTTs of the direct path after which a SNACK is sent.
    pub tau: Option<f64>,
    /// The largest datagram size, in bytes, that path MTU discovery tries. `None`: all datagrams
    /// have the base size, because a larger datagram takes longer to send, and this delay would
    /// look like a queue.
    pub datagram: Option<usize>,
    /// Sealed with AES-256-GCM and with real bytes instead of the null cipher and lengths only.
    pub real_bytes: bool,
}

/// How reference TCP hosts behave.
#[derive(Clone, Debug)]
pub struct TcpOptions {
    /// Whether hosts behave as Linux does (RACK-TLP, HyStart, immediate ACKs at the start) instead
    /// of as the simulators of the papers.
    pub linux: bool,
    /// ACK every second packet or after 40 ms instead of each.
    pub delayed_ack: bool,
    /// The receive window in bytes. `None`: the window never limits.
    pub receive_window: Option<u64>,
    /// The smallest retransmission timeout.
    pub min_rto: Duration,
    /// Initial window in packets.
    pub initial_window: u32,
    /// Whether selective acknowledgements are used (SACK).
    pub sack: bool,
    /// The reaction of a sender without SACK to a partial ACK.
    pub partial_ack: PartialAck,
    /// Payload of a full segment in bytes.
    pub mss: u32,
    /// Packets that a relay between two TCP connections holds.
    pub relay_packets: u32,
}

impl TcpOptions {
    /// Options of hosts that behave like Linux.
    #[must_use]
    pub fn linux() -> Self {
        Self { linux: true, delayed_ack: true, initial_window: 10, ..Self::default() }
    }
}

impl Default for TcpOptions {
    fn default() -> Self {
        Self {
            linux: false,
            delayed_ack: false,
            receive_window: None,
            min_rto: Duration::from_millis(200),
            initial_window: 2,
            sack: true,
            partial_ack: PartialAck::Steady,
            mss: 1448,
            relay_packets: 10,
        }
    }
}

/// The amount of data that a transfer sends.
#[derive(Clone, Debug, PartialEq)]
pub enum Demand {
    /// Data without end.
    Unlimited,
    /// A number of bytes.
    Size(u64),
    /// A source's highest rates in bits per second of payload, each with the time from which it
    /// applies.
    Rate(Vec<(Duration, u64)>),
}

/// Fetches by clients that wait for replies. The list of requests depends only on the seed, on this
/// part of the plan, and on the end of the run.
#[derive(Clone, Debug)]
pub struct Requests {
    /// The name of the requests.
    pub name: String,
    /// The node of the clients.
    pub client: String,
    /// The node of the server.
    pub server: String,
    /// The times at which requests begin.
    pub arrivals: Arrivals,
    /// The sizes of the answers.
    pub sizes: Sizes,
    /// The congestion controller of the server.
    pub congestion: ControllerChoice,
    /// The options of the hosts' TCP.
    pub tcp: TcpOptions,
    /// The earliest time of the first request.
    pub start: Duration,
    /// The time after which no request begins.
    pub stop: Option<Duration>,
}

/// The times at which requests begin.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Arrivals {
    /// Clients that each send the next request after the last reply and an exponential think time.
    Closed {
        /// The number of clients.
        clients: u32,
        /// The mean of the exponential think time.
        think: Duration,
        /// The number of requests of each client. `None`: until the run ends.
        rounds: Option<u32>,
    },
    /// Whether the last was answered or not.
    Open {
        /// Number of requests. 0: until the end.
        count: u32,
        /// The time between two requests, or its mean.
        every: Duration,
        /// Whether the times between requests are exponential.
        poisson: bool,
    },
}

/// How large answers are.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Sizes {
    /// Sizes of web pages, with a mean of 7.8 KB and at most 1.7 MB (Harp, IV-A).
    Web,
    /// All answers have this size in bytes.
    Fixed(u64),
}

/// A source of cross traffic with a constant bit rate.
#[derive(Clone, Debug)]
pub struct Cross {
    /// The name of the traffic.
    pub name: String,
    /// The node that sends.
    pub from: String,
    /// The node that receives.
    pub to: String,
    /// Bits per second on the wire.
    pub rate: u64,
    /// Bytes of a packet on the wire.
    pub packet: u32,
    /// Exponential times between packets.
    pub poisson: bool,
    /// When the traffic begins.
    pub start: Duration,
    /// When the traffic ends.
    pub stop: Option<Duration>,
    /// Whether the delay of each packet is recorded.
    pub delays: bool,
}

impl LinkSpec {
    /// `pipe` with the properties that this names.
    #[must_use]
    pub fn over(&self, pipe: PipeConfig) -> PipeConfig {
        let mut pipe = PipeConfig { ..pipe };
        if let Some(rate) = self.rate {
            pipe.rate = Some(rate);
        }
        if let Some(delay) = self.delay {
            pipe.delay = delay;
        }
        match self.queue {
            Some(QueueLimit::Packets(packets)) => {
                (pipe.queue_packets, pipe.queue_bytes) = (packets, u64::MAX)
            }
            Some(QueueLimit::Bytes(bytes)) => (pipe.queue_packets, pipe.queue_bytes) = (usize::MAX, bytes),
            Some(QueueLimit::Time(time)) => pipe = pipe.queue_time(time),
            None => {}
        }
        if let Some(loss) = self.loss {
            pipe.loss = loss;
        }
        if let Some(jitter) = self.jitter {
            pipe.jitter = jitter;
        }
        if let Some(stalls) = self.stalls {
            pipe.stalls = Some(stalls);
        }
        if let Some(corruption) = self.corruption {
            pipe.corruption = corruption;
        }
        if let Some(duplication) = self.duplication {
            pipe.duplication = duplication;
        }
        if let Some((probability, delay)) = self.reordering {
            pipe = pipe.reordering(probability, delay);
        }
        if let Some(discipline) = self.discipline {
            pipe.discipline = discipline.of_pipe();
        }
        if let Some((share, length)) = self.burst_loss {
            pipe.bursts = Some(GilbertElliott::of(share, length));
        }
        if let Some(mtu) = self.mtu {
            pipe.mtu = Some(mtu);
        }
        if let Some(packets) = self.mark_above {
            pipe.mark_above = Some(packets);
        }
        let zero = byway_wire::Instant::ZERO;
        pipe.partitions.extend(self.partitions.iter().map(|&(from, until)| (zero + from, zero + until)));
        pipe
    }
}

impl Discipline {
    /// The queue discipline for a pipe's configuration.
    fn of_pipe(self) -> aqm::Discipline {
        match self {
            Self::Red { min, max, max_p, weight, gentle } => {
                aqm::Discipline::Red(RedConfig { max_p, weight, gentle, ..RedConfig::new(min, max) })
            }
            Self::CoDel { target, interval } => {
                aqm::Discipline::Codel(CodelConfig { target, interval, ..CodelConfig::default() })
            }
            Self::FqCodel { target, interval, quantum, queues } => {
                let codel = CodelConfig { target, interval, ..CodelConfig::default() };
                aqm::Discipline::FqCodel(FqCodelConfig { codel, quantum, queues })
            }
        }
    }
}
