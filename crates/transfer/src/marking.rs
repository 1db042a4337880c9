//! Which code point a session's packets get.

use byway_control::Class;
use byway_wire::Dscp;

/// Returns the DSCP code point of sessions with the congestion controller `congestion`: lower
/// effort (LE, RFC 8622) for `background`, else best effort.
#[must_use]
pub fn default_dscp(congestion: &str) -> Dscp {
    if congestion == Class::Background.default_name() { Dscp::LowerEffort } else { Dscp::BestEffort }
}
