//! byway beside its rivals: the same bulk transfer, on the same machine, in the same run; and its relay beside a forwarder
//! that only copies ([`forward`]).
//!
//! `cargo bench -p byway-rivals` moves bytes from memory to nowhere over the loopback, through real sockets, a sender and a
//! receiver on a thread each: byway in both its classes, quinn, and kernel TCP, which does not encrypt, for scale. Rounds
//! alternate, so that a machine that grows slower grows slower for all. Rules of the comparison:
//!
//! * UDP payloads of [`DATAGRAM`] bytes at most for all; what each finds by its own search counts.
//! * AES-256-GCM for all that encrypt; both take it from `ring`.
//! * The sending application hands byway and quinn bytes to share, which neither copies before it makes packets.
//! * Socket buffers of the same size are asked for.
//! * The clock starts with the connection, so a slow start counts; setting the connection up does not.
//! * Bytes count when the receiving application has them.

pub mod byway;
pub mod forward;
pub mod quic;
pub mod tcp;

use rustix::time::{ClockId, clock_gettime};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

/// The largest UDP payload: what QUIC's own path MTU discovery stops at, Ethernet with IPv6.
pub const DATAGRAM: usize = 1452;
/// What the sending application hands over at once, in bytes.
pub const PIECE: usize = 256 << 10;
/// What may be under way or waiting for the receiving application, in bytes.
pub const WINDOW: usize = 32 << 20;
/// Longest wait for a connection.
const PATIENCE: Duration = Duration::from_secs(10);

/// Why a rival could not run.
pub type Error = Box<dyn std::error::Error + Send + Sync>;

/// What one transfer came to.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// Payload that the receiver got, in bits per second.
    pub goodput: f64,
    /// Processor time of both ends, user and system, per 10^9 bytes.
    pub cpu_per_gigabyte: f64,
    /// What the rival has to say about itself.
    pub note: String,
}

/// What both ends of a transfer share with the stopwatch.
#[derive(Debug, Default)]
pub struct Meter {
    connected: AtomicBool,
    received: AtomicU64,
}

impl Meter {
    /// The connection stands: the clock may start.
    pub fn connected(&self) {
        self.connected.store(true, Ordering::Release);
    }

    /// The receiving application got this many more bytes. Only one thread may call this.
    pub fn received(&self, bytes: u64) {
        self.received.store(self.received.load(Ordering::Relaxed) + bytes, Ordering::Relaxed);
    }

    /// Waits for the connection and then for `duration`, and tells what moved meanwhile.
    ///
    /// # Errors
    ///
    /// There is no connection, or nothing moves.
    pub fn measure(&self, duration: Duration) -> Result<Outcome, Error> {
        let begun = Instant::now();
        while !self.connected.load(Ordering::Acquire) {
            if begun.elapsed() > PATIENCE {
                return Err("no connection".into());
            }
            thread::sleep(Duration::from_micros(100));
        }
        let (start, cpu) = (Instant::now(), processor_time());
        let before = self.received.load(Ordering::Relaxed);
        thread::sleep(duration);
        let moved = (self.received.load(Ordering::Relaxed) - before) as f64;
        let (elapsed, cpu) = (start.elapsed(), processor_time() - cpu);
        if moved == 0.0 {
            return Err("connected, and nothing moves".into());
        }
        Ok(Outcome {
            goodput: moved * 8.0 / elapsed.as_secs_f64(),
            cpu_per_gigabyte: cpu.as_secs_f64() / (moved / 1e9),
            note: String::new(),
        })
    }
}

/// Processor time that this process has used.
fn processor_time() -> Duration {
    Duration::try_from(clock_gettime(ClockId::ProcessCPUTime)).unwrap_or_default()
}
