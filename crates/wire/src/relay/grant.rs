//! The permissions of a relay word: [`Grant`], and the [`Caveat`] with which its holder passes on a
//! narrower word.
//!
//! ```text
//! terms   expiry (3: minutes since 2025-01-01T00:00Z), rate class (1), quota class (1), scope (1)
//! grant   id (4), terms (6)
//! caveat  branch (1, not 0), terms (6)
//! ```

use crate::codec::{DecodeError, Reader, Writer};
use core::fmt;

/// Unix time of 2025-01-01T00:00Z, from which [`Minute`] counts.
pub const GRANT_EPOCH_SECONDS: u64 = 1_735_689_600;
/// Bytes of a grant.
pub const GRANT_LEN: usize = 10;
/// Bytes of a caveat.
pub const CAVEAT_LEN: usize = 7;

/// A point in time in whole minutes since [`GRANT_EPOCH_SECONDS`]; 24 bits reach into 2056.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Minute(u32);

impl Minute {
    /// The last minute that can be written.
    pub const MAX: Self = Self(0x00ff_ffff);

    /// The minute that `seconds` of Unix time fall in; clamped at both ends.
    #[must_use]
    pub const fn from_unix(seconds: u64) -> Self {
        let minutes = seconds.saturating_sub(GRANT_EPOCH_SECONDS) / 60;
        if minutes > Self::MAX.0 as u64 { Self::MAX } else { Self(minutes as u32) }
    }

    /// The first second of this minute, in Unix time.
    #[must_use]
    pub const fn unix(self) -> u64 {
        GRANT_EPOCH_SECONDS + self.0 as u64 * 60
    }
}

impl fmt::Debug for Minute {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "unix {}", self.unix())
    }
}

/// Three bits of mantissa and five of exponent: `(8 + m) << e`, so that steps are at most one
/// eighth. 0xff: no limit.
const fn scale_value(class: u8) -> Option<u64> {
    if class == 0xff { None } else { Some((8 + (class & 7) as u64) << (class >> 3)) }
}

/// The largest class that allows no more than `value`; 0 (eight units) for less than that.
const fn scale_at_most(value: u64) -> u8 {
    let mut class = 0xfe;
    while class > 0 {
        match scale_value(class) {
            Some(allowed) if allowed <= value => return class,
            _ => class -= 1,
        }
    }
    0
}

/// How fast a grant may be used: a limit in bytes of UDP payload per second, or no limit. The scale
/// is logarithmic, from 8 B/s to 30 GB/s in steps of at most one eighth.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RateClass(pub u8);

impl RateClass {
    /// No limit but the relay's own.
    pub const UNLIMITED: Self = Self(0xff);

    /// The largest class that allows no more than `bytes_per_second` (but never less than 8 B/s).
    #[must_use]
    pub const fn at_most(bytes_per_second: u64) -> Self {
        Self(scale_at_most(bytes_per_second))
    }

    /// Bytes per second; `None`: no limit.
    #[must_use]
    pub const fn bytes_per_second(self) -> Option<u64> {
        scale_value(self.0)
    }
}

impl fmt::Debug for RateClass {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.bytes_per_second() {
            Some(rate) => write!(f, "{rate} B/s"),
            None => f.write_str("any rate"),
        }
    }
}

/// A limit on a grant's bytes of UDP payload per UTC day (by the relay's clock), or no limit. The
/// scale is logarithmic, from 512 KiB to 1.97 PB. A restarted relay has lost the count, so a
/// restart gives at most one more day's quota.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct QuotaClass(pub u8);

impl QuotaClass {
    /// No limit but the relay's own.
    pub const UNLIMITED: Self = Self(0xff);
    const UNIT_SHIFT: u32 = 16;

    /// The largest class that allows no more than `bytes_per_day` (but never less than 512 KiB).
    #[must_use]
    pub const fn at_most(bytes_per_day: u64) -> Self {
        Self(scale_at_most(bytes_per_day >> Self::UNIT_SHIFT))
    }

    /// Bytes per day; `None`: no limit.
    #[must_use]
    pub const fn bytes_per_day(self) -> Option<u64> {
        match scale_value(self.0) {
            Some(units) => Some(units << Self::UNIT_SHIFT),
            None => None,
        }
    }
}

impl fmt::Debug for QuotaClass {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.bytes_per_day() {
            Some(bytes) => write!(f, "{bytes} B/day"),
            None => f.write_str("any amount"),
        }
    }
}

/// The permitted uses of a grant, as a set of bits. Unknown bits permit no use.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Scope(pub u8);

impl Scope {
    /// The right to send to IPv4 destinations.
    pub const V4: Self = Self(1);
    /// The right to send to IPv6 destinations.
    pub const V6: Self = Self(2);
    /// Receivers may answer through the relay.
    pub const BACK: Self = Self(4);
    /// All scopes: both families, and answers.
    pub const ALL: Self = Self(7);
    /// Marks a word that the relay's operator gave under a name. It permits nothing. The relay
    /// takes such a word only while its id is among those that the operator did not revoke.
    pub const NAMED: Self = Self(8);

    /// Whether everything that `other` permits is permitted.
    #[must_use]
    pub const fn contains(self, other: Self) -> bool {
        other.0 & !self.0 == 0
    }

    /// The rights that both scopes have together.
    #[must_use]
    pub const fn and(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }
}

/// The limits of a grant: its expiry, rate, quota and scope.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Terms {
    /// The first minute, by the relay's clock, in which the grant is refused.
    pub expiry: Minute,
    /// The limit in bytes per second.
    pub rate: RateClass,
    /// The limit in bytes per day.
    pub quota: QuotaClass,
    /// The permitted uses of the grant.
    pub scope: Scope,
}

impl Terms {
    /// Whether these terms permit only what `wider` permits.
    #[must_use]
    pub fn within(&self, wider: &Self) -> bool {
        self.expiry <= wider.expiry
            && self.rate <= wider.rate
            && self.quota <= wider.quota
            && wider.scope.contains(self.scope)
    }

    fn read(reader: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let [a, b, c] = reader.array()?;
        Ok(Self {
            expiry: Minute(u32::from_be_bytes([0, a, b, c])),
            rate: RateClass(reader.u8()?),
            quota: QuotaClass(reader.u8()?),
            scope: Scope(reader.u8()?),
        })
    }

    const fn to_bytes(self) -> [u8; 6] {
        let [_, a, b, c] = self.expiry.0.to_be_bytes();
        [a, b, c, self.rate.0, self.quota.0, self.scope.0]
    }
}

/// The permissions that an operator or a registry gives the holder of a relay word. The relay
/// counts use per grant id. So words with the same id share one rate and one quota, even if their
/// terms differ.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Grant {
    /// The number of the account.
    pub id: u32,
    /// The terms of the grant.
    pub terms: Terms,
}

impl Grant {
    /// Reads [`GRANT_LEN`] bytes. Any bytes are a grant. Only its secret proves that the relay made
    /// it.
    pub fn read(reader: &mut Reader<'_>) -> Result<Self, DecodeError> {
        Ok(Self { id: reader.u32()?, terms: Terms::read(reader)? })
    }

    /// Writes [`GRANT_LEN`] bytes.
    pub fn write(&self, writer: &mut Writer<'_>) {
        writer.u32(self.id);
        writer.bytes(&self.terms.to_bytes());
    }

    /// The encoded grant.
    #[must_use]
    pub fn to_bytes(&self) -> [u8; GRANT_LEN] {
        let mut bytes = [0; GRANT_LEN];
        self.write(&mut Writer::new(&mut bytes));
        bytes
    }
}

/// Terms narrower than those of a grant. The holder of a relay word, which contains the grant, adds
/// a caveat before giving the word to somebody else. Packets count against the limits of both grant
/// and caveat. A packet has at most one caveat.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Caveat {
    /// The account under the grant's, 1 to 255. A byte, so that the holder of one grant cannot
    /// claim many accounts.
    pub branch: u8,
    /// The terms for the holder. A relay refuses terms beyond those of the grant.
    pub terms: Terms,
}

impl Caveat {
    /// Reads [`CAVEAT_LEN`] bytes.
    pub fn read(reader: &mut Reader<'_>) -> Result<Self, DecodeError> {
        match reader.u8()? {
            0 => Err(DecodeError::Range("branch")),
            branch => Ok(Self { branch, terms: Terms::read(reader)? }),
        }
    }

    /// Writes [`CAVEAT_LEN`] bytes.
    pub fn write(&self, writer: &mut Writer<'_>) {
        writer.u8(self.branch);
        writer.bytes(&self.terms.to_bytes());
    }

    /// The encoded caveat.
    #[must_use]
    pub fn to_bytes(&self) -> [u8; CAVEAT_LEN] {
        let mut bytes = [0; CAVEAT_LEN];
        self.write(&mut Writer::new(&mut bytes));
        bytes
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use proptest::prelude::*;

    pub(crate) fn any_terms() -> impl Strategy<Value = Terms> {
        (0u32..1 << 24, any::<u8>(), any::<u8>(), any::<u8>()).prop_map(|(minute, rate, quota, scope)| {
            Terms {
                expiry: Minute(minute),
                rate: RateClass(rate),
                quota: QuotaClass(quota),
                scope: Scope(scope),
            }
        })
    }

    pub(crate) fn any_grant() -> impl Strategy<Value = Grant> {
        (any::<u32>(), any_terms()).prop_map(|(id, terms)| Grant { id, terms })
    }

    pub(crate) fn any_caveat() -> impl Strategy<Value = Caveat> {
        (1u8.., any_terms()).prop_map(|(branch, terms)| Caveat { branch, terms })
    }

    #[test]
    fn grant_and_caveat_in_hex() {
        let terms = Terms {
            expiry: Minute::from_unix(GRANT_EPOCH_SECONDS + 0x01_0203 * 60 + 59),
            rate: RateClass(0x80),
            quota: QuotaClass(0x90),
            scope: Scope::ALL,
        };
        assert_eq!(Grant { id: 0xdead_beef, terms }.to_bytes(), *b"\xde\xad\xbe\xef\x01\x02\x03\x80\x90\x07");
        assert_eq!(Caveat { branch: 9, terms }.to_bytes(), *b"\x09\x01\x02\x03\x80\x90\x07");
        assert_eq!(
            Caveat::read(&mut Reader::new(b"\x00\x01\x02\x03\x80\x90\x07")),
            Err(DecodeError::Range("branch"))
        );
    }

    #[test]
    fn the_scales_reach_from_a_trickle_to_a_backbone() {
        assert_eq!(RateClass(0).bytes_per_second(), Some(8));
        assert_eq!(RateClass(0xfe).bytes_per_second(), Some(14 << 31));
        assert_eq!(QuotaClass(0).bytes_per_day(), Some(512 << 10));
        assert_eq!(QuotaClass(0xfe).bytes_per_day(), Some(14 << 47));
        assert_eq!(RateClass::UNLIMITED.bytes_per_second(), None);
        assert_eq!(RateClass::at_most(0), RateClass(0));
        assert_eq!(RateClass::at_most(1 << 20).bytes_per_second(), Some(1 << 20));
        assert_eq!(RateClass::at_most(u64::MAX), RateClass(0xfe));
        assert_eq!(Minute::from_unix(0).unix(), GRANT_EPOCH_SECONDS);
        assert_eq!(Minute::from_unix(u64::MAX), Minute::MAX);
    }

    proptest! {
        #[test]
        fn a_class_never_allows_more_than_asked_and_loses_at_most_an_eighth(rate in 8u64..14 << 31, quota in 8u64..14 << 31) {
            let class = RateClass::at_most(rate).bytes_per_second().unwrap();
            prop_assert!(class <= rate && rate - class <= rate / 8);
            let class = QuotaClass::at_most(quota << 16).bytes_per_day().unwrap();
            prop_assert!(class <= quota << 16 && (quota << 16) - class <= (quota << 16) / 8);
        }

        #[test]
        fn larger_classes_allow_more(class in 0u8..0xfe) {
            prop_assert!(scale_value(class) < scale_value(class + 1) || class + 1 == 0xff);
        }

        #[test]
        fn round_trip(grant in any_grant(), caveat in any_caveat()) {
            prop_assert_eq!(Grant::read(&mut Reader::new(&grant.to_bytes())), Ok(grant));
            prop_assert_eq!(Caveat::read(&mut Reader::new(&caveat.to_bytes())), Ok(caveat));
        }

        #[test]
        fn within_is_a_partial_order(a in any_terms(), b in any_terms(), c in any_terms()) {
            prop_assert!(a.within(&a));
            prop_assert!(!(a.within(&b) && b.within(&a)) || a == b);
            prop_assert!(!(a.within(&b) && b.within(&c)) || a.within(&c));
        }
    }
}
