//! The errors that end a demo.

use byway_net::{BindError, EntropyError};
use byway_transfer::TransferError;
use byway_wire::relay::RelayWordError;
use std::io;
use thiserror::Error;

/// Why a demo could not go on.
#[derive(Debug, Error)]
pub enum DemoError {
    /// The system gives no socket.
    #[error(transparent)]
    Bind(#[from] BindError),
    /// The system gives no randomness.
    #[error(transparent)]
    Entropy(#[from] EntropyError),
    /// The system gives no thread.
    #[error(transparent)]
    Thread(#[from] io::Error),
    /// A relay cannot be named.
    #[error(transparent)]
    Word(#[from] RelayWordError),
    /// Sender or receiver could not be started, or could not go on.
    #[error(transparent)]
    Start(#[from] byway_transfer::Error),
    /// The transfer failed.
    #[error("the transfer failed: {0}")]
    Transfer(TransferError),
}

pub(super) type Result<T> = std::result::Result<T, DemoError>;
