//! Asks a rule of others which path carries the next packet. The loop that sends offers it each
//! path that has room. A path that the rule does not choose stays in the queue.

use super::packet_contents::PacketContents;
use super::path::{Path, PathState};
use super::paths::Paths;
use crate::data::Blocked;
use crate::path_choice::{Choice, Chooser, PathFacts, PathRule};
use byway_wire::{Instant, PathId};
use smallvec::SmallVec;

/// The rule of a session, and its decision about the next packet.
#[derive(Debug)]
pub(super) struct ActiveRule {
    /// `None`: byway's own choice.
    chooser: Option<Chooser>,
    choice: Option<Choice>,
}

/// The facts of a path that carries data and answers. A path that timed out is in no rule: it sends
/// one packet at a time.
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

impl ActiveRule {
    /// The rule before its first packet.
    pub(super) fn new(rule: Option<PathRule>) -> Self {
        Self { chooser: rule.map(Chooser::new), choice: None }
    }

    /// Forgets the decision about the packet before.
    pub(super) const fn begin(&mut self) {
        self.choice = None;
    }

    /// Notes why no data are sent.
    pub(super) fn note_blocked(&mut self, why: Option<Blocked>) {
        if let Some(chooser) = &mut self.chooser
            && why == Some(Blocked::PeerLimit)
        {
            chooser.on_blocked();
        }
    }

    /// Offers path `id`, whose pacer lets `packets` packets leave. Returns how many it sends: all
    /// without a rule, one if the rule chooses it, else none. A rule decides anew for each packet.
    pub(super) fn offer(
        &mut self,
        now: Instant,
        id: PathId,
        packets: u64,
        paths: &Paths,
        contents: &mut PacketContents,
    ) -> u64 {
        let Some(chooser) = &mut self.chooser else { return packets };
        let choice = *self.choice.get_or_insert_with(|| {
            let all: SmallVec<[PathFacts; 8]> =
                paths.iter().filter_map(|path| facts(now, path, paths.is_held(path.id()))).collect();
            chooser.choose(now, &all, &contents.out().choice_facts())
        });
        let is_silent = paths.get(id).is_some_and(|path| path.send.timeouts() > 0);
        if choice == Choice::Send(id) || is_silent {
            return 1;
        }
        0
    }
}
