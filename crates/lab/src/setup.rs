//! One variant of a plan, with nothing left to choose but the seed.

mod exchange;
mod gateways;

use byway_control::ControllerChoice;
use byway_sim::PipeConfig;
use byway_sim::aqm::{self, CodelConfig, FqCodelConfig, RedConfig};
use byway_sim::pipe::{GilbertElliott, Stalls};
use byway_wire::Duration;
pub use exchange::{Attack, ClockSetup, EndChange, EndChoice, ExchangeOptions, StreamSetup, UdpFilter};
pub use gateways::Gateways;
use std::collections::BTreeMap;

/// A world and what happens in it.
#[derive(Clone, Debug)]
pub struct Setup {
    /// The label of each axis of the sweep for this variant, in the order of the plan.
    pub axes: Vec<(String, String)>,
    /// The simulated time of a run.
    pub duration: Duration,
    /// Whether a run ends as soon as every transfer of a size is over, one way or the other.
    pub until_done: bool,
    /// Where measures begin unless they say otherwise.
    pub cut: Duration,
    /// How often things are noted.
    pub sample: Duration,
    /// The network that the hosts are in.
    pub network: Network,
    /// The most by which jitter delays packets where hosts enter the network, as a share of the
    /// delay of a host's first link, 0 to 1.
    pub access_jitter: f64,
    /// What changes during the run, in order of time.
    pub changes: Vec<Change>,
    /// Where senders ask for relays.
    pub registry: Option<RegistrySetup>,
    /// Pairs of gateways, which carry the flows of hosts. Names are unique.
    pub gateways: Vec<Gateways>,
    /// Bulk data. Names are unique.
    pub transfers: Vec<Transfer>,
    /// What people wait for.
    pub requests: Vec<Requests>,
    /// Traffic that does not respond to congestion.
    pub cross: Vec<Cross>,
    /// The probability that a host is woken once more after an event, before it is due.
    pub early_wakes: f64,
    /// What an attacker does to exchanges.
    pub attack: Attack,
    /// The most bytes that packets under way may take; a world that could need more is refused.
    pub memory: u64,
}

/// A registry in the network, and the relays that it knows when the world begins.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RegistrySetup {
    /// The node where it sits.
    pub at: String,
    /// The nodes of its relays: [`PathChoice::Through`] and [`PathChoice::Any`].
    pub relays: Vec<PathChoice>,
    /// The relays are end hosts, which lend their only line behind their own traffic. `None`: they
    /// forward whatever comes.
    pub lend: Option<LendLimit>,
}

/// How much of its line a host lends.
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
    /// A named topology and its parameters.
    pub named: Option<(String, BTreeMap<String, f64>)>,
    /// Links that are added, or that replace those of the named topology.
    pub links: Vec<LinkSetup>,
}

/// A link in one direction.
#[derive(Clone, Debug)]
pub struct LinkSetup {
    /// The node at which the link begins.
    pub from: String,
    /// The node at which the link ends.
    pub to: String,
    /// What it is like; where the plan changes a link of a named topology, only the keys that it
    /// names.
    pub spec: LinkSpec,
}

/// What a plan says of a link: what is `None` stays as the topology (or the default pipe) has it.
#[derive(Clone, Debug, Default)]
pub struct LinkSpec {
    /// Bits per second, headers included.
    pub rate: Option<u64>,
    /// The propagation delay, one way.
    pub delay: Option<Duration>,
    /// How much may wait in the link's queue.
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
    /// The largest packet in bytes, headers included; larger ones are dropped.
    pub mtu: Option<usize>,
    /// ECN-capable packets that find this many waiting, or more, are marked CE.
    pub mark_above: Option<usize>,
    /// Whether ECN marks are cleared on the way.
    pub bleaches: bool,
    /// Times in which nothing passes.
    pub partitions: Vec<(Duration, Duration)>,
}

/// What may wait before a line.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum QueueLimit {
    /// A number of packets, the one being sent not counted.
    Packets(usize),
    /// A number of bytes.
    Bytes(u64),
    /// As many bytes as the line sends in this time.
    Time(Duration),
}

/// An active queue management.
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
        /// CoDel's TARGET, the delay that it accepts.
        target: Duration,
        /// CoDel's INTERVAL, over which it looks for the least delay.
        interval: Duration,
    },
    /// FQ-CoDel, RFC 8290. A flow is what goes from one address to another.
    FqCodel {
        /// The TARGET of each queue.
        target: Duration,
        /// The INTERVAL of each queue.
        interval: Duration,
        /// Bytes that a flow sends in its turn.
        quantum: u32,
        /// How many queues there are.
        queues: usize,
    },
}

/// Something changes at a time.
#[derive(Clone, Debug)]
pub struct Change {
    /// When the change comes.
    pub at: Duration,
    /// What changes at that time.
    pub what: Changed,
}

/// What changes in the network.
#[derive(Clone, Debug)]
pub enum Changed {
    /// A link (both directions of it are two changes).
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
    /// A middlebox on a link, which is an attribute of one direction.
    Udp {
        /// The node at which the link begins.
        from: String,
        /// The node at which the link ends.
        to: String,
        /// What it drops from then on; `None`: nothing.
        filter: Option<UdpFilter>,
    },
    /// An end of an exchange.
    End {
        /// The transfer's name.
        transfer: String,
        /// Which of its ends.
        end: EndChoice,
        /// What happens to it.
        what: EndChange,
    },
    /// The registry's host is suspended (`false`), or goes on.
    Registry {
        /// Whether it is up from now on.
        up: bool,
    },
    /// The relay at a node crashes, or starts again with nothing in memory.
    Relay {
        /// The node that changes.
        node: String,
        /// Whether it is up from now on.
        up: bool,
    },
}

/// Bulk data from one host to another over one or more paths.
#[derive(Clone, Debug)]
pub struct Transfer {
    /// Unique name: the plan's, with a number where it asks for several.
    pub name: String,
    /// The plan's name: several may share it.
    pub group: String,
    /// The node where the sender sits.
    pub from: NodeChoice,
    /// The node where the receiver sits.
    pub to: NodeChoice,
    /// The ways it may go.
    pub paths: Vec<PathChoice>,
    /// The kind of connection that carries the transfer.
    pub carrier: Carrier,
    /// The congestion controller of the transfer.
    pub congestion: ControllerChoice,
    /// What there is to send.
    pub demand: Demand,
    /// When the transfer begins.
    pub start: Duration,
    /// The greatest random time by which it begins later.
    pub start_jitter: Duration,
    /// When it ends if it has not yet.
    pub stop: Option<Duration>,
}

/// Where a host sits.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum NodeChoice {
    /// The place is this node.
    Node(String),
    /// At a node chosen by the seed among those whose names begin so; never both ends at one.
    Any(String),
}

/// A way through the network.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum PathChoice {
    /// As the routers route.
    Direct,
    /// The path leads through this node.
    Through(String),
    /// Through nodes chosen by the seed: how their names begin, and how many are chosen.
    Any(String, usize),
    /// Through relays that the registry names when it is asked.
    Registry,
}

/// What carries a transfer.
#[derive(Clone, Debug)]
#[expect(clippy::large_enum_variant, reason = "a world has few transfers")]
pub enum Carrier {
    /// A session of byway's engine; ways through nodes go over relays there.
    Session(SessionOptions),
    /// A session between hosts that restart, sleep and move, with many objects and streams.
    Exchange(ExchangeOptions),
    /// Reference TCP hosts, a subflow for each way.
    Tcp(TcpOptions),
    /// A TCP connection to a relay at each node, and another from there (Wang et al.).
    TcpRelays(TcpOptions),
    /// Reference TCP hosts that know of one way, behind the gateways of this name.
    Gateways(TcpOptions, String),
}

/// How a session departs from byway's own habits, for the papers' sake.
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
    /// Receive window in bytes; `None`: never in the way.
    pub receive_window: Option<u64>,
    /// The least retransmission timeout.
    pub min_rto: Duration,
    /// Initial window in packets.
    pub initial_window: u32,
    /// Whether selective acknowledgements are used (SACK).
    pub sack: bool,
    /// Payload of a full segment in bytes.
    pub mss: u32,
    /// Packets that a relay between two TCP connections holds.
    pub relay_packets: u32,
}

impl TcpOptions {
    /// Hosts as Linux has them.
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
            mss: 1448,
            relay_packets: 10,
        }
    }
}

/// What there is to send.
#[derive(Clone, Debug, PartialEq)]
pub enum Demand {
    /// As much as it can.
    Unlimited,
    /// A number of bytes.
    Size(u64),
    /// From each time on, the bits per second of payload at most.
    Rate(Vec<(Duration, u64)>),
}

/// Fetches by clients that wait for them. The list of requests depends on the seed and on nothing
/// else of the plan.
#[derive(Clone, Debug)]
pub struct Requests {
    /// The name of the requests.
    pub name: String,
    /// Where the clients sit.
    pub client: String,
    /// Where the server sits.
    pub server: String,
    /// How requests follow each other.
    pub arrivals: Arrivals,
    /// How large they are.
    pub sizes: Sizes,
    /// The server's congestion controller.
    pub congestion: ControllerChoice,
    /// The options of the hosts' TCP.
    pub tcp: TcpOptions,
    /// The first not before.
    pub start: Duration,
    /// The time after which no request begins.
    pub stop: Option<Duration>,
}

/// How requests follow each other.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Arrivals {
    /// Clients of which each asks again after its last answer and an exponential think time.
    Closed {
        /// How many clients there are.
        clients: u32,
        /// The mean of the exponential think time.
        think: Duration,
        /// How often each of them asks; `None`: until the end.
        rounds: Option<u32>,
    },
    /// Whether the last was answered or not.
    Open {
        /// How many; 0: until the end.
        count: u32,
        /// Time between two, or its mean.
        every: Duration,
        /// Whether the times between requests are exponential.
        poisson: bool,
    },
}

/// How large answers are.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Sizes {
    /// As pages of the web with a mean of 7.8 KB and at most 1.7 MB (Harp, IV-A).
    Web,
    /// All the same, in bytes.
    Fixed(u64),
}

/// A constant bit rate.
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
    /// Whether the delay of each packet is noted.
    pub delays: bool,
}

impl LinkSpec {
    /// `pipe` with what this says of it.
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
    /// The discipline as a pipe is told.
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
