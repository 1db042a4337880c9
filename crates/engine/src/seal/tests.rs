//! The two sides of a direction together.

use alloc::collections::BTreeSet;
use alloc::vec;
use alloc::vec::Vec;

use byway_wire::packet::{HEADER_LEN, Header, TAG_LEN};
use byway_wire::{ConnectionId, Duration, Instant, PathId, Writer};
use proptest::prelude::*;

use super::*;

const ALL: [Suite; 3] = [Suite::Aes256Gcm, Suite::ChaCha20Poly1305, Suite::Null];
const PATH: PathId = PathId(0x0102_0304);
const START: Instant = Instant::from_millis(7);

fn pair(suite: Suite, limits: EpochLimits) -> (Sealer, Opener) {
    let secret = Secret::new([0x42; 32]);
    let sealer = Sealer::new(suite, secret.clone()).unwrap().with_limits(limits);
    (sealer, Opener::new(suite, &secret).unwrap().with_limits(limits))
}

fn every(packets: u64) -> EpochLimits {
    EpochLimits { packets, ..EpochLimits::default() }
}

/// A sealed packet as it is sent.
#[derive(Clone, Debug)]
struct Packet {
    path: PathId,
    number: u64,
    bytes: Vec<u8>,
}

impl Packet {
    fn seal(sealer: &mut Sealer, now: Instant, path: PathId, number: u64, text: &[u8]) -> Self {
        let mut bytes = vec![0; HEADER_LEN + text.len() + TAG_LEN];
        let mut writer = Writer::new(&mut bytes);
        let epoch = sealer.epoch(now);
        Header { connection: ConnectionId(*b"a path's"), number: number as u32, epoch }.write(&mut writer);
        writer.bytes(text);
        sealer.seal(path, number, &mut bytes, HEADER_LEN).unwrap();
        Self { path, number, bytes }
    }

    fn epoch(&self) -> u8 {
        self.bytes[0] & 3
    }

    fn open(&self, opener: &mut Opener, now: Instant) -> Result<Vec<u8>, OpenError> {
        let mut bytes = self.bytes.clone();
        let text = opener.open(now, self.path, self.number, self.epoch(), &mut bytes, HEADER_LEN)?;
        Ok(text.to_vec())
    }
}

#[test]
fn full_packets_have_no_rest_where_a_rest_is_dear() {
    for header in [HEADER_LEN, HEADER_LEN + 44] {
        for packet in 0..1500 {
            let whole = Suite::Aes256Gcm.whole(packet, header);
            if let Some(body) = packet.checked_sub(header + TAG_LEN) {
                assert_eq!((whole - header - TAG_LEN) % 16, 0);
                assert!((packet - 15..=packet).contains(&whole), "{body} bytes to seal: {whole} of {packet}");
            } else {
                assert_eq!(whole, packet);
            }
            assert_eq!(Suite::Null.whole(packet, header), packet);
            assert_eq!(Suite::ChaCha20Poly1305.whole(packet, header), packet);
        }
    }
}

#[test]
fn what_was_sealed_opens() {
    for suite in ALL {
        let (mut sealer, mut opener) = pair(suite, EpochLimits::default());
        for (number, length) in [0, 1, 4, 15, 16, 17, 1171, 8971].into_iter().enumerate() {
            let text: Vec<u8> = (0..length).map(|i| i as u8).collect();
            let packet = Packet::seal(&mut sealer, START, PATH, number as u64, &text);
            let readable = length > 3 && packet.bytes.windows(length).any(|window| window == text);
            assert_eq!(readable, suite == Suite::Null && length > 3, "{suite:?} {length}");
            assert_eq!(packet.open(&mut opener, START), Ok(text));
        }
    }
}

/// Freezes the key schedule, the nonce and the ciphers, on which peers of one version agree.
#[test]
fn sealed_packets_in_hex() {
    let hex = |suite| {
        let (mut sealer, _) = pair(suite, every(1));
        let zero = Packet::seal(&mut sealer, START, PATH, 0x0506_0708_090a_0b0c, b"text");
        let one = Packet::seal(&mut sealer, START, PATH, 0x0506_0708_090a_0b0d, b"text");
        assert_eq!((zero.epoch(), one.epoch()), (0, 1));
        let sealed = [&zero.bytes[HEADER_LEN..], &one.bytes[HEADER_LEN..]].concat();
        sealed.iter().map(|byte| alloc::format!("{byte:02x}")).collect::<alloc::string::String>()
    };
    assert_eq!(
        hex(Suite::Aes256Gcm),
        "d74f1e975b7b7ecd07b83a3290cf527e9e75ce9db42fb33a515a1c5166329d785cbabd314bd4ac27"
    );
    assert_eq!(
        hex(Suite::ChaCha20Poly1305),
        "4336c4de85961e89e4a59706294ae377bd30c582faa50788e7deada8901221ee52af557a8a8c5e84"
    );
    assert_eq!(
        hex(Suite::Null),
        "74657874bbd0cfbe581435973d8f6412ce38301c7465787414ab8fbe6cd699f6cbfc1d77aaab2bf6"
    );
}

#[test]
fn any_changed_bit_is_noticed() {
    for suite in ALL {
        let (mut sealer, mut opener) = pair(suite, EpochLimits::default());
        let packet = Packet::seal(&mut sealer, START, PATH, 9, b"forty-two");
        for at in 0..packet.bytes.len() * 8 {
            let mut changed = packet.clone();
            changed.bytes[at / 8] ^= 1 << (at % 8);
            // A flip in the epoch's own bits makes 1 or 2 of it, which are tried; never 3, which is
            // not.
            assert_eq!(changed.open(&mut opener, START), Err(OpenError::Forged), "{suite:?} bit {at}");
        }
        assert_eq!(opener.forged(), packet.bytes.len() as u64 * 8);
        for length in 0..packet.bytes.len() {
            let mut cut = packet.clone();
            cut.bytes.truncate(length);
            let error = opener.open(START, PATH, 9, 0, &mut cut.bytes, HEADER_LEN).unwrap_err();
            let expected =
                if length < HEADER_LEN + TAG_LEN { OpenError::TooShort } else { OpenError::Forged };
            assert_eq!(error, expected, "{suite:?} cut to {length}");
        }
        assert_eq!(packet.open(&mut opener, START).unwrap(), b"forty-two");
    }
}

#[test]
fn a_packet_opens_only_as_what_it_is() {
    for suite in ALL {
        let (mut sealer, mut opener) = pair(suite, EpochLimits::default());
        let packet = Packet::seal(&mut sealer, START, PATH, 9, b"text");
        let with = |path, number| {
            Packet { path, number, ..packet.clone() }.open(&mut pair(suite, every(9)).1, START)
        };
        assert_eq!(with(PATH, 9).unwrap(), b"text");
        assert_eq!(with(PathId(PATH.0 + 1), 9), Err(OpenError::Forged));
        assert_eq!(with(PATH, 8), Err(OpenError::Forged));
        assert_eq!(with(PATH, 9 + (1 << 32)), Err(OpenError::Forged));
        for (epoch, error) in [(1, OpenError::Forged), (2, OpenError::Forged), (3, OpenError::OldEpoch)] {
            let mut bytes = packet.bytes.clone();
            let opened = opener.open(START, PATH, 9, epoch, &mut bytes, HEADER_LEN);
            assert_eq!(opened.unwrap_err(), error);
        }
        let mut other = Opener::new(suite, &Secret::new([0x43; 32])).unwrap();
        assert_eq!(packet.open(&mut other, START), Err(OpenError::Forged));
    }
}

#[test]
fn a_byte_does_not_move_between_header_and_body() {
    for suite in ALL {
        let (mut sealer, mut opener) = pair(suite, EpochLimits::default());
        let packet = Packet::seal(&mut sealer, START, PATH, 1, b"text");
        for header_len in (0..HEADER_LEN).chain([HEADER_LEN + 1]) {
            let mut bytes = packet.bytes.clone();
            let opened = opener.open(START, PATH, 1, 0, &mut bytes, header_len);
            assert_eq!(opened.unwrap_err(), OpenError::Forged, "{suite:?} {header_len}");
        }
    }
}

#[test]
fn no_room_for_the_tag_is_refused() {
    let (mut sealer, _) = pair(Suite::Aes256Gcm, EpochLimits::default());
    for length in 0..HEADER_LEN + TAG_LEN {
        assert_eq!(sealer.seal(PATH, 0, &mut vec![0; length], HEADER_LEN), Err(SealError::TooShort));
    }
    assert_eq!(sealer.seal(PATH, 0, &mut [0; HEADER_LEN + TAG_LEN], HEADER_LEN), Ok(()));
    assert_eq!(sealer.seal(PATH, 0, &mut [0; 64], usize::MAX), Err(SealError::TooShort));
}

#[test]
fn epochs_roll_under_reordered_packets_of_several_paths() {
    for suite in ALL {
        let (mut sealer, mut opener) = pair(suite, every(250));
        let mut packets: Vec<Packet> = (0..5000u64)
            .map(|i| Packet::seal(&mut sealer, START, PathId((i % 3) as u32), i / 3, &i.to_be_bytes()))
            .collect();
        assert_eq!(sealer.epochs(), 19);
        // Each comes up to 100 places late, across the boundaries.
        let mut state = 1u64;
        let mut late = 0..;
        packets.sort_by_cached_key(|_| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            late.next().unwrap_or(0u64) + (state >> 33) % 100
        });
        let displaced = packets.windows(2).filter(|two| two[0].epoch() != two[1].epoch()).count();
        assert!(displaced > 200, "{displaced}");
        let opened: BTreeSet<u64> = packets
            .iter()
            .map(|packet| packet.open(&mut opener, START).expect("genuine"))
            .map(|text| u64::from_be_bytes(text.try_into().unwrap()))
            .collect();
        assert_eq!(opened, (0..5000).collect());
        assert_eq!((opener.epochs(), opener.forged()), (19, 0));
    }
}

#[test]
fn an_epoch_ends_by_age_too() {
    let (mut sealer, mut opener) = pair(Suite::Aes256Gcm, EpochLimits::default());
    let hour = Duration::from_secs(3600);
    assert_eq!(sealer.epoch(START), 0);
    assert_eq!(sealer.epoch(START + hour - Duration::from_nanos(1)), 0);
    assert_eq!(sealer.epoch(START + hour), 1);
    assert_eq!(sealer.epoch(START + hour + hour), 2);
    // Epoch 1 passed unseen.
    let packet = Packet::seal(&mut sealer, START + hour + hour, PATH, 0, b"text");
    assert_eq!(packet.open(&mut opener, START).unwrap(), b"text");
    assert_eq!(opener.epochs(), 2);
}

#[test]
fn one_epoch_may_be_lost_whole_and_its_stragglers_still_open() {
    let (mut sealer, mut opener) = pair(Suite::ChaCha20Poly1305, every(1));
    let packets: Vec<Packet> = (0..8).map(|n| Packet::seal(&mut sealer, START, PATH, n, b"text")).collect();
    for (at, epochs) in [(0, 0), (2, 2), (1, 2), (4, 4), (3, 4), (4, 4), (5, 5), (7, 7), (6, 7)] {
        assert_eq!(packets[at].open(&mut opener, START).unwrap(), b"text", "epoch {at}");
        assert_eq!(opener.epochs(), epochs);
    }
    // Two lost in a row are beyond what two bits can tell.
    let (_, mut opener) = pair(Suite::ChaCha20Poly1305, every(1));
    assert_eq!(packets[3].open(&mut opener, START), Err(OpenError::OldEpoch));
}

#[test]
fn stragglers_have_some_seconds() {
    let limits = every(2);
    let (mut sealer, mut opener) = pair(Suite::Aes256Gcm, limits);
    let packets: Vec<Packet> = (0..4).map(|n| Packet::seal(&mut sealer, START, PATH, n, b"text")).collect();
    assert!(packets[2].open(&mut opener, START).is_ok());
    let end = START + limits.stragglers;
    assert!(packets[0].open(&mut opener, end - Duration::from_nanos(1)).is_ok());
    assert_eq!(packets[1].open(&mut opener, end), Err(OpenError::OldEpoch));
    assert_eq!(opener.forged(), 0);
    assert!(packets[3].open(&mut opener, end).is_ok());
}

#[test]
fn forgeries_of_the_next_epoch_move_nothing() {
    let (mut sealer, mut opener) = pair(Suite::Aes256Gcm, every(3));
    let packets: Vec<Packet> = (0..6).map(|n| Packet::seal(&mut sealer, START, PATH, n, b"text")).collect();
    for i in 0..1000u16 {
        let mut forged = packets[0].clone();
        forged.bytes[0] = 0x41 + (i & 1) as u8;
        assert_eq!(forged.open(&mut opener, START), Err(OpenError::Forged));
    }
    assert_eq!((opener.epochs(), opener.forged()), (0, 1000));
    assert!(packets.iter().all(|packet| packet.open(&mut opener, START).is_ok()));
    assert_eq!(opener.epochs(), 1);
}

#[test]
fn too_many_forgeries_end_it() {
    for (suite, limit) in [(Suite::Aes256Gcm, 1u64 << 52), (Suite::ChaCha20Poly1305, 1 << 36)] {
        let (mut sealer, mut opener) = pair(suite, EpochLimits::default());
        let packet = Packet::seal(&mut sealer, START, PATH, 0, b"text");
        opener.pretend_forged(limit - 1);
        assert!(packet.open(&mut opener, START).is_ok());
        assert_eq!(Packet { number: 1, ..packet.clone() }.open(&mut opener, START), Err(OpenError::Forged));
        assert_eq!(packet.open(&mut opener, START), Err(OpenError::Exhausted));
    }
}

#[test]
fn a_key_is_never_used_beyond_its_hard_limit() {
    let (mut sealer, _) = pair(Suite::Aes256Gcm, EpochLimits::default());
    sealer.pretend_sealed(EpochLimits::HARD_LIMIT_PACKETS - 1);
    assert_eq!(sealer.seal(PATH, 0, &mut [0; 64], HEADER_LEN), Ok(()));
    assert_eq!(sealer.seal(PATH, 1, &mut [0; 64], HEADER_LEN), Err(SealError::WornOut));
    assert_eq!(sealer.epoch(START), 1);
    assert_eq!(sealer.seal(PATH, 1, &mut [0; 64], HEADER_LEN), Ok(()));
}

#[test]
fn connection_ids_differ_by_path_and_secret() {
    let ids: BTreeSet<ConnectionId> = (0..2000u32)
        .flat_map(|path| [[1; 32], [2; 32]].map(|secret| connection_id(&secret, PathId(path))))
        .collect();
    assert_eq!(ids.len(), 4000);
    assert_eq!(connection_id(&[1; 32], PathId(7)), ConnectionId(0x0d6b_e1ac_d601_f5a1_u64.to_be_bytes()));
}

#[test]
fn suites_are_agreed_on() {
    use Suite::*;
    let fast = Suites::for_processor(true);
    let slow = Suites::for_processor(false);
    assert_eq!(fast.agree(fast), Some(Aes256Gcm));
    assert_eq!(fast.agree(slow), Some(ChaCha20Poly1305));
    assert_eq!(slow.agree(fast), Some(ChaCha20Poly1305));
    assert_eq!(fast.agree(Suites::INSECURE_SIMULATION), None);
    assert_eq!(fast.with(Null).agree(fast), Some(Aes256Gcm));
    assert_eq!(fast.with(Null).agree(slow.with(Null)), Some(Null));
    assert_eq!((Suite::preferred(true), Suite::preferred(false)), (Aes256Gcm, ChaCha20Poly1305));
    assert!(!fast.contains(Null) && !slow.contains(Null) && !slow.contains(Aes256Gcm));
    assert_eq!(alloc::format!("{fast:?}"), "{Aes256Gcm, ChaCha20Poly1305}");
}

#[test]
fn secrets_are_not_printed() {
    let (sealer, opener) = pair(Suite::Null, EpochLimits::default());
    let printed = alloc::format!("{sealer:?} {opener:?}");
    assert!(printed.contains("Secret(..)") && !printed.contains("66, 66"), "{printed}");
}

proptest! {
    #[test]
    fn garbage_never_opens(garbage in prop::collection::vec(any::<u8>(), 0..100), epoch: u8, header_len in 0..120usize) {
        for suite in ALL {
            let mut garbage = garbage.clone();
            let mut opener = pair(suite, EpochLimits::default()).1;
            prop_assert!(opener.open(START, PATH, 0, epoch, &mut garbage, header_len).is_err());
        }
    }
}
