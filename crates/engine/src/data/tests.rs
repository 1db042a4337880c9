//! Both ends together, over a pipe that loses, reorders, duplicates and lies about losses.

use super::*;
use alloc::collections::BTreeMap;
use alloc::vec;
use alloc::vec::Vec;
use byway_wire::frame::{Frame, Frames};
use byway_wire::{Duration, Instant, Writer};
use byway_wire::{ObjectId, StreamId};
use proptest::prelude::*;
use smallvec::SmallVec;

const TAU: Duration = Duration::from_millis(20);

struct Dice(u64);

impl Dice {
    fn roll(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 16
    }

    fn below(&mut self, bound: u64) -> u64 {
        self.roll() % bound.max(1)
    }

    fn percent(&mut self, chance: u64) -> bool {
        self.below(100) < chance
    }
}

/// Returns the byte at an offset of a stream (`kind` 0) or object (1).
fn byte(kind: u64, id: u32, offset: u64) -> u8 {
    (offset.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 29) as u8 ^ (id as u8).wrapping_mul(31) ^ kind as u8
}

fn bytes(kind: u64, id: u32, start: u64, length: usize) -> Vec<u8> {
    (start..start + length as u64).map(|offset| byte(kind, id, offset)).collect()
}

#[derive(Clone, Debug)]
struct Plan {
    seed: u64,
    /// Per cent.
    loss: u64,
    sender_memory: usize,
    read_size: usize,
    window: usize,
    stream_window: usize,
    /// Sizes; the second says whether the owner of one end gives it up midway.
    streams: Vec<(u64, u8)>,
    objects: Vec<(u64, u8)>,
}

fn plan() -> impl Strategy<Value = Plan> {
    let size = prop_oneof![Just(0u64), 1..20u64, 100..3_000u64, 1_000..60_000u64];
    let given_up = prop_oneof![4 => Just(0u8), 1 => 1..3u8];
    let things = prop::collection::vec((size, given_up), 0..8);
    (
        any::<u64>(),
        0..45u64,
        20_000..200_000usize,
        500..9_000usize,
        1_000..150_000usize,
        600..50_000usize,
        things.clone(),
        things,
    )
        .prop_map(|(seed, loss, sender_memory, read_size, window, stream_window, streams, objects)| {
            Plan { seed: seed | 1, loss, sender_memory, read_size, window, stream_window, streams, objects }
        })
}

struct Packet {
    bytes: Vec<u8>,
    carried: SmallVec<[Carried; 2]>,
}

struct TestEnds {
    plan: Plan,
    dice: Dice,
    now: Instant,
    out: Outgoing,
    inc: Incoming,
    in_flight: Vec<Packet>,
    /// Data that were reported lost, and may still be acknowledged.
    late: Vec<SmallVec<[Carried; 2]>>,
    reads: Vec<ReadRequest>,
    writing: Vec<Vec<u8>>,
    written: BTreeMap<StreamId, u64>,
    read: BTreeMap<StreamId, u64>,
    /// Streams whose write was cut short. They are not tried again before an event reports room.
    stalled: Vec<StreamId>,
    /// Streams for which an event reports bytes to read.
    readable: Vec<StreamId>,
    /// Streams at whose end or reset the receiver has come.
    over: Vec<StreamId>,
    got: BTreeMap<ObjectId, RangeSet>,
    complete: Vec<ObjectId>,
    given_up: Vec<DataId>,
}

impl TestEnds {
    fn new(plan: Plan) -> Self {
        let mut out = Outgoing::new(OutgoingLimits {
            memory: plan.sender_memory,
            read_size: plan.read_size,
            objects: 5,
        });
        let inc = Incoming::new(IncomingLimits {
            memory: plan.window,
            stream_start: plan.stream_window / 3,
            stream_window: plan.stream_window,
            streams: 10,
            objects: 20, // objects given up count here until the owner forgets them
        });
        let (all, each) = inc.initial_limits();
        out.on_max_data(all);
        out.set_initial_stream_limit(each);
        for (index, _) in plan.streams.iter().enumerate() {
            out.open_stream(StreamId(index as u32));
        }
        for (index, (size, _)) in plan.objects.iter().enumerate() {
            out.add_object(ObjectId(index as u32), *size);
        }
        Self {
            dice: Dice(plan.seed),
            plan,
            now: Instant::from_millis(1),
            out,
            inc,
            in_flight: vec![],
            late: vec![],
            reads: vec![],
            writing: vec![],
            written: BTreeMap::new(),
            read: BTreeMap::new(),
            stalled: vec![],
            readable: vec![],
            over: vec![],
            got: BTreeMap::new(),
            complete: vec![],
            given_up: vec![],
        }
    }

    fn sending_owner(&mut self) {
        for (index, (size, _)) in self.plan.streams.clone().into_iter().enumerate() {
            let id = StreamId(index as u32);
            if self.stalled.contains(&id) {
                continue;
            }
            let done = self.written.entry(id).or_default();
            let length = (self.dice.below(5_000).min(size - *done)) as usize;
            let taken = self.out.write(id, &bytes(0, id.0, *done, length));
            assert!(taken <= length);
            if taken < length && !self.given_up.contains(&DataId::Stream(id)) {
                self.stalled.push(id);
            }
            *done += taken as u64;
            if *done == size {
                self.out.finish(id);
            }
        }
        while self.dice.percent(70)
            && let Some(read) = self.out.next_read()
        {
            assert!(read.length <= self.plan.read_size);
            self.reads.push(read);
        }
        if !self.reads.is_empty() && self.dice.percent(80) {
            let at = self.dice.below(self.reads.len() as u64) as usize;
            let read = self.reads.swap_remove(at);
            let data = bytes(1, read.object.0, read.offset, read.length);
            let given_up = self.given_up.contains(&DataId::Object(read.object));
            assert!(self.out.provide(read.object, read.offset, data.clone()) || given_up);
            assert!(!self.out.provide(read.object, read.offset, data), "asked once");
        }
        assert!(self.out.memory() <= self.plan.sender_memory);
        while let Some(event) = self.out.next_event() {
            match event {
                OutEvent::ObjectAcked(id) => assert!(self.out.object_acked(id)),
                OutEvent::Stopped { stream, code } => {
                    assert_eq!(code, 9);
                    assert!(self.given_up.contains(&DataId::Stream(stream)));
                }
                OutEvent::Writable(id) => self.stalled.retain(|stalled| *stalled != id),
                OutEvent::StreamAcked(_) | OutEvent::MayOpen => {}
            }
        }
    }

    fn someone_gives_up(&mut self) {
        for index in 0..self.plan.streams.len() {
            let (id, how) = (StreamId(index as u32), self.plan.streams[index].1);
            if how > 0 && self.dice.percent(2) && !self.given_up.contains(&DataId::Stream(id)) {
                self.given_up.push(DataId::Stream(id));
                if how == 1 { self.out.reset(id, 8) } else { self.inc.stop(id, 9) }
            }
        }
        for index in 0..self.plan.objects.len() {
            let (id, how) = (ObjectId(index as u32), self.plan.objects[index].1);
            if how > 0 && self.dice.percent(2) && !self.given_up.contains(&DataId::Object(id)) {
                self.given_up.push(DataId::Object(id));
                if how == 1 {
                    self.out.abandon_object(id);
                }
                self.inc.forget_object(id);
            }
        }
    }

    fn send(&mut self) {
        let size = if self.dice.percent(50) { 1_200 } else { 40 + self.dice.below(1_400) as usize };
        let (mut buffer, mut carried) = (vec![0; size], SmallVec::new());
        let mut writer = Writer::new(&mut buffer);
        let wanted = self.out.wants_to_send();
        assert_eq!(self.out.blocked_by().is_none(), wanted);
        self.out.fill(&mut writer, &mut carried);
        if size >= 100 {
            assert_eq!(wanted, !writer.is_empty(), "wants_to_send tells the truth");
        }
        if !wanted && self.dice.percent(20) {
            self.out.repeat_tail(&mut writer, &mut carried);
        }
        assert!(!writer.overflowed());
        if writer.is_empty() {
            return;
        }
        let frames = Frames::new(writer.written()).map(Result::unwrap).collect::<Vec<_>>();
        assert_eq!(frames.len(), carried.len());
        for (frame, carried) in frames.iter().zip(&carried) {
            let same = match (frame, *carried) {
                (Frame::Stream(f), Carried::Stream { id, offset, length, fin }) => {
                    (f.id, f.offset, f.data.len(), f.fin) == (id, offset, length as usize, fin)
                }
                (Frame::Object(f), Carried::Object { id, offset, length, fin }) => {
                    (f.id, f.offset, f.data.len(), f.fin) == (id, offset, length as usize, fin)
                }
                (Frame::ResetStream { id, .. }, Carried::ResetStream(told)) => *id == told,
                _ => false,
            };
            assert!(same, "{frame:?} {carried:?}");
        }
        self.in_flight.push(Packet { bytes: writer.written().to_vec(), carried });
    }

    fn receive(&mut self, packet: &[u8]) {
        for frame in Frames::new(packet) {
            match frame.unwrap() {
                Frame::Stream(stream) => self.inc.on_stream(self.now, &stream).unwrap(),
                Frame::Object(object) => self.inc.on_object(self.now, &object).unwrap(),
                Frame::ResetStream { id, code } => self.inc.on_reset_stream(id, code).unwrap(),
                other => panic!("{other:?}"),
            }
        }
        assert!(self.inc.memory() <= 4 * self.plan.window.max(16 << 10));
    }

    fn network(&mut self) {
        if self.in_flight.is_empty() {
            return;
        }
        // Mostly in order.
        let reach = if self.dice.percent(30) { self.in_flight.len() } else { 1 };
        let at = self.dice.below(reach as u64) as usize;
        let Packet { bytes, carried } = self.in_flight.remove(at);
        if self.dice.percent(self.plan.loss) {
            carried.iter().for_each(|carried| self.out.on_lost(carried));
            return;
        }
        self.receive(&bytes);
        if self.dice.percent(5) {
            self.receive(&bytes);
        }
        if self.dice.percent(10) {
            // Called lost though it arrived; perhaps the acknowledgment comes after all.
            carried.iter().for_each(|carried| self.out.on_lost(carried));
            self.late.push(carried);
        } else {
            carried.iter().for_each(|carried| self.out.on_acked(carried));
        }
        if self.dice.percent(20)
            && let Some(late) = self.late.pop()
        {
            late.iter().for_each(|carried| self.out.on_acked(carried));
        }
    }

    fn receiving_owner(&mut self) {
        while self.dice.percent(60)
            && let Some(write) = self.inc.next_write()
        {
            assert_eq!(write.data, bytes(1, write.object.0, write.offset, write.data.len()));
            let end = write.offset + write.data.len() as u64;
            let new = self.got.entry(write.object).or_default().insert(write.offset, end);
            assert_eq!(new, write.data.len() as u64, "every byte is handed out once");
            self.writing.push(write.data);
        }
        while self.dice.percent(60)
            && let Some(buffer) = self.writing.pop()
        {
            self.inc.written(buffer);
        }
        if self.dice.percent(3) {
            self.inc.flush();
        }
        while self.dice.percent(60)
            && let Some(event) = self.inc.next_event()
        {
            match event {
                InEvent::ObjectComplete { id, size } => {
                    assert_eq!(size, self.plan.objects[id.0 as usize].0);
                    assert!(self.got.get(&id).map_or(size == 0, |got| got.covers(0, size)));
                    assert!(!self.complete.contains(&id));
                    self.complete.push(id);
                }
                InEvent::StreamReset { id, code } => {
                    assert_eq!(code, 8);
                    self.over.push(id);
                }
                InEvent::StreamReadable(id) => self.readable.push(id),
                InEvent::StreamOpened(_) => {}
            }
        }
        for id in core::mem::take(&mut self.readable) {
            let mut buffer = vec![0; self.dice.below(3_000) as usize];
            let Some(read) = self.inc.read(id, &mut buffer) else { continue };
            let at = self.read.entry(id).or_default();
            assert_eq!(buffer[..read.length], bytes(0, id.0, *at, read.length));
            *at += read.length as u64;
            if read.finished {
                assert_eq!(*at, self.plan.streams[id.0 as usize].0);
                self.over.push(id);
            } else if read.length == buffer.len() {
                self.readable.push(id); // there may be more
            }
        }
    }

    fn tell_back(&mut self) {
        let (mut buffer, mut carried) = ([0; 600], SmallVec::new());
        let mut writer = Writer::new(&mut buffer);
        let wanted = self.inc.wants_to_send();
        self.inc.fill(self.now, TAU, &mut writer, &mut carried);
        assert_eq!(wanted, !writer.is_empty());
        self.inc.write_snacks(self.now, TAU, &mut writer);
        assert!(!writer.overflowed());
        if self.dice.percent(self.plan.loss) {
            carried.iter().for_each(|carried| self.inc.on_lost(carried));
            return;
        }
        for frame in Frames::new(writer.written()) {
            match frame.unwrap() {
                Frame::MaxStreams(limit) => self.out.on_max_streams(limit),
                Frame::MaxData(limit) => self.out.on_max_data(limit),
                Frame::MaxStreamData { id, limit } => self.out.on_max_stream_data(id, limit),
                Frame::StopSending { id, code } => self.out.on_stop_sending(id, code),
                Frame::SnackStream { id, missing } => {
                    missing.iter().for_each(|(start, end)| self.out.missing(DataId::Stream(id), start, end));
                }
                Frame::SnackObject { id, missing } => {
                    missing.iter().for_each(|(start, end)| self.out.missing(DataId::Object(id), start, end));
                }
                other => panic!("{other:?}"),
            }
        }
    }

    fn is_over(&self) -> bool {
        let streams = self.plan.streams.len();
        let complete = |index: usize| {
            let id = ObjectId(index as u32);
            self.complete.contains(&id) || self.given_up.contains(&DataId::Object(id))
        };
        let over = |index: usize| {
            let id = StreamId(index as u32);
            self.over.contains(&id) || self.given_up.contains(&DataId::Stream(id))
        };
        self.out.all_acked()
            && (0..self.plan.objects.len()).all(complete)
            && (0..streams).all(over)
            && self.inc.held() == 0
            && self.writing.is_empty()
    }

    fn run(mut self) {
        for _ in 0..60_000 {
            self.now += Duration::from_micros(self.dice.below(2_000));
            self.sending_owner();
            self.someone_gives_up();
            for _ in 0..self.dice.below(6) {
                self.send();
            }
            for _ in 0..self.dice.below(6) {
                self.network();
            }
            self.receiving_owner();
            self.tell_back();
            if self.is_over() {
                self.check_end();
                return;
            }
        }
        panic!("deadlock: {:?} {:#?} {:#?}", self.out.blocked_by(), self.out, self.inc);
    }

    fn check_end(&mut self) {
        // Both ends counted the same bytes, whatever was given up: no window leaks.
        assert_eq!(self.out.progress().sent, self.inc.received());
        assert_eq!(self.out.progress().acked, self.inc.received());
        for (index, (size, _)) in self.plan.streams.iter().enumerate() {
            let id = StreamId(index as u32);
            if !self.given_up.contains(&DataId::Stream(id)) {
                assert_eq!(self.read.get(&id).copied().unwrap_or_default(), *size);
            }
        }
        while let Some(packet) = self.in_flight.pop() {
            // Late duplicates change nothing.
            self.receive(&packet.bytes);
        }
        assert_eq!(self.inc.held(), 0);
        assert_eq!(self.out.memory(), 0);
        assert!(self.inc.next_write().is_none());
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]
    #[test]
    fn every_byte_arrives_once_and_nothing_leaks(plan in plan()) {
        TestEnds::new(plan).run();
    }
}

#[test]
fn a_writer_that_never_finishes_stops_the_sender_within_the_window() {
    let mut out = Outgoing::new(OutgoingLimits { read_size: 8 << 10, ..OutgoingLimits::default() });
    let mut inc = Incoming::new(IncomingLimits { memory: 64 << 10, ..IncomingLimits::default() });
    out.on_max_data(inc.initial_limits().0);
    out.add_object(ObjectId(0), 10 << 20);
    let mut kept = vec![];
    for _ in 0..200 {
        while let Some(read) = out.next_read() {
            assert!(out.provide(read.object, read.offset, vec![1; read.length]));
        }
        let (mut buffer, mut carried) = ([0; 1_200], SmallVec::new());
        let mut writer = Writer::new(&mut buffer);
        out.fill(&mut writer, &mut carried);
        for frame in Frames::new(writer.written()) {
            let Frame::Object(object) = frame.unwrap() else { panic!("an object") };
            inc.on_object(Instant::ZERO, &object).unwrap();
        }
        carried.iter().for_each(|carried| out.on_acked(carried));
        kept.extend(core::iter::from_fn(|| inc.next_write()));
        assert!(!inc.wants_to_send());
    }
    assert_eq!(out.blocked_by(), Some(Blocked::PeerLimit));
    assert_eq!(out.progress().sent, (64 << 10) - OBJECT_COST);
    for write in kept {
        inc.written(write.data);
    }
    assert!(inc.wants_to_send(), "and lets it go on");
}

#[test]
fn ten_thousand_small_objects_pass_a_small_window() {
    let mut out = Outgoing::new(OutgoingLimits::default());
    let mut inc = Incoming::new(IncomingLimits { memory: 256 << 10, ..IncomingLimits::default() });
    out.on_max_data(inc.initial_limits().0);
    for id in 0..10_000 {
        out.add_object(ObjectId(id), u64::from(id % 50));
    }
    let (mut packets, mut complete) = (0, 0);
    while !out.all_acked() {
        while let Some(read) = out.next_read() {
            let data = bytes(1, read.object.0, read.offset, read.length);
            assert!(out.provide(read.object, read.offset, data));
        }
        let (mut buffer, mut carried) = ([0; 1_200], SmallVec::new());
        let mut writer = Writer::new(&mut buffer);
        out.fill(&mut writer, &mut carried);
        assert!(!carried.is_empty(), "{:?}", out.blocked_by());
        packets += 1;
        for frame in Frames::new(writer.written()) {
            let Frame::Object(object) = frame.unwrap() else { panic!("an object") };
            inc.on_object(Instant::ZERO, &object).unwrap();
        }
        carried.iter().for_each(|carried| out.on_acked(carried));
        while let Some(write) = inc.next_write() {
            assert_eq!(write.data, bytes(1, write.object.0, 0, write.data.len()));
            inc.written(write.data);
        }
        complete += core::iter::from_fn(|| inc.next_event()).count();
        let mut buffer = [0; 100];
        let mut writer = Writer::new(&mut buffer);
        inc.fill(Instant::ZERO, TAU, &mut writer, &mut SmallVec::new());
        for frame in Frames::new(writer.written()) {
            let Frame::MaxData(limit) = frame.unwrap() else { panic!("a limit") };
            out.on_max_data(limit);
        }
    }
    assert_eq!(complete, 10_000);
    assert!(packets < 300, "many share a packet: {packets}");
}
