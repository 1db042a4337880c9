//! The measurements at an end of a transfer: bytes, time, processor time of the process, and its
//! largest memory.

use crate::Error;
use rustix::time::{ClockId, clock_gettime};
use std::fs;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

/// Longest wait for a connection.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

/// The counts that an end of a transfer shares with the thread that measures it.
#[derive(Clone, Debug, Default)]
pub struct Meter(Arc<Counts>);

#[derive(Debug, Default)]
struct Counts {
    connected: AtomicBool,
    received: AtomicU64,
}

/// The measurements at one end of a transfer.
#[derive(Clone, Copy, Debug)]
pub struct EndTotals {
    /// Payload that the application got.
    pub received: u64,
    /// The time over which the other values were measured.
    pub elapsed: Duration,
    /// Processor time, user and system, that this process used in `elapsed`.
    pub processor: Duration,
}

impl Meter {
    /// The connection is established, so [`measure`](Self::measure) starts the clock.
    pub fn connected(&self) {
        self.0.connected.store(true, Ordering::Release);
    }

    /// The receiving application got this many more bytes. Only one thread may call this.
    pub fn received(&self, bytes: u64) {
        let before = self.0.received.load(Ordering::Relaxed);
        self.0.received.store(before + bytes, Ordering::Relaxed);
    }

    /// Waits for the connection, and then until `done` returns. Returns the bytes received and the
    /// resources used between the two.
    ///
    /// # Errors
    ///
    /// There is no connection.
    pub fn measure(&self, done: impl FnOnce()) -> Result<EndTotals, Error> {
        let begun = Instant::now();
        while !self.0.connected.load(Ordering::Acquire) {
            if begun.elapsed() > CONNECT_TIMEOUT {
                return Err("no connection".into());
            }
            thread::sleep(Duration::from_micros(100));
        }
        let (start, processor) = (Instant::now(), processor_time());
        let before = self.0.received.load(Ordering::Relaxed);
        done();
        let received = self.0.received.load(Ordering::Relaxed) - before;
        Ok(EndTotals { received, elapsed: start.elapsed(), processor: processor_time() - processor })
    }
}

/// Returns the processor time, user and system, that this process has used since its start.
fn processor_time() -> Duration {
    Duration::try_from(clock_gettime(ClockId::ProcessCPUTime)).unwrap_or_default()
}

/// Returns the largest resident memory of this process in bytes: `VmHWM` of proc(5).
///
/// # Errors
///
/// The system does not tell.
pub fn peak_memory() -> Result<u64, Error> {
    let status = fs::read_to_string("/proc/self/status")?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).ok_or("no VmHWM")?;
    let kilobytes: u64 = line.trim().strip_suffix(" kB").ok_or("no VmHWM")?.parse()?;
    Ok(kilobytes * 1024)
}
