//! Plans, worlds, measures and claims.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test says so when it cannot go on")]

mod expect;
mod gateways;
mod headlines;
mod path_choice;
mod plan;
mod plan_exchange;
mod plan_text;
mod readmes;
mod registry;
mod relay_paths;
mod sweep;
mod world;
