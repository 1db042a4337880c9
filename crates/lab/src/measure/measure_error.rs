//! What is wrong with the text of a measure.

use thiserror::Error;

/// A mistake in a measure, and its place.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("byte {}: {what}", at + 1)]
pub struct MeasureError {
    /// The byte of the measure where the mistake shows, counted from 0.
    pub at: usize,
    /// What was found, and what was expected.
    pub what: String,
}
