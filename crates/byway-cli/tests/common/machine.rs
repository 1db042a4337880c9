//! What tests that depend on the machine share: whether it has what they need, commands, and
//! waiting for what comes.

use libtest_mimic::{Arguments, Completion, Failed, Trial};
use std::any::Any;
use std::collections::BTreeSet;
use std::fs;
use std::io::Write as _;
use std::panic::catch_unwind;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// How long anything may take that is waited for. On a busy machine all takes ten times as long as
/// usual.
pub const PATIENCE: Duration = Duration::from_secs(240);
/// The time between two looks at what is waited for.
const LOOK: Duration = Duration::from_millis(20);

/// Whether this is root.
pub fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

/// The network namespaces, other than this one, in which processes of the labs below `labs` live.
pub fn inhabited(labs: &Path) -> BTreeSet<PathBuf> {
    let here = fs::read_link("/proc/self/ns/net").unwrap();
    let setting = format!("BYWAY_LABS={}", labs.display());
    let is_theirs = |process: &Path| {
        let environment = fs::read(process.join("environ")).unwrap_or_default();
        environment.split(|byte| *byte == 0).any(|entry| entry == setting.as_bytes())
    };
    let processes = fs::read_dir("/proc").unwrap().filter_map(Result::ok).map(|process| process.path());
    let theirs = processes.filter(|process| is_theirs(process));
    let spaces = theirs.filter_map(|process| fs::read_link(process.join("ns/net")).ok());
    spaces.filter(|space| *space != here).collect()
}

/// Whether a command (words between single spaces) does well.
pub fn works(command: &str) -> bool {
    run(&command.split(' ').collect::<Vec<_>>())
}

/// Whether a command does well.
pub fn run(command: &[&str]) -> bool {
    let (program, arguments) = command.split_first().unwrap();
    let mut program = Command::new(program);
    program.args(arguments).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    program.status().is_ok_and(|status| status.success())
}

/// Runs a command that must do well; what it says.
#[track_caller]
pub fn must(command: &mut Command) -> String {
    let output = command.stdin(Stdio::null()).output().unwrap();
    let (said, told) = (String::from_utf8(output.stdout).unwrap(), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{command:?}: {said} {told}");
    said
}

/// Looks until there is what is waited for.
pub fn wait_for<T>(patience: Duration, mut look: impl FnMut() -> Option<T>) -> Option<T> {
    let begun = Instant::now();
    loop {
        let found = look();
        if found.is_some() || begun.elapsed() > patience {
            return found;
        }
        std::thread::sleep(LOOK);
    }
}

/// What of its needs the machine lacks; `None` if it has them all.
pub type Missing = Option<&'static str>;

/// `needs`, unless the machine has them.
pub fn missing(possible: bool, needs: &'static str) -> Missing {
    (!possible).then_some(needs)
}

/// A test. If the machine lacks something (`missing`), the test is reported as ignored.
pub fn test(name: &'static str, missing: Missing, test: fn() -> Result<(), Failed>) -> Trial {
    test_of(name.to_owned(), missing, test)
}

/// The same for what is only found when the tests begin.
pub fn test_of<T>(name: String, missing: Missing, test: T) -> Trial
where
    T: FnOnce() -> Result<(), Failed> + Send + 'static,
{
    Trial::ignorable_test(name.clone(), move || match missing {
        Some(needs) => Ok(skipped(&name, needs)),
        None => test().map(|()| Completion::Completed),
    })
}

/// A test at full scale, which takes a minute of a processor. It runs only with `--ignored`.
pub fn slow(name: &'static str, missing: Missing, run: fn() -> Result<(), Failed>) -> Trial {
    test(name, missing, run).with_ignored_flag(true)
}

/// A test that measures time or rate. It runs only with `--ignored`. It is reported as ignored if
/// the machine is busy before the test, or busy after a failure.
pub fn measures(name: &'static str, missing: Missing, test: fn() -> Measured) -> Trial {
    let run = move || {
        if let Some(needs) = missing {
            return Ok(skipped(name, needs));
        }
        if !is_quiet() {
            return Ok(skipped(name, TOO_BUSY));
        }
        let outcome = catch_unwind(test).unwrap_or_else(|panic| Err(what_it_said(panic.as_ref()).into()));
        match outcome {
            Ok(Some(())) => Ok(Completion::Completed),
            Ok(None) => Ok(skipped(name, TOO_BUSY)),
            Err(failed) if is_quiet() => Err(failed),
            Err(failed) => {
                eprintln!("{name}: {}", failed.message().unwrap_or_default());
                Ok(skipped(name, TOO_BUSY))
            }
        }
    };
    Trial::ignorable_test(name, run).with_ignored_flag(true)
}

/// What comes of a test that measures; `None` if the lab itself says that it was too late to
/// measure anything.
pub type Measured = Result<Option<()>, Failed>;

/// `.ci/run` looks for these words.
const TOO_BUSY: &str = "machine too busy";

fn skipped(name: &str, why: &str) -> Completion {
    tell(&format!("skipped: {name}: {why}\n"));
    Completion::ignored_with(why)
}

/// Writes a line whole, among those of other tests.
fn tell(line: &str) {
    let _ = std::io::stderr().write_all(line.as_bytes());
}

fn what_it_said(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    text.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("it panicked").to_owned()
}

/// How long the processors are watched, and how often: a test before may still be ending.
const WATCHED: Duration = Duration::from_millis(500);
const LOOKS: usize = 10;
/// The part of the processors' time that must be left to somebody who measures.
const IDLE: f64 = 0.75;

/// Whether the machine leaves most of its processors idle, so that something can be measured.
pub fn is_quiet() -> bool {
    (0..LOOKS).any(|_| {
        let before = processor_times();
        std::thread::sleep(WATCHED);
        let after = processor_times();
        let (idle, all) = (after.0 - before.0, after.1 - before.1);
        idle as f64 >= IDLE * all as f64
    })
}

/// The time that all processors were idle, and all their time, in ticks. It is from `/proc/stat`,
/// see proc(5).
fn processor_times() -> (u64, u64) {
    let text = fs::read_to_string("/proc/stat").unwrap();
    let numbers = text.lines().next().unwrap().split_whitespace().skip(1).take(8);
    let ticks: Vec<u64> = numbers.map(|number| number.parse().unwrap()).collect();
    (ticks[3] + ticks[4], ticks.iter().sum())
}

/// The time between two looks of who watches how late the system runs a thread, and what is too
/// late for processes that answer each other within seconds.
const LATENESS_INTERVAL: Duration = Duration::from_millis(10);
const MAX_LATENESS: Duration = Duration::from_millis(200);

/// Watches how late the system runs a thread while a test goes on.
pub struct Lateness {
    worst_millis: Arc<AtomicU64>,
    is_over: Arc<AtomicBool>,
}

impl Lateness {
    /// Watches from now on.
    pub fn watch() -> Self {
        let lateness = Self { worst_millis: Arc::default(), is_over: Arc::default() };
        let (worst, is_over) = (Arc::clone(&lateness.worst_millis), Arc::clone(&lateness.is_over));
        std::thread::spawn(move || {
            while !is_over.load(Ordering::Relaxed) {
                let begun = Instant::now();
                std::thread::sleep(LATENESS_INTERVAL);
                let late = begun.elapsed().saturating_sub(LATENESS_INTERVAL);
                worst.fetch_max(u64::try_from(late.as_millis()).unwrap_or(u64::MAX), Ordering::Relaxed);
            }
        });
        lateness
    }

    /// Whether the machine kept processes waiting, so that one may have taken another for dead.
    pub fn is_too_late(&self) -> bool {
        Duration::from_millis(self.worst_millis.load(Ordering::Relaxed)) > MAX_LATENESS
    }
}

impl Drop for Lateness {
    fn drop(&mut self) {
        self.is_over.store(true, Ordering::Relaxed);
    }
}

/// How many tests run at a time, which mostly wait. Those that measure run one at a time.
const AT_A_TIME: usize = 8;

/// Runs tests.
pub fn conclude(tests: Vec<Trial>) -> ! {
    let mut arguments = Arguments::from_args();
    let measures = arguments.ignored || arguments.include_ignored;
    let usual = if measures { 1 } else { AT_A_TIME };
    arguments.test_threads = arguments.test_threads.or(Some(usual));
    libtest_mimic::run(&arguments, tests).exit()
}
