//! Whether programs that show manual pages read those of byway without a warning.

use crate::common::Place;
use crate::common::machine::{missing, test, works};
use libtest_mimic::{Failed, Trial};
use std::fs;
use std::process::Command;

pub fn tests() -> Vec<Trial> {
    let man = missing(works("man --version"), "it needs man of the package man-db");
    let mandoc = missing(works("which mandoc"), "it needs mandoc");
    vec![
        test("manual::man_shows_every_page_without_warning", man, || read(&["man", "--warnings", "-l"])),
        test("manual::mandoc_finds_nothing_to_warn_of", mandoc, || read(&["mandoc", "-Tlint", "-Wwarning"])),
    ]
}

/// Each page, given to a program, which must find nothing to say on standard error, or be silent if
/// it only checks.
fn read(program: &[&str]) -> Result<(), Failed> {
    let place = Place::new();
    place.run("here", &["man", "--out", "man1"]).succeeded();
    let mut count = 0;
    for page in fs::read_dir(place.path("man1"))?.map(|entry| entry.unwrap().path()) {
        let mut command = Command::new(program[0]);
        command.args(&program[1..]).arg(&page).env("MANPAGER", "cat").env("LC_ALL", "C.UTF-8");
        let output = command.output()?;
        let shown = String::from_utf8_lossy(&output.stdout);
        let warned = String::from_utf8_lossy(&output.stderr);
        let warned = if program[0] == "mandoc" { format!("{shown}{warned}") } else { warned.into_owned() };
        assert!(output.status.success() && warned.is_empty(), "{}: {warned}", page.display());
        count += 1;
    }
    assert!(count > 30, "{count} pages only");
    Ok(())
}
