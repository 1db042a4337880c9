//! When a hole in a stream or object is named to the sender (SNACK): once τ has passed since it was
//! seen.

use super::peer_paths::{PeerPath, PeerPaths};
use crate::config::Tau;
use crate::data::Incoming;
use crate::route::Through;
use byway_wire::{Duration, Instant, Writer};

/// The assumed RTT of the direct path until its sender reports it (mPath section 2.1: the
/// inter-continental average).
const DEFAULT_RTT: Duration = Duration::from_millis(250);
/// The least time before τ is worked out again: that takes a look at every path.
const TAU_LIFETIME: Duration = Duration::from_millis(20);
/// Time without a packet after which a path explains no hole.
const MAX_ARRIVAL_AGE: Duration = Duration::from_secs(2);
/// The smallest delay τ, except under a rule with only the direct path's RTT.
const MIN_TAU: Duration = Duration::from_millis(60);

/// When holes are named to the sender.
#[derive(Debug)]
pub(super) struct Snacks {
    rule: Tau,
    due: bool,
    tau: Duration,
    /// The longest RTT of the paths in use.
    longest: Duration,
    /// The time until which the computed τ is valid.
    until: Instant,
}

impl Snacks {
    pub const fn new(rule: Tau) -> Self {
        Self { rule, due: false, tau: Duration::ZERO, longest: DEFAULT_RTT, until: Instant::ZERO }
    }

    /// Whether a hole is to be named now.
    pub const fn is_due(&self) -> bool {
        self.due
    }

    /// When the next hole is to be reported, unless one is due already.
    pub fn deadline(&mut self, now: Instant, peer_paths: &PeerPaths, incoming: &Incoming) -> Option<Instant> {
        if self.due {
            return None;
        }
        incoming.snack_deadline(self.tau(now, peer_paths))
    }

    /// Looks whether a hole is due.
    pub fn wake(&mut self, now: Instant, peer_paths: &PeerPaths, incoming: &Incoming) {
        let tau = self.tau(now, peer_paths);
        self.due |= incoming.snack_deadline(tau).is_some_and(|at| at <= now);
    }

    /// Writes the holes that are due. Returns whether it searched for any.
    pub fn write(
        &mut self,
        now: Instant,
        peer_paths: &PeerPaths,
        incoming: &mut Incoming,
        writer: &mut Writer<'_>,
    ) -> bool {
        let due = core::mem::take(&mut self.due);
        if due {
            let tau = self.tau(now, peer_paths);
            incoming.write_snacks(now, tau, writer);
        }
        due
    }

    fn tau(&mut self, now: Instant, peer_paths: &PeerPaths) -> Duration {
        if self.until <= now {
            self.look(now, peer_paths);
        }
        self.tau
    }

    /// Returns the longest RTT of the paths in use, as their senders report it.
    pub fn longest_round_trip(&mut self, now: Instant, peer_paths: &PeerPaths) -> Duration {
        if self.until <= now {
            self.look(now, peer_paths);
        }
        self.longest
    }

    /// Takes a look at every path.
    fn look(&mut self, now: Instant, peer_paths: &PeerPaths) {
        let recent =
            peer_paths.iter().filter(|receiving| receiving.facts.last_arrival + MAX_ARRIVAL_AGE > now);
        let longest = recent.filter_map(|receiving| receiving.facts.round_trip()).max();
        self.tau = self.reorder_time(peer_paths, longest);
        (self.longest, self.until) = (longest.unwrap_or(DEFAULT_RTT), now + TAU_LIFETIME);
    }

    /// mPath's τ (section 2.2). Until τ has passed, a slower path may still carry the data that is
    /// missing in a stream or object. τ derives from the direct path's RTT and `slowest`, the
    /// longest RTT in use.
    fn reorder_time(&self, peer_paths: &PeerPaths, slowest: Option<Duration>) -> Duration {
        let came_direct = |receiving: &&PeerPath| matches!(receiving.source.through, Through::Nothing);
        let direct = peer_paths.iter().find(came_direct).or_else(|| peer_paths.iter().next());
        let direct = direct.and_then(|first| first.facts.round_trip());
        if let Tau::Direct(percent) = self.rule {
            return direct.unwrap_or(DEFAULT_RTT) * percent / 100;
        }
        let least = if let Tau::AtLeast(least) = self.rule { least } else { MIN_TAU };
        (direct.unwrap_or_default() * 2).max(slowest.unwrap_or_default() * 3 / 2).max(least)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Pnack;
    use crate::path::receive::ReceivePath;
    use crate::route::PacketSource;
    use byway_wire::frame::PathHint;
    use byway_wire::{Local, PathId};

    /// A direct path of 10 ms and one through a relay of 90 ms.
    fn arrivals() -> PeerPaths {
        let mut peer_paths = PeerPaths::new([0; 32]);
        let relay = "192.0.2.7:4748".parse().unwrap();
        let direct = PacketSource::direct(Local(0), "192.0.2.1:1".parse().unwrap());
        let relayed = PacketSource {
            through: Through::Back("192.0.2.1:1".parse().unwrap()),
            ..PacketSource::direct(Local(0), relay)
        };
        for (id, source, millis) in [(0, relayed, 90), (1, direct, 10)] {
            let mut facts = ReceivePath::new(PathId(id), Instant::ZERO, Pnack::Patient);
            facts.on_hint(PathHint { path: PathId(id), srtt_micros: millis * 1_000, delay_limit: None });
            peer_paths.begin(PathId(id), PeerPath::new(facts, source, None));
        }
        peer_paths
    }

    #[test]
    fn tau_is_what_the_slowest_path_explains_or_follows_the_direct_one() {
        let peer_paths = arrivals();
        let millis = Duration::from_millis;
        let tau = |rule, now| Snacks::new(rule).tau(now, &peer_paths);
        assert_eq!(tau(Tau::Adaptive, Instant::from_millis(1)), millis(135));
        assert_eq!(tau(Tau::Adaptive, Instant::from_millis(2_000)), millis(60), "nothing came for long");
        assert_eq!(tau(Tau::Direct(200), Instant::from_millis(1)), millis(20));
        assert_eq!(tau(Tau::AtLeast(millis(4_000)), Instant::from_millis(1)), millis(4_000));
        assert_eq!(tau(Tau::AtLeast(millis(100)), Instant::from_millis(1)), millis(135));
        assert_eq!(Snacks::new(Tau::Direct(200)).tau(Instant::ZERO, &PeerPaths::new([0; 32])), millis(500));
    }
}
