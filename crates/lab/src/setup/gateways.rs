//! Two gateways that carry the flows of the hosts behind them.

use super::PathChoice;
use byway_control::ControllerChoice;
use byway_gateway::machine::Settings;

/// A gateway at each of two nodes, and sessions between them.
#[derive(Clone, Debug, PartialEq)]
pub struct Gateways {
    /// The gateway's unique name.
    pub name: String,
    /// Where the one of the senders stands, and where that of the receivers.
    pub between: (String, String),
    /// The ways between them; the direct one is among them.
    pub paths: Vec<PathChoice>,
    /// The controller of the session, as `--congestion` takes it.
    pub congestion: ControllerChoice,
    /// The settings of the gateways.
    pub settings: Settings,
}
