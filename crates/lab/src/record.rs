//! The record of one run of one variant: the data for measures, tables and figures.

use serde::{Deserialize, Serialize};

/// The record of one run. All series have one value per sample, the first at time zero.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Record {
    /// The label of this variant on each axis.
    pub axes: Vec<(String, String)>,
    /// The seed of the run.
    pub seed: u64,
    /// The world's hash: the same for the same seed, on every machine.
    pub trace: u64,
    /// Seconds between samples.
    pub sample: f64,
    /// Seconds of simulated time.
    pub duration: f64,
    /// The second from which measures count by default.
    pub cut: f64,
    /// Packets that links delivered.
    pub packets: u64,
    /// The records of bulk transfers.
    pub transfers: Vec<TransferRecord>,
    /// The requests that people wait for.
    pub requests: Vec<RequestsRecord>,
    /// Links on the routes of transfers and requests.
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

/// The identity of a run, and the trace that shows whether two runs are equal.
pub trait RunIdentity {
    /// The label of the run's variant on each axis.
    fn axes(&self) -> &[(String, String)];
    /// The seed of the run.
    fn seed(&self) -> u64;
    /// The world's hash.
    fn trace(&self) -> u64;
}

impl RunIdentity for Record {
    fn axes(&self) -> &[(String, String)] {
        &self.axes
    }

    fn seed(&self) -> u64 {
        self.seed
    }

    fn trace(&self) -> u64 {
        self.trace
    }
}

/// The record of one transfer in a run.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct TransferRecord {
    /// The name of the transfer.
    pub name: String,
    /// The name in the plan, which several transfers may share.
    pub group: String,
    /// The second at which the transfer began.
    pub started: f64,
    /// The second at which the last byte was acknowledged. `None`: it never was.
    pub finished: Option<f64>,
    /// Why the transfer failed. `None`: it did not fail.
    pub failed: Option<String>,
    /// Bytes that the receiving application had, by sample, cumulative.
    pub received: Vec<u64>,
    /// Packets that the sender found lost. `None`: the sender does not report losses.
    #[serde(default)]
    pub lost: Option<u64>,
    /// Most bytes that the receiver held out of order.
    pub reorder: u64,
    /// How long frames of streams waited at the receiver for bytes before them: whole milliseconds,
    /// and the number of frames. Empty: it is not known.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub order_waits: Vec<(u64, u64)>,
    /// Paths that were usable after probing.
    pub opened: u64,
    /// The number of usable paths found so far, by sample.
    #[serde(default)]
    pub found: Vec<u32>,
    /// The number of relays that have answered a probe in time so far, by sample. Empty: the hosts
    /// do not report it.
    #[serde(default)]
    pub available: Vec<u32>,
    /// Whether the two ends are on different continents. `None`: the network has no continents.
    #[serde(default)]
    pub abroad: Option<bool>,
    /// The base RTT of the direct route in milliseconds: propagation only.
    #[serde(default)]
    pub base_rtt: f64,
    /// The transfer's paths: "direct", or the node they go through. A path that was dropped and
    /// opened again is one here.
    pub paths: Vec<PathRecord>,
    /// The sessions of the transfer, if it is an exchange.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exchange: Option<ExchangeRecord>,
}

/// A path of a transfer.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct PathRecord {
    /// "direct", or the name of the node through which the path goes.
    pub name: String,
    /// Bytes of data acknowledged, by sample, cumulative.
    pub acked: Vec<u64>,
    /// The congestion window in packets, by sample. 0: the path does not exist.
    pub window: Vec<f32>,
    /// The same in bytes, at most 4 GiB less 1. Empty: it is not known.
    #[serde(default)]
    pub window_bytes: Vec<u32>,
    /// Smoothed RTT in milliseconds, by sample.
    pub rtt: Vec<f32>,
    /// Packets found lost, by sample, cumulative.
    pub lost: Vec<u32>,
    /// Whether the path was choked, by sample.
    pub choked: Vec<bool>,
}

/// The record of a workload of requests.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct RequestsRecord {
    /// The name of the workload in the plan.
    pub name: String,
    /// In the order of the list that depends only on the seed.
    pub list: Vec<RequestRecord>,
}

/// One request and its answer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct RequestRecord {
    /// Bytes of the answer.
    pub size: u64,
    /// The second at which the request began. `None`: it never began.
    pub began: Option<f64>,
    /// Duration of the request in seconds. `None`: it did not finish.
    pub took: Option<f64>,
    /// Whether TCP gave the request up.
    #[serde(default)]
    pub given_up: bool,
}

/// The record of a source of cross traffic in a run.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct CrossRecord {
    /// The name of the source in the plan.
    pub name: String,
    /// The delay of each packet in seconds. `None`: the packet did not arrive.
    pub delays: Vec<Option<f64>>,
}

/// A pair of gateways, in the direction of the transfers.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct GatewayRecord {
    /// The name of the gateways in the plan.
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

/// The record of a link in one direction.
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

/// The record of an exchange, in addition to the record of its transfer.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ExchangeRecord {
    /// Sessions that were connected.
    pub sessions: u32,
    /// Lost sessions and failed attempts, in order of time.
    pub lost: Vec<LostSession>,
    /// Datagrams that came, of both directions.
    pub datagrams: u64,
    /// Whether a session moved data over TCP.
    pub over_tcp: bool,
    /// The most bytes of memory that data took at the receiver.
    pub most_memory: u64,
    /// Violations, one sentence each: bytes that differ, duplicate datagrams, or counts that
    /// disagree.
    pub mistakes: Vec<String>,
}

/// A session that came to nothing.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LostSession {
    /// The second at which the application learned of it.
    pub at: f64,
    /// Whether the session was ever established.
    pub connected: bool,
    /// Number of paths of the sender at the end.
    pub paths: usize,
    /// The reason for the loss.
    pub why: String,
}
