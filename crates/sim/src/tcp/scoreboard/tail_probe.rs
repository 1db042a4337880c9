//! The probe of the tail, as a scoreboard keeps it.

use byway_wire::Duration;

/// The time that Linux adds to a RACK or probe timer (`TCP_TIMEOUT_MIN`): two ticks of a clock with
/// 250 ticks a second.
pub(in crate::tcp) const TIMER_SLACK: Duration = Duration::from_millis(8);

/// A tail loss probe in flight (RFC 8985, 7.1).
#[derive(Clone, Copy, Debug)]
pub(super) struct TailProbe {
    /// TLP.end_seq: the number whose acknowledgment ends the probe.
    pub(super) end: u64,
    /// The transmission that sent the last segment again; `None`: the probe was new data.
    pub(super) again: Option<u64>,
}
