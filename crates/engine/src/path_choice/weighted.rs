//! Turns in proportion to weights, by stride scheduling (Waldspurger and Weihl 1995). A path's pass
//! grows with each packet by its bytes over its weight. Of the paths that may send, the one with
//! the least pass sends. The weight is window over RTT, the rate that congestion control allows.

use super::facts::{Choice, PathFacts};
use alloc::collections::BTreeMap;
use byway_wire::PathId;

/// The pass of each path, in seconds that its packets take at its weight.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Passes {
    seconds: BTreeMap<PathId, f64>,
    /// The pass of the last sender before its packet. A path without room keeps no claim on turns
    /// that it could not take.
    last: f64,
}

/// The weight of a path in bytes per second.
fn weight(path: &PathFacts) -> f64 {
    path.window.max(path.packet) as f64 / path.rtt.as_secs_f64().max(1e-6)
}

/// The decision of the weighted turns. Passes of paths that are gone are forgotten.
pub(super) fn weighted(paths: &[PathFacts], passes: &mut Passes) -> Choice {
    passes.seconds.retain(|id, _| paths.iter().any(|path| path.id == *id));
    let pass = |path: &PathFacts| {
        let known = passes.seconds.get(&path.id).copied().unwrap_or(passes.last);
        known.max(passes.last)
    };
    let free = paths.iter().filter(|path| path.may_send);
    let Some((path, pass)) =
        free.map(|path| (path, pass(path))).min_by(|(_, one), (_, other)| one.total_cmp(other))
    else {
        return Choice::Wait;
    };
    passes.last = pass;
    passes.seconds.insert(path.id, pass + path.packet as f64 / weight(path));
    Choice::Send(path.id)
}

#[cfg(test)]
mod tests {
    use super::super::facts::samples::path;
    use super::*;

    /// The paths of the next `count` packets.
    fn turns(paths: &[PathFacts], passes: &mut Passes, count: usize) -> alloc::vec::Vec<u32> {
        let turn = |_| match weighted(paths, passes) {
            Choice::Send(id) => id.0,
            Choice::Wait => 0,
        };
        (0..count).map(turn).collect()
    }

    #[test]
    fn turns_are_in_proportion_to_window_over_rtt() {
        // 20 packets in 10 ms and 40 packets in 40 ms: 2 to 1. Of equal passes the first path
        // sends.
        let paths = [path(1, 10, 20, 0), path(2, 40, 40, 0)];
        assert_eq!(turns(&paths, &mut Passes::default(), 9), [1, 2, 1, 1, 2, 1, 1, 2, 1]);
    }

    #[test]
    fn a_path_without_room_loses_its_turns() {
        let mut passes = Passes::default();
        let full = [path(1, 10, 10, 0), path(2, 10, 10, 10)];
        assert_eq!(turns(&full, &mut passes, 100), [1; 100]);
        let open = [path(1, 10, 10, 0), path(2, 10, 10, 0)];
        let taken = turns(&open, &mut passes, 20);
        assert_eq!(taken.iter().filter(|id| **id == 1).count(), 10, "{taken:?}");
        assert_eq!(weighted(&[path(1, 10, 10, 10)], &mut passes), Choice::Wait);
        assert_eq!(passes.seconds.len(), 1);
    }
}
