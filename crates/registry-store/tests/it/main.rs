//! One suite for every store.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test says so when it cannot go on")]

mod suite;

use byway_registry_store::sqlite::Sqlite;

#[test]
fn one_file() {
    suite::run(&|directory| Box::new(Sqlite::open(&directory.join("registry.db")).unwrap()));
}

#[test]
fn a_copy_of_one_file_is_whole_and_for_its_owner_alone() {
    suite::backup();
}
