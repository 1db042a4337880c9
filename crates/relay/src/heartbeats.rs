//! Heartbeats to the registries at which the relay is enrolled.

use crate::quota_usage::{Load, Used};
use alloc::vec::Vec;
use byway_wire::heartbeat::{Heartbeat, HeartbeatAnswer, HeartbeatOrders, HeartbeatReport, RelayId};
use byway_wire::relay::MacKey;
use byway_wire::{Duration, Instant};
use core::net::SocketAddr;

/// The most registries to which one relay sends heartbeats.
pub(crate) const MAX_REGISTRIES: usize = 8;
/// The most addresses of one registry to which each heartbeat goes.
const MAX_ADDRESSES: usize = 4;
/// The shortest time between heartbeats, even if a registry asks for a shorter one.
const MIN_HEARTBEAT_INTERVAL: Duration = Duration::from_secs(1);
/// The longest time between heartbeats, even if a registry asks for a longer one.
const MAX_HEARTBEAT_INTERVAL: Duration = Duration::from_secs(600);
/// Time between beats until a registry has answered.
const DEFAULT_HEARTBEAT_INTERVAL: Duration = Duration::from_secs(10);

/// A relay's status at one registry.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RegistryStatus {
    /// When the registry last answered a heartbeat. `None`: never.
    pub answered: Option<Instant>,
    /// Number of heartbeats that were not answered since then.
    pub unanswered: u32,
    /// Whether the registry names the relay to senders that ask.
    pub listed: bool,
}

#[derive(Debug)]
struct RegistryEnrolment {
    range: u8,
    addresses: Vec<SocketAddr>,
    key: MacKey,
    /// The number of the last beat.
    counter: u64,
    next: Instant,
    every: Duration,
    standing: RegistryStatus,
}

#[derive(Debug)]
pub(crate) struct Heartbeats {
    id: RelayId,
    registries: Vec<RegistryEnrolment>,
    counter: u64,
    draining: bool,
    busy: bool,
}

impl Heartbeats {
    pub(crate) const fn new(id: RelayId, counter: u64) -> Self {
        Self { id, registries: Vec::new(), counter, draining: false, busy: false }
    }

    /// Beats for the registry that has `range` from `first` on.
    pub(crate) fn watch(
        &mut self,
        range: u8,
        key: MacKey,
        mut addresses: Vec<SocketAddr>,
        first: Instant,
    ) -> bool {
        self.unwatch(range);
        if self.registries.len() >= MAX_REGISTRIES {
            return false;
        }
        addresses.truncate(MAX_ADDRESSES);
        let standing = RegistryStatus::default();
        self.registries.push(RegistryEnrolment {
            range,
            addresses,
            key,
            counter: 0,
            next: first,
            every: DEFAULT_HEARTBEAT_INTERVAL,
            standing,
        });
        true
    }

    pub(crate) fn unwatch(&mut self, range: u8) {
        self.registries.retain(|registry| registry.range != range);
    }

    pub(crate) fn standing(&self, range: u8) -> Option<RegistryStatus> {
        Some(self.registries.iter().find(|registry| registry.range == range)?.standing)
    }

    /// Marks all later heartbeats with "ends soon", and makes the next one due now.
    pub(crate) fn drain(&mut self, now: Instant) {
        self.draining = true;
        for registry in &mut self.registries {
            registry.next = now;
        }
    }

    /// Sets whether the host has a transfer of its own. The next heartbeat is soon if that changes.
    pub(crate) fn set_busy(&mut self, now: Instant, busy: bool) {
        if core::mem::replace(&mut self.busy, busy) != busy {
            for registry in self.registries.iter_mut().filter(|registry| registry.standing.answered.is_some())
            {
                registry.next = registry.next.min(now + MIN_HEARTBEAT_INTERVAL);
            }
        }
    }

    /// The number of the last beat, over all registries.
    pub(crate) const fn counter(&self) -> u64 {
        self.counter
    }

    pub(crate) const fn is_draining(&self) -> bool {
        self.draining
    }

    pub(crate) fn deadline(&self) -> Option<Instant> {
        self.registries.iter().map(|registry| registry.next).min()
    }

    /// The next heartbeat that is due, and the registry's addresses. `None`: no heartbeat is due.
    pub(crate) fn beat(
        &mut self,
        now: Instant,
        epoch: impl Fn(u8) -> Option<u32>,
        carries: (Load, Used, u64),
    ) -> Option<(Heartbeat, &[SocketAddr])> {
        let registry = self.registries.iter_mut().find(|registry| registry.next <= now)?;
        self.counter = self.counter.saturating_add(1);
        registry.counter = self.counter;
        registry.next = now + registry.every;
        registry.standing.unanswered = registry.standing.unanswered.saturating_add(1);
        let (load, used, left) = carries;
        let draining = if self.draining { HeartbeatReport::DRAINING } else { 0 };
        let busy = if self.busy { HeartbeatReport::BUSY } else { 0 };
        let report = HeartbeatReport {
            relay: self.id,
            range: registry.range,
            counter: registry.counter,
            epoch: epoch(registry.range).unwrap_or(0),
            rate: load.rate,
            grants: load.grants,
            today: used.today,
            month: used.this_month,
            left,
            flags: draining | busy,
        };
        Some((Heartbeat::new(report, &registry.key), &registry.addresses))
    }

    /// Handles an answer to the last heartbeat for a range. `None`: it is not such an answer, or
    /// not authentic.
    pub(crate) fn answered(
        &mut self,
        now: Instant,
        answered: &HeartbeatAnswer,
    ) -> Option<(u8, HeartbeatOrders)> {
        let orders = answered.orders;
        let registry = self.registries.iter_mut().find(|registry| registry.counter == orders.counter)?;
        if !answered.is_authentic(&registry.key) {
            return None;
        }
        registry.every = Duration::from_millis(orders.next_millis.into())
            .clamp(MIN_HEARTBEAT_INTERVAL, MAX_HEARTBEAT_INTERVAL);
        // Of several answers to one beat the last says when; none brings a beat back that already
        // left.
        registry.next = now + registry.every;
        registry.standing = RegistryStatus { answered: Some(now), unanswered: 0, listed: orders.is_listed() };
        Some((registry.range, orders))
    }
}
