//! Claims checked with records made by hand. The tests show what decides, what is said, and what is
//! kept.

use super::builder::{constant, path, requests};
use byway_lab::Record;
use byway_lab::expect::{ClaimResult, Expectation, Outcome, Verdict, table, trace_of, write};
use byway_lab::measure::Records;
use byway_lab::plan::{Mode, Overrides, Plan};

fn read(source: &str) -> Expectation {
    Expectation::read("expect.toml", source).expect("an expectation")
}

/// One claim about `goodput(T)` with `more` keys.
fn claim(more: &str) -> Expectation {
    read(&format!(
        "[[claim]]\nid = \"c\"\nsays = \"s\"\nunit = \"Mbit/s\"\n{more}\nmeasure = \"goodput(T)\"\n"
    ))
}

fn judge(expectation: &Expectation, runs: &[Record]) -> ClaimResult {
    let records = Records::new(runs).expect("one experiment");
    let judged = expectation.judge(&records, Mode::All);
    assert_eq!(judged.verdict, judged.claims[0].verdict);
    judged.claims[0].clone()
}

/// One run per rate, seeds from 1.
fn seeds(rates: &[f64]) -> Vec<Record> {
    (1..).zip(rates).map(|(seed, &rate)| constant(&[], seed, rate)).collect()
}

#[test]
fn with_ten_seeds_the_second_worst_decides() {
    let rates = [9.0, 9.1, 9.2, 9.3, 9.4, 9.5, 9.6, 9.7, 9.8, 9.9];
    let result = judge(&claim("at_least = 9.1"), &seeds(&rates));
    assert_eq!(result.verdict, Verdict::Pass, "one seed below is allowed");
    let measured = result.deciding().expect("measured");
    assert_eq!(measured.seeds, (1..=10).collect::<Vec<u64>>());
    assert!((measured.median.expect("a median") - 9.45).abs() < 1e-6);
    let interval = measured.interval.expect("an interval");
    assert!((interval.low - 9.1).abs() < 1e-6 && (interval.high - 9.8).abs() < 1e-6);
    assert!((interval.coverage - 0.9785).abs() < 1e-4);
    // The median alone would be far inside.
    assert_eq!(judge(&claim("at_least = 9.11"), &seeds(&rates)).verdict, Verdict::Fail);
    assert_eq!(judge(&claim("at_most = 9.8"), &seeds(&rates)).verdict, Verdict::Pass);
    assert_eq!(judge(&claim("at_most = 9.79"), &seeds(&rates)).verdict, Verdict::Fail);
    assert_eq!(judge(&claim("at_least = 9.1\nat_most = 9.8"), &seeds(&rates)).verdict, Verdict::Pass);
    assert_eq!(judge(&claim("at_least = 9.2\nat_most = 9.8"), &seeds(&rates)).verdict, Verdict::Fail);
}

#[test]
fn with_fewer_than_six_seeds_every_one_decides() {
    let rates = [9.0, 9.5, 9.5, 9.5, 9.5];
    assert_eq!(judge(&claim("at_least = 9.0"), &seeds(&rates)).verdict, Verdict::Pass);
    assert_eq!(judge(&claim("at_least = 9.1"), &seeds(&rates)).verdict, Verdict::Fail);
    assert_eq!(judge(&claim("at_least = 9.1"), &seeds(&rates[1..2])).verdict, Verdict::Pass, "one seed");
}

#[test]
fn ratios_are_paired_by_seed() {
    let ratio = r#"
        [[claim]]
        id = "r"
        says = "a has twice of b"
        at_least = 1.99
        at_most = 2.01
        measure = "goodput(T)[c=a] / goodput(T)[c=b]"
    "#;
    let mut runs = Vec::new();
    for (seed, rate) in (1..).zip([1.0, 5.0, 2.0, 8.0, 3.0, 4.0, 9.0]) {
        runs.push(constant(&[("c", "a")], seed, 2.0 * rate));
        runs.push(constant(&[("c", "b")], seed, rate));
    }
    assert_eq!(judge(&read(ratio), &runs).verdict, Verdict::Pass);
}

#[test]
fn each_value_of_an_axis_must_hold_and_the_worst_is_shown() {
    let runs: Vec<Record> = [("1", 9.0), ("2", 7.0), ("4", 8.0)]
        .iter()
        .flat_map(|&(n, rate)| {
            (1..=3).map(move |seed| constant(&[("n", n), ("c", "x")], seed, rate + seed as f64 / 10.0))
        })
        .collect();
    let result = judge(&claim("each = [\"n\"]\nat_least = 7.05"), &runs);
    assert_eq!((result.verdict, result.at.len(), result.worst), (Verdict::Pass, 3, Some(1)));
    assert_eq!(result.deciding().expect("one").variant, [("n".to_owned(), "2".to_owned())]);
    let result = judge(&claim("each = [\"n\"]\nat_least = 7.2"), &runs);
    assert_eq!((result.verdict, result.worst), (Verdict::Fail, Some(1)));
    let result = judge(&claim("each = [\"n\"]\nat_most = 9.2"), &runs);
    assert_eq!((result.verdict, result.worst), (Verdict::Fail, Some(0)));
    let result = judge(&claim("each = [\"n\"]\nonly = { n = [1, \"4\"] }\nat_least = 8.05"), &runs);
    assert_eq!((result.verdict, result.at.len(), result.worst), (Verdict::Pass, 2, Some(1)));
    let result = judge(&claim("each = [\"n\"]\nonly = { n = [16] }\nat_least = 8.05"), &runs);
    assert_eq!(result.verdict, Verdict::NotRun, "this mode leaves 16 out");
    let result = judge(&claim("at_most = 99"), &runs);
    assert_eq!(result.verdict, Verdict::Fail, "which n?");
    assert!(result.note.expect("a note").contains("put `n` into `each`"));
    let result = judge(&claim("each = [\"m\"]\nat_most = 99"), &runs);
    assert!(result.verdict == Verdict::Fail && result.note.expect("a note").contains("no axis `m`"));
}

#[test]
fn a_known_miss_is_told_from_a_failure_and_from_one_that_is_none_any_more() {
    let result = judge(&claim("known = \"k\"\nat_least = 9.0"), &seeds(&[5.0]));
    assert_eq!(result.verdict, Verdict::Fail);
    assert_eq!(result.note.as_deref(), Some("no value is accepted in the mode all"));
    let known = "known = \"the paper starts elsewhere\"\naccepted = { all = 5 }\nat_least = ";
    let result = judge(&claim(&format!("{known}9.0")), &seeds(&[5.0]));
    assert_eq!((result.verdict, result.note), (Verdict::KnownMiss, None));
    // A question that fits no run is a mistake of whoever asks, and no miss.
    let asked = "[[claim]]\nid = \"c\"\nsays = \"s\"\nknown = \"k\"\naccepted = { all = nan }\nat_least = 1\nmeasure = \"path(T, R)\"";
    let mut runs = seeds(&[5.0]);
    assert_eq!(judge(&read(asked), &runs).verdict, Verdict::KnownMiss, "no path was ever open");
    runs[0].transfers[0].paths = vec![path("direct", &[(60.0, 5.0)])];
    assert_eq!(judge(&read(asked), &runs).verdict, Verdict::Fail, "no path of this name");
    assert_eq!(result.known.as_deref(), Some("the paper starts elsewhere"));
    let result = judge(&claim(&format!("{known}4.0")), &seeds(&[5.0]));
    assert_eq!(result.verdict, Verdict::Pass);
    assert_eq!(result.note.as_deref(), Some("known miss now passes: remove the mark `known`"));
}

#[test]
fn a_known_miss_fails_if_it_is_worse_than_it_was_accepted() {
    for (accepted, bound, verdict, note) in [
        ("5.2", "at_least = 9", Verdict::KnownMiss, None),
        ("6", "at_least = 9", Verdict::Fail, Some("worse than accepted: 5 instead of 6")),
        ("4", "at_least = 9", Verdict::KnownMiss, Some("better than accepted: 5 instead of 4")),
        ("nan", "at_least = 9", Verdict::KnownMiss, Some("better than accepted: 5 instead of no value")),
        ("4.8", "at_most = 2", Verdict::KnownMiss, None),
        ("4", "at_most = 2", Verdict::Fail, Some("worse than accepted: 5 instead of 4")),
        ("6", "at_most = 2", Verdict::KnownMiss, Some("better than accepted: 5 instead of 6")),
    ] {
        let known = format!("known = \"k\"\naccepted = {{ all = {accepted} }}\n{bound}");
        let result = judge(&claim(&known), &seeds(&[5.0]));
        assert_eq!((result.verdict, result.note.as_deref()), (verdict, note), "{accepted}, {bound}");
    }
}

#[test]
fn a_report_is_shown_and_breaks_nothing() {
    let result = judge(&claim("report = true"), &seeds(&[5.0, 6.0]));
    assert_eq!(result.verdict, Verdict::Report);
    assert!((result.deciding().and_then(|measured| measured.median).expect("a median") - 5.5).abs() < 1e-6);
}

#[test]
fn what_this_mode_leaves_out_was_not_run() {
    let source = "[[claim]]\nid = \"c\"\nsays = \"s\"\nat_least = 1\nmeasure = \"goodput(T)[c=b]\"";
    let result = judge(&read(source), &[constant(&[("c", "a")], 1, 5.0)]);
    assert_eq!(result.verdict, Verdict::NotRun);
    assert!(result.note.expect("why").contains("[c=b] was not run"));
    let result = judge(&claim("modes = [\"full\"]\nat_least = 99"), &seeds(&[5.0]));
    assert_eq!(result.verdict, Verdict::NotRun);
    assert_eq!(result.note.as_deref(), Some("is not held in the mode all"));
    assert_eq!(judge(&claim("at_least = 1"), &[]).verdict, Verdict::NotRun);
    // A run that was stopped keeps what it has.
    let mut runs = Vec::from([constant(&[("c", "a")], 1, 4.0), constant(&[("c", "b")], 1, 2.0)]);
    runs.push(constant(&[("c", "a")], 2, 4.0));
    let result = judge(&read(source), &runs);
    assert_eq!(
        (result.verdict, result.deciding().expect("one").seeds.as_slice()),
        (Verdict::Pass, [1].as_slice())
    );
}

#[test]
fn a_seed_without_a_value_fails_the_claim_and_says_why() {
    let mut runs: Vec<Record> = seeds(&[5.0; 8]);
    for (seed, run) in (1..).zip(&mut runs) {
        run.transfers[0].finished = (seed != 3).then_some(20.0);
    }
    let source = "[[claim]]\nid = \"c\"\nsays = \"s\"\nat_most = 30\nmeasure = \"completion(T)\"";
    let result = judge(&read(source), &runs);
    assert_eq!(result.verdict, Verdict::Fail, "seven of eight are not eight of eight");
    let note = result.note.expect("why");
    assert!(note.starts_with("seed 3: `completion(T)`: transfer `T` did not finish within 60 s"), "{note}");
    let measured = &result.at[0];
    assert_eq!((measured.seeds.len(), measured.missing[0].seed, measured.median), (7, 3, Some(20.0)));
}

#[test]
fn an_experiment_is_as_good_as_the_worst_of_its_claims() {
    use Verdict::{Fail, KnownMiss, NotRun, Pass, Report};
    assert_eq!(Verdict::worst([Pass, KnownMiss, Report]), KnownMiss);
    assert_eq!(Verdict::worst([KnownMiss, Fail, NotRun]), Fail);
    assert_eq!(Verdict::worst([Report, NotRun]), Report);
    assert_eq!(Verdict::worst([Pass, NotRun]), Pass);
    assert_eq!(Verdict::worst([]), NotRun);
}

const WHOLE: &str = r#"paper = "Harp, figure 6(a)"
tags = ["harp"]

[[claim]]
id = "pooling"
says = "Independent has more than Joint"
paper = "about 1.2"
measure = "goodput(T)[c=independent] / goodput(T)[c=joint]"
at_least = 1.1
at_most = 1.5
each = ["n"]
reading = "strict"

[[claim]]
id = "joint"
says = "what Joint has"
measure = "goodput(T)[c=joint]"
unit = "Mbit/s"
each = ["n"]
report = true

[[claim]]
id = "web"
says = "people do not wait"
measure = "max_over(c, requests(web, 50))"
unit = "s"
each = ["n"]
at_most = 1
known = "the queue is long"
accepted = { quick = 2 }

[[show]]
name = "goodput"
measure = "goodput(T)"
unit = "Mbit/s"

[[show]]
name = "finished, all"
measure = "completion(T)"
unit = "s"
"#;

fn whole() -> Vec<Record> {
    let mut runs = Vec::new();
    for (n, joint, independent) in [("1", 4.0, 5.0), ("2", 3.0, 4.25)] {
        for seed in 1..=2 {
            for (c, rate) in [("joint", joint), ("independent", independent)] {
                let mut run = constant(&[("n", n), ("world", "flat"), ("c", c)], seed, rate);
                run.requests = vec![requests("web", &[(Some(20.0), Some(seed as f64))])];
                if c == "joint" && n == "1" {
                    run.transfers[0].finished = Some(30.0 + seed as f64);
                }
                runs.push(run);
            }
        }
    }
    runs
}

fn outcome(runs: &[Record]) -> Outcome {
    let judged = read(WHOLE).judge(&Records::new(runs).expect("one experiment"), Mode::Quick);
    Outcome::new("harp-6a", Mode::Quick, "0123abc", "2026-11-21", runs, judged)
}

/// A grid as lines, its cells between bars.
fn lines(grid: &table::Grid) -> Vec<String> {
    let mut lines = vec![grid.headings.join("|")];
    for row in &grid.rows {
        lines.push(row.cells.join("|"));
        lines.extend(row.notes.iter().map(|note| format!("    {note}")));
    }
    lines
}

#[test]
fn claims_as_a_table() {
    let grid = table::claims(&outcome(&whole()).claims);
    let expected = [
        "verdict|claim|measured|bound|paper",
        "PASS|pooling (strict)|1.417 at n=2|1.1 to 1.5|about 1.2",
        "    Independent has more than Joint",
        "report|joint|4 Mbit/s at n=1|-|",
        "||3 Mbit/s at n=2",
        "    what Joint has",
        "known miss|web|1.5 (1 to 2) s at n=1|at most 1|",
        "    people do not wait",
        "    the queue is long",
    ];
    assert_eq!((lines(&grid), grid.keys), (expected.map(str::to_owned).to_vec(), 2));
}

#[test]
fn variants_as_a_table() {
    let grid = table::variants(&outcome(&whole()).shows);
    let expected = [
        "n|c|goodput in Mbit/s|finished, all in s",
        "1|joint|4|31.5 (31 to 32)",
        "1|independent|5|-",
        "2|joint|3|-",
        "2|independent|4.25|-",
    ];
    assert_eq!((lines(&grid), grid.keys), (expected.map(str::to_owned).to_vec(), 2));
    assert_eq!(table::variants(&[]), table::Grid::default());
}

#[test]
fn numbers_keep_four_digits() {
    let numbers = [0.0, 0.000_123_46, 0.012_346, 1.0, 1.234_56, -12.3456, 123.456, 12345.6, 1.5e9, -0.5];
    let texts = ["0", "1.235e-4", "0.0123", "1", "1.235", "-12.35", "123.5", "12346", "1.500e9", "-0.5"];
    for (number, text) in numbers.into_iter().zip(texts) {
        assert_eq!(table::number(number), text);
    }
}

#[test]
fn rows_for_other_programs() {
    let outcome = outcome(&whole());
    let mut csv = Vec::new();
    write::csv(&outcome.shows, &mut csv).expect("memory");
    let csv = String::from_utf8(csv).expect("text");
    let lines: Vec<&str> = csv.lines().collect();
    assert_eq!(lines.len(), 1 + 2 * 8);
    assert_eq!(lines[0], "n,world,c,seed,measure,unit,value");
    assert_eq!(lines[1], "1,flat,joint,1,goodput,Mbit/s,4");
    assert_eq!(lines[9], "1,flat,joint,1,\"finished, all\",s,31");
    assert_eq!(lines[11], "1,flat,independent,1,\"finished, all\",s,");
}

#[test]
fn what_came_out_is_kept_and_judged_again() {
    let kept = outcome(&whole());
    assert_eq!((kept.verdict, kept.seeds.as_slice()), (Verdict::KnownMiss, [1, 2].as_slice()));
    let json = kept.to_json().expect("JSON");
    for piece in ["\"verdict\": \"known-miss\"", "\"mode\": \"quick\"", "\"commit\": \"0123abc\""] {
        assert!(json.contains(piece), "{piece} in {json}");
    }
    assert!(!json.contains("Independent has more"), "words stand in the expectation alone");
    let again = |source: &str| read(source).recall(Outcome::from_json(&json).expect("a result"));
    let same = again(WHOLE);
    assert_eq!(same.to_json().expect("JSON"), json);
    let (claims, read) = (table::claims(&kept.claims), table::claims(&same.claims));
    assert_eq!(lines(&claims), lines(&read));
    // A bound that moved is judged by what was measured, a measure that changed was not run.
    let bound = again(&WHOLE.replace("at_most = 1.5", "at_most = 1.2"));
    assert_eq!((same.claims[0].verdict, bound.claims[0].verdict), (Verdict::Pass, Verdict::Fail));
    let changed = again(&WHOLE.replace("measure = \"goodput", "measure = \"2 * goodput"));
    assert_eq!(changed.claims[0].verdict, Verdict::NotRun);
}

#[test]
fn seeds_that_agree_are_counted() {
    let same = |seed| constant(&[("n", "1")], seed, 5.0);
    let apart = |seed: u64| constant(&[("n", "2")], seed, 5.0 + 0.01 * seed as f64);
    let runs: Vec<Record> = (1..=3).flat_map(|seed| [same(seed), apart(seed)]).collect();
    let source = "[[show]]\nname = \"rate\"\nmeasure = \"goodput(T)\"\n";
    let judged = read(source).judge(&Records::new(&runs).expect("one experiment"), Mode::All);
    let outcome = Outcome::new("x", Mode::All, "", "", &runs, judged);
    assert_eq!((outcome.agree, outcome.variants()), (1, 2));
}

#[test]
fn the_trace_of_all_runs_sees_any_change_and_no_order() {
    let runs = whole();
    let trace = trace_of(&runs);
    let mut turned = runs.clone();
    turned.reverse();
    assert_eq!(trace_of(&turned), trace);
    turned[3].trace += 1;
    assert_ne!(trace_of(&turned), trace);
    let mut fewer = runs;
    fewer.pop();
    assert_ne!(trace_of(&fewer), trace);
    assert_eq!(trace_of::<Record>(&[]), "cbf29ce484222325", "FNV-1a of nothing");
}

#[track_caller]
fn refused(old: &str, new: &str, line: usize, column: usize, says: &str) {
    let source = WHOLE.replacen(old, new, 1);
    assert_ne!(source, WHOLE, "{old} is there");
    let error = Expectation::read("x/expect.toml", &source).expect_err("refused");
    assert!(error.what.contains(says), "{error}");
    assert_eq!((error.line, error.column), (line, column), "{error}");
    assert!(error.to_string().starts_with(&format!("x/expect.toml:{line}:{column}: ")));
}

#[test]
fn what_is_wrong_with_an_expectation_is_said_with_its_place() {
    refused("paper = \"about", "papr = \"about", 7, 1, "unknown field `papr`");
    refused("at_least = 1.1", "at_least = \"1.1\"", 9, 12, "invalid type: string");
    refused("says = \"Ind", "# ", 4, 1, "missing field `says`");
    refused("goodput(T)[c=ind", "godput(T)[c=ind", 8, 12, "did you mean `goodput`?");
    refused("/ goodput(T)[c=joint]", "/ goodput(T)[c:joint]", 8, 58, "expected `=` and a value of `c:joint`");
    refused("\"joint\"", "\"pooling\"", 15, 6, "two claims `pooling`");
    refused(
        "report = true",
        "report = false",
        15,
        6,
        "no bound: expected at_least, at_most, or report = true",
    );
    refused("report = true", "report = true\nat_most = 3", 15, 6, "a report has no bound");
    refused("report = true", "report = true\nknown = \"x\"", 21, 9, "a report cannot be missed");
    refused("known = \"the queue is long\"", "known = \" \"", 29, 9, "expected the reason");
    refused("known = \"the queue is long\"\n", "", 23, 6, "`accepted` without `known`");
    refused("at_most = 1.5", "at_most = 1.0", 5, 6, "nothing is at_least more than at_most");
    refused("at_most = 1.5", "at_most = inf", 5, 6, "expected finite bounds");
    refused("each = [\"n\"]", "each = [\"n\", \"n\"]", 11, 14, "`n` stands in `each` already");
    refused("reading = \"strict\"", "reading = \"literal\"", 12, 11, "unknown variant `literal`");
    refused("each = [\"n\"]", "each = [\"n\"]\nonly = { m = [1] }", 12, 10, "`m` does not stand in `each`");
    refused("\"finished, all\"", "\"goodput\"", 38, 8, "`goodput` is shown already");
    refused("completion(T)\"", "completion(T\"", 39, 24, "expected `)`");
    refused("tags = [\"harp\"]", "tags = [\"harp\"", 4, 1, "missing comma between array elements");
}

#[test]
fn the_place_in_a_text_of_several_lines_is_found() {
    let source = "[[claim]]\nid = \"c\"\nsays = \"s\"\nreport = true\nmeasure = '''\n1 +\n  godput(T)'''\n";
    let error = Expectation::read("e", source).expect_err("refused");
    assert_eq!((error.line, error.column), (7, 3), "{error}");
    // Where escapes shift the bytes it is the text as a whole.
    let source = "[[claim]]\nid = \"c\"\nsays = \"s\"\nreport = true\nmeasure = \"goodput(\\\"a\\\") + x\"\n";
    let error = Expectation::read("e", source).expect_err("refused");
    assert_eq!((error.line, error.column), (5, 11), "{error}");
}

#[test]
fn an_experiment_that_cannot_be_run_says_why() {
    let source = "title = \"t\"\nnot_run = \"needs PlanetLab\"\n[[claim]]\nid = \"c\"\nsays = \"s\"\nmeasure = \"goodput(T)\"\n";
    let expectation = read(source);
    assert_eq!(expectation.title.as_deref(), Some("t"));
    let result = judge(&expectation, &[]);
    assert_eq!((result.verdict, result.note.as_deref()), (Verdict::NotRun, Some("needs PlanetLab")));
    assert_eq!(judge(&expectation, &seeds(&[5.0])).verdict, Verdict::NotRun);
}

const PLAN: &str = r#"
title = "t"
duration = "60 s"
cut = "10 s"
seeds = 2
[sweep]
n = [1, 2]
rival = [false, true]
[mode.quick]
sweep = { n = [1] }
[[link]]
between = ["S", "D"]
rate = "10 Mbit/s"
delay = "10 ms"
[[transfer]]
name = "T"
from = "S"
to = "D"
paths = ["direct"]
congestion = "background"
[[transfer]]
name = "rival"
when = "$rival"
from = "S"
to = "D"
paths = ["direct"]
congestion = "newreno"
"#;

#[test]
fn what_no_run_of_the_plan_can_answer_is_said_before_it_runs() {
    let plan =
        |mode| Plan::read("plan.toml", PLAN, mode, &Overrides::default()).expect("a plan").expect("a form");
    let (quick, all) = (plan(Mode::Quick), plan(Mode::All));
    let says = |more: &str, measure: &str| {
        let source =
            format!("[[claim]]\nid = \"c\"\nsays = \"s\"\nreport = true\n{more}\nmeasure = \"{measure}\"\n");
        let errors = read(&source).check(&[(Mode::Quick, &quick), (Mode::All, &all)]);
        let line = source.lines().count();
        assert!(errors.iter().all(|error| (error.line, error.column) == (line, 11)), "{errors:?}");
        errors.into_iter().map(|error| error.what).collect::<String>()
    };
    assert_eq!(says("each = [\"n\", \"rival\"]", "goodput(T)"), "");
    assert_eq!(says("", "goodput(T)[n=2, rival=true]"), "", "another mode runs it");
    assert_eq!(says("each = [\"n\"]", "goodput(rival)[rival=true] / goodput(T)[rival=false]"), "");
    assert_eq!(
        says("each = [\"n\"]", "path(T, direct)[rival=true] + queue(S, D)[rival=false]"),
        "",
        "for a run to say"
    );
    assert!(says("", "goodput(T)[n=3, rival=true]").contains("[n=3] was not run"));
    assert!(says("", "goodput(T)[n=1, rivl=true]").contains("no axis `rivl`: did you mean `rival`?"));
    assert!(says("each = [\"n\"]", "goodput(T)").contains("`rival` has several values"));
    assert!(says("each = [\"n\"]", "goodput(rival)[rival=false]").contains("no transfer `rival`"));
    assert!(says("each = [\"n\", \"rival\"]", "goodput(T, 50, 70)").contains("the run is from 0 to 60"));
    assert_eq!(says("each = [\"n\", \"rival\"]\nonly = { n = [2] }", "goodput(T)"), "");
    assert!(
        says("each = [\"n\", \"rival\"]\nonly = { n = [2, 3] }", "goodput(T)").contains("no mode runs [n=3]")
    );
    assert!(says("each = [\"m\"]", "goodput(T)").contains("no axis `m`"));
    let show = |measure: &str| {
        let source = format!("[[show]]\nname = \"x\"\nmeasure = \"{measure}\"\n");
        read(&source).check(&[(Mode::All, &all)]).len()
    };
    assert_eq!(show("goodput(rival)"), 0, "some variant has it");
    assert_eq!(show("goodput(rvial)"), 1);
}
