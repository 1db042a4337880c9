//! How a host serves.

use super::flow_spec::newreno;
use super::options::TcpConfig;
use byway_control::Controller;
use byway_wire::Instant;

/// Makes the controller of a connection with these options, with random numbers from `seed`.
pub type MakeController = fn(seed: u64, options: &TcpConfig) -> Box<dyn Controller>;

/// How a host serves connections that others open.
#[derive(Clone, Debug)]
pub struct ServerConfig {
    /// The options of this end.
    pub options: TcpConfig,
    /// Makes the controller of each connection on which this end answers with data.
    pub controller: MakeController,
    /// From each instant on, the bits per second that the application takes from each connection;
    /// `None`: all at once. Empty: all at once, always.
    pub reading: Vec<(Instant, Option<u64>)>,
}

impl Default for ServerConfig {
    fn default() -> Self {
        Self { options: TcpConfig::default(), controller: |_, _| newreno(), reading: Vec::new() }
    }
}
