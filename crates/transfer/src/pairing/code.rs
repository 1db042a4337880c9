//! The code that a person carries from one host to the other.

use super::code_words::CODE_WORDS;
use crate::settings::nearest;
use std::fmt;
use std::str::FromStr;
use thiserror::Error;

/// A mailbox's number and two secret words, such as `7-crossover-clockwork`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PairingCode {
    /// The mailbox at the relay.
    pub number: u16,
    /// The indices of the two words in the list.
    words: CodeWords,
}

/// The secret part of a code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct CodeWords([u8; 2]);

/// Why a text is no code.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum PairingCodeError {
    /// The text does not have the form of a code.
    #[error("a code is a number and two words, such as 7-crossover-clockwork")]
    Form,
    /// A word of the text is not in the list.
    #[error("`{found}` is in no code: `{nearest}` is meant, perhaps")]
    Word {
        /// The word that was typed.
        found: String,
        /// The most similar word of the list.
        nearest: &'static str,
    },
}

impl CodeWords {
    pub(super) const fn new(random: [u8; 2]) -> Self {
        Self(random)
    }

    pub(super) const fn with_number(self, number: u16) -> PairingCode {
        PairingCode { number, words: self }
    }

    /// Returns the two words as the password of both hosts.
    pub(super) fn password(self) -> String {
        self.0.map(|at| CODE_WORDS.get(usize::from(at)).copied().unwrap_or_default()).join("-")
    }
}

impl PairingCode {
    /// Whether a text is the two words of a code without the number.
    #[must_use]
    pub fn lacks_number(text: &str) -> bool {
        format!("1-{text}").parse::<Self>().is_ok()
    }

    pub(super) const fn words(self) -> CodeWords {
        self.words
    }
}

impl fmt::Display for PairingCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-{}", self.number, self.words.password())
    }
}

impl FromStr for PairingCode {
    type Err = PairingCodeError;

    /// Reads a code. Case does not matter, and blanks may replace dashes.
    fn from_str(text: &str) -> Result<Self, PairingCodeError> {
        let parts: Vec<&str> = text.split(['-', ' ']).filter(|part| !part.is_empty()).collect();
        let &[number, first, second] = parts.as_slice() else { return Err(PairingCodeError::Form) };
        let number = number.parse().ok().filter(|number| *number != 0).ok_or(PairingCodeError::Form)?;
        Ok(CodeWords([place_of(first)?, place_of(second)?]).with_number(number))
    }
}

/// Returns the index of a word in the list.
fn place_of(word: &str) -> Result<u8, PairingCodeError> {
    let word = word.to_ascii_lowercase();
    let place = CODE_WORDS.binary_search(&word.as_str()).ok().and_then(|place| u8::try_from(place).ok());
    place.ok_or_else(|| match nearest(&word, CODE_WORDS) {
        Some(nearest) => PairingCodeError::Word { found: word, nearest },
        None => PairingCodeError::Form,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn a_code_is_read_as_people_type_it() {
        let code: PairingCode = "7-crossover-clockwork".parse().unwrap();
        for text in ["7 Crossover  clockwork ", "07-CROSSOVER-clockwork"] {
            assert_eq!(text.parse(), Ok(code), "{text}");
        }
        assert_eq!((code.number, code.to_string().as_str()), (7, "7-crossover-clockwork"));
        for text in
            ["", "7", "nas", "7-crossover", "0-crossover-clockwork", "7-a-b", "7-crossover-clockwork-x"]
        {
            assert_eq!(text.parse::<PairingCode>(), Err(PairingCodeError::Form), "{text}");
        }
        assert!(PairingCode::lacks_number("crossover-clockwork"));
        assert!(["crossover", "nas-2", "7-crossover-clockwork"].map(PairingCode::lacks_number) == [false; 3]);
        let mistyped = "7-crosover-clockwork".parse::<PairingCode>().unwrap_err();
        assert_eq!(mistyped, PairingCodeError::Word { found: "crosover".into(), nearest: "crossover" });
    }

    #[test]
    fn all_codes_are_read_as_they_are_shown() {
        for random in 0..=u16::MAX {
            let code = CodeWords::new(random.to_be_bytes()).with_number(random);
            if code.number != 0 {
                assert_eq!(code.to_string().parse(), Ok(code));
            }
        }
    }

    #[test]
    fn no_two_words_begin_alike() {
        assert!(CODE_WORDS.is_sorted());
        let heads: BTreeSet<&str> = CODE_WORDS.iter().map(|word| &word[..4]).collect();
        assert_eq!(heads.len(), 256);
    }
}
