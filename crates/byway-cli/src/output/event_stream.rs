//! Standard output as a stream of events, which a separate thread writes. So a reader that stops
//! reading blocks neither a transfer nor the handling of signals.

use super::event::Event;
use std::collections::VecDeque;
use std::io::{self, Write};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Lines that wait to be written, from which on progress is left out.
const PROGRESS_QUEUE_LIMIT: usize = 16;
/// The most lines that wait to be written. At this number, a new line waits until one is read.
const QUEUE_LIMIT: usize = 1024;
/// Time between two checks for signals, while the program waits for a reader.
const SIGNAL_POLL_INTERVAL: Duration = Duration::from_millis(50);
/// Time that a slow reader may delay the program after a stop was asked for.
const READER_TIMEOUT: Duration = Duration::from_secs(2);

/// A queue of events, and the thread that writes them, even after this struct is dropped. The first
/// event starts the thread, after the process has entered namespaces or dropped privileges: the
/// kernel changes these for the calling thread only.
pub(super) struct EventStream {
    shared: Arc<SharedQueue>,
    writer: Writer,
}

/// The part of the process that writes to the stream.
enum Writer {
    /// No event was written yet.
    None,
    Thread,
    /// The thread that emits an event writes it, since the process could not start another thread.
    Putter,
}

struct SharedQueue {
    queue: Mutex<LineQueue>,
    changed: Condvar,
    out: Mutex<Box<dyn Write + Send>>,
}

#[derive(Default)]
struct LineQueue {
    lines: VecDeque<String>,
    /// A line that was taken is being written.
    writing: bool,
    /// Number of events left out so far.
    dropped: u64,
    /// The end of all waiting for the reader, set once a stop was asked for.
    until: Option<Instant>,
    /// Whether the reader has closed the stream.
    gone: bool,
    /// Whether nothing more comes.
    ended: bool,
}

impl EventStream {
    /// Writes to `out`, each line at once.
    pub fn new(out: Box<dyn Write + Send>) -> Self {
        let (queue, changed, out) = (Mutex::default(), Condvar::new(), Mutex::new(out));
        Self { shared: Arc::new(SharedQueue { queue, changed, out }), writer: Writer::None }
    }

    fn begin(&mut self) {
        let theirs = Arc::clone(&self.shared);
        let thread = std::thread::Builder::new().name("byway events".into());
        let spawned = thread.spawn(move || theirs.write(|queue| queue.ended));
        self.writer = if spawned.is_ok() { Writer::Thread } else { Writer::Putter };
    }

    /// Queues an event. A progress event is dropped if `PROGRESS_QUEUE_LIMIT` lines or more are
    /// queued. Any other event waits while `QUEUE_LIMIT` lines are queued. Waiting ends when the
    /// reader closes the stream, or 2 seconds after `stopped` first returns true (a stop was
    /// requested).
    pub fn put(&mut self, event: &Event, stopped: impl Fn() -> bool) {
        if matches!(self.writer, Writer::None) {
            self.begin();
        }
        let most = if event.is_progress() { PROGRESS_QUEUE_LIMIT } else { QUEUE_LIMIT };
        let mut queue = self.shared.lock();
        if !event.is_progress() {
            queue = self.shared.wait(queue, stopped, |queue| queue.lines.len() < most);
        }
        if queue.lines.len() >= most {
            queue.dropped += 1;
        } else if !queue.gone {
            let line = event.line_after(queue.dropped) + "\n";
            queue.lines.push_back(line);
            self.shared.changed.notify_all();
        }
        drop(queue);
        if matches!(self.writer, Writer::Putter) {
            self.shared.write(|_| true);
        }
    }

    /// Waits until the reader has taken every line or closed the pipe, or until `READER_TIMEOUT`
    /// after a stop.
    pub fn finish(&self, stopped: impl Fn() -> bool) {
        let queue = self.shared.lock();
        drop(self.shared.wait(queue, stopped, |queue| queue.lines.is_empty() && !queue.writing));
    }
}

impl Drop for EventStream {
    fn drop(&mut self) {
        self.shared.lock().ended = true;
        self.shared.changed.notify_all();
    }
}

impl SharedQueue {
    /// Locks the queue. It stays consistent even if a thread panicked.
    fn lock(&self) -> MutexGuard<'_, LineQueue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn wait<'a>(
        &'a self,
        mut queue: MutexGuard<'a, LineQueue>,
        stopped: impl Fn() -> bool,
        enough: impl Fn(&LineQueue) -> bool,
    ) -> MutexGuard<'a, LineQueue> {
        while !queue.gone && !enough(&queue) {
            if stopped()
                && Instant::now() >= *queue.until.get_or_insert_with(|| Instant::now() + READER_TIMEOUT)
            {
                break;
            }
            (queue, _) = self
                .changed
                .wait_timeout(queue, SIGNAL_POLL_INTERVAL)
                .unwrap_or_else(PoisonError::into_inner);
        }
        queue
    }

    /// Writes queued lines until the queue is empty and `enough` returns true, or the reader closes
    /// the stream.
    fn write(&self, enough: impl Fn(&LineQueue) -> bool) {
        let mut queue = self.lock();
        loop {
            if let Some(line) = queue.lines.pop_front() {
                queue.writing = true;
                drop(queue);
                let written = self.write_line(&line);
                queue = self.lock();
                queue.writing = false;
                queue.gone = written.is_err();
                self.changed.notify_all();
            }
            if queue.gone {
                queue.lines.clear();
            }
            if queue.lines.is_empty() {
                if queue.gone || enough(&queue) {
                    return;
                }
                queue = self.changed.wait(queue).unwrap_or_else(PoisonError::into_inner);
            }
        }
    }

    fn write_line(&self, line: &str) -> io::Result<()> {
        let mut out = self.out.lock().unwrap_or_else(PoisonError::into_inner);
        out.write_all(line.as_bytes())?;
        out.flush()
    }
}

#[cfg(test)]
mod tests {
    use super::super::transfer::Progress;
    use super::*;
    use std::io::{PipeReader, Read as _};

    const ASKED: fn() -> bool = || true;
    const NOT_ASKED: fn() -> bool = || false;

    fn progress() -> Event {
        Event::Progress(Progress::default())
    }

    fn warning(number: usize) -> Event {
        Event::Warning { message: number.to_string() }
    }

    /// Returns a stream whose pipe and queue are full, the pipe's reader, and the number of events
    /// that the stream took.
    fn stuck() -> (EventStream, PipeReader, usize) {
        let (reader, writer) = io::pipe().unwrap();
        let mut stream = EventStream::new(Box::new(writer));
        let mut taken = 0;
        let big = Event::Warning { message: "x".repeat(1 << 20) };
        stream.put(&big, NOT_ASKED);
        while !stream.shared.lock().writing {
            std::thread::yield_now();
        }
        while stream.shared.lock().dropped == 0 {
            stream.put(&progress(), NOT_ASKED);
            taken += 1;
        }
        (stream, reader, taken - 1)
    }

    fn lines(mut reader: PipeReader) -> Vec<serde_json::Value> {
        let mut text = String::new();
        reader.read_to_string(&mut text).unwrap();
        text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }

    #[test]
    fn progress_is_left_out_and_counted_and_nothing_else_is() {
        let (mut stream, reader, taken) = stuck();
        for _ in 0..9 {
            stream.put(&progress(), NOT_ASKED);
        }
        for number in 0..100 {
            stream.put(&warning(number), NOT_ASKED);
        }
        drop(stream);
        let read = lines(reader);
        assert_eq!(read.len(), 1 + taken + 100);
        assert_eq!(read[1].get("dropped_events"), None);
        for (number, line) in read[1 + taken..].iter().enumerate() {
            assert_eq!((&line["message"], &line["dropped_events"]), (&number.to_string().into(), &10.into()));
        }
    }

    #[test]
    fn whoever_asked_for_a_stop_does_not_wait_for_a_reader() {
        let (mut stream, reader, _) = stuck();
        let begun = Instant::now();
        for number in 0..2 * QUEUE_LIMIT {
            stream.put(&warning(number), ASKED);
        }
        stream.finish(ASKED);
        // Once, and not for each.
        assert!(
            begun.elapsed() >= READER_TIMEOUT && begun.elapsed() < 20 * READER_TIMEOUT,
            "{:?}",
            begun.elapsed()
        );
        drop((stream, reader));
    }

    #[test]
    fn the_end_waits_for_a_reader_who_takes_his_time_and_for_none_who_has_gone() {
        let (mut stream, reader, _) = stuck();
        let (told, done) = std::sync::mpsc::channel();
        let waiting = std::thread::spawn(move || {
            stream.put(&warning(7), NOT_ASKED);
            stream.finish(NOT_ASKED);
            told.send(()).unwrap();
        });
        assert!(done.recv_timeout(4 * SIGNAL_POLL_INTERVAL).is_err(), "it does not end before it was read");
        let reading = std::thread::spawn(move || lines(reader));
        done.recv_timeout(Duration::from_secs(60)).unwrap();
        waiting.join().unwrap();
        assert_eq!(reading.join().unwrap().last().unwrap()["message"], "7");
        let (mut stream, reader, _) = stuck();
        drop(reader);
        stream.finish(NOT_ASKED);
        stream.put(&warning(8), NOT_ASKED);
        assert!(stream.shared.lock().lines.is_empty());
    }
}
