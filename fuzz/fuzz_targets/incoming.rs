//! Objects and streams that a receiver holds, beside a model that keeps every byte. Pieces come in
//! any order, overlap and repeat. Each byte must be handed out once, right and in its place, within
//! the configured memory.
#![no_main]

use byway_engine::data::{InEvent, Incoming, IncomingLimits};
use byway_wire::frame::{Object, Stream};
use byway_wire::{Duration, Instant, ObjectId, StreamId, Writer};
use libfuzzer_sys::arbitrary::{self, Arbitrary};
use libfuzzer_sys::fuzz_target;
use std::collections::{BTreeMap, BTreeSet, VecDeque};

#[derive(Arbitrary, Debug)]
enum Step {
    Object {
        id: u8,
        offset: u16,
        length: u8,
        fin: bool,
    },
    Stream {
        id: u8,
        offset: u16,
        length: u8,
        fin: bool,
    },
    Reset {
        id: u8,
        code: u8,
    },
    Write,
    Written,
    Read {
        id: u8,
        room: u8,
    },
    Stop(u8),
    Forget(u8),
    Flush,
    Event,
    /// What there is to tell the sender, in so much room; perhaps that packet is lost.
    Tell {
        room: u8,
        lost: bool,
    },
    Holes {
        room: u8,
    },
    Later(u8),
}

const LIMITS: IncomingLimits = IncomingLimits {
    memory: 16 << 10,
    stream_start: 2 << 10,
    stream_window: 8 << 10,
    streams: 3,
    objects: 3,
};

fn byte(id: u32, offset: u64) -> u8 {
    (offset.wrapping_mul(31) ^ (offset >> 7) ^ u64::from(id) * 101) as u8
}

fn piece(id: u32, offset: u64, length: u8) -> Vec<u8> {
    (offset..offset + u64::from(length)).map(|at| byte(id, at)).collect()
}

/// Streams have patterns of their own.
const STREAMS: u32 = 1_000;

#[derive(Default)]
struct Model {
    /// Bytes of each object that were handed out.
    written: BTreeMap<u32, BTreeSet<u64>>,
    /// Bytes of each object that came before it was whole; what comes later is of no use to
    /// anybody.
    came: BTreeMap<u32, BTreeSet<u64>>,
    sizes: BTreeMap<u32, u64>,
    read: BTreeMap<u32, u64>,
    /// Objects and streams of which the owner, or the peer, wanted no more.
    given_up: BTreeSet<u32>,
}

impl Model {
    fn come(&mut self, id: u32, offset: u64, length: u8, fin: bool) {
        let came = self.came.entry(id).or_default();
        if self.sizes.get(&id).is_some_and(|size| came.len() as u64 == *size) {
            return;
        }
        came.extend(offset..offset + u64::from(length));
        if fin {
            self.sizes.insert(id, offset + u64::from(length));
        }
    }

    fn hand_out(&mut self, id: u32, offset: u64, data: &[u8]) {
        let (written, came) = (self.written.entry(id).or_default(), self.came.entry(id).or_default());
        for (at, value) in (offset..).zip(data) {
            assert_eq!(*value, byte(id, at), "byte {at} of object {id}");
            assert!(came.contains(&at), "byte {at} of object {id} never came");
            assert!(written.insert(at), "byte {at} of object {id} is handed out twice");
        }
    }
}

fuzz_target!(|steps: Vec<Step>| {
    let (mut incoming, mut model) = (Incoming::new(LIMITS), Model::default());
    let (mut now, mut with_owner) = (Instant::from_millis(1_000), VecDeque::new());
    let mut buffer = [0; 256];
    for step in steps.iter().take(1_000) {
        let failed = match step {
            Step::Object { id, offset, length, fin } => {
                let (id, offset) = (u32::from(id % 6), u64::from(*offset));
                let data = piece(id, offset, *length);
                let frame = Object { id: ObjectId(id), offset, data: &data, fin: *fin };
                let taken = incoming.on_object(now, &frame);
                model.come(id, offset, *length, *fin);
                taken.is_err()
            }
            Step::Stream { id, offset, length, fin } => {
                let (id, offset) = (u32::from(id % 10), u64::from(*offset));
                let data = piece(STREAMS + id, offset, *length);
                let frame = Stream { id: StreamId(id), offset, data: &data, fin: *fin };
                incoming.on_stream(now, &frame).is_err()
            }
            Step::Reset { id, code } => {
                model.given_up.insert(STREAMS + u32::from(id % 10));
                incoming.on_reset_stream(StreamId(u32::from(id % 10)), (*code).into()).is_err()
            }
            Step::Write => {
                if let Some(write) = incoming.next_write() {
                    model.hand_out(write.object.0, write.offset, &write.data);
                    with_owner.push_back(write.data);
                }
                false
            }
            Step::Written => {
                with_owner.pop_front().into_iter().for_each(|data| incoming.written(data));
                false
            }
            Step::Read { id, room } => {
                let id = u32::from(id % 10);
                if let Some(read) = incoming.read(StreamId(id), &mut buffer[..usize::from(*room)]) {
                    let at = model.read.entry(id).or_default();
                    assert_eq!(buffer[..read.length], piece(STREAMS + id, *at, read.length as u8)[..]);
                    *at += read.length as u64;
                }
                false
            }
            Step::Stop(id) => {
                incoming.stop(StreamId(u32::from(id % 10)), 7);
                false
            }
            Step::Forget(id) => {
                incoming.forget_object(ObjectId(u32::from(id % 6)));
                model.given_up.insert(u32::from(id % 6));
                false
            }
            Step::Flush => {
                incoming.flush();
                false
            }
            Step::Event => {
                if let Some(InEvent::ObjectComplete { id, size }) = incoming.next_event() {
                    let written = model.written.entry(id.0).or_default();
                    assert!(written.len() as u64 == size && written.iter().all(|at| *at < size));
                }
                false
            }
            Step::Tell { room, lost } => {
                let mut carried = Default::default();
                let mut writer = Writer::new(&mut buffer[..usize::from(*room)]);
                incoming.fill(now, Duration::from_millis(20), &mut writer, &mut carried);
                assert!(!writer.overflowed());
                if *lost {
                    carried.iter().for_each(|carried| incoming.on_lost(carried));
                }
                false
            }
            Step::Holes { room } => {
                let tau = Duration::from_millis(20);
                let mut writer = Writer::new(&mut buffer[..usize::from(*room)]);
                incoming.write_snacks(now, tau, &mut writer);
                assert!(!writer.overflowed());
                false
            }
            Step::Later(millis) => {
                now += Duration::from_millis((*millis).into());
                false
            }
        };
        assert!(incoming.memory() <= 4 * LIMITS.memory, "{} bytes", incoming.memory());
        if failed {
            return; // the connection ends
        }
    }
    // All that came is handed out, but for what was given up.
    incoming.flush();
    while let Some(write) = incoming.next_write() {
        model.hand_out(write.object.0, write.offset, &write.data);
        incoming.written(write.data);
    }
    for (id, came) in model.came.iter().filter(|(id, _)| !model.given_up.contains(id)) {
        assert_eq!(model.written.get(id).map_or(0, BTreeSet::len), came.len(), "object {id}");
    }
});
