//! The controllers by the names that `--congestion` takes, with their options, and by class.

mod choice;
mod make;
mod option_reader;

pub use choice::{ChoiceError, ControllerChoice};

use crate::Controller;
use crate::background::Background;
use crate::mpath::{self, MPath};
use alloc::borrow::ToOwned as _;
use alloc::boxed::Box;
use alloc::collections::BTreeMap;
use alloc::string::String;
use alloc::vec::Vec;
use make::make;
use option_reader::OptionReader;

/// How a transfer treats other traffic.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Class {
    /// Yields to all other traffic on the same links: [`Background`].
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
            Self::Background => "background",
            Self::Normal => "mpath",
        }
    }

    /// The controller that serves the class.
    #[must_use]
    pub fn controller(self, seed: u64) -> Box<dyn Controller> {
        let name = self.default_name();
        match self {
            Self::Background => Box::new(Background::new(name)),
            Self::Normal => Box::new(MPath::new(name, mpath::MPathOptions::PRODUCTION, seed)),
        }
    }
}

/// Every name that [`controller`] knows, with a line that helps a person to choose.
pub const CONTROLLER_NAMES: &[(&str, &str)] = &[
    ("background", "fills what is idle, makes way for others, shares with its own (the class `background`)"),
    ("bbr", "BBR, version 1, on every path: paces by the largest delivery rate"),
    ("bmc", "weighted TCPs, together as one: weight moves to where it yields most"),
    ("bmc-literal", "BMC as published"),
    ("cubic", "CUBIC on every path, uncoupled: what most TCP senders do"),
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
    ("tcp-lp", "TCP-LP on every path: yields at 15 % of the queue"),
    ("wang", "a TCP per path, and rates that move to where there is room"),
];

/// The kind of sender that is governed. Hosts differ in how large a window they begin with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SenderKind {
    /// A session of byway's.
    Session,
    /// The simulator's TCP hosts.
    Tcp {
        /// The initial window of loss-based controllers in packets, unless `initial` is set.
        initial_window: u32,
    },
    /// Reference TCP hosts that do as Linux does.
    Linux {
        /// The initial window of loss-based controllers in packets, unless `initial` is set.
        initial_window: u32,
    },
}

/// A controller that a person may name.
#[derive(Clone, Debug, PartialEq)]
pub struct ControllerInfo {
    /// The name with which a user selects the controller.
    pub name: &'static str,
    /// The controller in one line.
    pub about: &'static str,
    /// The name of each option of the controller, and its default in a session.
    pub options: Vec<(String, f64)>,
}

/// Every controller and its options.
#[must_use]
pub fn names() -> Vec<ControllerInfo> {
    let of = |(name, about): &(&'static str, &'static str)| {
        let nothing = BTreeMap::new();
        let mut knobs = OptionReader::new(&nothing);
        let _ = make(name, &mut knobs, SenderKind::Session, 0);
        ControllerInfo { name, about, options: knobs.known }
    };
    CONTROLLER_NAMES.iter().map(of).collect()
}

/// The controller called `name` with its default options, for a session of byway; `None` if no
/// controller has this name. Two controllers of the same name and seed make the same decisions from
/// the same events.
#[must_use]
pub fn by_name(name: &str, seed: u64) -> Option<Box<dyn Controller>> {
    make(name, &mut OptionReader::new(&BTreeMap::new()), SenderKind::Session, seed)
}

/// Makes the chosen controller. Two controllers with the same seed behave alike.
///
/// # Errors
/// [`ChoiceError`]: each says what would do.
pub fn controller(
    choice: &ControllerChoice,
    sender: SenderKind,
    seed: u64,
) -> Result<Box<dyn Controller>, ChoiceError> {
    let name = choice.name.clone();
    let mut knobs = OptionReader::new(&choice.options);
    let Some(made) = make(&choice.name, &mut knobs, sender, seed) else {
        let known: Vec<_> = CONTROLLER_NAMES.iter().map(|(name, _)| *name).collect();
        return Err(ChoiceError::UnknownName { name, known: known.join(", ") });
    };
    if let Some((option, value, expected)) = knobs.wrong {
        return Err(ChoiceError::BadValue { name, option, value, expected });
    }
    let unknown = |option: &&String| !knobs.known.iter().any(|(known, _)| known == *option);
    match choice.options.keys().find(unknown) {
        None => Ok(made),
        Some(option) => {
            let known: Vec<_> = knobs.known.iter().map(|(name, _)| name.as_str()).collect();
            let known = if known.is_empty() { "none".to_owned() } else { known.join(", ") };
            Err(ChoiceError::UnknownOption { name, option: option.clone(), known })
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Opened;
    use alloc::format;
    use alloc::string::ToString as _;
    use byway_wire::{Instant, PathId};

    fn choice(text: &str) -> ControllerChoice {
        text.parse().expect("a choice")
    }

    #[test]
    fn every_name_makes_the_controller_of_that_name() {
        for named in names() {
            assert!(!named.about.is_empty());
            for sender in [
                SenderKind::Session,
                SenderKind::Tcp { initial_window: 2 },
                SenderKind::Linux { initial_window: 10 },
            ] {
                let made = controller(&choice(named.name), sender, 1).expect(named.name);
                assert_eq!(made.name(), named.name);
            }
        }
        assert!(by_name("bic", 1).is_none());
    }

    #[test]
    fn the_classes_are_in_the_list() {
        for class in [Class::Background, Class::Normal] {
            let both = [class.controller(7), by_name(class.default_name(), 7).expect("a name")];
            let [made, listed] = both.map(|mut made| {
                made.open(
                    PathId(0),
                    &Opened { now: Instant::ZERO, proxied: false, packet_size: 1_500, rtt: None },
                );
                format!("{made:?}")
            });
            assert_eq!(made, listed);
        }
    }

    #[test]
    fn options_reach_the_controller() {
        let harp = choice("harp-joint:delta=0.25:range_ms=40:choke=0");
        let made = format!("{:?}", controller(&harp, SenderKind::Session, 1).expect("known options"));
        assert!(made.contains("delta: 0.25") && made.contains("range: Some(40ms)"), "{made}");
        assert!(made.contains("choke: false") && made.contains("alpha: 0.03"), "{made}");
        let (lia, host) = (choice("lia:initial=4"), SenderKind::Tcp { initial_window: 2 });
        let made = format!("{:?}", controller(&lia, host, 1).expect("known"));
        assert!(made.contains("initial: 4.0, limit: 2.0"), "{made}");
    }

    #[test]
    fn what_is_not_known_is_refused_with_what_is() {
        let wrong = |text: &str| {
            controller(&choice(text), SenderKind::Session, 1).expect_err("must be refused").to_string()
        };
        let none = "there is no congestion controller `reno`: choose one of background, ";
        assert!(wrong("reno").starts_with(none), "{}", wrong("reno"));
        assert_eq!(wrong("newreno:delta=1"), "newreno has no option delta; it has initial, limit");
        assert_eq!(wrong("hir:beta=1.5"), "hir: beta = 1.5, but it must be a number from 0 to 1");
        assert!(wrong("hir:beta=NaN").starts_with("hir: beta = NaN"));
    }
}
