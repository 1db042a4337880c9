//! Three rules that decide which packets were lost.
//!
//! | rule | a packet is lost when | who says so |
//! |---|---|---|
//! | [`AllPassed`] | on each path with data outstanding something behind it has arrived | Harp, III.D |
//! | [`Batched`] | a packet arrives whose map names it as an earlier one of the same path | HIR, 7.3 |
//! | [`PathNumbers`] | enough later packets of its path have arrived | mPath, RFC 9002 |
//!
//! All implement `LossRule`. A rule learns which packets are sent on which path, and, by the paths'
//! acknowledgments, which have arrived. A packet that is sent again gets a new number.

mod all_passed;
mod batch;
mod detection_delay;
mod path_numbers;
mod rule;

pub use all_passed::AllPassed;
pub use batch::{BatchHoles, BatchMap, Batched};
pub use detection_delay::DetectionDelays;
pub use path_numbers::PathNumbers;
pub use rule::{LossRule, SentPacket};

use alloc::boxed::Box;

/// The loss rules, for configurations.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum LossRuleKind {
    /// The rule [`AllPassed`].
    AllPassed,
    /// The rule [`Batched`].
    Batched,
    /// The rule [`PathNumbers`].
    #[default]
    PathNumbers,
}

impl LossRuleKind {
    /// All rules for losses.
    pub const ALL: [Self; 3] = [Self::AllPassed, Self::Batched, Self::PathNumbers];

    /// The name of the rule.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::AllPassed => "all-passed",
            Self::Batched => "batched",
            Self::PathNumbers => "path-numbers",
        }
    }

    /// Makes the rule. `later`: after this number of later packets of the same path, a missing
    /// packet counts as lost. [`PathNumbers`] and [`Batched`] use this number; [`AllPassed`]
    /// ignores it. Use 1 if paths keep packets in order, 3 if they may not.
    #[must_use]
    pub fn make(self, later: u32) -> Box<dyn LossRule> {
        match self {
            Self::AllPassed => Box::new(AllPassed::default()),
            Self::Batched => Box::new(Batched::new(later)),
            Self::PathNumbers => Box::new(PathNumbers::new(later)),
        }
    }
}

#[cfg(test)]
mod tests;
