//! Heartbeats: a relay regularly sends its state to a registry (BEAT), and the registry answers
//! (ANSWERED). An answer is shorter, so a forged source address gives no amplification. Numbers are
//! in network byte order.
//!
//! ```text
//! BEAT      0x70, relay (16), range (1), counter (8), epoch (4), rate (8), grants (4), bytes today (8),
//!           bytes this month (8), bytes left (8), flags (1), MAC (8)
//! ANSWERED  0x71, counter (8), next beat after ms (4), epoch (4), last epoch holds for s (4), flags (1), MAC (8)
//! ```
//!
//! | field | meaning |
//! |---|---|
//! | range | number of the range of grant ids that the relay gave this registry |
//! | counter | against replays: above every earlier beat's counter; the answer repeats it |
//! | MAC | over all bytes before; the range's [key](crate::relay::RangeKey::heartbeat_key) |

use crate::codec::{DecodeError, Reader, Writer};
pub use crate::id::RelayId;
use crate::relay::{MacKey, RANGE_COUNT};

/// The first byte of a beat.
pub const BEAT_TYPE: u8 = 0x70;
/// The first byte of an answer.
pub const ANSWERED_TYPE: u8 = 0x71;
/// Bytes of a beat.
pub const BEAT_LEN: usize = BEAT_BODY_LEN + 8;
/// Bytes of an answer, which is shorter than a heartbeat.
pub const ANSWERED_LEN: usize = ANSWERED_BODY_LEN + 8;

const BEAT_BODY_LEN: usize = 1 + 16 + 1 + 8 + 4 + 8 + 4 + 8 + 8 + 8 + 1;
const ANSWERED_BODY_LEN: usize = 1 + 8 + 4 + 4 + 4 + 1;

const _: () = assert!(ANSWERED_LEN <= BEAT_LEN);

/// The state that a relay reports in a heartbeat.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HeartbeatReport {
    /// The relay that reports.
    pub relay: RelayId,
    /// The number of the range of grants that the relay gave this registry, 0 to 127.
    pub range: u8,
    /// The number of this beat, above that of every beat before.
    pub counter: u64,
    /// The number of the newest epoch of the range that the relay knows.
    pub epoch: u32,
    /// Bytes per second that the relay forwards.
    pub rate: u64,
    /// Number of grants in use.
    pub grants: u32,
    /// Bytes that the relay forwarded on this day (UTC).
    pub today: u64,
    /// Bytes that the relay forwarded in this month (UTC).
    pub month: u64,
    /// Bytes that the relay forwards before it must wait for another day or month. [`u64::MAX`]: no
    /// limit.
    pub left: u64,
    /// [`DRAINING`](Self::DRAINING) and [`BUSY`](Self::BUSY), or nothing. Other bits mean nothing
    /// yet.
    pub flags: u8,
}

impl HeartbeatReport {
    /// The bit of [`flags`](Self::flags) for a relay that takes no new grants and ends soon.
    pub const DRAINING: u8 = 1;
    /// The bit of [`flags`](Self::flags) for a relay that is an end host and has a transfer of its
    /// own.
    pub const BUSY: u8 = 2;

    /// Whether the relay's host has a transfer of its own, which has priority over forwarding.
    #[must_use]
    pub const fn is_busy(&self) -> bool {
        self.flags & Self::BUSY != 0
    }

    /// Whether the relay takes no new grants and ends soon.
    #[must_use]
    pub const fn is_draining(&self) -> bool {
        self.flags & Self::DRAINING != 0
    }

    fn write(&self, writer: &mut Writer<'_>) {
        writer.u8(BEAT_TYPE);
        writer.bytes(&self.relay.0);
        writer.u8(self.range);
        writer.u64(self.counter);
        writer.u32(self.epoch);
        writer.u64(self.rate);
        writer.u32(self.grants);
        writer.u64(self.today);
        writer.u64(self.month);
        writer.u64(self.left);
        writer.u8(self.flags);
    }

    fn mac(&self, key: &MacKey) -> u64 {
        let mut bytes = [0; BEAT_BODY_LEN];
        self.write(&mut Writer::new(&mut bytes));
        key.mac(BEAT_TYPE, self.counter, &bytes)
    }
}

/// The content of a registry's answer to a heartbeat.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HeartbeatOrders {
    /// The number of the heartbeat that this answers.
    pub counter: u64,
    /// After how many ms the next beat shall come.
    pub next_millis: u32,
    /// The number of the present epoch of the relay's range.
    pub epoch: u32,
    /// Seconds for which the previous epoch is still valid. 0: it has ended.
    pub last_holds: u32,
    /// [`LISTED`](Self::LISTED), or nothing. Other bits mean nothing yet.
    pub flags: u8,
}

impl HeartbeatOrders {
    /// The bit of [`flags`](Self::flags) for a relay that the registry names to senders that ask.
    pub const LISTED: u8 = 1;

    /// Whether the registry names the relay to senders that ask.
    #[must_use]
    pub const fn is_listed(&self) -> bool {
        self.flags & Self::LISTED != 0
    }

    fn write(&self, writer: &mut Writer<'_>) {
        writer.u8(ANSWERED_TYPE);
        writer.u64(self.counter);
        writer.u32(self.next_millis);
        writer.u32(self.epoch);
        writer.u32(self.last_holds);
        writer.u8(self.flags);
    }

    fn mac(&self, key: &MacKey) -> u64 {
        let mut bytes = [0; ANSWERED_BODY_LEN];
        self.write(&mut Writer::new(&mut bytes));
        key.mac(ANSWERED_TYPE, self.counter, &bytes)
    }
}

/// A heartbeat of a relay.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Heartbeat {
    /// The relay's report.
    pub report: HeartbeatReport,
    mac: u64,
}

impl Heartbeat {
    /// A beat under the key of the report's range.
    #[must_use]
    pub fn new(report: HeartbeatReport, key: &MacKey) -> Self {
        Self { report, mac: report.mac(key) }
    }

    /// Reads a heartbeat from a whole packet. The content is unproven until
    /// [`is_authentic`](Self::is_authentic) returns true.
    pub fn read(packet: &[u8]) -> Result<Self, DecodeError> {
        let mut reader = Reader::new(packet);
        first(&mut reader, BEAT_TYPE)?;
        let report = HeartbeatReport {
            relay: RelayId(reader.array()?),
            range: match reader.u8()? {
                range if usize::from(range) < RANGE_COUNT => range,
                _ => return Err(DecodeError::Range("range of grants")),
            },
            counter: reader.u64()?,
            epoch: reader.u32()?,
            rate: reader.u64()?,
            grants: reader.u32()?,
            today: reader.u64()?,
            month: reader.u64()?,
            left: reader.u64()?,
            flags: reader.u8()?,
        };
        Ok(Self { report, mac: last(&mut reader)? })
    }

    /// Writes [`BEAT_LEN`] bytes.
    pub fn write(&self, writer: &mut Writer<'_>) {
        self.report.write(writer);
        writer.u64(self.mac);
    }

    /// Whether the heartbeat was made with this key.
    #[must_use]
    pub fn is_authentic(&self, key: &MacKey) -> bool {
        self.mac == self.report.mac(key)
    }
}

/// A registry's answer to a heartbeat.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HeartbeatAnswer {
    /// The registry's orders.
    pub orders: HeartbeatOrders,
    mac: u64,
}

impl HeartbeatAnswer {
    /// An answer under the key of the beat.
    #[must_use]
    pub fn new(orders: HeartbeatOrders, key: &MacKey) -> Self {
        Self { orders, mac: orders.mac(key) }
    }

    /// Reads an answer from a whole packet. The content is unproven until
    /// [`is_authentic`](Self::is_authentic) returns true.
    pub fn read(packet: &[u8]) -> Result<Self, DecodeError> {
        let mut reader = Reader::new(packet);
        first(&mut reader, ANSWERED_TYPE)?;
        let orders = HeartbeatOrders {
            counter: reader.u64()?,
            next_millis: reader.u32()?,
            epoch: reader.u32()?,
            last_holds: reader.u32()?,
            flags: reader.u8()?,
        };
        Ok(Self { orders, mac: last(&mut reader)? })
    }

    /// Writes [`ANSWERED_LEN`] bytes.
    pub fn write(&self, writer: &mut Writer<'_>) {
        self.orders.write(writer);
        writer.u64(self.mac);
    }

    /// Whether the answer was made with this key.
    #[must_use]
    pub fn is_authentic(&self, key: &MacKey) -> bool {
        self.mac == self.orders.mac(key)
    }
}

fn first(reader: &mut Reader<'_>, kind: u8) -> Result<(), DecodeError> {
    match reader.u8()? {
        found if found == kind => Ok(()),
        other => Err(DecodeError::UnknownType(other)),
    }
}

/// The MAC, which nothing follows.
fn last(reader: &mut Reader<'_>) -> Result<u64, DecodeError> {
    let mac = reader.u64()?;
    if reader.is_empty() { Ok(mac) } else { Err(DecodeError::Range("length")) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::relay::{MessageType, RelayKey};
    use alloc::format;
    use alloc::vec::Vec;
    use proptest::prelude::*;

    fn key() -> MacKey {
        RelayKey::new(&[7; 32]).range_key(5).heartbeat_key()
    }

    fn bytes<const N: usize>(write: impl FnOnce(&mut Writer<'_>)) -> [u8; N] {
        let mut buffer = [0; N];
        let mut writer = Writer::new(&mut buffer);
        write(&mut writer);
        assert!(!writer.overflowed() && writer.room() == 0);
        buffer
    }

    fn report() -> HeartbeatReport {
        HeartbeatReport {
            relay: RelayId(*b"RELAY-0123456789"),
            range: 5,
            counter: 0x0102_0304_0506_0708,
            epoch: 9,
            rate: 0x1000,
            grants: 0x20,
            today: 0x3000,
            month: 0x0004_0000,
            left: 0x0500_0000,
            flags: HeartbeatReport::DRAINING,
        }
    }

    #[test]
    fn in_hex() {
        let beat: [u8; BEAT_LEN] = bytes(|w| Heartbeat::new(report(), &key()).write(w));
        let expected = [
            b"\x70RELAY-0123456789\x05\x01\x02\x03\x04\x05\x06\x07\x08\x00\x00\x00\x09".as_slice(),
            b"\x00\x00\x00\x00\x00\x00\x10\x00\x00\x00\x00\x20\x00\x00\x00\x00\x00\x00\x30\x00",
            b"\x00\x00\x00\x00\x00\x04\x00\x00\x00\x00\x00\x00\x05\x00\x00\x00\x01",
        ]
        .concat();
        assert_eq!((BEAT_LEN, ANSWERED_LEN), (75, 30));
        assert_eq!(beat[..BEAT_BODY_LEN], expected);
        let orders = HeartbeatOrders {
            counter: 1,
            next_millis: 10_000,
            epoch: 9,
            last_holds: 3_600,
            flags: HeartbeatOrders::LISTED,
        };
        let answered: [u8; ANSWERED_LEN] = bytes(|w| HeartbeatAnswer::new(orders, &key()).write(w));
        let expected =
            b"\x71\x00\x00\x00\x00\x00\x00\x00\x01\x00\x00\x27\x10\x00\x00\x00\x09\x00\x00\x0e\x10\x01";
        assert_eq!(answered[..ANSWERED_BODY_LEN], *expected);
        let macs = [&beat[BEAT_BODY_LEN..], &answered[ANSWERED_BODY_LEN..]]
            .map(|mac| mac.iter().map(|byte| format!("{byte:02x}")).collect::<alloc::string::String>());
        assert_eq!(macs, ["de6430bce282c888", "f61725fa0d2c7497"]);
        assert!([BEAT_TYPE, ANSWERED_TYPE].iter().all(|first| MessageType::of(*first).is_none()));
    }

    #[test]
    fn neither_passes_for_the_other_and_nothing_follows() {
        let beat: [u8; BEAT_LEN] = bytes(|w| Heartbeat::new(report(), &key()).write(w));
        assert!(HeartbeatAnswer::read(&beat).is_err());
        assert_eq!(Heartbeat::read(&beat[..BEAT_LEN - 1]), Err(DecodeError::Truncated));
        assert_eq!(Heartbeat::read(&[beat.as_slice(), &[0]].concat()), Err(DecodeError::Range("length")));
        let mut far = beat;
        far[17] = 128;
        assert_eq!(Heartbeat::read(&far), Err(DecodeError::Range("range of grants")));
    }

    proptest! {
        #[test]
        fn round_trip_and_no_forgery(
            relay: [u8; 16], range in 0u8..128, counter: u64, epoch: u32, numbers: (u64, u32, u64, u64, u64), flags: u8,
            next_millis: u32, last_holds: u32, bit in 0usize..BEAT_LEN * 8,
        ) {
            let (rate, grants, today, month, left) = numbers;
            let report = HeartbeatReport { relay: RelayId(relay), range, counter, epoch, rate, grants, today, month, left, flags };
            let beat = Heartbeat::new(report, &key());
            let mut written: [u8; BEAT_LEN] = bytes(|w| beat.write(w));
            prop_assert_eq!(Heartbeat::read(&written), Ok(beat));
            prop_assert!(beat.is_authentic(&key()));
            prop_assert!(!beat.is_authentic(&RelayKey::new(&[7; 32]).range_key(6).heartbeat_key()));
            written[bit / 8] ^= 1 << (bit % 8);
            prop_assert!(!Heartbeat::read(&written).is_ok_and(|forged| forged.is_authentic(&key())));

            let answered = HeartbeatAnswer::new(HeartbeatOrders { counter, next_millis, epoch, last_holds, flags }, &key());
            let mut written: [u8; ANSWERED_LEN] = bytes(|w| answered.write(w));
            prop_assert_eq!(HeartbeatAnswer::read(&written), Ok(answered));
            prop_assert!(answered.is_authentic(&key()));
            let bit = bit % (ANSWERED_LEN * 8);
            written[bit / 8] ^= 1 << (bit % 8);
            prop_assert!(!HeartbeatAnswer::read(&written).is_ok_and(|forged| forged.is_authentic(&key())));
        }

        #[test]
        fn garbage_never_panics(kind in 0x70u8..0x72, mut garbage in prop::collection::vec(any::<u8>(), 0..100)) {
            garbage.insert(0, kind);
            let _: (Result<_, _>, Result<_, _>) = (Heartbeat::read(&garbage), HeartbeatAnswer::read(&garbage));
            let _: Vec<u8> = garbage;
        }
    }
}
