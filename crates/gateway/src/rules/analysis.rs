//! Finds mistakes in a rule table: rules that no flow can reach, and pairs of rules that disagree.
//! A rule's flows form a box in several dimensions, such as addresses. Earlier rules' boxes are cut
//! out of this box.

use super::classification::{Direction, Rule, Rules};
use crate::ports::Ports;
use alloc::vec;
use alloc::vec::Vec;
use byway_wire::Prefix;
use core::fmt;

/// The most intervals into which a rule is cut to find whether any part of it can match. Beyond,
/// the question stays open.
const MAX_INTERVALS: usize = 200_000;

/// A remark about a rule. Rules are numbered from 0.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RuleFinding {
    /// No flow can match the rule.
    Impossible {
        /// The place of the rule.
        rule: usize,
    },
    /// Earlier rules decide about every flow that the rule matches.
    Unreachable {
        /// The place of the rule.
        rule: usize,
        /// The numbers of the earlier rules that overlap with this rule.
        by: Vec<usize>,
    },
    /// Some flows match both rules, which disagree, and neither is an exception to the other.
    Overlap {
        /// The place of the rule.
        rule: usize,
        /// The number of the earlier rule, which decides.
        earlier: usize,
    },
}

impl fmt::Display for RuleFinding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Impossible { rule } => {
                write!(f, "rule {} matches no flow: its addresses are of different IP versions", rule + 1)
            }
            Self::Unreachable { rule, by } => {
                let plural = if by.len() == 1 { "" } else { "s" };
                write!(f, "rule {} is never reached: rule{plural} ", rule + 1)?;
                for (index, earlier) in by.iter().enumerate() {
                    let before = match index {
                        0 => "",
                        _ if index + 1 == by.len() => " and ",
                        _ => ", ",
                    };
                    write!(f, "{before}{}", earlier + 1)?;
                }
                write!(f, " before it match{} all of its flows", if by.len() == 1 { "es" } else { "" })
            }
            Self::Overlap { rule, earlier } => write!(
                f,
                "rules {} and {} disagree about some flows: rule {} comes first and decides",
                earlier + 1,
                rule + 1,
                earlier + 1
            ),
        }
    }
}

/// Returns the findings about a table, in the order of its rules.
#[must_use]
pub fn analyse(rules: &Rules) -> Vec<RuleFinding> {
    let boxes: Vec<Vec<Cuboid>> = rules.rules.iter().map(cuboids).collect();
    let mut findings = Vec::new();
    for (rule, own) in boxes.iter().enumerate() {
        if own.is_empty() {
            findings.push(RuleFinding::Impossible { rule });
            continue;
        }
        let before = boxes.iter().enumerate().take(rule);
        let by: Vec<usize> =
            before.filter(|(_, other)| overlap(own, other)).map(|(place, _)| place).collect();
        let earlier = by.iter().filter_map(|place| boxes.get(*place)).flatten();
        if left_of(own, earlier).is_some_and(|left| left.is_empty()) {
            findings.push(RuleFinding::Unreachable { rule, by });
            continue;
        }
        for earlier in by {
            let (Some(first), Some(second)) = (rules.rules.get(earlier), rules.rules.get(rule)) else {
                continue;
            };
            // An exception before the rule that it is an exception to is what the order is for.
            let exception = boxes
                .get(earlier)
                .is_some_and(|inner| left_of(inner, own).is_some_and(|left| left.is_empty()));
            if first.action != second.action && !exception {
                findings.push(RuleFinding::Overlap { rule, earlier });
            }
        }
    }
    findings
}

/// First and last, both included.
type Interval = (u128, u128);

/// Values in order: no two intervals meet or touch.
type IntervalSet = Vec<Interval>;

const SIDE_COUNT: usize = 7;

/// A box: one set of intervals per dimension, in the order `version, source, destination, source
/// port, destination port, code point, direction`. With single intervals, a rule with 100 hosts and
/// 100 ports on each side would need 10^8 boxes.
type Cuboid = [IntervalSet; SIDE_COUNT];

/// The flows that a rule matches: a box of each version of IP that it may be of.
fn cuboids(rule: &Rule) -> Vec<Cuboid> {
    let ports = |list: &[Ports]| -> IntervalSet {
        let all = [Ports::ALL];
        let list = if list.is_empty() { &all[..] } else { list };
        set(list.iter().map(|ports| (ports.first().into(), ports.last().into())))
    };
    let marks = match rule.dscp.as_slice() {
        [] => vec![(0, 63)],
        list => set(list.iter().map(|dscp| (dscp.number().into(), dscp.number().into()))),
    };
    let directions = match rule.direction {
        Direction::Outbound => (0, 0),
        Direction::Inbound => (1, 1),
        Direction::Both => (0, 1),
    };
    let of = |v6: bool| -> Cuboid {
        [
            vec![(v6.into(), v6.into())],
            addresses(&rule.from, v6),
            addresses(&rule.to, v6),
            ports(&rule.from_ports),
            ports(&rule.to_ports),
            marks.clone(),
            vec![directions],
        ]
    };
    let mut cuboids = vec![of(false), of(true)];
    cuboids.retain(|cuboid| !cuboid.iter().any(Vec::is_empty));
    cuboids
}

fn addresses(list: &[Prefix], v6: bool) -> IntervalSet {
    if list.is_empty() {
        return vec![(0, if v6 { u128::MAX } else { u32::MAX.into() })];
    }
    set(list.iter().filter(|prefix| prefix.address().is_ipv6() == v6).map(Prefix::interval))
}

/// Sorts intervals, and merges overlapping or adjacent ones.
fn set(intervals: impl Iterator<Item = Interval>) -> IntervalSet {
    let mut list: Vec<Interval> = intervals.collect();
    list.sort_unstable();
    let mut merged: IntervalSet = Vec::new();
    for (first, last) in list {
        match merged.last_mut() {
            Some(before) if first <= before.1.saturating_add(1) => before.1 = before.1.max(last),
            _ => merged.push((first, last)),
        }
    }
    merged
}

/// The intersection of two sets.
fn both(a: &IntervalSet, b: &IntervalSet) -> IntervalSet {
    let mut common = Vec::new();
    let (mut i, mut j) = (0, 0);
    while let (Some(x), Some(y)) = (a.get(i), b.get(j)) {
        if x.0 <= y.1 && y.0 <= x.1 {
            common.push((x.0.max(y.0), x.1.min(y.1)));
        }
        if x.1 < y.1 { i += 1 } else { j += 1 }
    }
    common
}

/// Returns the part of `own` outside `hole`, which lies within `own`.
fn without(own: &IntervalSet, hole: &IntervalSet) -> IntervalSet {
    let mut left = Vec::new();
    let mut holes = hole.iter().peekable();
    for &(mut first, last) in own {
        let mut over = false;
        while let Some(hole) = holes.next_if(|hole| hole.0 <= last) {
            if first < hole.0 {
                left.push((first, hole.0 - 1));
            }
            over = hole.1 == last;
            first = hole.1.saturating_add(1);
        }
        if !over {
            left.push((first, last));
        }
    }
    left
}

fn meet(a: &Cuboid, b: &Cuboid) -> bool {
    a.iter().zip(b).all(|(a, b)| !both(a, b).is_empty())
}

fn overlap(a: &[Cuboid], b: &[Cuboid]) -> bool {
    a.iter().any(|a| b.iter().any(|b| meet(a, b)))
}

/// Returns the part of `own` outside all `others`. `None`: the computation would be too long.
fn left_of<'a>(own: &[Cuboid], others: impl IntoIterator<Item = &'a Cuboid>) -> Option<Vec<Cuboid>> {
    let mut left = own.to_vec();
    for other in others {
        let mut pieces = Vec::new();
        for piece in left {
            cut(piece, other, &mut pieces);
        }
        if pieces.iter().flatten().map(Vec::len).sum::<usize>() > MAX_INTERVALS {
            return None;
        }
        left = pieces;
    }
    Some(left)
}

/// The parts of `piece` outside of `other`, cut off along each dimension.
fn cut(mut piece: Cuboid, other: &Cuboid, pieces: &mut Vec<Cuboid>) {
    if !meet(&piece, other) {
        pieces.push(piece);
        return;
    }
    for side in 0..SIDE_COUNT {
        let common = both(&piece[side], &other[side]);
        let beyond = without(&piece[side], &common);
        if !beyond.is_empty() {
            let mut part = piece.clone();
            part[side] = beyond;
            pieces.push(part);
        }
        piece[side] = common;
    }
}
