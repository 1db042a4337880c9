//! Every function, with numbers worked out by hand.

use super::builder::{bytes, constant, link, path, record, requests, transfer, values};
use byway_lab::Record;
use byway_lab::measure::{Measure, Records, RunAnswers, Selection, SharedTexts, Why, WrittenAnswers};

/// The value of `measure` for the only seed of `records`. What the runs answered gives the same.
fn value(measure: &str, records: &[Record]) -> Result<f64, (Why, String)> {
    let measure = Measure::parse(measure).expect("a measure");
    let answers = answered(&measure, records);
    let records = Records::new(records).expect("one experiment");
    if measure.asks_single_runs() {
        let answers = Records::of_answers(&answers).expect("one experiment");
        let none = Selection::new();
        assert_eq!(
            measure.evaluate(&answers, &none),
            measure.evaluate(&records, &none),
            "{}",
            measure.text()
        );
    }
    let mut values = measure.evaluate(&records, &Selection::new()).into_values();
    let value = values.next().expect("a seed").map_err(|undefined| (undefined.why, undefined.what));
    assert!(values.next().is_none(), "one seed");
    value
}

/// What `records` answer to `measure`, as it is read from its written form.
fn answered(measure: &Measure, records: &[Record]) -> Vec<RunAnswers> {
    let mut texts = SharedTexts::default();
    let answers = records.iter().map(|record| {
        let written = WrittenAnswers::of(record, [measure]).expect("times");
        let text = serde_json::to_string(&written).expect("JSON");
        let read: WrittenAnswers = serde_json::from_str(&text).expect("the same");
        read.shared(&mut texts).expect("a trace")
    });
    answers.collect()
}

#[track_caller]
fn is(measure: &str, records: &[Record], expected: f64) {
    let value = value(measure, records).expect("a value");
    assert!(
        (value - expected).abs() <= 1e-6 * expected.abs().max(1e-3),
        "{measure} is {value}, not {expected}"
    );
}

#[track_caller]
fn is_not(measure: &str, records: &[Record], why: Why, says: &str) {
    let (found, what) = value(measure, records).expect_err("no value");
    assert_eq!(found, why, "{measure}: {what}");
    assert!(what.contains(says), "{measure}: {what}");
}

/// 8 Mbit/s to second 20, 4 from then on, over two paths; the one through R ends at second 30.
fn run() -> Record {
    let mut backup = transfer("backup", "backup", &[(20.0, 8.0), (60.0, 4.0)]);
    backup.paths = vec![
        path("direct", &[(20.0, 6.0), (30.0, 3.0), (60.0, 4.0)]),
        path("R", &[(20.0, 2.0), (30.0, 1.0), (60.0, 0.0)]),
    ];
    backup.paths[0].window = values(&[(30.0, 10.0), (60.0, 20.0)]);
    backup.paths[1].window = values(&[(30.0, 4.0), (60.0, 0.0)]);
    backup.paths[0].rtt = values(&[(15.0, 0.0), (35.0, 50.0), (60.0, 100.0)]);
    backup.paths[1].rtt = values(&[(60.0, 0.0)]);
    (backup.lost, backup.reorder, backup.opened) = (Some(17), 64_500, 2);
    (backup.found, backup.abroad) = (vec![0, 1, 2], Some(true));
    backup.available = vec![0, 3, 5];
    (backup.started, backup.finished) = (1.5, Some(58.0));
    Record {
        transfers: vec![
            backup,
            transfer("peer.1", "peer", &[(60.0, 1.0)]),
            transfer("peer.2", "peer", &[(30.0, 3.0), (60.0, 1.0)]),
        ],
        links: vec![link("S", "R", &[(60.0, 5.0)])],
        optimum: Some(17_500_000.0),
        ..record(&[], 7)
    }
}

#[test]
fn goodput_counts_from_the_cut_or_between_seconds() {
    let run = [run()];
    // (10 s x 8 + 40 s x 4) / 50 s.
    is("goodput(backup)", &run, 4.8);
    is("goodput(backup, 0)", &run, 32.0 / 6.0);
    is("goodput(backup, 10, 20)", &run, 8.0);
    is("goodput(backup, end() - 10, end())", &run, 4.0);
    // Between two samples in proportion.
    is("goodput(backup, 19.75, 20.25)", &run, 6.0);
    // 1 and (20 x 3 + 30 x 1) / 50.
    is("goodput(peer)", &run, 2.8);
    is("goodput(peer.2)", &run, 1.8);
    is("goodput(backup|peer.1)", &run, 5.8);
    is("end() - cut()", &run, 50.0);
}

#[test]
fn a_window_outside_of_the_run_has_no_value() {
    let run = [run()];
    is_not(
        "goodput(backup, 50, 61)",
        &run,
        Why::Wrong,
        "`goodput(backup, 50, 61)`: seconds 50 to 61: the run is from 0 to 60",
    );
    is_not("goodput(backup, -1, 5)", &run, Why::Wrong, "seconds -1 to 5");
    is_not("goodput(backup, 20, 20)", &run, Why::Wrong, "nothing lies between");
    is_not("goodput(backup, 60)", &run, Why::Wrong, "nothing lies between");
}

#[test]
fn names_that_are_not_there_are_said() {
    let run = [run()];
    is_not("goodput(bakup)", &run, Why::Wrong, "no transfer `bakup`: did you mean `backup`?");
    is_not(
        "goodput(something)",
        &run,
        Why::Wrong,
        "no transfer `something`: there are backup, peer, peer.1, peer.2",
    );
    is_not("path(backup, Q)", &run, Why::Wrong, "no path `Q`");
    is_not("queue(R, S)", &run, Why::Wrong, "no link `R, S`");
    is_not("requests(web, 50)", &run, Why::Wrong, "no list of requests `web`: there is none");
}

#[test]
fn paths_by_hand() {
    let run = [run()];
    is("path(backup, direct)", &run, (10.0 * 6.0 + 10.0 * 3.0 + 30.0 * 4.0) / 50.0);
    is("path(backup, R, 20, 40)", &run, 0.5);
    is("share(backup, R, 0, 20)", &run, 0.25);
    is("share(backup, R, 40, 60)", &run, 0.0);
    // 40 samples of 10 packets, 61 of 20, ends included.
    is("window(backup, direct)", &run, (40.0 * 10.0 + 61.0 * 20.0) / 101.0);
    is("window(backup, R, 30, 60)", &run, 0.0);
    // From 15 to 34.5 it was 50, and before that nothing was known.
    is("rtt(backup, direct, 10, 34.5)", &run, 50.0);
    is("rtt(backup, direct, 34.5, 35)", &run, 75.0);
    is_not("rtt(backup, R)", &run, Why::NoData, "path `R` knew no RTT from second 10 to 60");
    // R counts as dropped once it carried less than 1 % of the last ten seconds' bytes. R carries
    // 25 % until second 30, then nothing. At 39.5 s, the ten seconds include 0.5 s of R's traffic:
    // 1.25 %. At 40 s: 0.
    is("dropped_at(backup, R)", &run, 40.0);
    is("dropped_at(backup, direct)", &run, 60.0);
    // Only direct carried in the last 20 s.
    is("usable(backup)", &run, 1.0);
    is("opened(backup)", &run, 2.0);
    is("opened(backup, 0.5)", &run, 1.0);
    is_not("opened(backup, 30)", &run, Why::NoData, "nothing was noted of the paths found by second 30");
    is("available(backup)", &run, 5.0);
    is("available(backup, 0.5)", &run, 3.0);
    is_not("available(backup, 30)", &run, Why::NoData, "nothing was noted of the paths found by second 30");
    is_not("available(peer.1)", &run, Why::NoData, "`peer.1` did not tell which relays answer");
    is("abroad(backup)", &run, 1.0);
    is_not("abroad(peer)", &run, Why::NoData, "this network knows of no continents");
    is("losses(backup)", &run, 17.0);
    is("reorder(backup)", &run, 64.5);
}

#[test]
fn what_was_not_told_is_not_zero() {
    let mut run = run();
    run.transfers[0].lost = None;
    is_not("losses(backup)", &[run], Why::NoData, "transfer `backup` did not tell what it lost");
}

#[test]
fn a_path_that_comes_back_was_not_dropped() {
    let mut back = run();
    back.transfers[0].paths[1].acked = bytes(&[(20.0, 2.0), (40.0, 0.0), (45.0, 1.0), (60.0, 0.0)]);
    is("dropped_at(backup, R)", &[back.clone()], 55.0);
    back.transfers[0].paths[1].acked = bytes(&[(60.0, 0.0)]);
    is("dropped_at(backup, R)", &[back.clone()], 0.5);
    back.transfers[0].paths[0].acked = bytes(&[(60.0, 0.0)]);
    is_not(
        "dropped_at(backup, R)",
        &[back.clone()],
        Why::NoData,
        "no path carried anything in the whole run",
    );
    is_not("share(backup, R)", &[back.clone()], Why::NoData, "no path carried anything from second 10 to 60");
    is_not("usable(backup)", &[back], Why::NoData, "transfer `backup` carried nothing from second 40 to 60");
}

#[test]
fn completion_is_from_the_start_and_the_mean_of_a_group() {
    let mut run = run();
    is("completion(backup)", &[run.clone()], 56.5);
    (run.transfers[1].started, run.transfers[1].finished) = (1.0, Some(11.0));
    is_not("completion(peer)", &[run.clone()], Why::NoData, "transfer `peer.2` did not finish within 60 s");
    is("otherwise(completion(peer), 60)", &[run.clone()], 60.0);
    is_not("otherwise(completion(pear), 60)", &[run.clone()], Why::Wrong, "did you mean `peer`?");
    (run.transfers[2].started, run.transfers[2].finished) = (2.0, Some(32.0));
    is("completion(peer)", &[run.clone()], 20.0);
    (run.transfers[2].finished, run.transfers[2].failed) = (None, Some("no relay answered".into()));
    is_not("completion(peer)", &[run], Why::NoData, "transfer `peer.2` failed: no relay answered");
}

#[test]
fn rates_over_time_by_hand() {
    let run = [run()];
    // Ten bins of 8 and ten of 4: 2 x sqrt(20 / 19).
    is("deviation(backup, 10, 30)", &run, 2.0 * libm::sqrt(20.0 / 19.0));
    is("deviation(backup, 30, 60)", &run, 0.0);
    is_not("deviation(backup, 10, 11.5)", &run, Why::Wrong, "two seconds or more");
    // At first 8, then ever nearer to 4 but never below.
    is("settles(backup, 0.95)", &run, 0.5);
    let slow =
        [Record { transfers: vec![transfer("T", "T", &[(20.0, 1.0), (60.0, 9.0)])], ..record(&[], 1) }];
    // The mean of ten seconds is 1 + 0.8 per second: 8.55 after 9.4375, and the next sample is at
    // 29.5.
    is("settles(T, 0.95)", &slow, 29.5);
    // The mean of the last 50 s is 7.4; 0.95 of it is 7.03, after 7.5375 s.
    is("settles(T, 0.95, 50)", &slow, 28.0);
    let falls =
        [Record { transfers: vec![transfer("T", "T", &[(59.0, 9.0), (60.0, 0.0)])], ..record(&[], 1) }];
    // The last 15 s have a mean of 8.4, the last ten of 8.1.
    is_not(
        "settles(T, 1.0, 15)",
        &falls,
        Why::NoData,
        "does not stay at 1 times its mean over the last 15 s",
    );
    // One second, all of it at 9, ends at 21; half of it at 20.5 is 5.
    is("reaches(T, 9, 15)", &slow, 6.0);
    is("reaches(T, 5, 15)", &slow, 5.5);
    is("reaches(T, 1, 15)", &slow, 1.0);
    is_not("reaches(T, 10, 15)", &slow, Why::NoData, "reaches no 10 Mbit/s after second 15");
    is_not("reaches(T, 1, 61)", &slow, Why::Wrong, "seconds 61 to 60");
}

#[test]
fn members_of_a_group_by_hand() {
    let run = [run()];
    // 1 and 3: 16 / 20. From 30 on both have 1.
    is("fairness(peer, 0, 30)", &run, 0.8);
    is("fairness(peer, 30, 60)", &run, 1.0);
    is("fairness_worst(peer, 10, 0, 60)", &run, 0.8);
    // 25 to 35: 1 and 2: 9 / 10; a part at the end that is no whole window is not looked at.
    is("fairness_worst(peer, 10, 25, 44)", &run, 0.9);
    is_not("fairness_worst(peer, 40, 0, 30)", &run, Why::Wrong, "no 40 s fit");
    is_not("fairness_worst(peer, 0, 0, 30)", &run, Why::Wrong, "expected at least 0.5 s");
    is("least(peer)", &run, 1.0);
    is("most(peer)", &run, 1.8);
    is("below(peer, 1.5)", &run, 0.5);
    is("below(peer, 1.0)", &run, 0.0);
    is("max_over(members(peer), goodput(it) - 1)", &run, 0.8);
    is("mean_over(members(peer), at_least(goodput(it), 1.5))", &run, 0.5);
    is("percentile_over(members(peer), 25, goodput(it))", &run, 1.2);
    is("spearman(members(peer), goodput(it), -goodput(it))", &run, -1.0);
    is_not("goodput(it)", &run, Why::Wrong, "no transfer `it`");
}

#[test]
fn links_by_hand() {
    let run = [run()];
    is("utilisation(S, R)", &run, 0.5);
    // 0 1 2 3 4 0 …: samples 20 to 119 are whole rounds, and the last has 0.
    is("queue(S, R)", &run, 200.0 / 101.0);
    // Two per sample.
    is("drops(S, R)", &run, 200.0);
    is("drops(S, R, 0, 1)", &run, 4.0);
    is("optimum()", &run, 17.5);
    is_not("optimum()", &[record(&[], 1)], Why::NoData, "no optimum");
}

#[test]
fn a_request_that_does_not_finish_is_infinite() {
    let list = [
        (Some(5.0), Some(9.0)),
        (Some(10.0), Some(1.0)),
        (Some(20.0), Some(2.0)),
        (Some(30.0), Some(3.0)),
        (Some(58.0), None),
        (None, None),
    ];
    let run = |list: &[_]| [Record { requests: vec![requests("web", list)], ..record(&[], 1) }];
    // 1 2 3 and one without end; what began before the cut does not count.
    is("requests(web, 50)", &run(&list), 2.0);
    is("requests(web, 75)", &run(&list), 3.0);
    is_not("requests(web, 76)", &run(&list), Why::NoData, "percentile 76 falls on a request that did not");
    is("requests(web, 80, 0, 60)", &run(&list), 9.0);
    is("finished(web)", &run(&list), 0.75);
    is("finished(web, 10, 50)", &run(&list), 1.0);
    is_not("requests(web, 101)", &run(&list), Why::Wrong, "percentile 101: expected 0 to 100");
    is_not(
        "requests(web, 50, 31, 40)",
        &run(&list),
        Why::NoData,
        "no request began between the seconds 31 and 40",
    );
    is_not("requests(web, 50, 50)", &run(&list), Why::NoData, "falls on a request that did not finish");
}

#[test]
fn stretch_pairs_each_request_with_itself_in_the_other_variant() {
    let run = |background: &str, list: &[_]| Record {
        requests: vec![requests("web", list)],
        ..record(&[("background", background)], 1)
    };
    let alone =
        [(Some(11.0), Some(1.0)), (Some(12.0), Some(4.0)), (Some(13.0), Some(2.0)), (Some(14.0), None)];
    let beside =
        [(Some(11.0), Some(2.0)), (Some(15.0), Some(4.0)), (Some(19.0), Some(3.0)), (Some(25.0), Some(9.0))];
    let pair = [run("none", &alone), run("harp", &beside)];
    // 2, 1 and 1.5; the fourth has nothing to be compared with.
    is("stretch(web, 50, [background=none])[background=harp]", &pair, 1.5);
    is("stretch(web, 100, [background=none])[background=harp]", &pair, 2.0);
    is("stretch(web, 50, [background=none])[background=none]", &pair, 1.0);
    is("stretch(web, 50, [background=none], 12, 20)[background=harp]", &pair, 1.0);
    let mut hung = beside;
    hung[1].1 = None;
    // 2, 1.5, and one without end.
    let hung = [pair[0].clone(), run("harp", &hung)];
    is("stretch(web, 50, [background=none])[background=harp]", &hung, 2.0);
    is_not("stretch(web, 90, [background=none])[background=harp]", &hung, Why::NoData, "did not finish");
    let mut other = pair.clone();
    other[1].requests[0].list[0].size += 1;
    is_not("stretch(web, 50, [background=none])[background=harp]", &other, Why::Wrong, "different lists");
    is_not(
        "stretch(web, 50, [background=lia])[background=harp]",
        &pair,
        Why::NotRun,
        "[background=lia] was not run",
    );
}

/// One variant per n and c with a rate of its own.
fn sweep() -> Vec<Record> {
    let mut runs = Vec::new();
    for (n, joint, independent) in [("1", 4.0, 4.0), ("2", 3.0, 6.0), ("10", 2.0, 5.0)] {
        runs.push(constant(&[("n", n), ("c", "joint")], 1, joint));
        runs.push(constant(&[("n", n), ("c", "independent")], 1, independent));
    }
    runs
}

#[test]
fn variants_are_named_or_run_over() {
    let runs = sweep();
    is("goodput(T)[n=2, c=independent] / goodput(T)[n=2, c=joint]", &runs, 2.0);
    is("(goodput(T)[c=independent] / goodput(T)[c=joint])[n=2]", &runs, 2.0);
    is("goodput(T)[n=2][c=joint]", &runs, 3.0);
    is("mean_over(n, goodput(T))[c=joint]", &runs, 3.0);
    is("mean_over(n, goodput(T)[c=independent] / goodput(T)[c=joint])", &runs, (1.0 + 2.0 + 2.5) / 3.0);
    is("max_over(n, min_over(c, goodput(T)))", &runs, 4.0);
    is("min_over(n, max_over(c, goodput(T)))", &runs, 4.0);
    is("percentile_over(n, 50, goodput(T))[c=independent]", &runs, 5.0);
    // As numbers 10 comes last: falls all the way.
    is("spearman(n, goodput(T))[c=joint]", &runs, -1.0);
    // 4 6 5: ranks 1 3 2 against 1 2 3.
    is("spearman(n, goodput(T))[c=independent]", &runs, 0.5);
    is("spearman(n, goodput(T)[c=joint], -axis(n))[c=independent]", &runs, 1.0);
    is("mean_over(n, axis(n))", &runs, 13.0 / 3.0);
    is("axis(n)[n=10]", &runs, 10.0);
    is_not("axis(c)[c=joint]", &runs, Why::Wrong, "`joint`, a value of the axis `c`, is no number");
    is_not("axis(n)", &runs, Why::Wrong, "which value?");
    is_not(
        "goodput(T)[c=joint]",
        &runs,
        Why::Wrong,
        "`n` has several values here (1, 2, 10): say which as [n=…]",
    );
    is_not("goodput(T)[n=3, c=joint]", &runs, Why::NotRun, "[n=3] was not run: `n` has the values 1, 2, 10");
    is_not("goodput(T)[m=3]", &runs, Why::Wrong, "no axis `m`");
}

#[test]
fn an_axis_with_units_is_in_base_units() {
    let runs = [constant(&[("delay", "5 ms")], 1, 1.0), constant(&[("delay", "1 s")], 1, 2.0)];
    is("max_over(delay, axis(delay))", &runs, 1.0);
    is("axis(delay)[delay='5 ms']", &runs, 0.005);
    is("spearman(delay, goodput(T))", &runs, 1.0);
}

#[test]
fn combinations_that_a_plan_skips_are_skipped() {
    let mut runs = sweep();
    runs.retain(|run| run.axes != [("n".into(), "2".into()), ("c".into(), "joint".into())]);
    is("mean_over(n, goodput(T))[c=joint]", &runs, 3.0);
    is("goodput(T)[n=2]", &runs, 6.0);
    is_not("goodput(T)[n=2, c=joint]", &runs, Why::NotRun, "[n=2, c=joint] was not run");
}

#[test]
fn arithmetic_by_hand() {
    let run = [run()];
    for (measure, expected) in [
        ("1 + 2 * 3", 7.0),
        ("(1 + 2) * 3", 9.0),
        ("10 - 4 - 3", 3.0),
        ("24 / 4 / 2", 3.0),
        ("2 * -3 + -(-1)", -5.0),
        ("-2 * -2", 4.0),
        ("1.5e2 - .5", 149.5),
        ("min(3, 1, 2) + max(3, 1, 2) * 10", 31.0),
        ("abs(2 - 5)", 3.0),
        ("at_least(2, 2) + at_most(2, 1) * 10", 1.0),
        ("otherwise(1 / 0, 5)", 5.0),
    ] {
        is(measure, &run, expected);
    }
    is_not("1 / (2 - 2)", &run, Why::NoData, "`(2 - 2)` is 0");
    is_not("1e300 * 1e300", &run, Why::Wrong, "beyond all numbers");
    is_not("completion(peer) + goodput(nobody, 0)", &run, Why::Wrong, "no transfer `nobody`");
}

#[test]
fn each_seed_has_its_value_or_its_reason() {
    let mut runs: Vec<_> = (1..=3).map(|seed| constant(&[("c", "a")], seed, seed as f64)).collect();
    runs.extend((1..=2).map(|seed| constant(&[("c", "b")], seed, 2.0)));
    let records = Records::new(&runs).expect("one experiment");
    let ratio = Measure::parse("goodput(T)[c=a] / goodput(T)[c=b]").expect("a measure");
    let values = ratio.evaluate(&records, &Selection::new());
    assert_eq!(values[&1].as_ref().ok(), Some(&0.5));
    assert_eq!(values[&2].as_ref().ok(), Some(&1.0));
    let missing = values[&3].as_ref().expect_err("not run");
    assert_eq!(missing.why, Why::NotRun);
    assert!(missing.what.contains("seed 3 of [c=b] was not run"), "{}", missing.what);
    let at = Selection::from([("c".into(), "a".into())]);
    let values = Measure::parse("goodput(T)").expect("a measure").evaluate(&records, &at);
    assert_eq!(values[&3].as_ref().ok(), Some(&3.0));
}

#[test]
fn records_of_different_experiments_are_refused() {
    let one = constant(&[("c", "a")], 1, 1.0);
    let error = |records: &[Record]| Records::new(records).expect_err("refused").to_string();
    assert!(error(&[one.clone(), constant(&[], 1, 1.0)]).contains("[c], another []"));
    assert!(error(&[one.clone(), one.clone()]).contains("two records of seed 1 of [c=a]"));
    assert!(error(&[Record { sample: 0.0, ..one.clone() }]).contains("sample above 0"));
    assert!(error(&[Record { duration: f64::NAN, ..one }]).contains("must be finite"));
    assert!(Records::new(&[]).is_ok());
}

#[test]
fn a_run_of_odd_length_ends_at_its_last_sample() {
    let mut run = constant(&[], 1, 8.0);
    // Half a sample after the last one, and nothing is known of that time.
    run.duration = 60.25;
    is("goodput(T)", &[run.clone()], 8.0);
    is("goodput(T, 10, 60.25)", &[run.clone()], 8.0 * 50.0 / 50.25);
    is("end()", &[run.clone()], 60.0);
    run.transfers[0].received.clear();
    is_not("goodput(T)", &[run], Why::NoData, "nothing was noted");
}
