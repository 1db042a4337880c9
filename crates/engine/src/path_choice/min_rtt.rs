//! The path with the least RTT of those that may send.

use super::facts::{Choice, PathFacts};

/// The path with the least RTT, whether it may send or not. Of equal ones, the first.
pub(super) fn fastest(paths: &[PathFacts]) -> Option<&PathFacts> {
    paths.iter().min_by_key(|path| path.rtt)
}

/// The path with the least RTT of those that may send.
pub(super) fn fastest_free(paths: &[PathFacts]) -> Option<&PathFacts> {
    paths.iter().filter(|path| path.may_send).min_by_key(|path| path.rtt)
}

/// minRTT, the default rule of MPTCP: the fastest path that may send.
pub(super) fn min_rtt(paths: &[PathFacts]) -> Choice {
    fastest_free(paths).map_or(Choice::Wait, |path| Choice::Send(path.id))
}

#[cfg(test)]
mod tests {
    use super::super::facts::samples::path;
    use super::*;
    use byway_wire::PathId;

    #[test]
    fn the_fastest_with_room_sends() {
        let slow = path(1, 50, 10, 0);
        assert_eq!(min_rtt(&[slow, path(2, 10, 10, 9)]), Choice::Send(PathId(2)));
        assert_eq!(min_rtt(&[slow, path(2, 10, 10, 10)]), Choice::Send(PathId(1)));
        assert_eq!(min_rtt(&[path(1, 50, 10, 10), path(2, 10, 10, 10)]), Choice::Wait);
        assert_eq!(min_rtt(&[path(3, 50, 10, 0), path(2, 50, 10, 0)]), Choice::Send(PathId(3)));
    }
}
