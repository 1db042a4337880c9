//! Rows of a sweep: what a run leaves, and what is made of many.

use byway_lab::expect::Expectation;
use byway_lab::measure::{Measure, Records, SharedTexts};
use byway_lab::plan::{Mode, Overrides, Plan};
use byway_lab::runner;
use byway_lab::sweep::{Collection, Row, RowConflict, SweepIdentity};
use core::sync::atomic::AtomicBool;
use proptest::prelude::*;

const PLAN: &str = r#"
title = "Two laws"
duration = "2 s"
seeds = 3
[[link]]
between = ["a", "b"]
rate = "5 Mbit/s"
delay = "5 ms"
jitter = "1 ms"
[[transfer]]
name = "bulk"
from = "a"
to = "b"
congestion = "$law"
[[requests]]
name = "web"
client = "b"
server = "a"
count = 5
every = "200 ms"
size = "5 KB"
[sweep]
law = ["cubic", "newreno"]
"#;
const EXPECT: &str = r#"
[[claim]]
id = "rate"
says = "as fast"
measure = "goodput(bulk)[law=cubic] / goodput(bulk)[law=newreno]"
at_least = 0.5
[[claim]]
id = "stretch"
says = "as short"
measure = "stretch(web, 50, [law=newreno])[law=cubic]"
at_most = 3
[[show]]
name = "done"
measure = "completion(bulk)"
"#;

fn identity() -> SweepIdentity {
    SweepIdentity { plan: "ab".into(), program: "cd".into() }
}

fn plan() -> Plan {
    Plan::read("p", PLAN, Mode::All, &Overrides::default()).expect("a plan").expect("a form")
}

fn measures(expectation: &Expectation) -> Vec<Measure> {
    let claims = expectation.claims.iter().map(|claim| claim.measure.clone());
    claims.chain(expectation.shows.iter().map(|show| show.measure.clone())).collect()
}

/// The rows of all runs of the plan.
fn lines() -> Vec<String> {
    let expectation = Expectation::read("e", EXPECT).expect("an expectation");
    let outcome = runner::run(&plan(), &AtomicBool::new(false), &|_, _| {});
    let measures = measures(&expectation);
    let line = |record| Row::line(&identity(), record, &measures).expect("a row");
    outcome.records.iter().map(line).collect()
}

#[test]
fn rows_in_any_order_make_the_verdicts_of_the_records() {
    let expectation = Expectation::read("e", EXPECT).expect("an expectation");
    let plan = plan();
    let records = runner::run(&plan, &AtomicBool::new(false), &|_, _| {}).records;
    let (mut collection, mut texts) = (Collection::new(&plan), SharedTexts::default());
    for line in lines().iter().rev().chain(&lines()) {
        collection.add(Row::read(line, &mut texts).expect("a row").answers).expect("one sweep");
    }
    assert_eq!(collection.missing(&identity(), Mode::All, &(1..=3)), []);
    let runs = collection.into_runs(&(1..=3));
    let judge = |records: &Records<'_>| expectation.judge(records, Mode::All);
    assert_eq!(
        judge(&Records::of_answers(&runs).expect("one sweep")),
        judge(&Records::new(&records).expect("one experiment"))
    );
    let asked_else = Measure::parse("goodput(bulk, 1)").expect("a measure");
    let value = asked_else.evaluate(&Records::of_answers(&runs[..1]).expect("one"), &Default::default());
    let why = value[&1].clone().expect_err("not asked").what;
    assert!(why.contains("the run was not asked for `goodput(bulk, 1)`"), "{why}");
}

#[test]
fn what_is_missing_is_told_as_tasks() {
    let (mut collection, mut texts) = (Collection::new(&plan()), SharedTexts::default());
    let lines = lines();
    collection.add(Row::read(&lines[1], &mut texts).expect("a row").answers).expect("one sweep");
    let missing = collection.missing(&identity(), Mode::All, &(1..=4));
    let missing: Vec<String> = missing.iter().map(ToString::to_string).collect();
    assert_eq!(missing, ["ab cd all 1 1..1", "ab cd all 1 3..4", "ab cd all 2 1..4"]);
}

#[test]
fn a_run_with_two_results_is_a_fault() {
    let (mut collection, mut texts) = (Collection::new(&plan()), SharedTexts::default());
    let lines = lines();
    let other = lines[0].replace("\"packets\":", "\"packets\":1");
    collection.add(Row::read(&lines[0], &mut texts).expect("a row").answers).expect("one sweep");
    let conflict = collection.add(Row::read(&other, &mut texts).expect("a row").answers);
    assert_eq!(conflict, Err(RowConflict::Differs { variant: 1, seed: 1 }));
    let strange = lines[0].replace("cubic", "bbr");
    let conflict = collection.add(Row::read(&strange, &mut texts).expect("a row").answers);
    assert_eq!(conflict, Err(RowConflict::Variant("[law=bbr]".into())));
}

proptest! {
    /// A row that was cut off or damaged is refused, or is a row; nothing panics.
    #[test]
    fn damaged_rows_are_read_without_harm(cut in 0_usize..600, place in 0_usize..600, byte in any::<char>()) {
        let line = line();
        let mut texts = SharedTexts::default();
        let short: String = line.chars().take(cut).collect();
        prop_assert!(short.len() == line.len() || Row::read(&short, &mut texts).is_err());
        let damaged: String = line.chars().enumerate().map(|(at, old)| if at == place { byte } else { old }).collect();
        if let Ok(row) = Row::read(&damaged, &mut texts) {
            let _ = Collection::new(&plan()).add(row.answers);
        }
    }
}

/// One row, which is made once.
fn line() -> &'static str {
    static LINE: std::sync::OnceLock<String> = std::sync::OnceLock::new();
    LINE.get_or_init(|| lines().swap_remove(0))
}
