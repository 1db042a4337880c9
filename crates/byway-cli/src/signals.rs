//! Each signal sets a flag, and then wakes the thread that queries the flags, if one waits.
//!
//! | signal | request |
//! |---|---|
//! | SIGINT, SIGTERM | save the transfer's state and stop; after an earlier stop request: end |
//! | SIGHUP | `Hangup::Stop`: save and stop; `Hangup::Reload`: read the configuration again |
//! | SIGUSR1 | report |
//! | SIGUSR2 | toggle the bandwidth limit |

use crate::exit::Exit;
use byway_net::{NOTIFY_STOPPING, notify};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM, SIGUSR1, SIGUSR2};
use signal_hook::iterator::{Handle, Signals as Stream};
use std::io;
use std::sync::atomic::{AtomicBool, AtomicU8, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

/// Usual time between two checks for signals.
pub const SIGNAL_POLL_INTERVAL: Duration = Duration::from_millis(100);

/// The requests that signals made since the start. When the last clone is dropped, the handlers are
/// removed.
#[derive(Clone)]
pub struct Signals(Arc<InstalledHandlers>);

/// The function that wakes the thread which reads the flags.
#[derive(Default)]
struct Alarm {
    wake: Option<Box<dyn Fn() + Send>>,
    /// Whether a signal came before the function was set.
    is_overdue: bool,
}

struct InstalledHandlers {
    flags: Arc<SignalFlags>,
    alarm: Arc<Mutex<Alarm>>,
    handle: Handle,
    thread: Option<JoinHandle<()>>,
}

/// The meaning of SIGHUP.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Hangup {
    /// Stop: the terminal was closed. A process that was started to ignore SIGHUP, as by `nohup`,
    /// keeps ignoring it.
    Stop,
    /// To read the configuration again.
    Reload,
}

#[derive(Debug)]
struct SignalFlags {
    hangup: Hangup,
    /// 0, or the exit code of the stop.
    stop: AtomicU8,
    reload: AtomicBool,
    report: AtomicBool,
    toggle: AtomicBool,
}

/// The effect of a signal at present.
#[derive(Debug, PartialEq, Eq)]
enum SignalEffect {
    /// The signal was noted, and the owner is to be woken.
    Noted,
    /// The second request to stop: no more waiting.
    EndNow(Exit),
}

impl SignalFlags {
    fn new(hangup: Hangup) -> Self {
        let flag = AtomicBool::default;
        Self { hangup, stop: AtomicU8::new(0), reload: flag(), report: flag(), toggle: flag() }
    }

    fn on(&self, signal: i32) -> SignalEffect {
        match signal {
            SIGHUP if self.hangup == Hangup::Reload => self.reload.store(true, Ordering::Release),
            // Both the kernel and the shell may send it: the second says nothing new.
            SIGHUP => _ = self.stop_with(Exit::HungUp),
            SIGUSR1 => self.report.store(true, Ordering::Release),
            SIGUSR2 => self.toggle.store(true, Ordering::Release),
            _ => {
                let exit = if signal == SIGTERM { Exit::Terminated } else { Exit::Interrupted };
                if !self.stop_with(exit) {
                    return SignalEffect::EndNow(exit);
                }
            }
        }
        SignalEffect::Noted
    }

    /// Notes a request to stop, and tells the service manager of the first. Returns whether it is
    /// the first.
    fn stop_with(&self, exit: Exit) -> bool {
        let first = self.stop.compare_exchange(0, exit as u8, Ordering::AcqRel, Ordering::Acquire).is_ok();
        if first {
            notify(NOTIFY_STOPPING);
        }
        first
    }
}

impl Signals {
    /// Installs the signal handlers and starts one thread, which sets a flag for each signal.
    ///
    /// # Errors
    /// The system refuses a handler or the thread.
    pub fn install(hangup: Hangup) -> io::Result<Self> {
        let deaf = hangup == Hangup::Stop && is_ignored(SIGHUP);
        let heard = [SIGINT, SIGTERM, SIGUSR1, SIGUSR2].into_iter().chain((!deaf).then_some(SIGHUP));
        let mut stream = Stream::new(heard)?;
        let handle = stream.handle();
        let flags = Arc::new(SignalFlags::new(hangup));
        let notes = Arc::clone(&flags);
        let alarm: Arc<Mutex<Alarm>> = Arc::default();
        let sounded = Arc::clone(&alarm);
        let thread = std::thread::Builder::new().name("signals".into()).spawn(move || {
            for signal in stream.forever() {
                match notes.on(signal) {
                    SignalEffect::Noted => {
                        let mut alarm = sounded.lock().unwrap_or_else(PoisonError::into_inner);
                        match &alarm.wake {
                            Some(wake) => wake(),
                            None => alarm.is_overdue = true,
                        }
                    }
                    SignalEffect::EndNow(exit) => std::process::exit(i32::from(exit as u8)),
                }
            }
        })?;
        Ok(Self(Arc::new(InstalledHandlers { flags, alarm, handle, thread: Some(thread) })))
    }

    /// From now on each signal calls `wake` after its flag is set, in place of what was to be
    /// called before. If there was nothing to call and a signal came, `wake` is called now. `wake`
    /// must return quickly, because the next signal waits.
    pub fn wake_by(&self, wake: impl Fn() + Send + 'static) {
        let mut alarm = self.0.alarm.lock().unwrap_or_else(PoisonError::into_inner);
        if std::mem::take(&mut alarm.is_overdue) {
            wake();
        }
        alarm.wake = Some(Box::new(wake));
    }

    /// The code to exit with, once a stop was asked for.
    #[must_use]
    pub fn stop(&self) -> Option<Exit> {
        let code = self.0.flags.stop.load(Ordering::Acquire);
        [Exit::HungUp, Exit::Interrupted, Exit::Terminated].into_iter().find(|exit| *exit as u8 == code)
    }

    /// Whether SIGHUP requested a reload since the last call.
    #[must_use]
    pub fn take_reload(&self) -> bool {
        self.0.flags.reload.swap(false, Ordering::AcqRel)
    }

    /// Whether SIGUSR1 came since the last call.
    #[must_use]
    pub fn take_report(&self) -> bool {
        self.0.flags.report.swap(false, Ordering::AcqRel)
    }

    /// Whether SIGUSR2 came since the last call.
    #[must_use]
    pub fn take_limit_toggle(&self) -> bool {
        self.0.flags.toggle.swap(false, Ordering::AcqRel)
    }
}

impl Drop for InstalledHandlers {
    fn drop(&mut self) {
        self.handle.close();
        if let Some(thread) = self.thread.take() {
            // It ends once the handle is closed; had it panicked, there is nobody left to tell.
            let _ = thread.join();
        }
    }
}

/// Whether this process was started with a signal ignored. False if the kernel does not tell.
fn is_ignored(signal: i32) -> bool {
    std::fs::read_to_string("/proc/self/status").is_ok_and(|status| ignores(&status, signal))
}

/// Whether a process ignores `signal`. `status` is the text of the file `/proc/PID/status`. Its
/// line `SigIgn` holds a hexadecimal mask whose lowest bit is signal 1.
fn ignores(status: &str, signal: i32) -> bool {
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let mask = mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).unwrap_or(0);
    (1..=64).contains(&signal) && mask >> (signal - 1) & 1 == 1
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
            (SIGHUP, SIGTERM, Exit::Terminated),
        ] {
            let asked = SignalFlags::new(Hangup::Stop);
            assert_eq!(asked.on(first), SignalEffect::Noted);
            assert_eq!(asked.on(SIGHUP), SignalEffect::Noted, "it comes twice when a terminal is closed");
            assert_eq!(asked.on(second), SignalEffect::EndNow(exit));
        }
    }

    #[test]
    fn a_hangup_stops_or_reloads() {
        for (hangup, stop) in [(Hangup::Stop, Exit::HungUp as u8), (Hangup::Reload, 0)] {
            let asked = SignalFlags::new(hangup);
            assert_eq!(asked.on(SIGHUP), SignalEffect::Noted);
            assert_eq!(asked.stop.load(Ordering::Relaxed), stop);
            assert_eq!(asked.reload.load(Ordering::Relaxed), hangup == Hangup::Reload);
        }
    }

    #[test]
    fn what_a_process_ignores_stands_in_its_status() {
        let status = "Name:\tbyway\nSigBlk:\t0000000000000001\nSigIgn:\t0000000000001001\nSigCgt:\t0\n";
        assert!(ignores(status, SIGHUP) && ignores(status, 13) && !ignores(status, SIGINT));
        for odd in ["", "SigIgn:\t", "SigIgn:\tzz", "SigIgn:\t00000000000000001000000000000000001"] {
            assert!(!ignores(odd, SIGHUP), "{odd}");
        }
    }

    #[test]
    fn a_real_signal_wakes_and_is_taken_once() {
        let (woken, wakes) = mpsc::channel();
        let signals = Signals::install(Hangup::Reload).unwrap();
        signals.wake_by(move || woken.send(()).unwrap());
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
