//! The identity of a sweep, which decides the outcome of a run besides its variant and seed.

use crate::measure::Measure;
use crate::plan::Plan;

/// The identity of a sweep: the plan with its mode and values, and the program. Both are hashes in
/// hexadecimal digits.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct SweepIdentity {
    /// The hash of every variant of the plan, with what the plan leaves to defaults, and of what is
    /// measured. The number of seeds is not in it, so that seeds can be added.
    pub plan: String,
    /// The hash of the program's file.
    pub program: String,
}

impl SweepIdentity {
    /// The identity of `plan`, of which `measures` are asked, under the program with this hash.
    /// `hash` makes a hash of text.
    pub fn new(plan: &Plan, measures: &[Measure], program: &str, hash: impl Fn(&str) -> String) -> Self {
        let asked: Vec<&str> = measures.iter().map(Measure::text).collect();
        Self { plan: hash(&format!("{:?} {asked:?}", plan.variants)), program: program.to_owned() }
    }
}
