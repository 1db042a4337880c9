//! One test suite for every store: a SQLite file, and a PostgreSQL server that the tests start. If
//! the host has no PostgreSQL, the tests that need it are skipped, and say so.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test says so when it cannot go on")]

mod server;
mod suite;

use byway_registry_store::sqlite::Sqlite;
use libtest_mimic::{Arguments, Failed, Trial};
use std::path::Path;
use std::sync::Arc;

fn main() {
    if let Some(file) = std::env::var_os(suite::ENROLS_INTO) {
        return suite::enrol_for_ever(Path::new(&file));
    }
    if let Some(directory) = std::env::var_os(suite::FILLS) {
        return suite::fill_the_disk(Path::new(&directory));
    }
    let arguments = Arguments::from_args();
    let mut trials = vec![Trial::test("a_copy_of_one_file_is_whole_and_for_its_owner_alone", || {
        suite::backup();
        Ok(())
    })];
    trials.push(Trial::test("what_was_answered_survives_a_hundred_kills", || {
        suite::kills();
        Ok(())
    }));
    let small_disk = || -> Result<(), Failed> {
        suite::full_disk();
        Ok(())
    };
    let root = rustix::process::geteuid().is_root();
    trials.push(
        Trial::test("a_full_disk_loses_nothing_and_is_written_to_once_there_is_room", small_disk)
            .with_ignored_flag(!root),
    );
    let listing = arguments.list;
    let server = if listing { None } else { server::Server::start().map(Arc::new) };
    for (name, test) in suite::ALL {
        trials.push(Trial::test(format!("one_file::{name}"), move || {
            let directory = tempfile::tempdir()?;
            test(&|at: &Path| Box::new(Sqlite::open(&at.join("registry.db")).unwrap()), directory.path());
            Ok(())
        }));
        let server = server.clone();
        let there = server.is_some() || listing;
        let run = move || -> Result<(), Failed> {
            let server = server.ok_or("no server")?;
            let url = server.data_base(name);
            let directory = tempfile::tempdir()?;
            test(&|_: &Path| byway_registry_store::open(&url).unwrap(), directory.path());
            Ok(())
        };
        trials.push(Trial::test(format!("postgresql::{name}"), run).with_ignored_flag(!there));
    }
    let there = server.is_some() || listing;
    let gone = move || -> Result<(), Failed> {
        suite::gone_and_back(&*server.ok_or("no server")?);
        Ok(())
    };
    // The others use the server too: it stands still for a moment only for this test's own data
    // base.
    trials.push(
        Trial::test("postgresql::connections_that_are_cut_are_replaced", gone).with_ignored_flag(!there),
    );
    libtest_mimic::run(&arguments, trials).exit();
}
