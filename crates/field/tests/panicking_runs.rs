//! Runs that panic: a task names their seeds, and keeps the rows of the others.
#![allow(clippy::unwrap_used, reason = "a test ends where it fails")]

use byway_control::catalogue::{OwnController, add_controllers};
use byway_control::{Acked, Allowance, Congested, Opened, PathController, UncoupledPaths, Undo};
use byway_field::directories::Directories;
use byway_field::sweep::{RowTarget, Sweep, TaskLength};
use byway_lab::plan::{Mode, Overrides};
use byway_wire::Instant;
use std::fs;
use std::sync::atomic::AtomicBool;

const PLAN: &str = r#"
title = "A law that fails"
duration = "1 s"
seeds = 12
[[link]]
between = ["a", "b"]
rate = "1 Mbit/s"
delay = "5 ms"
[[transfer]]
name = "bulk"
from = "a"
to = "b"
congestion = "fails"
"#;

/// It panics at the first ACK in one of four runs, by its seed.
#[derive(Debug)]
struct Failing(u64);

impl PathController for Failing {
    fn on_acked(&mut self, _: &Acked<'_>) {
        assert!(!self.0.is_multiple_of(4), "the law fails");
    }
    fn on_congested(&mut self, _: &Congested) {}
    fn on_undo(&mut self, _: &Undo) {}
    fn on_route_change(&mut self, _: Instant) {}
    fn on_packet_size(&mut self, _: u32) {}
    fn allowance(&self) -> Allowance {
        Allowance { window: 12_000, ..Allowance::default() }
    }
}

#[test]
fn the_seeds_of_panics_are_named_and_other_rows_kept() {
    let fails = OwnController {
        name: "fails",
        about: "panics in some runs",
        make: |seed| Box::new(UncoupledPaths::new("fails", move |_: &Opened| Failing(seed))),
    };
    add_controllers(&[fails]).unwrap();
    let place = tempfile::tempdir().unwrap();
    let plan = place.path().join("fails.toml");
    fs::write(&plan, PLAN).unwrap();
    let directories = Directories { out: place.path().join("out"), ..Directories::default() };
    let what = plan.display().to_string();
    let sweep = Sweep::read(directories, &what, Mode::All, Overrides::default()).unwrap();
    let never = AtomicBool::new(false);
    let [task] = sweep.tasks(TaskLength::Runs(100), &never).unwrap().list.try_into().unwrap();
    let rows = place.path().join("rows");
    let run = || sweep.run_task(&task, &RowTarget::Directory(rows.clone()), &never, |_, _| {}).unwrap();
    let first = run();
    assert!(!first.failed.is_empty() && first.ran > 0, "{first:?}");
    assert_eq!(first.ran + first.failed.len(), 12);
    assert!(first.failed.iter().all(|failed| failed.what.contains("the law fails")), "{first:?}");
    // Another try makes what is missing, and fails again.
    let again = run();
    assert_eq!((again.there, again.ran, &again.failed), (first.ran, 0, &first.failed));
    let gathered = sweep.gather(std::slice::from_ref(&rows), None, |_| {}).unwrap();
    assert_eq!(gathered.missing as usize, first.failed.len());
    assert!(gathered.result.is_some() && !gathered.is_whole_and_holds());
}
