//! What a relay has to do with registries: ranges of grants, heartbeats, and its end.

use super::Relay;
use crate::heart::{Heart, Standing};
use crate::report::Dropped;
use alloc::vec::Vec;
use byway_wire::heartbeat::{Answered, BEAT_LEN, Beat, RelayId, Report};
use byway_wire::relay::{RANGES, RangeKey, canonical};
use byway_wire::{Datagram, Duration, Ecn, Instant, Writer};
use core::net::SocketAddr;

impl Relay {
    /// Its name at registries.
    #[must_use]
    pub const fn id(&self) -> RelayId {
        self.keys.current().id()
    }

    /// The key of a range of grant ids, to be handed to one registry. The registry's words are carried after
    /// [`set_epoch`](Self::set_epoch). Another key of the relay's is another key of the range.
    #[must_use]
    pub fn range_key(&self, range: u8) -> RangeKey {
        self.keys.current().range_key(range)
    }

    /// Carries what the registry that has this range mints in `epoch`, and what it minted in the one before for
    /// `last_holds` more. An epoch never falls, and what is over never comes back. False if it would, or if there is no
    /// such range.
    pub fn set_epoch(&mut self, now: Instant, range: u8, epoch: u32, last_holds: Duration) -> bool {
        self.keys.set_epoch(now, range, epoch, last_holds)
    }

    /// The epoch of a range, and for how long the one before holds; `None` if no registry may mint there.
    #[must_use]
    pub fn epoch(&self, now: Instant, range: u8) -> Option<(u32, Duration)> {
        Some((self.keys.epoch(range)?, self.keys.last_holds(range, now)?))
    }

    /// All ranges in which a registry may mint, with the [epoch](Self::epoch) of each.
    pub fn epochs(&self, now: Instant) -> impl Iterator<Item = (u8, u32, Duration)> {
        let epoch = move |range| self.epoch(now, range).map(|(epoch, last_holds)| (range, epoch, last_holds));
        (0..RANGES as u8).filter_map(epoch)
    }

    /// Counts what changed in [`epochs`](Self::epochs), so that its owner knows when to keep them.
    #[must_use]
    pub const fn epoch_changes(&self) -> u64 {
        self.keys.changes()
    }

    /// Carries no more what was minted in this range, and beats no more for the registry that has it.
    pub fn close_range(&mut self, range: u8) {
        self.keys.close(range);
        self.heart.unwatch(range);
    }

    /// Beats for the registry that has `range`, in `first` for the first time: one datagram to each of its addresses, of
    /// which the first four count. Its answers tell when the next is due, and [the epoch](Self::set_epoch). False if the relay
    /// beats for eight others already.
    pub fn watch(&mut self, now: Instant, range: u8, addresses: Vec<SocketAddr>, first: Duration) -> bool {
        let key = self.range_key(range).heartbeat_key();
        self.heart.watch(range, key, addresses, now + first)
    }

    /// How it stands with the registry that has `range`; `None` if it beats for none there.
    #[must_use]
    pub fn standing(&self, range: u8) -> Option<Standing> {
        self.heart.standing(range)
    }

    /// The counter of its last beat. To be kept: [`Config::beat_counter`](crate::Config::beat_counter) begins above it.
    #[must_use]
    pub const fn beat_counter(&self) -> u64 {
        self.heart.counter()
    }

    /// Takes no word that it does not carry for already, and tells registries that it ends. Everything else goes on.
    pub fn drain(&mut self, now: Instant) {
        self.heart.drain(now);
    }

    pub(super) fn beat(&mut self, now: Instant) {
        let (used, load) = (self.used(now), self.load(now));
        while let Some((report, key, addresses)) = self.heart.beat(now) {
            let epoch = self.keys.epoch(report.range).unwrap_or(0);
            let (rate, grants, today, month) = (load.rate, load.grants, used.today, used.this_month);
            let report = Report { epoch, rate, grants, today, month, ..report };
            let mut bytes = [0; BEAT_LEN];
            Beat::new(report, &key).write(&mut Writer::new(&mut bytes));
            for address in addresses {
                let way = super::way(&self.links, canonical(*address), Ecn::NotEct);
                if way.is_some_and(|way| self.queue.push(way, &bytes, 0)) {
                    self.counters.beats += 1;
                }
            }
        }
    }

    pub(super) fn answered(&mut self, now: Instant, datagram: &Datagram<'_>) {
        let answered = Answered::read(datagram.payload).ok();
        let Some((range, orders)) = answered.and_then(|answered| self.heart.answered(now, &answered)) else {
            return self.drop(now, Dropped::BadAnswer, 0, canonical(datagram.remote));
        };
        self.counters.answers += 1;
        self.keys.set_epoch(now, range, orders.epoch, Duration::from_secs(orders.last_holds.into()));
    }

    pub(super) fn new_heart(&mut self) {
        self.heart = Heart::new(self.keys.current().id(), self.heart.counter());
    }
}
