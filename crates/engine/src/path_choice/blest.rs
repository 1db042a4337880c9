//! BLEST: leaves a slow path idle if a packet on it would block the send window (Ferlin, Alay,
//! Mehani and Boreli, IFIP Networking 2016).
//!
//! A packet on slow path S stays in the window for one RTT of S. In that time fast path F sends
//! `X = packet_F * (cwnd_F + (rtts - 1) / 2) * rtts`, with `rtts = RTT_S / RTT_F`: its window,
//! which grows by a packet each RTT. The packet waits if `λ X` exceeds the send window less all
//! that S then has in flight. λ grows if the send window ran out all the same, and falls otherwise.

use super::facts::{Choice, PathFacts, SessionFacts};
use super::min_rtt::{fastest, fastest_free};
use byway_wire::Instant;

/// λ at the beginning, in thousandths. This and the next four are those of MPTCP 0.95 for Linux.
const INITIAL_LAMBDA_MILLI: u32 = 1_200;
/// The range of λ, in thousandths.
const LAMBDA_RANGE_MILLI: core::ops::RangeInclusive<u32> = 1_000..=1_300;
/// Thousandths by which λ grows after the send window ran out.
const LAMBDA_INCREASE_MILLI: u32 = 40;
/// Thousandths by which λ falls otherwise.
const LAMBDA_DECREASE_MILLI: u32 = 10;

/// The factor λ, which corrects the estimate of what the fast path sends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Lambda {
    milli: u32,
    /// When λ may change next: one RTT of the slow path after its last change.
    due: Instant,
    /// Whether the send window ran out since the last change.
    blocked: bool,
}

impl Lambda {
    /// λ before the first packet.
    pub(super) const fn new() -> Self {
        Self { milli: INITIAL_LAMBDA_MILLI, due: Instant::ZERO, blocked: false }
    }

    /// Notes that the send window ran out.
    pub(super) const fn on_blocked(&mut self) {
        self.blocked = true;
    }

    /// Changes λ once in each RTT of the slow path.
    fn update(&mut self, now: Instant, slow: &PathFacts) {
        if now < self.due {
            return;
        }
        self.due = now + slow.rtt;
        let milli = if core::mem::take(&mut self.blocked) {
            self.milli + LAMBDA_INCREASE_MILLI
        } else {
            self.milli - LAMBDA_DECREASE_MILLI
        };
        self.milli = milli.clamp(*LAMBDA_RANGE_MILLI.start(), *LAMBDA_RANGE_MILLI.end());
    }
}

/// The bytes that path `fast` sends during one RTT of path `slow`.
fn sent_meanwhile(fast: &PathFacts, slow: &PathFacts) -> f64 {
    let rtts = slow.rtt.as_secs_f64() / fast.rtt.as_secs_f64().max(1e-6);
    fast.packet as f64 * (fast.window_packets() + (rtts - 1.0) / 2.0) * rtts
}

/// The decision of BLEST.
pub(super) fn blest(
    now: Instant,
    paths: &[PathFacts],
    session: &SessionFacts,
    lambda: &mut Lambda,
) -> Choice {
    let (Some(fast), Some(free)) = (fastest(paths), fastest_free(paths)) else { return Choice::Wait };
    if free.id == fast.id {
        return Choice::Send(free.id);
    }
    lambda.update(now, free);
    let needed = sent_meanwhile(fast, free) * f64::from(lambda.milli) / 1e3;
    let left = session.send_window.saturating_sub(free.in_flight + free.packet);
    if needed > left as f64 { Choice::Wait } else { Choice::Send(free.id) }
}

#[cfg(test)]
mod tests {
    use super::super::facts::samples::path;
    use super::*;
    use byway_wire::PathId;

    /// RTTs of 10 and 40 ms, 10 packets each, the fast path full and 3 packets on the slow one. The
    /// fast path sends (10 + 1.5) * 4 = 46 packets in 40 ms. The slow path then has 4.
    fn decide(send_window: u64, lambda: &mut Lambda) -> Choice {
        let paths = [path(1, 10, 10, 10), path(2, 40, 10, 3)];
        blest(Instant::ZERO, &paths, &SessionFacts { send_window, unsent: 0 }, lambda)
    }

    fn fixed(milli: u32) -> Lambda {
        Lambda { milli, due: Instant::FAR_FUTURE, blocked: false }
    }

    #[test]
    fn a_slow_path_waits_if_its_packet_would_block_the_window() {
        assert_eq!(decide(50_000, &mut fixed(1_000)), Choice::Send(PathId(2)));
        assert_eq!(decide(49_999, &mut fixed(1_000)), Choice::Wait);
        // 46 * 1.2 = 55.2 packets.
        assert_eq!(decide(59_200, &mut fixed(1_200)), Choice::Send(PathId(2)));
        assert_eq!(decide(59_199, &mut fixed(1_200)), Choice::Wait);
        assert_eq!(decide(0, &mut fixed(1_000)), Choice::Wait);
    }

    #[test]
    fn the_fast_path_always_sends() {
        let paths = [path(1, 10, 10, 9), path(2, 40, 10, 3)];
        let none = SessionFacts::default();
        assert_eq!(blest(Instant::ZERO, &paths, &none, &mut fixed(1_300)), Choice::Send(PathId(1)));
    }

    #[test]
    fn lambda_follows_the_window_once_in_each_rtt_of_the_slow_path() {
        let mut lambda = Lambda::new();
        let slow = path(2, 40, 10, 3);
        let mut at = |millis, blocked| {
            if blocked {
                lambda.on_blocked();
            }
            lambda.update(Instant::from_millis(millis), &slow);
            lambda.milli
        };
        assert_eq!([at(0, false), at(39, true), at(40, false), at(79, false)], [1_190, 1_190, 1_230, 1_230]);
        assert_eq!([at(80, true), at(120, true), at(160, true)], [1_270, 1_300, 1_300]);
        assert_eq!((200..2_000).step_by(40).map(|millis| at(millis, false)).last(), Some(1_000));
    }
}
