//! Why a gateway cannot be set up, or is over.

use crate::config_file::ConfigError;
use byway_gateway::machine::InvalidConfig;
use byway_gateway::serves::MAX_PORTS;
use std::io;
use std::path::PathBuf;
use thiserror::Error;

/// Why a gateway cannot be set up, or is over.
#[derive(Debug, Error)]
pub enum GatewayError {
    /// The file cannot be read.
    #[error("cannot read {}", file.display())]
    Unread {
        /// The file's path.
        file: PathBuf,
        /// What the system says.
        source: io::Error,
    },
    /// The file says something wrong.
    #[error(transparent)]
    Wrong(#[from] ConfigError),
    /// A peer has the gateway's own key.
    #[error("{}: the peer `{peer}` has this gateway's own key: write what `byway id` prints over there", file.display())]
    OwnKey {
        /// The file's path.
        file: PathBuf,
        /// The peer's name.
        peer: String,
    },
    /// No gateway can be made of it.
    #[error(transparent)]
    Impossible(#[from] InvalidConfig),
    /// A host asks for too much.
    #[error("at most {MAX_PORTS} ranges of ports can be asked for")]
    Ports,
    /// The system does not give what it needs, or its thread broke.
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
    /// Whether what a person wrote is wrong, and not what the system does.
    #[must_use]
    pub const fn is_usage(&self) -> bool {
        matches!(self, Self::Wrong(_) | Self::OwnKey { .. } | Self::Impossible(_) | Self::Ports)
    }
}
