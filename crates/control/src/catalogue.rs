//! The controllers by the names that `--congestion` takes, and by class.

use crate::balia::Balia;
use crate::bmc::{self, Bmc};
use crate::bundle::{Coupled, Each};
use crate::cubic::Cubic;
use crate::harp::{self, Coupling, Harp};
use crate::ledbat::Ledbat;
use crate::ledbat_pp::LedbatPp;
use crate::lia::Lia;
use crate::mpath::{self, MPath};
use crate::newreno::NewReno;
use crate::nice::Nice;
use crate::olia::Olia;
use crate::tcp_lp::TcpLp;
use crate::wang::Wang;
use crate::wvegas::WVegas;
use crate::{Controller, Opened};
use alloc::boxed::Box;

/// What a transfer means to others.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Class {
    /// Yields to whoever uses the same links: production Harp, adaptive.
    #[default]
    Background,
    /// Fair to one TCP flow on the best path: production mPath.
    Normal,
}

impl Class {
    /// The name of the controller that serves the class.
    #[must_use]
    pub const fn default_name(self) -> &'static str {
        match self {
            Self::Background => "harp",
            Self::Normal => "mpath",
        }
    }

    /// The controller that serves the class.
    #[must_use]
    pub fn controller(self, seed: u64) -> Box<dyn Controller> {
        match self {
            Self::Background => Box::new(harp("harp", harp::Options::production(Coupling::Adaptive), seed)),
            Self::Normal => Box::new(MPath::new("mpath", mpath::Options::PRODUCTION, seed)),
        }
    }
}

/// Every name that [`by_name`] knows, with a line for the person who chooses.
pub const NAMES: &[(&str, &str)] = &[
    ("balia", "balanced linked adaptation: between LIA and OLIA"),
    ("bmc", "weighted TCPs, together as one: weight moves to where it yields most"),
    ("bmc-literal", "BMC as published"),
    ("cubic", "CUBIC on every path, uncoupled: what most TCP senders do"),
    (
        "harp",
        "background: yields at 5 ms of queue, makes way for requests, adaptive coupling (the class `background`)",
    ),
    ("harp-adaptive", "Harp as published, xi = w/M"),
    ("harp-independent", "Harp as published, every path for itself"),
    ("harp-joint", "Harp as published, all paths as one flow"),
    ("hir", "Harp as published, but by the mean delay of a window, at most 50 packets, and delta 0.3"),
    ("hir-literal", "the same as HIR proposes it: by the mean delay of 50 packets whatever the window"),
    ("ledbat", "LEDBAT, RFC 6817, on every path: yields at 100 ms of queue"),
    ("ledbat++", "LEDBAT++ on every path: yields at 60 ms of queue, slows down now and then"),
    ("lia", "linked increases, RFC 6356: all paths as one TCP on the best"),
    ("mpath", "normal: as one CUBIC over all paths after the start (the class `normal`)"),
    ("mpath-literal", "mPath as published"),
    ("newreno", "NewReno on every path, uncoupled: n paths act as n TCP flows"),
    ("nice", "TCP Nice on every path: yields at a tenth of the queue, below one packet too"),
    ("olia", "opportunistic linked increases: LIA that leaves paths with more loss"),
    ("tcp-lp", "TCP-LP on every path: yields at 15 % of the queue"),
    ("wang", "a TCP per path, and rates that move to where there is room"),
    ("wvegas", "weighted Vegas: load moves to where packets wait least"),
];

/// The controller called `name`; `None` if there is none of that name. Two of the same seed do the same.
#[must_use]
pub fn by_name(name: &str, seed: u64) -> Option<Box<dyn Controller>> {
    let literal = harp::Options::literal;
    Some(match name {
        "balia" => Box::new(Coupled::new("balia", Balia)),
        "bmc" => Box::new(Coupled::new("bmc", Bmc::new(bmc::Options::RECOMMENDED))),
        "bmc-literal" => Box::new(Coupled::new("bmc-literal", Bmc::new(bmc::Options::LITERAL))),
        "cubic" => Box::new(Each::new("cubic", Cubic::new)),
        "harp" => Class::Background.controller(seed),
        "harp-adaptive" => Box::new(harp("harp-adaptive", literal(Coupling::Adaptive), seed)),
        "harp-independent" => Box::new(harp("harp-independent", literal(Coupling::Independent), seed)),
        "harp-joint" => Box::new(harp("harp-joint", literal(Coupling::Joint), seed)),
        "hir" => Box::new(harp("hir", harp::Options::averaged(true), seed)),
        "hir-literal" => Box::new(harp("hir-literal", harp::Options::averaged(false), seed)),
        "ledbat" => Box::new(Each::new("ledbat", Ledbat::new)),
        "ledbat++" => Box::new(Each::new("ledbat++", LedbatPp::new)),
        "lia" => Box::new(Coupled::new("lia", Lia)),
        "mpath" => Class::Normal.controller(seed),
        "mpath-literal" => Box::new(MPath::new("mpath-literal", mpath::Options::LITERAL, seed)),
        "newreno" => Box::new(Each::new("newreno", |opened: &Opened| NewReno::new(opened))),
        "nice" => Box::new(Each::new("nice", Nice::new)),
        "olia" => Box::new(Coupled::new("olia", Olia)),
        "tcp-lp" => Box::new(Each::new("tcp-lp", TcpLp::new)),
        "wang" => Box::new(Coupled::new("wang", Wang::new(seed))),
        "wvegas" => Box::new(Coupled::new("wvegas", WVegas)),
        _ => return None,
    })
}

fn harp(name: &'static str, options: harp::Options, seed: u64) -> Harp {
    Harp::new(name, options, seed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_is_a_controller_of_that_name() {
        for (name, line) in NAMES {
            assert_eq!(by_name(name, 1).map(|controller| controller.name()), Some(*name));
            assert!(!line.is_empty());
        }
        assert!(by_name("bbr", 1).is_none());
    }

    #[test]
    fn the_classes_are_in_the_list() {
        for class in [Class::Background, Class::Normal] {
            assert_eq!(class.controller(1).name(), class.default_name());
            assert!(NAMES.iter().any(|(name, _)| *name == class.default_name()));
        }
    }
}
