//! ECF, earliest completion first: leaves a slow path idle if the fast one completes what waits
//! earlier (Lim, Nahum, Towsley and Gibbens, CoNEXT 2017, algorithm 1).
//!
//! `k` packets wait. With `n = 1 + k / cwnd_F` and `δ` the larger deviation, the packet waits if
//! `n RTT_F < (1 + waiting β) (RTT_S + δ)`, and if `k / cwnd_S * RTT_S >= 2 RTT_F + δ`. `waiting`
//! is 1 from such a wait until the first condition fails.

use super::facts::{Choice, PathFacts, SessionFacts};
use super::min_rtt::{fastest, fastest_free};

/// β: the hysteresis of a wait. The paper sets 0.25.
const HYSTERESIS_FACTOR: f64 = 0.25;

/// The decision of ECF. `waiting` is what it remembers.
pub(super) fn ecf(paths: &[PathFacts], session: &SessionFacts, waiting: &mut bool) -> Choice {
    let (Some(fast), Some(free)) = (fastest(paths), fastest_free(paths)) else { return Choice::Wait };
    if free.id == fast.id {
        return Choice::Send(free.id);
    }
    let (fast_rtt, slow_rtt) = (fast.rtt.as_secs_f64(), free.rtt.as_secs_f64());
    let delta = fast.deviation.max(free.deviation).as_secs_f64();
    let packets = session.unsent as f64 / fast.packet.max(1) as f64;
    let rounds = 1.0 + packets / fast.window_packets();
    let margin = if *waiting { 1.0 + HYSTERESIS_FACTOR } else { 1.0 };
    if rounds * fast_rtt >= margin * (slow_rtt + delta) {
        *waiting = false;
        return Choice::Send(free.id);
    }
    if packets / free.window_packets() * slow_rtt >= 2.0 * fast_rtt + delta {
        *waiting = true;
        return Choice::Wait;
    }
    Choice::Send(free.id)
}

#[cfg(test)]
mod tests {
    use super::super::facts::samples::path;
    use super::*;
    use byway_wire::{Duration, PathId};

    const SLOW: Choice = Choice::Send(PathId(2));

    /// RTTs of 10 and 50 ms, 10 packets each, the fast path full.
    fn decide(packets: u64, deviation_ms: u64, waiting: &mut bool) -> Choice {
        let mut paths = [path(1, 10, 10, 10), path(2, 50, 10, 0)];
        paths[1].deviation = Duration::from_millis(deviation_ms);
        ecf(&paths, &SessionFacts { send_window: 0, unsent: packets * 1_000 }, waiting)
    }

    #[test]
    fn a_slow_path_waits_while_the_fast_one_completes_earlier() {
        let fresh = |packets, deviation| decide(packets, deviation, &mut false);
        // 39 packets: 4.9 rounds of 10 ms are 49 ms, and the slow path takes 50. 3.9 windows of the
        // slow path take 195 ms, beyond 20.
        assert_eq!(fresh(39, 0), Choice::Wait);
        assert_eq!(fresh(40, 0), SLOW, "both take 50 ms");
        // 3 packets: .3 * 50 = 15 ms on the slow path, below twice the fast RTT.
        assert_eq!((fresh(3, 0), fresh(4, 0)), (SLOW, Choice::Wait));
        // A deviation of 5 ms: 44 packets take 54 ms and less than 55; 4 take 20 and less than 25.
        assert_eq!((fresh(44, 5), fresh(45, 5), fresh(4, 5)), (Choice::Wait, SLOW, SLOW));
    }

    #[test]
    fn a_wait_goes_on_for_a_quarter_more() {
        let mut waiting = false;
        assert_eq!(decide(39, 0, &mut waiting), Choice::Wait);
        // 1.25 * 50 = 62.5 ms: 52 packets take 62, and 53 take 63.
        assert_eq!((decide(52, 0, &mut waiting), waiting), (Choice::Wait, true));
        assert_eq!((decide(3, 0, &mut waiting), waiting), (SLOW, true), "nothing ends the wait");
        assert_eq!((decide(53, 0, &mut waiting), waiting), (SLOW, false));
        assert_eq!(decide(52, 0, &mut waiting), SLOW);
    }

    #[test]
    fn the_fast_path_sends_if_it_may() {
        let paths = [path(1, 10, 10, 9), path(2, 50, 10, 0)];
        let session = SessionFacts { send_window: 0, unsent: 9_000 };
        assert_eq!(ecf(&paths, &session, &mut true), Choice::Send(PathId(1)));
    }
}
