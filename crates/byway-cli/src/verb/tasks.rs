//! `byway tasks`: lists of a tree's files, of about equal bytes, for `byway send --files-from`.

use crate::args::tasks::Tasks;
use crate::exit::Exit;
use crate::messages;
use crate::output::{Event, Fields, Outcome, Output};
use anyhow::{Context as _, Result};
use byway_files::TreeShares;
use serde::Serialize;

/// The totals of the lists that were written, in JSON.
#[derive(Serialize)]
struct TasksReport {
    lists: usize,
    entries: usize,
    bytes: u64,
    largest_bytes: u64,
    /// Entries that are in no list.
    left_out: usize,
}

/// Writes the lists.
pub(super) fn run(arguments: &Tasks, output: &mut Output) -> Result<Exit> {
    let cut = TreeShares::cut(&arguments.directory, arguments.share_count())?;
    cut.write(&arguments.lists).with_context(|| arguments.lists.display().to_string())?;
    for message in cut.left_out.iter().cloned() {
        output.emit(&Event::Warning { message });
    }
    let (lists, left_out) = (cut.shares.len(), cut.left_out.len());
    let entries = cut.shares.iter().map(|share| share.paths.len()).sum();
    let bytes = cut.shares.iter().map(|share| share.bytes).sum();
    let (smallest, largest_bytes) = cut.smallest_and_largest();
    output.say_lines(&messages::send::lists(lists, entries, bytes, smallest..=largest_bytes));
    let exit = if left_out == 0 { Exit::Ok } else { Exit::Partial };
    let told = TasksReport { lists, entries, bytes, largest_bytes, left_out };
    output.emit(&Event::result("tasks", exit, Outcome::Told(Fields::of(&told))));
    Ok(exit)
}
