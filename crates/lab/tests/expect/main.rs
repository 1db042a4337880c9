//! Measures and claims over records made by hand, with answers worked out by hand.
#![allow(clippy::expect_used, reason = "a test says so when it cannot go on")]

mod builder;
mod claims;
mod kept;
mod language;
mod measures;
