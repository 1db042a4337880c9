//! Controllers that a program adds to the catalogue: those of its own.

use super::table::NAMED_CONTROLLERS;
use crate::Controller;
use alloc::borrow::ToOwned as _;
use alloc::boxed::Box;
use alloc::string::String;
use alloc::vec::Vec;
use once_cell::race::OnceBox;

/// A controller that the catalogue does not have by itself.
#[derive(Clone, Copy, Debug)]
pub struct OwnController {
    /// The name with which a user selects the controller: lower-case letters, digits and hyphens.
    /// The controller must say the same name of itself.
    pub name: &'static str,
    /// The controller in one line.
    pub about: &'static str,
    /// Makes the controller from the seed of its random numbers.
    pub make: fn(u64) -> Box<dyn Controller>,
}

/// Why controllers are not added.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum OwnControllerError {
    /// The name has invalid characters, or belongs to another controller.
    #[error("`{0}` cannot be the name of a controller: it is taken, or not of a-z, 0-9 and hyphens")]
    Name(String),
    /// Controllers were added before. All are added at once.
    #[error("controllers were added before: add all at once")]
    Again,
}

/// The controllers that were added.
static OWN_CONTROLLERS: OnceBox<Vec<OwnController>> = OnceBox::new();

/// Adds controllers to the catalogue, before its first use. Plans, `--congestion`, the scoreboard
/// and random worlds can then name them like all others.
///
/// # Errors
/// [`OwnControllerError`]. Then none is added.
pub fn add_controllers(own: &[OwnController]) -> Result<(), OwnControllerError> {
    for (place, added) in own.iter().enumerate() {
        let mut names = NAMED_CONTROLLERS.iter().map(|named| named.name);
        let is_taken = names.any(|name| name == added.name)
            || own.iter().take(place).any(|before| before.name == added.name);
        let is_word = added.name.starts_with(|first: char| first.is_ascii_lowercase())
            && added
                .name
                .bytes()
                .all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-');
        if is_taken || !is_word {
            return Err(OwnControllerError::Name(added.name.to_owned()));
        }
    }
    OWN_CONTROLLERS.set(Box::new(own.to_vec())).map_err(|_| OwnControllerError::Again)
}

/// Returns the controllers that were added.
pub(super) fn all() -> &'static [OwnController] {
    OWN_CONTROLLERS.get().map_or(&[], Vec::as_slice)
}

/// The one of that name that was added.
pub(super) fn named(name: &str) -> Option<&'static OwnController> {
    all().iter().find(|own| own.name == name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::NewReno;
    use crate::bundle::UncoupledPaths;

    #[test]
    fn names_are_words_that_nobody_has() {
        let make: fn(u64) -> Box<dyn Controller> = |_| Box::new(UncoupledPaths::new("mine", NewReno::new));
        let own = |name| OwnController { name, about: "mine", make };
        for name in ["", "cubic", "Mine", "my law", "-law", "a:b"] {
            assert_eq!(add_controllers(&[own(name)]), Err(OwnControllerError::Name(name.to_owned())));
        }
        assert!(add_controllers(&[own("twice"), own("twice")]).is_err());
        assert!(all().is_empty() && named("twice").is_none());
    }
}
