use super::ack::{AckWriter, EntryParts};
use super::ranges::write_ranges;
use super::*;
use alloc::vec;
use alloc::vec::Vec;
use proptest::prelude::*;

fn bytes(write: impl FnOnce(&mut Writer<'_>)) -> Vec<u8> {
    let mut buffer = vec![0xaa; 4000];
    let mut writer = Writer::new(&mut buffer);
    write(&mut writer);
    assert!(!writer.overflowed());
    writer.written().to_vec()
}

fn only(packet: &[u8]) -> Frame<'_> {
    let mut frames = Frames::new(packet);
    let frame = frames.next().unwrap().unwrap();
    assert!(frames.next().is_none(), "one frame expected");
    frame
}

fn hex(bytes: &[u8]) -> alloc::string::String {
    bytes.iter().map(|b| alloc::format!("{b:02x}")).collect()
}

/// A frame that named nothing would be refused as malformed, and end the connection.
#[test]
fn what_is_missing_is_named_whole_or_not_at_all() {
    let missing = [(1 << 60, (1 << 60) + (1 << 31)), (1 << 61, (1 << 61) + 1)];
    for size in 0..80 {
        let mut buffer = [0; 80];
        let mut writer = Writer::new(&mut buffer[..size]);
        write_pnack(&mut writer, PathId(1 << 14), &missing);
        assert!(!writer.overflowed(), "{size}");
        let named = Frames::new(writer.written()).map(|frame| match frame.unwrap() {
            Frame::Pnack { missing, .. } => missing.iter().count(),
            other => panic!("{other:?}"),
        });
        let expected = if size < 23 { vec![] } else { vec![if size < 39 { 1 } else { 2 }] };
        assert_eq!(named.collect::<Vec<_>>(), expected, "{size}");
    }
}

/// The formats are frozen: a change here is a new protocol version.
#[test]
fn every_frame_in_hex() {
    let v4: SocketAddr = "192.0.2.7:4748".parse().unwrap();
    let v6: SocketAddr = "[2001:db8::1]:9".parse().unwrap();
    let missing = bytes(|w| write_ranges(w, &[(5, 6), (8, 300)]));
    let ranges = || Ranges { count: 2, bytes: &missing[1..] };
    let frozen: Vec<(Frame<'_>, &str)> = vec![
        (Frame::Padding, "00"),
        (Frame::Ping, "01"),
        (Frame::Pnack { path: PathId(3), missing: ranges() }, "03030205000241 23".trim()),
        (Frame::SnackStream { id: StreamId(1), missing: ranges() }, "0401020500024123"),
        (Frame::SnackObject { id: ObjectId(70), missing: ranges() }, "054046020500024123"),
        (Frame::Stream(Stream { id: StreamId(2), offset: 64, data: b"hi", fin: false }), "09024040026869"),
        (Frame::Stream(Stream { id: StreamId(2), offset: 0, data: b"", fin: true }), "0b020000"),
        (
            Frame::Object(Object { id: ObjectId(9), offset: 1 << 33, data: b"x", fin: true }),
            "0f09c0000002000000000178",
        ),
        (Frame::Datagram(b"yz"), "1102797a"),
        (Frame::MaxData(1 << 20), "1480100000"),
        (Frame::MaxStreams(10_000), "126710"),
        (Frame::MaxStreamData { id: StreamId(4), limit: 15 }, "15040f"),
        (Frame::ResetStream { id: StreamId(4), code: 2 }, "160402"),
        (Frame::StopSending { id: StreamId(4), code: 3 }, "170403"),
        (Frame::Close { code: 7, reason: "bye" }, "180703627965"),
        (Frame::PathChallenge(*b"12345678"), "193132333435363738"),
        (Frame::PathResponse(*b"12345678"), "1a3132333435363738"),
        (Frame::PathDropped(PathId(5)), "1b05"),
        (
            Frame::PathHint(PathHint { path: PathId(1), srtt_micros: 20_000, delay_limit: None }),
            "1c0180004e20",
        ),
        (
            Frame::PathHint(PathHint { path: PathId(1), srtt_micros: 1, delay_limit: Some(0xffff_fff0) }),
            "1d0101fffffff0",
        ),
        (Frame::RelayOffer(RelayOffer { offer: 1, relay: v4, grant: 0xabcd }), "1e0104c0000207128c0000abcd"),
        (
            Frame::RelayConsent(RelayConsent { offer: 1, address: v6, consent: b"\x0a\x0b" }),
            "1f011020010db80000000000000000000000010009020a0b",
        ),
        (Frame::RelayRefused(6), "2006"),
        (
            Frame::Addresses(AddressList::new(false, *b"TOKEN678", b"\x01\x04\xc0\x00\x02\x07\x12\x8c")),
            "22 544f4b454e363738 0104c0000207128c",
        ),
        (Frame::Addresses(AddressList::new(true, *b"TOKEN678", b"\x00")), "23544f4b454e36373800"),
    ];
    for (frame, expected) in frozen {
        let written = bytes(|w| frame.write(w));
        assert_eq!(hex(&written), expected.replace(' ', ""), "{frame:?}");
        assert_eq!(only(&written), frame);
    }
}

#[test]
fn an_ack_in_hex() {
    let parts = EntryParts {
        path: PathId(2),
        lost: 1,
        ce: 0,
        arrival: 1_000_000,
        held_micros: 250,
        ranges: &[(90, 101), (80, 88)],
        stamps: &[(4, 1_000_000), (3, 999_940), (5, 999_950)],
    };
    let written = bytes(|w| {
        let mut ack = AckWriter::begin(w);
        assert!(ack.entry(w, &parts));
        assert!(ack.finish(w));
    });
    assert_eq!(hex(&written), "020102406401000 00f424040fa010a0107030400034078051 3".replace(' ', ""));
    let Frame::Ack(entries) = only(&written) else { panic!("not an ACK") };
    let entry = entries.iter().next().unwrap();
    assert_eq!((entry.path, entry.largest, entry.lost, entry.ce), (PathId(2), 100, 1, 0));
    assert_eq!((entry.arrival, entry.held_micros), (1_000_000, 250));
    assert_eq!(entry.ranges().collect::<Vec<_>>(), parts.ranges);
    assert_eq!(entry.stamps().collect::<Vec<_>>(), parts.stamps);
}

#[test]
fn an_ack_down_to_the_very_first_packet_ends_there() {
    for ranges in [&[(0, 1)][..], &[(5, 9), (0, 2)]] {
        let parts = EntryParts {
            path: PathId(0),
            lost: 0,
            ce: 0,
            arrival: 7,
            held_micros: 0,
            ranges,
            stamps: &[(1, 7)],
        };
        let written = bytes(|w| {
            let mut ack = AckWriter::begin(w);
            assert!(ack.entry(w, &parts));
            assert!(ack.finish(w));
        });
        let Frame::Ack(entries) = only(&written) else { panic!("not an ACK") };
        assert_eq!(entries.iter().next().unwrap().ranges().collect::<Vec<_>>(), ranges);
    }
}

#[test]
fn the_overhead_stays_within_the_byte_budget() {
    // Design: header, tag and data-frame header together take at most 48 bytes on a direct data
    // packet.
    let largest = object_header_len(ObjectId(MAX_OBJECT_ID), crate::codec::VARINT_MAX, None);
    assert_eq!(largest, OBJECT_HEADER_MAX);
    assert!(crate::packet::PACKET_OVERHEAD_LEN + largest <= 48);
}

#[test]
fn the_last_frame_of_a_packet_needs_no_length() {
    let object = Object { id: ObjectId(1), offset: 7, data: b"to the end", fin: true };
    let stream = Stream { id: StreamId(1), offset: 7, data: b"to the end", fin: false };
    assert_eq!(only(&bytes(|w| write_object(w, &object, false))), Frame::Object(object));
    assert_eq!(only(&bytes(|w| write_stream(w, &stream, false))), Frame::Stream(stream));
    assert_eq!(only(&bytes(|w| write_datagram(w, b"all", false))), Frame::Datagram(b"all"));
}

#[test]
fn an_ack_without_room_is_cut_from_the_old_end() {
    let ranges: Vec<(u64, u64)> = (0..100).map(|i| (1000 - 4 * i, 1002 - 4 * i)).collect();
    let stamps: Vec<(u64, u32)> = (0..40).map(|i| (1, 5_000_000 - 300 * i)).collect();
    let parts = EntryParts {
        path: PathId(0),
        lost: 0,
        ce: 0,
        arrival: 5_000_000,
        held_micros: 0,
        ranges: &ranges,
        stamps: &stamps,
    };
    for room in 0..600 {
        let mut buffer = vec![0; room];
        let mut writer = Writer::new(&mut buffer);
        if room < 2 {
            continue;
        }
        let mut ack = AckWriter::begin(&mut writer);
        let taken = ack.entry(&mut writer, &parts);
        assert_eq!(ack.finish(&mut writer), taken);
        assert!(!writer.overflowed());
        if taken {
            let Frame::Ack(entries) = only(writer.written()) else { panic!("not an ACK") };
            let entry = entries.iter().next().unwrap();
            let got: Vec<_> = entry.ranges().collect();
            assert_eq!(got, ranges[..got.len()]);
        }
    }
}

#[test]
fn impossible_ranges_are_refused() {
    for bad in [
        &[0x02, 0x01, 0x00, 0x05, 0, 0, 0, 0, 0, 0, 0, 0x00, 0x06, 0x00][..], // range below zero
        &[0x02, 0x00],                                                        // no entry
        &[0x02, 0x01, 0x00, 0x05, 0, 0, 0, 0, 0, 0, 0, 0x00, 0x00, 0x01, 0x02, 0x00], // more stamps than packets
        &[0x03, 0x00, 0x00],                                                          // no range
        &[0x03, 0x00, 0x02, 0x01, 0x00, 0x00, 0x00],                                  // touching ranges
    ] {
        assert!(Frames::new(bad).next().unwrap().is_err(), "{bad:02x?}");
    }
}

fn ascending(count: usize) -> impl Strategy<Value = Vec<(u64, u64)>> {
    prop::collection::vec((1u64..1 << 20, 1u64..1 << 20), 1..count).prop_map(|steps| {
        let mut end = 0;
        steps
            .into_iter()
            .map(|(gap, length)| {
                let start = end + gap;
                end = start + length;
                (start, end)
            })
            .collect()
    })
}

proptest! {
    #[test]
    fn ranges_round_trip(ranges in ascending(40), path: u32) {
        let written = bytes(|w| write_pnack(w, PathId(path), &ranges));
        let Frame::Pnack { path: got, missing } = only(&written) else { panic!("not a PNACK") };
        prop_assert_eq!(got, PathId(path));
        prop_assert_eq!(missing.iter().collect::<Vec<_>>(), ranges);
    }

    #[test]
    fn acks_round_trip(mut ranges in ascending(20), path: u32, lost in 0u64..1 << 40, arrival: u32, deltas in prop::collection::vec(-500_000i32..500_000, 0..10)) {
        ranges.reverse();
        let mut at = arrival;
        let mut stamps = Vec::new();
        for (packet, delta) in deltas.iter().enumerate() {
            if (packet as u64) < ranges.iter().map(|(start, end)| end - start).sum() {
                at = at.wrapping_sub(*delta as u32);
                stamps.push((1, at));
            }
        }
        let parts = EntryParts { path: PathId(path), lost, ce: 3, arrival, held_micros: 9, ranges: &ranges, stamps: &stamps };
        let written = bytes(|w| {
            let mut ack = AckWriter::begin(w);
            assert!(ack.entry(w, &parts));
            ack.finish(w);
        });
        let Frame::Ack(entries) = only(&written) else { panic!("not an ACK") };
        let entry = entries.iter().next().unwrap();
        prop_assert_eq!(entry.lost, lost);
        prop_assert_eq!(entry.ranges().collect::<Vec<_>>(), ranges);
        prop_assert_eq!(entry.stamps().collect::<Vec<_>>(), stamps);
        prop_assert_eq!(bytes(|w| Frame::Ack(entries.clone()).write(w)), written);
    }

    #[test]
    fn data_frames_round_trip(id in 0..=MAX_OBJECT_ID, offset in 0..(1u64 << 61), data in prop::collection::vec(any::<u8>(), 0..1400), fin: bool, has_length: bool) {
        let object = Object { id: ObjectId(id), offset, data: &data, fin };
        let written = bytes(|w| write_object(w, &object, has_length));
        prop_assert_eq!(written.len(), object_header_len(object.id, offset, has_length.then_some(data.len())) + data.len());
        prop_assert_eq!(only(&written), Frame::Object(object));
        let stream = Stream { id: StreamId(id), offset, data: &data, fin };
        let written = bytes(|w| write_stream(w, &stream, has_length));
        prop_assert_eq!(only(&written), Frame::Stream(stream));
    }

    /// A frame that was written without its bytes is read as the same frame with zeros, and cannot
    /// be longer than the missing bytes.
    #[test]
    fn objects_may_be_only_a_length(id in 0..=MAX_OBJECT_ID, offset in 0..(1u64 << 61), first in 0usize..900, last in 0usize..900, fin: bool) {
        let (id, end) = (ObjectId(id), offset + 1000);
        let mut buffer = [0xaa; 2000];
        let mut writer = Writer::new(&mut buffer);
        write_object_header(&mut writer, id, offset, Some(first), false);
        writer.skip(first);
        Frame::Ping.write(&mut writer);
        write_object_header(&mut writer, id, end, None, fin);
        writer.skip(last);
        prop_assert_eq!(writer.phantom(), first + last);
        let zeros = [0; 900];
        let frames = Frames::with_phantom(writer.written(), first + last).collect::<Result<Vec<_>, _>>();
        let expected = [
            Frame::Object(Object { id, offset, data: &zeros[..first], fin: false }),
            Frame::Ping,
            Frame::Object(Object { id, offset: end, data: &zeros[..last], fin }),
        ];
        prop_assert_eq!(frames, Ok(expected.to_vec()));
        if first > 0 {
            let mut short = Frames::with_phantom(writer.written(), first - 1);
            prop_assert_eq!(short.next(), Some(Err(DecodeError::Truncated)));
        }
    }

    #[test]
    fn garbage_never_panics_and_what_is_read_writes_back(garbage in prop::collection::vec(any::<u8>(), 0..300)) {
        for frame in Frames::new(&garbage) {
            let Ok(frame) = frame else { break };
            if let Frame::Ack(entries) = &frame {
                for entry in entries.iter() {
                    prop_assert!(entry.ranges().all(|(start, end)| start < end));
                    let _ = entry.stamps().count();
                }
            }
            let again = bytes(|w| frame.write(w));
            prop_assert_eq!(Frames::new(&again).next(), Some(Ok(frame)));
        }
    }
}
