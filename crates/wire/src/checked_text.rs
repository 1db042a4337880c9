//! Encodes bytes as text for tickets, relay words and keys. A shell needs no quotes around the
//! text, and a checksum shows whether the text was copied wrongly.
//!
//! | part | content |
//! |---|---|
//! | prefix | names the kind of text and sometimes the version, such as `byway-key-`, `byway1-` |
//! | payload | in base32: RFC 4648 section 6, lower case (decoding accepts upper case), unpadded |
//! | [`Checksum`] | in base32; 4 bytes of BLAKE3 over prefix and payload (relay words: payload) |

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use data_encoding::{BASE32_NOPAD, DecodeKind, Encoding, Specification};
use zeroize::Zeroizing;

/// Bytes of the checksum: one bad copy in four billion goes unnoticed here (and then fails at the
/// handshake).
pub const CHECKSUM_LEN: usize = 4;
/// The checksum at the end of a text, which reveals a wrong copy.
pub type Checksum = [u8; CHECKSUM_LEN];
/// The most characters of a text that are read.
pub const MAX_LEN: usize = 8192;

const BASE32_ALPHABET: &str = "abcdefghijklmnopqrstuvwxyz234567";

/// Base32 in lower case.
fn base32() -> Encoding {
    let mut specification = Specification::new();
    specification.symbols.push_str(BASE32_ALPHABET);
    // A text that was cut short ends in stray bits. The error tells of the cut, not of the bits.
    specification.check_trailing_bits = false;
    // The alphabet above is 32 distinct ASCII letters, which is all that `encoding` asks for.
    specification.encoding().unwrap_or(BASE32_NOPAD)
}

/// Why a text could not be decoded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TextError {
    /// The text begins with another prefix, or with none.
    Prefix,
    /// A character that the encoding does not use, and its place in the whole text, counted from 1.
    Character {
        /// The character that was found.
        found: char,
        /// The place of the character, counted from 1, without white space.
        at: usize,
    },
    /// The text is longer than [`MAX_LEN`].
    TooLong,
    /// The checksum is wrong. Holds all decoded bytes, so that the caller can tell a truncated text
    /// from a mistyped one.
    Checksum(Vec<u8>),
}

/// `payload` as a text whose checksum covers prefix and payload.
#[must_use]
pub fn encode(prefix: &str, payload: &[u8]) -> String {
    encode_with(prefix, payload, checksum(&[prefix.as_bytes(), payload]))
}

/// Encodes `payload` as a text with the prefix and this checksum.
#[must_use]
pub fn encode_with(prefix: &str, payload: &[u8], sum: Checksum) -> String {
    let bytes = Zeroizing::new([payload, &sum].concat());
    let letters = Zeroizing::new(base32().encode(&bytes));
    format!("{prefix}{}", *letters)
}

/// The payload of a text that begins with `prefix` and whose checksum covers both. White space in
/// the text and around it is ignored: mail programs and terminals fold long lines.
pub fn decode(prefix: &str, text: &str) -> Result<Vec<u8>, TextError> {
    decode_with(prefix, text, |payload| checksum(&[prefix.as_bytes(), payload]))
}

/// Returns the payload of a text that begins with `prefix`, if its checksum is the `sum` of the
/// payload.
pub fn decode_with(prefix: &str, text: &str, sum: impl Fn(&[u8]) -> Checksum) -> Result<Vec<u8>, TextError> {
    let text = Zeroizing::new(unfolded(text).ok_or(TextError::TooLong)?);
    let body = strip_prefix(prefix, &text).ok_or(TextError::Prefix)?;
    let letters = Zeroizing::new(body.to_ascii_lowercase());
    if let Some((index, found)) =
        letters.char_indices().find(|(_, letter)| !BASE32_ALPHABET.contains(*letter))
    {
        let at =
            prefix.chars().count() + letters.chars().take_while(|c| BASE32_ALPHABET.contains(*c)).count() + 1;
        // The original character, not its lower-case form.
        let found = body.get(index..).and_then(|rest| rest.chars().next()).unwrap_or(found);
        return Err(TextError::Character { found, at });
    }
    let bytes = decode_letters(&letters);
    let Some((payload, stated)) = bytes.split_last_chunk::<CHECKSUM_LEN>() else {
        return Err(TextError::Checksum(bytes));
    };
    // The second test makes the text unique: stray bits in the last letter are a bad copy too.
    if *stated == sum(payload) && base32().encode(&bytes) == *letters {
        Ok(payload.to_vec())
    } else {
        Err(TextError::Checksum(bytes))
    }
}

/// `text` without white space; `None` if more than [`MAX_LEN`] bytes are left.
#[must_use]
pub fn unfolded(text: &str) -> Option<String> {
    let mut whole = String::with_capacity(text.len().min(MAX_LEN));
    for part in text.split_whitespace() {
        if whole.len() + part.len() > MAX_LEN {
            return None;
        }
        whole.push_str(part);
    }
    Some(whole)
}

/// The text after `prefix`, compared without regard to case. `None`: the text does not begin with
/// it.
#[must_use]
pub fn strip_prefix<'a>(prefix: &str, text: &'a str) -> Option<&'a str> {
    let (head, rest) = text.split_at_checked(prefix.len())?;
    head.eq_ignore_ascii_case(prefix).then_some(rest)
}

/// Letters of the alphabet as bytes. A last letter that completes no byte is dropped.
fn decode_letters(letters: &str) -> Vec<u8> {
    let base32 = base32();
    match base32.decode(letters.as_bytes()) {
        Ok(bytes) => bytes,
        Err(error) if error.kind == DecodeKind::Length => {
            let whole = letters.as_bytes().get(..error.position).unwrap_or_default();
            base32.decode(whole).unwrap_or_default()
        }
        Err(_) => Vec::new(),
    }
}

/// The checksum over the concatenation of `parts`.
#[must_use]
pub fn checksum(parts: &[&[u8]]) -> Checksum {
    let mut hasher = blake3::Hasher::new();
    for part in parts {
        hasher.update(part);
    }
    let mut sum = [0; CHECKSUM_LEN];
    hasher.finalize_xof().fill(&mut sum);
    sum
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec;
    use proptest::prelude::*;

    #[test]
    fn a_text_is_frozen() {
        assert_eq!(encode("byway-test-", b"\x00\x01\xfe\xff"), "byway-test-aaa7572apcdsa");
        assert_eq!(decode("byway-test-", " BYWAY-TEST-AAA7572APCDSA\n"), Ok(vec![0, 1, 0xfe, 0xff]));
    }

    #[test]
    fn a_text_may_be_folded_anywhere() {
        for folded in ["byway-test-aaa75\r\n  72apcdsa", "byway-\ntest-aaa7572 apc\tdsa\u{a0}"] {
            assert_eq!(decode("byway-test-", folded), Ok(vec![0, 1, 0xfe, 0xff]), "{folded:?}");
        }
        assert_eq!(decode("w-", "w-a\nb!c"), Err(TextError::Character { found: '!', at: 5 }));
        let spaces = " ".repeat(2 * MAX_LEN);
        assert_eq!(
            decode("byway-test-", &format!("byway-test-{spaces}aaa7572apcdsa")),
            Ok(vec![0, 1, 0xfe, 0xff])
        );
    }

    #[test]
    fn a_stray_character_is_named_with_its_place() {
        assert_eq!(decode("w-", "w-ab!c"), Err(TextError::Character { found: '!', at: 5 }));
        assert_eq!(decode("w-", "w-aé"), Err(TextError::Character { found: 'é', at: 4 }));
        assert_eq!(decode("w-", "w-0"), Err(TextError::Character { found: '0', at: 3 }));
        assert_eq!(decode("w-", "v-abc"), Err(TextError::Prefix));
        assert_eq!(decode("w-", ""), Err(TextError::Prefix));
        assert_eq!(decode("w-", &"w-".repeat(MAX_LEN)), Err(TextError::TooLong));
    }

    proptest! {
        #[test]
        fn round_trip(payload in prop::collection::vec(any::<u8>(), 0..200)) {
            let word = encode("byway-x-", &payload);
            prop_assert!(word.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-'));
            prop_assert_eq!(decode("byway-x-", &word), Ok(payload));
        }

        #[test]
        fn any_other_letter_is_noticed(payload in prop::collection::vec(any::<u8>(), 0..100), at: prop::sample::Index,
                                       by in 1usize..32) {
            let mut word = encode("w-", &payload).into_bytes();
            let at = 2 + at.index(word.len() - 2);
            let value = BASE32_ALPHABET.bytes().position(|b| b == word[at]).unwrap();
            word[at] = BASE32_ALPHABET.as_bytes()[(value + by) % 32];
            let text = String::from_utf8(word).unwrap();
            prop_assert!(matches!(decode("w-", &text), Err(TextError::Checksum(_))));
        }

        #[test]
        fn garbage_never_panics(text in "\\PC{0,80}") {
            let _ = decode("w-", &text);
            let _ = decode("w-", &format!("w-{text}"));
        }
    }
}
