//! Reads a plan: a TOML file whose values have units, such as `20 ms`. It becomes variants, one per
//! combination of the varied settings. Each is a [`Setup`] without a seed. A mistake is an error
//! with file, line and the expected value (`docs/lab.md`).

mod changes;
mod exchange;
mod gateways;
mod node;
mod sections;
mod seed_choice;
mod shared_keys;
mod sweep;
mod table_reader;
mod transfers;
pub mod units;
mod write;

use crate::Setup;
use core::ops::Range;
use node::{Node, Table, Value};
use sections::PlanHead;
pub use seed_choice::{MAX_SEED, MAX_SEEDS, SeedChoice};
use sweep::Sweep;
pub use sweep::{Axis, Overrides};
use table_reader::{Axes, Reader, SpannedError};
use thiserror::Error;
pub use write::plan_text;

/// The mode of a plan: its size, and simulated or emulated.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Default, serde::Serialize, serde::Deserialize,
)]
#[serde(rename_all = "kebab-case")]
pub enum Mode {
    /// All experiments together take minutes. `[mode.quick]` describes the differences from the
    /// plan.
    Quick,
    /// The plan without changes.
    #[default]
    All,
    /// The plan at the size of the paper. `[mode.full]` describes the differences from the plan.
    Full,
    /// With real programs in real time. `[mode.emulate]` describes the differences from the plan,
    /// if there are any.
    Emulate,
    /// With real programs in about a minute. Read from `[mode.emulate-quick]`, else
    /// `[mode.emulate]`, else `[mode.quick]`.
    EmulateQuick,
}

impl Mode {
    /// The name in `[mode.NAME]`.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Quick => "quick",
            Self::All => "all",
            Self::Full => "full",
            Self::Emulate => "emulate",
            Self::EmulateQuick => "emulate-quick",
        }
    }

    /// All modes in which a plan runs.
    pub const EVERY: [Self; 5] = [Self::Quick, Self::All, Self::Full, Self::Emulate, Self::EmulateQuick];

    /// The modes whose changes of a plan count, the first that the plan names; and whether it must
    /// name one.
    const fn wants(self) -> (&'static [Self], bool) {
        match self {
            Self::Quick => (&[Self::Quick], true),
            Self::All => (&[Self::All], false),
            Self::Full => (&[Self::Full], false),
            Self::Emulate => (&[Self::Emulate], false),
            Self::EmulateQuick => (&[Self::EmulateQuick, Self::Emulate, Self::Quick], true),
        }
    }
}

/// A plan that is ready to run.
#[derive(Clone, Debug)]
pub struct Plan {
    /// The question in one line.
    pub title: String,
    /// Number of seeds.
    pub seeds: u32,
    /// The first seed. The next seeds follow in steps of 1.
    pub first_seed: u64,
    /// The axes of the sweep.
    pub axes: Vec<Axis>,
    /// Every variant of the plan.
    pub variants: Vec<Setup>,
    /// Why the plan cannot be run with real programs. `None`: it can be.
    pub only_simulated: Option<String>,
    /// Why different seeds may give the same values. `None`: they should differ.
    pub seeds_agree: Option<String>,
}

/// A mistake in a plan, and its line.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{file}:{line}: {what}")]
pub struct PlanError {
    /// The file that is wrong.
    pub file: String,
    /// The line of the mistake, counted from 1.
    pub line: usize,
    /// The text that was found, and the text that was expected.
    pub what: String,
}

/// The most variants of one plan.
const MAX_VARIANTS: usize = 10_000;

impl Plan {
    /// The seeds with which each variant runs.
    #[must_use]
    pub fn seed_range(&self) -> Range<u64> {
        self.first_seed..self.first_seed.saturating_add(u64::from(self.seeds))
    }

    /// Reads the plan in `source`. `None`: the plan has no such mode, which is possible only for
    /// the quick modes.
    pub fn read(
        file: &str,
        source: &str,
        mode: Mode,
        overrides: &Overrides,
    ) -> Result<Option<Self>, PlanError> {
        let read = || {
            let mut table = node::parse(source)?;
            if !apply_mode(&mut table, mode)? {
                return Ok(None);
            }
            expand(&table, overrides).map(Some)
        };
        read().map_err(|wrong| placed(file, source, wrong))
    }

    /// Reads only the network of the plan in `source`. Keys for runs, such as title and duration,
    /// may be missing.
    ///
    /// # Errors
    /// What is wrong with it, and where.
    pub fn read_network(file: &str, source: &str, overrides: &Overrides) -> Result<Self, PlanError> {
        let read = || {
            let mut table = node::parse(source)?;
            apply_mode(&mut table, Mode::All)?;
            for (key, usual) in [("title", "a network"), ("duration", "1 h")] {
                if table.get(key).is_none() {
                    table.set(key, Node { value: Value::Text(usual.to_owned()), span: 0..0 });
                }
            }
            expand(&table, overrides)
        };
        read().map_err(|wrong| placed(file, source, wrong))
    }
}

fn placed(file: &str, source: &str, (span, what): SpannedError) -> PlanError {
    let line = 1 + source.bytes().take(span.start).filter(|&byte| byte == b'\n').count();
    PlanError { file: file.to_owned(), line, what }
}

/// Applies `[mode.NAME]` to the plan. Returns false if the plan lacks a mode that it must have.
fn apply_mode(table: &mut Table, mode: Mode) -> Result<bool, SpannedError> {
    let (wants, needed) = mode.wants();
    let Some(place) = table.0.iter().position(|(key, ..)| key == "mode") else { return Ok(!needed) };
    let (_, span, modes) = table.0.remove(place);
    let Value::Table(modes) = modes.value else {
        return Err((span, "`mode`: expected for example [mode.quick]".into()));
    };
    for (name, span, _) in &modes.0 {
        if name == Mode::All.name() || !Mode::EVERY.iter().any(|mode| mode.name() == name) {
            let what = format!("there is no mode `{name}`: expected quick, full, emulate or emulate-quick");
            return Err((span.clone(), what));
        }
    }
    let Some(chosen) = wants.iter().find_map(|mode| modes.get(mode.name())) else { return Ok(!needed) };
    let Value::Table(chosen) = &chosen.value else {
        return Err((chosen.span.clone(), "expected a table such as [mode.quick]".into()));
    };
    for (key, span, node) in &chosen.0 {
        match key.as_str() {
            "seeds" | "duration" | "cut" | "sample" | "memory" => table.set(key, node.clone()),
            "sweep" => merge_sweep(table, node)?,
            _ => {
                let what = format!("`{key}`: a mode changes seeds, duration, cut, sample, memory or sweep");
                return Err((span.clone(), what));
            }
        }
    }
    Ok(true)
}

fn merge_sweep(table: &mut Table, with: &Node) -> Result<(), SpannedError> {
    let Value::Table(with) = &with.value else {
        return Err((with.span.clone(), "`sweep`: expected axes with their values".into()));
    };
    let Some((_, _, Node { value: Value::Table(sweep), .. })) =
        table.0.iter_mut().find(|(key, ..)| key == "sweep")
    else {
        return Err((0..0, "the mode changes axes of [sweep], and there is no [sweep]".into()));
    };
    for (axis, span, values) in &with.0 {
        let Some((_, _, old)) = sweep.0.iter_mut().find(|(name, ..)| name == axis) else {
            return Err((span.clone(), format!("[sweep] has no axis `{axis}`")));
        };
        *old = sweep::narrowed(old, values);
    }
    Ok(())
}

fn expand(table: &Table, overrides: &Overrides) -> Result<Plan, SpannedError> {
    let sweep = Sweep::read(table.get("sweep"), table.get("skip"), overrides)?;
    let (mut head, mut variants) = (PlanHead::default(), Vec::new());
    for variant in sweep.variants(MAX_VARIANTS)? {
        let axes: Axes<'_> = variant.iter().map(|(name, _, node)| (name.as_str(), node)).collect();
        let labels = variant.iter().map(|(name, label, _)| (name.clone(), label.clone())).collect();
        let reader = Reader::new(table, 0..0, &axes);
        variants.push(sections::variant(&reader, labels, &mut head)?);
    }
    let PlanHead { title, seeds, first_seed, only_simulated, seeds_agree } = head;
    let (first_seed, seeds) = match overrides.seeds {
        None => (first_seed, seeds),
        Some(SeedChoice::Count(seeds)) => (first_seed, seeds),
        Some(SeedChoice::From(first_seed, seeds)) => (first_seed, seeds),
    };
    Ok(Plan { title, seeds, first_seed, axes: sweep.axes(), variants, only_simulated, seeds_agree })
}
