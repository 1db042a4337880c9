//! The events of a file. Names before the colon are namespaces: `quic` and `simulation` are of the
//! drafts, `byway` is declared by a schema of its own.

use serde::Serialize;
use std::collections::BTreeMap;

/// The schemas whose events a file has. Events of a draft carry its number. A URN of
/// `urn:ietf:params:qlog:events` is the IETF's alone, so byway's schema has another URI.
pub(crate) const EVENT_SCHEMAS: [&str; 3] = [
    "urn:ietf:params:qlog:events:quic-12",
    "urn:ietf:params:qlog:events:simulation-13",
    "byway:qlog:events:byway-1",
];

/// An event of a session.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(tag = "name", content = "data")]
pub enum Event<'a> {
    /// The simulated run of the file.
    #[serde(rename = "simulation:scenario")]
    Scenario {
        /// The name of the transfer in the plan.
        name: &'a str,
        /// The identity of the run.
        details: ScenarioDetails<'a>,
    },
    /// The session begins.
    #[serde(rename = "quic:connection_started")]
    Started {
        /// This host. A session has no address of its own, its paths have.
        local: TupleEnd,
        /// The peer.
        remote: TupleEnd,
    },
    /// The session ends.
    #[serde(rename = "quic:connection_closed")]
    Closed {
        /// The cause of the end.
        trigger: CloseTrigger,
        /// Why, for a person.
        #[serde(skip_serializing_if = "Option::is_none")]
        reason: Option<&'a str>,
    },
    /// A path has a tuple. Without ends: the path is over.
    #[serde(rename = "quic:tuple_assigned")]
    TupleAssigned {
        /// The identifier of the tuple, as in the `tuple` field of events.
        tuple_id: String,
        /// The destination of datagrams.
        #[serde(skip_serializing_if = "Option::is_none")]
        tuple_remote: Option<TupleEnd>,
        /// The source of datagrams.
        #[serde(skip_serializing_if = "Option::is_none")]
        tuple_local: Option<TupleEnd>,
    },
    /// The figures of a path that changed.
    #[serde(rename = "quic:recovery_metrics_updated")]
    MetricsUpdated {
        /// The path's number.
        path_id: u32,
        /// The figures.
        #[serde(flatten)]
        metrics: Metrics,
    },
    /// The controller begins or ends to choke a path.
    #[serde(rename = "quic:congestion_state_updated")]
    CongestionStateUpdated {
        /// The path's number.
        path_id: u32,
        /// `choked`, or `open`.
        new: &'a str,
    },
    /// The name of the controller that governs all paths.
    #[serde(rename = "byway:controller_set")]
    ControllerSet {
        /// The controller's name, as `byway lab controllers` lists it.
        controller: &'a str,
    },
    /// A path has another state.
    #[serde(rename = "byway:path_state_updated")]
    PathStateUpdated {
        /// The path's number.
        path_id: u32,
        /// The name of the path, for a person.
        path: &'a str,
        /// The state before. Absent: the path is new.
        #[serde(skip_serializing_if = "Option::is_none")]
        old: Option<&'a str>,
        /// The state from now on.
        new: &'a str,
        /// Why, for a person.
        #[serde(skip_serializing_if = "Option::is_none")]
        reason: Option<&'a str>,
    },
    /// The totals of a path since its beginning.
    #[serde(rename = "byway:path_totals_updated")]
    PathTotalsUpdated {
        /// The path's number.
        path_id: u32,
        /// The sums.
        #[serde(flatten)]
        totals: PathTotals,
    },
    /// The totals of a session since its beginning.
    #[serde(rename = "byway:session_totals_updated")]
    SessionTotalsUpdated {
        /// Payload bytes that the receiver has.
        received_bytes: u64,
    },
}

/// The identity of a simulated run.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct ScenarioDetails<'a> {
    /// The seed of the run.
    pub seed: u64,
    /// The hash of the world, in hex: the same seed has the same one everywhere.
    pub world: String,
    /// Milliseconds between samples.
    pub sample_ms: f64,
    /// The label of the variant on each axis of the sweep.
    pub axes: BTreeMap<&'a str, &'a str>,
}

/// The cause of a session's end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum CloseTrigger {
    /// The application was done, and closed the session.
    Application,
    /// The session failed.
    Error,
}

/// One end of a path.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct TupleEnd {
    /// An IPv4 address.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ip_v4: Option<String>,
    /// The UDP port at that address.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub port_v4: Option<u16>,
    /// An IPv6 address.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ip_v6: Option<String>,
    /// The UDP port at that address.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub port_v6: Option<u16>,
}

/// Figures of a path. `None`: not known, or as before.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Metrics {
    /// The smallest round-trip time, in milliseconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub min_rtt: Option<f32>,
    /// The smoothed round-trip time, in milliseconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub smoothed_rtt: Option<f32>,
    /// The congestion window, in bytes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub congestion_window: Option<u64>,
    /// Bytes under way.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bytes_in_flight: Option<u64>,
}

impl Metrics {
    /// Returns the figures that differ from `before`, and updates `before`. `None`: none differs.
    pub(crate) fn news(&self, before: &mut Self) -> Option<Self> {
        let news = Self {
            min_rtt: news(self.min_rtt, &mut before.min_rtt),
            smoothed_rtt: news(self.smoothed_rtt, &mut before.smoothed_rtt),
            congestion_window: news(self.congestion_window, &mut before.congestion_window),
            bytes_in_flight: news(self.bytes_in_flight, &mut before.bytes_in_flight),
        };
        (news != Self::default()).then_some(news)
    }
}

/// Returns `now` if it differs from `before`, and updates `before`. A value that is no longer known
/// does not count.
fn news<T: Copy + PartialEq>(now: Option<T>, before: &mut Option<T>) -> Option<T> {
    let news = now.filter(|now| *before != Some(*now));
    *before = now.or(*before);
    news
}

/// The totals of a path since its beginning. `None`: not counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct PathTotals {
    /// Bytes of UDP payload sent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sent_bytes: Option<u64>,
    /// Packets sent, acknowledgements included.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sent_packets: Option<u64>,
    /// Bytes acknowledged.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub acked_bytes: Option<u64>,
    /// Packets found lost.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lost_packets: Option<u64>,
}
