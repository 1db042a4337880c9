//! The units for systemd, as far as they can be judged where none runs. `.ci/nightly` starts them.
//!
//! Needs `systemd-analyze`.

use crate::common::Place;
use crate::common::bench::BYWAY;
use crate::common::machine::{missing, must, test, works};
use crate::common::pages;
use libtest_mimic::{Failed, Trial};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The most that `systemd-analyze security` may find, of 100: 0 is a service that can do nothing,
/// and above 70 it calls one exposed.
const MAX_EXPOSURE: &str = "25";

pub fn tests() -> Vec<Trial> {
    let systemd = missing(works("systemd-analyze --version"), "it needs systemd-analyze");
    let tools = systemd.or_else(|| {
        missing(works("restic version") && works("rsync --version"), "it needs restic and rsync")
    });
    vec![
        test("units::systemd_understands_those_of_the_page_of_backups", tools, nightly),
        test("units::systemd_understands_each_line", systemd, sound),
        test("units::those_of_the_host_can_do_little", systemd, confined),
    ]
}

/// Copies the units of the host (`system`) or of a person (`user`). The copies name the path of the
/// program under test, since none is installed here.
fn units(kind: &str, place: &Place) -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../contrib/systemd").join(kind);
    let copies = fs::read_dir(folder).unwrap().map(|file| {
        let file = file.unwrap().path();
        let text = fs::read_to_string(&file).unwrap();
        let there = text.replace("ExecStart=byway ", &format!("ExecStart={BYWAY} "));
        assert_ne!(text, there, "{}", file.display());
        let name = file.file_name().unwrap().to_str().unwrap().replace('@', "@nas");
        let copy = place.path(&name);
        fs::write(&copy, there).unwrap();
        copy
    });
    copies.collect()
}

fn sound() -> Result<(), Failed> {
    for (kind, count) in [("system", 6), ("user", 6)] {
        let place = Place::new();
        let units = units(kind, &place);
        assert_eq!(units.len(), count, "{units:?}");
        verify(kind, &place, &units);
    }
    Ok(())
}

/// systemd has nothing to say against these units of the host (`system`) or of a person (`user`).
fn verify(kind: &str, place: &Place, units: &[PathBuf]) {
    let mut verify = Command::new("systemd-analyze");
    if kind == "user" {
        verify.arg("--user").env("XDG_RUNTIME_DIR", place.path(""));
    }
    let told = verify.args(["verify", "--man=no"]).args(units).output().unwrap();
    assert!(told.status.success() && told.stderr.is_empty(), "{}", String::from_utf8_lossy(&told.stderr));
}

/// The unit and the timer of each night. One of them needs a unit of byway's.
fn nightly() -> Result<(), Failed> {
    let place = Place::new();
    let mut units = units("user", &place);
    units.retain(|unit| unit.ends_with("byway-forward@nas.service"));
    let page = pages::all().into_iter().find(|page| page.name == pages::BACKUP).expect("the page");
    for (name, block) in page.files().filter(|(name, _)| name.starts_with("backup")) {
        let unit = place.path(name);
        fs::write(&unit, &block.text)?;
        units.push(unit);
    }
    assert_eq!(units.len(), 4, "{units:?}");
    verify("user", &place, &units);
    Ok(())
}

fn confined() -> Result<(), Failed> {
    let place = Place::new();
    for unit in units("system", &place) {
        let threshold = format!("--threshold={MAX_EXPOSURE}");
        must(
            Command::new("systemd-analyze")
                .args(["security", "--offline=yes", "--no-pager", &threshold])
                .arg(unit),
        );
    }
    Ok(())
}
