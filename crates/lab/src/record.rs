//! What one run of one variant yields: everything that measures, tables and figures are made of.

use serde::{Deserialize, Serialize};

/// What happened. All series have one value per sample, the first at time zero.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Record {
    /// The label of each axis for this variant.
    pub axes: Vec<(String, String)>,
    /// The seed of the run.
    pub seed: u64,
    /// The world's hash: the same for the same seed, on every machine.
    pub trace: u64,
    /// Seconds between samples.
    pub sample: f64,
    /// Seconds of simulated time.
    pub duration: f64,
    /// Second from which measures count unless they say otherwise.
    pub cut: f64,
    /// Packets that links delivered.
    pub packets: u64,
    /// The records of bulk transfers.
    pub transfers: Vec<TransferRecord>,
    /// What people waited for.
    pub requests: Vec<RequestsRecord>,
    /// Links on the ways of transfers and requests.
    pub links: Vec<LinkRecord>,
    /// Cross traffic whose delays were asked for.
    #[serde(default)]
    pub cross: Vec<CrossRecord>,
    /// Gateways that carried transfers.
    #[serde(default)]
    pub gateways: Vec<GatewayRecord>,
    /// The most that the sources could push through the relays, bits per second, where that is
    /// defined.
    pub optimum: Option<f64>,
}

/// What one transfer did in a run.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct TransferRecord {
    /// The name of the transfer.
    pub name: String,
    /// The plan's name for it and its like.
    pub group: String,
    /// Second at which it began.
    pub started: f64,
    /// Second at which its last byte was acknowledged.
    pub finished: Option<f64>,
    /// Why it failed, if it did.
    pub failed: Option<String>,
    /// Bytes that the receiving application had, by sample, cumulative.
    pub received: Vec<u64>,
    /// Packets that the sender found lost, if it told.
    #[serde(default)]
    pub lost: Option<u64>,
    /// Most bytes that the receiver held out of order.
    pub reorder: u64,
    /// Paths that were usable after probing.
    pub opened: u64,
    /// How many of them there had been, by sample.
    #[serde(default)]
    pub found: Vec<u32>,
    /// Whether its ends are on different continents, where the network knows of such.
    #[serde(default)]
    pub abroad: Option<bool>,
    /// The base RTT of the direct way, in milliseconds: propagation only.
    #[serde(default)]
    pub base_rtt: f64,
    /// The transfer's paths: "direct", or the node they go through. A path that was dropped and
    /// opened again is one here.
    pub paths: Vec<PathRecord>,
    /// How its sessions went, if it is an exchange.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exchange: Option<ExchangeRecord>,
}

/// A path of a transfer.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct PathRecord {
    /// "direct", or the node it goes through.
    pub name: String,
    /// Bytes of data acknowledged, by sample, cumulative.
    pub acked: Vec<u64>,
    /// Congestion window in packets, by sample; 0 while there is no such path.
    pub window: Vec<f32>,
    /// Smoothed RTT in milliseconds, by sample.
    pub rtt: Vec<f32>,
    /// Packets found lost, by sample, cumulative.
    pub lost: Vec<u32>,
    /// Whether it was choked, by sample.
    pub choked: Vec<bool>,
}

/// What people waited for.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct RequestsRecord {
    /// The plan's name for them.
    pub name: String,
    /// In the order of the list that depends only on the seed.
    pub list: Vec<RequestRecord>,
}

/// One request and its answer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct RequestRecord {
    /// Bytes of the answer.
    pub size: u64,
    /// Second at which it began; `None`: it never did.
    pub began: Option<f64>,
    /// How long it took, in seconds; `None`: it did not finish.
    pub took: Option<f64>,
    /// Whether TCP gave it up.
    #[serde(default)]
    pub given_up: bool,
}

/// What cross traffic did in a run.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct CrossRecord {
    /// The plan's name for it.
    pub name: String,
    /// How long each packet was on its way, in seconds; `None`: it did not arrive.
    pub delays: Vec<Option<f64>>,
}

/// A pair of gateways, in the direction of the transfers.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct GatewayRecord {
    /// The plan's name for them.
    pub name: String,
    /// A histogram of how long the exit gateway held packets back to put them in order. An entry is
    /// an upper bound in milliseconds, and the number of packets held up to this bound, but longer
    /// than the bound before.
    pub waits: Vec<(u64, u64)>,
    /// Packets that left the exit.
    pub released: u64,
    /// Packets that left the exit because their timer expired.
    pub timed_out: u64,
    /// Packets that were to be carried.
    pub carried: u64,
    /// Packets that the entry dropped since too much waited.
    pub dropped: u64,
    /// Packets that went by the plain route.
    pub plain: u64,
    /// For the newest lost packets: milliseconds from sending the packet until the entry gateway
    /// declared it lost. Empty if the gateways do not detect losses, but leave this to the session
    /// between them.
    #[serde(default)]
    pub found: Vec<f32>,
}

/// A link in one direction.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct LinkRecord {
    /// The node at which the link begins.
    pub from: String,
    /// The node at which the link ends.
    pub to: String,
    /// Bits per second; 0: unlimited.
    pub rate: u64,
    /// Bytes on the wire delivered, by sample, cumulative.
    pub sent: Vec<u64>,
    /// Packets waiting, by sample.
    pub queue: Vec<u32>,
    /// Packets dropped, by sample, cumulative.
    pub dropped: Vec<u32>,
}

/// How an exchange went, beside what every transfer tells.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ExchangeRecord {
    /// Sessions that were connected.
    pub sessions: u32,
    /// Sessions, and attempts at one, that came to nothing, in order of time.
    pub lost: Vec<LostSession>,
    /// Datagrams that came, of both directions.
    pub datagrams: u64,
    /// Whether a session moved data over TCP.
    pub over_tcp: bool,
    /// The most bytes of memory that data took at the receiver.
    pub most_memory: u64,
    /// What was not as it must be, in sentences: bytes that differ, datagrams that came twice,
    /// numbers that disagree.
    pub mistakes: Vec<String>,
}

/// A session that came to nothing.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LostSession {
    /// The second at which its owner was told.
    pub at: f64,
    /// Whether it was ever connected.
    pub connected: bool,
    /// How many paths its sender had at the end.
    pub paths: usize,
    /// The reason.
    pub why: String,
}
