//! Which code point a session's packets get.

use byway_control::Class;
use byway_wire::Dscp;

/// The code point of sessions under the controller that is called `congestion`. The class `background` asks networks too for lower
/// effort (LE, RFC 8622), and nobody else does.
#[must_use]
pub fn default_dscp(congestion: &str) -> Dscp {
    if congestion == Class::Background.default_name() { Dscp::LowerEffort } else { Dscp::BestEffort }
}
