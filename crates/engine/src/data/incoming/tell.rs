//! What the peer is told: limits, refusals, holes.

use super::Incoming;
use super::holes::Region;
use super::streams::{InStream, Interest};
use crate::data::carried::{Carried, DataId};
use byway_wire::codec::varint_len;
use byway_wire::frame::{self, Frame};
use byway_wire::{Duration, Instant, StreamId, Writer};
use smallvec::SmallVec;

/// What a SNACK frame takes beside its ranges, and each range at most.
const SNACK_HEADER: usize = 1 + 8 + 2;
const SNACK_RANGE: usize = 16;
/// Holes named per frame.
const SNACK_RANGES: usize = 32;

impl Incoming {
    /// Whether [`Incoming::fill`] would write something into an empty packet.
    #[must_use]
    pub fn wants_to_send(&self) -> bool {
        self.account.is_due()
            || self.stops.iter().any(|id| self.stop_code(*id).is_some())
            || self.stream_limits.iter().any(|id| self.streams.get(id).is_some_and(InStream::may_grow))
    }

    /// The code with which a stream is refused, if it still is.
    fn stop_code(&self, id: StreamId) -> Option<u64> {
        match self.streams.get(&id)?.interest {
            Interest::Stopped(code) => Some(code),
            _ => None,
        }
    }

    /// Writes refusals and limits that the peer does not know yet, as many as fit, and says in `carried` what they are.
    pub fn fill(&mut self, writer: &mut Writer<'_>, carried: &mut SmallVec<[Carried; 2]>) {
        if self.account.is_due() && writer.room() > 8 {
            Frame::MaxData(self.account.tell()).write(writer);
            carried.push(Carried::MaxData);
        }
        while let Some(&id) = self.stops.front() {
            if let Some(code) = self.stop_code(id) {
                if writer.room() < 1 + varint_len(id.0.into()) + varint_len(code) {
                    return;
                }
                Frame::StopSending { id, code }.write(writer);
                carried.push(Carried::StopSending(id));
            }
            self.stops.pop_front();
        }
        while let Some(&id) = self.stream_limits.front() {
            if let Some(stream) = self.streams.get_mut(&id) {
                if stream.may_grow() {
                    if writer.room() < 1 + varint_len(id.0.into()) + 8 {
                        return;
                    }
                    let limit = stream.window.tell(stream.read);
                    Frame::MaxStreamData { id, limit }.write(writer);
                    carried.push(Carried::MaxStreamData(id));
                }
                stream.window.told();
            }
            self.stream_limits.pop_front();
        }
    }

    /// A packet was lost: what it told is told again as it stands now, if it still matters.
    pub fn on_lost(&mut self, carried: &Carried) {
        match *carried {
            Carried::MaxData => self.account.tell_again(),
            Carried::MaxStreamData(id) => {
                if let Some(stream) = self.streams.get_mut(&id)
                    && stream.window.tell_again()
                {
                    self.stream_limits.push_back(id);
                }
            }
            Carried::StopSending(id) if self.stop_code(id).is_some() && !self.stops.contains(&id) => {
                self.stops.push_back(id);
            }
            _ => {}
        }
    }

    /// When [`Incoming::write_snacks`] has something to write: τ after a hole was seen or last named, at once when the
    /// window (the connection's, or its stream's) is more than half full. mPath, section III-C: τ is twice the direct
    /// path's RTT.
    #[must_use]
    pub fn snack_deadline(&self, tau: Duration) -> Option<Instant> {
        self.holes.deadline(tau, self.account.is_half_full())
    }

    /// Names the holes that are due at `now`; returns whether any was. What does not fit stays due.
    pub fn write_snacks(&mut self, now: Instant, tau: Duration, writer: &mut Writer<'_>) -> bool {
        let (all, mut wrote) = (self.account.is_half_full(), false);
        while let Some(region) = self.holes.take_due(now, tau, all) {
            let gaps = self.gaps(&region);
            if gaps.is_empty() {
                continue;
            }
            let room = writer.room().saturating_sub(SNACK_HEADER) / SNACK_RANGE;
            let named = gaps.get(..room).unwrap_or(&gaps);
            let Some(&(_, end)) = named.last() else {
                self.holes.put_back(region);
                break;
            };
            match region.id {
                DataId::Stream(id) => frame::write_snack_stream(writer, id, named),
                DataId::Object(id) => frame::write_snack_object(writer, id, named),
            }
            wrote = true;
            self.holes.named(now, Region { end, ..region });
            if end < region.end {
                self.holes.put_back(Region { start: end, ..region });
            }
        }
        wrote
    }

    /// What is still open of a region: the first so many holes.
    fn gaps(&self, region: &Region) -> SmallVec<[(u64, u64); SNACK_RANGES]> {
        let received = match region.id {
            DataId::Stream(id) => {
                self.streams.get(&id).filter(|s| s.interest == Interest::Wanted).map(|s| &s.received)
            }
            DataId::Object(id) => self.objects.get(&id).map(|object| &object.received),
        };
        received
            .into_iter()
            .flat_map(|received| received.gaps(region.start, region.end))
            .take(SNACK_RANGES)
            .collect()
    }
}
