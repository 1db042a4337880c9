//! Which paths serve where several lead the same way: over UDP, over TCP, straight or by a relay.

use super::path::Path;
use super::paths::Paths;

/// Timeouts in a row after which a path counts as one that does not answer.
pub(super) const SILENT_TIMEOUTS: u32 = 2;

/// Whether a preferred path with the same destination is in use and answers.
pub(super) fn is_served(paths: &Paths, other: &Path) -> bool {
    paths.iter().any(|path| {
        path.is_governed()
            && paths.is_preferred(path)
            && path.route.leads_as(&other.route)
            && path.send.is_proven()
            && path.send.timeouts() == 0
    })
}

/// Whether the path `other` may carry data, although its transport (UDP or TCP) is not the
/// preferred one. It may not while a path of the right column is in use and answers:
///
/// | `other` | path in use |
/// |---|---|
/// | direct | any direct path; if `each`, only a direct path over UDP |
/// | through a relay | a path over UDP to the same relay |
///
/// `each`: several direct paths over TCP may carry data at the same time.
pub(super) fn may_stand_in(paths: &Paths, other: &Path, each: bool) -> bool {
    let side_by_side = |path: &Path| each && path.route.local.is_connection();
    let leads = |path: &Path| {
        path.route.is_udp_of(&other.route) || path.route.is_direct_as(&other.route) && !side_by_side(path)
    };
    !paths.iter().any(|path| path.is_governed() && leads(path) && path.send.timeouts() < SILENT_TIMEOUTS)
}
