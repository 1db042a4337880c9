//! What has arrived of a stream or an object, and where it ends.

use crate::data::data_frames::ProtocolError;
use crate::data::ranges::RangeSet;

/// What has arrived of something.
#[derive(Debug, Default)]
pub(super) struct Extent {
    pub received: RangeSet,
    /// The size of the stream or object in bytes, once its end was seen.
    pub size: Option<u64>,
}

impl Extent {
    /// Checks a frame's end against the end that is known, and learns it.
    pub fn check(&mut self, end: u64, fin: bool) -> Result<(), ProtocolError> {
        const fn wrong(reason: &'static str) -> Result<(), ProtocolError> {
            Err(ProtocolError::new(ProtocolError::FINAL_SIZE, reason))
        }
        match self.size {
            Some(known) if end > known => wrong("data beyond the end"),
            Some(known) if fin && end != known => wrong("two different ends"),
            None if fin && end < self.received.end() => wrong("an end before data already received"),
            None if fin => {
                self.size = Some(end);
                Ok(())
            }
            _ => Ok(()),
        }
    }

    /// The size in bytes, if all has arrived.
    pub fn complete(&self) -> Option<u64> {
        self.size.filter(|size| self.received.covers(0, *size))
    }
}
