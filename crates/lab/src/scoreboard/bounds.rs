//! The table of bounds that the product's background class must keep.

use super::bound::{Bound, Figure, Limit};
use super::grid::{Foreground, Paths, Scene};
use super::transfer_mix::TransferMix;
use Figure::{Fill, Jain, JainFirst, Keeps, Least, Median, OfOne, P90, Regain, Share};
use Limit::{AtLeast, AtMost};

/// Two ratios that differ by less are alike: so far the same law scatters from seed to seed.
pub const RATIO_TOLERANCE: f64 = 0.02;
/// The part of the scenes in which no rival may be better in both.
pub const UNDOMINATED_SHARE: f64 = 0.9;

/// Whether people ask, read or talk on a plain line beside `transfers` transfers.
fn waits(scene: &Scene, transfers: u32) -> bool {
    matches!(scene.foreground, Foreground::Requests | Foreground::Page | Foreground::Call)
        && scene.transfers == transfers
        && scene.line.is_plain()
}

fn one_at(scene: &Scene, mbit: core::ops::Range<u32>) -> bool {
    waits(scene, 1) && mbit.contains(&scene.line.mbit)
}

/// Whether a scene has one path, several equal transfers, and no foreground.
fn shared(scene: &Scene) -> bool {
    scene.foreground == Foreground::Nobody
        && scene.transfers > 1
        && scene.line.paths == Paths::One
        && scene.among == TransferMix::Alike
}

/// Whether a scene has one transfer over `paths`, and no foreground.
fn over(scene: &Scene, paths: Paths) -> bool {
    scene.foreground == Foreground::Nobody && scene.transfers == 1 && scene.line.paths == paths
}

fn empty(scene: &Scene, rtt_ms: core::ops::RangeInclusive<u32>) -> bool {
    scene.foreground == Foreground::Nobody
        && scene.transfers == 1
        && scene.line.is_plain()
        && rtt_ms.contains(&scene.line.rtt_ms)
}

/// Every bound on the product's own figures.
pub const PRODUCT_BOUNDS: &[Bound] = &[
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
        id: "shared-10",
        says: "transfers share a plain line of 10 Mbit/s from the first minute on",
        of: |scene| shared(scene) && scene.line.is_plain() && scene.line.mbit == 10,
        limits: &[(JainFirst, AtLeast(0.98))],
    },
    Bound {
        id: "shared-jitter",
        says: "transfers share a line with jitter of up to 3 ms",
        of: |scene| shared(scene) && (1..=3).contains(&scene.line.jitter_ms),
        limits: &[(Jain, AtLeast(0.95)), (Least, AtLeast(0.25))],
    },
    Bound {
        id: "shared-jitter-8",
        says: "transfers share a line with jitter of 8 ms, and use it",
        of: |scene| shared(scene) && scene.line.jitter_ms > 3,
        limits: &[(Jain, AtLeast(0.85)), (Share, AtLeast(0.65)), (Least, AtLeast(0.25))],
    },
    Bound {
        id: "late",
        says: "a transfer that begins 20 s later shares the line",
        of: |scene| scene.among == TransferMix::Late,
        limits: &[(JainFirst, AtLeast(0.95)), (Jain, AtLeast(0.95)), (Least, AtLeast(0.25))],
    },
    Bound {
        id: "rtt",
        says: "transfers share a line, round-trip times 1 to 4 apart",
        of: |scene| matches!(scene.among, TransferMix::Rtt(_)),
        limits: &[(JainFirst, AtLeast(0.95)), (Jain, AtLeast(0.95)), (Least, AtLeast(0.25))],
    },
    Bound {
        id: "coupled",
        says: "three paths over one line take what one path does",
        of: |scene| scene.among == TransferMix::Single,
        limits: &[(OfOne, AtMost(1.2))],
    },
    Bound {
        id: "access",
        says: "paths over one line have together what one has",
        of: Scene::instead_of_one_path,
        limits: &[(OfOne, AtLeast(0.98))],
    },
    Bound {
        id: "disjoint",
        says: "three paths over lines of their own use them: 27 of 30 Mbit/s",
        of: |scene| over(scene, Paths::ThreeOverThree),
        limits: &[(Share, AtLeast(0.90))],
    },
    Bound {
        id: "mpath-7",
        says: "the network of mPath's figure 7 is used: 18.5 of 20 Mbit/s",
        of: |scene| over(scene, Paths::Mpath7),
        limits: &[(Share, AtLeast(0.925))],
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

/// Every bound on the product's own figures on lines whose delays jump without a queue.
pub const JITTER_BOUNDS: &[Bound] = &[
    Bound {
        id: "jitter-alone",
        says: "one uses an idle line whose delays jump",
        of: |scene| scene.foreground == Foreground::Nobody && scene.transfers == 1,
        limits: &[(Share, AtLeast(0.85))],
    },
    Bound {
        id: "jitter-stuck",
        says: "one is nowhere stuck on an idle line whose delays jump",
        of: |scene| scene.foreground == Foreground::Nobody && scene.transfers == 1,
        limits: &[(Share, AtLeast(0.50))],
    },
    Bound {
        id: "jitter-requests",
        says: "one beside requests where delays jump",
        of: |scene| scene.foreground == Foreground::Requests,
        limits: &[(Median, AtMost(1.30)), (P90, AtMost(1.60))],
    },
    Bound {
        id: "jitter-bulk",
        says: "a bulk flow keeps what it has alone where delays jump",
        of: |scene| scene.foreground.is_bulk(),
        limits: &[(Keeps, AtLeast(0.90))],
    },
    Bound {
        id: "jitter-four",
        says: "four share an idle line whose delays jump",
        of: |scene| scene.foreground == Foreground::Nobody && scene.transfers > 1,
        limits: &[(Jain, AtLeast(0.90))],
    },
];
