//! Sums and queues of what is sent, counted anew. Debug builds compare them with what is kept, so
//! that random worlds and fuzzers find what breaks it.

use super::delivery_state::Queues;
use super::objects::OutObject;
use super::streams::{OutStream, Reset};
use crate::data::data_frames::DataId;
use crate::numbered_map::NumberedMap;
use alloc::collections::{BTreeMap, VecDeque};
use byway_wire::{ObjectId, StreamId};

/// More streams and objects than this are not counted anew: it would take longer than the call.
const MAX_ENTRIES: usize = 8;
/// More chunks, ranges of bytes and entries of queues than this are not counted anew.
const MAX_PARTS: usize = 64;

/// The streams and objects that live.
#[derive(Clone, Copy)]
pub(super) struct Live<'a> {
    pub streams: &'a BTreeMap<StreamId, OutStream>,
    pub objects: &'a NumberedMap<ObjectId, OutObject>,
}

/// The sums that a recount yields.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Sums {
    /// Bytes that streams keep.
    pub stream_memory: usize,
    /// Bytes of the memory that objects take.
    pub object_memory: usize,
    /// Pieces of objects that were read, or asked for, and not wholly sent yet.
    pub unsent: usize,
    /// Number of objects that have begun.
    pub objects_begun: usize,
    /// Number of streams that wait for the peer.
    pub streams_busy: usize,
    /// Bytes that were sent and are not acknowledged.
    pub in_flight: u64,
}

impl Live<'_> {
    /// Whether a recount is cheap, because there are few streams, objects and `queued` entries.
    pub fn is_little(&self, queued: usize) -> bool {
        let Self { streams, objects } = self;
        streams.len() + objects.len() <= MAX_ENTRIES && {
            let ranges = streams.values().map(|stream| stream.track.ranges()).sum::<usize>();
            queued + ranges + objects.iter().map(OutObject::parts).sum::<usize>() <= MAX_PARTS
        }
    }

    /// Recounts memory, unsent pieces and bytes in flight over all streams and objects. Checks each
    /// one's invariants.
    pub fn recount(&self) -> Sums {
        let (mut stream_memory, mut object_memory, mut in_flight) = (0, 0, 0);
        let (mut unsent, mut objects_begun, mut streams_busy) = (0, 0, 0);
        for stream in self.streams.values() {
            stream.check();
            stream_memory += stream.held();
            streams_busy += usize::from(stream.is_busy());
            in_flight += stream.track.recount_in_flight();
        }
        for object in self.objects.iter() {
            object.check();
            object_memory += object.recount_memory();
            unsent += if object.abandoned { 0 } else { object.unsent() };
            objects_begun += usize::from(object.begun);
            in_flight += object.track.recount_in_flight();
        }
        Sums { stream_memory, object_memory, unsent, objects_begun, streams_busy, in_flight }
    }

    /// Asserts that `queues` hold all streams and objects with lost data, and all whose tail may be
    /// repeated.
    pub fn check_queues(&self, queues: &Queues) {
        let streams = self.streams.values().map(|stream| (&stream.track, stream.wants_again()));
        let objects = self.objects.iter().map(|object| (&object.track, object.wants_again()));
        queues.check(streams.chain(objects), |id| match id {
            DataId::Stream(id) => self.streams.get(&id).map(|stream| &stream.track),
            DataId::Object(id) => self.objects.get(id).map(|object| &object.track),
        });
    }

    /// Asserts that `ready` holds exactly the streams with new bytes, and `resets` exactly those
    /// with an unsent reset, each once.
    pub fn check_streams(&self, ready: &VecDeque<StreamId>, resets: &VecDeque<StreamId>) {
        let has_new = |stream: &OutStream| stream.in_ready && stream.has_new();
        let is_due = |stream: &OutStream| matches!(stream.reset, Reset::Due(_));
        let stands = |id: &StreamId, flag: fn(&OutStream) -> bool| self.streams.get(id).is_some_and(flag);
        debug_assert!(ready.iter().all(|id| stands(id, has_new)), "one has nothing new: {ready:?}");
        debug_assert!(resets.iter().all(|id| stands(id, is_due)), "one has no reset: {resets:?}");
        let count = |flag: fn(&OutStream) -> bool| self.streams.values().filter(|it| flag(it)).count();
        debug_assert_eq!(ready.len(), count(has_new), "new bytes wait for their turn, once");
        debug_assert_eq!(resets.len(), count(is_due), "resets wait for their turn, once");
    }

    /// Asserts that `order` holds the objects that are not sent, and `to_read` those not completely
    /// asked for. Both may also hold abandoned objects.
    pub fn check_objects(&self, order: &VecDeque<ObjectId>, to_read: &VecDeque<ObjectId>) {
        let waits = |queue: &VecDeque<ObjectId>, flag: fn(&OutObject) -> bool| {
            let standing = queue.iter().filter(|id| self.objects.get(**id).is_some_and(flag)).count();
            self.objects.iter().filter(|object| flag(object)).count() <= standing
        };
        debug_assert!(waits(order, |object| !object.is_sent()), "one is never sent: {order:?}");
        debug_assert!(
            waits(to_read, |object| object.next_read().is_some()),
            "one is never read: {to_read:?}"
        );
    }
}
