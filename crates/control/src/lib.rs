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
//! | [`papers`] | Harp and HIR as published |
//! | [`newreno`] | NewReno |
//! | [`bmc`], [`wang`] | a controller of weights, and one of rates |
//! | [`rivals`] | controllers of others, to compare with |
//! | [`catalogue`] | the controllers by name, with their options, and by class |
#![no_std]

extern crate alloc;

pub mod background;
pub mod bmc;
pub mod bundle;
pub mod catalogue;
pub mod contract;
mod curve;
pub mod detector;
pub mod mpath;
pub mod newreno;
pub mod papers;
pub mod rivals;
pub mod wang;

pub use background::Background;
pub use bmc::Bmc;
pub use bundle::{Coupled, PathController, Paths, UncoupledPaths};
pub use byway_wire::seeded_random;
pub use catalogue::{
    CONTROLLER_NAMES, ChoiceError, Class, ControllerChoice, SenderKind, by_name, controller,
};
pub use contract::{
    Acked, Allowance, Congested, Controller, Delay, Opened, PathDemand, ProbeResult, Sent, Trigger, Undo,
};
pub use curve::Shape;
pub use mpath::MPath;
pub use newreno::NewReno;
pub use papers::harp::Harp;
pub use rivals::bbr::Bbr;
pub use rivals::cubic::Cubic;
pub use rivals::ledbat::Ledbat;
pub use rivals::ledbat_pp::LedbatPp;
pub use rivals::lia::Lia;
pub use rivals::nice::Nice;
pub use rivals::tcp_lp::TcpLp;
pub use wang::Wang;
