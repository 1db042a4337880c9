//! A relay word: what `byway relay` prints and a receiver or sender passes to `--relay`.
//!
//! ```text
//! bytes   version 1 (1), flags (1: bit 0 narrowed), grant (10), [caveat (7)], secret (16),
//!         address count (1: 1 to 4), addresses (IP length 1, IP, port 2)
//! text    "byway-relay-", then the bytes and the first 4 bytes of their BLAKE3 hash in base 32 (RFC 4648), lower case
//! ```

use super::grant::{Caveat, Grant, Terms};
use super::secret::{GrantSecret, MacKey};
use crate::checked_text;
use crate::codec::{DecodeError, Reader, Writer};
use crate::frame::{read_address, write_address};
use alloc::string::String;
use alloc::vec;
use alloc::vec::Vec;
use core::fmt;
use core::net::SocketAddr;
use core::str::FromStr;
use thiserror::Error;
use zeroize::Zeroize;

/// The beginning of every relay word's text.
pub const WORD_PREFIX: &str = "byway-relay-";
/// The most addresses of a relay word: an IPv4 and an IPv6 one, twice.
pub const MAX_ADDRESSES: usize = 4;

const WORD_VERSION: u8 = 1;
const NARROWED_FLAG: u8 = 1;
const MAX_LEN: usize = 2 + 10 + 7 + 16 + 1 + MAX_ADDRESSES * 19;

/// Why a text or its fields are not a relay word.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum RelayWordError {
    /// The text does not begin with [`WORD_PREFIX`].
    #[error("a relay word begins with \"byway-relay-\"")]
    Prefix,
    /// A character that no relay word contains.
    #[error("this relay word was mistyped: character {at} is {found:?}, which no relay word contains")]
    Character {
        /// The character that was found.
        found: char,
        /// The place of the character, counted from 1.
        at: usize,
    },
    /// The checksum is wrong.
    #[error("the relay word was not copied whole: its checksum does not fit")]
    Checksum,
    /// Made by another version of byway.
    #[error("the relay word has format {0}, this program reads format 1")]
    Version(u8),
    /// The checksum is right but the bytes are none of ours.
    #[error("the relay word cannot be read: it {0}")]
    Format(#[from] DecodeError),
    /// There is no address, there are more than [`MAX_ADDRESSES`], or one cannot be listened on.
    #[error("a relay word names one to four addresses, each with an IP and a port")]
    Addresses,
    /// The grant belongs to a registry's range, so the operator makes no relay word of it.
    #[error("grants of this kind are minted by registries alone")]
    Minted,
    /// The relay word is already narrowed.
    #[error("this relay word was narrowed before, and cannot be narrowed again")]
    Narrowed,
    /// Narrowing that would widen.
    #[error("the narrower word would allow more than the word it comes from")]
    Wider,
}

/// A grant with its secret, and the relay's addresses. [`Debug`] and [`Display`](fmt::Display)
/// leave the secret out; [`Word::reveal`] does not.
#[derive(Clone, PartialEq, Eq)]
pub struct Word {
    relays: Vec<SocketAddr>,
    grant: Grant,
    caveat: Option<Caveat>,
    secret: GrantSecret,
}

impl Word {
    /// Makes a relay word for the relay that listens at these addresses (all of the same relay).
    pub fn new(relays: Vec<SocketAddr>, grant: Grant, secret: GrantSecret) -> Result<Self, RelayWordError> {
        Self::checked(Self { relays, grant, caveat: None, secret })
    }

    fn checked(self) -> Result<Self, RelayWordError> {
        let counted = (1..=MAX_ADDRESSES).contains(&self.relays.len());
        let usable = self.relays.iter().all(|relay| relay.port() != 0 && !relay.ip().is_unspecified());
        if counted && usable { Ok(self) } else { Err(RelayWordError::Addresses) }
    }

    /// The relay's addresses: one to four.
    #[must_use]
    pub fn relays(&self) -> &[SocketAddr] {
        &self.relays
    }

    /// Returns the grant, as the operator made it.
    #[must_use]
    pub const fn grant(&self) -> &Grant {
        &self.grant
    }

    /// Returns the caveat that narrows the relay word. `None`: it is not narrowed.
    #[must_use]
    pub const fn caveat(&self) -> Option<&Caveat> {
        self.caveat.as_ref()
    }

    /// Returns the terms for the holder: the caveat's if the relay word is narrowed, or else the
    /// grant's.
    #[must_use]
    pub fn terms(&self) -> &Terms {
        self.caveat.as_ref().map_or(&self.grant.terms, |caveat| &caveat.terms)
    }

    /// Returns the key of the MACs on packets under this relay word.
    #[must_use]
    pub fn mac_key(&self) -> MacKey {
        self.secret.mac_key()
    }

    /// Makes a narrower relay word for another host, without the relay's help.
    pub fn narrow(&self, caveat: Caveat) -> Result<Self, RelayWordError> {
        if self.caveat.is_some() {
            return Err(RelayWordError::Narrowed);
        }
        if caveat.branch == 0 || !caveat.terms.within(&self.grant.terms) {
            return Err(RelayWordError::Wider);
        }
        Ok(Self {
            relays: self.relays.clone(),
            grant: self.grant,
            caveat: Some(caveat),
            secret: self.secret.narrow(&caveat),
        })
    }

    /// Reads a relay word from exactly these bytes.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, RelayWordError> {
        let mut reader = Reader::new(bytes);
        match reader.u8()? {
            WORD_VERSION => {}
            other => return Err(RelayWordError::Version(other)),
        }
        let flags = reader.u8()?;
        if flags & !NARROWED_FLAG != 0 {
            return Err(DecodeError::Range("flags").into());
        }
        let grant = Grant::read(&mut reader)?;
        let caveat = if flags & NARROWED_FLAG != 0 { Some(Caveat::read(&mut reader)?) } else { None };
        let secret = GrantSecret::new(reader.array()?);
        let count = usize::from(reader.u8()?);
        if count > MAX_ADDRESSES {
            return Err(RelayWordError::Addresses);
        }
        let mut relays = Vec::with_capacity(count);
        for _ in 0..count {
            relays.push(read_address(&mut reader)?);
        }
        if !reader.is_empty() {
            return Err(DecodeError::Range("length").into());
        }
        Self::checked(Self { relays, grant, caveat, secret })
    }

    /// Returns the bytes of the relay word, secret included.
    #[must_use]
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = vec![0; MAX_LEN];
        let mut writer = Writer::new(&mut bytes);
        writer.u8(WORD_VERSION);
        writer.u8(if self.caveat.is_some() { NARROWED_FLAG } else { 0 });
        self.grant.write(&mut writer);
        if let Some(caveat) = &self.caveat {
            caveat.write(&mut writer);
        }
        writer.bytes(self.secret.expose());
        writer.u8(self.relays.len() as u8); // at most MAX_ADDRESSES
        for relay in &self.relays {
            write_address(&mut writer, *relay);
        }
        let length = writer.len();
        bytes.truncate(length);
        bytes
    }

    /// Returns the text of the relay word, **secret included**: to be printed only for its holder.
    #[must_use]
    pub fn reveal(&self) -> String {
        let mut bytes = self.to_bytes();
        let text = checked_text::encode_with(WORD_PREFIX, &bytes, checked_text::checksum(&[&bytes]));
        bytes.zeroize();
        text
    }
}

impl FromStr for Word {
    type Err = RelayWordError;

    fn from_str(text: &str) -> Result<Self, RelayWordError> {
        let payload =
            checked_text::decode_with(WORD_PREFIX, text, |payload| checked_text::checksum(&[payload]));
        let mut bytes = payload.map_err(|error| match error {
            checked_text::TextError::Prefix => RelayWordError::Prefix,
            checked_text::TextError::Character { found, at } => RelayWordError::Character { found, at },
            checked_text::TextError::TooLong => RelayWordError::Checksum,
            checked_text::TextError::Checksum(mut bytes) => {
                bytes.zeroize();
                RelayWordError::Checksum
            }
        })?;
        let word = Self::from_bytes(&bytes);
        bytes.zeroize();
        word
    }
}

impl fmt::Display for Word {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "grant {} at relay", self.grant.id)?;
        self.relays.iter().try_for_each(|relay| write!(f, " {relay}"))
    }
}

impl fmt::Debug for Word {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Word")
            .field("relays", &self.relays)
            .field("grant", &self.grant)
            .field("caveat", &self.caveat)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::super::grant::tests::{any_caveat, any_grant, any_terms};
    use super::super::grant::{GRANT_EPOCH_SECONDS, Minute, QuotaClass, RateClass, Scope};
    use super::*;
    use alloc::format;
    use alloc::string::ToString;
    use proptest::prelude::*;

    fn word() -> Word {
        let terms = Terms {
            expiry: Minute::from_unix(GRANT_EPOCH_SECONDS + 60),
            rate: RateClass(0x80),
            quota: QuotaClass(0x90),
            scope: Scope::ALL,
        };
        let relays = vec!["192.0.2.1:4748".parse().unwrap(), "[2001:db8::1]:4748".parse().unwrap()];
        Word::new(relays, Grant { id: 42, terms }, GrantSecret::new(*b"0123456789abcdef")).unwrap()
    }

    #[test]
    fn frozen_bytes_and_text() {
        let word = word();
        let expected = [
            b"\x01\x00\x00\x00\x00\x2a\x00\x00\x01\x80\x90\x07".as_slice(),
            b"0123456789abcdef\x02",
            b"\x04\xc0\x00\x02\x01\x12\x8c",
            b"\x10\x20\x01\x0d\xb8\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x01\x12\x8c",
        ]
        .concat();
        assert_eq!(word.to_bytes(), expected);
        let text = concat!(
            "byway-relay-",
            "aeaaaaaafiaaaamasadtamjsgm2dknrxha4wcytdmrswmaqeyaaaeaisrqicaainxaaaaaaaaaaaaaaaaaaaceum4ottj3i"
        );
        assert_eq!(word.reveal(), text);
        assert_eq!(word.reveal().to_uppercase().parse(), Ok(word));
    }

    #[test]
    fn what_is_shown_holds_no_secret() {
        let word = word();
        assert_eq!(word.to_string(), "grant 42 at relay 192.0.2.1:4748 [2001:db8::1]:4748");
        let shown = format!("{word:?} {word}");
        assert!(shown.contains("id: 42"));
        assert!(!shown.contains("0123") && !shown.contains("48, 49, 50") && !shown.contains("30, 31, 32"));
    }

    #[test]
    fn each_slip_has_its_own_error() {
        let text = word().reveal();
        assert_eq!("".parse::<Word>(), Err(RelayWordError::Prefix));
        assert_eq!("byway-ticket-aa".parse::<Word>(), Err(RelayWordError::Prefix));
        assert_eq!("byway-relay-".parse::<Word>(), Err(RelayWordError::Checksum));
        let stray = RelayWordError::Character { found: '!', at: text.len() + 1 };
        assert_eq!(format!("{text}!").parse::<Word>(), Err(stray));
        let slip = if text.ends_with('a') { "b" } else { "a" };
        let slipped = format!("{}{slip}", &text[..text.len() - 1]);
        assert_eq!(slipped.parse::<Word>(), Err(RelayWordError::Checksum));
        let mut later = word().to_bytes();
        later[0] = 2;
        assert_eq!(Word::from_bytes(&later), Err(RelayWordError::Version(2)));
        let mut longer = word().to_bytes();
        longer.push(0);
        assert_eq!(Word::from_bytes(&longer), Err(RelayWordError::Format(DecodeError::Range("length"))));
        for bad in [vec![], vec!["192.0.2.1:0".parse().unwrap()], vec!["0.0.0.0:5".parse().unwrap()]] {
            assert_eq!(
                Word::new(bad, *word().grant(), GrantSecret::new([0; 16])),
                Err(RelayWordError::Addresses)
            );
        }
    }

    #[test]
    fn a_narrower_word_is_made_once_and_never_wider() {
        let word = word();
        let terms = *word.terms();
        let less = Terms { rate: RateClass(0x70), ..terms };
        let narrowed = word.narrow(Caveat { branch: 1, terms: less }).unwrap();
        assert_eq!(narrowed.terms(), &less);
        assert_eq!(narrowed.grant(), word.grant());
        assert_eq!(narrowed.reveal().parse(), Ok(narrowed.clone()));
        assert_eq!(narrowed.narrow(Caveat { branch: 2, terms: less }), Err(RelayWordError::Narrowed));
        let more = Terms { rate: RateClass::UNLIMITED, ..terms };
        assert_eq!(word.narrow(Caveat { branch: 1, terms: more }), Err(RelayWordError::Wider));
        let later = Terms { expiry: Minute::MAX, ..terms };
        assert_eq!(word.narrow(Caveat { branch: 1, terms: later }), Err(RelayWordError::Wider));
    }

    proptest! {
        #[test]
        fn round_trip(grant in any_grant(), caveat in prop::option::of(any_caveat()), secret: [u8; 16],
                      relays in prop::collection::vec((any::<[u8; 16]>(), 1u16..), 1..=MAX_ADDRESSES)) {
            let relays: Vec<SocketAddr> = relays.into_iter().map(SocketAddr::from).collect();
            prop_assume!(relays.iter().all(|relay| !relay.ip().is_unspecified()));
            let word = Word { relays, grant, caveat, secret: GrantSecret::new(secret) };
            prop_assert_eq!(Word::from_bytes(&word.to_bytes()), Ok(word.clone()));
            let text = word.reveal();
            prop_assert!(text.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-'));
            prop_assert_eq!(text.parse(), Ok(word));
        }

        #[test]
        fn narrowing_follows_the_terms(grant in any_grant(), terms in any_terms()) {
            let word = Word { grant, ..word() };
            prop_assert_eq!(word.narrow(Caveat { branch: 3, terms }).is_ok(), terms.within(&grant.terms));
        }

        #[test]
        fn garbage_never_panics(bytes in prop::collection::vec(any::<u8>(), 0..150), text in "\\PC{0,80}") {
            let _ = Word::from_bytes(&bytes);
            let _ = text.parse::<Word>();
            let _ = alloc::format!("{WORD_PREFIX}{text}").parse::<Word>();
        }
    }
}
