//! `byway lab up`, `exec`, `status`, `down`: a plan's network on this machine.

use super::run::printable;
use crate::args::lab::{LabDown, LabExec, LabInside, LabStatus, LabUp};
use crate::exit::Exit;
use crate::output::{Align, Event, Fields, Outcome, Output, Table};
use anyhow::{Context as _, Result};
use byway_field::labs::{self, LabState, TakenDown};
use byway_field::link_table;
use std::process::Command;

/// Starts this program once more, as the keeper, with the same arguments. Ends when the lab can be
/// entered.
pub(super) fn up(arguments: &LabUp, output: &mut Output) -> Result<Exit> {
    let mut words: Vec<_> = std::env::args_os().skip(1).collect();
    if let Some(verb) = words.iter_mut().skip_while(|word| *word != "lab").find(|word| *word == "up") {
        *verb = "keep".into();
    }
    let mut keeper = Command::new(std::env::current_exe().context("where this program is")?);
    keeper.args(words);
    let (lab, record) = labs::up(&arguments.wanted(), keeper, arguments.owned)?;
    let mut table = Table::new([("host", Align::Left), ("addresses", Align::Left)]);
    for host in &record.hosts {
        table.row([host.name.clone(), format!("{} {}", host.v4, host.v6)]);
    }
    output.answer_table(&table)?;
    output.say_lines(&format!(
        "the lab {lab} is up: `byway lab exec {} -- PROGRAM` runs a program there, `byway lab down {lab}` ends it",
        record.hosts.first().map_or("HOST", |host| host.name.as_str()),
    ));
    conclude(&[LabState { lab, up: true, record: Some(record), status: None }], output);
    Ok(Exit::Ok)
}

/// Prints the labs concerned as an event, for programs.
fn conclude(labs: &[LabState], output: &mut Output) {
    output.emit(&Event::result("lab", Exit::Ok, Outcome::Told(Fields::one("labs", &labs))));
}

/// Runs as the process that keeps the lab.
pub(super) fn keep(arguments: &LabUp) -> Result<Exit> {
    labs::keep(&arguments.wanted(), arguments.owned)?;
    Ok(Exit::Ok)
}

/// Runs a program on a host of a lab, and exits with its exit code.
pub(super) fn exec(arguments: &LabExec) -> Result<Exit> {
    let program = std::env::current_exe().context("where this program is")?;
    let code = labs::exec(arguments.lab.as_deref(), &arguments.host, &program, &arguments.program)?;
    std::process::exit(code)
}

/// Replaces this process by the program. It ends when its parent does.
pub(super) fn inside(arguments: &LabInside) -> Result<Exit> {
    match labs::inside(&arguments.program)? {}
}

/// Prints the state of the labs.
pub(super) fn status(arguments: &LabStatus, output: &mut Output) -> Result<Exit> {
    let labs = labs::status(arguments.lab.as_deref())?;
    for lab in &labs {
        tell(lab, output)?;
    }
    if labs.is_empty() {
        output.answer("no lab is up")?;
    }
    conclude(&labs, output);
    Ok(Exit::Ok)
}

fn tell(lab: &LabState, output: &mut Output) -> Result<()> {
    let Some(status) = lab.status.as_ref().filter(|_| lab.up) else {
        output.answer_lines(&format!("{0}: dead; `byway lab down {0}` removes what is left", lab.lab))?;
        return Ok(());
    };
    let lateness = &status.lateness;
    output.answer_lines(&format!(
        "{}: up for {:.0} s; packets left {:.0} us late on average, {:.1} ms at worst, {:.2} % of them too late",
        lab.lab,
        status.seconds,
        lateness.mean_us(),
        lateness.worst_us as f64 / 1e3,
        100.0 * lateness.share(),
    ))?;
    output.answer_table(&printable(&link_table::table(&status.links)))?;
    if let Some(warning) = lateness.warning() {
        output.answer_lines(&warning)?;
    }
    Ok(())
}

/// Takes labs down, and removes the remains of dead labs.
pub(super) fn down(arguments: &LabDown, output: &mut Output) -> Result<Exit> {
    let mut ended = Vec::new();
    labs::down(arguments.lab.as_deref(), arguments.all, |gone| {
        match gone {
            TakenDown::Left(name) => {
                output.answer_lines(&format!("{name}: was dead, what it left is removed"))?;
            }
            TakenDown::Down(last) => {
                output.answer(&format!("{}: down", last.lab))?;
                if let Some(message) = last.status.as_ref().and_then(|status| status.lateness.warning()) {
                    let message = format!("{}: {message}", last.lab);
                    output.emit(&Event::Warning { message });
                }
                ended.push(*last);
            }
        }
        Ok(())
    })?;
    conclude(&ended, output);
    Ok(Exit::Ok)
}
