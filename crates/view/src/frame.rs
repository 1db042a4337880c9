//! The page's data, once per second: one JSON for all readers. Figures that were not measured are
//! left out.

use crate::told::{Text, ToldForward, ToldRelay};
use crate::uplinks::UplinkFigures;
use serde::{Serialize, Serializer};
use std::net::SocketAddr;
use std::sync::Arc;

/// All that is shown now.
#[derive(Debug, Default, Serialize)]
pub struct Frame {
    /// Seconds since the page's server began. Figures of ten minutes count by it.
    pub second: u64,
    /// Seconds since 1970.
    pub unix: u64,
    /// Seconds between two looks: 1, or more if a look costs much.
    pub every: f64,
    /// A number that differs after a change of the history.
    pub history: String,
    pub uplinks: Vec<UplinkFigures>,
    /// Bits per second of paths whose interface is not known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unplaced_bps: Option<u64>,
    pub processes: Vec<ProcessFigures>,
    /// Number of transfers that are not shown.
    pub more_transfers: usize,
}

/// A process.
#[derive(Debug, Serialize)]
pub struct ProcessFigures {
    /// The name of the process's socket.
    pub id: Text,
    pub verb: Text,
    pub pid: u32,
    pub since: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub peer: Option<Text>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub listen: Vec<Text>,
    /// Why the process's status is not known, in words.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub problem: Option<&'static str>,
    /// Why the process's peer is away.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub away: Option<Text>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub forwarded: Option<ToldForward>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub relayed: Option<ToldRelay>,
    pub transfers: Vec<TransferFigures>,
}

/// A transfer.
#[derive(Debug, Serialize)]
pub struct TransferFigures {
    pub id: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<Text>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub from: Option<Text>,
    /// Whether this host sends.
    pub sends: bool,
    pub seconds: f64,
    pub bytes: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub total: Option<u64>,
    /// Bits per second of payload. `None`: the process has reported no progress for seconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bps: Option<u64>,
    /// The code of the reason for a pause, for the page's texts.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pause: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub yielded_seconds: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub added_delay_ms: Option<Tenths>,
    pub paths: Vec<PathFigures>,
    /// Number of paths that are not shown. The next field: their rate.
    pub more_paths: usize,
    pub more_bps: u64,
}

/// A path.
#[derive(Debug, Serialize)]
pub struct PathFigures {
    /// The path's number, behind `s` if this host sends on the path, and else `r`.
    pub id: String,
    pub name: Text,
    /// The address of the path's other end.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub remote: Option<SocketAddr>,
    pub carrier: Text,
    pub state: Text,
    pub bytes: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bps: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rtt_ms: Option<Tenths>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub base_rtt_ms: Option<Tenths>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub queue_ms: Option<Tenths>,
    /// Packets lost since the last sample, of 10,000.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub loss: Option<u64>,
    /// Packets lost so far.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lost: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pause: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none", serialize_with = "name")]
    pub interface: Option<Arc<str>>,
}

/// A number with one digit behind the point.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Tenths(pub f64);

impl Serialize for Tenths {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_f64((self.0 * 10.0).round() / 10.0)
    }
}

#[expect(clippy::ref_option, reason = "serde hands over a reference to the field")]
fn name<S: Serializer>(name: &Option<Arc<str>>, serializer: S) -> Result<S::Ok, S::Error> {
    name.as_deref().serialize(serializer)
}
