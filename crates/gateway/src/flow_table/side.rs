//! The state of one end of a flow, from the packets that it sent.

use crate::tcp_header::{Flags, before, later};
use crate::tcp_segment::Segment;

/// An end of a flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum FlowEnd {
    /// The end that sent the first SYN.
    Opener,
    /// The end that received the first SYN.
    Acceptor,
}

impl FlowEnd {
    /// The opposite side.
    #[must_use]
    pub const fn other(self) -> Self {
        match self {
            Self::Opener => Self::Acceptor,
            Self::Acceptor => Self::Opener,
        }
    }
}

/// The state of one end of a flow, from the packets that it sent. Sequence numbers are those in the
/// packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct EndState {
    /// The initial sequence number of this end. `None`: its SYN was not seen.
    pub isn: Option<u32>,
    /// The window scale in this end's SYN. `None`: the SYN had none, or was not seen.
    pub scale: Option<u8>,
    /// The sequence number after the last one that this end used.
    pub end: u32,
    /// The next byte that this end expects. Only acknowledgments of sent bytes count.
    pub acked: Option<u32>,
    /// The receive window in bytes that this end last advertised.
    pub window: u32,
    /// The sequence number after this end's FIN. `None`: it has sent no FIN.
    pub fin: Option<u32>,
}

impl EndState {
    /// Updates the state from a segment that this side sent to `other`. The segment's window is in
    /// units of 2^`scale` bytes. Returns whether the segment is a valid reset, which ends the flow
    /// at once.
    pub(super) fn on_segment(&mut self, other: &Self, segment: &Segment, scale: u8) -> bool {
        let (tcp, end) = (&segment.tcp, segment.sequence_end());
        if tcp.flags.any(Flags::RST) {
            return self.may_reset(other, segment);
        }
        // An acknowledgment of what the other side never sent says nothing, and is not its answer
        // to anything.
        let acknowledges = tcp.flags.any(Flags::ACK)
            && other
                .isn
                .is_some_and(|isn| other.end.wrapping_sub(tcp.acknowledgment) <= other.end.wrapping_sub(isn));
        if tcp.flags.any(Flags::ACK) && !acknowledges {
            return false;
        }
        let syn = tcp.flags.any(Flags::SYN);
        if syn && (self.acked.is_none() || self.isn.is_none()) {
            self.isn = Some(tcp.sequence);
            self.end = end;
            self.scale = tcp.options.scale;
        }
        if self.isn.is_none() {
            return false;
        }
        self.end = later(self.end, end);
        if acknowledges && self.acked.is_none_or(|acked| !before(tcp.acknowledgment, acked)) {
            self.acked = Some(tcp.acknowledgment);
            self.window = u32::from(tcp.window) << if syn { 0 } else { scale };
        }
        if tcp.flags.any(Flags::FIN) {
            self.fin = Some(end);
        }
        false
    }

    /// Whether `other` would accept this RST: its sequence number is in `other`'s receive window
    /// (RFC 9293, section 3.5.3). If `other` has only sent a SYN, the RST must acknowledge it. RFC
    /// 5961's challenge ACK is not modelled.
    const fn may_reset(&self, other: &Self, segment: &Segment) -> bool {
        let tcp = &segment.tcp;
        match other.acked {
            Some(acked) => tcp.sequence.wrapping_sub(acked) <= other.window,
            None => tcp.flags.any(Flags::ACK) && tcp.acknowledgment == other.end,
        }
    }
}
