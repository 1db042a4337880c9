//! From the words of a code to keys that only the two hosts have, and letters sealed with them
//! (ChaCha20-Poly1305, RFC 8439). The method is SPAKE2 of RFC 9382, with the constants and the
//! transcript of the crate `spake2`, which are older.

use super::code::CodeWords;
use rand_core::{CryptoRng, RngCore};
use ring::aead::{Aad, CHACHA20_POLY1305, LessSafeKey, NONCE_LEN, Nonce, UnboundKey};
use spake2::{Ed25519Group, Identity, Password, Spake2};
use zeroize::Zeroize;

/// The side of a host in a pairing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PairingSide {
    /// The host that opened the mailbox and made the code.
    Opener,
    /// The host at which the code was typed.
    Guest,
}

impl PairingSide {
    const fn identity(self) -> &'static [u8] {
        match self {
            Self::Opener => b"byway pairing v1 opener",
            Self::Guest => b"byway pairing v1 guest",
        }
    }

    const fn letter_context(self) -> &'static str {
        match self {
            Self::Opener => "byway pairing v1 letter of the opener",
            Self::Guest => "byway pairing v1 letter of the guest",
        }
    }

    const fn other(self) -> Self {
        match self {
            Self::Opener => Self::Guest,
            Self::Guest => Self::Opener,
        }
    }
}

/// Random bytes that follow from a seed.
pub(super) struct SeededRandom(blake3::OutputReader);

impl SeededRandom {
    pub(super) fn new(seed: &[u8; 32]) -> Self {
        let mut hasher = blake3::Hasher::new_derive_key("byway pairing v1 random bytes");
        Self(hasher.update(seed).finalize_xof())
    }

    pub(super) fn array<const N: usize>(&mut self) -> [u8; N] {
        let mut bytes = [0; N];
        self.0.fill(&mut bytes);
        bytes
    }
}

impl RngCore for SeededRandom {
    fn next_u32(&mut self) -> u32 {
        u32::from_le_bytes(self.array())
    }

    fn next_u64(&mut self) -> u64 {
        u64::from_le_bytes(self.array())
    }

    fn fill_bytes(&mut self, bytes: &mut [u8]) {
        self.0.fill(bytes);
    }

    fn try_fill_bytes(&mut self, bytes: &mut [u8]) -> Result<(), rand_core::Error> {
        self.0.fill(bytes);
        Ok(())
    }
}

impl CryptoRng for SeededRandom {}

/// The key agreement (SPAKE2) of a host that has sent its message and waits for the peer's.
pub(super) struct KeyAgreement {
    side: PairingSide,
    spake: Spake2<Ed25519Group>,
}

impl KeyAgreement {
    /// Begins a key agreement. Also returns the message for the other host.
    pub(super) fn new(side: PairingSide, words: CodeWords, random: &mut SeededRandom) -> (Self, Vec<u8>) {
        let (opener, guest) =
            (Identity::new(PairingSide::Opener.identity()), Identity::new(PairingSide::Guest.identity()));
        let password = Password::new(words.password());
        let (spake, message) = match side {
            PairingSide::Opener => Spake2::start_a_with_rng(&password, &opener, &guest, random),
            PairingSide::Guest => Spake2::start_b_with_rng(&password, &opener, &guest, random),
        };
        (Self { side, spake }, message)
    }

    /// Returns the keys that follow from the other host's message. Different words give different
    /// keys. `None`: the message is not valid.
    pub(super) fn finish(self, message: &[u8]) -> Option<LetterKeys> {
        let mut shared = self.spake.finish(message).ok()?;
        let key_of = |side: PairingSide| {
            let mut key = blake3::derive_key(side.letter_context(), &shared);
            let unbound = UnboundKey::new(&CHACHA20_POLY1305, &key);
            key.zeroize();
            Some(LessSafeKey::new(unbound.ok()?))
        };
        let keys = key_of(self.side).zip(key_of(self.side.other()));
        shared.zeroize();
        let (own, others) = keys?;
        Some(LetterKeys { own, others })
    }
}

/// The keys of the two letters. Each seals one letter, so its nonce is zero.
pub(super) struct LetterKeys {
    own: LessSafeKey,
    others: LessSafeKey,
}

impl LetterKeys {
    /// Seals this host's letter. `None`: it is too long for the cipher.
    pub(super) fn seal(&self, letter: &[u8]) -> Option<Vec<u8>> {
        let mut sealed = letter.to_vec();
        self.own.seal_in_place_append_tag(nonce(), Aad::empty(), &mut sealed).ok()?;
        Some(sealed)
    }

    /// Opens the other host's letter. `None`: it was sealed with another key.
    pub(super) fn open(&self, sealed: &[u8]) -> Option<Vec<u8>> {
        let mut letter = sealed.to_vec();
        let length = self.others.open_in_place(nonce(), Aad::empty(), &mut letter).ok()?.len();
        letter.truncate(length);
        Some(letter)
    }
}

fn nonce() -> Nonce {
    Nonce::assume_unique_for_key([0; NONCE_LEN])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn agreement(side: PairingSide, words: [u8; 2], seed: u8) -> (KeyAgreement, Vec<u8>) {
        KeyAgreement::new(side, CodeWords::new(words), &mut SeededRandom::new(&[seed; 32]))
    }

    #[test]
    fn one_code_gives_one_pair_of_keys_and_another_code_gives_others() {
        for guess in [[1, 2], [2, 1], [1, 3]] {
            let (opener, to_guest) = agreement(PairingSide::Opener, [1, 2], 1);
            let (guest, to_opener) = agreement(PairingSide::Guest, guess, 2);
            let (opener, guest) = (opener.finish(&to_opener).unwrap(), guest.finish(&to_guest).unwrap());
            let is_right = guess == [1, 2];
            let (there, back) = (opener.seal(b"there").unwrap(), guest.seal(b"back").unwrap());
            assert_eq!(guest.open(&there).is_some_and(|letter| letter == b"there"), is_right);
            assert_eq!(opener.open(&back).is_some_and(|letter| letter == b"back"), is_right);
            assert!(opener.open(&there).is_none(), "its own letter, sent back");
        }
    }

    #[test]
    fn messages_that_are_none_are_refused() {
        let (_, own) = agreement(PairingSide::Opener, [1, 2], 1);
        for message in [&own[..], &[], &[0; 33], &own[..32]] {
            let (opener, _) = agreement(PairingSide::Opener, [1, 2], 1);
            assert!(opener.finish(message).is_none(), "{message:?}");
        }
    }

    #[test]
    fn a_seed_decides_all() {
        let message = |seed| agreement(PairingSide::Guest, [1, 2], seed).1;
        assert_eq!(message(1), message(1));
        assert_ne!(message(1), message(2));
    }
}
