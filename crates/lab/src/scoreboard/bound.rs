//! A bound: a figure of a scene, its limit, and the reason of a known miss.

use super::grid::{Foreground, Scene};
use super::measure::Figures;

/// A figure of a scene.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Figure {
    /// See [`Figures::median`].
    Median,
    /// See [`Figures::p90`].
    P90,
    /// See [`Figures::late`].
    Late,
    /// See [`Figures::share`].
    Share,
    /// See [`Figures::fill`].
    Fill,
    /// See [`Figures::jain_first`].
    JainFirst,
    /// See [`Figures::jain`].
    Jain,
    /// See [`Figures::least`].
    Least,
    /// See [`Figures::of_one`].
    OfOne,
    /// See [`Figures::keeps`].
    Keeps,
    /// See [`Figures::regain`].
    Regain,
}

impl Figure {
    /// All figures that have bounds.
    pub const ALL: [Self; 11] = [
        Self::Median,
        Self::P90,
        Self::Late,
        Self::Share,
        Self::Fill,
        Self::JainFirst,
        Self::Jain,
        Self::Least,
        Self::OfOne,
        Self::Keeps,
        Self::Regain,
    ];

    /// The name of the figure.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Median => "median",
            Self::P90 => "p90",
            Self::Late => "late",
            Self::Share => "share",
            Self::Fill => "fill",
            Self::JainFirst => "jain_first",
            Self::Jain => "jain",
            Self::Least => "least",
            Self::OfOne => "of_one",
            Self::Keeps => "keeps",
            Self::Regain => "regain",
        }
    }

    /// The value of this measured quantity in a test case. `foreground` is the traffic that shares
    /// the line with the measured transfers. The time until an event that never happened is
    /// infinite. `None`: the quantity does not exist, such as a request time without requests.
    #[must_use]
    pub fn of(self, figures: &Figures, foreground: Foreground) -> Option<f64> {
        let never = |value: Option<f64>, possible: bool| possible.then(|| value.unwrap_or(f64::INFINITY));
        match self {
            Self::Median => never(figures.median, foreground.waits()),
            Self::P90 => never(figures.p90, foreground.waits()),
            Self::Late => figures.late,
            Self::Share => figures.share,
            Self::Fill => never(figures.fill, foreground == Foreground::Nobody),
            Self::JainFirst => figures.jain_first,
            Self::Jain => figures.jain,
            Self::Least => figures.least,
            Self::OfOne => figures.of_one,
            Self::Keeps => figures.keeps,
            Self::Regain => never(figures.regain, foreground.is_bulk()),
        }
    }
}

/// The limit of a figure.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Limit {
    /// The figure may not be above this.
    AtMost(f64),
    /// The figure may not be below this.
    AtLeast(f64),
}

impl Limit {
    /// Whether `value`, rounded as printed, is within the limit.
    #[must_use]
    pub fn holds(self, value: f64) -> bool {
        // A bound of 1.25 holds for 1.254, which nobody can tell from 1.25 on the board.
        let printed = if value.is_finite() { libm::round(value * 100.0) / 100.0 } else { value };
        match self {
            Self::AtMost(most) => printed <= most,
            Self::AtLeast(least) => printed >= least,
        }
    }
}

/// Something that is promised.
#[derive(Clone, Copy, Debug)]
pub struct Bound {
    /// The name of the bound.
    pub id: &'static str,
    /// The text of the bound.
    pub says: &'static str,
    /// Whether the bound holds in a scene.
    pub of: fn(&Scene) -> bool,
    /// The figures that are bounded, and their limits.
    pub limits: &'static [(Figure, Limit)],
}

/// A bound that is known to be broken in a scene, and the reason.
#[derive(Clone, Copy, Debug)]
pub struct KnownFailure {
    /// The name of the bound.
    pub bound: &'static str,
    /// How the names of the scenes begin.
    pub scene: &'static str,
    /// Why the bound is missed.
    pub reason: &'static str,
}

/// A row of a list of known misses.
pub(super) const fn known(bound: &'static str, scene: &'static str, reason: &'static str) -> KnownFailure {
    KnownFailure { bound, scene, reason }
}
