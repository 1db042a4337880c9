//! The envelope: the header that a sender puts before each packet to a relay.
//!
//! ```text
//!   0      1        9        11          21          21|28         27..46       37..56
//!   +------+--------+--------+-----------+-----------+-------------+------------+-------------+
//!   | 0x60 | MAC    | time   | grant     | [caveat]  | destination | consent    | inner       |
//!   | +nv  | (8)    | (2)    | (10)      | (7)       | (6 or 18)   | (10)       | packet      |
//!   +------+--------+--------+-----------+-----------+-------------+------------+-------------+
//!                   '------------------------- under the MAC --------------------------------'
//! ```
//!
//! | field | content |
//! |---|---|
//! | `v` | set for an IPv6 destination |
//! | `n` | set if there is a caveat: narrower terms that a holder of the relay word added |
//! | MAC | of first byte, whole time, and all bytes after the MAC; XOR the cookie, if any |
//! | time | low 16 bits of the relay's time in Unix seconds |
//!
//! The [cookie](super::Greeted::cookie) proves that the sender receives at its source address.
//! Without this proof, forged source addresses could direct the receiver's answers to a victim.

use super::clock::RelayClock;
use super::grant::{CAVEAT_LEN, Caveat, GRANT_LEN, Grant, Scope};
use super::greet::CONSENT_LEN;
use super::key::{Consent, restore};
use super::message::{FLAG_NARROWED, FLAG_V6, MESSAGE_FORWARD, canonical, read_socket, v6_bit, write_socket};
use super::notice::{NOTICE_LEN, Notice, Reason};
use super::secret::MacKey;
use super::word::Word;
use crate::codec::{DecodeError, Reader, Writer};
use crate::time::Instant;
use core::net::SocketAddr;

/// Bytes of the envelope to an IPv4 destination.
pub const ENVELOPE_V4: usize = FIXED_LEN + 6;
/// Bytes of the envelope to an IPv6 destination.
pub const ENVELOPE_V6: usize = FIXED_LEN + 18;
/// Bytes of the envelope to an IPv4 destination under a narrowed relay word.
pub const ENVELOPE_V4_NARROWED: usize = ENVELOPE_V4 + CAVEAT_LEN;
/// Bytes of the envelope to an IPv6 destination under a narrowed relay word.
pub const ENVELOPE_V6_NARROWED: usize = ENVELOPE_V6 + CAVEAT_LEN;
/// Bytes of the longest envelope.
pub const ENVELOPE_MAX: usize = ENVELOPE_V6_NARROWED;
/// Seconds that a packet's time may differ from the relay's clock, either way. A sender's estimate
/// of that clock, from a relay's answer, is off by up to half a round trip, plus drift. Packets
/// replayed within this time reach only the same destination, as duplicates.
pub const TIME_WINDOW: u64 = 10;

const MAC_AT: usize = 1;
const TIME_AT: usize = 9;
const FIXED_LEN: usize = TIME_AT + 2 + GRANT_LEN + CONSENT_LEN;

/// An envelope as a relay reads it. Every field may be forged until the relay has called
/// [`cookie`](Self::cookie). The packet is valid only if the result is 0 or the cookie that the
/// relay gave to the packet's source address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Forward {
    /// The grant under which the packet is sent.
    pub grant: Grant,
    /// The caveat that narrows the grant. `None`: the grant is not narrowed.
    pub caveat: Option<Caveat>,
    /// The low 16 bits of the relay's time in Unix seconds.
    pub time: u16,
    /// The destination of the inner packet.
    pub destination: SocketAddr,
    /// The consent of the destination.
    pub consent: Consent,
    /// The place of the inner packet.
    pub inner: usize,
    mac: u64,
}

impl Forward {
    /// Reads the envelope of a packet. One without an inner packet is refused.
    pub fn read(packet: &[u8]) -> Result<Self, DecodeError> {
        let mut reader = Reader::new(packet);
        let kind = reader.u8()?;
        if kind & !(FLAG_V6 | FLAG_NARROWED) != MESSAGE_FORWARD {
            return Err(DecodeError::UnknownType(kind));
        }
        let (mac, time) = (reader.u64()?, reader.u16()?);
        let grant = Grant::read(&mut reader)?;
        let caveat = if kind & FLAG_NARROWED != 0 { Some(Caveat::read(&mut reader)?) } else { None };
        let destination = read_socket(&mut reader, kind & FLAG_V6 != 0)?;
        let consent = Consent::read(&mut reader)?;
        if reader.is_empty() {
            return Err(DecodeError::Truncated);
        }
        let inner = packet.len() - reader.remaining();
        Ok(Self { grant, caveat, time, destination, consent, inner, mac })
    }

    /// Returns the packet's time in Unix seconds, restored from its low bits with the relay's own
    /// time `now`.
    #[must_use]
    pub const fn unix(&self, now: u64) -> u64 {
        restore(self.time, now)
    }

    /// The sender's cookie (0 if none). The sender wrote MAC XOR cookie into the MAC field of
    /// `packet`, which begins with this envelope. This XORs the field with the MAC from `key` and
    /// `unix` (Unix seconds). Refuse any result but 0 and the source address's cookie.
    #[must_use]
    pub fn cookie(&self, packet: &[u8], key: &MacKey, unix: u64) -> u64 {
        let covered = packet.get(TIME_AT..).unwrap_or_default();
        key.mac(packet.first().copied().unwrap_or_default(), unix, covered) ^ self.mac
    }

    /// The number of the branch, which is an account under the grant's; 0 for none.
    #[must_use]
    pub fn branch(&self) -> u8 {
        self.caveat.map_or(0, |caveat| caveat.branch)
    }

    /// The scope that the grant must have for this packet.
    #[must_use]
    pub const fn scope(&self) -> Scope {
        if self.destination.is_ipv4() { Scope::V4 } else { Scope::V6 }
    }
}

/// The route through one relay to one destination: writes the envelope before each packet.
#[derive(Clone, Debug)]
pub struct Hop {
    relay: SocketAddr,
    destination: SocketAddr,
    grant: u32,
    consent: Consent,
    clock: RelayClock,
    key: MacKey,
    cookie: u64,
    /// The envelope but for MAC and time.
    template: [u8; ENVELOPE_MAX],
    length: usize,
}

impl Hop {
    /// The way from a sender through one relay to one receiver.
    ///
    /// | parameter | meaning |
    /// |---|---|
    /// | `word` | the sender's relay word: the permission to use the relay |
    /// | `relay` | one of the relay's addresses in `word` |
    /// | `destination` | the receiver's address as the relay observed it |
    /// | `consent` | the receiver's permission, which the relay demands |
    /// | `clock` | the relay's clock, as the relay told the sender or the receiver |
    #[must_use]
    pub fn new(
        word: &Word,
        relay: SocketAddr,
        destination: SocketAddr,
        consent: Consent,
        clock: RelayClock,
    ) -> Self {
        let destination = canonical(destination);
        let caveat = word.caveat();
        let mut template = [0; ENVELOPE_MAX];
        let mut writer = Writer::new(&mut template);
        writer.u8(MESSAGE_FORWARD | v6_bit(destination) | if caveat.is_some() { FLAG_NARROWED } else { 0 });
        writer.bytes(&[0; TIME_AT + 2 - MAC_AT]);
        word.grant().write(&mut writer);
        if let Some(caveat) = caveat {
            caveat.write(&mut writer);
        }
        write_socket(&mut writer, destination);
        consent.write(&mut writer);
        let length = writer.len();
        let grant = word.grant().id;
        Self { relay, destination, grant, consent, clock, key: word.mac_key(), cookie: 0, template, length }
    }

    /// Bytes to leave free before the inner packet: 37 to 56, constant for a hop.
    #[must_use]
    pub const fn room(&self) -> usize {
        self.length
    }

    /// The relay's address, to which packets from [`seal`](Self::seal) are sent.
    #[must_use]
    pub const fn relay(&self) -> SocketAddr {
        self.relay
    }

    /// The id of the grant under which packets go through the relay.
    #[must_use]
    pub const fn grant(&self) -> u32 {
        self.grant
    }

    /// The destination to which the relay forwards.
    #[must_use]
    pub const fn destination(&self) -> SocketAddr {
        self.destination
    }

    /// Writes the envelope into the first [`room`](Self::room) bytes of `packet`, before the inner
    /// packet. Returns false and writes nothing if there is no inner packet.
    #[must_use]
    pub fn seal(&self, now: Instant, packet: &mut [u8]) -> bool {
        if packet.len() <= self.length {
            return false;
        }
        let unix = self.clock.unix(now);
        let (envelope, _) = packet.split_at_mut(self.length);
        envelope.copy_from_slice(&self.template[..self.length]);
        envelope[TIME_AT..TIME_AT + 2].copy_from_slice(&(unix as u16).to_be_bytes());
        let mac = self.key.mac(packet[0], unix, &packet[TIME_AT..]) ^ self.cookie;
        packet[MAC_AT..TIME_AT].copy_from_slice(&mac.to_be_bytes());
        true
    }

    /// Replaces the relay's clock.
    pub const fn set_clock(&mut self, clock: RelayClock) {
        self.clock = clock;
    }

    /// Puts `cookie` (0: none) into later packets, so that the receiver can answer through the
    /// relay. The relay refuses a cookie of another grant or address. So set 0 after a change of
    /// address, until a new greeting.
    pub const fn set_cookie(&mut self, cookie: u64) {
        self.cookie = cookie;
    }

    /// Returns the trust in a notice from [`relay`](Self::relay). `None`: the notice is forged, or
    /// about another hop.
    #[must_use]
    pub fn judge(&self, notice: &Notice, now: Instant) -> Option<NoticeTrust> {
        if notice.grant != self.grant || notice.echo != self.consent.tag.to_be_bytes() {
            return None;
        }
        // An old notice proves nothing about now, but one about the clock is just about that
        // difference.
        let fresh = u64::from(notice.unix).abs_diff(self.clock.unix(now)) <= 3 * TIME_WINDOW;
        let proven = notice.is_authentic(&self.key) && (fresh || notice.reason == Reason::Clock);
        Some(if proven { NoticeTrust::Proven } else { NoticeTrust::Hint })
    }
}

/// The trust in a [`Notice`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NoticeTrust {
    /// The notice is authentic. Act on it.
    Proven,
    /// A host on the route, perhaps the relay, sent the notice. Show it to the user, but do not act
    /// on it.
    Hint,
}

const _: () = {
    assert!(ENVELOPE_V4_NARROWED <= 44); // the design's byte budget
    assert!(NOTICE_LEN < ENVELOPE_V4);
};

#[cfg(test)]
mod tests {
    use super::super::grant::tests::{any_caveat, any_grant};
    use super::super::grant::{Minute, QuotaClass, RateClass, Terms};
    use super::super::message::tests::any_socket;
    use super::super::{GrantSecret, RelayKey};
    use super::*;
    use alloc::vec;
    use alloc::vec::Vec;
    use proptest::prelude::*;

    const NOW: u64 = 1_800_000_000;

    fn relay() -> SocketAddr {
        "192.0.2.1:4748".parse().unwrap()
    }

    fn word() -> Word {
        let terms = Terms {
            expiry: Minute::from_unix(NOW + 3600),
            rate: RateClass(0x80),
            quota: QuotaClass(0x90),
            scope: Scope::ALL,
        };
        Word::new(vec![relay()], Grant { id: 0x0102_0304, terms }, GrantSecret::new([9; 16])).unwrap()
    }

    fn clock() -> RelayClock {
        RelayClock::new(NOW * 1000, Instant::ZERO)
    }

    const CONSENT: Consent = Consent { expiry: 0xc0c1, tag: 0xc2c3_c4c5_c6c7_c8c9 };

    fn sealed(hop: &Hop, now: Instant, inner: &[u8]) -> Vec<u8> {
        let mut packet = vec![0xaa; hop.room()];
        packet.extend(inner);
        assert!(hop.seal(now, &mut packet));
        packet
    }

    #[test]
    fn in_hex() {
        let hop = Hop::new(&word(), relay(), "198.51.100.7:4748".parse().unwrap(), CONSENT, clock());
        let packet = sealed(&hop, Instant::ZERO, b"inner");
        let head = b"\x60\x33\x7b\xa0\x10\x7e\xc0\x3e\x08";
        let expected = [
            head.as_slice(),
            b"\xd2\x00\x01\x02\x03\x04\x10\x5b\x1c\x80\x90\x07",
            b"\xc6\x33\x64\x07\x12\x8c\xc0\xc1\xc2\xc3\xc4\xc5\xc6\xc7\xc8\xc9inner",
        ]
        .concat();
        assert_eq!(packet, expected);
        assert_eq!(hop.room(), ENVELOPE_V4);

        let terms = Terms { rate: RateClass(0x70), ..*word().terms() };
        let narrowed = word().narrow(Caveat { branch: 5, terms }).unwrap();
        let hop = Hop::new(&narrowed, relay(), "[2001:db8::7]:9".parse().unwrap(), CONSENT, clock());
        let packet = sealed(&hop, Instant::from_millis(1_000), b"inner");
        let head = b"\x63\xe0\xcc\xc3\xdb\xc9\xe3\x57\x26";
        let expected = [
            head.as_slice(),
            b"\xd2\x01\x01\x02\x03\x04\x10\x5b\x1c\x80\x90\x07\x05\x10\x5b\x1c\x70\x90\x07",
            b"\x20\x01\x0d\xb8\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x07\x00\x09",
            b"\xc0\xc1\xc2\xc3\xc4\xc5\xc6\xc7\xc8\xc9inner",
        ]
        .concat();
        assert_eq!(packet, expected);
        assert_eq!(hop.room(), ENVELOPE_V6_NARROWED);
    }

    #[test]
    fn the_sizes_are_what_the_table_says() {
        assert_eq!((ENVELOPE_V4, ENVELOPE_V6), (37, 49));
        assert_eq!((ENVELOPE_V4_NARROWED, ENVELOPE_V6_NARROWED), (44, 56));
    }

    #[test]
    fn an_envelope_needs_something_in_it() {
        let hop = Hop::new(&word(), relay(), "198.51.100.7:1".parse().unwrap(), CONSENT, clock());
        let mut packet = vec![0xaa; ENVELOPE_V4];
        assert!(!hop.seal(Instant::ZERO, &mut packet));
        assert!(!hop.seal(Instant::ZERO, &mut packet[..3]));
        assert_eq!(packet, vec![0xaa; ENVELOPE_V4]);
        let packet = sealed(&hop, Instant::ZERO, b"x");
        assert_eq!(Forward::read(&packet[..ENVELOPE_V4]), Err(DecodeError::Truncated));
    }

    #[test]
    fn a_packet_does_not_pass_again_when_its_time_comes_round() {
        let hop = Hop::new(&word(), relay(), "198.51.100.7:1".parse().unwrap(), CONSENT, clock());
        let packet = sealed(&hop, Instant::ZERO, b"x");
        let forward = Forward::read(&packet).unwrap();
        let key = word().mac_key();
        assert_eq!(forward.cookie(&packet, &key, forward.unix(NOW + 5)), 0);
        assert_ne!(forward.cookie(&packet, &key, forward.unix(NOW + 65_536)), 0);
    }

    #[test]
    fn a_hop_knows_its_notices() {
        let mut hop = Hop::new(&word(), relay(), "198.51.100.7:1".parse().unwrap(), CONSENT, clock());
        let key = word().mac_key();
        let echo = CONSENT.tag.to_be_bytes();
        let grant = word().grant().id;
        let judge = |hop: &Hop, notice: Notice| hop.judge(&notice, Instant::ZERO);
        let good = Notice::new(Reason::OverRate, grant, echo, NOW, 1, Some(&key));
        let altered = |change: fn(&mut Notice)| {
            let mut notice = good;
            change(&mut notice);
            notice
        };
        assert_eq!(judge(&hop, good), Some(NoticeTrust::Proven));
        assert_eq!(judge(&hop, altered(|n| n.retry_after = 9)), Some(NoticeTrust::Hint));
        assert_eq!(judge(&hop, altered(|n| n.echo = [0; 8])), None);
        assert_eq!(judge(&hop, altered(|n| n.grant = 1)), None);
        let old = Notice::new(Reason::OverRate, grant, echo, NOW - 3600, 1, Some(&key));
        assert_eq!(judge(&hop, old), Some(NoticeTrust::Hint));
        let clock = Notice::new(Reason::Clock, grant, echo, NOW - 3600, 0, Some(&key));
        assert_eq!(judge(&hop, clock), Some(NoticeTrust::Proven));
        hop.set_clock(RelayClock::new((NOW - 3600) * 1000, Instant::ZERO));
        assert_eq!(judge(&hop, old), Some(NoticeTrust::Proven));
    }

    proptest! {
        #[test]
        fn round_trip_and_no_bit_may_change(
            grant in any_grant(), caveat in any_caveat(), narrowed: bool, destination in any_socket(), expiry: u16, tag: u64, cookie: u64,
            seconds in 0u64..1 << 30, inner in prop::collection::vec(any::<u8>(), 1..1300), flip in any::<prop::sample::Index>(),
        ) {
            let whole = Grant { terms: Terms { scope: Scope(0xff), rate: RateClass::UNLIMITED, quota: QuotaClass::UNLIMITED, expiry: Minute::MAX }, ..grant };
            let key = RelayKey::new(&[1; 32]);
            let mut word = Word::new(vec![relay()], whole, key.secret(&whole)).unwrap();
            if narrowed {
                word = word.narrow(caveat).unwrap();
            }
            let consent = Consent { expiry, tag };
            let mut hop = Hop::new(&word, relay(), destination, consent, clock());
            hop.set_cookie(cookie);
            let mut packet = sealed(&hop, Instant::from_millis(seconds * 1000), &inner);
            let forward = Forward::read(&packet).unwrap();
            prop_assert_eq!(forward.grant, whole);
            prop_assert_eq!(forward.caveat, narrowed.then_some(caveat));
            prop_assert_eq!((forward.destination, forward.consent), (destination, consent));
            prop_assert_eq!(&packet[forward.inner..], &inner[..]);
            let unix = forward.unix(NOW + seconds + 7);
            prop_assert_eq!(unix, NOW + seconds);
            let mac_key = key.mac_key(&whole, forward.caveat.as_ref());
            prop_assert_eq!(forward.cookie(&packet, &mac_key, unix), cookie);
            prop_assert_ne!(forward.cookie(&packet, &mac_key, unix + 1), cookie);
            let bit = flip.index(packet.len() * 8);
            packet[bit / 8] ^= 1 << (bit % 8);
            let survived = Forward::read(&packet).is_ok_and(|forged| {
                let mac_key = key.mac_key(&forged.grant, forged.caveat.as_ref());
                forged.cookie(&packet, &mac_key, forged.unix(NOW + seconds + 7)) == cookie
            });
            prop_assert!(!survived);
        }

        #[test]
        fn garbage_never_panics(kind in 0x60u8..0x64, mut garbage in prop::collection::vec(any::<u8>(), 0..120)) {
            garbage.insert(0, kind);
            if let Ok(forward) = Forward::read(&garbage) {
                prop_assert!(forward.inner < garbage.len());
                prop_assert_ne!(forward.cookie(&garbage, &word().mac_key(), forward.unix(NOW)), 0);
            }
        }
    }
}
