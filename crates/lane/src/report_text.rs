//! What a lane says: its sentences, and its counters as JSON.

use crate::proxy::{LaneEvent, LaneFigures};
use byway_forward::stream_request::Refusal;
use byway_forward_host::Listener;
use serde::Serialize;

/// The counters of a lane.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct LaneCounters {
    /// The number of present connections.
    pub open: usize,
    /// Connections that reached their target, so far.
    pub connections: u64,
    /// Bytes from programs to targets.
    pub sent_bytes: u64,
    /// Bytes from targets to programs.
    pub received_bytes: u64,
    /// What the uplink may carry of the lane now, in bit/s.
    pub rate_bps: u64,
    /// How long the latest packet waited in queues of the network, in ms.
    pub queue_ms: f64,
}

impl From<LaneFigures> for LaneCounters {
    fn from(figures: LaneFigures) -> Self {
        Self {
            open: figures.open,
            connections: figures.opened,
            sent_bytes: figures.moved.forth,
            received_bytes: figures.moved.back,
            rate_bps: figures.uplink.rate.saturating_mul(8),
            queue_ms: figures.uplink.wait.as_secs_f64() * 1e3,
        }
    }
}

/// Where a port leads.
#[must_use]
pub fn listener_line(listener: &Listener) -> String {
    let address = listener.address;
    match &listener.target {
        Some(target) => format!("connections to {address} go to {target}; their uploads yield to others"),
        None => format!("{address} accepts SOCKS5 and HTTP CONNECT; uploads yield to others"),
    }
}

/// Something that happened, and what to do about it.
#[must_use]
pub fn event_line(event: &LaneEvent) -> String {
    match event {
        LaneEvent::Refused(target, refusal) => format!("{target}: {}", refusal_reason(*refusal)),
        LaneEvent::Reset(target) => {
            format!("{target}: the connection was reset, by the program or by the target")
        }
        LaneEvent::NoStamps(target) => format!(
            "{target}: this kernel does not tell when it sends and gets ACKs, so the lane cannot pace: connect without it"
        ),
        LaneEvent::Full => {
            "there are as many connections as may be: further ones wait; raise --connections".into()
        }
        LaneEvent::NoDescriptors => {
            "the system gives no more descriptors: new connections wait; raise `ulimit -n`".into()
        }
    }
}

/// Why a target was not reached, as this host sees it.
const fn refusal_reason(refusal: Refusal) -> &'static str {
    match refusal {
        Refusal::Forbidden | Refusal::Near => {
            "an address of this host or its link, which programs may not name: give it a port of its own, PORT:HOST:PORT"
        }
        Refusal::Name => "the name cannot be resolved: check its spelling, and the resolver of this host",
        Refusal::Refused => "refused: nobody listens at this port",
        Refusal::Unreachable => "there is no route: check the address, and this host's network",
        Refusal::Timeout => "no answer: a firewall may drop what is sent there",
        Refusal::Full => "this host has no room for the connection: close some",
        Refusal::Failed => "the connection failed",
    }
}
