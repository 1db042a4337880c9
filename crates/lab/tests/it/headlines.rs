//! The page of the papers' headlines, and what a kept result must be.

use byway_lab::expect::{Expectation, Outcome};
use byway_lab::experiment::{HEADLINES_FILE, in_directory};
use byway_lab::headlines;
use byway_lab::plan::{Mode, Overrides, Plan};
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Every kept result, judged by its expectation.
fn kept() -> BTreeMap<String, Outcome> {
    let experiments = in_directory(&root().join("experiments")).expect("readable");
    let outcome = |experiment: byway_lab::experiment::Experiment| {
        let expectation = Expectation::read(&experiment.id, &experiment.expect).expect("an expectation");
        let outcome = Outcome::from_json(&experiment.result?).expect("a result");
        Some((experiment.id, expectation.recall(outcome)))
    };
    experiments.into_iter().filter_map(outcome).collect()
}

#[test]
fn every_headline_has_a_result_and_the_page_shows_it() {
    let text = fs::read_to_string(root().join("experiments").join(HEADLINES_FILE)).expect("readable");
    let headlines = headlines::read(&text).expect("headlines");
    let kept = kept();
    for headline in &headlines {
        let outcome = kept.get(&headline.experiment).unwrap_or_else(|| panic!("{}", headline.experiment));
        for id in &headline.claims {
            assert!(outcome.claims.iter().any(|claim| claim.id == *id), "{}: {id}", headline.experiment);
        }
    }
    let table = headlines::markdown(&headlines::results(&headlines, |id| kept.get(id)));
    let page = fs::read_to_string(root().join("docs/papers.md")).expect("readable");
    assert!(page.contains(&table), "docs/papers.md should have this table:\n{table}");
}

#[test]
fn seeds_of_a_kept_result_differ_or_the_plan_says_why() {
    for (id, outcome) in kept() {
        let file = root().join("experiments").join(&id).join("plan.toml");
        let source = fs::read_to_string(&file).expect("readable");
        let plan =
            Plan::read(&id, &source, Mode::All, &Overrides::default()).expect("valid").expect("a plan");
        let (agree, variants) = (outcome.agree, outcome.variants());
        assert!(2 * agree < variants.max(1) || plan.seeds_agree.is_some(), "{id}: {agree} of {variants}");
    }
}
