//! The controllers by name. This is the only list of them.

#[cfg(feature = "laws")]
use super::laws;
use super::make;
use super::request::ControllerRequest;
use crate::Controller;
use alloc::boxed::Box;

/// A function that makes a controller, and reads its options.
pub(super) type Maker = fn(&mut ControllerRequest<'_>) -> Box<dyn Controller>;

/// A controller that a user may select.
pub(super) struct NamedController {
    /// The name with which a user selects the controller.
    pub name: &'static str,
    /// The controller in one line, for users.
    pub about: &'static str,
    /// `None`: only a build with the feature `laws` has the controller.
    pub make: Option<Maker>,
}

/// Expands to the function of `laws` that makes a controller, if this build has it.
macro_rules! law {
    ($make:ident) => {{
        #[cfg(feature = "laws")]
        {
            Some(laws::$make)
        }
        #[cfg(not(feature = "laws"))]
        {
            None
        }
    }};
}

const fn named(name: &'static str, about: &'static str, make: Option<Maker>) -> NamedController {
    NamedController { name, about, make }
}

/// All controllers in alphabetical order, including those that this build lacks.
pub(super) const NAMED_CONTROLLERS: [NamedController; 21] = [
    named(
        "background",
        "fills what is idle, makes way for others, shares with its own (the class `background`)",
        Some(make::background),
    ),
    named("bbr", "BBR, version 1, on every path: paces by the largest delivery rate", law!(bbr)),
    named(
        "bbr3",
        "BBR, version 3, on every path: probes seldom beside others, and answers losses",
        law!(bbr3),
    ),
    named("bmc", "weighted TCPs, together as one: weight moves to where it yields most", law!(bmc)),
    named("bmc-literal", "BMC as published", law!(bmc_literal)),
    named("cubic", "CUBIC on every path, uncoupled: what most TCP senders do", law!(cubic)),
    named("harp-adaptive", "Harp as published, xi = w/M", law!(harp_adaptive)),
    named("harp-independent", "Harp as published, every path for itself", law!(harp_independent)),
    named("harp-joint", "Harp as published, all paths as one flow", law!(harp_joint)),
    named(
        "hir",
        "Harp as published, but by the mean delay of a window, at most 50 packets, and delta 0.3",
        law!(hir),
    ),
    named(
        "hir-literal",
        "the same as HIR proposes it: by the mean delay of 50 packets whatever the window",
        law!(hir_literal),
    ),
    named("ledbat", "LEDBAT, RFC 6817, on every path: yields at 100 ms of queue", law!(ledbat)),
    named(
        "ledbat++",
        "LEDBAT++ on every path: yields at 60 ms of queue, slows down now and then",
        law!(ledbat_pp),
    ),
    named("lia", "linked increases, RFC 6356: all paths as one TCP on the best", law!(lia)),
    named(
        "mpath",
        "normal: as one CUBIC over all paths after the start (the class `normal`)",
        Some(make::mpath),
    ),
    named("mpath-literal", "mPath as published", law!(mpath_literal)),
    named("newreno", "NewReno on every path, uncoupled: n paths act as n TCP flows", Some(make::newreno)),
    named("nice", "TCP Nice on every path: yields at a tenth of the queue, below one packet too", law!(nice)),
    named(
        "proteus-s",
        "Proteus-S on every path: tries rates, and yields where RTTs deviate",
        law!(proteus_s),
    ),
    named("tcp-lp", "TCP-LP on every path: yields at 15 % of the queue", law!(tcp_lp)),
    named("wang", "a TCP per path, and rates that move to where there is room", law!(wang)),
];
