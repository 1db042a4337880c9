//! Which cells of the grid run: those of a form, of laws and of seeds, or single cells that are
//! named.

use super::cell::Cell;
use super::grid::{Law, LineHalf, Scene};
use super::jitter::jitter_scenes;
use super::scenes::{Form, scenes};
use core::str::FromStr;

/// The set of lines.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum LineSet {
    /// The lines of the grid and of the cases beside it.
    #[default]
    Grid,
    /// Lines whose delays jump without a queue.
    Jitter,
}

impl LineSet {
    /// Every scene of a form, in the order of tables and pictures.
    #[must_use]
    pub fn scenes(self, form: Form) -> Vec<Scene> {
        match self {
            Self::Grid => scenes(form),
            Self::Jitter => jitter_scenes(form == Form::Quick),
        }
    }
}

/// A filter of cells: `line=10m-20ms`, `beside=requests`, `transfers=8`, `among=late` or
/// `law=cubic`. Commas separate alternatives.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CellFilter {
    key: FilterKey,
    values: Vec<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum FilterKey {
    /// How the names of lines begin.
    Line,
    Beside,
    Transfers,
    Among,
    Law,
}

impl FromStr for CellFilter {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let expected = || {
            format!("`{text}`: expected line=, beside=, transfers=, among= or law=, and what it has to be")
        };
        let (key, values) = text.split_once('=').ok_or_else(expected)?;
        let values: Vec<String> = values.split(',').map(str::to_owned).collect();
        let key = match key {
            "line" => FilterKey::Line,
            "beside" => FilterKey::Beside,
            "transfers" => FilterKey::Transfers,
            "among" => FilterKey::Among,
            "law" => FilterKey::Law,
            _ => return Err(expected()),
        };
        let all = [LineSet::Grid, LineSet::Jitter].map(|lines| lines.scenes(Form::Full)).concat();
        for value in &values {
            // Laws that are no rows of the board are known elsewhere.
            let there = !value.is_empty() && all.iter().any(|scene| key.admits(scene, value));
            if !there {
                return Err(format!("`{text}`: nothing in the grid is {value}"));
            }
        }
        Ok(Self { key, values })
    }
}

impl FilterKey {
    fn admits(self, scene: &Scene, value: &str) -> bool {
        match self {
            Self::Line => scene.line.to_string().starts_with(value),
            Self::Beside => scene.foreground.name() == value,
            Self::Transfers => scene.transfers.to_string() == value,
            Self::Among => scene.among.to_string() == value,
            Self::Law => true,
        }
    }
}

impl CellFilter {
    fn admits(&self, scene: &Scene) -> bool {
        self.values.iter().any(|value| self.key.admits(scene, value))
    }

    fn admits_law(&self, law: &Law) -> bool {
        self.key != FilterKey::Law || self.values.contains(&law.name)
    }
}

/// The cells that are wanted.
#[derive(Clone, Debug)]
pub struct CellSelection {
    /// The set of lines.
    pub lines: LineSet,
    /// The form: quick or full.
    pub form: Form,
    /// The laws to run.
    pub laws: Vec<Law>,
    /// Seeds from 1 to this.
    pub seeds: u64,
    /// One half of the lines alone.
    pub half: Option<LineHalf>,
    /// Filters that a cell must all pass.
    pub only: Vec<CellFilter>,
}

impl CellSelection {
    /// The scenes of the selection, in the order of tables and pictures.
    #[must_use]
    pub fn scenes(&self) -> Vec<Scene> {
        let mut scenes = self.lines.scenes(self.form);
        scenes.retain(|scene| {
            self.half.is_none_or(|half| scene.line.half == half)
                && self.only.iter().all(|only| only.admits(scene))
        });
        scenes
    }

    /// The laws of the selection.
    pub fn laws(&self) -> impl Iterator<Item = &Law> {
        self.laws.iter().filter(|law| self.only.iter().all(|only| only.admits_law(law)))
    }

    /// Every cell, in the order of scenes, laws and seeds.
    #[must_use]
    pub fn cells(&self) -> Vec<Cell> {
        let laws: Vec<&Law> = self.laws().collect();
        let scenes = self.scenes();
        let pairs = scenes.iter().flat_map(|&scene| laws.iter().map(move |&law| (scene, law)));
        pairs
            .flat_map(|(scene, law)| (1..=self.seeds).map(move |seed| Cell { scene, law: law.clone(), seed }))
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::super::grid::{Foreground, GRID_LINES, TRANSFER_COUNTS};
    use super::*;

    #[test]
    fn a_row_can_be_looked_at_alone() {
        let only = |texts: &[&str]| CellSelection {
            lines: LineSet::Grid,
            form: Form::Full,
            laws: Law::all(),
            seeds: 2,
            half: None,
            only: texts.iter().map(|text| text.parse().expect("a filter")).collect(),
        };
        let cells = only(&["line=10m-20ms-300p", "beside=requests", "law=cubic"]);
        let cells = cells.cells();
        assert_eq!(cells.len(), TRANSFER_COUNTS.len() * 2);
        assert!(cells.iter().all(|cell| cell.law.name == "cubic" && cell.scene.line.queue == 300));
        let eight = only(&["transfers=8"]).scenes();
        assert_eq!(eight.len(), GRID_LINES.len() * Foreground::ALL.len());
        let late = only(&["among=late"]).scenes();
        assert!(late.len() > 1 && late.iter().all(|scene| scene.to_string().ends_with("/nobody/2-late")));
        let eight = only(&["transfers=8", "beside=nobody"]).cells();
        assert_eq!(eight.len(), GRID_LINES.len() * Law::all().len() * 2);
        for wrong in
            ["line", "line=11m", "beside=nobody,someone", "transfers=3", "among=early", "queue=5", "law="]
        {
            wrong.parse::<CellFilter>().expect_err(wrong);
        }
    }

    #[test]
    fn the_halves_are_the_whole() {
        let of = |half| {
            let (form, laws, only) = (Form::Full, Law::all(), Vec::new());
            CellSelection { lines: LineSet::Jitter, form, laws, seeds: 1, half, only }.scenes()
        };
        let (tune, judge) = (of(Some(LineHalf::Tune)), of(Some(LineHalf::Judge)));
        assert_eq!(tune.len() + judge.len(), of(None).len());
        assert!(tune.iter().all(|scene| !judge.iter().any(|other| other.line == scene.line)));
    }
}
