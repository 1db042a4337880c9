//! Trees from one directory to another, whole and interrupted.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test says so when it cannot go on")]

#[path = "../common/mod.rs"]
mod common;
mod deleted;
mod kept_links;
mod resume;
mod transfer;
mod unchanged;
