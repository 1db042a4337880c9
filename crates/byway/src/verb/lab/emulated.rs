//! `byway lab up`, `exec`, `status`, `down`: a plan's network on this machine.

use super::site::Site;
use crate::args::lab::{LabDown, LabExec, LabInside, LabStatus, LabUp};
use crate::exit::{Exit, Failure};
use crate::output::{Align, EmulatedLab, Event, Outcome, Output, Table};
use anyhow::{Context as _, Result, anyhow};
use byway_emulate::{KeeperError, Lab, Place, end, enter, keep as keep_lab, prepare};
use rustix::process::{Signal, geteuid, getuid, set_parent_process_death_signal};
use signal_hook::consts::{SIGINT, SIGQUIT};
use signal_hook::flag;
use std::fs::{self, File};
use std::io::{BufRead as _, BufReader, Write as _};
use std::os::fd::AsFd as _;
use std::os::unix::process::{CommandExt as _, ExitStatusExt as _};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// What a keeper says when its lab can be entered.
const READY: &str = "ready";

pub(super) fn place() -> Place {
    Place::locate(geteuid().is_root(), getuid().as_raw(), |name| std::env::var_os(name))
}

/// Starts a keeper, and ends when the lab can be entered.
pub(super) fn up(arguments: &LabUp, output: &mut Output) -> Result<Exit> {
    let site = Site::read(arguments)?;
    let lab = place().lab(&site.name);
    let lock = lab.take().with_context(|| lab.directory().display().to_string())?;
    if lock.is_none() {
        return Err(alive(&lab));
    }
    let log = File::create(lab.file("log"))?;
    drop(lock);
    let begun = start(&lab, log, arguments.owned);
    if let Err(error) = begun {
        // Nothing runs, so nothing is to stay.
        let _ = lab.remove();
        return Err(error);
    }
    let record = lab.record()?;
    let mut table = Table::new([("host", Align::Left), ("addresses", Align::Left)]);
    for host in &record.hosts {
        table.row([host.name.clone(), format!("{} {}", host.v4, host.v6)]);
    }
    output.answer_table(&table)?;
    output.say_lines(&format!(
        "the lab {0} is up: `byway lab exec {1} -- PROGRAM` runs a program there, `byway lab down {0}` ends it",
        lab.name,
        record.hosts.first().map_or("HOST", |host| host.name.as_str()),
    ));
    let labs = vec![EmulatedLab { lab: lab.name.clone(), up: true, record: Some(record), status: None }];
    output.emit(&Event::result("lab", Exit::Ok, Outcome::Emulated { labs }));
    Ok(Exit::Ok)
}

fn alive(lab: &Lab) -> anyhow::Error {
    let sentence =
        format!("the lab {0} is up already: `byway lab down {0}` ends it, --name makes another", lab.name);
    Failure::new(Exit::Error, sentence).into()
}

/// Starts this program once more, as the keeper, with the same arguments, and waits for its word.
fn start(lab: &Lab, log: File, owned: bool) -> Result<()> {
    let program = std::env::current_exe().context("where this program is")?;
    let mut arguments: Vec<_> = std::env::args_os().skip(1).collect();
    if let Some(verb) = arguments.iter_mut().skip_while(|word| *word != "lab").find(|word| *word == "up") {
        *verb = "keep".into();
    }
    prepare()?;
    let mut keeper = Command::new(program)
        .args(arguments)
        .stdin(if owned { Stdio::inherit() } else { Stdio::null() })
        .stdout(Stdio::piped())
        .stderr(log)
        .spawn()
        .context("a keeper cannot be started")?;
    let mut word = String::new();
    if let Some(said) = keeper.stdout.take() {
        BufReader::new(said).read_line(&mut word)?;
    }
    if word.trim() == READY {
        return Ok(());
    }
    let _ = keeper.wait();
    let log = fs::read_to_string(lab.file("log")).unwrap_or_default();
    let why = log.lines().last().unwrap_or("it ended and said nothing");
    Err(anyhow!("{}", why.strip_prefix("byway: ").unwrap_or(why)))
}

/// Is the lab.
pub(super) fn keep(arguments: &LabUp) -> Result<Exit> {
    let site = Site::read(arguments)?;
    let lab = place().lab(&site.name);
    let ready = || {
        let _ = writeln!(std::io::stdout(), "{READY}");
    };
    let input = std::io::stdin();
    let owner = arguments.owned.then(|| input.as_fd());
    match keep_lab(&lab, &arguments.what, arguments.seed, &site.blueprint, owner, ready) {
        Err(KeeperError::Alive) => Err(alive(&lab)),
        Err(error) => Err(error.into()),
        Ok(_) => Ok(Exit::Ok),
    }
}

/// Goes to a host, runs the program there, and ends as it does.
pub(super) fn exec(arguments: &LabExec) -> Result<Exit> {
    let lab = one(arguments.lab.as_deref())?;
    let record = lab.record().with_context(|| format!("the lab {} is not ready", lab.name))?;
    let host = record.hosts.iter().find(|host| host.name == arguments.host).ok_or_else(|| {
        let known: Vec<_> = record.hosts.iter().map(|host| host.name.as_str()).collect();
        let sentence = format!("{} has no host {}: there are {}", lab.name, arguments.host, known.join(", "));
        Failure::new(Exit::NotFound, sentence)
    })?;
    let program = std::env::current_exe().context("where this program is")?;
    enter(&record, host).with_context(|| format!("the lab {} cannot be entered", lab.name))?;
    // What the terminal says to all is for the program alone to answer; we wait for it.
    for signal in [SIGINT, SIGQUIT] {
        flag::register(signal, Arc::new(AtomicBool::new(false)))?;
    }
    let status = Command::new(program).args(["lab", "inside", "--"]).args(&arguments.program).status()?;
    // As a shell does: a program that a signal ended has 128 and the signal's number.
    let code = status.code().or_else(|| status.signal().map(|signal| 128 + signal)).unwrap_or(1);
    std::process::exit(code)
}

/// Becomes the program, which ends when whoever started it does.
pub(super) fn inside(arguments: &LabInside) -> Result<Exit> {
    set_parent_process_death_signal(Some(Signal::TERM))?;
    let Some((program, rest)) = arguments.program.split_first() else { return Ok(Exit::Usage) };
    let error = Command::new(program).args(rest).exec();
    let exit = if error.kind() == std::io::ErrorKind::NotFound { Exit::NotFound } else { Exit::Error };
    Err(Failure::new(exit, format!("{} cannot be run: {error}", program.display())).into())
}

/// How the labs are.
pub(super) fn status(arguments: &LabStatus, output: &mut Output) -> Result<Exit> {
    let labs = match &arguments.lab {
        Some(name) => vec![one(Some(name))?],
        None => place().all()?,
    };
    let mut told = Vec::new();
    for lab in labs {
        let emulated = look(&lab);
        tell(&emulated, output)?;
        told.push(emulated);
    }
    if told.is_empty() {
        output.answer("no lab is up")?;
    }
    output.emit(&Event::result("lab", Exit::Ok, Outcome::Emulated { labs: told }));
    Ok(Exit::Ok)
}

fn look(lab: &Lab) -> EmulatedLab {
    EmulatedLab {
        lab: lab.name.clone(),
        up: lab.alive(),
        record: lab.record().ok(),
        status: lab.status().ok(),
    }
}

fn tell(lab: &EmulatedLab, output: &mut Output) -> Result<()> {
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
    let mut table = Table::new([
        ("link", Align::Left),
        ("packets", Align::Right),
        ("delivered", Align::Right),
        ("queue full", Align::Right),
        ("managed", Align::Right),
        ("lost", Align::Right),
        ("down", Align::Right),
        ("waiting", Align::Right),
        ("mean wait", Align::Right),
    ]);
    for link in &status.links {
        table.row([
            link.link.clone(),
            link.packets.to_string(),
            link.delivered.to_string(),
            link.dropped_queue.to_string(),
            link.dropped_managed.to_string(),
            link.dropped_loss.to_string(),
            link.dropped_other.to_string(),
            link.waiting.to_string(),
            format!("{:.2} ms", link.mean_wait_ms),
        ]);
    }
    output.answer_table(&table)?;
    if let Some(warning) = lateness.warning() {
        output.answer_lines(&warning.to_string())?;
    }
    Ok(())
}

/// Ends labs, and removes what dead ones left.
pub(super) fn down(arguments: &LabDown, output: &mut Output) -> Result<Exit> {
    let all = place().all()?;
    let (living, dead): (Vec<_>, Vec<_>) = all.into_iter().partition(Lab::alive);
    let chosen = match &arguments.lab {
        Some(name) if dead.iter().any(|lab| lab.name == *name) => Vec::new(),
        Some(name) => vec![one(Some(name))?],
        None if arguments.all || living.len() <= 1 => living,
        None => return Err(which(&living)),
    };
    let mut ended = Vec::new();
    for lab in dead {
        end(&lab).with_context(|| format!("what the dead lab {} left", lab.name))?;
        output.answer_lines(&format!("{}: was dead, what it left is removed", lab.name))?;
    }
    for lab in chosen {
        let mut last = look(&lab);
        end(&lab).with_context(|| format!("the lab {}", lab.name))?;
        last.up = false;
        output.answer(&format!("{}: down", lab.name))?;
        if let Some(message) = last.status.as_ref().and_then(|status| status.lateness.warning()) {
            let message = format!("{}: {message}", lab.name);
            output.emit(&Event::Warning { message });
        }
        ended.push(last);
    }
    output.emit(&Event::result("lab", Exit::Ok, Outcome::Emulated { labs: ended }));
    Ok(Exit::Ok)
}

/// The lab of this name, or the only one, if it is alive.
fn one(name: Option<&str>) -> Result<Lab> {
    if let Some(name) = name {
        let lab = place().lab(name);
        if Lab::may_be_called(name) && lab.alive() {
            return Ok(lab);
        }
        return Err(Failure::new(
            Exit::NotFound,
            format!("no lab {name} is up: `byway lab status` names those that are"),
        )
        .into());
    }
    let mut living: Vec<Lab> = place().all()?.into_iter().filter(Lab::alive).collect();
    match living.len() {
        0 => Err(Failure::new(Exit::NotFound, "no lab is up: `byway lab up PLAN` makes one").into()),
        1 => Ok(living.remove(0)),
        _ => Err(which(&living)),
    }
}

fn which(living: &[Lab]) -> anyhow::Error {
    let names: Vec<_> = living.iter().map(|lab| lab.name.as_str()).collect();
    Failure::new(Exit::Usage, format!("several labs are up, say which: {}", names.join(", "))).into()
}
