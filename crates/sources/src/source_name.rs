//! Names of sources.

use std::fmt;
use std::str::FromStr;

/// Characters of the longest name.
const MAX_NAME_LEN: usize = 64;

/// The name of a source: letters, digits, `.`, `_` and `-`, beginning with a letter or digit. So a
/// name is also a valid file name.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Name(String);

/// Why a text is no name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "the name of a source has 1 to 64 letters, digits, `.`, `_` or `-`, and begins with a letter or digit"
)]
pub struct NameError;

impl Name {
    /// The name as text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for Name {
    type Err = NameError;

    fn from_str(text: &str) -> Result<Self, NameError> {
        let fits = |byte: u8| byte.is_ascii_alphanumeric() || b"._-".contains(&byte);
        let first = text.bytes().next().is_some_and(|byte| byte.is_ascii_alphanumeric());
        if first && text.len() <= MAX_NAME_LEN && text.bytes().all(fits) {
            Ok(Self(text.to_owned()))
        } else {
            Err(NameError)
        }
    }
}

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_a_plain_file_name() {
        for name in ["radar7", "a", "A.b_c-d", "7"] {
            assert_eq!(name.parse::<Name>().unwrap().as_str(), name);
        }
        for name in ["", ".", "..", ".a", "-a", "a/b", "a b", "\u{e5}", &"x".repeat(65)] {
            assert_eq!(name.parse::<Name>(), Err(NameError), "{name}");
        }
    }
}
