//! The newest frame for all who look, as server-sent events. A reader that is slow misses frames:
//! each gets the newest when it is ready for one, and nothing waits for it here.

use axum::body::{Body, Bytes};
use futures_util::stream::unfold;
use std::collections::BTreeMap;
use std::convert::Infallible;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use tokio::sync::watch;

/// Streams at once. One more ends the oldest.
pub const MAX_STREAMS: usize = 16;
/// Time after the last read of a frame for which a reader counts as present.
const LOOKING_TIME: Duration = Duration::from_secs(10);
/// The last event of a stream that makes room for another.
const DISPLACED_EVENT: &str = "event: displaced\ndata: {}\n\n";

/// Passes frames from one thread to many streams.
#[derive(Debug)]
pub struct Feed {
    newest: watch::Sender<Bytes>,
    state: Mutex<FeedState>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct FeedState {
    /// The streams in order of arrival. The flag ends a stream.
    streams: BTreeMap<u64, Arc<AtomicBool>>,
    opened: u64,
    /// When a reader last took a frame, or asked for the first.
    taken: Option<Instant>,
    is_over: bool,
}

/// A stream's place, which is freed when this is dropped.
struct Seat {
    feed: Arc<Feed>,
    number: u64,
    is_displaced: Arc<AtomicBool>,
}

impl Feed {
    /// A feed without a frame.
    pub fn new() -> Self {
        Self { newest: watch::Sender::new(Bytes::new()), state: Mutex::default(), changed: Condvar::new() }
    }

    /// The body of a stream.
    pub fn open(feed: &Arc<Self>) -> Body {
        let seat = feed.seat();
        let mut frames = feed.newest.subscribe();
        // The newest is worth showing at once if it is fresh, and the next one comes soon.
        frames.mark_changed();
        Body::from_stream(unfold(Some((seat, frames)), |stream| async {
            let (seat, mut frames) = stream?;
            loop {
                seat.feed.note_reader();
                // The sender lives in the feed, which the seat holds.
                frames.changed().await.ok()?;
                if seat.is_displaced.load(Ordering::Acquire) {
                    let last = Bytes::from_static(DISPLACED_EVENT.as_bytes());
                    return Some((Ok::<_, Infallible>(last), None));
                }
                let frame = frames.borrow_and_update().clone();
                if !frame.is_empty() {
                    return Some((Ok(frame), Some((seat, frames))));
                }
            }
        }))
    }

    /// Gives all streams a frame: a line of JSON.
    pub fn publish(&self, json: &str) {
        self.newest.send_replace(format!("data: {json}\n\n").into());
    }

    /// Takes the newest frame back, which is too old to be shown.
    pub fn retract(&self) {
        self.newest.send_replace(Bytes::new());
    }

    /// Waits until a reader is present. Returns false at the end.
    pub fn wait_for_reader(&self) -> bool {
        let idle = |state: &mut FeedState| !state.is_over && !state.is_looked_at();
        let state = self.changed.wait_while(self.locked(), idle);
        !state.unwrap_or_else(PoisonError::into_inner).is_over
    }

    /// Whether a reader is present.
    pub fn has_reader(&self) -> bool {
        self.locked().is_looked_at()
    }

    /// Waits for so long, or until the end.
    pub fn pause(&self, time: Duration) {
        let going_on = |state: &mut FeedState| !state.is_over;
        drop(self.changed.wait_timeout_while(self.locked(), time, going_on));
    }

    /// Ends the waiting of all threads.
    pub fn end(&self) {
        self.locked().is_over = true;
        self.changed.notify_all();
    }

    /// Returns the number of streams.
    #[cfg(test)]
    pub fn streams(&self) -> usize {
        self.locked().streams.len()
    }

    fn seat(self: &Arc<Self>) -> Seat {
        let mut state = self.locked();
        while state.streams.len() >= MAX_STREAMS {
            let Some((_, oldest)) = state.streams.pop_first() else { break };
            oldest.store(true, Ordering::Release);
        }
        state.opened += 1;
        let (number, is_displaced) = (state.opened, Arc::new(AtomicBool::new(false)));
        state.streams.insert(number, Arc::clone(&is_displaced));
        Seat { feed: Arc::clone(self), number, is_displaced }
    }

    fn note_reader(&self) {
        let mut state = self.locked();
        let was_idle = !state.is_looked_at();
        state.taken = Some(Instant::now());
        drop(state);
        if was_idle {
            self.changed.notify_all();
        }
    }

    /// Locks the state, even if a thread panicked while it held the lock: no update leaves the
    /// state half made.
    fn locked(&self) -> MutexGuard<'_, FeedState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl FeedState {
    fn is_looked_at(&self) -> bool {
        self.taken.is_some_and(|at| at.elapsed() < LOOKING_TIME)
    }
}

impl Drop for Seat {
    fn drop(&mut self) {
        self.feed.locked().streams.remove(&self.number);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures_util::StreamExt as _;

    fn run(test: impl Future<Output = ()>) {
        tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(test);
    }

    #[test]
    fn a_slow_reader_gets_the_newest_frame_and_nothing_waits_for_it() {
        run(async {
            let feed = Arc::new(Feed::new());
            let mut slow = Feed::open(&feed).into_data_stream();
            for number in 0..100_000 {
                feed.publish(&number.to_string());
            }
            assert_eq!(slow.next().await.unwrap().unwrap(), "data: 99999\n\n");
            feed.publish("last");
            assert_eq!(slow.next().await.unwrap().unwrap(), "data: last\n\n");
        });
    }

    #[test]
    fn of_a_thousand_streams_the_oldest_end_and_leave_nothing() {
        run(async {
            let feed = Arc::new(Feed::new());
            feed.publish("1");
            let mut streams: Vec<_> = (0..1_000).map(|_| Feed::open(&feed).into_data_stream()).collect();
            assert_eq!(feed.streams(), MAX_STREAMS);
            assert_eq!(streams[0].next().await.unwrap().unwrap(), DISPLACED_EVENT);
            assert!(streams[0].next().await.is_none());
            assert_eq!(streams[999].next().await.unwrap().unwrap(), "data: 1\n\n");
            streams.clear();
            assert_eq!((feed.streams(), feed.newest.receiver_count()), (0, 0));
        });
    }

    #[test]
    fn nobody_looks_until_a_stream_waits_for_a_frame() {
        run(async {
            let feed = Arc::new(Feed::new());
            let mut stream = Feed::open(&feed).into_data_stream();
            assert!(!feed.has_reader());
            feed.publish("1");
            stream.next().await.unwrap().unwrap();
            assert!(feed.has_reader() && feed.wait_for_reader());
            feed.end();
            assert!(!feed.wait_for_reader());
            feed.pause(Duration::from_secs(600));
        });
    }
}
