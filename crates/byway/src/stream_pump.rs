//! A stream on the event loop's side: bytes go between what the application shares and the engine,
//! as far as each has room.

use crate::control_records::EndKind;
use crate::error::StreamError;
use crate::receive_queue::ByteQueue;
use crate::shared_buffers::{PooledBuffer, SharedBuffers};
use crate::shared_stream::{STREAM_BUFFER_BYTES, SharedStream, StreamEnd};
use bytes::Bytes;
use byway_engine::data::{Incoming, Outgoing};
use std::sync::Arc;

/// The size from which a piece is handed over without a copy. Smaller ones are gathered.
const MIN_WHOLE_PIECE_BYTES: usize = 16 << 10;

/// Moves the bytes of a stream between the application and the engine.
#[derive(Debug)]
pub struct StreamPump {
    shared: Arc<SharedStream>,
    /// Bytes that the application wrote and the engine does not have yet.
    pending: Bytes,
    out: SendState,
    /// Whether the receiving direction has ended, and the peer was told.
    received: bool,
    /// Whether the engine has reported the end of the receiving direction.
    ended: bool,
}

/// The state of the sending direction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum SendState {
    /// The application may send more.
    Open,
    /// The engine has the end.
    Finished,
    /// The application gave the direction up.
    GivenUp,
    /// The peer has reported the end of the direction.
    Over,
}

/// The next step for the application's sending direction.
enum SendAction {
    Bytes,
    Finish,
    Reset(u64),
    Nothing,
}

impl StreamPump {
    pub fn new(shared: Arc<SharedStream>) -> Self {
        Self { shared, pending: Bytes::new(), out: SendState::Open, received: false, ended: false }
    }

    /// The part that the application shares.
    pub const fn shared(&self) -> &Arc<SharedStream> {
        &self.shared
    }

    /// Whether both directions are over.
    pub const fn is_over(&self) -> bool {
        self.received && matches!(self.out, SendState::Over)
    }

    /// Whether the application has finished the direction, and the peer has not confirmed it.
    pub fn is_finishing(&self) -> bool {
        match self.out {
            SendState::Open => {
                self.shared.sending.with(|sending| sending.finished && sending.reset.is_none())
            }
            SendState::Finished => true,
            SendState::GivenUp | SendState::Over => false,
        }
    }

    /// Passes written bytes to the engine, as far as it has room. The engine reports more room.
    pub fn send(&mut self, out: &mut Outgoing, spare: &Arc<SharedBuffers>) {
        loop {
            match self.next(spare) {
                SendAction::Bytes => {}
                SendAction::Finish => {
                    out.finish(self.shared.id);
                    self.out = SendState::Finished;
                    return;
                }
                SendAction::Reset(code) => {
                    out.reset(self.shared.id, code);
                    self.out = SendState::GivenUp;
                    self.pending = Bytes::new();
                    return;
                }
                SendAction::Nothing => return,
            }
            out.write_bytes(self.shared.id, &mut self.pending);
            if !self.pending.is_empty() {
                return;
            }
        }
    }

    fn next(&mut self, spare: &Arc<SharedBuffers>) -> SendAction {
        let is_empty = self.pending.is_empty();
        let (out, pending) = (self.out, &mut self.pending);
        let next = |sending: &mut crate::shared_stream::Sending| match (out, sending.reset) {
            (SendState::Open | SendState::Finished, Some(code)) => SendAction::Reset(code),
            (SendState::Open, None) if !is_empty => SendAction::Bytes,
            (SendState::Open, None) if !sending.ready.is_empty() => {
                *pending = PooledBuffer::bytes(std::mem::take(&mut sending.ready), spare);
                SendAction::Bytes
            }
            (SendState::Open, None) if sending.finished => SendAction::Finish,
            _ => SendAction::Nothing,
        };
        if is_empty && out == SendState::Open {
            self.shared.sending.change(next)
        } else {
            self.shared.sending.with(next)
        }
    }

    /// Passes received bytes to the application, as far as it has room. Returns the end of the
    /// direction, once.
    pub fn receive(&mut self, incoming: &mut Incoming, spare: &SharedBuffers) -> Option<EndKind> {
        if self.received {
            return None;
        }
        let id = self.shared.id;
        while !self.ended {
            // Read where it will stand: whoever reads meanwhile waits for one copy at most.
            let read = self.shared.receiving.with(|receiving| {
                receiving.paused = receiving.ready.len() >= STREAM_BUFFER_BYTES;
                if receiving.paused || receiving.stopped.is_some() {
                    return None;
                }
                let (piece, mut read) = incoming.take(id, MIN_WHOLE_PIECE_BYTES)?;
                let mut wanted = read.length;
                if read.length > 0 {
                    receiving.ready.push(piece);
                } else if !read.finished {
                    let room = receiving.ready.room(spare, STREAM_BUFFER_BYTES);
                    wanted = room.len();
                    read = incoming.read(id, room)?;
                    receiving.ready.add(read.length);
                }
                if read.finished {
                    receiving.end.get_or_insert(StreamEnd::Fin);
                }
                Some((read, wanted))
            });
            let Some((read, wanted)) = read else { break };
            self.ended = read.finished;
            if read.length > 0 || read.finished {
                self.shared.receiving.change(|_| ());
            }
            if read.length < wanted {
                break;
            }
            if let Some(buffer) = spare.take_piece() {
                incoming.give_back(buffer);
            }
        }
        let how = self.shared.receiving.with(|receiving| match (receiving.confirmed, receiving.stopped) {
            (true, _) => Some(EndKind::Read),
            (false, Some(code)) => Some(EndKind::Dropped(code)),
            _ => None,
        });
        if let Some(EndKind::Dropped(code)) = how {
            incoming.stop(id, code);
        }
        self.received |= how.is_some();
        how
    }

    /// Handles the peer's reset. Returns whether the peer must get a confirmation.
    pub fn on_reset(&mut self, code: u64) -> bool {
        self.shared.receiving.change(|receiving| {
            receiving.ready = ByteQueue::default();
            receiving.end = Some(StreamEnd::Broken(StreamError::Reset(code)));
        });
        !std::mem::replace(&mut self.received, true)
    }

    /// Handles the peer's refusal of this host's data. The engine has given the direction up.
    pub fn on_stopped(&mut self, code: u64) {
        if self.out != SendState::Over {
            self.out = SendState::GivenUp;
        }
        self.end_sending(Err(StreamError::Stopped(code)));
    }

    /// Handles the peer's record of how the sending direction ended there.
    pub fn on_over(&mut self, how: EndKind) {
        self.end_sending(match how {
            EndKind::Read => Ok(()),
            EndKind::Dropped(code) => Err(StreamError::Stopped(code)),
            EndKind::Reset => Err(StreamError::Finished),
        });
        self.out = SendState::Over;
    }

    fn end_sending(&mut self, outcome: Result<(), StreamError>) {
        self.shared.sending.change(|sending| {
            sending.ready = Vec::new();
            sending.over.get_or_insert(outcome);
        });
        self.pending = Bytes::new();
    }
}
