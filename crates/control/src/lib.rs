//! Congestion control for a bundle: all paths of one connection. One controller governs the bundle,
//! so a path's window can depend on other paths.
//!
//! A [`Controller`] gets path events. It answers with an [`Allowance`] (how much a path may send)
//! and a [`PathDemand`] (paths to open or drop). It reads no clock, and draws random numbers only
//! from a seed.
//!
//! | room | what is in it |
//! |---|---|
//! | [`contract`] | the [`Controller`] trait and its events |
//! | [`bundle`] | the paths of a controller, and [`UncoupledPaths`], which lifts a [`PathController`] algorithm to a bundle |
//! | [`detector`] | what one-way delays tell: the base delay, a standing queue, the time of a packet |
//! | [`background`], [`mpath`] | the laws of the two classes |
//! | [`newreno`] | NewReno |
//! | [`wang`] | rates of TCP connections, which live sources set; with `laws` also a controller |
//! | [`catalogue`] | the controllers by name, with their options, and by class |
//!
//! The feature `laws`, which is on by default, adds controllers that only plans and comparisons
//! need:
//!
//! | room | what is in it |
//! |---|---|
//! | `papers` | Harp and HIR as published |
//! | `bmc` | a controller of weights |
//! | `rivals` | controllers of others, to compare with |
//! | `contract_check` | random events, for the tests of a controller |
#![no_std]

extern crate alloc;

pub mod background;
#[cfg(feature = "laws")]
pub mod bmc;
pub mod bundle;
pub mod catalogue;
pub mod contract;
#[cfg(feature = "laws")]
pub mod contract_check;
mod cubic_curve;
pub mod detector;
pub mod mpath;
pub mod newreno;
#[cfg(feature = "laws")]
pub mod papers;
#[cfg(feature = "laws")]
pub mod rivals;
pub mod wang;

pub use background::Background;
#[cfg(feature = "laws")]
pub use bmc::Bmc;
#[cfg(feature = "laws")]
pub use bundle::Coupled;
pub use bundle::{PathController, Paths, UncoupledPaths};
pub use byway_wire::seeded_random;
pub use catalogue::{
    ChoiceError, Class, ControllerChoice, SenderKind, by_name, controller, controller_names,
};
pub use contract::{
    Acked, Allowance, Congested, Controller, Delay, Opened, PathDemand, ProbeResult, Sent, Trigger, Undo,
};
pub use cubic_curve::Shape;
pub use mpath::MPath;
pub use newreno::NewReno;
#[cfg(feature = "laws")]
pub use papers::harp::Harp;
#[cfg(feature = "laws")]
pub use rivals::bbr::Bbr;
#[cfg(feature = "laws")]
pub use rivals::bbr3::Bbr3;
#[cfg(feature = "laws")]
pub use rivals::cubic::Cubic;
#[cfg(feature = "laws")]
pub use rivals::ledbat::Ledbat;
#[cfg(feature = "laws")]
pub use rivals::ledbat_pp::LedbatPp;
#[cfg(feature = "laws")]
pub use rivals::lia::Lia;
#[cfg(feature = "laws")]
pub use rivals::nice::Nice;
#[cfg(feature = "laws")]
pub use rivals::proteus::Proteus;
#[cfg(feature = "laws")]
pub use rivals::tcp_lp::TcpLp;
#[cfg(feature = "laws")]
pub use wang::Wang;
