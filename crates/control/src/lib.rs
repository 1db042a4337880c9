//! Congestion control of a whole bundle of paths by one object, so that coupling is native.
//!
//! A path owns facts, a [`Controller`] gives judgement, pacer and scheduler are hands. A controller is told what was
//! sent, acknowledged and lost on each path, and answers with an [`Allowance`] per path and with [`Wants`] for the bundle. It owns
//! no clock and draws no randomness but from the seed that it is given.
//!
//! | room | what is in it |
//! |---|---|
//! | [`contract`] | the [`Controller`] trait and its events |
//! | [`bundle`] | the paths of a controller, and [`Each`], which lifts a [`Single`] algorithm to a bundle |
//! | [`detector`] | what one-way delays tell: the base, a queue that stands, the time of a packet |
//! | [`background`], [`mpath`] | the laws of the two classes |
//! | [`papers`] | Harp and HIR as published |
//! | [`newreno`] | NewReno |
//! | [`bmc`], [`wang`] | a controller of weights, and one of rates |
//! | [`lia`], [`olia`], [`balia`], [`wvegas`] | coupled controllers of others, to compare with |
//! | [`bbr`], [`cubic`], [`ledbat`], [`ledbat_pp`], [`nice`], [`tcp_lp`] | single-path ones of others, likewise; [`hystart`], [`hystart_linux`] |
//! | [`catalogue`] | the controllers by name, with their options, and by class |
#![no_std]

extern crate alloc;

pub mod background;
pub mod balia;
pub mod bbr;
pub mod bmc;
pub mod bundle;
pub mod catalogue;
pub mod contract;
pub mod cubic;
mod curve;
pub mod detector;
pub mod hystart;
pub mod hystart_linux;
pub mod ledbat;
pub mod ledbat_pp;
pub mod lia;
pub mod mpath;
pub mod newreno;
pub mod nice;
pub mod olia;
pub mod papers;
pub mod random;
pub mod tcp_lp;
pub mod wang;
pub mod wvegas;

pub use background::Background;
pub use balia::Balia;
pub use bbr::Bbr;
pub use bmc::Bmc;
pub use bundle::{Coupled, Each, Paths, Single};
pub use catalogue::{Choice, ChoiceError, Class, NAMES, Sender, by_name, controller};
pub use contract::{
    Acked, Allowance, Congested, Controller, Delay, Opened, ProbeResult, Sent, Trigger, Undo, Wants,
};
pub use cubic::Cubic;
pub use curve::Shape;
pub use ledbat::Ledbat;
pub use ledbat_pp::LedbatPp;
pub use lia::Lia;
pub use mpath::MPath;
pub use newreno::NewReno;
pub use nice::Nice;
pub use olia::Olia;
pub use papers::harp::Harp;
pub use tcp_lp::TcpLp;
pub use wang::Wang;
pub use wvegas::WVegas;
