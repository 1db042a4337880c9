//! What is promised of the product's class for the background: a table.

use super::grid::{Foreground, Paths, Scene};
use super::judge::{Bound, Figure, Limit};
use Figure::{Fill, Jain, JainFirst, Keeps, Least, Median, P90, Regain, Share};
use Limit::{AtLeast, AtMost};

/// Two ratios that differ by less are alike: so far the same law scatters from seed to seed.
pub const ALIKE: f64 = 0.02;
/// The part of the scenes in which no rival may be better in both.
pub const UNDOMINATED: f64 = 0.9;

/// People ask, read or talk on a line that nothing else is the matter with, beside so many transfers.
fn waits(scene: &Scene, transfers: u32) -> bool {
    matches!(scene.foreground, Foreground::Requests | Foreground::Page | Foreground::Call)
        && scene.transfers == transfers
        && scene.line.is_plain()
}

fn one_at(scene: &Scene, mbit: core::ops::Range<u32>) -> bool {
    waits(scene, 1) && mbit.contains(&scene.line.mbit)
}

/// A plain line with nobody on it but so many transfers.
fn shared(scene: &Scene) -> bool {
    scene.foreground == Foreground::Nobody && scene.transfers > 1 && scene.line.paths == Paths::One
}

fn empty(scene: &Scene, rtt_ms: core::ops::RangeInclusive<u32>) -> bool {
    scene.foreground == Foreground::Nobody
        && scene.transfers == 1
        && scene.line.is_plain()
        && rtt_ms.contains(&scene.line.rtt_ms)
}

/// Every bound on the product's own figures.
pub const BOUNDS: &[Bound] = &[
    Bound {
        id: "one-1",
        says: "one beside people at 1 Mbit/s",
        of: |scene| one_at(scene, 1..2),
        limits: &[(Median, AtMost(1.15)), (P90, AtMost(1.45)), (Share, AtLeast(0.25))],
    },
    Bound {
        id: "one-2",
        says: "one beside people at 2 Mbit/s",
        of: |scene| one_at(scene, 2..4),
        limits: &[(Median, AtMost(1.25)), (P90, AtMost(1.45)), (Share, AtLeast(0.50))],
    },
    Bound {
        id: "one-4",
        says: "one beside people at 4 Mbit/s",
        of: |scene| one_at(scene, 4..7),
        limits: &[(Median, AtMost(1.25)), (P90, AtMost(1.45)), (Share, AtLeast(0.75))],
    },
    Bound {
        id: "one-7",
        says: "one beside people from 7 Mbit/s",
        of: |scene| one_at(scene, 7..30),
        limits: &[(Median, AtMost(1.25)), (P90, AtMost(1.40)), (Share, AtLeast(0.82))],
    },
    Bound {
        id: "one-30",
        says: "one beside people from 30 Mbit/s",
        of: |scene| one_at(scene, 30..u32::MAX),
        limits: &[(Median, AtMost(1.05)), (P90, AtMost(1.10)), (Share, AtLeast(0.86))],
    },
    Bound {
        id: "eight-thin",
        says: "eight beside people below 7 Mbit/s",
        of: |scene| waits(scene, 8) && scene.line.mbit < 7,
        limits: &[(Median, AtMost(1.45)), (P90, AtMost(1.70)), (Share, AtLeast(0.60))],
    },
    Bound {
        id: "eight",
        says: "eight beside people from 7 Mbit/s",
        of: |scene| waits(scene, 8) && scene.line.mbit >= 7,
        limits: &[(Median, AtMost(1.28)), (P90, AtMost(1.42)), (Share, AtLeast(0.80))],
    },
    Bound {
        id: "shared",
        says: "transfers share a plain line",
        of: |scene| shared(scene) && scene.line.is_plain() && scene.line.mbit <= 50,
        limits: &[(JainFirst, AtLeast(0.95)), (Jain, AtLeast(0.98)), (Least, AtLeast(0.25))],
    },
    Bound {
        id: "shared-jitter",
        says: "transfers share a line with jitter of up to 3 ms",
        of: |scene| shared(scene) && (1..=3).contains(&scene.line.jitter_ms),
        limits: &[(Jain, AtLeast(0.95))],
    },
    Bound {
        id: "shared-jitter-8",
        says: "transfers share a line with jitter of 8 ms, and use it",
        of: |scene| shared(scene) && scene.line.jitter_ms > 3,
        limits: &[(Jain, AtLeast(0.85)), (Share, AtLeast(0.65))],
    },
    Bound {
        id: "bulk",
        says: "a bulk flow keeps what it has alone",
        of: |scene| scene.foreground.is_bulk() && scene.line.is_plain(),
        limits: &[(Keeps, AtLeast(0.99))],
    },
    Bound {
        id: "regain",
        says: "the line is had again after a bulk flow",
        of: |scene| scene.foreground.is_bulk() && scene.line.is_plain() && scene.line.rtt_ms < 100,
        limits: &[(Regain, AtMost(5.0))],
    },
    Bound {
        id: "regain-100",
        says: "the line is had again after a bulk flow, 100 ms",
        of: |scene| scene.foreground.is_bulk() && scene.line.is_plain() && scene.line.rtt_ms == 100,
        limits: &[(Regain, AtMost(8.0))],
    },
    Bound {
        id: "fill",
        says: "an idle line is filled, up to 60 ms",
        of: |scene| empty(scene, 0..=60),
        limits: &[(Fill, AtMost(1.5))],
    },
    Bound {
        id: "fill-100",
        says: "an idle line is filled, up to 150 ms",
        of: |scene| empty(scene, 61..=150),
        limits: &[(Fill, AtMost(2.0))],
    },
    Bound {
        id: "fill-300",
        says: "an idle line is filled, up to 300 ms",
        of: |scene| empty(scene, 151..=300),
        limits: &[(Fill, AtMost(3.5))],
    },
    Bound {
        id: "loss",
        says: "a line with random loss is used",
        of: |scene| scene.foreground == Foreground::Nobody && scene.line.loss > 0,
        limits: &[(Share, AtLeast(0.90))],
    },
];
