//! How a host serves.

use super::flow_spec::newreno;
use super::options::TcpConfig;
use byway_control::Controller;
use byway_wire::Instant;

/// A function that makes the controller of a connection with these options, with random numbers
/// from `seed`.
pub type MakeController = fn(seed: u64, options: &TcpConfig) -> Box<dyn Controller>;

/// The options of a host for connections that it accepts.
#[derive(Clone, Debug)]
pub struct ServerConfig {
    /// The options of this end.
    pub options: TcpConfig,
    /// Makes the controller of each connection on which this end answers with data.
    pub controller: MakeController,
    /// The reading rate of the application in bits per second for each connection, with the time
    /// from which it applies. `None` or an empty list: no limit.
    pub reading: Vec<(Instant, Option<u64>)>,
}

impl Default for ServerConfig {
    fn default() -> Self {
        Self { options: TcpConfig::default(), controller: |_, _| newreno(), reading: Vec::new() }
    }
}
