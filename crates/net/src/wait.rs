//! Waiting for sockets, the waker and a deadline at once, and ending on time.

use crate::clock::Clock;
use crate::device::DeviceSource;
use crate::waker::Waker;
use byway_wire::{Duration, Instant};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use std::io;
use std::net::UdpSocket;
use std::num::NonZeroU64;
use std::sync::Arc;
use std::thread;

/// Falling asleep and getting up again takes about this long: for a deadline nearer than this, looking again and again,
/// and leaving the processor to others in between, is the only way not to be late.
const TOO_SHORT_TO_SLEEP: Duration = Duration::from_micros(50);

/// The list that the kernel watches: the waker, then the sockets in their order, then the owner's device if there is one.
pub(crate) struct Waiter<'a> {
    watched: Vec<PollFd<'a>>,
    sources: &'a [Arc<UdpSocket>],
    /// The socket watched for room to send.
    full: Option<usize>,
    _slack: TimerSlack,
}

impl<'a> Waiter<'a> {
    pub(crate) fn new(
        waker: &'a Waker,
        sources: &'a [Arc<UdpSocket>],
        device: Option<&'a DeviceSource>,
    ) -> Self {
        let mut watched = Vec::with_capacity(sources.len() + 2);
        watched.push(PollFd::new(waker, PollFlags::IN));
        watched.extend(sources.iter().map(|source| PollFd::new(&**source, PollFlags::IN)));
        watched.extend(device.map(|device| PollFd::new(device, PollFlags::IN)));
        Self { watched, sources, full: None, _slack: TimerSlack::fine() }
    }

    /// Returns when a socket is readable, the waker rings, `full` has room to send, a signal was caught or the time is
    /// `until`, whichever is first; with `until` in the past, at once.
    pub(crate) fn wait(
        &mut self,
        clock: &Clock,
        until: Option<Instant>,
        full: Option<usize>,
    ) -> io::Result<()> {
        self.watch_for_room(full);
        loop {
            let remaining = until.map(|until| until.since(clock.now()));
            let sleep = remaining
                .map(|remaining| if remaining < TOO_SHORT_TO_SLEEP { Duration::ZERO } else { remaining });
            self.watched.iter_mut().for_each(PollFd::clear_revents);
            match poll(&mut self.watched, sleep.map(timespec).as_ref()) {
                Ok(0) if remaining.is_some_and(|remaining| remaining.is_zero()) => return Ok(()),
                Ok(0) => thread::yield_now(),
                Ok(_) | Err(Errno::INTR) => return Ok(()),
                Err(errno) => return Err(errno.into()),
            }
        }
    }

    /// Whether the waker rang.
    pub(crate) fn rung(&self) -> bool {
        self.watched.first().is_some_and(|watched| !watched.revents().is_empty())
    }

    /// Whether a receive call on the socket would bring something, if only an error.
    pub(crate) fn readable(&self, index: usize) -> bool {
        let wanted = PollFlags::IN | PollFlags::ERR | PollFlags::HUP | PollFlags::NVAL;
        self.watched.get(index + 1).is_some_and(|watched| watched.revents().intersects(wanted))
    }

    fn watch_for_room(&mut self, full: Option<usize>) {
        if self.full == full {
            return;
        }
        for (index, flags) in [(self.full, PollFlags::IN), (full, PollFlags::IN | PollFlags::OUT)] {
            let Some(index) = index else { continue };
            if let (Some(watched), Some(source)) = (self.watched.get_mut(index + 1), self.sources.get(index))
            {
                *watched = PollFd::new(&**source, flags);
            }
        }
        self.full = full;
    }
}

fn timespec(duration: Duration) -> Timespec {
    Timespec {
        tv_sec: i64::try_from(duration.as_secs()).unwrap_or(i64::MAX),
        tv_nsec: i64::from(duration.subsec_nanos()),
    }
}

/// The kernel may end a wait up to 50 µs late to save power, unless a thread says otherwise (prctl(2),
/// `PR_SET_TIMERSLACK`). Says otherwise while it lives, then restores what was.
struct TimerSlack(Option<NonZeroU64>);

impl TimerSlack {
    fn fine() -> Self {
        // Where the kernel knows no slack there is none to restore, and waits end as they do.
        let before = rustix::thread::current_timer_slack().ok().and_then(NonZeroU64::new);
        let _ = rustix::thread::set_current_timer_slack(NonZeroU64::new(1));
        Self(before)
    }
}

impl Drop for TimerSlack {
    fn drop(&mut self) {
        if self.0.is_some() {
            let _ = rustix::thread::set_current_timer_slack(self.0);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ends_at_the_deadline_whether_near_or_far() {
        let clock = Clock::new();
        let waker = Waker::new().unwrap();
        let mut waiter = Waiter::new(&waker, &[], None);
        for micros in [0, 10, 49, 51, 400, 5_000] {
            let until = clock.now() + Duration::from_micros(micros);
            waiter.wait(&clock, Some(until), None).unwrap();
            assert!(clock.now() >= until, "woke before a deadline {micros} µs away");
            assert!(!waiter.rung());
        }
    }

    #[test]
    fn tells_who_ended_the_wait() {
        let clock = Clock::new();
        let waker = Waker::new().unwrap();
        let socket = Arc::new(UdpSocket::bind("127.0.0.1:0").unwrap());
        let sources = [socket.clone()];
        let mut waiter = Waiter::new(&waker, &sources, None);

        waker.wake();
        waiter.wait(&clock, None, None).unwrap();
        assert!(waiter.rung() && !waiter.readable(0));
        waker.silence();

        socket.send_to(b"x", socket.local_addr().unwrap()).unwrap();
        waiter.wait(&clock, None, None).unwrap();
        assert!(!waiter.rung() && waiter.readable(0));
        socket.recv(&mut [0; 8]).unwrap();

        // Room to send ends a wait only for whom asked, and a socket without input stays unreadable.
        waiter.wait(&clock, None, Some(0)).unwrap();
        assert!(!waiter.rung() && !waiter.readable(0));
        let until = clock.now() + Duration::from_millis(2);
        waiter.wait(&clock, Some(until), None).unwrap();
        assert!(clock.now() >= until);
    }

    #[test]
    fn timer_slack_is_restored() {
        let before = rustix::thread::current_timer_slack().unwrap();
        {
            let _slack = TimerSlack::fine();
            assert_eq!(rustix::thread::current_timer_slack().unwrap(), 1);
        }
        assert_eq!(rustix::thread::current_timer_slack().unwrap(), before);
    }
}
