//! How a paper is read.

use serde::{Deserialize, Serialize};
use std::fmt;

/// The reading of a paper's claim, or byway's own law.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Reading {
    /// The literal words of the paper.
    Strict,
    /// Another reading. The experiment's README declares it, with the sentence of the paper that
    /// supports it.
    Second,
    /// byway's own law in the place of the paper's, or a claim that no paper makes.
    Ours,
}

impl fmt::Display for Reading {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Strict => "strict",
            Self::Second => "second",
            Self::Ours => "ours",
        })
    }
}
