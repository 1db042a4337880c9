//! Datagrams: unreliable messages for which the application [chooses](Connection::send_datagram)
//! one of the [paths](Connection::path_views), for example to keep tunnelled packets in order.
//! Datagrams are congestion controlled. If a path can no longer send an accepted datagram,
//! [`next_returned`](Connection::next_returned) gives it back.

use super::Connection;
pub use super::datagram_queues::{DatagramResult, ReceivedDatagram};
use super::datagram_queues::{largest, room};
use super::path::PathState;
use super::pending_datagrams::QueuedDatagram;
use crate::invariant::Invariant as _;
use alloc::vec::Vec;
use byway_control::{Congested, Controller as _, Trigger};
use byway_wire::{Duration, Instant, PathId};

/// The facts about a path for an owner that chooses paths itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PathView {
    /// The id of the path.
    pub id: PathId,
    /// Whether the path carries data: it is active, and not silent while another path is heard.
    pub usable: bool,
    /// Whether nothing was acknowledged on the path for a whole timeout.
    pub silent: bool,
    /// Whether the path goes through a relay.
    pub proxied: bool,
    /// Bytes in flight, and bytes of datagrams that the path accepted from the application and has
    /// not sent yet.
    pub in_flight: u64,
    /// Congestion window in bytes.
    pub window: u64,
    /// About how many bytes [`send_datagram`](Connection::send_datagram) accepts now. 0: it
    /// refuses.
    pub room: u64,
    /// The smoothed RTT of the path.
    pub srtt: Duration,
    /// The smallest RTT of the latest 15 to 30 s.
    pub min_rtt: Duration,
    /// The queueing delay on the path. `None`: no delay was measured.
    pub queueing: Option<Duration>,
    /// The largest datagram that fits into the path's packets, in bytes.
    pub largest: usize,
}

/// Why a datagram was refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refused {
    /// No path has that id, or the path carries no data now.
    #[error("the path carries no data now")]
    NotActive,
    /// Window and queue of the path are full.
    #[error("the path has no room now")]
    NoRoom,
    /// The datagram is too large for a packet of this path. The value is the largest size in bytes.
    #[error("a datagram of this path has at most {0} bytes")]
    TooLarge(usize),
}

impl Connection {
    /// The active and choked paths, for an owner that chooses paths itself.
    pub fn path_views(&self) -> impl Iterator<Item = PathView> + '_ {
        let heard =
            self.paths.iter().any(|path| path.state == PathState::Active && path.send.timeouts() == 0);
        let kept = |path: &&super::path::Path| path.is_governed();
        self.paths.iter().filter(kept).map(move |path| {
            let usable = path.state == PathState::Active && (path.send.timeouts() == 0 || !heard);
            PathView {
                id: path.id(),
                usable,
                silent: path.send.timeouts() > 0,
                proxied: path.route.is_proxied(),
                in_flight: path.send.in_flight + path.outbox.bytes(),
                window: path.allowance.window,
                room: if usable { room(path) } else { 0 },
                srtt: path.send.rtt.smoothed(),
                min_rtt: path.send.rtt.minimum(),
                queueing: path.send.queueing(),
                largest: largest(path),
            }
        })
    }

    /// Sends a datagram by `path`. With [`Config::datagram_fates`](crate::Config::datagram_fates),
    /// its result is reported with `mark`.
    pub fn send_datagram(
        &mut self,
        path: PathId,
        mark: u64,
        data: Vec<u8>,
    ) -> Result<(), (Refused, Vec<u8>)> {
        let Self { paths, contents, scheduler, .. } = self;
        let Some(taken) = paths.quietly(path).filter(|path| path.state == PathState::Active) else {
            return Err((Refused::NotActive, data));
        };
        let largest = largest(taken);
        if data.len() > largest {
            return Err((Refused::TooLarge(largest), data));
        }
        if room(taken) == 0 {
            return Err((Refused::NoRoom, data));
        }
        contents.datagrams().hand_over(taken, QueuedDatagram { mark, data });
        if !taken.paced {
            scheduler.make_ready(taken);
        }
        Ok(())
    }

    /// The next datagram that arrived.
    pub fn next_datagram(&mut self) -> Option<ReceivedDatagram> {
        self.contents.datagrams().next_received()
    }

    /// Gives the buffer of a datagram back that is not needed any more: another gets it.
    pub fn recycle(&mut self, buffer: Vec<u8>) {
        self.contents.datagrams().recycle(buffer);
    }

    /// Returns the next datagram that a path accepted and can no longer send, with its mark.
    pub fn next_returned(&mut self) -> Option<(u64, Vec<u8>)> {
        self.contents.datagrams().next_returned()
    }

    /// The next result of a sent datagram, if results are reported
    /// ([`Config::datagram_fates`](crate::Config::datagram_fates)).
    pub fn next_fate(&mut self) -> Option<DatagramResult> {
        self.contents.datagrams().next_fate()
    }

    /// Reports a loss that the application noticed: `bytes` bytes that were sent on `path` at
    /// `sent_at`. The controller reacts as to congestion. This has no effect unless the
    /// [configuration](crate::Config::owner_judges_losses) lets the application judge losses, and
    /// the path is active.
    pub fn judge_lost(&mut self, now: Instant, path: PathId, sent_at: Instant, bytes: u64) {
        let (now, sent_at) = (self.session.own_time(now), self.session.own_time(sent_at));
        let Self { paths, controller, config, .. } = self;
        let active = paths.get(path).is_some_and(|path| path.state == PathState::Active);
        if !active || !config.owner_judges_losses {
            return;
        }
        let Some(found) = paths.judge(path).sure() else { return };
        let in_flight = found.send.in_flight + bytes;
        let lost =
            Congested { trigger: Trigger::Loss, first_sent_at: sent_at, sent_at, now, bytes, in_flight };
        controller.on_congested(path, &lost);
        paths.judge_all();
        self.settle(now);
    }
}
