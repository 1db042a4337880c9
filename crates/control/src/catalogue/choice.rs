//! The text with which a person chooses a controller: its name, and the options that differ from
//! the defaults.

use alloc::borrow::ToOwned as _;
use alloc::collections::BTreeMap;
use alloc::string::String;
use core::fmt;
use core::str::FromStr;

/// A controller's name with the options that differ from their defaults: `background`, or
/// `hir:packets=20:delta=0.2`.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ControllerChoice {
    /// One of the [names](super::controller_names).
    pub name: String,
    /// The options of the controller by name. [`names`](super::names) knows all. Whatever is not
    /// here is as usual.
    pub options: BTreeMap<String, f64>,
}

/// Why the choice of a controller is invalid.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum ChoiceError {
    /// No controller has the name that was given.
    #[error("there is no congestion controller `{name}`: choose one of {known}")]
    UnknownName {
        /// The name that was asked for.
        name: String,
        /// The names of all controllers.
        known: String,
    },
    /// Only builds with the feature `laws` have the controller.
    #[error("the congestion controller `{name}` is only in the full program: choose one of {known}")]
    NotInBuild {
        /// The name that was asked for.
        name: String,
        /// All that this build has.
        known: String,
    },
    /// The controller has no such option.
    #[error("{name} has no option {option}; it has {known}")]
    UnknownOption {
        /// The name of the controller.
        name: String,
        /// The option that was given.
        option: String,
        /// The names of all options of the controller.
        known: String,
    },
    /// A value that the option cannot have.
    #[error("{name}: {option} = {value}, but it must be {expected}")]
    BadValue {
        /// The name of the controller.
        name: String,
        /// The name of the option.
        option: String,
        /// The value that was given.
        value: f64,
        /// The values that would do.
        expected: String,
    },
    /// The text after the name is not an option with a number.
    #[error("{name}: expected OPTION=NUMBER after the colon, found `{found}`")]
    NoOption {
        /// The name of the controller.
        name: String,
        /// The value that was found.
        found: String,
    },
}

impl FromStr for ControllerChoice {
    type Err = ChoiceError;

    /// Parses a choice. Whether the controller and its options exist is checked when it is
    /// [made](super::controller).
    fn from_str(text: &str) -> Result<Self, ChoiceError> {
        let mut parts = text.split(':');
        let name = parts.next().unwrap_or_default();
        let option = |part: &str| {
            let (option, value) = part.split_once('=')?;
            Some((option.to_owned(), value.parse().ok()?))
        };
        let wrong = |part: &str| ChoiceError::NoOption { name: name.to_owned(), found: part.to_owned() };
        let options = parts.map(|part| option(part).ok_or_else(|| wrong(part))).collect::<Result<_, _>>()?;
        Ok(Self { name: name.to_owned(), options })
    }
}

impl fmt::Display for ControllerChoice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name)?;
        self.options.iter().try_for_each(|(option, value)| write!(f, ":{option}={value}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::string::ToString as _;

    #[test]
    fn what_is_written_is_what_was_read() {
        for text in ["background", "ledbat++", "hir:delta=0.2:packets=20", "tcp-lp:threshold=1"] {
            assert_eq!(
                text.parse::<ControllerChoice>().map(|choice| choice.to_string()),
                Ok(text.to_owned())
            );
        }
        let choice: ControllerChoice = "hir:packets=20".parse().expect("it is one");
        assert_eq!((choice.name.as_str(), choice.options["packets"]), ("hir", 20.0));
    }

    #[test]
    fn what_is_no_option_is_told() {
        for (text, found) in [("hir:", ""), ("hir:packets", "packets"), ("hir:packets=many", "packets=many")]
        {
            let wrong = text.parse::<ControllerChoice>().expect_err("it is none").to_string();
            assert_eq!(wrong, alloc::format!("hir: expected OPTION=NUMBER after the colon, found `{found}`"));
        }
    }
}
