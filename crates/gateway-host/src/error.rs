//! Why a gateway cannot be set up, or is over.

use crate::config_file::ConfigError;
use byway_gateway::machine::InvalidConfig;
use byway_gateway::serves::MAX_PORTS;
use std::io;
use std::path::PathBuf;
use thiserror::Error;

/// Why a gateway cannot be set up, or has ended.
#[derive(Debug, Error)]
pub enum GatewayError {
    /// The file cannot be read.
    #[error("cannot read {}", file.display())]
    Unread {
        /// The file's path.
        file: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// The configuration file has a mistake.
    #[error(transparent)]
    Wrong(#[from] ConfigError),
    /// A peer has the gateway's own key.
    #[error("{}: the peer `{peer}` has this gateway's own key: write what `byway id` prints over there", file.display())]
    OwnKey {
        /// The file's path.
        file: PathBuf,
        /// The name of the peer.
        peer: String,
    },
    /// The configuration is contradictory, so no gateway can be made from it.
    #[error(transparent)]
    Impossible(#[from] InvalidConfig),
    /// A host asks for too much.
    #[error("at most {MAX_PORTS} ranges of ports can be asked for")]
    Ports,
    /// The operating system refused something, or the gateway's thread failed.
    #[error(transparent)]
    Host(#[from] byway_transfer::Error),
    /// Keys cannot be read or made.
    #[error(transparent)]
    State(#[from] byway_transfer::state_directory::StateError),
    /// The system gives no entropy.
    #[error(transparent)]
    Entropy(#[from] byway_net::EntropyError),
}

impl GatewayError {
    /// Whether the user's input is wrong, rather than the system's answer.
    #[must_use]
    pub const fn is_usage(&self) -> bool {
        matches!(self, Self::Wrong(_) | Self::OwnKey { .. } | Self::Impossible(_) | Self::Ports)
    }
}
