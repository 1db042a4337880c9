//! The objects of a connection on the event loop's side.

use crate::control_records::{ControlRecord, EndKind};
use crate::error::ConnectionError;
use crate::shared_object::{InboundObject, ObjectEnd, OutboundObject};
use byway_engine::Handle;
use byway_engine::data::{Incoming, Outgoing};
use byway_wire::ObjectId;
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

/// The most objects that one side may be sending at once.
pub const MAX_OBJECTS: u32 = 256;
/// The most pieces that the application is asked for in advance.
const MAX_REQUESTED_PIECES: usize = 4;
/// The number of objects that were given up and are still known. Beyond this number the oldest is
/// forgotten.
const MAX_ABANDONED_OBJECTS: usize = 1024;

/// The objects of a connection.
#[derive(Debug)]
pub struct ConnectionObjects {
    handle: Handle,
    sent: BTreeMap<ObjectId, Arc<OutboundObject>>,
    /// Pieces that were asked for and not given.
    asked: usize,
    coming: BTreeMap<ObjectId, Arc<InboundObject>>,
    /// The latest objects that were given up before all their bytes had arrived.
    gone: VecDeque<ObjectId>,
}

/// A violation of the protocol by the peer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PeerViolation(pub &'static str);

impl ConnectionObjects {
    pub const fn new(handle: Handle) -> Self {
        Self { handle, sent: BTreeMap::new(), asked: 0, coming: BTreeMap::new(), gone: VecDeque::new() }
    }

    /// The application sends an object.
    pub fn send(&mut self, sent: Arc<OutboundObject>, out: &mut Outgoing, unsaid: &mut Vec<u8>) {
        let (object, size) = (sent.id, sent.size);
        ControlRecord::Object { object, size, header: sent.header.clone() }.write(unsaid);
        out.add_object(object, size);
        self.sent.insert(object, sent);
    }

    /// Handles an object for which the application provided pieces, or which it gave up. Returns
    /// whether that object is over.
    pub fn touch_sent(
        &mut self,
        sent: &Arc<OutboundObject>,
        out: &mut Outgoing,
        unsaid: &mut Vec<u8>,
    ) -> bool {
        let (ready, withdrawn) = sent.state.with(|state| (std::mem::take(&mut state.ready), state.withdrawn));
        if !self.sent.contains_key(&sent.id) {
            return false;
        }
        for (offset, bytes) in ready {
            out.provide(sent.id, offset, bytes);
            self.asked -= 1;
        }
        if withdrawn {
            ControlRecord::Withdrawn { object: sent.id }.write(unsaid);
            self.end_sent(sent.id, ObjectEnd::Withdrawn, out);
        }
        withdrawn
    }

    /// Asks the application for the bytes that the engine is to send next.
    pub fn ask(&mut self, out: &mut Outgoing) {
        while self.asked < MAX_REQUESTED_PIECES
            && let Some(read) = out.next_read()
        {
            match self.sent.get(&read.object) {
                Some(sent) => {
                    self.asked += 1;
                    sent.state.change(|state| state.wanted.push_back(read));
                }
                None => out.abandon_object(read.object),
            }
        }
    }

    /// The peer says how an object ended there. Returns whether it was under way.
    pub fn on_taken(&mut self, object: ObjectId, how: EndKind, out: &mut Outgoing) -> bool {
        let ended = match how {
            EndKind::Read => ObjectEnd::Well,
            EndKind::Dropped(code) => ObjectEnd::Refused(code),
            EndKind::Reset => ObjectEnd::Withdrawn,
        };
        self.end_sent(object, ended, out)
    }

    fn end_sent(&mut self, object: ObjectId, ended: ObjectEnd, out: &mut Outgoing) -> bool {
        let Some(sent) = self.sent.remove(&object) else { return false };
        if ended != ObjectEnd::Well {
            out.abandon_object(object);
        }
        self.asked -= sent.state.change(|state| {
            state.over.get_or_insert(ended);
            let unanswered = state.wanted.len() + state.in_hand + state.ready.len();
            state.wanted.clear();
            state.ready.clear();
            unanswered
        });
        true
    }

    /// Handles the engine's events about received objects.
    pub fn receive(&mut self, incoming: &mut Incoming) -> Result<(), PeerViolation> {
        while let Some(write) = incoming.next_write() {
            if self.gone.contains(&write.object) {
                incoming.written(write.data);
                continue;
            }
            let coming = self.coming(write.object)?;
            coming.state.change(|state| state.pieces.push_back(write));
        }
        Ok(())
    }

    /// All of an object was handed out.
    pub fn on_complete(&mut self, object: ObjectId, size: u64) -> Result<(), PeerViolation> {
        if self.gone.contains(&object) {
            return Ok(());
        }
        let announced = self.coming(object)?.state.change(|state| {
            state.complete = true;
            state.announced.as_ref().map(|(_, size)| *size)
        });
        if announced.is_some_and(|announced| announced != size) {
            return Err(PeerViolation("an object has another size than it said"));
        }
        Ok(())
    }

    /// Handles the peer's announcement of an object, and notifies the application.
    pub fn on_announced(
        &mut self,
        object: ObjectId,
        header: Vec<u8>,
        size: u64,
    ) -> Result<Arc<InboundObject>, PeerViolation> {
        let coming = self.coming(object)?;
        let again = coming.state.change(|state| state.announced.replace((header, size)).is_some());
        if again {
            return Err(PeerViolation("it announces an object twice"));
        }
        Ok(coming)
    }

    /// The peer gives an object up.
    pub fn on_withdrawn(&mut self, object: ObjectId, incoming: &mut Incoming) {
        if let Some(coming) = self.coming.get(&object).cloned() {
            coming.state.change(|state| {
                state.broken.get_or_insert(ObjectEnd::Withdrawn);
            });
            self.forget(&coming, incoming);
        }
    }

    /// Handles a received object of which the application returned buffers, has all bytes, or wants
    /// no more.
    pub fn touch_coming(
        &mut self,
        coming: &Arc<InboundObject>,
        incoming: &mut Incoming,
        unsaid: &mut Vec<u8>,
    ) {
        let (done, confirmed, stopped) =
            coming.state.with(|state| (std::mem::take(&mut state.done), state.confirmed, state.stopped));
        done.into_iter().for_each(|buffer| incoming.written(buffer));
        if !self.coming.contains_key(&coming.id) {
            return;
        }
        let how = match (confirmed, stopped) {
            (true, _) => EndKind::Read,
            (false, Some(code)) => EndKind::Dropped(code),
            (false, None) => return,
        };
        ControlRecord::Taken { object: coming.id, how }.write(unsaid);
        if confirmed {
            self.coming.remove(&coming.id);
        } else {
            self.forget(coming, incoming);
        }
    }

    /// Discards an incoming object that the application no longer wants.
    fn forget(&mut self, coming: &Arc<InboundObject>, incoming: &mut Incoming) {
        self.coming.remove(&coming.id);
        let (pieces, complete) =
            coming.state.with(|state| (std::mem::take(&mut state.pieces), state.complete));
        for piece in pieces {
            incoming.written(piece.data);
        }
        if !complete {
            incoming.forget_object(coming.id);
            if self.gone.len() >= MAX_ABANDONED_OBJECTS {
                self.gone.pop_front();
            }
            self.gone.push_back(coming.id);
        }
    }

    /// Adds an object that the peer sends.
    fn coming(&mut self, id: ObjectId) -> Result<Arc<InboundObject>, PeerViolation> {
        // What is over there may not be over here yet.
        if self.coming.len() > 2 * MAX_OBJECTS as usize {
            return Err(PeerViolation("more objects than it may have under way"));
        }
        let handle = self.handle;
        let new = || Arc::new(InboundObject { handle, id, state: Default::default() });
        Ok(Arc::clone(self.coming.entry(id).or_insert_with(new)))
    }

    /// Whether this side is still sending an object.
    pub fn is_busy(&self) -> bool {
        !self.sent.is_empty()
    }

    /// Ends all objects, because the connection has ended.
    pub fn end(&mut self, error: &ConnectionError) {
        let ended = ObjectEnd::Connection(error.clone());
        for sent in std::mem::take(&mut self.sent).into_values() {
            sent.state.change(|state| {
                state.over.get_or_insert(ended.clone());
            });
        }
        for coming in std::mem::take(&mut self.coming).into_values() {
            coming.state.change(|state| {
                // What was handed out can be taken.
                if !state.complete {
                    state.broken.get_or_insert(ended.clone());
                }
            });
        }
    }
}
