//! The lab's verbs as a person meets them: plans that are shown, copied and run.

use crate::common::Place;
use serde_json::Value;
use std::fs;

#[test]
fn a_plan_that_is_shown_can_be_copied_and_run() {
    let place = Place::new();
    let shown = place.run("here", &["lab", "show", "wang-5"]);
    shown.succeeded();
    fs::write(place.path("my-plan.toml"), &shown.stdout).unwrap();
    let run = place.run("here", &["lab", "run", "my-plan.toml", "--seeds", "1"]);
    run.succeeded();
    let text = String::from_utf8(run.stdout).unwrap();
    assert!(text.contains("my-plan: 1 runs, "), "{text}");
    for (flag, begins) in [("--readme", "# wang-5: "), ("--expect", "paper = ")] {
        let shown = place.run("here", &["lab", "show", "wang-5", flag]);
        assert!(shown.stdout.starts_with(begins.as_bytes()), "{flag}: {}", shown.stderr);
    }
    for verb in ["show", "run"] {
        place.run("here", &["lab", verb, "wang-55"]).failed(3, "did you mean wang-5?");
    }
    place.run("here", &["lab", "show", "wang-thm1"]).failed(3, "has no plan");
}

#[test]
fn a_plan_with_figures_alone_still_has_a_table() {
    let place = Place::new();
    let plan = "title = \"t\"\nduration = \"3 s\"\nseeds = 1\n\
                [[link]]\nbetween = [\"S\", \"D\"]\nrate = \"1 Mbit/s\"\ndelay = \"5 ms\"\nqueue = \"50 packets\"\n\
                [[transfer]]\nname = \"bulk\"\nfrom = \"S\"\nto = \"D\"\n";
    fs::create_dir(place.path("mine")).unwrap();
    fs::write(place.path("mine/plan.toml"), plan).unwrap();
    fs::write(place.path("mine/expect.toml"), "[[figure]]\ntitle = \"f\"\nkind = \"goodput\"\n").unwrap();
    let run = place.run("here", &["lab", "run", "mine/plan.toml"]);
    run.succeeded();
    let text = String::from_utf8(run.stdout).unwrap();
    assert!(text.starts_with("bulk in Mbit/s\n"), "{text}");
    assert!(place.path("byway-lab/mine/figure-1.svg").is_file());
}

#[test]
fn a_plan_without_a_quick_form_says_so() {
    let place = Place::new();
    let plan = "title = \"t\"\nduration = \"3 s\"\nseeds = 1\n\
                [[link]]\nbetween = [\"S\", \"D\"]\nrate = \"1 Mbit/s\"\ndelay = \"5 ms\"\nqueue = \"50 packets\"\n\
                [[transfer]]\nname = \"bulk\"\nfrom = \"S\"\nto = \"D\"\n";
    fs::write(place.path("mine.toml"), plan).unwrap();
    let quick = place.run("here", &["lab", "run", "mine.toml", "--quick"]);
    quick.failed(2, "mine: not run: the plan has no [mode.quick]");
    fs::write(place.path("other.toml"), format!("{plan}[mode.quick]\nseeds = 1\n")).unwrap();
    let both = place.run("here", &["lab", "run", "mine.toml", "other.toml", "--quick"]);
    both.succeeded();
    assert!(both.stderr.contains("mine: not run: the plan has no [mode.quick]"), "{}", both.stderr);
}

#[test]
fn the_qlog_files_of_a_run_have_the_figures_of_its_trace() {
    let place = Place::new();
    let plan = "title = \"t\"\nduration = \"3 s\"\nseeds = 1\n[sweep]\nmbit = [1, 2]\n\
                [[link]]\nbetween = [\"S\", \"D\"]\nrate = \"$mbit Mbit/s\"\ndelay = \"5 ms\"\nqueue = \"50 packets\"\n\
                [[transfer]]\nname = \"bulk\"\nfrom = \"S\"\nto = \"D\"\n";
    fs::write(place.path("mine.toml"), plan).unwrap();
    place.run("here", &["lab", "run", "mine.toml", "--trace", "--qlog", "--seeds", "2"]).succeeded();
    let mut names: Vec<_> = fs::read_dir(place.path("byway-lab/mine/qlog")).unwrap().collect();
    names.sort_by_key(|name| name.as_ref().unwrap().file_name());
    let names: Vec<_> = names.into_iter().map(|name| name.unwrap().file_name()).collect();
    assert_eq!(names, ["seed-1-1-bulk.sqlog", "seed-2-1-bulk.sqlog"]);

    // The last window and RTT that either file tells of the first run.
    let text = fs::read_to_string(place.path("byway-lab/mine/qlog/seed-1-1-bulk.sqlog")).unwrap();
    let records: Vec<Value> =
        text.split('\u{1e}').skip(1).map(|record| serde_json::from_str(record).unwrap()).collect();
    assert_eq!(records[0]["serialization_format"], "application/qlog+json-seq");
    assert_eq!(records[1]["data"]["details"]["axes"]["mbit"], "1");
    let last = |field: &str| {
        let metrics = records.iter().filter(|record| record["name"] == "quic:recovery_metrics_updated");
        metrics.filter_map(|record| record["data"][field].as_f64()).next_back().unwrap()
    };
    let trace = fs::read_to_string(place.path("byway-lab/mine/trace.jsonl")).unwrap();
    let lines = trace.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    let path = lines.take_while(|line| line["event"] != "link").filter(|line| line["event"] == "path");
    let path = path.last().unwrap();
    assert!(path["window_bytes"].as_f64() > Some(0.0), "{path}");
    assert_eq!(path["window_bytes"].as_f64(), Some(last("congestion_window")));
    assert_eq!(path["rtt_ms"].as_f64(), Some(last("smoothed_rtt")));
}

#[test]
fn a_kept_result_is_stale_once_the_quick_form_differs() {
    let place = Place::new();
    let plan = |rate: &str, jitter: &str| {
        format!(
            "title = \"t\"\nduration = \"6 s\"\nseeds = 3\n[mode.quick]\nseeds = 1\n\
             [[link]]\nbetween = [\"S\", \"D\"]\nrate = \"{rate}\"\ndelay = \"20 ms\"\nqueue = \"20 packets\"\n\
             [[transfer]]\nname = \"bulk\"\nfrom = \"S\"\nto = \"D\"\nstart_jitter = \"{jitter}\"\n"
        )
    };
    let claim = "[[claim]]\nid = \"c\"\nsays = \"s\"\nmeasure = \"goodput(bulk)\"\nat_least = 0.1\n";
    fs::create_dir_all(place.path("all/one")).unwrap();
    let write = |name: &str, text: &str| fs::write(place.path(&format!("all/one/{name}")), text).unwrap();
    write("expect.toml", claim);
    let lab = |verb: &[&str]| place.run("here", &[&["lab"], verb, &["--experiments", "all"]].concat());
    // A session alone, which begins at the same time with every seed.
    write("plan.toml", &plan("2 Mbit/s", "0 s"));
    let same = lab(&["run", "--keep"]);
    assert!(same.stderr.contains("the result is not kept: in 1 of 1 variants"), "{}", same.stderr);
    assert_eq!(same.code, Some(1));
    assert!(!place.path("all/one/result.json").exists());
    write("plan.toml", &plan("2 Mbit/s", "3 s"));
    lab(&["run", "--keep"]).succeeded();
    let kept = fs::read_to_string(place.path("all/one/result.json")).unwrap();
    assert!(kept.contains("\"quick\": \""), "{kept}");
    let again = lab(&["run", "--keep", "--resume"]);
    assert!(again.stderr.contains("one: this commit has run it already"), "{}", again.stderr);
    // Of other seeds than the plan's: it is not kept, does not count as run, and makes nothing
    // stale.
    let other = lab(&["run", "--keep", "--seeds", "4"]);
    assert!(other.stderr.contains("the result is not kept: it is not of all runs"), "{}", other.stderr);
    assert_eq!(fs::read_to_string(place.path("all/one/result.json")).unwrap(), kept);
    let again = lab(&["run", "--resume"]);
    assert!(!again.stderr.contains("has run it already"), "{}", again.stderr);
    for quick in [&["run", "--quick", "--seeds", "2"][..], &["run", "--quick"]] {
        lab(quick).succeeded();
        lab(&["list", "--refuse-stale"]).succeeded();
    }
    write("plan.toml", &plan("1 Mbit/s", "3 s"));
    lab(&["run", "--quick"]).succeeded();
    let text = String::from_utf8(lab(&["list"]).stdout).unwrap();
    assert!(text.contains("1 of 1") && text.contains("stale"), "{text}");
    let refused = lab(&["list", "--refuse-stale"]);
    assert_eq!(refused.code, Some(1), "{}", refused.stderr);
}

#[test]
fn a_scoreboard_that_was_stopped_goes_on_where_it_was() {
    let place = Place::new();
    let board = |laws: &str, seeds: &str| {
        let only = ["line=1m-60ms-10p", "beside=nobody", "transfers=1"].map(|only| ["--only", only]).concat();
        let fixed = ["lab", "scoreboard", "--out", "board", "--jobs", "1", "--laws", laws, "--seeds", seeds];
        let run = place.run("here", &[&fixed, only.as_slice()].concat());
        run.succeeded();
        (String::from_utf8(run.stdout).unwrap(), run.stderr)
    };
    let rows = || fs::read_to_string(place.path("board/rows.jsonl")).unwrap();
    let (_, told) = board("cubic", "1");
    assert!(told.contains("1 cells, 0 of them are there already"), "{told}");
    let one = rows();
    // A second law, and a program that was killed while it wrote a row.
    fs::write(place.path("board/rows.jsonl"), one.clone() + &one[..one.len() / 2]).unwrap();
    let (text, told) = board("cubic,nice", "1");
    assert!(told.contains("2 cells, 1 of them are there already"), "{told}");
    assert!(text.contains("beside nobody") && text.contains("2 cells, 1 of them run"), "{text}");
    let two = rows();
    assert!(two.starts_with(&one) && two.lines().count() == 3, "{two}");
    let (again, _) = board("cubic,nice", "1");
    assert!(again.contains("2 cells, 0 of them run"), "{again}");
    assert_eq!(rows(), two);
    let table = fs::read_to_string(place.path("board/rows.csv")).unwrap();
    assert_eq!(table.lines().count(), 3, "{table}");
    let (more, _) = board("cubic,nice", "3");
    assert!(more.contains("6 cells, 4 of them run") && more.contains("medians of seeds 1 to 3"), "{more}");
    place.run("here", &["lab", "scoreboard", "--laws", "cubik"]).failed(2, "did you mean `cubic`");
    let none = place.run("here", &["lab", "scoreboard", "--only", "line=11m"]);
    assert!(none.stderr.contains("nothing in the grid is 11m"), "{}", none.stderr);
}

#[test]
fn a_random_world_becomes_a_plan_that_runs() {
    let place = Place::new();
    let fuzz = |more: &[&str]| place.run("here", &[&["lab", "fuzz"], more].concat());
    fuzz(&["--plan", "w.toml"]).failed(2, "--plan writes the world of one seed");
    let written = fuzz(&["--first", "4", "--seeds", "1", "--plan", "w.toml", "--json"]);
    written.succeeded();
    let told = String::from_utf8(written.stdout).unwrap();
    assert!(told.contains(r#""worlds":1,"seeds":[{"first":4,"last":4}]"#), "{told}");
    let plan = fs::read_to_string(place.path("w.toml")).unwrap();
    assert!(plan.contains("\nfirst_seed = 4\nseeds = 1\ntitle = \"The random world of seed 4\""), "{plan}");
    let run = place.run("here", &["lab", "run", "w.toml"]);
    run.succeeded();
    let text = String::from_utf8(run.stdout).unwrap();
    assert!(text.contains("w: 1 runs, "), "{text}");
    fs::write(place.path("seeds.txt"), "# two\n5\n4\n").unwrap();
    let listed = fuzz(&["--seeds-file", "seeds.txt"]);
    listed.succeeded();
    assert!(String::from_utf8(listed.stdout).unwrap().starts_with("2 worlds, "));
    fs::write(place.path("seeds.txt"), "5\nx\n").unwrap();
    fuzz(&["--seeds-file", "seeds.txt"]).failed(2, "seeds.txt:2: expected a seed");
    fuzz(&["--seeds-file", "none.txt"]).failed(3, "none.txt");
}
