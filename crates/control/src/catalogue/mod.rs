//! The controllers by the names that `--congestion` takes, with their options, and by class.

mod choice;
#[cfg(feature = "laws")]
mod laws;
mod make;
mod option_reader;
#[cfg(feature = "laws")]
mod own;
mod request;
mod table;

pub use choice::{ChoiceError, ControllerChoice};
#[cfg(feature = "laws")]
pub use own::{OwnController, OwnControllerError, add_controllers};
pub use request::SenderKind;

use crate::Controller;
use crate::background::Background;
use crate::mpath::{self, MPath};
use alloc::borrow::ToOwned as _;
use alloc::boxed::Box;
use alloc::collections::BTreeMap;
use alloc::string::String;
use alloc::vec::Vec;
use option_reader::OptionReader;
use request::ControllerRequest;
use table::{NAMED_CONTROLLERS, NamedController};

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

/// The name of every controller that this build has.
#[must_use]
pub fn controller_names() -> Vec<&'static str> {
    let named = NAMED_CONTROLLERS.iter().filter(|named| named.make.is_some()).map(|named| named.name);
    #[cfg(feature = "laws")]
    let named = named.chain(own::all().iter().map(|own| own.name));
    named.collect()
}

/// Returns every controller of this build, with its options.
#[must_use]
pub fn names() -> Vec<ControllerInfo> {
    let of = |named: &NamedController| {
        let no_options = BTreeMap::new();
        let mut request = request(named.name, &no_options, SenderKind::Session, 0);
        let _ = named.make?(&mut request);
        Some(ControllerInfo { name: named.name, about: named.about, options: request.options.known })
    };
    let named = NAMED_CONTROLLERS.iter().filter_map(of);
    #[cfg(feature = "laws")]
    let named = named.chain(own::all().iter().map(|own| ControllerInfo {
        name: own.name,
        about: own.about,
        options: Vec::new(),
    }));
    named.collect()
}

/// The controller called `name` with its default options, for a session of byway; `None` if this
/// build has no controller of this name. Two controllers of the same name and seed make the same
/// decisions from the same events.
#[must_use]
pub fn by_name(name: &str, seed: u64) -> Option<Box<dyn Controller>> {
    #[cfg(feature = "laws")]
    if let Some(own) = own::named(name) {
        return Some((own.make)(seed));
    }
    let named = NAMED_CONTROLLERS.iter().find(|named| named.name == name)?;
    Some(named.make?(&mut request(named.name, &BTreeMap::new(), SenderKind::Session, seed)))
}

const fn request<'a>(
    name: &'static str,
    options: &'a BTreeMap<String, f64>,
    sender: SenderKind,
    seed: u64,
) -> ControllerRequest<'a> {
    ControllerRequest { name, options: OptionReader::new(options), sender, seed }
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
    let known = || controller_names().join(", ");
    #[cfg(feature = "laws")]
    if let Some(own) = own::named(&name) {
        return match choice.options.keys().next() {
            None => Ok((own.make)(seed)),
            Some(option) => {
                let option = option.clone();
                Err(ChoiceError::UnknownOption { name, option, known: "none".to_owned() })
            }
        };
    }
    let Some(named) = NAMED_CONTROLLERS.iter().find(|named| named.name == choice.name) else {
        return Err(ChoiceError::UnknownName { name, known: known() });
    };
    let Some(make) = named.make else {
        return Err(ChoiceError::NotInBuild { name, known: known() });
    };
    let mut request = request(named.name, &choice.options, sender, seed);
    let made = make(&mut request);
    let read = request.options;
    if let Some((option, value, expected)) = read.wrong {
        return Err(ChoiceError::BadValue { name, option, value, expected });
    }
    let unknown = |option: &&String| !read.known.iter().any(|(known, _)| known == *option);
    match choice.options.keys().find(unknown) {
        None => Ok(made),
        Some(option) => {
            let known: Vec<_> = read.known.iter().map(|(name, _)| name.as_str()).collect();
            let known = if known.is_empty() { "none".to_owned() } else { known.join(", ") };
            Err(ChoiceError::UnknownOption { name, option: option.clone(), known })
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    #[cfg(feature = "laws")]
    use crate::Acked;
    use crate::Opened;
    use alloc::format;
    use alloc::string::ToString as _;
    #[cfg(feature = "laws")]
    use byway_wire::Duration;
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
    #[cfg(feature = "laws")]
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
        assert_eq!(wrong("mpath:beta=1.5"), "mpath: beta = 1.5, but it must be a number from 0 to 1");
        assert!(wrong("mpath:beta=NaN").starts_with("mpath: beta = NaN"));
    }

    #[test]
    fn a_window_keeps_its_bytes_when_packets_get_another_size() {
        for named in names() {
            let mut made = by_name(named.name, 7).expect("a name");
            made.open(
                PathId(0),
                &Opened { now: Instant::ZERO, proxied: false, packet_size: 1_000, rtt: None },
            );
            let before = made.allowance(PathId(0)).window;
            for size in [1_500, 1_100] {
                made.on_packet_size(PathId(0), size);
                assert!(made.allowance(PathId(0)).window.abs_diff(before) <= 1, "{}", named.name);
            }
        }
    }

    #[test]
    #[cfg(feature = "laws")]
    fn growth_is_by_packets_of_the_present_size() {
        for name in ["newreno", "cubic", "bmc", "bmc-literal", "lia", "hir-literal", "mpath", "tcp-lp"] {
            let mut made = by_name(name, 7).expect("a name");
            made.open(
                PathId(0),
                &Opened { now: Instant::ZERO, proxied: false, packet_size: 1_000, rtt: None },
            );
            made.on_packet_size(PathId(0), 1_500);
            let rtt = Duration::from_millis(50);
            let before = made.allowance(PathId(0)).window;
            let acked = Acked {
                now: Instant::from_millis(100),
                bytes: 1_500,
                packets: 1,
                sent_at: Instant::from_millis(50),
                rtt: Some(rtt),
                srtt: rtt,
                min_rtt: rtt,
                delays: &[],
                in_flight: before,
                app_limited: false,
                delivery_rate: None,
                ce: 0,
            };
            made.on_acked(PathId(0), &acked);
            let mut large = by_name(name, 7).expect("a name");
            large.open(
                PathId(0),
                &Opened { now: Instant::ZERO, proxied: false, packet_size: 1_500, rtt: None },
            );
            let whole = large.allowance(PathId(0)).window;
            large.on_acked(PathId(0), &acked);
            let (grown, by) =
                (made.allowance(PathId(0)).window - before, large.allowance(PathId(0)).window - whole);
            assert!(grown.abs_diff(by) <= 1 && grown > 0, "{name}: by {grown} bytes, not {by}");
        }
    }

    #[test]
    fn names_are_in_alphabetical_order() {
        assert!(NAMED_CONTROLLERS.is_sorted_by_key(|named| named.name));
    }

    #[test]
    #[cfg(not(feature = "laws"))]
    fn what_only_other_builds_have_is_told() {
        assert_eq!(controller_names(), ["background", "mpath", "newreno"]);
        let error = controller(&choice("cubic"), SenderKind::Session, 1).expect_err("must be refused");
        assert_eq!(
            error.to_string(),
            "the congestion controller `cubic` is only in the full program: choose one of background, mpath, newreno"
        );
    }
}
