//! The counts of each rule.

use crate::key::FlowKey;
use crate::rules::Rules;
use alloc::vec::Vec;

/// The counts of one rule.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RuleCount {
    /// Flows that this rule was the first to match. Of flows that pass, only those that the kernel
    /// shows to the gateway are counted.
    pub flows: u64,
    /// Bytes of the packets of background flows, in both directions. A gateway that only observes
    /// sees one direction. It counts this direction's TCP data, and the bytes that its ACKs
    /// acknowledge.
    pub bytes: u64,
}

/// A flow with its counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FlowStatus {
    /// The key of the flow in the direction of its opening.
    pub key: FlowKey,
    /// The index of the rule that decided. `None`: the gateway at the flow's other end decided.
    pub rule: Option<usize>,
    /// The index of the gateway at the flow's other end.
    pub peer: usize,
    /// Bytes from the host here.
    pub sent: u64,
    /// Bytes to the host here.
    pub received: u64,
}

/// The count of all rules.
#[derive(Clone, Debug, Default)]
pub(super) struct RuleCounts {
    rules: Vec<RuleCount>,
    /// Flows that a peer carries, and no rule here calls background.
    others: RuleCount,
}

impl RuleCounts {
    pub fn new(rules: &Rules) -> Self {
        Self { rules: alloc::vec![RuleCount::default(); rules.rules.len()], others: RuleCount::default() }
    }

    /// The counts of each rule in order, and then of other flows.
    pub fn all(&self) -> (Vec<RuleCount>, RuleCount) {
        (self.rules.clone(), self.others)
    }

    fn of(&mut self, rule: Option<usize>) -> &mut RuleCount {
        rule.and_then(|rule| self.rules.get_mut(rule)).unwrap_or(&mut self.others)
    }

    pub fn on_flow(&mut self, rule: Option<usize>) {
        self.of(rule).flows += 1;
    }

    pub fn on_bytes(&mut self, rule: Option<usize>, bytes: usize) {
        self.of(rule).bytes += bytes as u64;
    }

    /// Replaces the rules. Rules that existed before keep their counts. Returns the new index of
    /// each old rule.
    pub fn replace(&mut self, old: &Rules, new: &Rules) -> Vec<Option<usize>> {
        let mut after = Self::new(new);
        let mut moved = Vec::new();
        for (rule, tally) in old.rules.iter().zip(&self.rules) {
            let free = |(place, other): &(usize, &_)| *other == rule && !moved.contains(&Some(*place));
            let place = new.rules.iter().enumerate().find(free).map(|(place, _)| place);
            if let Some(kept) = place.and_then(|place| after.rules.get_mut(place)) {
                *kept = *tally;
            }
            moved.push(place);
        }
        after.others = self.others;
        *self = after;
        moved
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rules_that_stay_keep_what_they_counted() {
        let rule = |port| crate::rules::Rule {
            to_ports: alloc::vec![crate::Ports::new(port, port).unwrap()],
            ..crate::rules::Rule::default()
        };
        let rules = |ports: &[u16]| Rules { rules: ports.iter().map(|port| rule(*port)).collect() };
        let old = rules(&[1, 2, 2, 3]);
        let mut tallies = RuleCounts::new(&old);
        for (place, flows) in [(0, 5), (1, 6), (2, 7), (3, 8)] {
            (0..flows).for_each(|_| tallies.on_flow(Some(place)));
        }
        let moved = tallies.replace(&old, &rules(&[3, 4, 2, 2]));
        assert_eq!(moved, [None, Some(2), Some(3), Some(0)]);
        let counted: Vec<u64> = tallies.all().0.iter().map(|tally| tally.flows).collect();
        assert_eq!(counted, [8, 0, 6, 7]);
    }
}
