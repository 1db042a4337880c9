//! Writes bytes of objects into their files.

use super::contents::Contents;
use super::{Sink, SinkState, Written};
use crate::error::SinkError;
use crate::receiver_report::Reason;
use byway_wire::ObjectId;
use std::io;

impl Sink {
    /// Writes bytes of an object to their place. The same bytes may be written again.
    ///
    /// # Errors
    /// The disk is full or cannot be used any more. An error that concerns only this file is
    /// reported to the sender, not returned.
    pub fn write(&mut self, object: ObjectId, offset: u64, bytes: &[u8]) -> Result<Written, SinkError> {
        let Some(incoming) = self.objects.get_mut(object) else {
            let known = object.0 < self.next_object;
            return Ok(if known { Written::Ignored } else { Written::Pending });
        };
        if self.state == SinkState::Broken {
            return Ok(Written::Ignored);
        }
        if !incoming.is_open() {
            return Ok(Written::Pending);
        }
        let end = offset.checked_add(bytes.len() as u64);
        if end.is_none_or(|end| end > incoming.travels.size()) {
            self.fail(object, Reason::Protocol, "bytes past the end".to_owned());
            return Ok(Written::Ignored);
        }
        // What comes after the end was told is the same again, or is not wanted.
        if incoming.finished || bytes.is_empty() || incoming.contents == Contents::Apart {
            return Ok(Written::Stored);
        }
        let stored = incoming.create(object, &mut self.partials).map_err(io::Error::from);
        let stored = stored.and_then(|()| incoming.store(object, offset, bytes, &mut self.partials));
        let durable = self.options.durable;
        let stored = stored.and_then(|()| match incoming.is_to_be_dressed() {
            true => Ok(incoming.dress(object, &mut self.partials, durable)?),
            false => Ok(()),
        });
        match stored {
            Ok(()) => Ok(Written::Stored),
            Err(error) => {
                self.fail_io(object, error)?;
                Ok(Written::Ignored)
            }
        }
    }
}
