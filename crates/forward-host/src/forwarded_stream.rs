//! The stream of a program's connection: it begins with a request, and what comes by it with the
//! far end's answer.

use byway_engine::data::StreamRead;
use byway_forward::forward_target::Target;
use byway_forward::splice::{Splice, SplicedStream, StreamOf};
use byway_forward::stream_request::{Refusal, request};
use byway_wire::StreamId;

/// The stream of a connection.
#[derive(Debug)]
pub(crate) struct ForwardedStream {
    pub target: Target,
    pub id: StreamId,
    /// The request that the stream begins with. `None`: all of it is written.
    pub request: Option<Vec<u8>>,
    pub splice: Splice,
    /// Something came by the stream.
    pub begun: bool,
    /// The far end is connected.
    pub answered: bool,
    /// Whether the peer ended the stream right after the answer.
    pub ended: bool,
    /// Whether the peer has all data of the program, and their end.
    pub acked: bool,
    pub refusal: Option<Refusal>,
}

impl ForwardedStream {
    /// A stream that is to lead to `target`.
    pub fn new(target: Target, id: StreamId) -> Self {
        let request = Some(request(&target));
        let splice = Splice::default();
        Self {
            target,
            id,
            request,
            splice,
            begun: false,
            answered: false,
            ended: false,
            acked: false,
            refusal: None,
        }
    }
}

/// A stream that begins with the far end's answer.
pub(crate) struct RequestStream<'a> {
    pub stream: StreamOf<'a>,
    pub begun: bool,
    pub answered: &'a mut bool,
    pub ended: &'a mut bool,
    pub refusal: &'a mut Option<Refusal>,
    /// Bytes that may still be taken from streams. `None`: no limit.
    pub budget: &'a mut Option<usize>,
    /// Set if the budget cut a read short, so that the stream may have more bytes.
    pub is_short: bool,
}

impl RequestStream<'_> {
    /// Reads the exit's answer. `Some(true)`: it has come. `None`: the answer is a refusal, or the
    /// stream broke.
    pub fn answer(&mut self) -> Option<bool> {
        if *self.answered || !self.begun {
            return Some(*self.answered);
        }
        let mut byte = [0];
        let read = self.stream.read(&mut byte)?;
        if read.length == 0 {
            return (!read.finished).then_some(false);
        }
        match Refusal::check(byte[0]) {
            Ok(()) => (*self.answered, *self.ended) = (true, read.finished),
            Err(refusal) => *self.refusal = Some(refusal),
        }
        self.answered.then_some(true)
    }
}

impl SplicedStream for RequestStream<'_> {
    fn room(&mut self, wanted: usize) -> usize {
        self.stream.room(wanted)
    }

    fn write(&mut self, bytes: &[u8]) {
        self.stream.write(bytes);
    }

    fn finish(&mut self) {
        self.stream.finish();
    }

    fn read(&mut self, buffer: &mut [u8]) -> Option<StreamRead> {
        if !self.answer()? {
            return Some(StreamRead { length: 0, finished: false });
        }
        if *self.ended {
            return Some(StreamRead { length: 0, finished: true });
        }
        let most = self.budget.map_or(buffer.len(), |budget| budget.min(buffer.len()));
        if most == 0 && !buffer.is_empty() {
            self.is_short = true;
            return Some(StreamRead { length: 0, finished: false });
        }
        let read = self.stream.read(buffer.get_mut(..most).unwrap_or_default())?;
        if let Some(budget) = self.budget {
            *budget -= read.length;
        }
        Some(read)
    }

    fn take(&mut self) -> Option<(Vec<u8>, StreamRead)> {
        // The answer comes first, and a budget is for parts of a piece too.
        if !*self.answered || *self.ended || self.budget.is_some() {
            return Some((Vec::new(), StreamRead { length: 0, finished: false }));
        }
        self.stream.take()
    }

    fn give_back(&mut self, buffer: Vec<u8>) {
        self.stream.give_back(buffer);
    }

    fn reset(&mut self, code: u64) {
        self.stream.reset(code);
    }
}
