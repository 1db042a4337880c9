//! A stream on the event loop's side: bytes go between what the application shares and the engine, as far as each has room.

use crate::cell::{BUFFER, Cell, End, Spare};
use crate::error::StreamError;
use crate::filled::Filled;
use crate::record::How;
use byway_engine::data::{Incoming, Outgoing};
use std::sync::Arc;

/// A stream.
#[derive(Debug)]
pub struct Lane {
    cell: Arc<Cell>,
    /// What the application wrote, from `at` on not yet the engine's.
    pending: Vec<u8>,
    at: usize,
    out: Out,
    /// Whether what is received is over, and the peer was told.
    received: bool,
    /// Whether the engine has given the end of what is received.
    ended: bool,
}

/// How what is sent stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Out {
    /// The application may send more.
    Open,
    /// The engine has the end.
    Finished,
    /// It was given up.
    GivenUp,
    /// The peer said how it ended there.
    Over,
}

/// What the application wants next.
enum Next {
    Bytes,
    Finish,
    Reset(u64),
    Nothing,
}

impl Lane {
    pub fn new(cell: Arc<Cell>) -> Self {
        Self { cell, pending: Vec::new(), at: 0, out: Out::Open, received: false, ended: false }
    }

    /// The part that the application shares.
    pub const fn cell(&self) -> &Arc<Cell> {
        &self.cell
    }

    /// Whether both directions are over.
    pub const fn is_over(&self) -> bool {
        self.received && matches!(self.out, Out::Over)
    }

    /// Whether the application finished it, and waits for the peer's.
    pub fn is_finishing(&self) -> bool {
        match self.out {
            Out::Open => self.cell.sending.with(|sending| sending.finished && sending.reset.is_none()),
            Out::Finished => true,
            Out::GivenUp | Out::Over => false,
        }
    }

    /// Hands the engine what the application wrote, as far as that has room; it tells when it has more.
    pub fn send(&mut self, out: &mut Outgoing, spare: &Spare) {
        loop {
            match self.next() {
                Next::Bytes => {}
                Next::Finish => {
                    out.finish(self.cell.id);
                    self.out = Out::Finished;
                    return self.rest(spare);
                }
                Next::Reset(code) => {
                    out.reset(self.cell.id, code);
                    self.out = Out::GivenUp;
                    return self.rest(spare);
                }
                Next::Nothing => return self.rest(spare),
            }
            let rest = self.pending.get(self.at..).unwrap_or_default();
            let taken = out.write(self.cell.id, rest);
            self.at += taken;
            if self.at < self.pending.len() {
                return;
            }
        }
    }

    fn next(&mut self) -> Next {
        let is_empty = self.at == self.pending.len();
        let (out, pending) = (self.out, &mut self.pending);
        let next = |sending: &mut crate::cell::Sending| match (out, sending.reset) {
            (Out::Open | Out::Finished, Some(code)) => Next::Reset(code),
            (Out::Open, None) if !is_empty => Next::Bytes,
            (Out::Open, None) if !sending.ready.is_empty() => {
                pending.clear();
                std::mem::swap(pending, &mut sending.ready);
                Next::Bytes
            }
            (Out::Open, None) if sending.finished => Next::Finish,
            _ => Next::Nothing,
        };
        let next = if is_empty && out == Out::Open {
            self.cell.sending.change(next)
        } else {
            self.cell.sending.with(next)
        };
        if is_empty {
            self.at = 0;
        }
        next
    }

    /// Holds no memory while there is nothing to move.
    fn rest(&mut self, spare: &Spare) {
        self.at = 0;
        spare.put(std::mem::take(&mut self.pending));
    }

    /// Hands the application what arrived, as far as it has room. Returns how it ended, once.
    pub fn receive(&mut self, incoming: &mut Incoming, spare: &Spare) -> Option<How> {
        if self.received {
            return None;
        }
        let id = self.cell.id;
        while !self.ended {
            // Read where it will stand: whoever reads meanwhile waits for one copy.
            let read = self.cell.receiving.with(|receiving| {
                receiving.paused = receiving.ready.len() >= BUFFER;
                if receiving.paused || receiving.stopped.is_some() {
                    return None;
                }
                if receiving.ready.is_bare() {
                    receiving.ready = Filled::new(spare.take());
                }
                let room = receiving.ready.room(BUFFER);
                let wanted = room.len();
                let read = incoming.read(id, room)?;
                receiving.ready.add(read.length);
                if read.finished {
                    receiving.end.get_or_insert(End::Fin);
                }
                Some((read, wanted))
            });
            let Some((read, wanted)) = read else { break };
            self.ended = read.finished;
            if read.length > 0 || read.finished {
                self.cell.receiving.change(|_| ());
            }
            if read.length < wanted {
                break;
            }
        }
        let how = self.cell.receiving.with(|receiving| match (receiving.confirmed, receiving.stopped) {
            (true, _) => Some(How::Read),
            (false, Some(code)) => Some(How::Dropped(code)),
            _ => None,
        });
        if let Some(How::Dropped(code)) = how {
            incoming.stop(id, code);
        }
        self.received |= how.is_some();
        how
    }

    /// The peer gave up what it sends. Returns whether that is news to it.
    pub fn on_reset(&mut self, code: u64) -> bool {
        self.cell.receiving.change(|receiving| {
            receiving.ready = Filled::default();
            receiving.end = Some(End::Broken(StreamError::Reset(code)));
        });
        !std::mem::replace(&mut self.received, true)
    }

    /// The peer wants no more of what this side sends; the engine has given it up.
    pub fn on_stopped(&mut self, code: u64) {
        if self.out != Out::Over {
            self.out = Out::GivenUp;
        }
        self.end_sending(Err(StreamError::Stopped(code)));
    }

    /// The peer says how what this side sends ended there.
    pub fn on_over(&mut self, how: How) {
        self.end_sending(match how {
            How::Read => Ok(()),
            How::Dropped(code) => Err(StreamError::Stopped(code)),
            How::Reset => Err(StreamError::Finished),
        });
        self.out = Out::Over;
    }

    fn end_sending(&mut self, outcome: Result<(), StreamError>) {
        self.cell.sending.change(|sending| {
            sending.ready = Vec::new();
            sending.over.get_or_insert(outcome);
        });
        self.pending = Vec::new();
        self.at = 0;
    }
}
