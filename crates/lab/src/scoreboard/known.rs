//! Bounds that are known to be missed, and why. A miss that stands here does not fail the board.

use super::judge::Known;

/// Every known miss.
pub const KNOWN: &[Known] = &[];
