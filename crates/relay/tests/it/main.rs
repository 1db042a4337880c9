//! The relay in memory: honest senders, thieves and floods.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test says so when it cannot go on")]

mod adversary;
mod allocation;
mod common;
mod flood;
mod growth;
#[path = "../../../engine/tests/it/heap.rs"]
mod heap;
mod lending;
mod locations;
mod mailboxes;
mod minted;
mod named;
mod recent;
mod registries;
mod security;
mod tcp;
