//! Grants that a registry makes (mints) in a relay's name. The relay gives the registry the key of
//! a *range* of grant ids. The registry derives the secrets of these grants. Grant and secret form
//! a relay word: a sender's permission to use the relay.
//!
//! ```text
//! bit 31      30..24       23              22..0
//! 0           the operator's own grant: 31 bits of entropy
//! 1           range (7)    parity (1)      serial (23)
//!
//! relay key (32) ──KDF──> ranges key ──PRF(range)──> range key (32) ──PRF("epoch", epoch)──> epoch key (32)
//!                                                         │                                    └──PRF(grant)──> secret (16)
//!                                                         └──PRF("heartbeat")──> MAC key of heartbeats (16)
//! ```
//!
//! | term | meaning |
//! |---|---|
//! | **epoch** | a number that the registry increases to revoke older relay words |
//! | valid words | those of the current epoch, and for a time those of the epoch before |
//! | parity | whether the word's epoch is odd: tells the current epoch from the one before |
//! | PRF | BLAKE3 in keyed mode |

use super::grant::Grant;
use super::secret::{GrantSecret, MacKey, half};
use core::fmt;
use zeroize::Zeroize;

/// The number of ranges of a relay. Each registry gets its own range.
pub const RANGE_COUNT: usize = 128;
/// Number of serials of a range in an epoch.
pub const SERIAL_COUNT: u32 = 1 << 23;

const MINTED_BIT: u32 = 1 << 31;
const RANGE_SHIFT: u32 = 24;
const EPOCH_PARITY_BIT: u32 = SERIAL_COUNT;

/// The party that gave a grant, encoded in the grant's id.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum GrantId {
    /// The relay's operator gave the grant. The number has 31 bits.
    Own(u32),
    /// A registry gave the grant.
    Minted(Minted),
}

impl GrantId {
    /// Decodes a grant's id.
    #[must_use]
    pub const fn of(id: u32) -> Self {
        match Minted::of(id) {
            Some(minted) => Self::Minted(minted),
            None => Self::Own(id),
        }
    }

    /// A grant id of the operator's own, from 31 bits of entropy.
    #[must_use]
    pub const fn own(entropy: u32) -> u32 {
        entropy & !MINTED_BIT
    }
}

/// The parts of a minted grant's id.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Minted {
    /// The number of the relay's range, 0 to 127.
    pub range: u8,
    /// Whether the epoch is odd.
    pub odd: bool,
    /// The number of the grant in its range and epoch, less than [`SERIAL_COUNT`].
    pub serial: u32,
}

impl Minted {
    /// The grant `serial` of `range` in `epoch`; `None` if range or serial are too large.
    #[must_use]
    pub const fn new(range: u8, epoch: u32, serial: u32) -> Option<Self> {
        if range as usize >= RANGE_COUNT || serial >= SERIAL_COUNT {
            return None;
        }
        Some(Self { range, odd: epoch % 2 == 1, serial })
    }

    /// The parts of an id; `None` if the grant is the operator's own.
    #[must_use]
    pub const fn of(id: u32) -> Option<Self> {
        if id & MINTED_BIT == 0 {
            return None;
        }
        let range = (id >> RANGE_SHIFT) as u8 & 0x7f;
        Some(Self { range, odd: id & EPOCH_PARITY_BIT != 0, serial: id & (SERIAL_COUNT - 1) })
    }

    /// Returns the id of the grant, under which the relay keeps its account.
    #[must_use]
    pub const fn id(self) -> u32 {
        let parity = if self.odd { EPOCH_PARITY_BIT } else { 0 };
        MINTED_BIT | (self.range as u32 & 0x7f) << RANGE_SHIFT | parity | (self.serial & (SERIAL_COUNT - 1))
    }

    /// The number of this grant's epoch, if the registry's current epoch is `epoch`: `epoch` or the
    /// number before, as the parity `self.odd` requires. With `epoch` 6, an odd grant is of epoch
    /// 5. `None` if the result is below 0.
    #[must_use]
    pub const fn epoch(self, epoch: u32) -> Option<u32> {
        if self.odd == (epoch % 2 == 1) { Some(epoch) } else { epoch.checked_sub(1) }
    }
}

/// The key from which a registry derives all grants of its range, and no others. It is never shown,
/// and is erased when dropped.
#[derive(Clone, PartialEq, Eq)]
pub struct RangeKey([u8; 32]);

impl RangeKey {
    /// Makes the key from these bytes, as the relay gave them to the registry.
    #[must_use]
    pub const fn new(bytes: [u8; 32]) -> Self {
        Self(bytes)
    }

    /// Returns the bytes, **only to be sent to the registry or stored by it**.
    #[must_use]
    pub const fn reveal(&self) -> &[u8; 32] {
        &self.0
    }

    /// The key of the grants of an epoch.
    #[must_use]
    pub fn epoch_key(&self, epoch: u32) -> EpochKey {
        let mut hasher = blake3::Hasher::new_keyed(&self.0);
        hasher.update(b"epoch").update(&epoch.to_be_bytes());
        EpochKey(*hasher.finalize().as_bytes())
    }

    /// The key of the [heartbeats](crate::heartbeat) between the relay and the registry that has
    /// the range.
    #[must_use]
    pub fn heartbeat_key(&self) -> MacKey {
        MacKey::new(half(blake3::keyed_hash(&self.0, b"heartbeat").as_bytes()))
    }

    pub(super) fn derive(ranges: &[u8; 32], range: u8) -> Self {
        Self(*blake3::keyed_hash(ranges, &[range & 0x7f]).as_bytes())
    }
}

impl fmt::Debug for RangeKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("RangeKey(redacted)")
    }
}

impl Drop for RangeKey {
    fn drop(&mut self) {
        self.0.zeroize();
    }
}

/// The key of the grants minted in one range and epoch. It is never shown, and is erased when
/// dropped.
#[derive(Clone, PartialEq, Eq)]
pub struct EpochKey([u8; 32]);

impl EpochKey {
    /// Returns the secret of a grant. With it and the relay's addresses a registry makes a
    /// [`Word`](super::Word).
    #[must_use]
    pub fn secret(&self, grant: &Grant) -> GrantSecret {
        GrantSecret::new(half(blake3::keyed_hash(&self.0, &grant.to_bytes()).as_bytes()))
    }
}

impl fmt::Debug for EpochKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("EpochKey(redacted)")
    }
}

impl Drop for EpochKey {
    fn drop(&mut self) {
        self.0.zeroize();
    }
}

#[cfg(test)]
mod tests {
    use super::super::grant::tests::any_terms;
    use super::super::{RelayKey, Word};
    use super::*;
    use alloc::format;
    use alloc::vec;
    use proptest::prelude::*;

    fn any_minted() -> impl Strategy<Value = Minted> {
        (0u8..128, any::<u32>(), 0..SERIAL_COUNT).prop_map(|(r, e, s)| Minted::new(r, e, s).unwrap())
    }

    #[test]
    fn ids_bit_by_bit() {
        assert_eq!(Minted::new(0, 0, 0).unwrap().id(), 0x8000_0000);
        assert_eq!(Minted::new(127, 0, 0).unwrap().id(), 0xff00_0000);
        assert_eq!(Minted::new(0, 7, 0).unwrap().id(), 0x8080_0000);
        assert_eq!(Minted::new(0, 0, SERIAL_COUNT - 1).unwrap().id(), 0x807f_ffff);
        assert_eq!(Minted::new(0x25, 3, 0x01_0203).unwrap().id(), 0xa581_0203);
        assert_eq!(Minted::new(128, 0, 0), None);
        assert_eq!(Minted::new(0, 0, SERIAL_COUNT), None);
        assert_eq!(GrantId::of(0x7fff_ffff), GrantId::Own(0x7fff_ffff));
        assert_eq!(GrantId::own(u32::MAX), 0x7fff_ffff);
    }

    #[test]
    fn a_parity_names_this_epoch_or_the_last() {
        let minted = |epoch| Minted::new(1, epoch, 2).unwrap();
        assert_eq!(minted(7).epoch(7), Some(7));
        assert_eq!(minted(7).epoch(8), Some(7));
        assert_eq!(minted(7).epoch(9), Some(9)); // two later it is taken for the current one, whose key it does not have
        assert_eq!(minted(1).epoch(0), None);
    }

    /// Relay words that were handed out must stay valid, so these values are as frozen as the
    /// formats.
    #[test]
    fn derived_values_are_frozen() {
        let range = RelayKey::new(&[7; 32]).range_key(5);
        let id = Minted::new(5, 9, 1).unwrap().id();
        let terms = super::super::Terms {
            expiry: super::super::Minute::from_unix(1_800_000_000),
            rate: super::super::RateClass(0x80),
            quota: super::super::QuotaClass::UNLIMITED,
            scope: super::super::Scope::ALL,
        };
        let secret = range.epoch_key(9).secret(&Grant { id, terms });
        let hex =
            |bytes: &[u8]| bytes.iter().map(|byte| format!("{byte:02x}")).collect::<alloc::string::String>();
        let mac = range.heartbeat_key().mac(0x70, 1, b"beat");
        let derived = [hex(range.reveal()), hex(secret.expose()), format!("{mac:016x}")];
        let frozen = [
            "ad63b449821ead1bc664807ec8e1ede4fe951c1776810a016904441d0a613c42",
            "5674d2d5402b152c8dbfe5b9324f8d84",
            "f1fba40bea80550a",
        ];
        assert_eq!(derived, frozen);
    }

    #[test]
    fn nothing_secret_is_shown() {
        let range = RelayKey::new(&[7; 32]).range_key(5);
        assert_eq!(format!("{range:?} {:?}", range.epoch_key(1)), "RangeKey(redacted) EpochKey(redacted)");
    }

    proptest! {
        #[test]
        fn round_trip(id: u32, minted in any_minted()) {
            prop_assert_eq!(Minted::of(minted.id()), Some(minted));
            match GrantId::of(id) {
                GrantId::Own(own) => prop_assert_eq!((own, GrantId::own(id)), (id, id)),
                GrantId::Minted(minted) => prop_assert_eq!(minted.id(), id),
            }
            prop_assert!(matches!(GrantId::of(GrantId::own(id)), GrantId::Own(_)));
        }

        #[test]
        fn each_relay_range_epoch_and_grant_has_its_own_secret(
            minted in any_minted(), terms in any_terms(), other in any_terms(), epoch in 1u32.., key: [u8; 32],
        ) {
            let relay = RelayKey::new(&key);
            let grant = Grant { id: minted.id(), terms };
            let range = relay.range_key(minted.range);
            let secret = range.epoch_key(epoch).secret(&grant);
            prop_assert_eq!(RangeKey::new(*range.reveal()).epoch_key(epoch).secret(&grant), secret.clone());
            prop_assert!(range.epoch_key(epoch - 1).secret(&grant) != secret);
            prop_assert!(relay.range_key(minted.range ^ 1).epoch_key(epoch).secret(&grant) != secret);
            prop_assert!(RelayKey::new(&[1; 32]).range_key(minted.range).epoch_key(epoch).secret(&grant) != secret);
            prop_assert!(relay.secret(&grant) != secret);
            let same = range.epoch_key(epoch).secret(&Grant { terms: other, ..grant }) == secret;
            prop_assert_eq!(same, other == terms);
            let word = Word::new(vec!["192.0.2.1:4748".parse().unwrap()], grant, secret).unwrap();
            prop_assert_eq!(word.reveal().parse(), Ok(word));
        }
    }
}
