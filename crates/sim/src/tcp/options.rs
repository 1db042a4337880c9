//! The options of a TCP end.

use byway_wire::Duration;

/// Payload of a full segment that makes an IPv4 packet of 1 500 bytes with the timestamps of RFC
/// 7323.
pub const MSS_BYTES: u32 = 1_448;

/// How a sender detects losses.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Recovery {
    /// A segment is lost when three later ones have arrived (RFC 6675) or after a timeout (RFC
    /// 6298). The timeout is at least [`TcpConfig::min_rto`].
    #[default]
    Sack,
    /// Losses are found by time (RACK), and at the end of the data by probes (TLP), as in Linux
    /// (RFC 8985). The retransmission timeout is the smoothed RTT plus [`TcpConfig::min_rto`] or
    /// four mean deviations, the larger one.
    Rack,
}

/// The reaction of a sender without SACK to a partial ACK. Such an ACK acknowledges the repeated
/// segment, but not all segments sent before the loss was found.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum PartialAck {
    /// The sender sends the next hole again, and restarts the retransmission timer: NewReno, in the
    /// steady form of RFC 6582, section 4.
    #[default]
    Steady,
    /// The sender sends the next hole again. It restarts the timer at the first partial ACK of a
    /// recovery alone: the impatient form of RFC 6582, section 4.
    Impatient,
    /// The sender ends its recovery: Reno (RFC 2581, section 3.2). Other losses of that window wait
    /// for the timeout, as in ns-2 with its default `bugFix_`.
    Ends,
}

/// The options of one end of a connection. Each end has its own.
#[derive(Clone, Debug, PartialEq)]
pub struct TcpConfig {
    /// Payload of a full segment in bytes, at least 1. [`MSS_BYTES`] to begin with.
    pub mss: u32,
    /// Whether a receiver waits for a second full segment before it acknowledges (RFC 5681, 4.2).
    /// It waits 40 ms at most.
    pub delayed_ack: bool,
    /// Segments that are sent at most before the first ACK, whatever window the controller begins
    /// with.
    pub initial_window: Option<u32>,
    /// The smallest retransmission timeout. RFC 6298 says 1 s. Linux, and the default here, use 0.2
    /// s.
    pub min_rto: Duration,
    /// Largest retransmission timeout.
    pub max_rto: Duration,
    /// Bytes that a receiver buffers, at most 2^30. More than 65 535 require window scaling (RFC
    /// 7323).
    pub receive_window: u64,
    /// Whether a receiver sends SACK blocks (RFC 2018). Without, a sender recovers as RFC 6582
    /// does.
    pub sack: bool,
    /// The rule that finds losses, if the receiver sends SACK blocks.
    pub recovery: Recovery,
    /// The reaction to a partial ACK, if the receiver sends no SACK blocks.
    pub partial_ack: PartialAck,
    /// The number of segments in the beginning that are acknowledged at once even with
    /// [`delayed_ack`](Self::delayed_ack). Linux has 16 (`TCP_MAX_QUICKACKS`).
    pub quick_acks: u32,
    /// The size of the send buffer in bytes, for data that is not acknowledged. While the buffer is
    /// full, an application with a fixed rate writes nothing, and does not write the missed bytes
    /// later. `None`: no limit.
    pub send_buffer: Option<u64>,
    /// Whether a sender spreads its window over a round trip, if the controller sets no rate.
    pub paced: bool,
    /// Whether written data are sent at once, even if they do not fill a segment (`TCP_NODELAY`).
    pub no_delay: bool,
}

impl Default for TcpConfig {
    fn default() -> Self {
        Self {
            mss: MSS_BYTES,
            delayed_ack: true,
            initial_window: None,
            min_rto: Duration::from_millis(200),
            max_rto: Duration::from_secs(60),
            receive_window: 1 << 30,
            sack: true,
            recovery: Recovery::Sack,
            partial_ack: PartialAck::Steady,
            quick_acks: 0,
            send_buffer: None,
            paced: false,
            no_delay: false,
        }
    }
}

impl TcpConfig {
    /// The options of Linux 6.
    #[must_use]
    pub fn linux() -> Self {
        Self { initial_window: Some(10), recovery: Recovery::Rack, quick_acks: 16, ..Self::default() }
    }

    /// Every segment is acknowledged at once.
    #[must_use]
    pub fn without_delayed_ack(mut self) -> Self {
        self.delayed_ack = false;
        self
    }

    /// No SACK: NewReno's recovery with three duplicate ACKs.
    #[must_use]
    pub fn without_sack(mut self) -> Self {
        self.sack = false;
        self
    }

    /// No SACK, and this at a partial ACK.
    #[must_use]
    pub fn partial_ack(mut self, partial_ack: PartialAck) -> Self {
        (self.sack, self.partial_ack) = (false, partial_ack);
        self
    }

    /// A receiver buffers `bytes` bytes.
    #[must_use]
    pub fn receive_window(mut self, bytes: u64) -> Self {
        self.receive_window = bytes;
        self
    }
}
