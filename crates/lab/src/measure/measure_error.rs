//! The errors in the text of a measure.

use thiserror::Error;

/// A mistake in a measure, and its place.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("byte {}: {what}", at + 1)]
pub struct MeasureError {
    /// The byte of the measure where the mistake shows, counted from 0.
    pub at: usize,
    /// The text that was found, and the text that was expected.
    pub what: String,
}
