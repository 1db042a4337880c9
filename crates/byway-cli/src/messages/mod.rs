//! The sentences that `byway` prints: errors, warnings, notes, and results in words. Each
//! subcommand has a file here. The first table says where other texts are.
//!
//! | elsewhere | place |
//! |---|---|
//! | help texts | `args`, at the arguments |
//! | errors of the library crates | at their types, as `#[error("…")]` |
//! | headings and cells of tables | where the table is made |
//! | lines of progress, made of figures | `output` |
//! | what a gateway's file means, and what a gateway is doing | `byway_gateway_host`: `check` and `report_text` |
//! | what the page of `byway view` says | `byway_view` |
//! | what the lab says | `verb::lab` and `byway-field` |
//!
//! The second table says how a sentence is written.
//!
//! | rule | example |
//! |---|---|
//! | what happened, and where: path, address or option | `cannot listen on TCP 192.0.2.1:4748` |
//! | then a colon, and what to do | `: stop the program that uses the port` |
//! | 25 words at most, plain ones, or those of the glossary | `session`, `grant`, `uplink` |
//! | the subject first | `the receiver no longer knows this session` |
//! | no capital and no full stop, as `byway: ` precedes it | `the demo was stopped` |

pub mod common;
#[cfg(feature = "demo")]
pub mod demo;
pub mod disabled_verbs;
pub mod forward;
#[cfg(feature = "gateway")]
pub mod gateway;
pub mod lending;
#[cfg(feature = "help")]
pub mod manual;
#[cfg(feature = "pairing")]
pub mod pairing;
pub mod peer;
pub mod recv;
#[cfg(feature = "registry")]
pub mod registry;
pub mod relay;
pub mod send;
pub mod sink;
pub mod source;
pub mod status;
pub mod transfer;
#[cfg(feature = "view")]
pub mod view;
