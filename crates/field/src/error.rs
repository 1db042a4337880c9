//! The errors of the field, by their causes.

use byway_control::ChoiceError;
use byway_emulate::KeeperError;
use byway_lab::expect::ExpectError;
use byway_lab::measure::RecordsError;
use byway_lab::plan::PlanError;
use byway_lab::scoreboard::CellError;
use byway_lab::world::RunError;
use std::io;
use std::string::FromUtf8Error;
use thiserror::Error;

/// Why something could not be done.
#[derive(Debug, Error)]
pub enum Error {
    /// The request is wrong. The text says why.
    #[error("{0}")]
    Usage(String),
    /// Nothing has the name that was given.
    #[error("{0}")]
    NotFound(String),
    /// Something that was to be done failed.
    #[error("{0}")]
    Failed(String),
    /// The system refused a call.
    #[error(transparent)]
    Io(#[from] io::Error),
    /// The lab could not be started on this machine.
    #[error(transparent)]
    Keeper(#[from] KeeperError),
    /// Another failure, with its subject.
    #[error("{about}")]
    About {
        /// The subject of the failure.
        about: String,
        /// The underlying failure.
        source: Box<Error>,
    },
}

/// The result type of this crate.
pub type Result<T, E = Error> = std::result::Result<T, E>;

impl Error {
    pub(crate) fn failed(what: impl Into<String>) -> Self {
        Self::Failed(what.into())
    }
}

/// Implements `From` for failures of other crates whose text is one full sentence.
macro_rules! sentences {
    ($($error:ty),* $(,)?) => {
        $(impl From<$error> for Error {
            fn from(error: $error) -> Self {
                Self::Failed(error.to_string())
            }
        })*
    };
}

sentences!(
    byway_sim::topology::TopologyError,
    CellError,
    ChoiceError,
    ExpectError,
    FromUtf8Error,
    PlanError,
    RecordsError,
    RunError,
    rustix::io::Errno,
    serde_json::Error,
    toml::ser::Error,
);

/// Adds a subject to a failure.
pub(crate) trait About<T> {
    /// Returns the failure, with its subject in front.
    fn about<W: Into<String>>(self, what: impl FnOnce() -> W) -> Result<T>;
}

impl<T, E: Into<Error>> About<T> for Result<T, E> {
    fn about<W: Into<String>>(self, what: impl FnOnce() -> W) -> Result<T> {
        self.map_err(|error| Error::About { about: what().into(), source: Box::new(error.into()) })
    }
}

/// Turns a missing value into a failure.
pub(crate) trait OrFailed<T> {
    /// The value. If it is missing, a failure with this sentence.
    fn or_failed<W: Into<String>>(self, what: impl FnOnce() -> W) -> Result<T>;
}

impl<T> OrFailed<T> for Option<T> {
    fn or_failed<W: Into<String>>(self, what: impl FnOnce() -> W) -> Result<T> {
        self.ok_or_else(|| Error::failed(what()))
    }
}
