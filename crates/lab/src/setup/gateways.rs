//! Two gateways that carry the flows of the hosts behind them.

use super::path_choice::PathChoice;
use byway_control::ControllerChoice;
use byway_gateway::machine::Settings;

/// A pair of gateways at two nodes.
#[derive(Clone, Debug, PartialEq)]
pub struct Gateways {
    /// The gateway's unique name.
    pub name: String,
    /// The node of the senders' gateway, and the node of the receivers'.
    pub between: (String, String),
    /// The routes between the gateways, including the direct one.
    pub paths: Vec<PathChoice>,
    /// The congestion controller of the sessions, written as for `--congestion`.
    pub congestion: ControllerChoice,
    /// The settings of the gateways.
    pub settings: Settings,
}
