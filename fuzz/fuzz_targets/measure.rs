//! Measures of the lab: whatever is read is evaluated over a few runs. A text is a measure; an
//! expectation around it is read as well, so that places in several lines are looked for too.
#![no_main]

use byway_lab::Record;
use byway_lab::expect::Expectation;
use byway_lab::measure::{
    Measure, PerSeed, Records, RunAnswers, Selection, SharedTexts, Undefined, WrittenAnswers,
};
use byway_lab::plan::Mode;
use byway_lab::record::{LinkRecord, PathRecord, RequestRecord, RequestsRecord, TransferRecord};
use libfuzzer_sys::fuzz_target;

fn runs() -> Vec<Record> {
    let series = || (0..=20u64).map(|at| at * at * 1000).collect::<Vec<_>>();
    let path = |name: &str| PathRecord {
        name: name.into(),
        acked: series(),
        window: (0..=20u8).map(f32::from).collect(),
        rtt: (0..=20u8).map(f32::from).collect(),
        ..PathRecord::default()
    };
    let transfer = |name: &str, group: &str| TransferRecord {
        name: name.into(),
        group: group.into(),
        finished: (name != "G.2").then_some(9.0),
        received: series(),
        paths: vec![path("direct"), path("R")],
        ..TransferRecord::default()
    };
    let run = |n: &str, c: &str, seed| Record {
        axes: vec![("n".into(), n.into()), ("c".into(), c.into())],
        seed,
        sample: 0.5,
        duration: 10.0,
        cut: 1.0,
        transfers: vec![transfer("T", "T"), transfer("G.1", "G"), transfer("G.2", "G")],
        requests: vec![RequestsRecord {
            name: "W".into(),
            list: vec![RequestRecord { size: 1, began: Some(2.0), took: Some(1.0), given_up: false }; 3],
        }],
        links: vec![LinkRecord {
            from: "A".into(),
            to: "B".into(),
            rate: 1_000_000,
            sent: series(),
            queue: vec![1; 21],
            dropped: vec![2; 21],
        }],
        ..Record::default()
    };
    vec![run("1", "a", 1), run("1", "b", 1), run("2", "a", 1), run("2", "b", 2)]
}

/// What the runs answer to a measure, as a row of a sweep has it.
fn answered(measure: &Measure, runs: &[Record]) -> Vec<RunAnswers> {
    let mut texts = SharedTexts::default();
    let answers = runs.iter().filter_map(|run| {
        let text = serde_json::to_string(&WrittenAnswers::of(run, [measure]).ok()?).ok()?;
        serde_json::from_str::<WrittenAnswers>(&text).ok()?.shared(&mut texts)
    });
    answers.collect()
}

/// Whether values are the same, and reasons differ in their sentences alone.
fn differ_in_words_alone(one: &PerSeed, other: &PerSeed) -> bool {
    let kinds = |values: &PerSeed| {
        let kind = |value: &Result<f64, Undefined>| {
            value.as_ref().map(|value| value.to_bits()).map_err(|why| why.why)
        };
        values.values().map(kind).collect::<Vec<_>>()
    };
    kinds(one) == kinds(other)
}

fuzz_target!(|bytes: &[u8]| {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    let runs = runs();
    let Ok(records) = Records::new(&runs) else { unreachable!("one experiment") };
    match Measure::parse(text) {
        Ok(measure) => {
            assert_eq!(measure.text(), text);
            let answers = answered(&measure, &runs);
            let Ok(answered) = Records::of_answers(&answers) else { unreachable!("one experiment") };
            let at = Selection::from([("n".to_owned(), "1".to_owned())]);
            for selection in [Selection::new(), at] {
                let values = measure.evaluate(&records, &selection);
                // What runs answered gives the values of their records, without a bit's difference.
                if measure.asks_single_runs() {
                    let again = measure.evaluate(&answered, &selection);
                    assert!(values.iter().eq(again.iter()) || differ_in_words_alone(&values, &again));
                }
                for value in values.into_values() {
                    match value {
                        Ok(value) => assert!(value.is_finite()),
                        Err(undefined) => assert!(!undefined.what.is_empty()),
                    }
                }
            }
        }
        Err(error) => assert!(text.is_char_boundary(error.at)),
    }
    let claim = format!("[[claim]]\nid = \"c\"\nsays = \"s\"\nat_least = 1\nmeasure = '''\n{text}'''\n");
    for source in [text, &claim] {
        match Expectation::read("expect.toml", source) {
            Ok(expectation) => {
                let judged = expectation.judge(&records, Mode::All);
                let _ = byway_lab::expect::table::claims(&judged.claims);
                let _ = byway_lab::expect::table::variants(&judged.shows);
            }
            Err(error) => assert!(error.line <= 1 + source.lines().count() && error.column > 0),
        }
    }
});
