//! Labs on this machine: `byway lab up`, `exec`, `status` and `down`.

use crate::error::{About as _, Error, Result};
use crate::network::{Network, NetworkRequest};
use byway_emulate::{
    KeeperError, Lab, LabDirectory, LabRecord, Status, end, enter, keep as keep_lab, prepare,
};
use rustix::process::{Signal, geteuid, getuid, set_parent_process_death_signal};
use serde::Serialize;
use signal_hook::consts::{SIGINT, SIGQUIT};
use signal_hook::flag;
use std::convert::Infallible;
use std::ffi::OsString;
use std::fs::{self, File};
use std::io::{self, BufRead as _, BufReader, Write as _};
use std::os::fd::AsFd as _;
use std::os::unix::process::{CommandExt as _, ExitStatusExt as _};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// The line that a keeper prints when its lab can be entered.
const READY_LINE: &str = "ready";

/// The present state of a lab on this machine.
#[derive(Clone, Debug, Serialize)]
pub struct LabState {
    /// The lab's name.
    pub lab: String,
    /// Whether the lab is running.
    pub up: bool,
    /// The lab's record, if it is known: the plan, the seed, the keeper's process, and the hosts.
    #[serde(flatten)]
    pub record: Option<LabRecord>,
    /// The status of the lab: now, or right before it was taken down.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub status: Option<Status>,
}

/// The result of [`down`].
#[derive(Clone, Debug)]
pub enum TakenDown {
    /// A lab with this name was dead, and its remains were removed.
    Left(String),
    /// A running lab was taken down. The value is its last state.
    Down(Box<LabState>),
}

/// Returns the directory of labs.
pub(crate) fn place() -> LabDirectory {
    LabDirectory::locate(geteuid().is_root(), getuid().as_raw(), |name| std::env::var_os(name))
}

/// Starts `keeper`, a command that calls [`keep`], and waits until its lab (an emulated network) is
/// ready. If `owned`, the lab ends when standard input ends.
///
/// # Errors
/// No such network, its lab is up, or the keeper failed.
pub fn up(wanted: &NetworkRequest, keeper: Command, owned: bool) -> Result<(String, LabRecord)> {
    let network = Network::read(wanted)?;
    let lab = place().lab(&network.name);
    let lock = lab.take().about(|| lab.directory().display().to_string())?;
    if lock.is_none() {
        return Err(alive(&lab));
    }
    let log = File::create(lab.file("log"))?;
    drop(lock);
    if let Err(error) = start(&lab, keeper, log, owned) {
        // Nothing runs, so nothing is to stay.
        let _ = lab.remove();
        return Err(error);
    }
    let record = lab.record()?;
    Ok((lab.name, record))
}

fn alive(lab: &Lab) -> Error {
    Error::failed(format!(
        "the lab {0} is up already: `byway lab down {0}` ends it, --name makes another",
        lab.name
    ))
}

/// Starts the keeper, and waits until it reports that the lab is ready.
fn start(lab: &Lab, mut keeper: Command, log: File, owned: bool) -> Result<()> {
    prepare()?;
    let mut keeper = keeper
        .stdin(if owned { Stdio::inherit() } else { Stdio::null() })
        .stdout(Stdio::piped())
        .stderr(log)
        .spawn()
        .about(|| "a keeper cannot be started")?;
    let mut word = String::new();
    if let Some(said) = keeper.stdout.take() {
        BufReader::new(said).read_line(&mut word)?;
    }
    if word.trim() == READY_LINE {
        return Ok(());
    }
    let _ = keeper.wait();
    let log = fs::read_to_string(lab.file("log")).unwrap_or_default();
    let why = log.lines().last().unwrap_or("it ended and said nothing");
    Err(Error::failed(why.strip_prefix("byway: ").unwrap_or(why)))
}

/// Builds a lab, an emulated network on this machine, and prints `ready`. Keeps the lab until it is
/// taken down or, if `owned`, until standard input ends.
///
/// # Errors
/// The wanted network is not known, a lab of its name is already up, or this machine cannot build
/// the lab.
pub fn keep(wanted: &NetworkRequest, owned: bool) -> Result<()> {
    let network = Network::read(wanted)?;
    let lab = place().lab(&network.name);
    let ready = || {
        let _ = writeln!(io::stdout(), "{READY_LINE}");
    };
    let input = io::stdin();
    let owner = owned.then(|| input.as_fd());
    match keep_lab(&lab, &wanted.what, wanted.seed, &network.blueprint, owner, ready) {
        Err(KeeperError::Alive) => Err(alive(&lab)),
        Err(error) => Err(error.into()),
        Ok(_) => Ok(()),
    }
}

/// Runs the program `words[0]` with the other `words` as arguments, on a host of `lab` (`None`: the
/// only lab). Returns the program's exit code. `program`, the path of the byway binary, is started
/// there. This process calls [`inside`], which replaces it by `words[0]` (exec).
///
/// # Errors
/// No such lab or host, or the lab cannot be entered.
pub fn exec(lab: Option<&str>, host: &str, program: &Path, words: &[OsString]) -> Result<i32> {
    let lab = one(lab)?;
    let record = lab.record().about(|| format!("the lab {} is not ready", lab.name))?;
    let host = record.hosts.iter().find(|known| known.name == host).ok_or_else(|| {
        let known: Vec<_> = record.hosts.iter().map(|host| host.name.as_str()).collect();
        Error::NotFound(format!("{} has no host {host}: there are {}", lab.name, known.join(", ")))
    })?;
    enter(&record, host).about(|| format!("the lab {} cannot be entered", lab.name))?;
    // The terminal sends SIGINT and SIGQUIT to this process and to the program on the host. The
    // program decides how to react. So this process ignores the signals and waits for the program.
    for signal in [SIGINT, SIGQUIT] {
        flag::register(signal, Arc::new(AtomicBool::new(false)))?;
    }
    let status = Command::new(program).args(["lab", "inside", "--"]).args(words).status()?;
    // As a shell does: a program that a signal ended has 128 and the signal's number.
    Ok(status.code().or_else(|| status.signal().map(|signal| 128 + signal)).unwrap_or(1))
}

/// Replaces this process (exec) by a program; `words` are its name and arguments. The kernel sends
/// SIGTERM to the program when its parent process ends.
///
/// # Errors
/// This function returns only if the program cannot be run.
pub fn inside(words: &[OsString]) -> Result<Infallible> {
    set_parent_process_death_signal(Some(Signal::TERM))?;
    let (program, rest) =
        words.split_first().ok_or_else(|| Error::Usage("no program is named".to_owned()))?;
    let error = Command::new(program).args(rest).exec();
    let sentence = format!("{} cannot be run: {error}", program.display());
    Err(if error.kind() == io::ErrorKind::NotFound {
        Error::NotFound(sentence)
    } else {
        Error::Failed(sentence)
    })
}

/// The state of the lab with this name. Without a name, the states of all labs.
///
/// # Errors
/// No lab of this name is up.
pub fn status(lab: Option<&str>) -> Result<Vec<LabState>> {
    let labs = match lab {
        Some(name) => vec![one(Some(name))?],
        None => place().all()?,
    };
    Ok(labs.iter().map(LabState::now).collect())
}

impl LabState {
    fn now(lab: &Lab) -> Self {
        Self { lab: lab.name.clone(), up: lab.alive(), record: lab.record().ok(), status: lab.status().ok() }
    }
}

/// Takes down the lab named `lab`. If `lab` is `None`, takes down all labs (`all`) or the only one.
/// Also removes the remains of labs whose process was killed.
///
/// # Errors
/// There is no lab of this name, several are up and none is chosen, or a lab cannot be ended.
pub fn down(lab: Option<&str>, all: bool, mut tell: impl FnMut(TakenDown) -> io::Result<()>) -> Result<()> {
    let (living, dead): (Vec<_>, Vec<_>) = place().all()?.into_iter().partition(Lab::alive);
    let chosen = match lab {
        Some(name) if dead.iter().any(|lab| lab.name == name) => Vec::new(),
        Some(name) => vec![one(Some(name))?],
        None if all || living.len() <= 1 => living,
        None => return Err(which(&living)),
    };
    for lab in dead {
        end(&lab).about(|| format!("what the dead lab {} left", lab.name))?;
        tell(TakenDown::Left(lab.name))?;
    }
    for lab in chosen {
        let last = LabState::now(&lab);
        end(&lab).about(|| format!("the lab {}", lab.name))?;
        tell(TakenDown::Down(Box::new(LabState { up: false, ..last })))?;
    }
    Ok(())
}

/// The lab with this name, or the only running one.
fn one(name: Option<&str>) -> Result<Lab> {
    if let Some(name) = name {
        let lab = place().lab(name);
        if Lab::may_be_called(name) && lab.alive() {
            return Ok(lab);
        }
        return Err(Error::NotFound(format!("no lab {name} is up: `byway lab status` names those that are")));
    }
    let mut living: Vec<Lab> = place().all()?.into_iter().filter(Lab::alive).collect();
    match living.len() {
        0 => Err(Error::NotFound("no lab is up: `byway lab up PLAN` makes one".to_owned())),
        1 => Ok(living.remove(0)),
        _ => Err(which(&living)),
    }
}

fn which(living: &[Lab]) -> Error {
    let names: Vec<_> = living.iter().map(|lab| lab.name.as_str()).collect();
    Error::Usage(format!("several labs are up, say which: {}", names.join(", ")))
}
