//! How a relay computes credentials from its key. So a relay stores no credentials, and can check
//! all of them even after a restart.
//!
//! ```text
//! relay key (32) ──KDF──> grant key ──PRF(grant)──> secret (16) ──PRF(caveat)──> secret of the narrower word (16)
//!                 │                                     └──PRF("mac")──> MAC key of its packets and notices
//!                 ├──KDF──> consent key ──MAC(grant id, address, expiry)──> consent tag (8)
//!                 │                     └──MAC(grant id, address, day)──> cookie (8)
//!                 ├──KDF──> return key  ──MAC(grant id, branch, sender, receiver, expiry)──> return tag (8)
//!                 ├──KDF──> ranges key  ──PRF(range)──> range key (32), with which a registry mints (`minted.rs`)
//!                 └──KDF──> the relay's name at registries (16)
//! ```
//!
//! | function | algorithm |
//! |---|---|
//! | KDF | BLAKE3 in derive-key mode |
//! | PRF | BLAKE3 in keyed mode; a key of 16 bytes is padded with zeros to 32 |
//! | MAC | SipHash-2-4, 64 bits: forgers can test guesses only at the relay, 2^63 on average |

use super::grant::{Caveat, Grant};
use super::minted::{GrantId, RangeKey};
use super::secret::{GrantSecret, MacKey, half};
use super::word::{RelayWordError, Word};
use crate::id::RelayId;
use alloc::vec::Vec;
use core::fmt;
use core::net::{IpAddr, SocketAddr};
use siphasher::sip::SipHasher24;
use zeroize::Zeroize;

/// Seconds in a unit of the expiries of consents and return tags. Sixteen bits of such units are
/// six days.
pub const EXPIRY_UNIT: u64 = 8;

/// An address's agreement to be reached under one grant, given by the relay that saw it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Consent {
    /// When the consent expires, in [`EXPIRY_UNIT`]s of Unix time modulo 2^16.
    pub expiry: u16,
    /// The relay's MAC.
    pub tag: u64,
}

/// Permits a receiver to answer a sender through the relay. The relay gives it with each packet
/// that it delivers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReturnTag {
    /// The number of the account that is charged: the grant's id.
    pub grant: u32,
    /// The number of the branch, which is an account under the grant's; 0 for none.
    pub branch: u8,
    /// When the tag expires, in [`EXPIRY_UNIT`]s of Unix time modulo 2^16.
    pub expiry: u16,
    /// The relay's MAC.
    pub tag: u64,
}

/// A relay's key, and the keys derived from it.
#[derive(Clone)]
pub struct RelayKey {
    grant: [u8; 32],
    consent: [u8; 16],
    back: [u8; 16],
    ranges: [u8; 32],
    id: RelayId,
    salt: u64,
}

impl RelayKey {
    /// Derives all from `key`, 32 bytes of entropy that the operator keeps.
    #[must_use]
    pub fn new(key: &[u8; 32]) -> Self {
        let [a, b, c, d, e, f, g, h, ..] = blake3::derive_key("byway relay v1 table salt", key);
        Self {
            grant: blake3::derive_key("byway relay v1 grant secrets", key),
            consent: half(&blake3::derive_key("byway relay v1 consents", key)),
            back: half(&blake3::derive_key("byway relay v1 return tags", key)),
            ranges: blake3::derive_key("byway relay v1 range keys", key),
            id: RelayId(half(&blake3::derive_key("byway relay v1 name at registries", key))),
            salt: u64::from_be_bytes([a, b, c, d, e, f, g, h]),
        }
    }

    /// The secret of a grant.
    #[must_use]
    pub fn secret(&self, grant: &Grant) -> GrantSecret {
        GrantSecret::new(half(blake3::keyed_hash(&self.grant, &grant.to_bytes()).as_bytes()))
    }

    /// The MAC key of a grant, or of the grant narrowed by `caveat`.
    #[must_use]
    pub fn mac_key(&self, grant: &Grant, caveat: Option<&Caveat>) -> MacKey {
        let secret = self.secret(grant);
        match caveat {
            Some(caveat) => secret.narrow(caveat).mac_key(),
            None => secret.mac_key(),
        }
    }

    /// Makes a relay word, with which a sender may use the relay within the limits of `grant`.
    /// `relays` has 1 to 4 addresses of the relay. The grant's id must be one of the
    /// operator's, as from [`GrantId::own`]: registries make relay words with the other ids.
    pub fn issue(&self, grant: Grant, relays: Vec<SocketAddr>) -> Result<Word, RelayWordError> {
        if let GrantId::Minted(_) = GrantId::of(grant.id) {
            return Err(RelayWordError::Minted);
        }
        Word::new(relays, grant, self.secret(&grant))
    }

    /// A consent of `address` for the grant `grant` until `expires` (Unix seconds; rounded down to
    /// [`EXPIRY_UNIT`]).
    #[must_use]
    pub fn consent(&self, grant: u32, address: SocketAddr, expires: u64) -> Consent {
        let units = expires / EXPIRY_UNIT;
        Consent { expiry: units as u16, tag: self.consent_tag(grant, address, units) }
    }

    /// Returns when a consent expires (Unix seconds), if this relay made it for this grant and
    /// address. `now` is in Unix seconds.
    #[must_use]
    pub fn check_consent(&self, consent: &Consent, grant: u32, address: SocketAddr, now: u64) -> Option<u64> {
        let units = restore(consent.expiry, now / EXPIRY_UNIT);
        (self.consent_tag(grant, address, units) == consent.tag).then_some(units * EXPIRY_UNIT)
    }

    /// The return tag with which `receiver` reaches `sender` until `expires` (Unix seconds, rounded
    /// down to [`EXPIRY_UNIT`]).
    #[must_use]
    pub fn return_tag(
        &self,
        account: (u32, u8),
        sender: SocketAddr,
        receiver: SocketAddr,
        expires: u64,
    ) -> ReturnTag {
        let (grant, branch) = account;
        let units = expires / EXPIRY_UNIT;
        let tag = self.tag_back(account, sender, receiver, units);
        ReturnTag { grant, branch, expiry: units as u16, tag }
    }

    /// Returns when a return tag expires (Unix seconds), if this relay made it for these addresses.
    /// `now` is in Unix seconds.
    #[must_use]
    pub fn check_return(
        &self,
        tag: &ReturnTag,
        sender: SocketAddr,
        receiver: SocketAddr,
        now: u64,
    ) -> Option<u64> {
        let units = restore(tag.expiry, now / EXPIRY_UNIT);
        let expected = self.tag_back((tag.grant, tag.branch), sender, receiver, units);
        (expected == tag.tag).then_some(units * EXPIRY_UNIT)
    }

    /// The cookie for the grant id `grant` and `address`, valid until the end of the next UTC day.
    /// The relay sends it only to `address`. So a sender that knows the cookie has proved that it
    /// receives packets at `address`. `now` is in Unix seconds.
    #[must_use]
    pub fn cookie(&self, grant: u32, address: SocketAddr, now: u64) -> u64 {
        self.cookie_of_day(grant, address, now / 86_400)
    }

    /// Whether the relay made this cookie for `address`, today or yesterday (UTC).
    #[must_use]
    pub fn check_cookie(&self, cookie: u64, grant: u32, address: SocketAddr, now: u64) -> bool {
        self.cookies(grant, address, now).any(|good| good == cookie)
    }

    /// Returns the cookies of `address` that are valid now: those of today and of yesterday (UTC).
    pub fn cookies(&self, grant: u32, address: SocketAddr, now: u64) -> impl Iterator<Item = u64> {
        let today = now / 86_400;
        [today, today.wrapping_sub(1)].into_iter().map(move |day| self.cookie_of_day(grant, address, day))
    }

    /// Whether this relay made the cookie for `grant`, for any address and day. The last two bytes
    /// decide: 1 of 65,536 random numbers passes.
    #[must_use]
    pub fn made_cookie(&self, cookie: u64, grant: u32) -> bool {
        cookie & COOKIE_MARK == self.cookie_mark(grant)
    }

    /// The key of the range `range` (0 to 127) of grant ids, for a registry. The registry can mint
    /// grants in this range until the relay refuses the range or gets a new relay key.
    #[must_use]
    pub fn range_key(&self, range: u8) -> RangeKey {
        RangeKey::derive(&self.ranges, range)
    }

    /// The relay's name at registries.
    #[must_use]
    pub const fn id(&self) -> RelayId {
        self.id
    }

    /// A secret number that spreads accounts over a table.
    #[must_use]
    pub const fn salt(&self) -> u64 {
        self.salt
    }

    // Each message is written whole and hashed in one go: fed in pieces, the hash costs twice as
    // much.

    fn consent_tag(&self, grant: u32, address: SocketAddr, units: u64) -> u64 {
        SipHasher24::new_with_key(&self.consent).hash(&of_address(grant, units, address))
    }

    fn cookie_of_day(&self, grant: u32, address: SocketAddr, day: u64) -> u64 {
        let mut message = [1; 31]; // one byte longer than a consent, so that neither passes for the other
        let (head, _) = message.split_at_mut(30);
        head.copy_from_slice(&of_address(grant, day, address));
        let proof = SipHasher24::new_with_key(&self.consent).hash(&message);
        proof & !COOKIE_MARK | self.cookie_mark(grant)
    }

    /// The bits that all cookies of a grant have in common.
    fn cookie_mark(&self, grant: u32) -> u64 {
        // Of a length of its own, so that it is neither a consent nor a cookie.
        SipHasher24::new_with_key(&self.consent).hash(&grant.to_be_bytes()) & COOKIE_MARK
    }

    fn tag_back(&self, account: (u32, u8), sender: SocketAddr, receiver: SocketAddr, units: u64) -> u64 {
        let mut message = [0; 49];
        message[..4].copy_from_slice(&account.0.to_be_bytes());
        message[4] = account.1;
        message[5..13].copy_from_slice(&units.to_be_bytes());
        message[13..31].copy_from_slice(&address_bytes(sender));
        message[31..].copy_from_slice(&address_bytes(receiver));
        SipHasher24::new_with_key(&self.back).hash(&message)
    }
}

/// The bits of a cookie that show that the relay made it. The other 48 prove the address.
const COOKIE_MARK: u64 = 0xffff;

/// The input of the MAC in consents and cookies: the grant, the time in the unit of either, and the
/// address.
fn of_address(grant: u32, time: u64, address: SocketAddr) -> [u8; 30] {
    let mut message = [0; 30];
    message[..4].copy_from_slice(&grant.to_be_bytes());
    message[4..12].copy_from_slice(&time.to_be_bytes());
    message[12..].copy_from_slice(&address_bytes(address));
    message
}

impl fmt::Debug for RelayKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("RelayKey(redacted)")
    }
}

impl Drop for RelayKey {
    fn drop(&mut self) {
        self.grant.zeroize();
        self.consent.zeroize();
        self.back.zeroize();
        self.ranges.zeroize();
        self.salt.zeroize();
    }
}

/// The value closest to `near` whose low 16 bits are `low`.
#[must_use]
pub const fn restore(low: u16, near: u64) -> u64 {
    near.saturating_add_signed(low.wrapping_sub(near as u16) as i16 as i64)
}

/// An address in 18 bytes. IPv4 is written as IPv4-mapped IPv6 (RFC 4291 section 2.5.5.2), because
/// a dual-stack socket shows an IPv4 address in either form. Both forms must give the same bytes.
fn address_bytes(address: SocketAddr) -> [u8; 18] {
    let ip = match address.ip() {
        IpAddr::V4(ip) => ip.to_ipv6_mapped(),
        IpAddr::V6(ip) => ip,
    };
    let mut bytes = [0; 18];
    bytes[..16].copy_from_slice(&ip.octets());
    bytes[16..].copy_from_slice(&address.port().to_be_bytes());
    bytes
}

#[cfg(test)]
mod tests {
    use super::super::grant::tests::{any_caveat, any_grant};
    use super::super::grant::{Minute, QuotaClass, RateClass, Scope, Terms};
    use super::*;
    use alloc::format;
    use proptest::prelude::*;

    const KEY: [u8; 32] = [7; 32];

    fn grant() -> Grant {
        let terms = Terms {
            expiry: Minute::from_unix(1_800_000_000),
            rate: RateClass(0x80),
            quota: QuotaClass::UNLIMITED,
            scope: Scope::ALL,
        };
        Grant { id: 1, terms }
    }

    /// Relay words that were handed out must stay valid, so these values are as frozen as the
    /// formats.
    #[test]
    fn derived_values_are_frozen() {
        let key = RelayKey::new(&KEY);
        let grant = grant();
        let caveat = Caveat { branch: 1, terms: grant.terms };
        let hex = |bytes: &[u8]| bytes.iter().map(|b| format!("{b:02x}")).collect::<alloc::string::String>();
        let (a, b): (SocketAddr, SocketAddr) =
            ("192.0.2.1:1000".parse().unwrap(), "[2001:db8::1]:2000".parse().unwrap());
        let derived = [
            hex(key.secret(&grant).expose()),
            hex(key.secret(&grant).narrow(&caveat).expose()),
            hex(key.mac_key(&grant, None).expose()),
            format!("{:016x}", key.mac_key(&grant, None).mac(0x60, 1_800_000_000, b"packet")),
            format!("{:016x}", key.consent(1, a, 1_800_000_000).tag),
            format!("{:016x}", key.cookie(1, a, 1_800_000_000)),
            format!("{:016x}", key.return_tag((1, 2), a, b, 1_800_000_000).tag),
        ];
        let frozen = [
            "eee15c02b170208f683fc8b9df8e76e2",
            "5bd30093e95cb7e7ab53976c16876402",
            "dbe36583a3253dad0003e5b3211848c8",
            "6a7fca15f29c3cbc",
            "978ea8fae73c2ab6",
            "0f8debe0fc3358ce",
            "92206d315a004718",
        ];
        assert_eq!(derived, frozen);
    }

    #[test]
    fn nothing_secret_is_shown() {
        let key = RelayKey::new(&KEY);
        let secret = key.secret(&grant());
        assert_eq!(
            format!("{key:?} {secret:?} {:?}", secret.mac_key()),
            "RelayKey(redacted) Secret(redacted) MacKey(redacted)"
        );
    }

    #[test]
    fn an_ipv4_mapped_address_is_the_ipv4_address() {
        let key = RelayKey::new(&KEY);
        let mapped = "[::ffff:192.0.2.1]:5".parse().unwrap();
        let consent = key.consent(1, "192.0.2.1:5".parse().unwrap(), 1_800_000_000);
        assert_eq!(key.check_consent(&consent, 1, mapped, 1_800_000_000), Some(1_800_000_000));
    }

    proptest! {
        #[test]
        fn the_nearest_value_is_restored(near in 1u64 << 16..1 << 40, delta in -0x8000i64..0x7fff) {
            let value = near.saturating_add_signed(delta);
            prop_assert_eq!(restore(value as u16, near), value);
        }

        #[test]
        fn a_consent_holds_for_its_own_grant_address_and_key_only(grant: u32, port: u16, ip: [u8; 4], now in 1_700_000_000u64..1 << 33, flip in 0u32..64) {
            let key = RelayKey::new(&KEY);
            let address = SocketAddr::from((ip, port));
            let consent = key.consent(grant, address, now + 86_400);
            prop_assert_eq!(key.check_consent(&consent, grant, address, now), Some((now + 86_400) / EXPIRY_UNIT * EXPIRY_UNIT));
            prop_assert_eq!(key.check_consent(&consent, grant ^ 1, address, now), None);
            prop_assert_eq!(key.check_consent(&consent, grant, SocketAddr::from((ip, port ^ 1)), now), None);
            prop_assert_eq!(RelayKey::new(&[8; 32]).check_consent(&consent, grant, address, now), None);
            let forged = Consent { tag: consent.tag ^ (1 << flip), ..consent };
            prop_assert_eq!(key.check_consent(&forged, grant, address, now), None);
            let stretched = Consent { expiry: consent.expiry.wrapping_add(1), ..consent };
            prop_assert_eq!(key.check_consent(&stretched, grant, address, now), None);
            // Sixteen bits of expiry come round after six days, the tag does not.
            prop_assert_eq!(key.check_consent(&consent, grant, address, now + (EXPIRY_UNIT << 16)), None);
        }

        #[test]
        fn a_cookie_is_one_address_s_for_a_day_or_two(grant: u32, port: u16, ip: [u8; 4], now in 1_700_000_000u64..1 << 33) {
            let key = RelayKey::new(&KEY);
            let address = SocketAddr::from((ip, port));
            let cookie = key.cookie(grant, address, now);
            prop_assert!(key.check_cookie(cookie, grant, address, now + 86_400));
            prop_assert!(!key.check_cookie(cookie, grant, address, now + 2 * 86_400));
            prop_assert!(!key.check_cookie(cookie, grant ^ 1, address, now));
            prop_assert!(!key.check_cookie(cookie, grant, SocketAddr::from((ip, port ^ 1)), now));
            prop_assert!(key.consent(grant, address, now / 86_400 * EXPIRY_UNIT).tag != cookie);
        }

        #[test]
        fn every_grant_and_caveat_has_its_own_secret(a in any_grant(), b in any_grant(), c in any_caveat(), d in any_caveat()) {
            let key = RelayKey::new(&KEY);
            prop_assert_eq!(a == b, key.secret(&a) == key.secret(&b));
            let secret = key.secret(&a);
            prop_assert_eq!(c == d, secret.narrow(&c) == secret.narrow(&d));
            prop_assert!(secret.narrow(&c) != secret);
        }
    }
}
