//! Which paths serve where several lead the same way: over UDP, over TCP, straight or by a relay.

use super::path::Path;
use super::paths::Paths;
use crate::path::transport::PathTransport;

/// Timeouts in a row after which a path counts as one that does not answer.
pub(super) const SILENT: u32 = 2;

/// Whether a path that is preferred leads the way of this one, is in use and answers. `direct`:
/// which direct ones are preferred.
pub(super) fn is_served(paths: &Paths, direct: PathTransport, other: &Path) -> bool {
    paths.iter().any(|path| {
        path.is_governed()
            && path.route.is_preferred(direct)
            && path.route.leads_as(&other.route)
            && path.send.is_proven()
            && path.send.timeouts() == 0
    })
}

/// Whether `other`, a path without the preferred transport (UDP or TCP), may carry data. A direct
/// path may while no direct path in use answers. A path through a relay may while no path in use
/// over UDP to that relay answers.
///
/// `each`: direct paths over TCP do not replace each other, but are used side by side, as from
/// several local addresses.
pub(super) fn may_stand_in(paths: &Paths, other: &Path, each: bool) -> bool {
    let side_by_side = |path: &Path| each && path.route.local.is_connection();
    let leads = |path: &Path| {
        path.route.is_udp_of(&other.route) || path.route.is_direct_as(&other.route) && !side_by_side(path)
    };
    !paths.iter().any(|path| path.is_governed() && leads(path) && path.send.timeouts() < SILENT)
}
