//! Connects a socket and a stream: bytes, ends and resets pass both ways. If one side does not
//! read, nothing more is read from the other side (back-pressure). The buffer here keeps only bytes
//! that a full socket refused.

use crate::stream_request::code;
use alloc::vec::Vec;
use byway_engine::connection::Connection;
use byway_engine::data::StreamRead;
use byway_wire::StreamId;

/// The most bytes that one call moves each way, so that no connection delays others.
const MAX_TURN_BYTES: usize = 256 << 10;

/// The number of bytes from which a read takes the buffer without a copy.
const MIN_TAKE_BYTES: usize = 16 << 10;

/// How reading or writing a socket went.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IoResult {
    /// The number of bytes that the call read or wrote. A read of none is the end.
    Done(usize),
    /// The socket has no bytes to read, or no room, now. It reports when a new call is worth while.
    Later,
    /// The connection was reset, or is broken in another way.
    Broken,
}

/// A TCP connection on this host, in nonblocking mode.
pub trait Local {
    /// Reads the bytes that have arrived into `buffer`.
    fn read(&mut self, buffer: &mut [u8]) -> IoResult;
    /// Writes as many bytes as the socket takes; `bytes` is never empty.
    fn write(&mut self, bytes: &[u8]) -> IoResult;
    /// Closes the sending direction: the peer sees the end of the data.
    fn finish(&mut self);
    /// Resets the connection: the peer sees an error.
    fn abort(&mut self);
}

/// A stream of a session.
pub trait SplicedStream {
    /// Returns how many of `wanted` bytes [`write`](Self::write) accepts now. If there are fewer,
    /// the stream reports when it has room again.
    fn room(&mut self, wanted: usize) -> usize;
    /// Writes bytes, at most as many as [`room`](Self::room) returned.
    fn write(&mut self, bytes: &[u8]);
    /// Nothing more will be written.
    fn finish(&mut self);
    /// Reads the bytes that have arrived into `buffer`. `None`: the stream is closed.
    fn read(&mut self, buffer: &mut [u8]) -> Option<StreamRead>;
    /// Returns the next bytes in their buffer, if they are many; else none, and
    /// [`read`](Self::read) returns them. `None`: the stream is over.
    fn take(&mut self) -> Option<(Vec<u8>, StreamRead)>;
    /// Returns the buffer of an earlier `take`, to be used again.
    fn give_back(&mut self, buffer: Vec<u8>);
    /// Resets both directions of the stream with this error code.
    fn reset(&mut self, code: u64);
}

/// A stream of a connection.
#[derive(Debug)]
pub struct StreamOf<'a> {
    /// The session that the stream belongs to.
    pub connection: &'a mut Connection,
    /// The stream that is joined with the socket.
    pub id: StreamId,
}

impl SplicedStream for StreamOf<'_> {
    fn room(&mut self, wanted: usize) -> usize {
        self.connection.outgoing().room(self.id, wanted)
    }

    fn write(&mut self, bytes: &[u8]) {
        self.connection.outgoing().write(self.id, bytes);
    }

    fn finish(&mut self) {
        self.connection.outgoing().finish(self.id);
    }

    fn read(&mut self, buffer: &mut [u8]) -> Option<StreamRead> {
        self.connection.incoming().read(self.id, buffer)
    }

    fn take(&mut self) -> Option<(Vec<u8>, StreamRead)> {
        self.connection.incoming().take(self.id, MIN_TAKE_BYTES)
    }

    fn give_back(&mut self, buffer: Vec<u8>) {
        self.connection.incoming().give_back(buffer);
    }

    fn reset(&mut self, code: u64) {
        self.connection.outgoing().reset(self.id, code);
        self.connection.incoming().stop(self.id, code);
    }
}

/// The events for which a connection waits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WaitsFor {
    /// The socket has something to read. Not asked for while the stream has no room.
    pub readable: bool,
    /// The socket can be written.
    pub writable: bool,
    /// No event: the connection used its turn, and goes on after the others.
    pub turn: bool,
    /// The stream can be written.
    pub room: bool,
}

/// The state of a connection after a call of `pump`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SpliceStatus {
    /// The connection is open, and waits for these events.
    Open(WaitsFor),
    /// Both directions ended without an error: the socket can be closed.
    Over,
    /// The connection broke, and both sides were reset.
    Broken,
}

/// A socket and a stream.
#[derive(Debug, Default)]
pub struct Splice {
    /// Whether the socket's data ended.
    sent: bool,
    /// Whether the stream's data ended, and the end was passed on to the socket.
    received: bool,
    /// Bytes from the stream that the full socket refused.
    pending: Vec<u8>,
    /// Whether the stream ends after `pending`.
    last: bool,
    /// Bytes that went from socket to stream, and back.
    pub moved: [u64; 2],
}

/// Why one direction stopped moving bytes.
enum StopReason {
    /// The direction ended.
    Ended,
    /// The direction's source has no bytes now.
    Source,
    /// The direction's sink is full.
    Sink,
    /// The direction moved the most bytes of one turn.
    Turn,
    Broken,
}

impl Splice {
    /// Makes a splice at its beginning. `ended`: whether all of the stream's data were read before.
    #[must_use]
    pub fn beginning(ended: bool) -> Self {
        Self { last: ended, ..Self::default() }
    }

    /// Moves as many bytes as possible in both directions. `scratch` is a buffer for one read.
    pub fn pump(
        &mut self,
        local: &mut impl Local,
        stream: &mut impl SplicedStream,
        scratch: &mut [u8],
    ) -> SpliceStatus {
        let (up, down) = (self.send(local, stream, scratch), self.receive(local, stream, scratch));
        match (up, down) {
            (StopReason::Broken, _) | (_, StopReason::Broken) => {
                self.break_off(local, stream);
                SpliceStatus::Broken
            }
            (StopReason::Ended, StopReason::Ended) => SpliceStatus::Over,
            (up, down) => SpliceStatus::Open(WaitsFor {
                readable: matches!(up, StopReason::Source),
                writable: matches!(down, StopReason::Sink),
                turn: matches!(up, StopReason::Turn) || matches!(down, StopReason::Turn),
                room: matches!(up, StopReason::Sink),
            }),
        }
    }

    /// Takes the rest of the stream of a session that is over, at most `most` bytes. It must have
    /// come whole, and the socket's own data must have ended. `None`: the connection cannot outlive
    /// its session. Otherwise: how many bytes [`flush`](Self::flush) still has to write.
    pub fn outlive(&mut self, stream: &mut impl SplicedStream, most: usize) -> Option<usize> {
        if !self.sent {
            return None;
        }
        while !self.last {
            let before = self.pending.len();
            let room = most.checked_sub(before).filter(|room| *room > 0)?;
            self.pending.resize(before + room.min(MIN_TAKE_BYTES), 0);
            let read = stream.read(self.pending.get_mut(before..).unwrap_or_default())?;
            self.pending.truncate(before + read.length);
            self.last = read.finished;
            if read.length == 0 && !read.finished {
                return None;
            }
        }
        Some(self.pending.len())
    }

    /// Writes the rest of the stream after [`outlive`](Self::outlive), and then its end.
    pub fn flush(&mut self, local: &mut impl Local) -> SpliceStatus {
        let rest = core::mem::take(&mut self.pending);
        match self.put(local, &rest) {
            Ok(done) if done == rest.len() => {
                local.finish();
                SpliceStatus::Over
            }
            Ok(done) => {
                self.pending = Vec::from(rest.get(done..).unwrap_or_default());
                SpliceStatus::Open(WaitsFor { writable: true, ..WaitsFor::default() })
            }
            Err(_) => SpliceStatus::Broken,
        }
    }

    /// Either side is broken: neither lives on.
    pub fn break_off(&mut self, local: &mut impl Local, stream: &mut impl SplicedStream) {
        self.pending = Vec::new();
        local.abort();
        stream.reset(code::CONNECTION_RESET);
    }

    /// Moves bytes from the socket to the stream.
    fn send(
        &mut self,
        local: &mut impl Local,
        stream: &mut impl SplicedStream,
        scratch: &mut [u8],
    ) -> StopReason {
        let mut left = MAX_TURN_BYTES;
        while !self.sent {
            if left == 0 {
                return StopReason::Turn;
            }
            let room = stream.room(scratch.len().min(left));
            let Some(buffer) = scratch.get_mut(..room).filter(|_| room > 0) else { return StopReason::Sink };
            match local.read(buffer) {
                IoResult::Done(0) => {
                    stream.finish();
                    self.sent = true;
                }
                IoResult::Done(length) => {
                    stream.write(buffer.get(..length).unwrap_or_default());
                    self.moved[0] += length as u64;
                    left -= length;
                }
                IoResult::Later => return StopReason::Source,
                IoResult::Broken => return StopReason::Broken,
            }
        }
        StopReason::Ended
    }

    /// Moves bytes from the stream to the socket.
    fn receive(
        &mut self,
        local: &mut impl Local,
        stream: &mut impl SplicedStream,
        scratch: &mut [u8],
    ) -> StopReason {
        let mut left = MAX_TURN_BYTES;
        while !self.received {
            if !self.pending.is_empty() {
                let pending = core::mem::take(&mut self.pending);
                match self.put(local, &pending) {
                    Ok(done) if done == pending.len() => {}
                    Ok(done) => {
                        self.pending = Vec::from(pending.get(done..).unwrap_or_default());
                        return StopReason::Sink;
                    }
                    Err(rest) => return rest,
                }
            }
            if self.last {
                local.finish();
                self.received = true;
                return StopReason::Ended;
            }
            if left == 0 {
                return StopReason::Turn;
            }
            let Some((piece, read)) = stream.take() else { return StopReason::Broken };
            self.last = read.finished;
            left = left.saturating_sub(read.length);
            if read.length > 0 {
                match self.put(local, &piece) {
                    Ok(done) if done == piece.len() => stream.give_back(piece),
                    Ok(done) => self.pending = Vec::from(piece.get(done..).unwrap_or_default()),
                    Err(rest) => return rest,
                }
                continue;
            }
            if read.finished {
                continue;
            }
            let length = scratch.len().min(left);
            let Some(read) = stream.read(scratch.get_mut(..length).unwrap_or_default()) else {
                return StopReason::Broken;
            };
            self.last = read.finished;
            left -= read.length;
            if read.length == 0 && !read.finished {
                return StopReason::Source;
            }
            let bytes = scratch.get(..read.length).unwrap_or_default();
            match self.put(local, bytes) {
                Ok(done) => self.pending = Vec::from(bytes.get(done..).unwrap_or_default()),
                Err(rest) => return rest,
            }
        }
        StopReason::Ended
    }

    /// Writes bytes to the socket until it is full. Returns the number of bytes written.
    fn put(&mut self, local: &mut impl Local, bytes: &[u8]) -> Result<usize, StopReason> {
        let mut done = 0;
        while let Some(rest) = bytes.get(done..).filter(|rest| !rest.is_empty()) {
            match local.write(rest) {
                IoResult::Done(length) => {
                    done += length;
                    self.moved[1] += length as u64;
                }
                IoResult::Later => break,
                IoResult::Broken => return Err(StopReason::Broken),
            }
        }
        Ok(done)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::VecDeque;

    /// One end of a pipe that takes at most `room` bytes, and gives at most `piece` at once.
    #[derive(Debug, Default)]
    struct End {
        to_read: VecDeque<u8>,
        read_ends: bool,
        written: Vec<u8>,
        write_room: usize,
        ended: bool,
        broken: bool,
        piece: usize,
    }

    impl End {
        fn take(&mut self, buffer: &mut [u8]) -> usize {
            let length = self.to_read.len().min(buffer.len()).min(self.piece);
            buffer.iter_mut().zip(self.to_read.drain(..length)).for_each(|(to, from)| *to = from);
            length
        }

        fn put(&mut self, bytes: &[u8]) -> usize {
            assert!(!self.ended, "nothing follows an end");
            let length = bytes.len().min(self.write_room).min(self.piece);
            self.write_room -= length;
            self.written.extend_from_slice(&bytes[..length]);
            length
        }
    }

    impl Local for End {
        fn read(&mut self, buffer: &mut [u8]) -> IoResult {
            match self.take(buffer) {
                _ if self.broken => IoResult::Broken,
                0 if !self.read_ends => IoResult::Later,
                length => IoResult::Done(length),
            }
        }

        fn write(&mut self, bytes: &[u8]) -> IoResult {
            match self.put(bytes) {
                _ if self.broken => IoResult::Broken,
                0 => IoResult::Later,
                length => IoResult::Done(length),
            }
        }

        fn finish(&mut self) {
            assert!(!self.ended);
            self.ended = true;
        }

        fn abort(&mut self) {
            self.broken = true;
        }
    }

    impl SplicedStream for End {
        fn room(&mut self, wanted: usize) -> usize {
            wanted.min(self.write_room).min(self.piece)
        }

        fn write(&mut self, bytes: &[u8]) {
            assert_eq!(self.put(bytes), bytes.len());
        }

        fn finish(&mut self) {
            Local::finish(self);
        }

        fn read(&mut self, buffer: &mut [u8]) -> Option<StreamRead> {
            let length = self.take(buffer);
            (!self.broken)
                .then_some(StreamRead { length, finished: self.read_ends && self.to_read.is_empty() })
        }

        fn take(&mut self) -> Option<(Vec<u8>, StreamRead)> {
            let mut piece = std::vec![0; if self.to_read.len() < 100 { 0 } else { 150 }];
            let read = SplicedStream::read(self, &mut piece)?;
            piece.truncate(read.length);
            Some((piece, read))
        }

        fn give_back(&mut self, buffer: Vec<u8>) {
            assert!(!buffer.is_empty());
        }

        fn reset(&mut self, code: u64) {
            assert_eq!(code, code::CONNECTION_RESET);
            self.broken = true;
        }
    }

    fn end(to_read: &[u8], piece: usize) -> End {
        End { to_read: to_read.iter().copied().collect(), piece, ..End::default() }
    }

    proptest! {
        /// All bytes arrive in order, followed by the end, whatever the size of the pieces, and
        /// whenever the socket and the stream have room. If the splice cannot go on,
        /// `SpliceStatus::Open` says what it waits for.
        #[test]
        fn all_passes_both_ways(
            up in proptest::collection::vec(any::<u8>(), 0..2000),
            down in proptest::collection::vec(any::<u8>(), 0..2000),
            (local_piece, stream_piece) in (1_usize..300, 1_usize..300),
            steps in proptest::collection::vec((0_usize..3, 1_usize..400), 1..400),
        ) {
            let (mut local, mut stream) = (end(&up, local_piece), end(&down, stream_piece));
            let (mut splice, mut scratch) = (Splice::default(), [0; 128]);
            let mut ends = steps.len() / 2;
            let forever = [(0, 4000), (1, 4000), (2, 0)].into_iter().cycle().take(100);
            let mut over = false;
            for (what, amount) in steps.into_iter().chain(forever) {
                match what {
                    0 => local.write_room += amount,
                    1 => stream.write_room += amount,
                    _ => {}
                }
                ends = ends.saturating_sub(1);
                if ends == 0 {
                    (local.read_ends, stream.read_ends) = (true, true);
                }
                match splice.pump(&mut local, &mut stream, &mut scratch) {
                    SpliceStatus::Open(waits) => {
                        prop_assert_eq!(waits.writable, !splice.pending.is_empty());
                        prop_assert!(!waits.readable || local.to_read.is_empty() && !local.read_ends);
                        prop_assert!(!waits.room || stream.write_room == 0);
                    }
                    standing => {
                        prop_assert_eq!(standing, SpliceStatus::Over);
                        over = true;
                        break;
                    }
                }
            }
            prop_assert!(over);
            prop_assert_eq!((&local.written, &stream.written), (&down, &up));
            prop_assert!(local.ended && stream.ended);
            prop_assert_eq!(splice.moved, [up.len() as u64, down.len() as u64]);
        }
    }

    #[test]
    fn one_side_ends_while_the_other_goes_on() {
        let (mut local, mut stream) = (end(b"GET", 100), end(b"", 100));
        (local.read_ends, local.write_room, stream.write_room) = (true, 100, 100);
        let (mut splice, mut scratch) = (Splice::default(), [0; 16]);
        let standing = splice.pump(&mut local, &mut stream, &mut scratch);
        assert_eq!(standing, SpliceStatus::Open(WaitsFor::default()), "only the stream can bring something");
        assert!(stream.ended && !local.ended);
        stream.to_read.extend(b"answer");
        stream.read_ends = true;
        assert_eq!(splice.pump(&mut local, &mut stream, &mut scratch), SpliceStatus::Over);
        assert_eq!(local.written, b"answer");
        assert!(local.ended);
    }

    /// Bytes whose socket has ended, and takes nothing for now.
    fn left_behind(rest: &[u8]) -> (Splice, End, End) {
        let (mut local, mut stream) = (end(b"", 100), end(rest, usize::MAX));
        (local.read_ends, stream.write_room) = (true, 100);
        let mut splice = Splice::default();
        splice.pump(&mut local, &mut stream, &mut [0; 16]);
        (splice, local, stream)
    }

    #[test]
    fn what_came_whole_outlives_its_session_if_it_is_little() {
        let (mut splice, mut local, mut stream) = left_behind(&[7; 5000]);
        assert_eq!(splice.outlive(&mut stream, 10_000), None, "its end has not come");
        let (mut splice, .., mut stream) = left_behind(&[7; 5000]);
        stream.read_ends = true;
        assert_eq!(splice.outlive(&mut stream, 4000), None);
        let (mut splice, .., mut stream) = left_behind(&[7; 5000]);
        stream.read_ends = true;
        assert_eq!(splice.outlive(&mut stream, 10_000), Some(5000));
        for room in [0, 3000] {
            local.write_room = room;
            let waits = WaitsFor { writable: true, ..WaitsFor::default() };
            assert_eq!(splice.flush(&mut local), SpliceStatus::Open(waits));
            assert!(!local.ended);
        }
        local.write_room = 2000;
        assert_eq!(splice.flush(&mut local), SpliceStatus::Over);
        assert!(local.ended && local.written == [7; 5000]);
        // One whose program may still say something is over with its session.
        assert_eq!(Splice::default().outlive(&mut end(b"", 1), 10), None);
    }

    #[test]
    fn what_breaks_breaks_both() {
        for which in 0..2 {
            let (mut local, mut stream) = (end(b"x", 100), end(b"y", 100));
            if which == 0 {
                local.broken = true
            } else {
                stream.broken = true
            }
            (local.write_room, stream.write_room) = (100, 100);
            let standing = Splice::default().pump(&mut local, &mut stream, &mut [0; 16]);
            assert_eq!(standing, SpliceStatus::Broken);
            assert!(local.broken && stream.broken);
        }
    }

    #[test]
    fn no_connection_keeps_others_waiting() {
        let (mut local, mut stream) = (end(&[1; MAX_TURN_BYTES + 1], usize::MAX), end(b"", 100));
        stream.write_room = usize::MAX;
        stream.piece = usize::MAX;
        let (mut splice, mut scratch) = (Splice::default(), [0; 4096]);
        let turn = SpliceStatus::Open(WaitsFor { turn: true, ..WaitsFor::default() });
        assert_eq!(splice.pump(&mut local, &mut stream, &mut scratch), turn);
        assert_eq!(splice.moved[0], MAX_TURN_BYTES as u64);
        let rest = SpliceStatus::Open(WaitsFor { readable: true, ..WaitsFor::default() });
        assert_eq!(splice.pump(&mut local, &mut stream, &mut scratch), rest);
    }
}
