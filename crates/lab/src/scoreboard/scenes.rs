//! Which scenes (test cases) the scoreboard has: the grid, and the cases beside it.

use super::cases::CASE_SCENES;
use super::grid::{Foreground, GRID_LINES, Scene, TRANSFER_COUNTS};
use super::transfer_mix::TransferMix;

/// The size of the grid.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// Some 150 scenes.
    Quick,
    /// All scenes of the grid, and the cases beside it.
    Full,
}

/// The foregrounds and numbers of transfers in the quick form, for each of its lines.
const QUICK_SCENES: [(Foreground, u32); 9] = [
    (Foreground::Requests, 1),
    (Foreground::Requests, 8),
    (Foreground::Page, 1),
    (Foreground::Call, 8),
    (Foreground::Video, 1),
    (Foreground::Cubic, 1),
    (Foreground::Bbr, 1),
    (Foreground::Nobody, 1),
    (Foreground::Nobody, 2),
];

/// Every scene of a form, in the order of tables and pictures.
#[must_use]
pub fn scenes(form: Form) -> Vec<Scene> {
    let all = GRID_LINES.iter().flat_map(|&line| {
        Foreground::ALL.into_iter().flat_map(move |foreground| {
            let among = TransferMix::Alike;
            TRANSFER_COUNTS.into_iter().map(move |transfers| Scene { line, foreground, transfers, among })
        })
    });
    let grid = all.filter(|scene| match form {
        Form::Full => true,
        Form::Quick => scene.line.quick && QUICK_SCENES.contains(&(scene.foreground, scene.transfers)),
    });
    grid.chain(CASE_SCENES.iter().copied()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_quick_form_is_a_part_of_the_full_one() {
        let (quick, full) = (scenes(Form::Quick), scenes(Form::Full));
        assert!((60..=150).contains(&quick.len()), "{}", quick.len());
        assert!(quick.iter().all(|scene| full.contains(scene)));
        assert_eq!(
            full.len(),
            GRID_LINES.len() * Foreground::ALL.len() * TRANSFER_COUNTS.len() + CASE_SCENES.len()
        );
    }
}
