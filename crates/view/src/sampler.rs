//! Asks all processes once a second while somebody looks.

use crate::feed::Feed;
use crate::frame::Frame;
use crate::overview::Overview;
use byway_net::unix_seconds;
use byway_transfer::host_status::{History, Request, RuntimeDirectory, ask_each};
use rustix::time::{ClockId, clock_gettime};
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{Builder, JoinHandle};
use std::time::{Duration, Instant};

/// Time that all processes together have to answer.
const ANSWER_TIMEOUT: Duration = Duration::from_millis(500);
/// Time between two looks.
const LOOK_INTERVAL: Duration = Duration::from_secs(1);
/// The longest time between two samples, if they are expensive.
const MAX_LOOK_INTERVAL: Duration = Duration::from_secs(10);
/// The share of a core that looks may take.
const MAX_PROCESSOR_SHARE: f64 = 0.017;

/// A function that returns the directories of the processes' status sockets.
pub type Directories = Box<dyn Fn() -> Vec<RuntimeDirectory> + Send>;

/// The sources of samples.
pub struct Sampling {
    pub directories: Directories,
    pub history: History,
}

/// The thread that looks. It ends when this value is dropped.
pub struct Sampler {
    feed: Arc<Feed>,
    overview: Arc<Mutex<Overview>>,
    thread: Option<JoinHandle<()>>,
}

impl Sampler {
    /// Starts the thread, which passes its frames to `feed`.
    ///
    /// # Errors
    /// The system gives no thread.
    pub fn start(sampling: Sampling, feed: Arc<Feed>) -> io::Result<Self> {
        let overview = Arc::new(Mutex::new(Overview::default()));
        let (fed, seen) = (Arc::clone(&feed), Arc::clone(&overview));
        let thread = Builder::new().name("sampler".into()).spawn(move || run(&sampling, &fed, &seen))?;
        Ok(Self { feed, overview, thread: Some(thread) })
    }

    /// Returns the present overview.
    pub fn overview(&self) -> Arc<Mutex<Overview>> {
        Arc::clone(&self.overview)
    }
}

impl Drop for Sampler {
    fn drop(&mut self) {
        self.feed.end();
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// Locks the overview, even if a thread panicked while it held the lock: no update leaves the
/// overview half made.
pub fn locked(overview: &Mutex<Overview>) -> MutexGuard<'_, Overview> {
    overview.lock().unwrap_or_else(PoisonError::into_inner)
}

fn run(sampling: &Sampling, feed: &Feed, overview: &Mutex<Overview>) {
    let begun = Instant::now();
    let mut every = LOOK_INTERVAL;
    while feed.wait_for_reader() {
        let (looked, used) = (Instant::now(), processor_time());
        let frame = look(sampling, overview, begun, every);
        // All fields are numbers, texts and lists of these.
        feed.publish(&serde_json::to_string(&frame).unwrap_or_default());
        every = interval(processor_time().saturating_sub(used));
        feed.pause(every.saturating_sub(looked.elapsed()));
        if !feed.has_reader() {
            feed.retract();
        }
    }
}

fn look(sampling: &Sampling, overview: &Mutex<Overview>, begun: Instant, every: Duration) -> Frame {
    let history = sampling.history.version().to_string();
    let frame = Frame { unix: unix_seconds(), every: every.as_secs_f64(), history, ..Frame::default() };
    locked(overview).begin(begun.elapsed().as_secs(), frame);
    let directories = (sampling.directories)();
    ask_each(&directories, &Request::Status, ANSWER_TIMEOUT, |socket, answer| {
        locked(overview).take(socket, answer);
    });
    locked(overview).finish(Instant::now())
}

/// Processor time of this thread so far.
fn processor_time() -> Duration {
    clock_gettime(ClockId::ThreadCPUTime).try_into().unwrap_or_default()
}

/// The time until the next look, after one that cost so much.
fn interval(cost: Duration) -> Duration {
    cost.div_f64(MAX_PROCESSOR_SHARE).clamp(LOOK_INTERVAL, MAX_LOOK_INTERVAL)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn looks_that_cost_much_are_rare() {
        assert_eq!(interval(Duration::from_millis(15)), LOOK_INTERVAL);
        assert_eq!(interval(Duration::from_millis(34)), Duration::from_secs(2));
        assert_eq!(interval(Duration::from_secs(9)), MAX_LOOK_INTERVAL);
        let before = processor_time();
        while processor_time() == before {}
        assert!(processor_time() > before);
    }
}
