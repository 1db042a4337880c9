//! Signals, as a flag to look at and a call that wakes whoever sleeps.
//!
//! SIGINT or SIGTERM once asks the transfer to save its state and stop; a second one ends the process at once. SIGHUP
//! asks for the configuration to be read again, SIGUSR1 for a report, SIGUSR2 toggles the bandwidth limit.

use crate::exit::Exit;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM, SIGUSR1, SIGUSR2};
use signal_hook::iterator::{Handle, Signals as Stream};
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU8, Ordering};
use std::thread::JoinHandle;

/// What was asked for since the start. Dropped, it gives the signals no effect but their noting.
#[derive(Debug)]
pub struct Signals {
    asked: Arc<Asked>,
    handle: Handle,
    thread: Option<JoinHandle<()>>,
}

#[derive(Debug, Default)]
struct Asked {
    /// 0, or the exit code of the stop.
    stop: AtomicU8,
    reload: AtomicBool,
    report: AtomicBool,
    toggle: AtomicBool,
}

/// What a signal does right now.
#[derive(Debug, PartialEq, Eq)]
enum Effect {
    /// Noted; the owner is to be woken.
    Noted,
    /// The second request to stop: no more waiting.
    EndNow(Exit),
}

impl Asked {
    fn on(&self, signal: i32) -> Effect {
        match signal {
            SIGHUP => self.reload.store(true, Ordering::Release),
            SIGUSR1 => self.report.store(true, Ordering::Release),
            SIGUSR2 => self.toggle.store(true, Ordering::Release),
            _ => {
                let exit = if signal == SIGTERM { Exit::Terminated } else { Exit::Interrupted };
                let first =
                    self.stop.compare_exchange(0, exit as u8, Ordering::AcqRel, Ordering::Acquire).is_ok();
                if !first {
                    return Effect::EndNow(exit);
                }
            }
        }
        Effect::Noted
    }
}

impl Signals {
    /// Takes over the signals. `wake` is called, on a thread of its own, after each one was noted; it must return soon.
    pub fn install(wake: impl Fn() + Send + 'static) -> io::Result<Self> {
        let mut stream = Stream::new([SIGINT, SIGTERM, SIGHUP, SIGUSR1, SIGUSR2])?;
        let handle = stream.handle();
        let asked = Arc::new(Asked::default());
        let notes = Arc::clone(&asked);
        let thread = std::thread::Builder::new().name("signals".into()).spawn(move || {
            for signal in stream.forever() {
                match notes.on(signal) {
                    Effect::Noted => wake(),
                    Effect::EndNow(exit) => std::process::exit(i32::from(exit as u8)),
                }
            }
        })?;
        Ok(Self { asked, handle, thread: Some(thread) })
    }

    /// The code to exit with, once a stop was asked for.
    #[must_use]
    pub fn stop(&self) -> Option<Exit> {
        match self.asked.stop.load(Ordering::Acquire) {
            0 => None,
            code if code == Exit::Terminated as u8 => Some(Exit::Terminated),
            _ => Some(Exit::Interrupted),
        }
    }

    /// Whether SIGHUP came since the last call.
    #[must_use]
    pub fn take_reload(&self) -> bool {
        self.asked.reload.swap(false, Ordering::AcqRel)
    }

    /// Whether SIGUSR1 came since the last call.
    #[must_use]
    pub fn take_report(&self) -> bool {
        self.asked.report.swap(false, Ordering::AcqRel)
    }

    /// Whether SIGUSR2 came since the last call.
    #[must_use]
    pub fn take_limit_toggle(&self) -> bool {
        self.asked.toggle.swap(false, Ordering::AcqRel)
    }
}

impl Drop for Signals {
    fn drop(&mut self) {
        self.handle.close();
        if let Some(thread) = self.thread.take() {
            // It ends once the handle is closed; had it panicked, there is nobody left to tell.
            let _ = thread.join();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc;
    use std::time::Duration;

    #[test]
    fn the_first_stop_is_noted_and_the_second_ends() {
        for (first, second, exit) in [
            (SIGINT, SIGINT, Exit::Interrupted),
            (SIGTERM, SIGINT, Exit::Interrupted),
            (SIGINT, SIGTERM, Exit::Terminated),
        ] {
            let asked = Asked::default();
            assert_eq!(asked.on(first), Effect::Noted);
            assert_eq!(asked.on(SIGHUP), Effect::Noted, "reloading is not a stop");
            assert_eq!(asked.on(second), Effect::EndNow(exit));
        }
    }

    #[test]
    fn a_real_signal_wakes_and_is_taken_once() {
        let (woken, wakes) = mpsc::channel();
        let signals = Signals::install(move || woken.send(()).unwrap()).unwrap();
        for (signal, stop) in
            [(SIGUSR2, None), (SIGUSR1, None), (SIGHUP, None), (SIGTERM, Some(Exit::Terminated))]
        {
            signal_hook::low_level::raise(signal).unwrap();
            wakes.recv_timeout(Duration::from_secs(10)).unwrap();
            assert_eq!(signals.stop(), stop);
        }
        assert!(signals.take_limit_toggle() && !signals.take_limit_toggle());
        assert!(signals.take_report() && !signals.take_report());
        assert!(signals.take_reload() && !signals.take_reload());
    }
}
