//! The experiments that are kept: what they claim can be read, and their plans can answer it.

use byway_lab::expect::Expectation;
use byway_lab::plan::{Mode, Overrides, Plan};
use std::fs;
use std::path::Path;

#[test]
fn every_claim_can_be_answered_by_its_plan() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../experiments");
    let mut wrong = Vec::new();
    for entry in fs::read_dir(folder).into_iter().flatten() {
        let path = entry.expect("an entry").path();
        let expect = path.join("expect.toml");
        let Ok(source) = fs::read_to_string(&expect) else { continue };
        let expectation = match Expectation::read(&expect.display().to_string(), &source) {
            Ok(expectation) => expectation,
            Err(error) => {
                wrong.push(error.to_string());
                continue;
            }
        };
        let file = path.join("plan.toml");
        let Ok(source) = fs::read_to_string(&file) else {
            if expectation.not_run.is_none() {
                wrong.push(format!("{}: neither a plan nor `not_run`", path.display()));
            }
            continue;
        };
        let mut plans = Vec::new();
        for mode in Mode::EVERY {
            match Plan::read(&file.display().to_string(), &source, mode, &Overrides::default()) {
                Ok(plan) => plans.extend(plan.map(|plan| (mode, plan))),
                Err(error) => wrong.push(error.to_string()),
            }
        }
        let plans: Vec<_> = plans.iter().map(|(mode, plan)| (*mode, plan)).collect();
        wrong.extend(expectation.check(&plans).iter().map(ToString::to_string));
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
