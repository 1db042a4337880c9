//! What is wrong with a table: rules that no flow can reach, and rules that disagree about flows.
//!
//! A rule is a set of boxes: intervals of addresses, ports, code points and directions. What earlier rules leave of a rule is
//! computed exactly, by cutting their boxes out of its boxes; if nothing is left, no flow reaches it.

use super::{Direction, Rule, Rules};
use crate::prefix::{Ports, Prefix};
use alloc::vec;
use alloc::vec::Vec;
use core::fmt;

/// Pieces into which a rule may be cut before the question whether anything is left of it is given up.
const MOST_PIECES: usize = 20_000;

/// Something to tell about a rule. Rules are named by their place, from 0.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Finding {
    /// No flow can match the rule.
    Impossible {
        /// The rule.
        rule: usize,
    },
    /// Every flow that the rule matches is decided by earlier ones.
    Unreachable {
        /// The rule.
        rule: usize,
        /// The earlier rules that overlap with it.
        by: Vec<usize>,
    },
    /// Some flows match both rules, which say different things, and neither is an exception to the other.
    Overlap {
        /// The rule.
        rule: usize,
        /// The earlier one, which decides.
        earlier: usize,
    },
}

impl fmt::Display for Finding {
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

/// What is to be told about a table, in the order of its rules.
#[must_use]
pub fn analyse(rules: &Rules) -> Vec<Finding> {
    let boxes: Vec<Vec<Cuboid>> = rules.rules.iter().map(cuboids).collect();
    let mut findings = Vec::new();
    for (rule, own) in boxes.iter().enumerate() {
        if own.is_empty() {
            findings.push(Finding::Impossible { rule });
            continue;
        }
        let before = boxes.iter().enumerate().take(rule);
        let by: Vec<usize> =
            before.filter(|(_, other)| overlap(own, other)).map(|(place, _)| place).collect();
        let earlier = by.iter().filter_map(|place| boxes.get(*place)).flatten();
        if left_of(own, earlier).is_some_and(|left| left.is_empty()) {
            findings.push(Finding::Unreachable { rule, by });
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
                findings.push(Finding::Overlap { rule, earlier });
            }
        }
    }
    findings
}

/// First and last, both included.
type Interval = (u128, u128);

const SIDES: usize = 7;

/// Version, source, destination, source port, destination port, code point, direction.
type Cuboid = [Interval; SIDES];

fn cuboids(rule: &Rule) -> Vec<Cuboid> {
    let ports = |list: &[Ports]| -> Vec<Interval> {
        let all = [Ports::ALL];
        let list = if list.is_empty() { &all[..] } else { list };
        list.iter().map(|ports| (ports.first().into(), ports.last().into())).collect()
    };
    let marks: Vec<Interval> = match rule.dscp.as_slice() {
        [] => vec![(0, 63)],
        list => list.iter().map(|dscp| (dscp.number().into(), dscp.number().into())).collect(),
    };
    let directions = match rule.direction {
        Direction::Outbound => (0, 0),
        Direction::Inbound => (1, 1),
        Direction::Both => (0, 1),
    };
    let (from_ports, to_ports) = (ports(&rule.from_ports), ports(&rule.to_ports));
    let mut cuboids = Vec::new();
    for v6 in [false, true] {
        for from in addresses(&rule.from, v6) {
            for to in addresses(&rule.to, v6) {
                for from_ports in &from_ports {
                    for to_ports in &to_ports {
                        let version = (u128::from(v6), u128::from(v6));
                        cuboids.extend(
                            marks
                                .iter()
                                .map(|marks| [version, from, to, *from_ports, *to_ports, *marks, directions]),
                        );
                    }
                }
            }
        }
    }
    cuboids
}

fn addresses(list: &[Prefix], v6: bool) -> Vec<Interval> {
    if list.is_empty() {
        return vec![(0, if v6 { u128::MAX } else { u32::MAX.into() })];
    }
    list.iter().filter(|prefix| prefix.address().is_ipv6() == v6).map(Prefix::interval).collect()
}

fn meet(a: &Cuboid, b: &Cuboid) -> bool {
    a.iter().zip(b).all(|(a, b)| a.0 <= b.1 && b.0 <= a.1)
}

fn overlap(a: &[Cuboid], b: &[Cuboid]) -> bool {
    a.iter().any(|a| b.iter().any(|b| meet(a, b)))
}

/// What is left of `own` without `others`. `None` if that is too much work.
fn left_of<'a>(own: &[Cuboid], others: impl IntoIterator<Item = &'a Cuboid>) -> Option<Vec<Cuboid>> {
    let mut left = own.to_vec();
    for other in others {
        let mut pieces = Vec::new();
        for piece in left {
            cut(piece, other, &mut pieces);
        }
        if pieces.len() > MOST_PIECES {
            return None;
        }
        left = pieces;
    }
    Some(left)
}

/// The parts of `piece` outside of `other`: along each side what lies below and what lies above it.
fn cut(mut piece: Cuboid, other: &Cuboid, pieces: &mut Vec<Cuboid>) {
    if !meet(&piece, other) {
        pieces.push(piece);
        return;
    }
    for side in 0..SIDES {
        let (own, hole) = (piece[side], other[side]);
        if own.0 < hole.0 {
            let mut below = piece;
            below[side] = (own.0, hole.0 - 1);
            pieces.push(below);
        }
        if own.1 > hole.1 {
            let mut above = piece;
            above[side] = (hole.1 + 1, own.1);
            pieces.push(above);
        }
        piece[side] = (own.0.max(hole.0), own.1.min(hole.1));
    }
}
