//! Standard input, or what else gives records, read on a thread of its own.

use crate::LONGEST;
use crate::record_framing::{Framing, FramingError, RecordFramer};
use byway_net::Waker;
use std::io::{self, ErrorKind, Read};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, SyncSender, TryRecvError, sync_channel};
use std::thread::Builder;

/// Bytes read at once.
const PIECE: usize = 16 << 10;
/// Batches of records that wait for a source, each of one read.
const BATCHES: usize = 2;

/// Why the input gives no more.
#[derive(Debug, thiserror::Error)]
pub enum InputError {
    /// It has no records.
    #[error(transparent)]
    Cut(#[from] FramingError),
    /// It cannot be read.
    #[error("cannot read the input: {0}")]
    Read(#[from] io::Error),
    /// The thread that reads is gone.
    #[error("the thread that reads the input has died")]
    Died,
}

/// Records that came, or why no more do.
pub type Batch = Result<Vec<Arc<[u8]>>, Arc<InputError>>;

/// The records of an input, for one source.
pub struct Feed {
    batches: Receiver<Batch>,
    waiting: std::vec::IntoIter<Arc<[u8]>>,
    ended: Option<Result<(), Arc<InputError>>>,
}

/// How to read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Input {
    /// Where records end.
    pub framing: Framing,
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
            let (sender, batches) = sync_channel(BATCHES);
            (sender, Feed { batches, waiting: Vec::new().into_iter(), ended: None })
        })
        .unzip();
    let woken = wakers.clone();
    Builder::new().name("byway read".into()).spawn(move || run(input, how, &senders, &woken))?;
    Ok((feeds, wakers))
}

/// Whom to wake when records came.
#[derive(Clone, Default)]
pub struct Wakers(Arc<std::sync::Mutex<Vec<Waker>>>);

impl Wakers {
    /// One more.
    pub fn add(&self, waker: Waker) {
        self.0.lock().unwrap_or_else(std::sync::PoisonError::into_inner).push(waker);
    }

    fn wake(&self) {
        self.0.lock().unwrap_or_else(std::sync::PoisonError::into_inner).iter().for_each(Waker::wake);
    }
}

fn run(mut input: impl Read, how: Input, sources: &[SyncSender<Batch>], wakers: &Wakers) {
    let mut cutter = RecordFramer::new(how.framing, LONGEST);
    let mut piece = vec![0; PIECE];
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
        if !records.is_empty() && !tell(sources, &Ok(records), wakers) {
            return;
        }
        match ended {
            Some(Some(error)) => {
                tell(sources, &Err(Arc::new(error)), wakers);
                return;
            }
            Some(None) => {
                // An empty batch is the end.
                tell(sources, &Ok(Vec::new()), wakers);
                return;
            }
            None => {}
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
    /// The next record, if one is there.
    pub(crate) fn peek(&mut self) -> Option<usize> {
        if self.waiting.as_slice().is_empty() && self.ended.is_none() {
            match self.batches.try_recv() {
                Ok(Ok(records)) if records.is_empty() => self.ended = Some(Ok(())),
                Ok(Ok(records)) => self.waiting = records.into_iter(),
                Ok(Err(error)) => self.ended = Some(Err(error)),
                Err(TryRecvError::Empty) => {}
                Err(TryRecvError::Disconnected) => self.ended = Some(Err(Arc::new(InputError::Died))),
            }
        }
        self.waiting.as_slice().first().map(|record| record.len())
    }

    /// Takes it.
    pub(crate) fn take(&mut self) -> Option<Arc<[u8]>> {
        self.waiting.next()
    }

    /// Whether the input is over, and all of it was taken; and how.
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
        let how = Input { framing: Framing::Lines };
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
        let text = [&b"good\n"[..], &vec![b'x'; LONGEST + 1]].concat();
        let (mut feeds, _wakers) = read(io::Cursor::new(text), Input { framing: Framing::Lines }, 1).unwrap();
        let (bytes, ended) = all(&mut feeds[0]);
        assert_eq!(bytes, b"good\n");
        assert!(ended.unwrap_err().to_string().contains("record 2"));
    }
}
