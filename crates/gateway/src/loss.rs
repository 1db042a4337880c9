//! Three rules that tell which packets were lost, behind one trait.
//!
//! | rule | a packet is lost when | who says so |
//! |---|---|---|
//! | [`AllPassed`] | on each path with data outstanding something behind it has arrived | Harp, III.D |
//! | [`Batched`] | a packet arrives whose map names it as an earlier one of the same path | HIR, 7.3 |
//! | [`PathNumbers`] | enough later packets of its path have arrived | mPath, RFC 9002 |
//!
//! The numbers by which a rule knows packets are the gateway's own. Each number is used once: a
//! packet that is sent again gets a new one. A rule is told which packets are sent and which have
//! arrived. The entry knows the arrivals by the acknowledgments of the paths. In Harp the rule runs
//! at the exit, which knows only the arrivals. So it would wait forever for a path on which nothing
//! is in flight. Here only paths count that have data outstanding.

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

/// The rules by name.
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

    /// The loss rule. A packet is lost once `later` packets of its path have arrived or named it: 1
    /// if paths keep the order, 3 if they may not. `AllPassed` does not use this number.
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
