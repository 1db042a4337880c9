//! Standard input, or what else gives records, read on a thread of its own.

use crate::MAX_RECORD_LEN;
use crate::record_framing::{Framing, FramingError, LongLines, RecordFramer};
use byway_net::Waker;
use std::io::{self, ErrorKind, Read};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, SyncSender, TryRecvError, sync_channel};
use std::thread::Builder;

/// Bytes read at once.
const READ_BYTES: usize = 16 << 10;
/// The most batches of records that wait for a source. A batch is the result of one read.
const MAX_QUEUED_BATCHES: usize = 2;

/// Why the input gives no more.
#[derive(Debug, thiserror::Error)]
pub enum InputError {
    /// The input cannot be divided into records.
    #[error(transparent)]
    Cut(#[from] FramingError),
    /// The input cannot be read.
    #[error("cannot read the input: {0}")]
    Read(#[from] io::Error),
    /// The thread that reads is gone.
    #[error("the thread that reads the input has died")]
    Died,
}

/// The result of one read of an input.
#[derive(Clone)]
pub enum Batch {
    /// Records, and the number of lines so far that were too long.
    Records(Vec<Arc<[u8]>>, u64),
    /// No more come, and why.
    End(Result<(), Arc<InputError>>),
}

/// The records of an input, in the queue of one source.
pub struct Feed {
    framing: Framing,
    batches: Receiver<Batch>,
    waiting: std::vec::IntoIter<Arc<[u8]>>,
    long_lines: u64,
    ended: Option<Result<(), Arc<InputError>>>,
}

/// How to read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Input {
    /// The rule for the ends of records.
    pub framing: Framing,
    /// The treatment of lines that are too long.
    pub long_lines: LongLines,
}

/// Reads `input` on a thread of its own. Returns a `Feed` of records for each source, and the
/// `Wakers` to call when records come. A source that takes no records stops the reading for all.
///
/// # Errors
/// The system gives no thread.
pub fn read(
    input: impl Read + Send + 'static,
    how: Input,
    sources: usize,
) -> io::Result<(Vec<Feed>, Wakers)> {
    let wakers = Wakers::default();
    let (senders, feeds): (Vec<_>, Vec<_>) = (0..sources)
        .map(|_| {
            let (sender, batches) = sync_channel(MAX_QUEUED_BATCHES);
            let (framing, waiting) = (how.framing, Vec::new().into_iter());
            (sender, Feed { framing, batches, waiting, long_lines: 0, ended: None })
        })
        .unzip();
    let woken = wakers.clone();
    Builder::new().name("byway read".into()).spawn(move || run(input, how, &senders, &woken))?;
    Ok((feeds, wakers))
}

/// The wakers to call when records have arrived.
#[derive(Clone, Default)]
pub struct Wakers(Arc<std::sync::Mutex<Vec<Waker>>>);

impl Wakers {
    /// Adds the waker of one more event loop.
    pub fn add(&self, waker: Waker) {
        self.0.lock().unwrap_or_else(std::sync::PoisonError::into_inner).push(waker);
    }

    fn wake(&self) {
        self.0.lock().unwrap_or_else(std::sync::PoisonError::into_inner).iter().for_each(Waker::wake);
    }
}

fn run(mut input: impl Read, how: Input, sources: &[SyncSender<Batch>], wakers: &Wakers) {
    let mut cutter = RecordFramer::new(how.framing, how.long_lines, MAX_RECORD_LEN);
    let mut piece = vec![0; READ_BYTES];
    let mut long_lines = 0;
    loop {
        let mut records: Vec<Arc<[u8]>> = Vec::new();
        let mut ended = None;
        match input.read(&mut piece) {
            Ok(0) => {
                let done = cutter.finish(|record| records.push(record.into()));
                ended = Some(done.err().map(InputError::from));
            }
            Ok(size) => {
                let bytes = piece.get(..size).unwrap_or_default();
                let cut = cutter.push(bytes, |record| records.push(record.into()));
                ended = cut.err().map(|error| Some(error.into())).or(ended);
            }
            Err(error) if error.kind() == ErrorKind::Interrupted => continue,
            Err(error) => ended = Some(Some(error.into())),
        }
        let is_news = !records.is_empty() || cutter.long_count() > long_lines;
        long_lines = cutter.long_count();
        if is_news && !tell(sources, &Batch::Records(records, long_lines), wakers) {
            return;
        }
        if let Some(error) = ended {
            tell(sources, &Batch::End(error.map_or(Ok(()), |error| Err(Arc::new(error)))), wakers);
            return;
        }
    }
}

/// Whether anybody still listens.
fn tell(sources: &[SyncSender<Batch>], batch: &Batch, wakers: &Wakers) -> bool {
    let heard = sources.iter().filter(|source| source.send(batch.clone()).is_ok()).count();
    wakers.wake();
    heard > 0
}

impl Feed {
    /// The length of the next record, if one has arrived.
    pub(crate) fn peek(&mut self) -> Option<usize> {
        while self.waiting.as_slice().is_empty() && self.ended.is_none() {
            match self.batches.try_recv() {
                Ok(Batch::Records(records, long_lines)) => {
                    self.waiting = records.into_iter();
                    self.long_lines = long_lines;
                }
                Ok(Batch::End(how)) => self.ended = Some(how),
                Err(TryRecvError::Empty) => break,
                Err(TryRecvError::Disconnected) => self.ended = Some(Err(Arc::new(InputError::Died))),
            }
        }
        self.waiting.as_slice().first().map(|record| record.len())
    }

    /// Whether each record ends with a line feed.
    pub(crate) fn has_lines(&self) -> bool {
        self.framing == Framing::Lines
    }

    /// The number of lines so far that were too long.
    pub(crate) const fn long_lines(&self) -> u64 {
        self.long_lines
    }

    /// Removes the next record.
    pub(crate) fn take(&mut self) -> Option<Arc<[u8]>> {
        self.waiting.next()
    }

    /// Returns how the input ended, once all its records were taken. `None`: records may still
    /// come.
    pub(crate) fn ended(&self) -> Option<Result<(), Arc<InputError>>> {
        self.ended.clone().filter(|_| self.waiting.as_slice().is_empty())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all(feed: &mut Feed) -> (Vec<u8>, Result<(), Arc<InputError>>) {
        let mut bytes = Vec::new();
        loop {
            match feed.peek() {
                Some(_) => bytes.extend_from_slice(&feed.take().unwrap()),
                None => match feed.ended() {
                    Some(ended) => return (bytes, ended),
                    None => std::thread::yield_now(),
                },
            }
        }
    }

    #[test]
    fn each_source_gets_every_record() {
        let text: Vec<u8> = (0..20_000).flat_map(|number| format!("{number}\n").into_bytes()).collect();
        let how = Input { framing: Framing::Lines, long_lines: LongLines::Cut };
        let (feeds, _wakers) = read(io::Cursor::new(text.clone()), how, 2).unwrap();
        let threads: Vec<_> =
            feeds.into_iter().map(|mut feed| std::thread::spawn(move || all(&mut feed))).collect();
        for thread in threads {
            let (bytes, ended) = thread.join().unwrap();
            assert!(bytes == text && ended.is_ok());
        }
    }

    #[test]
    fn what_came_before_a_fault_is_given() {
        let text = [&b"\0\0\0\x01a"[..], &[0xff; 4]].concat();
        let how = Input { framing: Framing::Prefixed, long_lines: LongLines::Cut };
        let (mut feeds, _wakers) = read(io::Cursor::new(text), how, 1).unwrap();
        let (bytes, ended) = all(&mut feeds[0]);
        assert_eq!(bytes, b"\0\0\0\x01a");
        assert!(ended.unwrap_err().to_string().contains("record 2"));
    }

    #[test]
    fn a_line_that_is_too_long_does_not_end_the_input() {
        let text = [&b"good\n"[..], &vec![b'x'; 5 * MAX_RECORD_LEN], b"\n"].concat();
        for (long_lines, length) in [(LongLines::Cut, 5 + MAX_RECORD_LEN), (LongLines::Skipped, 5)] {
            let how = Input { framing: Framing::Lines, long_lines };
            let (mut feeds, _wakers) = read(io::Cursor::new(text.clone()), how, 1).unwrap();
            let (bytes, ended) = all(&mut feeds[0]);
            assert_eq!((bytes.len(), ended.is_ok(), feeds[0].long_lines()), (length, true, 1));
        }
    }
}
