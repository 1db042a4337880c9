//! The files of a result: verdicts, rows, figures and traces.

use crate::error::{About as _, Result};
use byway_lab::expect::{Expectation, Outcome, write};
use byway_lab::figure::{self, FigureKind};
use byway_lab::measure::Records;
use byway_lab::plan::Plan;
use byway_lab::{Record, trace, world};
use std::fs::{self, File};
use std::io::BufWriter;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;

/// The results of a plan's runs.
pub(crate) struct RunResults<'a> {
    /// The runs, indexed for measures.
    pub(crate) indexed: &'a Records<'a>,
    /// The records of the runs. Empty: only the answers are known.
    pub(crate) records: &'a [Record],
    /// The verdicts.
    pub(crate) outcome: &'a Outcome,
}

/// The places of a result's files.
pub(crate) struct ResultPlaces<'a> {
    /// The directory of the experiment's results.
    pub(crate) directory: PathBuf,
    /// A file for a row per variant and seed.
    pub(crate) csv: Option<&'a Path>,
    /// The experiment's own folder, if its verdicts are saved there.
    pub(crate) kept: Option<PathBuf>,
}

impl RunResults<'_> {
    /// Writes the outcome, a row for each run, and figures. `no_figure` hears which cannot be
    /// drawn.
    pub(crate) fn write(
        &self,
        places: &ResultPlaces<'_>,
        expectation: &Expectation,
        mut no_figure: impl FnMut(String),
    ) -> Result<()> {
        let Self { indexed, records, outcome } = *self;
        let ResultPlaces { directory, csv, kept } = places;
        fs::create_dir_all(directory).about(|| directory.display().to_string())?;
        fs::write(directory.join("result.json"), outcome.to_json()?)?;
        let mut rows = BufWriter::new(File::create(directory.join("runs.csv"))?);
        write::csv(&outcome.shows, &mut rows)?;
        if let Some(file) = csv {
            let mut rows = BufWriter::new(File::create(file).about(|| file.display().to_string())?);
            write::csv(&outcome.shows, &mut rows).about(|| file.display().to_string())?;
        }
        for (number, spec) in expectation.figures.iter().enumerate() {
            let drawn = match spec.kind {
                FigureKind::Measure | FigureKind::Bars => figure::measured::draw(spec, indexed),
                FigureKind::Distribution => figure::measured::distribution(spec, indexed),
                _ if records.is_empty() => {
                    let why = "it shows samples, which rows do not have: `byway lab run` draws it";
                    no_figure(format!("{}: {why}", spec.title));
                    continue;
                }
                _ => figure::draw(spec, records),
            };
            match drawn {
                Ok(svg) => fs::write(directory.join(format!("figure-{}.svg", number + 1)), svg)?,
                Err(error) => no_figure(error.to_string()),
            }
        }
        if let Some(folder) = kept {
            fs::write(folder.join("result.json"), outcome.to_json()?)?;
        }
        Ok(())
    }
}

/// Every run by sample, and the packets of the first variant and seed.
pub(crate) fn write_traces(
    directory: &Path,
    plan: &Plan,
    records: &[Record],
    cancel: &AtomicBool,
) -> Result<()> {
    let mut lines = BufWriter::new(File::create(directory.join("trace.jsonl"))?);
    for record in records {
        trace::jsonl::write(record, &mut lines)?;
    }
    if let Some(setup) = plan.variants.first() {
        let packets = BufWriter::new(File::create(directory.join("packets.pcapng"))?);
        world::run_captured(setup, 1, cancel, Box::new(packets))?;
    }
    Ok(())
}

/// Writes a qlog file for each transfer of the plan's first variant and each seed. A sweep has
/// hundreds of variants, and a viewer opens one session at a time.
pub(crate) fn write_qlogs(directory: &Path, plan: &Plan, records: &[Record]) -> Result<()> {
    let directory = directory.join("qlog");
    fs::create_dir_all(&directory).about(|| directory.display().to_string())?;
    let Some(first) = plan.variants.first() else { return Ok(()) };
    for record in records.iter().filter(|record| record.axes == first.axes) {
        for (index, transfer) in record.transfers.iter().enumerate() {
            let file = directory.join(trace::qlog::file_name(record, index));
            let out = File::create(&file).about(|| file.display().to_string())?;
            trace::qlog::write(record, transfer, &mut BufWriter::new(out))?;
        }
    }
    Ok(())
}
