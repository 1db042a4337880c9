//! Which frames go into a packet, in which order, and where each is cut.

use super::Outgoing;
use super::objects::OutObject;
use super::streams::{Fin, Reset};
use crate::data::data_frames::{Carried, DataId, OBJECT_COST};
use crate::invariant::Invariant as _;
use crate::payload_kind::Payload;
use byway_wire::codec::varint_len;
use byway_wire::frame::{self, Frame};
use byway_wire::{ObjectId, StreamId, Writer};
use smallvec::SmallVec;

/// The least bytes of data that are worth a frame, unless fewer are all there is.
const MIN_DATA_BYTES: usize = 16;

/// The part of data that fits into a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Cut {
    /// Bytes of data.
    length: usize,
    /// Whether the frame has a length field. Without one it extends to the end of the packet.
    counted: bool,
}

impl Cut {
    /// `header` is the header's size without a length. `None` when the frame is not worth its
    /// place.
    fn new(room: usize, header: usize, available: usize) -> Option<Self> {
        let length = room.checked_sub(header)?;
        if available >= length {
            let worth_it = length >= MIN_DATA_BYTES || length == available;
            return worth_it.then_some(Self { length, counted: false });
        }
        // With a length. What does not fit beside it (a byte or two) stays for the next packet.
        let most = room.checked_sub(header + varint_len(available as u64))?;
        let length = available.min(most);
        (length == available || length >= MIN_DATA_BYTES).then_some(Self { length, counted: true })
    }

    fn told(self) -> Option<usize> {
        self.counted.then_some(self.length)
    }
}

/// Whether the packet takes more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum FillState {
    Open,
    Full,
}

type CarriedList = SmallVec<[Carried; 2]>;

impl Outgoing {
    /// Writes frames until the packet is full: resets, lost data (oldest first), streams in turn,
    /// objects in order. Lists the contents in `carried`. A frame has less than 16 bytes of data
    /// only if no more can be sent.
    pub fn fill(&mut self, writer: &mut Writer<'_>, carried: &mut CarriedList) {
        self.fill_resets(writer, carried);
        if self.fill_lost(writer, carried) == FillState::Open
            && self.fill_streams(writer, carried) == FillState::Open
        {
            self.fill_objects(writer, carried);
        }
        #[cfg(debug_assertions)]
        self.check();
    }

    /// Repeats data that was sent but not yet acknowledged, oldest first, when there is nothing
    /// else to send. Each byte is repeated at most once. Returns whether anything was written.
    pub fn repeat_tail(&mut self, writer: &mut Writer<'_>, carried: &mut CarriedList) -> bool {
        let before = carried.len();
        while let Some(id) = self.queues.next_tail() {
            let packet = match id {
                DataId::Stream(id) => self.repeat_stream(id, writer, carried),
                DataId::Object(id) => self.repeat_object(id, writer, carried),
            };
            match packet {
                Some(FillState::Full) => break,
                Some(FillState::Open) => {}
                None => {
                    let track = match id {
                        DataId::Stream(id) => self.streams.get_mut(&id).map(|stream| &mut stream.track),
                        DataId::Object(id) => self.objects.get_mut(id).map(|object| &mut object.track),
                    };
                    self.queues.pop_tail(track);
                }
            }
        }
        #[cfg(debug_assertions)]
        self.check();
        carried.len() > before
    }

    fn fill_resets(&mut self, writer: &mut Writer<'_>, carried: &mut CarriedList) {
        while let Some(&id) = self.resets.front() {
            if let Some(stream) = self.streams.get_mut(&id)
                && let Reset::Due(code) = stream.reset
            {
                if writer.room() < 1 + varint_len(id.0.into()) + varint_len(code) {
                    return;
                }
                Frame::ResetStream { id, code }.write(writer);
                carried.push(Carried::ResetStream(id));
                stream.reset = Reset::Sent(code);
            }
            self.resets.pop_front();
        }
    }

    fn fill_lost(&mut self, writer: &mut Writer<'_>, carried: &mut CarriedList) -> FillState {
        while let Some(id) = self.queues.next_again() {
            let packet = match id {
                DataId::Stream(id) => self.again_stream(id, writer, carried),
                DataId::Object(id) => self.again_object(id, writer, carried),
            };
            match packet {
                Some(FillState::Full) => return FillState::Full,
                Some(FillState::Open) => {}
                None => {
                    let track = match id {
                        DataId::Stream(id) => self.streams.get_mut(&id).map(|stream| &mut stream.track),
                        DataId::Object(id) => self.objects.get_mut(id).map(|object| &mut object.track),
                    };
                    self.queues.pop_again(track);
                }
            }
        }
        FillState::Open
    }

    /// Writes the oldest lost bytes of a stream. `None`: it has no lost bytes.
    fn again_stream(
        &mut self,
        id: StreamId,
        writer: &mut Writer<'_>,
        carried: &mut CarriedList,
    ) -> Option<FillState> {
        let stream = self.streams.get(&id).filter(|stream| stream.wants_again())?;
        let (start, end) = stream.track.lost.first().unwrap_or((stream.end(), stream.end()));
        let Some(length) = self.write_stream(id, start, (end - start) as usize, writer, carried) else {
            return Some(FillState::Full);
        };
        if let Some(stream) = self.streams.get_mut(&id).sure() {
            stream.track.lost.take_first(length as u64);
        }
        self.progress.repeated += length as u64;
        self.settle_stream(id);
        Some(FillState::Open)
    }

    /// Writes the oldest lost bytes of an object. `None`: it has no lost bytes.
    fn again_object(
        &mut self,
        id: ObjectId,
        writer: &mut Writer<'_>,
        carried: &mut CarriedList,
    ) -> Option<FillState> {
        let payload = self.payload;
        let object = self.objects.get_mut(id).filter(|object| object.wants_again())?;
        let (start, end) = object.track.lost.first().unwrap_or((0, 0));
        let piece = (start, (end - start) as usize);
        let Some(length) = write_object(payload, id, object, piece, writer, carried) else {
            return Some(FillState::Full);
        };
        object.track.lost.take_first(length as u64);
        self.progress.repeated += length as u64;
        self.settle_object(id);
        Some(FillState::Open)
    }

    fn fill_streams(&mut self, writer: &mut Writer<'_>, carried: &mut CarriedList) -> FillState {
        while self.credit() > 0
            && let Some(&id) = self.ready.front()
        {
            let credit = self.credit();
            let Some(stream) = self.streams.get(&id).filter(|stream| stream.has_new()) else {
                self.ready.pop_front();
                if let Some(stream) = self.streams.get_mut(&id) {
                    stream.in_ready = false;
                }
                continue;
            };
            let start = stream.track.sent;
            let available = (stream.end().min(stream.limit) - start).min(credit) as usize;
            let Some(length) = self.write_stream(id, start, available, writer, carried) else {
                return FillState::Full;
            };
            self.ready.pop_front();
            if let Some(stream) = self.streams.get_mut(&id).sure() {
                stream.in_ready = false;
                stream.track.sent += length as u64;
                self.queues.sent_new(DataId::Stream(id), &mut stream.track);
            }
            self.used += length as u64;
            self.progress.sent += length as u64;
            self.settle_stream(id); // to the end of the queue if it has more
        }
        FillState::Open
    }

    fn fill_objects(&mut self, writer: &mut Writer<'_>, carried: &mut CarriedList) {
        let (payload, limit) = (self.payload, self.limits.objects);
        // Most packets are full with the first: nobody needs to be looked up to find that.
        while writer.room() > 0 {
            let (credit, all_begun) = (self.credit(), self.objects_begun >= limit);
            let Some(&id) = self.order.front() else { return };
            let Some(object) = self.objects.get_mut(id).sure() else { return };
            if object.may_be_sent(credit, all_begun).is_err() {
                return;
            }
            let (start, begun) = (object.track.sent, object.begun);
            let cost = if begun { 0 } else { OBJECT_COST };
            let available = object.available(start).min(credit - cost) as usize;
            let piece = (start, available);
            let Some(length) = write_object(payload, id, object, piece, writer, carried) else { return };
            object.begun = true;
            let unsent = object.unsent();
            object.track.sent += length as u64;
            self.unsent -= unsent - object.unsent();
            self.queues.sent_new(DataId::Object(id), &mut object.track);
            let is_sent = object.is_sent();
            self.objects_begun += usize::from(!begun);
            self.used += length as u64 + cost;
            self.progress.sent += length as u64;
            if is_sent {
                self.settle_order();
            }
        }
    }

    /// Writes the next part of a stream's tail again. `None`: there is none left.
    fn repeat_stream(
        &mut self,
        id: StreamId,
        writer: &mut Writer<'_>,
        carried: &mut CarriedList,
    ) -> Option<FillState> {
        let stream = self.streams.get(&id)?;
        let (start, end) = match stream.track.to_repeat() {
            Some(run) => run,
            None if stream.fin == Fin::Sent && !stream.fin_repeated => (stream.end(), stream.end()),
            None => return None,
        };
        let Some(length) = self.write_stream(id, start, (end - start) as usize, writer, carried) else {
            return Some(FillState::Full);
        };
        let stream = self.streams.get_mut(&id)?;
        stream.track.repeated_to = start + length as u64;
        stream.fin_repeated |= stream.fin == Fin::Sent && stream.track.repeated_to == stream.end();
        self.progress.repeated += length as u64;
        self.settle_stream(id);
        Some(FillState::Open)
    }

    /// Writes the next part of an object's tail again. `None`: there is none left.
    fn repeat_object(
        &mut self,
        id: ObjectId,
        writer: &mut Writer<'_>,
        carried: &mut CarriedList,
    ) -> Option<FillState> {
        let payload = self.payload;
        let object = self.objects.get_mut(id)?;
        let (start, end) = match object.track.to_repeat() {
            Some(run) => run,
            None if object.size == 0 && object.fin == Fin::Sent && !object.fin_repeated => (0, 0),
            None => return None,
        };
        let piece = (start, (end - start) as usize);
        let Some(length) = write_object(payload, id, object, piece, writer, carried) else {
            return Some(FillState::Full);
        };
        object.track.repeated_to = start + length as u64;
        object.fin_repeated = true;
        self.progress.repeated += length as u64;
        Some(FillState::Open)
    }

    /// Writes a frame with up to `available` bytes of a stream from offset `start`. The frame has
    /// the end mark if these bytes end the stream. Returns the number of bytes written. `None`: the
    /// packet has no room for min(16, `available`) bytes.
    fn write_stream(
        &mut self,
        id: StreamId,
        start: u64,
        available: usize,
        writer: &mut Writer<'_>,
        carried: &mut CarriedList,
    ) -> Option<usize> {
        let stream = self.streams.get_mut(&id)?;
        let cut = Cut::new(writer.room(), frame::stream_header_len(id, start, None), available)?;
        let fin = stream.may_end() && start + cut.length as u64 == stream.end();
        frame::write_stream_header(writer, id, start, cut.told(), fin);
        stream.copy(start, cut.length, writer);
        carried.push(Carried::Stream { id, offset: start, length: cut.length as u32, fin });
        if fin && stream.fin == Fin::Due {
            stream.fin = Fin::Sent;
            self.queues.sent_new(DataId::Stream(id), &mut stream.track);
        }
        Some(cut.length)
    }
}

/// Writes a frame with up to `available` bytes of an object from offset `start`. The frame has the
/// end mark if these bytes end the object. Returns the number of bytes written. `None`: the packet
/// has no room for min(16, `available`) bytes.
fn write_object(
    payload: Payload,
    id: ObjectId,
    object: &mut OutObject,
    (start, available): (u64, usize),
    writer: &mut Writer<'_>,
    carried: &mut CarriedList,
) -> Option<usize> {
    let cut = Cut::new(writer.room(), frame::object_header_len(id, start, None), available)?;
    let fin = object.ends_at(start + cut.length as u64);
    frame::write_object_header(writer, id, start, cut.told(), fin);
    match payload {
        Payload::Bytes => object.copy(start, cut.length, writer),
        Payload::Length => writer.skip(cut.length),
    }
    carried.push(Carried::Object { id, offset: start, length: cut.length as u32, fin });
    if fin && object.fin == Fin::Due {
        object.fin = Fin::Sent;
    }
    Some(cut.length)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_frame_is_cut_to_the_room() {
        // Fills the packet: no length.
        assert_eq!(Cut::new(100, 10, 500), Some(Cut { length: 90, counted: false }));
        assert_eq!(Cut::new(100, 10, 90), Some(Cut { length: 90, counted: false }));
        // All of it, with a length.
        assert_eq!(Cut::new(100, 10, 50), Some(Cut { length: 50, counted: true }));
        assert_eq!(Cut::new(100, 10, 3), Some(Cut { length: 3, counted: true }));
        // Between the two: the length takes the place of the last bytes.
        assert_eq!(Cut::new(100, 10, 89), Some(Cut { length: 88, counted: true }));
        // Not worth it.
        assert_eq!(Cut::new(25, 10, 500), None);
        assert_eq!(Cut::new(8, 10, 500), None);
        assert_eq!(Cut::new(25, 10, 15), Some(Cut { length: 15, counted: false }));
        assert_eq!(Cut::new(25, 10, 14), Some(Cut { length: 14, counted: true }));
        // Only the end mark.
        assert_eq!(Cut::new(10, 10, 0), Some(Cut { length: 0, counted: false }));
        assert_eq!(Cut::new(50, 10, 0), Some(Cut { length: 0, counted: true }));
    }
}
