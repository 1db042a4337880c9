//! The gateway's state of a carried flow.

use super::index_vec::{PeerIdx, TunnelIdx};
use crate::encap::Label;
use crate::flow_table::FlowTable;
use crate::receive_window::Advertised;
use crate::tcp_header::Flags;
use byway_wire::{Duration, Instant};

/// The flows that are carried.
pub(super) type CarriedFlows = FlowTable<CarriedFlow>;

/// The state that is kept with a carried flow.
#[derive(Clone, Debug)]
pub(super) struct CarriedFlow {
    /// The gateway at the flow's other end.
    pub peer: PeerIdx,
    /// The tunnel that the flow's packets take. `own`: the flow's own tunnel, if it has one or is
    /// to get one.
    pub tunnel: TunnelIdx,
    pub own: Option<TunnelIdx>,
    /// The index of the rule that decided. `None`: the peer decided.
    pub rule: Option<usize>,
    /// Bytes of the flow's packets from the host of this site. `received`: bytes to that host.
    pub sent: u64,
    pub received: u64,
    /// The label of the flow's direction to the peer.
    pub label: Label,
    /// The sequence number of the flow's next packet.
    pub sequence: u32,
    /// The tunnel by which packets of the other direction arrive. `changed_at`: the time of its
    /// last change.
    pub came_by: TunnelIdx,
    pub changed_at: Option<Instant>,
    /// The receive window that was advertised to the host of this site.
    pub advertised: Advertised,
    /// The time at which this site's host last sent data, while the flow counts as sending.
    pub sent_at: Option<Instant>,
    /// The window that the host at the other end allows. Until it is known, it does not limit.
    pub receiver: u64,
    /// The largest packet size that this site's host was told to use. `None`: the host was told no
    /// size.
    pub told: Option<usize>,
    /// The times at which the SYN and its answer passed. The round-trip time of the whole route
    /// follows from them.
    opening: [Option<Instant>; 2],
    pub rtt: Option<Duration>,
}

impl CarriedFlow {
    /// Makes a flow to a peer, with the tunnel `site` that all the peer's flows share.
    pub fn new(peer: PeerIdx, site: TunnelIdx, rule: Option<usize>, label: Label) -> Self {
        Self {
            peer,
            tunnel: site,
            own: None,
            rule,
            sent: 0,
            received: 0,
            label,
            sequence: 0,
            came_by: site,
            changed_at: None,
            advertised: Advertised::default(),
            sent_at: None,
            receiver: u64::MAX,
            told: None,
            opening: [None; 2],
            rtt: None,
        }
    }

    /// Measures the round trip from the handshake: from SYN to SYN, and from there to the
    /// acknowledgment.
    pub fn on_opening(&mut self, now: Instant, flags: Flags) {
        match (self.opening, flags.any(Flags::SYN), flags.any(Flags::ACK)) {
            ([None, _], true, false) => self.opening[0] = Some(now),
            ([Some(_), None], true, true) => self.opening[1] = Some(now),
            ([Some(syn), Some(_)], false, true) if self.rtt.is_none() => self.rtt = Some(now.since(syn)),
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::index_vec::TypedIndex as _;
    use super::*;

    #[test]
    fn the_handshake_shows_the_round_trip() {
        let mut flow = CarriedFlow::new(PeerIdx::at(0), TunnelIdx::at(0), None, Label::new(1));
        let syn_ack = Flags::SYN.or(Flags::ACK);
        for (ms, flags) in [(10, Flags::SYN), (15, Flags::SYN), (40, syn_ack), (45, syn_ack)] {
            flow.on_opening(Instant::from_millis(ms), flags);
            assert_eq!(flow.rtt, None);
        }
        flow.on_opening(Instant::from_millis(62), Flags::ACK);
        flow.on_opening(Instant::from_millis(90), Flags::ACK);
        assert_eq!(flow.rtt, Some(Duration::from_millis(52)));
    }
}
