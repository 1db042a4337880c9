use super::*;
use crate::data::OBJECT_COST;
use alloc::vec;
use byway_wire::Writer;
use byway_wire::frame::{Frame, Frames};
use smallvec::SmallVec;

type List = SmallVec<[Carried; 2]>;

/// Everything allowed.
fn open() -> Outgoing {
    let mut out = Outgoing::new(OutgoingLimits { memory: 64 << 10, read_size: 4 << 10, objects: 3 });
    out.on_max_data(1 << 40);
    out.set_initial_stream_limit(1 << 40);
    out
}

fn read_all(out: &mut Outgoing) {
    while let Some(read) = out.next_read() {
        let data: Vec<_> = (read.offset..read.offset + read.length as u64).map(|at| at as u8).collect();
        assert!(out.provide(read.object, read.offset, data));
    }
}

fn fill(out: &mut Outgoing, size: usize) -> (Vec<u8>, List) {
    let (mut buffer, mut carried) = (vec![0; size], List::new());
    let mut writer = Writer::new(&mut buffer);
    out.fill(&mut writer, &mut carried);
    assert!(!writer.overflowed());
    (writer.written().to_vec(), carried)
}

fn repeat(out: &mut Outgoing, size: usize) -> List {
    let (mut buffer, mut carried) = (vec![0; size], List::new());
    let mut writer = Writer::new(&mut buffer);
    assert_eq!(out.repeat_tail(&mut writer, &mut carried), !carried.is_empty());
    carried
}

const fn object(id: u32, offset: u64, length: u32, fin: bool) -> Carried {
    Carried::Object { id: ObjectId(id), offset, length, fin }
}

const fn stream(id: u32, offset: u64, length: u32, fin: bool) -> Carried {
    Carried::Stream { id: StreamId(id), offset, length, fin }
}

#[test]
fn streams_take_turns_and_go_before_objects() {
    let mut out = open();
    out.add_object(ObjectId(0), 5_000);
    read_all(&mut out);
    for id in [2, 4] {
        out.open_stream(StreamId(id));
        assert_eq!(out.write(StreamId(id), &[1; 150]), 150);
    }
    out.finish(StreamId(4));
    assert_eq!(fill(&mut out, 103).1[..], [stream(2, 0, 100, false)]);
    let (bytes, carried) = fill(&mut out, 240);
    assert_eq!(carried[..], [stream(4, 0, 150, true), stream(2, 100, 50, false), object(0, 0, 27, false)]);
    assert_eq!(bytes.len(), 240, "to the brim");
    let last = Frames::new(&bytes).last().unwrap().unwrap();
    assert!(matches!(last, Frame::Object(object) if object.data.len() == 27 && object.data[26] == 26));
}

#[test]
fn what_was_lost_goes_first_and_the_oldest_of_it_before_the_rest() {
    let mut out = open();
    out.add_object(ObjectId(0), 10_000);
    out.add_object(ObjectId(1), 100);
    read_all(&mut out);
    for _ in 0..3 {
        fill(&mut out, 1_003); // offsets up to 3 000, a header of three bytes and more
    }
    let sent = out.progress().sent;
    out.on_lost(&object(0, 2_000, 500, false));
    out.on_lost(&object(0, 100, 200, false));
    out.on_acked(&object(0, 150, 50, false)); // a copy arrived after all
    let carried = fill(&mut out, 2_000).1;
    assert_eq!(
        carried[..3],
        [object(0, 100, 50, false), object(0, 200, 100, false), object(0, 2_000, 500, false)]
    );
    assert!(matches!(carried[3], Carried::Object { offset, .. } if offset == sent), "then what is new");
    assert_eq!(out.progress().repeated, 650);
}

#[test]
fn a_hole_named_by_the_peer_goes_out_again_unless_it_was_acknowledged_or_never_sent() {
    let mut out = open();
    out.add_object(ObjectId(0), 4_000);
    read_all(&mut out);
    fill(&mut out, 1_003);
    let sent = out.progress().sent;
    out.on_acked(&object(0, 0, 500, false));
    out.missing(DataId::Object(ObjectId(0)), 400, 600);
    out.missing(DataId::Object(ObjectId(0)), 3_500, 3_600);
    out.missing(DataId::Object(ObjectId(9)), 0, 1);
    let carried = fill(&mut out, 120).1;
    assert_eq!(carried[0], object(0, 500, 100, false));
    assert!(carried.iter().skip(1).all(|c| matches!(c, Carried::Object { offset, .. } if *offset == sent)));
}

#[test]
fn the_tail_is_repeated_once_oldest_first() {
    let mut out = open();
    out.add_object(ObjectId(0), 300);
    out.add_object(ObjectId(1), 0);
    read_all(&mut out);
    out.open_stream(StreamId(0));
    out.write(StreamId(0), &[1; 60]);
    assert_eq!(fill(&mut out, 1_000).1.len(), 3);
    out.finish(StreamId(0));
    assert_eq!(fill(&mut out, 1_000).1[..], [stream(0, 60, 0, true)]);
    out.on_acked(&object(0, 100, 50, false));
    assert_eq!(repeat(&mut out, 110)[..], [stream(0, 0, 60, true), object(0, 0, 43, false)]);
    assert_eq!(
        repeat(&mut out, 1_000)[..],
        [object(0, 43, 57, false), object(0, 150, 150, true), object(1, 0, 0, true)]
    );
    assert!(repeat(&mut out, 1_000).is_empty(), "each byte once");
    // New bytes have a tail of their own.
    out.add_object(ObjectId(2), 20);
    read_all(&mut out);
    fill(&mut out, 1_000);
    assert_eq!(repeat(&mut out, 1_000)[..], [object(2, 0, 20, true)]);
    for carried in
        [stream(0, 0, 60, true), object(0, 0, 300, true), object(1, 0, 0, true), object(2, 0, 20, true)]
    {
        out.on_acked(&carried);
    }
    assert!(out.all_acked());
    assert_eq!(out.memory(), 0);
}

#[test]
fn the_peers_limits_hold_for_new_bytes_only() {
    let mut out = Outgoing::new(OutgoingLimits::default());
    out.set_initial_stream_limit(100);
    out.open_stream(StreamId(0));
    out.write(StreamId(0), &[1; 300]);
    assert_eq!(out.blocked_by(), Some(Blocked::PeerLimit));
    out.on_max_data(1_000);
    assert_eq!(fill(&mut out, 1_000).1[..], [stream(0, 0, 100, false)]);
    assert_eq!(out.blocked_by(), Some(Blocked::PeerLimit), "the stream's own limit");
    out.on_lost(&stream(0, 0, 100, false));
    assert_eq!(fill(&mut out, 1_000).1[..], [stream(0, 0, 100, false)]);
    out.on_max_stream_data(StreamId(0), 250);
    out.on_max_stream_data(StreamId(0), 200); // an old one, late
    assert_eq!(fill(&mut out, 1_000).1[..], [stream(0, 100, 150, false)]);
    out.add_object(ObjectId(0), 900);
    read_all(&mut out);
    assert_eq!(fill(&mut out, 1_000).1[..], [object(0, 0, (1_000 - 250 - OBJECT_COST) as u32, false)]);
    assert_eq!(out.blocked_by(), Some(Blocked::PeerLimit));
}

#[test]
fn no_more_objects_at_once_than_the_peer_takes() {
    let mut out = open();
    (0..5).for_each(|id| out.add_object(ObjectId(id), 0));
    assert_eq!(fill(&mut out, 1_000).1.len(), 3);
    assert_eq!(out.blocked_by(), Some(Blocked::PeerLimit));
    out.on_acked(&object(1, 0, 0, true));
    assert_eq!(out.next_event(), Some(OutEvent::ObjectAcked(ObjectId(1))));
    assert!(out.object_acked(ObjectId(1)) && !out.object_acked(ObjectId(0)));
    assert_eq!(fill(&mut out, 1_000).1[..], [object(3, 0, 0, true)]);
}

#[test]
fn reading_runs_ahead_as_far_as_the_memory_allows() {
    let mut out = open();
    out.add_object(ObjectId(0), 1 << 40);
    out.add_object(ObjectId(1), 5);
    assert_eq!(out.blocked_by(), Some(Blocked::Reading));
    let asked: Vec<_> = core::iter::from_fn(|| out.next_read()).collect();
    assert_eq!(asked.len(), 12, "three quarters of 64 KiB");
    assert!(asked.iter().zip(0..).all(|(read, index)| read.offset == index * 4096 && read.length == 4096));
    // An answer to the second does not help the first; a wrong one is not taken.
    assert!(out.provide(ObjectId(0), 4_096, vec![1; 4_096]));
    assert!(!out.provide(ObjectId(0), 0, vec![1; 4_095]));
    assert!(!out.provide(ObjectId(0), 1, vec![1; 4_096]));
    assert!(!out.provide(ObjectId(0), 1 << 30, vec![1; 4_096]));
    assert_eq!(out.blocked_by(), Some(Blocked::Reading));
    assert!(out.provide(ObjectId(0), 0, vec![0; 4_096]));
    // A frame may span chunks.
    fill(&mut out, 4_000);
    let (bytes, carried) = fill(&mut out, 1_000);
    assert_eq!(carried.len(), 1);
    let Some(Ok(Frame::Object(frame))) = Frames::new(&bytes).next() else { panic!("an object") };
    let of_first = (4_096 - frame.offset) as usize;
    assert!(frame.data[..of_first].iter().all(|byte| *byte == 0));
    assert!(frame.data[of_first..].iter().all(|byte| *byte == 1));
    // A chunk wholly acknowledged makes room for one more.
    assert_eq!(out.next_read(), None);
    out.on_acked(&object(0, 0, 4_096, false));
    assert_eq!(out.next_read().map(|read| read.offset), Some(12 * 4_096));
}

#[test]
fn a_vanished_source_is_sent_no_more_and_what_went_out_is_still_cared_for() {
    let mut out = open();
    out.add_object(ObjectId(0), 1 << 30);
    out.add_object(ObjectId(1), 10);
    read_all(&mut out);
    fill(&mut out, 1_003);
    let sent = out.progress().sent;
    out.abandon_object(ObjectId(0));
    read_all(&mut out);
    out.on_lost(&object(0, 0, 200, false));
    assert_eq!(fill(&mut out, 1_003).1[..], [object(0, 0, 200, false), object(1, 0, 10, true)]);
    out.on_acked(&object(0, 0, sent as u32, false));
    out.on_acked(&object(1, 0, 10, true));
    assert_eq!(out.next_event(), Some(OutEvent::ObjectAcked(ObjectId(1))));
    assert_eq!(out.next_event(), None);
    assert!(out.all_acked() && !out.object_acked(ObjectId(0)));
    assert_eq!(out.memory(), 0);
}

#[test]
fn a_stream_given_up_ends_once_the_peer_knows() {
    let mut out = open();
    out.open_stream(StreamId(1));
    out.write(StreamId(1), &[1; 500]);
    fill(&mut out, 103);
    out.on_stop_sending(StreamId(1), 5);
    out.on_stop_sending(StreamId(1), 6);
    assert_eq!(out.next_event(), Some(OutEvent::Stopped { stream: StreamId(1), code: 5 }));
    assert_eq!(out.next_event(), None);
    assert_eq!(out.write(StreamId(1), &[1]), 0);
    assert_eq!(out.memory(), 100, "what was not sent is gone");
    let (bytes, carried) = fill(&mut out, 1_000);
    assert_eq!(carried[..], [Carried::ResetStream(StreamId(1))]);
    assert_eq!(Frames::new(&bytes).next(), Some(Ok(Frame::ResetStream { id: StreamId(1), code: 5 })));
    out.on_lost(&carried[0]);
    assert_eq!(fill(&mut out, 1_000).1, carried);
    out.on_lost(&stream(1, 0, 100, false));
    assert_eq!(
        fill(&mut out, 1_000).1[..],
        [stream(1, 0, 100, false)],
        "no end before the peer knows of the reset"
    );
    out.on_acked(&carried[0]);
    assert_eq!(fill(&mut out, 1_000).1[..], [stream(1, 100, 0, true)]);
    out.on_acked(&stream(1, 0, 100, false));
    assert!(!out.all_acked());
    out.on_acked(&stream(1, 100, 0, true));
    assert!(out.all_acked());
    assert_eq!(out.next_event(), None, "it did not go well: no word of success");
}

#[test]
fn a_full_memory_cuts_writes_and_says_when_there_is_room() {
    let mut out = open();
    out.open_stream(StreamId(0));
    assert_eq!(out.write(StreamId(0), &vec![1; 100_000]), 16 << 10, "a quarter");
    assert_eq!(out.write(StreamId(0), &[1]), 0);
    for id in [2, 4, 6] {
        out.open_stream(StreamId(id));
        out.write(StreamId(id), &vec![1; 100_000]);
    }
    assert_eq!(out.memory(), 48 << 10, "three quarters");
    let mut last = List::new();
    while out.wants_to_send() {
        last = fill(&mut out, 1_200).1;
        last.iter().for_each(|carried| out.on_acked(carried));
    }
    assert!(!last.is_empty());
    let events: Vec<_> = core::iter::from_fn(|| out.next_event()).collect();
    let writable = [6, 0, 2, 4].map(|id| OutEvent::Writable(StreamId(id)));
    assert_eq!(events, writable, "each once, first who only waited for memory");
    assert_eq!(out.write(StreamId(6), &[1; 9]), 9);
}

#[test]
fn scraps_are_not_sent_while_there_is_more() {
    let mut out = open();
    out.add_object(ObjectId(0), 1_000);
    read_all(&mut out);
    assert!(fill(&mut out, 18).1.is_empty());
    assert_eq!(fill(&mut out, 19).1[..], [object(0, 0, 16, false)]);
}

#[test]
fn how_far_reading_is_ahead_is_known() {
    let mut out = open();
    out.add_object(ObjectId(0), 10_000);
    out.add_object(ObjectId(1), 100);
    out.add_object(ObjectId(2), 5_000);
    assert_eq!(out.unsent(), 0);
    read_all(&mut out);
    assert_eq!(out.unsent(), 3 + 1 + 2);
    fill(&mut out, 4_000);
    assert_eq!(out.unsent(), 6, "no piece is wholly sent");
    let (_, carried) = fill(&mut out, 5_000);
    assert_eq!(out.unsent(), 4);
    // What is sent again was not waiting.
    carried.iter().for_each(|carried| out.on_lost(carried));
    fill(&mut out, 10_000);
    assert_eq!(out.unsent(), 2);
    out.abandon_object(ObjectId(2));
    assert_eq!(out.unsent(), 0);
}

#[test]
#[cfg_attr(debug_assertions, should_panic(expected = "what is counted is so"))]
fn a_wrong_sum_stops_a_debug_build() {
    let mut out = Outgoing::new(OutgoingLimits::default());
    out.open_stream(StreamId(0));
    out.stream_memory += 1;
    out.write(StreamId(0), b"byway");
}
