//! Asks a rule of others which path carries the next packet. The loop that sends offers it each
//! path that has room. A path that the rule does not choose stays in the queue.

use super::Connection;
use super::path::{Path, PathState};
use crate::data::Blocked;
use crate::path_choice::{Choice, PathFacts};
use byway_wire::{Instant, PathId};
use smallvec::SmallVec;

/// The facts of a path that carries data and answers.
fn facts(now: Instant, path: &Path, is_held: bool) -> Option<PathFacts> {
    if path.state != PathState::Active || path.send.timeouts() > 0 {
        return None;
    }
    let packet = path.send.mtu.current() as u64;
    let is_paced = path.paced || path.send.pacer.ready_at(packet) > now;
    Some(PathFacts {
        id: path.id(),
        rtt: path.send.rtt.smoothed(),
        deviation: path.send.rtt.variation(),
        packet,
        window: path.window_limit,
        in_flight: path.send.in_flight,
        may_send: path.has_room() && !is_paced && !is_held && path.credit() >= packet,
    })
}

impl Connection {
    /// How many frames of streams waited how long for bytes before them: whole milliseconds, and
    /// the number of frames.
    pub fn order_waits(&self) -> impl Iterator<Item = (u64, u64)> + '_ {
        self.contents.order_waits()
    }

    /// Notes that data wait only for the receive window.
    pub(super) fn note_blocked(&mut self) {
        if let Some(chooser) = &mut self.chooser
            && self.contents.blocked_by() == Some(Blocked::PeerLimit)
        {
            chooser.on_blocked();
        }
    }

    /// Offers path `id`, whose pacer lets `packets` packets leave. Returns how many it sends: all
    /// without a rule, one if the rule chooses it, else none. A rule decides anew for each packet.
    pub(super) fn offer(&mut self, now: Instant, id: PathId, packets: u64) -> u64 {
        let Some(chooser) = &mut self.chooser else { return packets };
        let Self { paths, contents, refused, .. } = self;
        let choice = *refused.choice.get_or_insert_with(|| {
            let all: SmallVec<[PathFacts; 8]> =
                paths.iter().filter_map(|path| facts(now, path, paths.is_held(path.id()))).collect();
            // A path that timed out is in no rule: it sends one packet at a time.
            chooser.choose(now, &all, &contents.out().choice_facts())
        });
        let is_silent = paths.get(id).is_some_and(|path| path.send.timeouts() > 0);
        if choice == Choice::Send(id) || is_silent {
            return 1;
        }
        refused.paths.push(id);
        0
    }

    /// Returns the refused paths to the queue of paths that may send data.
    pub(super) fn return_refused(&mut self) {
        self.refused.choice = None;
        for id in core::mem::take(&mut self.refused.paths) {
            if let Some(path) = self.paths.quietly(id) {
                self.scheduler.make_ready(path);
            }
        }
    }
}

/// The decision about the next packet, and the paths that had room and were not chosen.
#[derive(Debug, Default)]
pub(super) struct Refused {
    choice: Option<Choice>,
    paths: SmallVec<[PathId; 8]>,
}
