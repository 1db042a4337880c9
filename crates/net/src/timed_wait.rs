//! Waiting for sockets, the waker, the owner's descriptors and a deadline at once, and ending on
//! time.

use crate::address_changes::AddressChanges;
use crate::clock::Clock;
use crate::device::DeviceSource;
use crate::waker::Waker;
use crate::watched_fds::{EventSource, Ready, Token, Watch};
use byway_wire::{Duration, Instant, Local};
use rustix::buffer::spare_capacity;
use rustix::event::epoll::{self, EventFlags};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use std::io;
use std::num::NonZeroU64;
use std::os::fd::AsFd;
use std::thread;

/// A thread needs about this long to fall asleep and wake up. If a deadline is nearer than this,
/// the driver does not sleep. It polls, and yields the processor between polls.
const MIN_SLEEP_TIME: Duration = Duration::from_micros(50);
/// The wait from which one [`EPOLL_TICK`] more does not matter. Longer waits are rounded up, so
/// that the driver wakes once, not twice.
const COARSE_WAIT_TIME: Duration = Duration::from_secs(1);
/// The unit of the timeout of `epoll_pwait`.
const EPOLL_TICK: Duration = Duration::from_millis(1);
/// The most events taken at once. The rest is returned first next time.
const MAX_EVENTS: usize = 256;

/// The event that ended a wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum WaitEvent {
    /// Another thread woke the driver.
    Rung,
    /// The socket, or the TCP connection, is ready. `readable`: a receive call brings a datagram or
    /// an error. `room`: there is room to send (reported on request). `over`: an error is pending,
    /// or the connection is shut both ways.
    Socket { local: Local, readable: bool, room: bool, over: bool },
    /// The owner's device has something to read.
    Device,
    /// The host's addresses changed.
    Addresses,
    /// A descriptor of the owner's.
    Source(Ready),
    /// A connection that the machine asked for is established, or failed.
    Dialed(u32),
}

/// Waits for the waker, the sockets, and what the application added to the [`Watch`], such as a TUN
/// device. Asks for room to send (`EPOLLOUT`) only while a socket is full. Otherwise a socket with
/// room would end every wait at once.
pub(crate) struct Waiter<'a> {
    watch: &'a Watch,
    events: Vec<epoll::Event>,
    _slack: TimerSlack,
}

impl<'a> Waiter<'a> {
    pub(crate) fn new(watch: &'a Watch, waker: &Waker, device: Option<&DeviceSource>) -> io::Result<Self> {
        // Level-triggered: if a driver reads only a part of what came, the next wait reports the
        // rest.
        watch.enter(waker, EventSource::Waker.data(0), EventFlags::IN)?;
        if let Some(device) = device {
            watch.enter(device, EventSource::Device.data(0), EventFlags::IN)?;
        }
        Ok(Self { watch, events: Vec::with_capacity(MAX_EVENTS), _slack: TimerSlack::fine() })
    }

    /// Also waits for changes of the host's addresses. Each change is reported once, read or not.
    pub(crate) fn add_addresses(&self, changes: &AddressChanges) -> io::Result<()> {
        self.watch.enter(changes, EventSource::Addresses.data(0), EventFlags::IN | EventFlags::ET)
    }

    /// Waits for a socket too, from now on.
    pub(crate) fn add(&self, index: u16, socket: impl AsFd) -> io::Result<()> {
        self.watch.enter(socket, EventSource::Socket.data(index.into()), EventFlags::IN)
    }

    /// Waits for input of a socket, for room to send, for both or for neither.
    pub(crate) fn want(&self, index: u16, socket: impl AsFd, input: bool, room: bool) -> io::Result<()> {
        let mut flags = EventFlags::empty();
        flags.set(EventFlags::IN, input);
        flags.set(EventFlags::OUT, room);
        Ok(self.watch.change(socket, EventSource::Socket.data(index.into()), flags)?)
    }

    /// Waits for a connection to be established.
    pub(crate) fn add_dialing(&self, number: u32, dialing: impl AsFd) -> io::Result<()> {
        self.watch.enter(dialing, EventSource::Dialing.data(number), EventFlags::OUT)
    }

    /// Stops waiting for this source.
    pub(crate) fn remove(&self, source: impl AsFd) -> io::Result<()> {
        self.watch.remove(source)
    }

    /// Returns when something happened, a signal was caught or the time is `until`. With `until` in
    /// the past it returns at once.
    pub(crate) fn wait(&mut self, clock: &Clock, until: Option<Instant>) -> io::Result<()> {
        loop {
            let remaining = until.map(|until| until.since(clock.now()));
            match self.wait_once(remaining) {
                Ok(()) if !self.events.is_empty() => return Ok(()),
                Ok(()) if until.is_some_and(|until| until <= clock.now()) => return Ok(()),
                Ok(()) => thread::yield_now(),
                Err(Errno::INTR) => return Ok(()),
                Err(errno) => return Err(errno.into()),
            }
        }
    }

    /// Waits once, for `remaining` at most and perhaps for less. Linux before 5.11 has no
    /// `epoll_pwait2`, so a wait lasts whole milliseconds: of 3.4 ms, this call waits for 3, and
    /// the caller calls again for the rest. A wait of a second or more is rounded up instead.
    fn wait_once(&mut self, remaining: Option<Duration>) -> Result<(), Errno> {
        self.events.clear();
        let sleep = match remaining {
            None => None,
            Some(remaining) if remaining < MIN_SLEEP_TIME => Some(Duration::ZERO),
            Some(remaining) if remaining < EPOLL_TICK => {
                let mut watched = [PollFd::new(self.watch, PollFlags::IN)];
                if poll(&mut watched, Some(&timespec(remaining)))? == 0 {
                    return Ok(());
                }
                Some(Duration::ZERO)
            }
            Some(remaining) => Some(whole_ticks(remaining)),
        };
        epoll::wait(self.watch, spare_capacity(&mut self.events), sleep.map(timespec).as_ref())?;
        Ok(())
    }

    /// The number of events.
    pub(crate) const fn len(&self) -> usize {
        self.events.len()
    }

    /// The event at this index, which is below [`len`](Self::len).
    pub(crate) fn happened(&self, at: usize) -> Option<WaitEvent> {
        let epoll::Event { flags, data } = *self.events.get(at)?;
        let over = flags.intersects(EventFlags::ERR | EventFlags::HUP);
        let (kind, number) = EventSource::of(data.u64());
        Some(match kind {
            EventSource::Waker => WaitEvent::Rung,
            EventSource::Device => WaitEvent::Device,
            EventSource::Addresses => WaitEvent::Addresses,
            EventSource::Socket => WaitEvent::Socket {
                local: Local(number as u16), // as it was entered
                readable: over || flags.contains(EventFlags::IN),
                room: over || flags.contains(EventFlags::OUT),
                over,
            },
            EventSource::Dialing => WaitEvent::Dialed(number),
            EventSource::Source => WaitEvent::Source(Ready {
                token: Token(number),
                readable: over || flags.intersects(EventFlags::IN | EventFlags::RDHUP),
                writable: over || flags.contains(EventFlags::OUT),
            }),
        })
    }
}

/// Returns the wait of `epoll_pwait`. It ends after a far deadline, so that one wait is enough.
fn whole_ticks(remaining: Duration) -> Duration {
    let rounding = if remaining < COARSE_WAIT_TIME { Duration::ZERO } else { EPOLL_TICK };
    let millis = u32::try_from((remaining + rounding).as_millis()).unwrap_or(u32::MAX);
    EPOLL_TICK * millis.min(i32::MAX as u32)
}

fn timespec(duration: Duration) -> Timespec {
    Timespec {
        tv_sec: i64::try_from(duration.as_secs()).unwrap_or(i64::MAX),
        tv_nsec: i64::from(duration.subsec_nanos()),
    }
}

/// Lowers the calling thread's timer slack to 1 ns, and restores the earlier slack when dropped.
/// With the usual slack the kernel may end a wait up to 50 µs late, to save power. See
/// `PR_SET_TIMERSLACK` in prctl(2).
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
    use std::io::{Read as _, Write as _};
    use std::net::UdpSocket;
    use std::os::unix::net::UnixStream;

    fn all(waiter: &Waiter<'_>) -> Vec<WaitEvent> {
        (0..waiter.len()).filter_map(|at| waiter.happened(at)).collect()
    }

    #[test]
    fn ends_at_the_deadline_whether_near_or_far() {
        let clock = Clock::new();
        let (watch, waker) = (Watch::new().unwrap(), Waker::new().unwrap());
        let mut waiter = Waiter::new(&watch, &waker, None).unwrap();
        for micros in [0, 10, 49, 51, 400, 999, 1_000, 1_001, 5_000, 5_300] {
            let until = clock.now() + Duration::from_micros(micros);
            waiter.wait(&clock, Some(until)).unwrap();
            assert!(clock.now() >= until, "woke before a deadline {micros} µs away");
            assert_eq!(all(&waiter), []);
        }
    }

    #[test]
    fn a_near_deadline_is_approached_and_a_far_one_passed() {
        let micros = |micros| whole_ticks(Duration::from_micros(micros)).as_millis();
        assert_eq!([1_000, 3_400, 999_999].map(micros), [1, 3, 999]);
        assert_eq!([1_000_000, 1_000_400, 15_000_000].map(micros), [1_001, 1_001, 15_001]);
        assert_eq!(whole_ticks(Duration::MAX / 2).as_millis(), i32::MAX as u128);
    }

    #[test]
    fn tells_who_ended_the_wait() {
        let clock = Clock::new();
        let (watch, waker) = (Watch::new().unwrap(), Waker::new().unwrap());
        let mut waiter = Waiter::new(&watch, &waker, None).unwrap();
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        waiter.add(7, &socket).unwrap();

        waker.wake();
        waiter.wait(&clock, None).unwrap();
        assert_eq!(all(&waiter), [WaitEvent::Rung]);
        waker.silence();

        socket.send_to(b"x", socket.local_addr().unwrap()).unwrap();
        waiter.wait(&clock, None).unwrap();
        let told = WaitEvent::Socket { local: Local(7), readable: true, room: false, over: false };
        assert_eq!(all(&waiter), [told]);
        socket.recv(&mut [0; 8]).unwrap();

        // Room to send ends a wait only for whom asked, and a socket without input stays
        // unreadable.
        waiter.want(7, &socket, true, true).unwrap();
        waiter.wait(&clock, None).unwrap();
        assert_eq!(
            all(&waiter),
            [WaitEvent::Socket { local: Local(7), readable: false, room: true, over: false }]
        );
        waiter.want(7, &socket, true, false).unwrap();
        let until = clock.now() + Duration::from_millis(2);
        waiter.wait(&clock, Some(until)).unwrap();
        assert!(clock.now() >= until);
        assert_eq!(all(&waiter), []);

        // What a socket that is paused has to read ends no wait.
        waiter.want(7, &socket, false, false).unwrap();
        socket.send_to(b"x", socket.local_addr().unwrap()).unwrap();
        waiter.wait(&clock, Some(Instant::ZERO)).unwrap();
        assert_eq!(all(&waiter), []);
        waiter.want(7, &socket, true, false).unwrap();
        waiter.wait(&clock, None).unwrap();
        assert_eq!(all(&waiter), [told]);
    }

    #[test]
    fn a_descriptor_of_the_owner_is_told_of_when_it_becomes_ready_and_once() {
        let clock = Clock::new();
        let (watch, waker) = (Watch::new().unwrap(), Waker::new().unwrap());
        let mut waiter = Waiter::new(&watch, &waker, None).unwrap();
        let (mut here, mut there) = UnixStream::pair().unwrap();
        let at_once = Some(Instant::ZERO);
        let told = |readable, writable| WaitEvent::Source(Ready { token: Token(3), readable, writable });

        watch.add(&here, Token(3)).unwrap();
        waiter.wait(&clock, at_once).unwrap();
        assert_eq!(all(&waiter), [told(false, true)]);
        waiter.wait(&clock, at_once).unwrap();
        assert_eq!(all(&waiter), []);

        there.write_all(b"some").unwrap();
        waiter.wait(&clock, None).unwrap();
        assert_eq!(all(&waiter), [told(true, true)]);
        waiter.wait(&clock, at_once).unwrap();
        assert_eq!(all(&waiter), [], "nothing more came");
        here.read_exact(&mut [0; 2]).unwrap();
        there.write_all(b"more").unwrap();
        waiter.wait(&clock, None).unwrap();
        assert_eq!(all(&waiter), [told(true, true)]);

        drop(there);
        waiter.wait(&clock, None).unwrap();
        assert_eq!(all(&waiter), [told(true, true)]);
        watch.remove(&here).unwrap();
        waiter.wait(&clock, at_once).unwrap();
        assert_eq!(all(&waiter), []);
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
