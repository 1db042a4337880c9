//! The notice: a relay tells a sender why it dropped a packet.
//!
//! ```text
//! NOTICE   0x6e, reason (1), grant id (4), echo (8), relay's time in Unix seconds (4), retry after s (4), MAC (8)
//! ```
//!
//! | field | content |
//! |---|---|
//! | echo | the refused packet's consent tag or nonce, which only hosts on the path know |
//! | MAC | under the refused packet's key; 0 if that packet's MAC was wrong: then only a hint |
//!
//! No notice is larger than the packet that it answers, and a relay limits the rate of notices.

use super::message::MESSAGE_NOTICE;
use super::secret::MacKey;
use crate::codec::{DecodeError, Reader, Writer};
use core::fmt;

/// Bytes of a notice; fewer than any envelope or greeting.
pub const NOTICE_LEN: usize = 30;

/// Why a relay dropped a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum Reason {
    /// The MAC is wrong: the relay word was made under another key, or was revoked by a new key.
    /// Never authenticated.
    UnknownWord = 1,
    /// The relay word has expired.
    Expired = 2,
    /// The relay word's quota for today is used up.
    OverQuota = 3,
    /// The packets are faster than the relay word allows.
    OverRate = 4,
    /// The destination has not consented under this grant.
    NoConsent = 5,
    /// The destination's consent has run out.
    ConsentExpired = 6,
    /// The relay does not send to destinations of this kind.
    Destination = 7,
    /// The packet's time is too far from the relay's. The notice carries the relay's time: set the
    /// clock by it.
    Clock = 8,
    /// The relay word does not permit this use.
    Scope = 9,
    /// The narrowed relay word permits more than the one from which it was made.
    Wider = 10,
    /// The relay has the largest number of accounts.
    Busy = 11,
    /// The relay has no socket of the destination's address family.
    Unreachable = 12,
    /// The relay word was minted by a registry to which the relay gave no such range of grants.
    /// Never authenticated.
    UnknownRange = 13,
    /// The registry's epoch in which the relay word was minted is over: ask the registry for a new
    /// one.
    EpochOver = 14,
    /// The relay has used up its operator's limit for today or for this month.
    RelayQuota = 15,
    /// The relay ends soon, and accepts only relay words that are already in use.
    Draining = 16,
    /// The cookie belongs to another address, or was made before yesterday: greet the relay again
    /// for a valid one. The relay word is valid.
    StaleCookie = 17,
    /// The relay remembers no receiver with this tag: none greeted it in the last two days, or
    /// since it started.
    NoReceiver = 18,
    /// The relay's operator gave the relay word under a name, and revoked it.
    Revoked = 19,
}

impl Reason {
    /// All reasons, in the order of their numbers.
    pub const ALL: [Self; 19] = [
        Self::UnknownWord,
        Self::Expired,
        Self::OverQuota,
        Self::OverRate,
        Self::NoConsent,
        Self::ConsentExpired,
        Self::Destination,
        Self::Clock,
        Self::Scope,
        Self::Wider,
        Self::Busy,
        Self::Unreachable,
        Self::UnknownRange,
        Self::EpochOver,
        Self::RelayQuota,
        Self::Draining,
        Self::StaleCookie,
        Self::NoReceiver,
        Self::Revoked,
    ];

    /// Whether the relay word itself is useless at this relay, for any packet, now and later.
    #[must_use]
    pub const fn is_of_word(self) -> bool {
        matches!(
            self,
            Self::UnknownWord
                | Self::Expired
                | Self::Scope
                | Self::Wider
                | Self::UnknownRange
                | Self::EpochOver
                | Self::Revoked
        )
    }

    fn from_byte(byte: u8) -> Result<Self, DecodeError> {
        Self::ALL.into_iter().find(|reason| *reason as u8 == byte).ok_or(DecodeError::Range("notice reason"))
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::UnknownWord => "the relay does not know this word: it is not this relay's, or was revoked",
            Self::Expired => "the relay word has expired",
            Self::OverQuota => "the relay word's quota for today is used up",
            Self::OverRate => "faster than the relay word allows",
            Self::NoConsent => "the receiver did not consent to be reached through the relay",
            Self::ConsentExpired => "the receiver's consent has run out",
            Self::Destination => "the relay does not send to such addresses",
            Self::Clock => "the packet's time is too far from the relay's clock",
            Self::Scope => "the relay word does not allow this use",
            Self::Wider => "the narrowed relay word allows more than the one it comes from",
            Self::Busy => "the relay has no room for another word",
            Self::Unreachable => "the relay cannot send to this address family",
            Self::UnknownRange => "the relay is not enrolled at the registry that minted the word",
            Self::EpochOver => "the time in which the registry minted the word is over: a new word is needed",
            Self::RelayQuota => "the relay carried as much as its operator lets it",
            Self::Draining => "the relay ends soon and takes no new words",
            Self::StaleCookie => "the relay knew the sender by another address",
            Self::NoReceiver => "the relay has not heard of the receiver lately",
            Self::Revoked => "the relay word was revoked",
        })
    }
}

/// A relay's refusal of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Notice {
    /// Why the relay did not forward.
    pub reason: Reason,
    /// The grant of the refused packet.
    pub grant: u32,
    /// The consent tag of the refused packet, or the nonce of the refused greeting.
    pub echo: [u8; 8],
    /// The relay's clock, in Unix seconds.
    pub unix: u32,
    /// Seconds after which the same packet may pass; 0 if waiting does not help.
    pub retry_after: u32,
    mac: u64,
}

impl Notice {
    /// Makes a notice under the key of the relay word that the packet was proved to be sent under.
    /// `None`: it is not authenticated.
    #[must_use]
    pub fn new(
        reason: Reason,
        grant: u32,
        echo: [u8; 8],
        unix: u64,
        retry_after: u32,
        key: Option<&MacKey>,
    ) -> Self {
        let unix = u32::try_from(unix).unwrap_or(u32::MAX);
        let mut notice = Self { reason, grant, echo, unix, retry_after, mac: 0 };
        if let Some(key) = key {
            notice.mac = notice.expected(key);
        }
        notice
    }

    /// Reads a notice. The content is unproven until [`is_authentic`](Self::is_authentic) returns
    /// true.
    pub fn read(packet: &[u8]) -> Result<Self, DecodeError> {
        let mut reader = Reader::new(packet);
        match reader.u8()? {
            MESSAGE_NOTICE => {}
            other => return Err(DecodeError::UnknownType(other)),
        }
        Ok(Self {
            reason: Reason::from_byte(reader.u8()?)?,
            grant: reader.u32()?,
            echo: reader.array()?,
            unix: reader.u32()?,
            retry_after: reader.u32()?,
            mac: reader.u64()?,
        })
    }

    /// Writes [`NOTICE_LEN`] bytes.
    pub fn write(&self, writer: &mut Writer<'_>) {
        self.write_body(writer);
        writer.u64(self.mac);
    }

    /// Whether the notice was made with this relay word's key, which the relay and all holders of
    /// the word have.
    #[must_use]
    pub fn is_authentic(&self, key: &MacKey) -> bool {
        self.mac == self.expected(key)
    }

    fn write_body(&self, writer: &mut Writer<'_>) {
        writer.u8(MESSAGE_NOTICE);
        writer.u8(self.reason as u8);
        writer.u32(self.grant);
        writer.bytes(&self.echo);
        writer.u32(self.unix);
        writer.u32(self.retry_after);
    }

    fn expected(&self, key: &MacKey) -> u64 {
        let mut bytes = [0; NOTICE_LEN - 8];
        self.write_body(&mut Writer::new(&mut bytes));
        key.mac(MESSAGE_NOTICE, self.unix.into(), &bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::super::message::tests::bytes;
    use super::super::secret::GrantSecret;
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn in_hex() {
        let key = GrantSecret::new([3; 16]).mac_key();
        let notice = Notice::new(Reason::OverQuota, 0x0102_0304, *b"ECHO5678", 0x6b49_d200, 3600, Some(&key));
        let body = b"\x6e\x03\x01\x02\x03\x04ECHO5678\x6b\x49\xd2\x00\x00\x00\x0e\x10";
        let written = bytes(|w| notice.write(w));
        assert_eq!(written[..22], *body);
        assert_eq!(written[22..], *b"\xcd\x0c\x4e\xf1\x63\x05\xfb\xe0");
        assert_eq!(written.len(), NOTICE_LEN);
        let hint = Notice::new(Reason::UnknownWord, 1, [0; 8], 1, 0, None);
        assert_eq!(bytes(|w| hint.write(w))[22..], [0; 8]);
    }

    proptest! {
        #[test]
        fn round_trip_and_no_forgery(reason in prop::sample::select(&Reason::ALL), grant: u32, echo: [u8; 8], unix: u32, retry_after: u32, bit in 0usize..NOTICE_LEN * 8) {
            let key = GrantSecret::new([3; 16]).mac_key();
            let notice = Notice::new(reason, grant, echo, unix.into(), retry_after, Some(&key));
            let mut written = bytes(|w| notice.write(w));
            prop_assert_eq!(Notice::read(&written), Ok(notice));
            prop_assert!(notice.is_authentic(&key));
            prop_assert!(!notice.is_authentic(&GrantSecret::new([4; 16]).mac_key()));
            prop_assert!(!Notice::new(reason, grant, echo, unix.into(), retry_after, None).is_authentic(&key));
            written[bit / 8] ^= 1 << (bit % 8);
            prop_assert!(!Notice::read(&written).is_ok_and(|forged| forged.is_authentic(&key)));
        }

        #[test]
        fn garbage_never_panics(mut garbage in prop::collection::vec(any::<u8>(), 0..60)) {
            garbage.insert(0, MESSAGE_NOTICE);
            let _ = Notice::read(&garbage);
        }
    }
}
