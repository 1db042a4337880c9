//! The relays that a registry knows: who was heard of, who is listed, and what is drawn from.

use crate::relay_draw::{Candidate, DrawPool};
use crate::store::{LastHeartbeat, RelayRow};
use alloc::collections::{BTreeMap, BTreeSet};
use alloc::vec::Vec;
use byway_wire::heartbeat::{Heartbeat, HeartbeatReport, RelayId};
use byway_wire::relay::{EpochKey, MacKey};
use byway_wire::{Duration, Instant, Local};
use core::net::SocketAddr;

/// Time between two heartbeats of a relay. With many relays it is longer.
pub const HEARTBEAT_INTERVAL: Duration = Duration::from_secs(10);
/// Heartbeats that all relays together may send in a second: with more relays they come less often.
const HEARTBEATS_PER_SECOND: u64 = 2_000;
/// Time between two rebuilds of the pool that relays are drawn from, with [`MANY_RELAYS`] or more.
const REBUILD_INTERVAL: Duration = Duration::from_secs(1);
/// The number of relays from which the pool for draws is rebuilt less often.
const MANY_RELAYS: usize = 1_000;
/// Bytes that a listed relay has left at least. With fewer it is not worth a try.
const MIN_LEFT_BYTES: u64 = 64 << 10;

/// A relay that is enrolled.
#[derive(Clone, Debug)]
pub struct KnownRelay {
    /// The relay's row in the store.
    pub row: RelayRow,
    /// When the last heartbeat or passed test was. `None`: there was none.
    pub seen: Option<Instant>,
    /// The counter of the relay's last heartbeat.
    pub counter: u64,
    /// Bytes per second that the relay forwards.
    pub load: u64,
    /// The number of grants in use at the relay.
    pub grants: u32,
    /// The epoch that the relay knows.
    pub epoch: u32,
    beat_key: MacKey,
    epoch_key: EpochKey,
    /// When the relay counts as dead unless another heartbeat comes.
    alive_until: Instant,
    draining: bool,
    /// Whether the relay's host has a transfer of its own.
    busy: bool,
    /// Whether the relay's quota is used up, or nearly so.
    spent: bool,
    /// Whether the relay has failed a test, and passed none since.
    failed: bool,
    /// The socket and source address of the relay's last heartbeat.
    from: Option<(Local, SocketAddr)>,
}

impl KnownRelay {
    fn is_listed(&self, now: Instant) -> bool {
        self.alive_until > now && !self.draining && !self.spent && !self.failed && !self.row.revoked
    }

    /// The key of the grants minted in the current epoch.
    #[must_use]
    pub const fn epoch_key(&self) -> &EpochKey {
        &self.epoch_key
    }

    /// Whether the relay has failed a test, and passed none since.
    #[must_use]
    pub const fn has_failed(&self) -> bool {
        self.failed
    }

    /// The socket and source address of the relay's last heartbeat, and the key of the answer.
    #[must_use]
    pub fn way(&self) -> Option<(Local, SocketAddr, &MacKey)> {
        self.from.map(|(local, remote)| (local, remote, &self.beat_key))
    }

    /// Whether the relay ends soon.
    #[must_use]
    pub const fn is_draining(&self) -> bool {
        self.draining
    }
}

/// The result of checking a heartbeat.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HeartbeatResult {
    /// The heartbeat is valid.
    Taken {
        /// When the next shall come.
        next: Duration,
        /// Whether the relay is listed.
        listed: bool,
    },
    /// No relay has that name.
    Unknown,
    /// The beat was not made with the relay's key, or is for another range.
    Forged,
    /// The heartbeat's number is not above the last one, so it may be a replay.
    Replayed,
}

/// All relays that are enrolled.
#[derive(Debug, Default)]
pub struct RelayDirectory {
    relays: BTreeMap<RelayId, KnownRelay>,
    epoch: u32,
    pool: DrawPool,
    /// The relay at each place of the pool.
    places: Vec<RelayId>,
    /// When the pool was last rebuilt. `None`: never.
    made: Option<Instant>,
    stale: bool,
    /// Relays with a heartbeat since they were last passed to the store.
    unsaved: BTreeSet<RelayId>,
}

impl RelayDirectory {
    /// Sets the epoch. All grants minted from now on belong to it.
    pub fn set_epoch(&mut self, epoch: u32) {
        self.epoch = epoch;
        for relay in self.relays.values_mut() {
            relay.epoch_key = relay.row.range_key.epoch_key(epoch);
        }
    }

    /// Notes that a relay knows this epoch.
    pub fn set_epoch_of(&mut self, relay: RelayId, epoch: u32) {
        if let Some(relay) = self.relays.get_mut(&relay) {
            relay.epoch = epoch;
        }
    }

    /// Adds or updates a relay. Returns whether it is new.
    pub fn enter(&mut self, row: RelayRow) -> bool {
        self.stale = true;
        let (beat_key, epoch_key) = (row.range_key.heartbeat_key(), row.range_key.epoch_key(self.epoch));
        match self.relays.get_mut(&row.relay) {
            Some(relay) => {
                (relay.beat_key, relay.epoch_key, relay.row) = (beat_key, epoch_key, row);
                relay.failed = false;
            }
            None => {
                let relay = KnownRelay {
                    seen: None,
                    counter: 0,
                    load: 0,
                    grants: 0,
                    epoch: self.epoch,
                    beat_key,
                    epoch_key,
                    alive_until: Instant::ZERO,
                    draining: false,
                    busy: false,
                    spent: false,
                    failed: false,
                    from: None,
                    row,
                };
                return self.relays.insert(relay.row.relay, relay).is_none();
            }
        }
        false
    }

    /// Notes that a relay is alive: it passed a test, now or before this registry started.
    pub fn found_alive(&mut self, now: Instant, relay: RelayId) {
        let grace = patience(self.interval());
        if let Some(relay) = self.relays.get_mut(&relay) {
            self.stale = true;
            (relay.alive_until, relay.draining, relay.failed) = (now + grace, false, false);
            relay.seen = relay.seen.or(Some(now));
            self.unsaved.insert(relay.row.relay);
        }
    }

    /// Restores the store's data about a relay's last heartbeat.
    pub fn remember(&mut self, seen: &LastHeartbeat) {
        if let Some(relay) = self.relays.get_mut(&seen.relay) {
            relay.counter = relay.counter.max(seen.counter);
            relay.load = seen.load;
        }
    }

    /// A relay that is in passed a test. `tcp`: over TCP, too.
    pub fn passed(&mut self, relay: RelayId, tcp: bool) {
        if let Some(relay) = self.relays.get_mut(&relay) {
            (self.stale, relay.failed, relay.row.tcp) = (true, false, tcp);
        }
    }

    /// A test of a relay failed.
    pub fn failed(&mut self, relay: RelayId) {
        if let Some(relay) = self.relays.get_mut(&relay) {
            (self.stale, relay.failed) = (true, true);
        }
    }

    /// Judges a heartbeat.
    pub fn hear(
        &mut self,
        now: Instant,
        from: (Local, SocketAddr),
        beat: &Heartbeat,
    ) -> (HeartbeatResult, Option<MacKey>) {
        let interval = self.interval();
        let report: &HeartbeatReport = &beat.report;
        let Some(relay) = self.relays.get_mut(&report.relay).filter(|relay| !relay.row.revoked) else {
            return (HeartbeatResult::Unknown, None);
        };
        if report.range != relay.row.range || !beat.is_authentic(&relay.beat_key) {
            return (HeartbeatResult::Forged, None);
        }
        if report.counter <= relay.counter {
            return (HeartbeatResult::Replayed, None);
        }
        let before = (relay.is_listed(now), relay.busy);
        relay.from = Some(from);
        relay.counter = report.counter;
        (relay.load, relay.grants, relay.draining) = (report.rate, report.grants, report.is_draining());
        (relay.busy, relay.spent) = (report.is_busy(), report.left < MIN_LEFT_BYTES);
        // What it says of an epoch that never was counts as the first.
        relay.epoch = if report.epoch <= self.epoch { report.epoch } else { 0 };
        (relay.seen, relay.alive_until) = (Some(now), now + patience(interval));
        let listed = relay.is_listed(now);
        self.stale |= (listed, relay.busy) != before;
        self.unsaved.insert(report.relay);
        (HeartbeatResult::Taken { next: interval, listed }, Some(relay.beat_key.clone()))
    }

    /// Between two heartbeats of a relay.
    #[must_use]
    pub fn interval(&self) -> Duration {
        let all = self.relays.len() as u64;
        HEARTBEAT_INTERVAL.max(Duration::from_millis(all * 1_000 / HEARTBEATS_PER_SECOND))
    }

    /// Returns the relay with this name. `None`: it is not enrolled.
    #[must_use]
    pub fn get(&self, relay: RelayId) -> Option<&KnownRelay> {
        self.relays.get(&relay)
    }

    /// Returns all relays, each with whether it is listed at `now`.
    pub fn iter(&self, now: Instant) -> impl Iterator<Item = (&KnownRelay, bool)> {
        self.relays.values().map(move |relay| (relay, relay.is_listed(now)))
    }

    /// The names of all relays.
    #[must_use]
    pub fn names(&self) -> Vec<RelayId> {
        self.relays.keys().copied().collect()
    }

    /// The number of relays.
    #[must_use]
    pub fn len(&self) -> usize {
        self.relays.len()
    }

    /// Whether there are no relays.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.relays.is_empty()
    }

    /// Marks the pool for a rebuild if a relay in it is no longer listed, as after three missed
    /// heartbeats.
    pub fn sweep(&mut self, now: Instant) {
        let listed = |relay: &RelayId| self.relays.get(relay).is_some_and(|relay| relay.is_listed(now));
        self.stale |= !self.places.iter().all(listed);
    }

    /// Draws relays for the client with this seed, listed ones only. Returns whether there are
    /// more.
    pub fn draw(&mut self, now: Instant, seed: u64, skip: usize, most: usize) -> (Vec<&KnownRelay>, bool) {
        let calm = self.relays.len() < MANY_RELAYS
            || self.made.is_none_or(|made| now.since(made) >= REBUILD_INTERVAL);
        if self.stale && calm {
            (self.stale, self.made) = (false, Some(now));
            let listed = || self.relays.values().filter(|relay| relay.is_listed(now));
            self.places = listed().map(|relay| relay.row.relay).collect();
            self.pool = DrawPool::new(listed().map(|relay| {
                let [a, b, c, d, e, f, g, h, ..] = relay.row.relay.0;
                let name = u64::from_be_bytes([a, b, c, d, e, f, g, h]);
                let (operator, addresses) = (&relay.row.operator, &relay.row.addresses);
                Candidate { name, operator, addresses, busy: relay.busy }
            }));
        }
        let more = self.pool.len() > skip.saturating_add(most);
        let drawn = self.pool.draw(seed, skip, most).into_iter();
        let relays = drawn.filter_map(|place| self.relays.get(self.places.get(place)?));
        (relays.filter(|relay| relay.is_listed(now)).collect(), more)
    }

    /// Returns the relays that gave a sign of life since the last call. `unix` is the time of
    /// `now`.
    pub fn take_seen(&mut self, now: Instant, unix: u64) -> Vec<LastHeartbeat> {
        let unsaved = core::mem::take(&mut self.unsaved).into_iter();
        unsaved
            .filter_map(|name| {
                let relay = self.relays.get(&name)?;
                let ago = now.since(relay.seen?).as_secs();
                let at = unix.saturating_sub(ago);
                Some(LastHeartbeat { relay: name, at, counter: relay.counter, load: relay.load })
            })
            .collect()
    }
}

/// Returns the time for which a relay counts as alive after a heartbeat: it may miss three, and the
/// answer to the last may be slow.
fn patience(interval: Duration) -> Duration {
    interval * 3 + interval / 2
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::message::Label;
    use alloc::vec;
    use byway_engine::handshake::PublicKey;
    use byway_wire::relay::{QuotaClass, RateClass, RelayKey};

    const FROM: (Local, SocketAddr) =
        (Local(0), SocketAddr::new(core::net::IpAddr::V4(core::net::Ipv4Addr::LOCALHOST), 1));

    fn key() -> RelayKey {
        RelayKey::new(&[3; 32])
    }

    fn book() -> RelayDirectory {
        let mut book = RelayDirectory::default();
        book.set_epoch(1);
        book.enter(RelayRow {
            relay: key().id(),
            key: PublicKey([2; 32]),
            word: 1,
            range: 9,
            range_key: key().range_key(9),
            rate: RateClass::UNLIMITED,
            quota: QuotaClass::UNLIMITED,
            operator: Label::default(),
            region: Label::default(),
            addresses: vec!["192.0.2.1:4748".parse().unwrap()],
            tcp: false,
            revoked: false,
        });
        book
    }

    fn beat(counter: u64, range: u8, flags: u8) -> Heartbeat {
        let report = HeartbeatReport {
            relay: key().id(),
            range,
            counter,
            epoch: 1,
            rate: 5,
            grants: 0,
            today: 0,
            month: 0,
            left: u64::MAX,
            flags,
        };
        Heartbeat::new(report, &key().range_key(range).heartbeat_key())
    }

    #[test]
    fn a_heartbeat_lists_a_relay_and_three_missed_ones_take_it_off() {
        let (mut book, at) = (book(), |seconds| Instant::ZERO + Duration::from_secs(seconds));
        assert!(book.draw(at(1), 0, 0, 9).0.is_empty(), "never heard of");
        let (heard, key) = book.hear(at(1), FROM, &beat(1, 9, 0));
        assert_eq!(
            (heard, key.is_some()),
            (HeartbeatResult::Taken { next: HEARTBEAT_INTERVAL, listed: true }, true)
        );
        assert_eq!(book.draw(at(35), 0, 0, 9).0.len(), 1);
        book.sweep(at(37));
        assert_eq!(book.draw(at(37), 0, 0, 9).0.len(), 0);
        assert_eq!(
            book.hear(at(40), FROM, &beat(2, 9, 0)).0,
            HeartbeatResult::Taken { next: HEARTBEAT_INTERVAL, listed: true }
        );
        assert_eq!(book.draw(at(41), 0, 0, 9).0.len(), 1);
        assert_eq!(
            book.take_seen(at(42), 1000),
            [LastHeartbeat { relay: super::tests::key().id(), at: 998, counter: 2, load: 5 }]
        );
        assert!(book.take_seen(at(43), 1001).is_empty());
    }

    #[test]
    fn copies_forgeries_and_strangers_are_told_apart() {
        let (mut book, now) = (book(), Instant::ZERO + Duration::from_secs(5));
        assert!(matches!(book.hear(now, FROM, &beat(7, 9, 0)).0, HeartbeatResult::Taken { .. }));
        assert_eq!(book.hear(now, FROM, &beat(7, 9, 0)).0, HeartbeatResult::Replayed);
        assert_eq!(book.hear(now, FROM, &beat(8, 8, 0)).0, HeartbeatResult::Forged);
        let report = HeartbeatReport { relay: RelayId([0; 16]), ..beat(9, 9, 0).report };
        assert_eq!(
            book.hear(now, FROM, &Heartbeat::new(report, &key().range_key(9).heartbeat_key())).0,
            HeartbeatResult::Unknown
        );
    }

    #[test]
    fn who_has_no_quota_left_is_not_listed_until_it_has() {
        let (mut book, now) = (book(), Instant::ZERO + Duration::from_secs(5));
        let with = |counter, left| {
            let report = HeartbeatReport { left, ..beat(counter, 9, HeartbeatReport::BUSY).report };
            Heartbeat::new(report, &key().range_key(9).heartbeat_key())
        };
        for (counter, left, listed) in
            [(1, MIN_LEFT_BYTES, true), (2, MIN_LEFT_BYTES - 1, false), (3, u64::MAX, true)]
        {
            let heard = book.hear(now, FROM, &with(counter, left)).0;
            assert_eq!(heard, HeartbeatResult::Taken { next: HEARTBEAT_INTERVAL, listed });
            assert_eq!(book.draw(now, 0, 0, 9).0.len(), usize::from(listed));
        }
    }

    #[test]
    fn who_drains_or_failed_a_test_is_not_listed() {
        let (mut book, now) = (book(), Instant::ZERO + Duration::from_secs(5));
        book.hear(now, FROM, &beat(1, 9, 0));
        book.failed(key().id());
        assert!(book.draw(now, 0, 0, 9).0.is_empty());
        book.found_alive(now, key().id());
        assert_eq!(book.draw(now, 0, 0, 9).0.len(), 1);
        let heard = book.hear(now, FROM, &beat(2, 9, HeartbeatReport::DRAINING)).0;
        assert_eq!(heard, HeartbeatResult::Taken { next: HEARTBEAT_INTERVAL, listed: false });
        assert!(book.draw(now, 0, 0, 9).0.is_empty());
    }
}
