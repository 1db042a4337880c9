//! Scenes beside the grid: more transfers, transfers that differ among themselves, more paths. A
//! scene is one row of a table.

use super::grid::{Bottleneck, Foreground, Paths, Scene, judge, tune};
use super::transfer_mix::TransferMix;

/// The delay in milliseconds after which the late transfers begin.
pub(super) const LATE_START_MS: u32 = 20_000;

/// Makes a scene without foreground traffic.
const fn case(line: Bottleneck, transfers: u32, among: TransferMix) -> Scene {
    Scene { line, foreground: Foreground::Nobody, transfers, among }
}

const TEN_MBIT_LINE: Bottleneck = tune(10, 20, 50);
const FIFTY_MBIT_LINE: Bottleneck = tune(50, 40, 167);
const SEVEN_MBIT_LINE: Bottleneck = judge(7, 30, 35);

/// Every scene beside the grid, in the order of tables and pictures. All are in the quick form:
/// together they take a few seconds.
pub(super) const CASE_SCENES: &[Scene] = &[
    // Four and ten.
    case(TEN_MBIT_LINE, 4, TransferMix::Alike),
    case(TEN_MBIT_LINE, 10, TransferMix::Alike),
    case(FIFTY_MBIT_LINE, 4, TransferMix::Alike),
    case(FIFTY_MBIT_LINE, 10, TransferMix::Alike),
    case(TEN_MBIT_LINE.jitter(1), 4, TransferMix::Alike),
    case(TEN_MBIT_LINE.jitter(1), 10, TransferMix::Alike),
    case(judge(10, 20, 50).jitter(3), 4, TransferMix::Alike),
    case(judge(10, 20, 50).jitter(3), 10, TransferMix::Alike),
    case(TEN_MBIT_LINE.jitter(8), 4, TransferMix::Alike),
    case(TEN_MBIT_LINE.jitter(8), 10, TransferMix::Alike),
    // One comes late.
    case(TEN_MBIT_LINE, 2, TransferMix::Late),
    case(SEVEN_MBIT_LINE, 2, TransferMix::Late),
    case(FIFTY_MBIT_LINE, 2, TransferMix::Late),
    // One is further away.
    case(TEN_MBIT_LINE, 2, TransferMix::Rtt(2)),
    case(TEN_MBIT_LINE, 2, TransferMix::Rtt(4)),
    case(SEVEN_MBIT_LINE, 2, TransferMix::Rtt(2)),
    case(SEVEN_MBIT_LINE, 2, TransferMix::Rtt(4)),
    // Paths over one line: beside one path, and instead of one.
    case(TEN_MBIT_LINE.paths(Paths::ThreeOverOne), 2, TransferMix::Single),
    case(judge(30, 30, 75).paths(Paths::ThreeOverOne), 2, TransferMix::Single),
    case(judge(5, 20, 25).paths(Paths::TwoOverOne), 1, TransferMix::Alike),
    // Paths over lines of their own.
    case(judge(10, 20, 50).paths(Paths::ThreeOverThree), 1, TransferMix::Alike),
    // The networks of mPath's figure 7: with queues as its authors must have had them, and with
    // larger ones.
    case(judge(20, 100, 2).paths(Paths::Mpath7), 1, TransferMix::Alike),
    case(tune(20, 100, 50).paths(Paths::Mpath7), 1, TransferMix::Alike),
];

#[cfg(test)]
mod tests {
    use super::super::bounds::PRODUCT_BOUNDS;
    use super::super::grid::LineHalf;
    use super::super::scenes::{Form, scenes};
    use super::*;
    use std::collections::{BTreeMap, BTreeSet};

    #[test]
    fn scenes_have_names_of_their_own_and_a_line_is_of_one_half() {
        let all = scenes(Form::Full);
        let names: BTreeSet<String> = all.iter().map(Scene::to_string).collect();
        assert_eq!(names.len(), all.len());
        let mut halves: BTreeMap<String, LineHalf> = BTreeMap::new();
        for scene in all {
            let half = *halves.entry(scene.line.to_string()).or_insert(scene.line.half);
            assert_eq!(half, scene.line.half, "{scene}");
        }
    }

    #[test]
    fn each_is_promised_something() {
        for scene in CASE_SCENES {
            assert!(PRODUCT_BOUNDS.iter().any(|bound| (bound.of)(scene)), "{scene}");
        }
        assert_eq!(CASE_SCENES[1].to_string(), "10m-20ms-50p/nobody/10");
        assert_eq!(case(TEN_MBIT_LINE, 2, TransferMix::Rtt(4)).to_string(), "10m-20ms-50p/nobody/2-rtt4");
    }
}
