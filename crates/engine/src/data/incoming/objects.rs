//! The objects that come in: which live, which are only counted, which are over.

use super::object::{Block, InObject};
use super::received_extent::Extent;
use crate::data::data_frames::{OBJECT_COST, ProtocolError};
use crate::data::ranges::RangeSet;
use alloc::collections::BTreeMap;
use byway_wire::ObjectId;

/// The most ranges of ids of objects that are over: 4 MiB of memory.
const MAX_CLOSED_RANGES: usize = 256 << 10;
/// The most objects that the owner wants no more of and that may still send. Beyond this number,
/// the oldest is not counted further.
const MAX_FORGOTTEN_OBJECTS: usize = 64 << 10;

/// An object that the owner wants no more of: only counted.
#[derive(Debug, Default)]
pub(super) struct DiscardedObject {
    pub extent: Extent,
    /// Whether the object's cost was counted.
    begun: bool,
}

impl DiscardedObject {
    /// Bytes of flow control that the object costs: [`OBJECT_COST`] at the first call, then 0.
    pub fn cost(&mut self) -> u64 {
        if core::mem::replace(&mut self.begun, true) { 0 } else { OBJECT_COST }
    }
}

/// The objects of a connection.
#[derive(Debug)]
pub(super) struct Objects {
    live: BTreeMap<ObjectId, InObject>,
    forgotten: BTreeMap<ObjectId, DiscardedObject>,
    /// Ids of objects that are complete or were given up for good.
    closed: RangeSet,
    /// The most objects that may be incomplete.
    most: usize,
}

impl Objects {
    pub const fn new(most: usize) -> Self {
        Self { live: BTreeMap::new(), forgotten: BTreeMap::new(), closed: RangeSet::new(), most }
    }

    /// Returns the number of objects that are incomplete or discarded.
    pub fn len(&self) -> usize {
        self.live.len() + self.forgotten.len()
    }

    /// Whether the object lives.
    pub fn lives(&self, id: ObjectId) -> bool {
        self.live.contains_key(&id)
    }

    /// Whether the object has ended.
    pub fn is_closed(&self, id: ObjectId) -> bool {
        self.closed.covers(id.0.into(), u64::from(id.0) + 1)
    }

    /// An object that the owner wants no more of, but that still counts.
    pub fn forgotten(&mut self, id: ObjectId) -> Option<&mut DiscardedObject> {
        self.forgotten.get_mut(&id)
    }

    /// Whether another may begin.
    pub fn check_room(&self) -> Result<(), ProtocolError> {
        if self.live.len() >= self.most {
            return Err(ProtocolError::new(ProtocolError::STREAM_LIMIT, "more objects at once than allowed"));
        }
        Ok(())
    }

    /// Returns the object with this id, and makes it if it is new.
    pub fn begun(&mut self, id: ObjectId) -> &mut InObject {
        self.live.entry(id).or_default()
    }

    /// The received ranges of an object. `None`: the object is not wanted.
    pub fn awaited(&self, id: ObjectId) -> Option<&RangeSet> {
        self.live.get(&id).map(|object| &object.extent.received)
    }

    /// Removes an incomplete block from its object.
    pub fn take_block(&mut self, id: ObjectId, start: u64) -> Option<Block> {
        self.live.get_mut(&id)?.blocks.remove(&start)
    }

    /// Marks an object as complete. Returns its state, if it was incomplete.
    pub fn complete(&mut self, id: ObjectId) -> Option<InObject> {
        self.closed.insert(id.0.into(), u64::from(id.0) + 1);
        self.live.remove(&id)
    }

    /// Discards an object for the owner: from now on its bytes are only counted. Returns its state,
    /// if it was incomplete.
    pub fn forget(&mut self, id: ObjectId) -> Option<InObject> {
        let mut object = self.live.remove(&id);
        let begun = object.is_some();
        let extent = object.as_mut().map(|object| core::mem::take(&mut object.extent));
        self.forgotten.insert(id, DiscardedObject { extent: extent.unwrap_or_default(), begun });
        object
    }

    /// One discarded object, if there are more than may be counted.
    pub fn one_too_many(&self) -> Option<ObjectId> {
        self.forgotten.keys().next().copied().filter(|_| self.forgotten.len() > MAX_FORGOTTEN_OBJECTS)
    }

    /// Stops counting a discarded object. Returns its received ranges.
    pub fn bury(&mut self, id: ObjectId) -> Option<Extent> {
        let forgotten = self.forgotten.remove(&id)?;
        self.closed.insert(id.0.into(), u64::from(id.0) + 1);
        Some(forgotten.extent)
    }

    /// An error if the ended objects take too many ranges to remember.
    pub fn check_closed(&self) -> Result<(), ProtocolError> {
        if self.closed.count() > MAX_CLOSED_RANGES {
            return Err(ProtocolError::new(ProtocolError::SCATTERED, "object ids too scattered"));
        }
        Ok(())
    }
}
