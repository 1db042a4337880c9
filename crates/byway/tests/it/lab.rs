//! The lab's verbs as a person meets them: plans that are shown, copied and run.

use crate::common::Place;
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
