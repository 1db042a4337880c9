//! The configuration from which a gateway's kernel rules are made.

use crate::Prefix;
use crate::rules::Rules;

/// The configuration from which a gateway's kernel rules are made.
#[derive(Clone, Copy, Debug)]
pub struct KernelInputs<'a> {
    /// The TUN device.
    pub tun: &'a str,
    /// The mark, the number of the routing table, and the priority of the rule that leads there.
    pub mark: u16,
    /// Hosts behind the gateway.
    pub here: &'a [Prefix],
    /// Hosts behind other gateways.
    pub there: &'a [Prefix],
    /// The rules that say which flows are background.
    pub rules: &'a Rules,
    /// Whether packets of carried flows wait while no session can carry them.
    pub fail_closed: bool,
}
