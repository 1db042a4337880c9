//! A sweep on several processes, as schedulers run it: tasks that come in any order, twice, or
//! never.

use crate::common::{Ended, Place, Running};
use std::fs;

const PLAN: &str = r#"
title = "Two laws on one line"
duration = "3 s"
seeds = 4
cut = "1 s"
[[link]]
between = ["a", "b"]
rate = "5 Mbit/s"
delay = "10 ms"
jitter = "1 ms"
queue = "50 packets"
[[transfer]]
name = "bulk"
from = "a"
to = "b"
congestion = "$law"
[sweep]
law = ["background", "cubic"]
"#;

fn text(of: &[u8]) -> String {
    String::from_utf8(of.to_vec()).unwrap()
}

/// Rows do not answer what is asked later: another column makes another sweep.
#[test]
fn rows_of_other_columns_are_not_taken() {
    let place = Place::new();
    fs::create_dir(place.path("sweep")).unwrap();
    fs::write(place.path("sweep/plan.toml"), PLAN).unwrap();
    let tasks = || {
        let tasks = place.run("here", &["lab", "tasks", "sweep/plan.toml", "--runs", "4", "--json"]);
        let events = text(&tasks.stdout);
        let lines: Vec<serde_json::Value> =
            events.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        lines.iter().filter_map(|event| event["task"].as_str().map(str::to_owned)).collect::<Vec<_>>()
    };
    let before = tasks();
    assert_eq!(before.len(), 2);
    let column = "[[show]]\nname = \"first\"\nmeasure = \"goodput(bulk, 0, 1)\"\n";
    fs::write(place.path("sweep/expect.toml"), column).unwrap();
    assert_ne!(before, tasks());
}

/// A place with a plan, and the plan's tasks.
fn place() -> (Place, Vec<String>) {
    let place = Place::new();
    fs::write(place.path("laws.toml"), PLAN).unwrap();
    let tasks = place.run("here", &["lab", "tasks", "laws.toml", "--runs", "3"]);
    tasks.succeeded();
    let tasks: Vec<String> = text(&tasks.stdout).lines().map(str::to_owned).collect();
    let seeds: Vec<&str> = tasks.iter().filter_map(|task| task.rsplit(' ').next()).collect();
    assert_eq!(seeds, ["1..3", "4..4", "1..3", "4..4"]);
    (place, tasks)
}

fn task(place: &Place, task: &str) -> Ended {
    place.run("here", &["lab", "task", "laws.toml", task, "--rows", "rows"])
}

/// The path of the only file of rows for these seeds of a variant.
fn rows(place: &Place, end: &str) -> std::path::PathBuf {
    let files = fs::read_dir(place.path("rows")).unwrap().map(|entry| entry.unwrap().path());
    files.into_iter().find(|path| path.to_str().unwrap().ends_with(end)).unwrap()
}

#[test]
fn tasks_in_any_order_make_the_result_of_a_local_run() {
    let (place, tasks) = place();
    // One is killed at once, and runs again with the others.
    let first = ["lab", "task", "laws.toml", &tasks[0], "--rows", "rows"];
    let killed = Running::start(place.command("here", &first));
    killed.signal("KILL");
    drop(killed);
    let running = tasks.iter().rev().map(|task| {
        Running::start(place.command("here", &["lab", "task", "laws.toml", task, "--rows", "rows"]))
    });
    running.collect::<Vec<_>>().into_iter().for_each(|running| running.end().succeeded());
    let again = task(&place, &tasks[0]);
    again.succeeded();
    assert!(again.stderr.contains("0 runs, 3 rows were there"), "{}", again.stderr);
    let gathered = place.run("here", &["lab", "gather", "laws.toml", "rows", "--csv", "g.csv", "--out", "g"]);
    gathered.succeeded();
    let local = place.run("here", &["lab", "run", "laws.toml", "--csv", "l.csv", "--out", "l"]);
    local.succeeded();
    let read = |name: &str| fs::read_to_string(place.path(name)).unwrap();
    assert_eq!(read("g.csv"), read("l.csv"));
    assert_eq!(read("g/laws/result.json"), read("l/laws/result.json"));
    let lines = |ended: &Ended| text(&ended.stdout).lines().count();
    assert_eq!(lines(&gathered), lines(&local));
    // Rows are printed for whoever carries them elsewhere.
    let printed = place.run("here", &["lab", "task", "laws.toml", &tasks[1], "--rows", "-"]);
    printed.succeeded();
    assert_eq!(text(&printed.stdout), fs::read_to_string(rows(&place, "-1-4-4.ndjson")).unwrap());
}

#[test]
fn what_is_missing_damaged_or_strange_is_named() {
    let (place, tasks) = place();
    let gather = |more: &[&str]| place.run("here", &[&["lab", "gather", "laws.toml", "rows"], more].concat());
    fs::create_dir(place.path("rows")).unwrap();
    gather(&[]).failed(3, "there is no row of laws.toml");
    for line in &tasks[..3] {
        task(&place, line).succeeded();
    }
    // The last row of a file is cut off, and a row of another plan stands behind it.
    let damaged = rows(&place, "-1-1-3.ndjson");
    let whole = fs::read_to_string(&damaged).unwrap();
    let lines: Vec<&str> = whole.lines().collect();
    let strange = lines[0].replace("{\"plan\":\"", "{\"plan\":\"f");
    let half = &lines[2][..60];
    fs::write(&damaged, format!("{}\n{}\n{half}\n{strange}\n", lines[0], lines[1])).unwrap();
    let partial = gather(&["--missing", "missing"]);
    assert_eq!(partial.code, Some(1), "{}", partial.stderr);
    for words in [
        "2 runs are missing",
        "-1-1-3.ndjson:3: left out: it is no row",
        "-1-1-3.ndjson:4: left out: of another plan",
    ] {
        assert!(partial.stderr.contains(words), "{}", partial.stderr);
    }
    let missing = fs::read_to_string(place.path("missing")).unwrap();
    let seeds: Vec<&str> = missing.lines().filter_map(|task| task.rsplit(' ').next()).collect();
    assert_eq!(seeds, ["3..3", "4..4"]);
    for line in missing.lines() {
        task(&place, line).succeeded();
    }
    gather(&[]).succeeded();
    gather(&["--csv", "/dev/full"]).failed(1, "o space left");
    // More seeds than were run are missing; a run with two results is a fault.
    let more = gather(&["--seeds", "5"]);
    assert!(more.code == Some(1) && more.stderr.contains("2 runs are missing"), "{}", more.stderr);
    std::os::unix::fs::symlink("/dev/zero", place.path("rows/endless.ndjson")).unwrap();
    assert!(gather(&[]).stderr.contains("endless.ndjson:1: left out: it is no regular file"));
    fs::write(place.path("rows/other.ndjson"), lines[0].replace("\"packets\":", "\"packets\":1")).unwrap();
    gather(&[]).failed(1, "seed 1 of variant 1 has two different rows");
}

#[test]
fn a_task_of_another_plan_or_program_is_refused_before_it_runs() {
    let (place, tasks) = place();
    let words: Vec<&str> = tasks[0].split(' ').collect();
    let with = |place_of: usize, word: &str| {
        let mut words = words.clone();
        words[place_of] = word;
        words.join(" ")
    };
    task(&place, &with(0, "00ff")).failed(2, "the task is of the plan 00ff");
    task(&place, &with(1, "00ff")).failed(2, "the task was cut by the program 00ff");
    task(&place, &with(3, "9")).failed(2, "variant 9 of 2");
    task(&place, "some task").failed(2, "expected a line of `byway lab tasks`");
    fs::write(place.path("laws.toml"), PLAN.replace("5 Mbit/s", "6 Mbit/s")).unwrap();
    task(&place, &tasks[0]).failed(2, "the plan or what is measured was changed");
    fs::write(place.path("laws.toml"), PLAN.replace("\"cubic\"]", "\"cubic\", \"cubic\"]")).unwrap();
    task(&place, &tasks[0]).failed(2, "axis `law` has the value `cubic` twice");
    assert!(!place.path("rows").exists());
    fs::write(place.path("rows"), "a file").unwrap();
    fs::write(place.path("laws.toml"), PLAN).unwrap();
    task(&place, &tasks[0]).failed(1, "rows");
}

#[test]
fn parts_of_the_scoreboard_make_the_whole_one() {
    let place = Place::new();
    let cells = ["--only", "line=2m", "--only", "beside=nobody", "--laws", "cubic,background"];
    let board = |more: &[&str]| {
        let arguments = [&["lab", "scoreboard", "--quick", "--json"], &cells[..], more].concat();
        place.run("here", &arguments)
    };
    let whole = board(&["--out", "whole"]).result();
    let mut ran = 0;
    for part in ["1/2", "2/2"] {
        let out = format!("parts/{}", &part[..1]);
        let ended = board(&["--part", part, "--out", &out]);
        ended.succeeded();
        ran += ended.result()["ran"].as_u64().unwrap();
    }
    assert_eq!(ran, whole["cells"].as_u64().unwrap());
    let joined = board(&["--rows-from", "parts/1", "--rows-from", "parts/2", "--out", "joined"]).result();
    assert_eq!(
        (&joined["ran"], &joined["cells"], &joined["held"]),
        (&0.into(), &whole["cells"], &whole["held"])
    );
    let nowhere = board(&["--rows-from", "nowhere", "--out", "joined"]);
    assert_eq!(nowhere.code, Some(3), "{}", nowhere.stderr);
}
