//! Assertions about paths after each call, in a debug build. Random worlds and fuzzers find the
//! calls that break them.

use super::path::{AddressValidation, ChangeMark, Path, PathState};
use super::paths::Paths;

/// The largest number of paths that the audit examines. It skips connections with more, since it
/// runs after every call and would take longer than the call.
const MAX_AUDITED_PATHS: usize = 8;
/// The least credit, in bytes, with which something may be sent to an address that is not
/// validated.
pub(super) const MIN_CREDIT_BYTES: u64 = 128;

/// Asserts that each path waits for what it needs: a path that may send data stands in the queue of
/// those, one with something pending in the other, and all are woken for their deadlines. Asserts
/// too that what is known of a path fits its state.
pub(super) fn audit(paths: &Paths) {
    debug_assert!(paths.is_settled(), "paths that changed are settled");
    if !cfg!(debug_assertions) || paths.len() > MAX_AUDITED_PATHS {
        return;
    }
    for path in paths.iter() {
        let id = path.id();
        debug_assert!(
            path.used.is_some() || !path.is_governed(),
            "path {id:?} is used, and was never opened: {path:?}"
        );
        debug_assert!(
            path.probe.is_none() || path.state == PathState::Choked,
            "path {id:?} is probed as a choked one: {path:?}"
        );
        debug_assert!(
            path.address == AddressValidation::Valid
                || path.state == PathState::Probing && path.moving.is_none(),
            "path {id:?} leads to an address that is not the peer's: {path:?}"
        );
        debug_assert!(path.mark == ChangeMark::Settled, "path {id:?} is settled");
        debug_assert!(
            path.ready || path.paced || !may_send(paths, path),
            "path {id:?} may send data, and nobody asks it: {path:?}"
        );
        debug_assert!(
            path.urgent || !path.pending.any() || path.credit() < MIN_CREDIT_BYTES,
            "path {id:?} has something pending, and nobody asks it: {path:?}"
        );
        debug_assert!(path.armed.covers(path.deadline()), "path {id:?} is woken in time: {path:?}");
        debug_assert!(path.send.balances(), "bytes in flight are those of packets: {path:?}");
    }
}

/// Whether a path may send a data packet at once, according to its window and its silence.
fn may_send(paths: &Paths, path: &Path) -> bool {
    let answers = |other: &Path| other.state == PathState::Active && other.send.timeouts() == 0;
    let is_silent = path.send.timeouts() > 0;
    let waits =
        || path.send.in_flight > 0 || paths.iter().any(|other| other.id() != path.id() && answers(other));
    path.state == PathState::Active && path.has_room() && !(is_silent && waits())
}
