//! Which code point a session's packets get.

use byway_control::Class;
use byway_wire::Dscp;

/// The DSCP code point of sessions whose congestion controller has this name. It is lower effort
/// (LE, RFC 8622) for the class `background`, and best effort for all others.
#[must_use]
pub fn default_dscp(congestion: &str) -> Dscp {
    if congestion == Class::Background.default_name() { Dscp::LowerEffort } else { Dscp::BestEffort }
}
