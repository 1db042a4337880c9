//! `byway lab scoreboard`: laws for the background against each other on a grid of lines, beside a
//! grid of others.

use super::run::printable;
use super::stop_flag::cancellation;
use crate::args::lab::LabScoreboard;
use crate::exit::{Exit, Failure};
use crate::output::{Event, Fields, Outcome, Output};
use anyhow::Result;
use byway_field::experiment_run::limit_jobs;
use byway_field::scoreboard::{self, RowPlaces, ScoreboardEvent};
use byway_lab::scoreboard::{CellSelection, Form, Law, PRODUCT_LAW, judge, tables, world};

/// Rows that are printed unasked, at most.
const MAX_UNASKED_ROWS: usize = 40;

/// Runs the simulations that `arguments` selects and whose result is not yet in the directory
/// `arguments.out`. Compares all results with bounds. The exit code is 1 if a result misses a
/// bound, unless this miss is in the lab's list of known misses.
pub(super) fn run(arguments: &LabScoreboard, output: &mut Output) -> Result<Exit> {
    let selection = selection(arguments)?;
    // A cell is a network with its traffic (`scene`), a congestion controller (`law`) and a seed.
    let cells = selection.cells();
    if cells.is_empty() {
        return Err(Failure::new(Exit::Usage, "no cell of the board is all of that".to_owned()).into());
    }
    if arguments.plan {
        for cell in &cells {
            output.answer(&format!("# {}, {}, seed {}", cell.scene, cell.law.name, cell.seed))?;
            output.answer(&world::written(&world::plan(&cell.scene, Some(&cell.law)))?)?;
        }
        return Ok(Exit::Ok);
    }
    if let Some(jobs) = arguments.jobs {
        limit_jobs(jobs)?;
    }
    let (cancel, signals) = cancellation(output)?;
    let places = RowPlaces { own: &arguments.out, others: &arguments.rows_from, part: arguments.part };
    let filled = scoreboard::fill(&selection, &places, cancel, |news| tell(news, output))?;
    let (rows, board) = (&filled.rows, &filled.board);
    if !arguments.part.is_whole() {
        output.answer_lines(&format!("{} cells run; rows are in {}", filled.ran, filled.file.display()))?;
        output.emit(&Event::result("lab", Exit::Ok, Outcome::Told(Fields::one("ran", &filled.ran))));
        return Ok(signals.stop().unwrap_or(Exit::Ok));
    }
    let laws: Vec<&str> = selection.laws().map(|law| law.name.as_str()).collect();
    if arguments.rows || selection.scenes().len() * laws.len() <= MAX_UNASKED_ROWS {
        for table in tables::cells(board, &laws) {
            output.answer_table(&printable(&table))?;
        }
    }
    output.answer_table(&printable(&tables::laws(board, &laws, rows)))?;
    let law = arguments.judged.as_deref().unwrap_or(PRODUCT_LAW);
    let judged = judge(board, selection.lines, law);
    if !judged.is_empty() {
        output.answer_table(&printable(&tables::bounds(law, &judged)))?;
    }
    let summary = filled.summary(&selection, &judged);
    output.answer_lines(&filled.sentence(&selection, &summary))?;
    let exit = signals.stop().unwrap_or(if summary.missed == 0 { Exit::Ok } else { Exit::Error });
    output.emit(&Event::result("lab", exit, Outcome::Told(Fields::of(&summary))));
    Ok(exit)
}

fn tell(news: ScoreboardEvent, output: &mut Output) {
    match news {
        ScoreboardEvent::Begins { cells, there } => {
            output.say_lines(&format!("{cells} cells, {there} of them are there already"));
        }
        ScoreboardEvent::Row(row) => output.emit(&Event::told("cell", &*row)),
        ScoreboardEvent::Progress { done, of, seconds } => {
            output.say(&format!("{done} of {of} cells, {seconds:.0} s"));
        }
    }
}

fn selection(arguments: &LabScoreboard) -> Result<CellSelection> {
    let named = |name: &String| Law::named(name).map_err(|sentence| Failure::new(Exit::Usage, sentence));
    let laws = match &arguments.laws {
        names if names.is_empty() => Law::all(),
        names => names.iter().map(named).collect::<Result<_, _>>()?,
    };
    Ok(CellSelection {
        lines: arguments.lines,
        form: if arguments.quick { Form::Quick } else { Form::Full },
        laws,
        seeds: arguments.seeds,
        half: arguments.half,
        only: arguments.only.clone(),
    })
}
