//! What a lane says: its sentences, and its counters as JSON.

use crate::proxy::{LaneEvent, LaneFigures};
use byway_forward::stream_request::Refusal;
use byway_forward_host::Listener;
use byway_uplink::ObservedUplink;
use byway_wire::Duration;
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

/// What a look at the uplink gave.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct UplinkReport {
    /// What the uplink carries. `None`: there is no default route, or its interface just changed.
    pub uplink: Option<UplinkCounters>,
}

/// What an uplink carries, for programs.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct UplinkCounters {
    /// What the host sends by the uplink, in bit/s.
    pub sent_bps: u64,
    /// What the host receives by it, in bit/s.
    pub received_bps: u64,
    /// The most that the host sent within a second, in bit/s. The line may carry more.
    pub most_sent_bps: u64,
    /// The most that the host received within a second, in bit/s.
    pub most_received_bps: u64,
    /// What nobody uses of the most that was sent, in bit/s.
    pub idle_bps: u64,
    /// The most that each full packet of a queue costs those behind it, in ms. `None`: the host has
    /// sent too little to tell how fast the line is.
    pub packet_ms: Option<f64>,
}

impl From<ObservedUplink> for UplinkCounters {
    fn from(seen: ObservedUplink) -> Self {
        let bits = |bytes: u64| bytes.saturating_mul(8);
        Self {
            sent_bps: bits(seen.sent),
            received_bps: bits(seen.received),
            most_sent_bps: bits(seen.most_sent),
            most_received_bps: bits(seen.most_received),
            idle_bps: bits(seen.idle()),
            packet_ms: (seen.packet_time <= MAX_PACKET_TIME).then_some(seen.packet_time.as_secs_f64() * 1e3),
        }
    }
}

/// If a full packet took longer at the most that was sent, the host has not used its line: 20
/// packets per second are 240 kbit/s.
const MAX_PACKET_TIME: Duration = Duration::from_millis(50);
/// The packets of a queue whose cost a person is told.
const QUEUE_PACKETS: f64 = 20.0;

/// What an uplink carries, for a person.
#[must_use]
pub fn uplink_line(report: &UplinkReport) -> String {
    let Some(seen) = report.uplink else {
        return "the uplink is not known: this host has no default route, or just got another".into();
    };
    let mbit = |bps: u64| bps as f64 * 1e-6;
    let queue =
        seen.packet_ms.map_or("The host sent too little to tell what a queue costs".into(), |packet| {
            format!(
                "{QUEUE_PACKETS} packets in a queue delay others by up to {:.0} ms",
                packet * QUEUE_PACKETS
            )
        });
    format!(
        "sent {:.2} Mbit/s, received {:.2}. Of the {:.2} Mbit/s that it has sent at most, {:.2} are idle. {queue}",
        mbit(seen.sent_bps),
        mbit(seen.received_bps),
        mbit(seen.most_sent_bps),
        mbit(seen.idle_bps),
    )
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

#[cfg(test)]
mod tests {
    use super::*;

    fn line(sent: u64, most_sent: u64, packet_millis: u64) -> String {
        let packet_time = Duration::from_millis(packet_millis);
        let seen = ObservedUplink { sent, received: 125_000, most_sent, most_received: 250_000, packet_time };
        uplink_line(&UplinkReport { uplink: Some(seen.into()) })
    }

    #[test]
    fn what_a_queue_costs_is_told_once_the_host_has_sent_much() {
        assert_eq!(
            line(250_000, 1_250_000, 2),
            "sent 2.00 Mbit/s, received 1.00. Of the 10.00 Mbit/s that it has sent at most, 8.00 are idle. \
             20 packets in a queue delay others by up to 40 ms"
        );
        assert!(line(0, 1_000, 1_514).ends_with("The host sent too little to tell what a queue costs"));
        assert!(uplink_line(&UplinkReport { uplink: None }).contains("no default route"));
    }
}
