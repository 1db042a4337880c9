//! Tests of the controllers alone, without a protocol: closed forms worked out by hand, models of
//! links, and many seeds.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test says so when it cannot go on")]

mod baselines_coupled;
mod baselines_links;
mod baselines_single;
mod closed_loop;
mod hand;
mod harp_hir;
mod model;
mod mpath_cubic;
mod mpath_trials;
mod oracles;
mod oracles_coupled;
mod oracles_rates;
mod robust;
