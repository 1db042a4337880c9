//! Decides which packets to acknowledge, when, and by which path.

use super::path::{AddressValidation, Path, PathState};
use super::paths::Paths;
use super::peer_paths::{PeerPath, PeerPaths};
use super::scheduling::Scheduler;
use super::snack_delay::Snacks;
use crate::config::{AckPathRule, Config};
use crate::path::transport::PathTransport;
use alloc::collections::VecDeque;
use alloc::vec::Vec;
use byway_wire::frame::{self, ack::AckWriter};
use byway_wire::{Duration, Instant, PathId, Writer};

/// The room in bytes that an ACK frame needs before a path's entry is begun.
pub(super) const ENTRY_ROOM: usize = 48;
/// Room for an ACK that is sent a second time: envelope, packet, and the newest ranges.
pub(super) const MAX_ECHO_LEN: usize = 256;
/// Time between RTT measurements of a path that carries only ACKs, while it is in use.
const USED_PING_INTERVAL: Duration = Duration::from_secs(1);
/// Time between RTT measurements of a path that carries only ACKs, while it is not in use.
const IDLE_PING_INTERVAL: Duration = Duration::from_secs(5);
/// Time for which the chosen path for ACKs is kept.
const WAY_LIFETIME: Duration = Duration::from_millis(50);

/// The acknowledgments that this side still has to send.
#[derive(Debug)]
pub(super) struct Acks {
    rule: AckPathRule,
    /// The peer's paths whose ACK is due.
    queue: VecDeque<PathId>,
    /// The peer's path by which something came last that is not acknowledged yet, nor due to be.
    soon: Option<PathId>,
    /// A path of the peer's whose ACK is also sent by a second path.
    echo: Option<PathId>,
    /// The path by which ACKs are sent. `way_until`: when the choice ends. `ways`: the value of
    /// [`Paths::ways`] at the choice.
    way: Option<PathId>,
    way_until: Instant,
    ways: u64,
    /// A path of the peer's by which packets come and no path of ours leads back, while nothing
    /// comes by the way of the ACKs.
    lacks_way: Option<PathId>,
    /// Whether an ACK waits for a full socket.
    held: bool,
    /// Whether data arrived since the path for ACKs was last checked.
    data_came: bool,
    /// Holes in streams and objects.
    snacks: Snacks,
    /// Scratch space, kept so that no packet allocates.
    runs: Vec<(u64, u32)>,
    missing: Vec<(u64, u64)>,
}

impl Acks {
    pub const fn new(config: &Config) -> Self {
        Self {
            rule: config.ack_way,
            queue: VecDeque::new(),
            soon: None,
            echo: None,
            way: None,
            way_until: Instant::ZERO,
            ways: 0,
            lacks_way: None,
            held: false,
            data_came: false,
            snacks: Snacks::new(config.tau),
            runs: Vec::new(),
            missing: Vec::new(),
        }
    }

    /// When holes in streams and objects are named.
    pub const fn snacks(&mut self) -> &mut Snacks {
        &mut self.snacks
    }

    /// Sets whether ACKs wait for a full socket.
    pub const fn hold(&mut self, held: bool) {
        self.held = held;
    }

    /// Whether an ACK waits for a full socket.
    pub const fn are_held(&self) -> bool {
        self.held
    }

    /// Whether an ACK or a SNACK is due.
    pub fn is_due(&self) -> bool {
        !self.queue.is_empty() || self.snacks.is_due()
    }

    /// Notes that data came.
    #[inline]
    pub const fn on_data(&mut self) {
        self.data_came = true;
    }

    /// Queues a path's ACK if it is due. Otherwise arms the path's timer.
    #[inline]
    pub fn queue(&mut self, now: Instant, receiving: &mut PeerPath, scheduler: &mut Scheduler) {
        let id = receiving.facts.id;
        if !receiving.facts.ack_due(now) {
            scheduler.arm_receiving(receiving);
            self.soon = Some(id);
        } else if !receiving.queued {
            receiving.queued = true;
            self.queue.push_back(id);
        }
    }

    /// Handles a PING on the peer's path `id`. Perhaps the peer no longer gets our ACKs by our path
    /// `self.way`. So the ACK for `id` also leaves by another path. If nothing is outstanding on
    /// `self.way`, we send a PING there to test it.
    pub fn on_asked(&mut self, id: PathId, paths: &mut Paths) {
        self.echo = Some(id);
        // No PING without new data: two idle peers would ping each other for ever.
        if !core::mem::take(&mut self.data_came) {
            return;
        }
        if let Some(way) = self.way
            && paths.get(way).is_some_and(|path| path.send.outstanding() == 0)
            && let Some(path) = paths.edit(way)
        {
            path.pending.ping = true;
        }
    }

    /// Writes the missing and the received packets of each path whose ACK is due, as many as fit.
    pub fn write(
        &mut self,
        now: Instant,
        peer_paths: &mut PeerPaths,
        scheduler: &mut Scheduler,
        writer: &mut Writer<'_>,
    ) {
        for _ in 0..self.queue.len() {
            // What a path misses is told once: not where it does not fit.
            if writer.room() < ENTRY_ROOM {
                break;
            }
            let Some(receiving) = self.queue.front().and_then(|id| peer_paths.get_mut(*id)) else {
                self.queue.pop_front();
                continue;
            };
            receiving.facts.take_missing(&mut self.missing);
            if !self.missing.is_empty() {
                frame::write_pnack(writer, receiving.facts.id, &self.missing);
            }
            // One entry per ACK frame costs a byte more than many, and never takes back what was
            // written.
            let mut ack = AckWriter::begin(writer);
            let fits = writer.room() >= ENTRY_ROOM
                && receiving.facts.write_ack(now, &mut ack, writer, &mut self.runs);
            ack.finish(writer);
            if !fits {
                break;
            }
            receiving.queued = false;
            scheduler.arm_receiving(receiving);
            self.queue.pop_front();
        }
    }

    /// Chooses an ACK to send together with data on this side's path `id`. Returns the peer's path
    /// whose packets it acknowledges, or `None` if no ACK is due soon. Without
    /// [`Config::ack_after`](crate::Config::ack_after), `id` must be the path chosen for all ACKs.
    pub fn riding(
        &mut self,
        now: Instant,
        id: PathId,
        peer_paths: &PeerPaths,
        paths: &mut Paths,
    ) -> Option<PathId> {
        let soon = self.soon?;
        let receiving = peer_paths.get(soon)?;
        let rides = !receiving.queued && receiving.facts.ack_nearly_due(now);
        let any = receiving.facts.acks_wait();
        (rides && (any || self.way(now, peer_paths, paths) == Some(id))).then_some(soon)
    }

    /// Writes the ACK that [rides](Self::riding) with datagrams.
    pub fn write_riding(
        &mut self,
        now: Instant,
        receiving: &mut PeerPath,
        scheduler: &mut Scheduler,
        writer: &mut Writer<'_>,
    ) {
        let mut ack = AckWriter::begin(writer);
        if receiving.facts.write_ack(now, &mut ack, writer, &mut self.runs) {
            self.soon = None;
            scheduler.arm_receiving(receiving);
        }
        ack.finish(writer);
    }

    /// The path whose ACK is sent a second time, and by which path: back to its source, or the
    /// fastest.
    pub fn take_echo(&mut self, peer_paths: &PeerPaths, paths: &Paths) -> Option<(PathId, PathId)> {
        let id = self.echo.take().filter(|_| self.rule == AckPathRule::Fastest)?;
        let own = peer_paths.get(id)?.way;
        let others = paths.iter().filter(|path| Some(path.id()) != self.way);
        let usable = others.filter(|path| {
            path.credit() >= MAX_ECHO_LEN as u64
                && path.send.rtt.is_sampled()
                && !paths.full().has(path.route.local)
        });
        let way = usable.min_by_key(|path| (Some(path.id()) != own, path.send.rtt.smoothed()))?.id();
        Some((id, way))
    }

    /// Writes the ACK of one path, due or not.
    pub fn write_echo(&mut self, now: Instant, receiving: &mut PeerPath, writer: &mut Writer<'_>) {
        let mut ack = AckWriter::begin(writer);
        receiving.facts.write_ack(now, &mut ack, writer, &mut self.runs);
        ack.finish(writer);
    }

    /// The path over which ACKs go now: the fastest that lives.
    #[inline]
    pub fn way(&mut self, now: Instant, peer_paths: &PeerPaths, paths: &mut Paths) -> Option<PathId> {
        let holds = now < self.way_until && self.ways == paths.ways();
        if holds && self.way.is_some_and(|id| paths.get(id).is_some()) {
            return self.way;
        }
        (self.ways, self.way_until) = (paths.ways(), now + WAY_LIFETIME);
        self.choose(now, peer_paths, paths)
    }

    /// The peer's path that has no path back, if there is one.
    pub const fn take_lacking(&mut self) -> Option<PathId> {
        self.lacks_way.take()
    }

    fn choose(&mut self, now: Instant, peer_paths: &PeerPaths, paths: &mut Paths) -> Option<PathId> {
        let newest = peer_paths.iter().map(|receiving| receiving.facts.last_arrival).max()?;
        // When a packet last came by each way, in one pass over the peer's paths.
        paths.edit_each(|path| {
            path.heard = None;
            false
        });
        for receiving in peer_paths.iter() {
            if let Some(path) = receiving.way.and_then(|way| paths.quietly(way)) {
                path.heard = path.heard.max(Some(receiving.facts.last_arrival));
            }
        }
        // What no packet came by for long, while packets came by others, may be dead although it
        // was fast.
        let silence = |path: &Path| {
            let allowed = path.send.rtt.smoothed() * 2 + Duration::from_millis(200);
            path.heard.is_none_or(|at| at + allowed < newest)
        };
        let newest_by = |path: &Path| path.heard == Some(newest);
        let by_tcp =
            paths.iter().any(|path| newest_by(path) && path.route.carriage() == PathTransport::Connection);
        let full = paths.full();
        let best = paths.iter().min_by_key(|path| {
            let unproven = path.address != AddressValidation::Valid;
            let unmeasured = !path.send.rtt.is_sampled();
            // Each change costs the peer its RTT estimates: another way must be faster by a
            // quarter.
            let handicap = if self.way == Some(path.id()) { 3 } else { 4 };
            let slowness = path.send.rtt.smoothed() * handicap;
            let held = full.has(path.route.local);
            // What data come by works. Where UDP does, TCP rests altogether.
            let other = (path.route.carriage() == PathTransport::Connection) != by_tcp;
            let lives = path.send.timeouts() == 0;
            (held, !lives, unproven, other, silence(path), unmeasured, slowness, path.id())
        });
        let is_dead = best.is_none_or(|path| silence(path) || path.send.timeouts() > 0);
        let without = |receiving: &&PeerPath| {
            receiving.facts.last_arrival == newest && receiving.way.is_none() && !receiving.is_cut
        };
        self.lacks_way =
            peer_paths.iter().find(without).filter(|_| is_dead).map(|receiving| receiving.facts.id);
        let direct = || paths.iter().find(|path| !path.route.is_proxied());
        let chosen = match self.rule {
            AckPathRule::Fastest => best.map(Path::id),
            AckPathRule::Direct => direct().or(best).map(Path::id),
        };
        self.way = chosen;
        paths.edit_each(|path| {
            let interval = if chosen == Some(path.id()) { USED_PING_INTERVAL } else { IDLE_PING_INTERVAL };
            let asks = path.state != PathState::Choked
                && path.send.outstanding() == 0
                && path.send.last_sent_at() + interval <= now;
            path.pending.ping |= asks;
            asks
        });
        chosen
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Pnack;
    use crate::connection::path::PathOrigin;
    use crate::path::receive::{PacketArrival, ReceivePath};
    use crate::path::send::SendPath;
    use crate::route::{PacketSource, Route};
    use byway_wire::{Ecn, Local};

    /// Two ways, of 40 ms and of this many.
    fn ways(config: &Config, other: u64) -> (Acks, PeerPaths, Paths) {
        let (acks, mut peer_paths, mut paths) =
            (Acks::new(config), PeerPaths::new([1; 32]), Paths::new([2; 32]));
        for (id, millis) in [(PathId(0), 40), (PathId(1), other)] {
            let mut send = SendPath::new(id, Instant::ZERO, None, 1200);
            send.rtt.sample(Instant::ZERO, Duration::from_millis(millis), PathId(0));
            let route = Route::direct(Local(id.0 as u16), "192.0.2.1:1".parse().unwrap());
            let source = PacketSource::direct(route.local, route.remote);
            let name = paths.connection_id(id);
            paths.insert(Path::new(Instant::ZERO, send, route, PathState::Active, PathOrigin::Return, name));
            let facts = ReceivePath::new(id, Instant::ZERO, Pnack::Patient);
            peer_paths.begin(id, PeerPath::new(facts, source, Some(id)));
        }
        (acks, peer_paths, paths)
    }

    #[test]
    fn a_way_is_kept_until_another_is_faster_by_a_quarter_or_it_goes() {
        let config = Config::default();
        let (mut acks, peer_paths, mut paths) = ways(&config, 32);
        let at = Instant::from_millis;
        assert_eq!(acks.way(at(1), &peer_paths, &mut paths), Some(PathId(1)));
        paths.quietly(PathId(1)).unwrap().send.rtt.reset();
        paths.quietly(PathId(1)).unwrap().send.rtt.sample(at(1), Duration::from_millis(50), PathId(0));
        assert_eq!(acks.way(at(2), &peer_paths, &mut paths), Some(PathId(1)), "a choice holds for a while");
        assert_eq!(acks.way(at(60), &peer_paths, &mut paths), Some(PathId(1)), "not by a quarter");
        paths.remove(PathId(1));
        assert_eq!(acks.way(at(61), &peer_paths, &mut paths), Some(PathId(0)), "at once");
    }

    #[test]
    fn acks_take_the_direct_path_by_option() {
        let config = Config { ack_way: AckPathRule::Direct, ..Config::default() };
        let (mut acks, peer_paths, mut paths) = ways(&config, 5);
        assert_eq!(acks.way(Instant::from_millis(1), &peer_paths, &mut paths), Some(PathId(0)));
        acks.on_asked(PathId(0), &mut paths);
        assert_eq!(acks.take_echo(&peer_paths, &paths), None, "no other way");
    }

    #[test]
    fn an_ack_is_queued_once_and_written() {
        let config = Config::default();
        let (mut acks, mut peer_paths, _) = ways(&config, 5);
        let mut scheduler = Scheduler::new(Instant::ZERO, &config);
        let now = Instant::from_millis(3);
        let receiving = peer_paths.get_mut(PathId(1)).unwrap();
        for number in 0..2 {
            receiving.facts.on_packet(&PacketArrival {
                number,
                at: now,
                stamp: 0,
                bytes: 1200,
                ecn: Ecn::NotEct,
                eliciting: true,
            });
            acks.queue(now, receiving, &mut scheduler);
        }
        assert!(acks.is_due() && acks.queue.len() == 1);
        let mut buffer = [0; 200];
        let mut writer = Writer::new(&mut buffer);
        acks.write(now, &mut peer_paths, &mut scheduler, &mut writer);
        assert!(!acks.is_due() && !writer.written().is_empty());
    }
}
