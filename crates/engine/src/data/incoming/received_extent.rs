//! The received ranges of a stream or an object, and its size.

use crate::data::data_frames::ProtocolError;
use crate::data::ranges::RangeSet;

/// The received ranges of a stream or object, and its size.
#[derive(Debug, Default)]
pub(super) struct Extent {
    pub received: RangeSet,
    /// The size of the stream or object in bytes. `None`: its end has not arrived.
    pub size: Option<u64>,
}

impl Extent {
    /// Checks the end of a frame against the known size, and notes the size if the frame has the
    /// end.
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
