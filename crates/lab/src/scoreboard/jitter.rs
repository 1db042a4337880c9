//! Lines as people have them: their delays jump without a queue. Each kind of jitter meets each
//! rate once; round-trip times, queues and losses take turns, so that each value meets many others.

use super::grid::{Bottleneck, DelayProfile, Foreground, RateProfile, Scene, judge, tune};
use super::transfer_mix::TransferMix;

/// The kinds of jitter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum JitterKind {
    /// Each packet is late by up to this many milliseconds, and overtakes none.
    Uniform(u32),
    /// Short times in which nothing arrives.
    WifiStalls,
    /// Rate and delay change ten times a second.
    RadioCell,
    /// The delay changes every 15 s.
    Satellite,
}

const JITTER_KINDS: [JitterKind; 7] = [
    JitterKind::Uniform(2),
    JitterKind::Uniform(5),
    JitterKind::Uniform(10),
    JitterKind::Uniform(20),
    JitterKind::WifiStalls,
    JitterKind::RadioCell,
    JitterKind::Satellite,
];
const RATES_MBIT: [u32; 5] = [2, 10, 30, 100, 300];
const RTTS_MS: [u32; 4] = [10, 40, 100, 200];
/// The sizes of queues, in quarters of the bandwidth-delay product.
const QUEUE_QUARTERS: [u32; 3] = [1, 4, 16];
/// The bytes of a packet in a queue.
const PACKET_BYTES: u32 = 1_500;
/// The fewest packets that a queue holds.
const MIN_QUEUE_PACKETS: u32 = 10;
/// Tenths of a percent lost on every second line.
const LOSS_TENTHS: u32 = 1;

/// Alone, four of a kind, beside requests and beside a CUBIC.
const SCENE_TRAFFIC: [(Foreground, u32); 4] =
    [(Foreground::Nobody, 1), (Foreground::Nobody, 4), (Foreground::Requests, 1), (Foreground::Cubic, 1)];

/// Returns the line of a kind and a rate, by their indices in the lists. Neighbours belong to
/// different halves.
fn line(kind: usize, rate: usize) -> Bottleneck {
    let mbit = RATES_MBIT[rate];
    // Each rate, each kind and each half meets all four.
    let rtt = RTTS_MS[3 * (kind + rate + kind / 2 + rate / 2) % RTTS_MS.len()];
    let quarters = QUEUE_QUARTERS[(kind + 2 * rate) % QUEUE_QUARTERS.len()];
    let queue = (mbit * rtt * 125 * quarters / 4 / PACKET_BYTES).max(MIN_QUEUE_PACKETS);
    let of = if (kind + rate).is_multiple_of(2) { tune } else { judge };
    let line = of(mbit, rtt, queue).loss(if (kind / 2 + rate).is_multiple_of(2) { 0 } else { LOSS_TENTHS });
    match JITTER_KINDS[kind] {
        JitterKind::Uniform(most) => line.jitter(most),
        JitterKind::WifiStalls => line.delays(DelayProfile::Stalls),
        JitterKind::RadioCell => line.course(RateProfile::Cell).delays(DelayProfile::Cell),
        JitterKind::Satellite => line.delays(DelayProfile::Satellite),
    }
}

/// Whether the quick form includes the line: two in five of those up to 100 Mbit/s.
fn is_quick(kind: usize, rate: usize) -> bool {
    RATES_MBIT[rate] <= 100 && (2 * kind + rate) % 5 < 2
}

/// Returns every scene under jitter, or those of the quick form.
pub(super) fn jitter_scenes(quick: bool) -> Vec<Scene> {
    let places = (0..JITTER_KINDS.len()).flat_map(|kind| (0..RATES_MBIT.len()).map(move |rate| (kind, rate)));
    let lines = places.filter(|&(kind, rate)| !quick || is_quick(kind, rate));
    let scenes = |line| {
        SCENE_TRAFFIC.map(|(foreground, transfers)| Scene {
            line,
            foreground,
            transfers,
            among: TransferMix::Alike,
        })
    };
    lines.flat_map(|(kind, rate)| scenes(line(kind, rate))).collect()
}

#[cfg(test)]
mod tests {
    use super::super::grid::LineHalf;
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn each_value_is_in_both_halves_and_meets_many_others() {
        let all = jitter_scenes(false);
        let names: BTreeSet<String> = all.iter().map(Scene::to_string).collect();
        assert_eq!((all.len(), names.len()), (140, 140));
        let among = |half, within: &dyn Fn(&Bottleneck) -> bool| {
            all.iter().filter(|scene| scene.line.half == half && within(&scene.line)).count()
        };
        for rate in RATES_MBIT {
            for rtt in RTTS_MS {
                assert!(all.iter().any(|scene| scene.line.mbit == rate || scene.line.rtt_ms == rtt));
            }
            for half in [LineHalf::Tune, LineHalf::Judge] {
                assert!(among(half, &|line| line.mbit == rate) >= 12);
            }
        }
        for half in [LineHalf::Tune, LineHalf::Judge] {
            assert!(among(half, &|line| line.loss > 0) >= 20);
            for rtt in RTTS_MS {
                assert!(among(half, &|line| line.rtt_ms == rtt) >= 8, "{rtt}");
            }
            for delays in [DelayProfile::Stalls, DelayProfile::Cell, DelayProfile::Satellite] {
                assert!(among(half, &|line| line.delays == delays) >= 8);
            }
        }
        let quick = jitter_scenes(true);
        assert!((30..70).contains(&quick.len()) && quick.iter().all(|scene| all.contains(scene)));
    }
}
