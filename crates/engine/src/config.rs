//! The owner's settings for its sessions, and the limits that peers exchange in the handshake.

use crate::data::{IncomingLimits, OutgoingLimits};
pub use crate::payload_kind::Payload;
use alloc::vec::Vec;
use byway_wire::frame::MAX_LISTED_ADDRESSES;
use byway_wire::packet::{BASE_DATAGRAM, MAX_DATAGRAM};
use byway_wire::{DecodeError, Dscp, Duration, Reader, Writer};

/// The settings that an owner chooses for its sessions.
#[derive(Clone, Debug)]
pub struct Config {
    /// Memory for data that waits to be sent or acknowledged.
    pub outgoing: OutgoingLimits,
    /// Memory for data that arrived and waits for the owner.
    pub incoming: IncomingLimits,
    /// Bytes of received data that an endpoint's sessions together hold until the application takes
    /// them: at least 1 MiB. Buffers may take four times as much memory. Without memory left,
    /// sessions are refused. `None`: each session has its own [`memory`](IncomingLimits::memory).
    pub shared_memory: Option<usize>,
    /// HELLOs of strangers on which an endpoint computes per second, beyond a burst. HELLOs prove
    /// nothing, so they are limited.
    pub hellos_per_second: u32,
    /// The largest datagram to try (UDP payload), from 1200 to 9000.
    pub max_datagram: usize,
    /// The silence of the peer after which a connection counts as lost.
    pub idle_timeout: Duration,
    /// Time between probes of new paths (mPath section 2.1: one per 250 ms, the average
    /// inter-continental RTT).
    pub probe_interval: Duration,
    /// Whether the end of a transfer may be sent twice, when nothing else is left to send.
    pub repeat_tail: bool,
    /// Relays that are greeted on behalf of one peer: it must not make this host a source of
    /// datagrams to whomever it likes.
    pub relays_per_peer: usize,
    /// When a hole in a path's numbers is reported as lost.
    pub pnack: Pnack,
    /// The choice of the path for ACKs.
    pub ack_way: AckPathRule,
    /// The longest delay of an ACK that is to cover more packets. `None`: a quarter of the RTT, at
    /// least 1 ms and at most 10 ms. Set it only if all paths use TCP. Over UDP, the sender counts
    /// packets as lost if their ACKs are delayed longer.
    pub ack_after: Option<Duration>,
    /// When a hole in a stream or object is named to the sender.
    pub tau: Tau,
    /// Received [datagrams](crate::connection::datagrams) that wait for the owner at most; then the
    /// oldest goes. 0: none are taken.
    pub datagrams: usize,
    /// Whether the owner learns the fate of each datagram
    /// ([`Connection::next_fate`](crate::Connection::next_fate)).
    pub datagram_fates: bool,
    /// Whether the owner detects losses. The controller then learns only of losses that the owner
    /// [reports](crate::Connection::judge_lost), and of timeouts.
    pub owner_judges_losses: bool,
    /// Whether objects are bytes or only a length.
    pub payload: Payload,
    /// Bytes per second of data (UDP payload) that are sent at most, over all paths together;
    /// `None`: as fast as they carry. See [`set_cap`](crate::Connection::set_cap).
    pub cap: Option<u64>,
    /// The DSCP of the packets that sessions send. Packets of handshakes are sent as best effort. A
    /// path that seems to drop packets of lower effort (RFC 8622) also sends as best effort: see
    /// [`DscpSupport`](crate::path::dscp_support::DscpSupport).
    pub dscp: Dscp,
    /// The rule of others that chooses the path of the next packet. `None`: each path sends
    /// whenever its window and pacer have room.
    #[cfg(feature = "studies")]
    pub path_rule: Option<crate::path_choice::PathRule>,
}

/// When a hole in a path's numbers is reported as lost (PNACK).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Pnack {
    /// After three later packets or a quarter RTT, and later where the path was seen to reorder.
    #[default]
    Patient,
    /// With the first later packet (mPath, section 2.2).
    FirstGap,
}

/// The choice of the path for ACKs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum AckPathRule {
    /// The fastest that lives.
    #[default]
    Fastest,
    /// The direct path as long as there is one (mPath, section 2.2), else the fastest.
    Direct,
}

/// τ: when a hole in a stream or object is named to the sender (SNACK).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Tau {
    /// After twice the RTT of the direct path, but at least 1.5 times the longest RTT of the paths
    /// in use, and at least 60 ms.
    #[default]
    Adaptive,
    /// After this percentage of the RTT of the direct path (mPath, section 2.2: 200), whatever the
    /// RTT of other paths.
    Direct(u32),
    /// As [`Adaptive`](Self::Adaptive), with this minimum instead of 60 ms: where packets are lost
    /// only when their path ends, a hole means a slow path.
    AtLeast(Duration),
}

/// Bounds, in bytes, of a session's first flow-control window for received data. Within these
/// bounds it is 1/8192 of `Config::shared_memory`. 16 KiB serves hosts with little memory. 256 KiB
/// is enough for the first round trip.
const MIN_WINDOW_BYTES: core::ops::RangeInclusive<usize> = 16 << 10..=256 << 10;

impl Config {
    /// Bytes that a session begins with and has at least, where memory is shared.
    pub(crate) fn least_window(&self) -> Option<u64> {
        let least = (self.shared_memory? / 8192).clamp(*MIN_WINDOW_BYTES.start(), *MIN_WINDOW_BYTES.end());
        Some((least as u64).min(self.incoming.initial().0))
    }
}

impl Default for Config {
    fn default() -> Self {
        Self {
            outgoing: OutgoingLimits::default(),
            incoming: IncomingLimits::default(),
            shared_memory: None,
            hellos_per_second: 200, // a few hundredths of a core
            max_datagram: 1472,
            idle_timeout: Duration::from_secs(60),
            probe_interval: Duration::from_millis(250),
            repeat_tail: true,
            relays_per_peer: 256,
            pnack: Pnack::default(),
            ack_way: AckPathRule::default(),
            ack_after: None,
            tau: Tau::default(),
            datagrams: 0,
            datagram_fates: false,
            owner_judges_losses: false,
            payload: Payload::default(),
            cap: None,
            dscp: Dscp::BestEffort,
            #[cfg(feature = "studies")]
            path_rule: None,
        }
    }
}

/// The sealed data of a host's handshake message: its limits, then the application's data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Params {
    /// Distinct bytes of streams and objects that the peer may send before it gets a higher limit.
    pub max_data: u64,
    /// Bytes of one stream that the peer may send before it gets a higher limit.
    pub max_stream_data: u64,
    /// The largest datagram that this side receives (UDP payload, bytes).
    pub max_datagram: u64,
    /// Streams that the peer may open before it gets a higher limit.
    pub max_streams: u64,
    /// The most addresses that this host accepts in a frame ADDRESSES. 0: it does not know this
    /// frame.
    pub max_addresses: u64,
    /// Whether the objects of this side are bytes or only a length.
    pub payload: Payload,
}

/// The stream limit of a peer that sends none: version 0.1 allowed this number of open streams.
const DEFAULT_MAX_STREAMS: u64 = 1024;

/// In the first byte beside the length of the limits: objects are only a length.
const FLAG_ONLY_LENGTH: u8 = 0x80;

impl Params {
    /// Makes the parameters that a host with `config` sends to the peer.
    #[must_use]
    pub fn of(config: &Config) -> Self {
        let (memory, max_stream_data) = config.incoming.initial();
        let max_data = config.least_window().unwrap_or(memory);
        Self {
            max_data,
            max_stream_data,
            max_datagram: config.max_datagram as u64,
            max_streams: config.incoming.streams as u64,
            max_addresses: MAX_LISTED_ADDRESSES as u64,
            payload: config.payload,
        }
    }

    /// Returns the handshake payload: these limits, then `application`.
    #[must_use]
    pub fn payload(&self, application: &[u8]) -> Vec<u8> {
        let mut buffer = [0; 64];
        let mut writer = Writer::new(&mut buffer);
        let limits =
            [self.max_data, self.max_stream_data, self.max_datagram, self.max_streams, self.max_addresses];
        for value in limits {
            writer.varint(value);
        }
        let mut payload = Vec::with_capacity(1 + writer.len() + application.len());
        let only_length = if self.payload == Payload::Length { FLAG_ONLY_LENGTH } else { 0 };
        payload.push(writer.len() as u8 | only_length);
        payload.extend_from_slice(writer.written());
        payload.extend_from_slice(application);
        payload
    }

    /// Reads a handshake payload. Returns the limits and the application's data. Limits that this
    /// version does not know are skipped.
    pub fn read(payload: &[u8]) -> Result<(Self, &[u8]), DecodeError> {
        let mut reader = Reader::new(payload);
        let first = reader.u8()?;
        let length = usize::from(first & !FLAG_ONLY_LENGTH);
        let mut limits = Reader::new(reader.bytes(length)?);
        let params = Self {
            max_data: limits.varint()?,
            max_stream_data: limits.varint()?,
            max_datagram: limits.varint()?,
            max_streams: if limits.is_empty() { DEFAULT_MAX_STREAMS } else { limits.varint()? },
            max_addresses: if limits.is_empty() { 0 } else { limits.varint()? },
            payload: if first & FLAG_ONLY_LENGTH == 0 { Payload::Bytes } else { Payload::Length },
        };
        if !(BASE_DATAGRAM as u64..=MAX_DATAGRAM as u64).contains(&params.max_datagram) {
            return Err(DecodeError::Range("largest datagram"));
        }
        Ok((params, reader.take_rest()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn params_in_hex() {
        let mut params = Params {
            max_data: 1 << 24,
            max_stream_data: 1 << 20,
            max_datagram: 1472,
            max_streams: 256,
            max_addresses: 8,
            payload: Payload::Bytes,
        };
        let payload = params.payload(b"app");
        assert_eq!(payload, b"\x0d\x81\x00\x00\x00\x80\x10\x00\x00\x45\xc0\x41\x00\x08app");
        assert_eq!(Params::read(&payload), Ok((params, b"app".as_slice())));
        params.payload = Payload::Length;
        let payload = params.payload(b"app");
        assert_eq!(payload, b"\x8d\x81\x00\x00\x00\x80\x10\x00\x00\x45\xc0\x41\x00\x08app");
        assert_eq!(Params::read(&payload), Ok((params, b"app".as_slice())));
        // What version 0.1 says.
        let older = b"\x0a\x81\x00\x00\x00\x80\x10\x00\x00\x45\xc0app";
        params = Params { payload: Payload::Bytes, max_streams: 1024, max_addresses: 0, ..params };
        assert_eq!(Params::read(older), Ok((params, b"app".as_slice())));
        assert_eq!(Params::read(b"\x03\x00\x00\x00"), Err(DecodeError::Range("largest datagram")));
        assert_eq!(Params::read(b"\x0a\x81"), Err(DecodeError::Truncated));
    }
}
