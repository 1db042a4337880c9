//! Cross traffic that listens to nobody: datagrams at a constant rate, or as a Poisson process of that rate.

use crate::random::Random;
use byway_wire::time::nanos;
use byway_wire::{Datagram, Dscp, Duration, Ecn, Input, Instant, Local, Machine, Out, Transmit};
use core::net::SocketAddr;

/// A source of UDP datagrams, or their sink.
#[derive(Debug)]
pub struct Cbr {
    to: Option<SocketAddr>,
    size: usize,
    every: Duration,
    random: Option<Random>,
    next: Instant,
    until: Instant,
    /// Datagrams sent.
    pub sent: u64,
    /// Datagrams received.
    pub heard: u64,
    /// Bytes of UDP payload received.
    pub heard_bytes: u64,
    pending: bool,
}

impl Cbr {
    /// Sends datagrams of `payload` bytes (UDP payload; nothing of it is carried) from `from` until `until`, evenly, at
    /// `rate` bits of payload per second.
    #[must_use]
    pub fn source(to: SocketAddr, rate: u64, payload: usize, from: Instant, until: Instant) -> Self {
        let bits = payload as u128 * 8 * 1_000_000_000;
        let every = u64::try_from(bits / u128::from(rate.max(1))).unwrap_or(u64::MAX).max(1);
        Self {
            to: Some(to),
            size: payload,
            every: Duration::from_nanos(every),
            next: from,
            until,
            ..Self::sink()
        }
    }

    /// The same mean rate, but as a Poisson process.
    #[must_use]
    pub fn poisson(mut self, random: Random) -> Self {
        self.random = Some(random);
        let first = self.gap();
        self.next += first;
        self
    }

    /// Only counts.
    #[must_use]
    pub fn sink() -> Self {
        Self {
            to: None,
            size: 0,
            every: Duration::ZERO,
            random: None,
            next: Instant::FAR_FUTURE,
            until: Instant::ZERO,
            sent: 0,
            heard: 0,
            heard_bytes: 0,
            pending: false,
        }
    }

    fn gap(&mut self) -> Duration {
        match &mut self.random {
            Some(random) => random.exponential(self.every).max(Duration::from_nanos(1)),
            None => self.every,
        }
    }
}

impl Machine for Cbr {
    fn handle(&mut self, _: Instant, input: Input<'_>) {
        if let Input::Datagram(Datagram { payload, phantom, .. }) = input {
            self.heard += 1;
            self.heard_bytes += (payload.len() + phantom) as u64;
        }
    }

    fn wake(&mut self, now: Instant) {
        if self.deadline().is_some_and(|next| next <= now) {
            self.pending = true;
            let gap = self.gap();
            // Whoever was frozen does not make up for it.
            self.next = if nanos(now.since(self.next)) > nanos(gap) { now + gap } else { self.next + gap };
        }
    }

    fn transmit(&mut self, _: Instant, _: &mut Out<'_>) -> Option<Transmit> {
        let remote = self.to.filter(|_| core::mem::take(&mut self.pending))?;
        self.sent += 1;
        let phantom = self.size;
        Some(Transmit {
            local: Local(0),
            remote,
            ecn: Ecn::NotEct,
            dscp: Dscp::BestEffort,
            size: 0,
            segment: 0,
            phantom,
        })
    }

    fn deadline(&self) -> Option<Instant> {
        (self.next < self.until).then_some(self.next)
    }
}
