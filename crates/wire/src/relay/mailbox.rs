//! Mailboxes: two hosts that know nothing of each other leave letters for each other at a relay.
//! So people pair hosts by a short code. Each letter is sealed by its host, so the relay reads
//! none.
//!
//! ```text
//! MAILBOX  0x72, nonce (8), grant (10, zeros: none), caveat (7, zeros: none), seat (8), number (2), page (1),
//!          letter's length (2), letter (1,100, with zeros behind it), MAC (8)
//! MAILED   0x73, nonce (8), number (2), state (1), letter's length (2), letter, MAC (8)
//! ```
//!
//! | field | content |
//! |---|---|
//! | grant | of the host's word; a stranger to the relay has none, and opens no mailbox |
//! | seat | a random name of the host at this mailbox; a mailbox has two seats |
//! | number | which mailbox; 0 opens one, and the relay chooses its number |
//! | page | 0 or 1: a host leaves two letters at most, one a page, and reads the other's of that page |
//! | letter | what the host leaves; empty: nothing |
//! | state | see [`MailboxState`] |
//! | MAC of MAILBOX | under the word's key, over the [cookie](super::Greeted::cookie) of the host's address and all bytes before |
//! | MAC of MAILED | under the word's key, over the nonce and all bytes before |
//!
//! A stranger's MACs are under a key of zeros, and its cookie is that of grant 0: they prove its
//! address alone. A request is at least as long as each answer.

use super::grant::{CAVEAT_LEN, Caveat, GRANT_LEN, Grant};
use super::secret::MacKey;
use super::word::Word;
use crate::codec::{DecodeError, Reader, Writer};

/// Bytes of the longest letter.
pub const LETTER_MAX: usize = 1_100;
/// Bytes of a request.
pub const MAILBOX_LEN: usize = LETTER_AT + LETTER_MAX + 8;
/// Bytes of the longest answer; shorter than a request.
pub const MAILED_MAX: usize = 1 + 8 + 2 + 1 + 2 + LETTER_MAX + 8;
/// Letters of one host in a mailbox.
pub const PAGE_COUNT: usize = 2;
/// The first byte of a request.
pub const MAILBOX_TYPE: u8 = 0x72;

const MAILED_TYPE: u8 = 0x73;
/// The place of the letter in a request. The fields before it are in the order of the table.
const LETTER_AT: usize = 1 + 8 + GRANT_LEN + CAVEAT_LEN + 8 + 2 + 1 + 2;
const MAC_AT: usize = MAILBOX_LEN - 8;

/// A host's request at a mailbox. Its fields are not proved until
/// [`is_authentic`](Self::is_authentic) returns true.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MailboxRequest<'a> {
    /// A random number for each request, which the answer repeats.
    pub nonce: [u8; 8],
    /// The grant of the relay word under which the host asks, and the caveat that narrows it.
    /// `None`: a host without a relay word asks.
    pub word: Option<(Grant, Option<Caveat>)>,
    /// The host's own random name at this mailbox.
    pub seat: [u8; 8],
    /// The mailbox. `None`: the relay is to open one.
    pub number: Option<u16>,
    /// The page to write on and to read, less than [`PAGE_COUNT`].
    pub page: u8,
    /// The letter that the host leaves. Empty: none.
    pub letter: &'a [u8],
    mac: u64,
}

impl<'a> MailboxRequest<'a> {
    /// Reads a request, which has [`MAILBOX_LEN`] bytes.
    pub fn read(packet: &'a [u8]) -> Result<Self, DecodeError> {
        let mut reader = Reader::new(packet);
        match reader.u8()? {
            MAILBOX_TYPE => {}
            other => return Err(DecodeError::UnknownType(other)),
        }
        if packet.len() != MAILBOX_LEN {
            return Err(DecodeError::Range("length"));
        }
        let nonce = reader.array()?;
        let grant = unless_zeros(reader.bytes(GRANT_LEN)?, Grant::read)?;
        let caveat = unless_zeros(reader.bytes(CAVEAT_LEN)?, Caveat::read)?;
        if grant.is_none() && caveat.is_some() {
            return Err(DecodeError::Range("caveat"));
        }
        let (seat, number, page) = (reader.array()?, reader.u16()?, reader.u8()?);
        if usize::from(page) >= PAGE_COUNT {
            return Err(DecodeError::Range("page"));
        }
        let letter = read_letter(&mut reader)?;
        if reader.bytes(LETTER_MAX - letter.len())?.iter().any(|byte| *byte != 0) {
            return Err(DecodeError::Range("zeros"));
        }
        let number = Some(number).filter(|number| *number != 0);
        let word = grant.map(|grant| (grant, caveat));
        Ok(Self { nonce, word, seat, number, page, letter, mac: reader.u64()? })
    }

    /// Whether a holder of the relay word with this key made the request in `packet`, at the
    /// address to which the relay gave `cookie`.
    #[must_use]
    pub fn is_authentic(&self, packet: &[u8], key: &MacKey, cookie: u64) -> bool {
        packet.get(..MAC_AT).is_some_and(|covered| key.mac(MAILBOX_TYPE, cookie, covered) == self.mac)
    }
}

/// A host at the mailboxes of a relay: writes requests, and checks the answers.
#[derive(Clone, Debug)]
pub struct MailboxKey {
    word: Option<(Grant, Option<Caveat>)>,
    key: MacKey,
    seat: [u8; 8],
}

impl MailboxKey {
    /// Makes the key of a host with or without a relay word. `seat`: a random name, which the host
    /// keeps for all its requests about a mailbox.
    #[must_use]
    pub fn new(word: Option<&Word>, seat: [u8; 8]) -> Self {
        let key = word.map_or_else(MacKey::of_strangers, Word::mac_key);
        Self { word: word.map(|word| (*word.grant(), word.caveat().copied())), key, seat }
    }

    /// The id of the grant for which the host needs a cookie.
    #[must_use]
    pub fn grant_id(&self) -> u32 {
        self.word.map_or(0, |(grant, _)| grant.id)
    }

    /// Writes a request. `number`: the mailbox; `None` opens one. `letter`: at most [`LETTER_MAX`]
    /// bytes are written. `cookie`: the one of this host's address.
    pub fn write(
        &self,
        buffer: &mut [u8; MAILBOX_LEN],
        nonce: [u8; 8],
        (number, page): (Option<u16>, u8),
        letter: &[u8],
        cookie: u64,
    ) {
        buffer.fill(0);
        let letter = letter.get(..LETTER_MAX).unwrap_or(letter);
        let mut writer = Writer::new(buffer);
        writer.u8(MAILBOX_TYPE);
        writer.bytes(&nonce);
        match &self.word {
            Some((grant, _)) => grant.write(&mut writer),
            None => writer.bytes(&[0; GRANT_LEN]),
        }
        match &self.word {
            Some((_, Some(caveat))) => caveat.write(&mut writer),
            _ => writer.bytes(&[0; CAVEAT_LEN]),
        }
        writer.bytes(&self.seat);
        writer.u16(number.unwrap_or_default());
        writer.u8(page);
        writer.u16(letter.len() as u16); // at most LETTER_MAX
        writer.bytes(letter);
        let (covered, mac) = buffer.split_at_mut(MAC_AT);
        mac.copy_from_slice(&self.key.mac(MAILBOX_TYPE, cookie, covered).to_be_bytes());
    }

    /// Reads the relay's answer, and checks that it was made with the relay word's key.
    pub fn read<'a>(&self, packet: &'a [u8]) -> Result<MailboxAnswer<'a>, DecodeError> {
        let answer = MailboxAnswer::read(packet)?;
        let (covered, mac) = packet.split_last_chunk::<8>().ok_or(DecodeError::Truncated)?;
        if answer.mac_with(&self.key, covered).to_be_bytes() == *mac {
            Ok(answer)
        } else {
            Err(DecodeError::Range("MAC"))
        }
    }

    /// Returns the key of the relay word.
    #[must_use]
    pub const fn mac_key(&self) -> &MacKey {
        &self.key
    }
}

/// The result of a request about a mailbox.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MailboxState {
    /// The host has a seat, and its letter is kept. The answer has the other host's letter of this
    /// page, or none if there is none yet.
    Seated = 0,
    /// There is no such mailbox, or it has expired.
    Missing = 1,
    /// Two other hosts have the seats.
    Taken = 2,
    /// The relay has no room for another mailbox, or the grant has the most that it may have.
    Full = 3,
}

/// The answer to a request about a mailbox.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MailboxAnswer<'a> {
    /// The nonce of the request.
    pub nonce: [u8; 8],
    /// The mailbox.
    pub number: u16,
    /// The result of the request.
    pub state: MailboxState,
    /// The letter of the other host on the page.
    pub letter: &'a [u8],
}

impl<'a> MailboxAnswer<'a> {
    /// Reads an answer without authenticating it.
    fn read(packet: &'a [u8]) -> Result<Self, DecodeError> {
        let mut reader = Reader::new(packet);
        match reader.u8()? {
            MAILED_TYPE => {}
            other => return Err(DecodeError::UnknownType(other)),
        }
        let (nonce, number) = (reader.array()?, reader.u16()?);
        let state = match reader.u8()? {
            0 => MailboxState::Seated,
            1 => MailboxState::Missing,
            2 => MailboxState::Taken,
            3 => MailboxState::Full,
            _ => return Err(DecodeError::Range("state")),
        };
        let letter = read_letter(&mut reader)?;
        reader.u64()?;
        match reader.is_empty() {
            true => Ok(Self { nonce, number, state, letter }),
            false => Err(DecodeError::Range("length")),
        }
    }

    /// Whether a packet answers the request with this nonce.
    #[must_use]
    pub fn answers(packet: &[u8], nonce: [u8; 8]) -> bool {
        packet.first() == Some(&MAILED_TYPE) && packet.get(1..9) == Some(&nonce)
    }

    /// Writes at most [`MAILED_MAX`] bytes, with the MAC of the relay word's key. Returns the
    /// number of bytes.
    pub fn write(&self, buffer: &mut [u8; MAILED_MAX], key: &MacKey) -> usize {
        let letter = self.letter.get(..LETTER_MAX).unwrap_or(self.letter);
        let mut writer = Writer::new(buffer);
        writer.u8(MAILED_TYPE);
        writer.bytes(&self.nonce);
        writer.u16(self.number);
        writer.u8(self.state as u8);
        writer.u16(letter.len() as u16); // at most LETTER_MAX
        writer.bytes(letter);
        let mac = self.mac_with(key, writer.written());
        writer.u64(mac);
        writer.len()
    }

    fn mac_with(&self, key: &MacKey, covered: &[u8]) -> u64 {
        key.mac(MAILED_TYPE, u64::from_be_bytes(self.nonce), covered)
    }
}

/// Reads a field with `read`. `None`: the field is zeros.
fn unless_zeros<T>(
    field: &[u8],
    read: impl Fn(&mut Reader<'_>) -> Result<T, DecodeError>,
) -> Result<Option<T>, DecodeError> {
    match field.iter().all(|byte| *byte == 0) {
        true => Ok(None),
        false => read(&mut Reader::new(field)).map(Some),
    }
}

fn read_letter<'a>(reader: &mut Reader<'a>) -> Result<&'a [u8], DecodeError> {
    let length = usize::from(reader.u16()?);
    if length > LETTER_MAX { Err(DecodeError::Range("letter's length")) } else { reader.bytes(length) }
}

#[cfg(test)]
mod tests {
    use super::super::grant::tests::{any_caveat, any_grant};
    use super::super::secret::GrantSecret;
    use super::*;
    use alloc::vec;
    use alloc::vec::Vec;
    use proptest::prelude::*;

    fn key(word: Option<(Grant, Option<Caveat>)>) -> MailboxKey {
        let of_grant = |grant| Word::new(vec![([9, 9, 9, 9], 1).into()], grant, GrantSecret::new([3; 16]));
        let made = word.map(|(grant, _)| of_grant(grant).unwrap());
        MailboxKey { word, ..MailboxKey::new(made.as_ref(), *b"a seat !") }
    }

    proptest! {
        #[test]
        fn requests_round_trip_and_are_of_one_word_and_one_cookie(word in prop::option::of((any_grant(), prop::option::of(any_caveat()))), number: u16, page in 0u8..2, letter in prop::collection::vec(any::<u8>(), 0..=LETTER_MAX), cookie: u64, bit in 0usize..MAILBOX_LEN * 8) {
            let key = key(word);
            let number = Some(number).filter(|number| *number != 0);
            let mut packet = [0xaa; MAILBOX_LEN];
            key.write(&mut packet, [7; 8], (number, page), &letter, cookie);
            let request = MailboxRequest::read(&packet).unwrap();
            prop_assert_eq!((request.nonce, request.word), ([7; 8], word));
            prop_assert_eq!((request.seat, request.number, request.page), (key.seat, number, page));
            prop_assert_eq!(request.letter, &letter);
            prop_assert!(request.is_authentic(&packet, &key.key, cookie));
            prop_assert!(!request.is_authentic(&packet, &key.key, cookie ^ 1));
            prop_assert!(!request.is_authentic(&packet, &GrantSecret::new([4; 16]).mac_key(), cookie));
            packet[bit / 8] ^= 1 << (bit % 8);
            prop_assert!(!MailboxRequest::read(&packet).is_ok_and(|it| it.is_authentic(&packet, &key.key, cookie)));
        }

        #[test]
        fn answers_round_trip_and_are_of_one_word(nonce: [u8; 8], number: u16, state in 0usize..4, letter in prop::collection::vec(any::<u8>(), 0..=LETTER_MAX), bit: prop::sample::Index) {
            let key = key(None);
            let states = [MailboxState::Seated, MailboxState::Missing, MailboxState::Taken, MailboxState::Full];
            let answer = MailboxAnswer { nonce, number, state: states[state], letter: &letter };
            let mut packet = [0; MAILED_MAX];
            let length = answer.write(&mut packet, key.mac_key());
            let packet = &mut packet[..length];
            prop_assert!(MailboxAnswer::answers(packet, nonce));
            prop_assert_eq!(key.read(packet), Ok(answer));
            let bit = bit.index(length * 8);
            packet[bit / 8] ^= 1 << (bit % 8);
            prop_assert!(key.read(packet).is_err());
        }

        #[test]
        fn garbage_never_panics(kind in 0x70u8..0x76, mut garbage in prop::collection::vec(any::<u8>(), 0..2 * MAILBOX_LEN)) {
            garbage.insert(0, kind);
            let key = key(None);
            let _ = (MailboxRequest::read(&garbage), key.read(&garbage));
            let _: Vec<u8> = garbage;
        }
    }

    #[test]
    fn no_answer_is_longer_than_its_request() {
        const { assert!(MAILED_MAX < MAILBOX_LEN) };
    }
}
