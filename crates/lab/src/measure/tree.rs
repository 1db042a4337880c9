//! A measure as a tree.

use super::functions::Function;
use core::ops::Range;

/// The name of the present member within `members(group)`.
pub(super) const MEMBER_NAME: &str = "it";

/// An expression of a measure.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Expr {
    Number(f64),
    Negate(Box<Expr>),
    /// An operation. The range is the place of its right side, for errors about division by zero.
    Binary(Op, Box<Expr>, Box<Expr>, Range<usize>),
    /// The inner expression in another variant.
    At(Box<Expr>, Vec<AxisChoice>),
    Call(Call),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Op {
    Add,
    Subtract,
    Multiply,
    Divide,
}

/// A function call: the function and its arguments.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Call {
    pub(super) function: Function,
    pub(super) arguments: Vec<Argument>,
    pub(super) place: Range<usize>,
}

#[derive(Clone, Debug, PartialEq)]
pub(super) enum Argument {
    /// A transfer, a path, a node, an axis.
    Name(String),
    Value(Expr),
    Over(Over),
    Variant(Vec<AxisChoice>),
}

/// The elements over which a function evaluates a measure.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Over {
    /// The values of an axis.
    Axis(String),
    /// The members of a group. In the measure, each is called `it`.
    Members(String),
}

/// The label of an axis.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct AxisChoice {
    pub(super) axis: String,
    pub(super) label: String,
}
