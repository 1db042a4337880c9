//! Three rules that tell which packets were lost, behind one trait.
//!
//! | rule | a packet is lost when | who says so |
//! |---|---|---|
//! | [`AllPassed`] | on each path with data outstanding something behind it has arrived | Harp, III.D |
//! | [`Batched`] | a packet arrives whose map names it as an earlier one of the same path | HIR, 7.3 |
//! | [`PathNumbers`] | enough later packets of its path have arrived | mPath, RFC 9002 |
//!
//! Sequences are the gateway's own, so each is sent once: what is sent again is another packet. A
//! rule is told what is sent and what has arrived; the entry knows both, the latter by the
//! acknowledgments of the paths. Harp's exit knows only the arrivals. It would wait for ever for a
//! path on which nothing is under way. Here only paths count that have data outstanding.

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

    /// The rule, where `later` packets of a path make an earlier one lost: 1 if paths keep the
    /// order, 3 if they may not. Harp's own has no such number.
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
