use super::*;
use crate::data::OBJECT_COST;
use crate::data::{Carried, ProtocolError};
use crate::role::Role;
use alloc::vec;
use byway_wire::frame::{self, Frame, Frames};
use byway_wire::{Duration, Instant, Writer};
use smallvec::SmallVec;

const TAU: Duration = Duration::from_millis(40);

fn small() -> Incoming {
    let stream_window = 8 << 10;
    let limits = IncomingLimits {
        memory: 64 << 10,
        stream_start: stream_window,
        stream_window,
        streams: 3,
        objects: 3,
    };
    Incoming::new(limits)
}

fn at(millis: u64) -> Instant {
    Instant::from_millis(millis)
}

fn object(inc: &mut Incoming, id: u32, offset: u64, data: &[u8], fin: bool) -> Result<(), ProtocolError> {
    object_at(inc, 0, id, offset, data, fin)
}

fn object_at(
    inc: &mut Incoming,
    millis: u64,
    id: u32,
    offset: u64,
    data: &[u8],
    fin: bool,
) -> Result<(), ProtocolError> {
    inc.on_object(at(millis), &frame::Object { id: ObjectId(id), offset, data, fin })
}

fn stream(inc: &mut Incoming, id: u32, offset: u64, data: &[u8], fin: bool) -> Result<(), ProtocolError> {
    inc.on_stream(at(0), &frame::Stream { id: StreamId(id), offset, data, fin })
}

fn code(result: Result<(), ProtocolError>) -> u64 {
    result.unwrap_err().code
}

fn writes(inc: &mut Incoming) -> Vec<(u32, u64, usize)> {
    let mut all = vec![];
    while let Some(write) = inc.next_write() {
        all.push((write.object.0, write.offset, write.data.len()));
        inc.written(write.data);
    }
    all
}

fn snacks(inc: &mut Incoming, millis: u64) -> Vec<(u64, u64)> {
    let mut buffer = [0; 500];
    let mut writer = Writer::new(&mut buffer);
    inc.write_snacks(at(millis), TAU, &mut writer);
    let mut all = vec![];
    for frame in Frames::new(writer.written()) {
        match frame.unwrap() {
            Frame::SnackObject { missing, .. } | Frame::SnackStream { missing, .. } => {
                all.extend(missing.iter())
            }
            other => panic!("{other:?}"),
        }
    }
    all
}

fn told(inc: &mut Incoming) -> (Vec<u8>, SmallVec<[Carried; 2]>) {
    let (mut buffer, mut carried) = ([0; 200], SmallVec::new());
    let mut writer = Writer::new(&mut buffer);
    inc.fill(at(1_000), Duration::from_millis(20), &mut writer, &mut carried);
    (writer.written().to_vec(), carried)
}

#[test]
fn hostile_frames_are_refused() {
    let big = vec![0; 9_000];
    assert_eq!(code(stream(&mut small(), 0, 0, &big, false)), ProtocolError::FLOW_CONTROL);
    assert_eq!(code(stream(&mut small(), 0, 8 << 10, &[1], false)), ProtocolError::FLOW_CONTROL);
    let mut inc = small();
    let result = (0..8).try_for_each(|index| object(&mut inc, 0, index * 9_000, &big, false));
    assert_eq!(code(result), ProtocolError::FLOW_CONTROL, "the connection's limit");

    for fins in [
        [(0, 10, true), (5, 10, false)], // beyond the end
        [(0, 10, true), (0, 5, true)],   // another end
        [(5, 10, false), (0, 9, true)],  // an end before what came
    ] {
        let (mut as_stream, mut as_object) = (small(), small());
        // A hole keeps both from being complete, and forgotten.
        let shift = 3;
        let streams = fins.iter().try_for_each(|(offset, length, fin)| {
            stream(&mut as_stream, 1, offset + shift, &big[..*length], *fin)
        });
        assert_eq!(code(streams), ProtocolError::FINAL_SIZE, "{fins:?}");
        let objects = fins.iter().try_for_each(|(offset, length, fin)| {
            object(&mut as_object, 1, offset + shift, &big[..*length], *fin)
        });
        assert_eq!(code(objects), ProtocolError::FINAL_SIZE, "{fins:?}");
    }

    let mut inc = small();
    assert_eq!(
        code((0..4).try_for_each(|index| stream(&mut inc, 2 * index, 0, b"x", false))),
        ProtocolError::STREAM_LIMIT
    );
    let mut inc = small();
    assert_eq!(
        code((0..4).try_for_each(|id| object(&mut inc, id, 0, b"x", false))),
        ProtocolError::STREAM_LIMIT
    );
}

#[test]
fn scattering_takes_neither_memory_nor_time_without_bound() {
    let limits = IncomingLimits { memory: 1 << 20, ..IncomingLimits::default() };
    let mut inc = Incoming::new(limits);
    // Every other byte, backwards; then one byte per block.
    for index in (0..10_000).rev() {
        object(&mut inc, 0, index * 2, b"x", false).unwrap();
        assert!(inc.memory() <= 4 << 20);
    }
    for index in 0..4_000 {
        object(&mut inc, 1, index << 20, b"x", false).unwrap();
        assert!(inc.memory() <= 4 << 20);
    }
    let result = (0..10_000).try_for_each(|index| object(&mut inc, 1, (1 << 50) + index * 2, b"x", false));
    assert_eq!(code(result), ProtocolError::SCATTERED);
    // A stream backwards, byte by byte, is one range; its pieces are merged too.
    let mut inc = Incoming::new(IncomingLimits { streams: 3, ..limits });
    for offset in (0..64 << 10).rev() {
        stream(&mut inc, 0, offset, b"x", false).unwrap();
    }
    assert!(inc.memory() < 256 << 10);
}

#[test]
fn bytes_are_gathered_into_blocks() {
    let mut inc = Incoming::new(IncomingLimits { memory: 1 << 20, ..IncomingLimits::default() }); // blocks of 16 KiB
    let packet = [5; 1_000];
    // Two places advance in turn.
    for index in 0..16 {
        object(&mut inc, 0, index * 2_000 + 1_000, &packet, false).unwrap();
        assert_eq!(inc.next_write(), None);
    }
    for index in 0..16 {
        object(&mut inc, 0, index * 2_000, &packet, false).unwrap();
    }
    assert_eq!(writes(&mut inc), [(0, 0, 1_000), (0, 1_000, 15_384), (0, 16_384, 616)]);
    inc.flush();
    assert_eq!(writes(&mut inc), [(0, 17_000, 15_000)]);
    // After a flush the rest of the block goes on where it was.
    object(&mut inc, 0, 32_000, &packet, false).unwrap();
    assert_eq!(writes(&mut inc), [(0, 32_000, 768)]);
    object(&mut inc, 0, 33_000, &[], true).unwrap();
    assert_eq!(inc.next_event(), None, "not before its bytes were handed out");
    assert_eq!(writes(&mut inc), [(0, 32_768, 232)]);
    assert_eq!(inc.next_event(), Some(InEvent::ObjectComplete { id: ObjectId(0), size: 33_000 }));
    assert_eq!(inc.held(), 0);
    object(&mut inc, 0, 0, &packet, false).unwrap();
    assert_eq!((inc.held(), inc.next_write()), (0, None), "a late copy is nothing new");
}

#[test]
fn blocks_that_wait_for_holes_do_not_hold_the_window() {
    let mut inc = small(); // blocks of 1 KiB, an object every 4 KiB has one byte
    for index in 0..40 {
        object(&mut inc, 0, index * 1_024 + 1, &[1; 1_000], false).unwrap();
    }
    // All but a quarter of the window was handed out, and counts as free once written.
    let handed: usize = writes(&mut inc).iter().map(|write| write.2).sum();
    assert!(handed >= 40_000 - (16 << 10));
    assert!(inc.wants_to_send());
}

#[test]
fn limits_are_told_when_bytes_were_taken_and_again_when_lost() {
    let mut inc = small();
    stream(&mut inc, 0, 0, &[1; 8 << 10], false).unwrap();
    assert!(!inc.wants_to_send());
    let mut buffer = [0; 8 << 10];
    let read = inc.read(StreamId(0), &mut buffer);
    assert_eq!(read, Some(StreamRead { length: 8 << 10, finished: false }));
    let (bytes, carried) = told(&mut inc);
    assert_eq!(carried[..], [Carried::MaxData, Carried::MaxStreamData(StreamId(0))]);
    let frames: Vec<_> = Frames::new(&bytes).map(Result::unwrap).collect();
    assert_eq!(
        frames,
        [Frame::MaxData((64 << 10) + (8 << 10)), Frame::MaxStreamData { id: StreamId(0), limit: 16 << 10 }]
    );
    assert!(!inc.wants_to_send());
    carried.iter().for_each(|carried| inc.on_lost(carried));
    assert_eq!(told(&mut inc).0, bytes);
    // The end is known: nobody needs a limit for the stream any more.
    stream(&mut inc, 0, 8 << 10, &[], true).unwrap();
    inc.on_lost(&Carried::MaxStreamData(StreamId(0)));
    assert!(!inc.wants_to_send());
}

#[test]
fn a_stream_is_read_in_order_to_its_end() {
    let mut inc = small();
    stream(&mut inc, 1, 5, b"world", true).unwrap();
    assert_eq!(inc.next_event(), Some(InEvent::StreamOpened(StreamId(1))));
    assert_eq!(inc.next_event(), None);
    let mut buffer = [0; 4];
    assert_eq!(inc.read(StreamId(1), &mut buffer), Some(StreamRead { length: 0, finished: false }));
    stream(&mut inc, 1, 0, b"hello w", false).unwrap();
    assert_eq!(inc.next_event(), Some(InEvent::StreamReadable(StreamId(1))));
    let mut all = vec![];
    loop {
        let read = inc.read(StreamId(1), &mut buffer).unwrap();
        all.extend_from_slice(&buffer[..read.length]);
        if read.finished {
            break;
        }
    }
    assert_eq!(all, b"helloworld");
    assert_eq!(inc.read(StreamId(1), &mut buffer), None);
    stream(&mut inc, 1, 0, b"hello", false).unwrap();
    assert_eq!(inc.next_event(), None, "a late copy does not open it again");
    assert_eq!(inc.held(), 0);
}

#[test]
fn a_stream_nobody_wants_is_refused_and_still_counted() {
    let mut inc = small();
    stream(&mut inc, 0, 0, &[1; 1_000], false).unwrap();
    inc.stop(StreamId(0), 7);
    assert_eq!(inc.held(), 0);
    let (bytes, carried) = told(&mut inc);
    assert_eq!(Frames::new(&bytes).next(), Some(Ok(Frame::StopSending { id: StreamId(0), code: 7 })));
    inc.on_lost(&carried[0]);
    inc.on_lost(&carried[0]);
    assert_eq!(told(&mut inc), (bytes, carried));
    stream(&mut inc, 0, 1_000, &[1; 500], false).unwrap();
    assert_eq!((inc.held(), inc.received()), (0, 1_500));
    inc.on_reset_stream(StreamId(0), 7).unwrap();
    stream(&mut inc, 0, 1_500, &[], true).unwrap();
    inc.on_lost(&Carried::StopSending(StreamId(0)));
    let (bytes, carried) = told(&mut inc);
    assert_eq!(Frames::new(&bytes).next(), Some(Ok(Frame::MaxStreams(4))), "only that another may be opened");
    assert_eq!(carried[..], [Carried::MaxStreams]);
    assert!(!inc.wants_to_send());
    assert!(inc.streams.len() == 0);
}

/// A stream that this host opened may be refused before the peer's first byte. The bytes that come
/// then take no memory, and the owner gets no event.
#[test]
fn a_stream_nobody_wants_is_refused_before_the_peer_answers() {
    let mut inc = small().belonging_to(Role::Initiator);
    inc.stop(StreamId(0), 7);
    assert!(!inc.wants_to_send(), "nobody opened it");
    inc.opened_here(1);
    inc.stop(StreamId(0), 7);
    let (bytes, _) = told(&mut inc);
    assert_eq!(Frames::new(&bytes).next(), Some(Ok(Frame::StopSending { id: StreamId(0), code: 7 })));
    stream(&mut inc, 0, 0, &[1; 1_000], false).unwrap();
    assert_eq!((inc.next_event(), inc.held(), inc.received()), (None, 0, 1_000));
    inc.on_reset_stream(StreamId(0), 7).unwrap();
    stream(&mut inc, 0, 1_000, &[], true).unwrap();
    assert_eq!((inc.next_event(), inc.streams.len()), (None, 0));
}

#[test]
fn a_reset_is_told_once_and_the_stream_forgotten_when_all_is_counted() {
    let mut inc = small();
    stream(&mut inc, 0, 0, b"abc", false).unwrap();
    inc.on_reset_stream(StreamId(0), 4).unwrap();
    inc.on_reset_stream(StreamId(0), 4).unwrap();
    assert_eq!(inc.read(StreamId(0), &mut [0; 9]), None);
    stream(&mut inc, 0, 3, b"", true).unwrap();
    let events: Vec<_> = core::iter::from_fn(|| inc.next_event()).collect();
    assert_eq!(events.last(), Some(&InEvent::StreamReset { id: StreamId(0), code: 4 }));
    assert_eq!(events.len(), 3);
    assert!(inc.streams.len() == 0);
    inc.on_reset_stream(StreamId(0), 4).unwrap();
    assert_eq!(inc.next_event(), None);
}

#[test]
fn an_object_nobody_wants_is_counted_and_dropped() {
    let mut inc = small();
    object(&mut inc, 0, 0, &[1; 2_500], false).unwrap();
    let kept = inc.next_write().unwrap();
    inc.forget_object(ObjectId(0));
    assert_eq!(inc.held(), kept.data.len() as u64);
    inc.written(kept.data);
    object(&mut inc, 0, 2_000, &[1; 1_000], true).unwrap();
    assert_eq!((inc.held(), inc.received()), (0, 3_000));
    assert_eq!((inc.next_write(), inc.next_event()), (None, None));
    assert!(inc.objects.len() == 0 && inc.out_of_order.ranges() == 0);
    // Before its first byte, too.
    inc.forget_object(ObjectId(5));
    object(&mut inc, 5, 0, b"x", true).unwrap();
    assert_eq!((inc.held(), inc.next_write()), (0, None));
}

#[test]
fn a_hole_is_named_after_tau_and_after_every_other_tau() {
    let mut inc = small();
    object_at(&mut inc, 0, 0, 0, &[1; 100], false).unwrap();
    assert_eq!(inc.snack_deadline(TAU), None);
    object_at(&mut inc, 10, 0, 200, &[1; 100], false).unwrap();
    object_at(&mut inc, 30, 0, 400, &[1; 100], false).unwrap();
    assert_eq!(inc.snack_deadline(TAU), Some(at(50)));
    assert_eq!(snacks(&mut inc, 49), []);
    assert_eq!(snacks(&mut inc, 50), [(100, 200)]);
    assert_eq!(inc.snack_deadline(TAU), Some(at(70)));
    assert_eq!(snacks(&mut inc, 69), []);
    assert_eq!(snacks(&mut inc, 71), [(300, 400)]);
    assert_eq!(inc.snack_deadline(TAU), Some(at(90)));
    object_at(&mut inc, 80, 0, 100, &[1; 60], false).unwrap();
    assert_eq!(snacks(&mut inc, 90), [(160, 200)]);
    object_at(&mut inc, 91, 0, 160, &[1; 40], false).unwrap();
    assert_eq!(snacks(&mut inc, 111), [(300, 400)]);
    object_at(&mut inc, 112, 0, 300, &[1; 100], false).unwrap();
    assert_eq!(inc.snack_deadline(TAU), None, "all holes are filled");
}

#[test]
fn a_half_full_buffer_does_not_wait() {
    let mut inc = small();
    object_at(&mut inc, 10, 0, 1_000, &[1; 9_000], false).unwrap();
    let mut offset = 10_000;
    while inc.held() <= 32 << 10 {
        assert_eq!(inc.snack_deadline(TAU), Some(at(50)));
        object_at(&mut inc, 11, 0, offset, &[1; 1_000], false).unwrap();
        offset += 1_000;
    }
    assert!(inc.snack_deadline(TAU) <= Some(at(11)));
    assert_eq!(snacks(&mut inc, 11), [(0, 1_000)]);
    assert_eq!(snacks(&mut inc, 12), [], "again after another tau");
    assert_eq!(inc.snack_deadline(TAU), Some(at(51)));
    // A stream's own window counts for its own holes.
    let mut inc = small();
    stream(&mut inc, 0, 100, &[1; 3_000], false).unwrap();
    assert_eq!(inc.snack_deadline(TAU), Some(at(40)));
    stream(&mut inc, 0, 3_100, &[1; 3_000], false).unwrap();
    assert_eq!(snacks(&mut inc, 1), [(0, 100)]);
}

#[test]
fn holes_that_do_not_fit_stay_due() {
    let mut inc = small();
    for index in 1..20 {
        object_at(&mut inc, 0, 0, index * 100, &[1; 50], false).unwrap();
    }
    let mut named = vec![];
    for _ in 0..30 {
        let mut buffer = [0; 60];
        let mut writer = Writer::new(&mut buffer);
        if !inc.write_snacks(at(40), TAU, &mut writer) {
            break;
        }
        for frame in Frames::new(writer.written()) {
            let Frame::SnackObject { missing, .. } = frame.unwrap() else { panic!("a SNACK") };
            named.extend(missing.iter());
        }
        assert!(!writer.overflowed());
    }
    let holes: Vec<_> =
        core::iter::once((0, 100)).chain((1..19).map(|i| (i * 100 + 50, i * 100 + 100))).collect();
    assert_eq!(named, holes);
    assert_eq!(inc.snack_deadline(TAU), Some(at(80)));
}

#[test]
fn what_waits_for_a_hole_is_counted() {
    let mut inc = Incoming::new(IncomingLimits::default());
    object(&mut inc, 0, 0, &[0; 100], false).unwrap();
    object(&mut inc, 0, 300, &[0; 100], false).unwrap();
    stream(&mut inc, 0, 50, &[0; 10], false).unwrap();
    assert_eq!(inc.out_of_order(), (110, 110));
    object(&mut inc, 0, 200, &[0; 150], false).unwrap();
    assert_eq!(inc.out_of_order(), (210, 210));
    stream(&mut inc, 0, 0, &[0; 50], false).unwrap();
    object(&mut inc, 0, 100, &[0; 100], false).unwrap();
    assert_eq!(inc.out_of_order(), (0, 210));
    object(&mut inc, 0, 500, &[0; 70], false).unwrap();
    inc.forget_object(ObjectId(0));
    assert_eq!(inc.out_of_order(), (0, 210));
}

#[test]
fn an_object_that_is_only_a_length_is_told_and_credited_as_it_is_asked_for() {
    let mut inc = Incoming::new(IncomingLimits::default()).made_of(Payload::Length);
    object(&mut inc, 0, 0, &[0; 100], false).unwrap();
    object(&mut inc, 0, 50, &[0; 100], false).unwrap();
    object(&mut inc, 0, 200, &[0; 100], true).unwrap();
    object(&mut inc, 1, 0, &[0; 30], true).unwrap();
    assert_eq!(inc.held(), 280 + 2 * OBJECT_COST);
    let arrivals: Vec<_> =
        core::iter::from_fn(|| inc.next_arrival()).map(|a| (a.object.0, a.offset, a.length)).collect();
    assert_eq!(arrivals, [(0, 0, 150), (0, 200, 100), (1, 0, 30)]);
    assert_eq!(inc.held(), 2 * OBJECT_COST);
    assert_eq!(inc.next_event(), Some(InEvent::ObjectComplete { id: ObjectId(1), size: 30 }));
    object(&mut inc, 0, 150, &[0; 50], false).unwrap();
    assert_eq!(inc.next_event(), None, "not before its last bytes were told");
    assert_eq!(inc.next_arrival().map(|a| (a.offset, a.length)), Some((150, 50)));
    assert_eq!(inc.next_event(), Some(InEvent::ObjectComplete { id: ObjectId(0), size: 300 }));
    assert_eq!(inc.held(), 0);
}

#[test]
fn small_objects_that_wait_for_the_disk_leave_memory_to_gather_the_next() {
    let mut inc = Incoming::new(IncomingLimits { memory: 4 << 20, ..IncomingLimits::default() });
    // Each in ten packets, so that its size is not known at the first; nobody writes meanwhile.
    for id in 0..200 {
        for packet in 0..10u64 {
            object(&mut inc, id, packet * 1_000, &[7; 1_000], packet == 9).unwrap();
        }
    }
    let writes = writes(&mut inc);
    assert_eq!(writes, (0..200).map(|id| (id, 0, 10_000)).collect::<Vec<_>>());
}
