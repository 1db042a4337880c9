//! Cross traffic that does not react to congestion: UDP datagrams at a constant rate, or as a
//! Poisson process of that mean rate. A source can number its datagrams, to measure how long each
//! of them takes to the sink.

use crate::random::Random;
use byway_wire::time::nanos;
use byway_wire::{Datagram, Dscp, Duration, Ecn, Input, Instant, Local, Machine, Transmit, TransmitBuffer};
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
    /// Number of datagrams sent.
    pub sent: u64,
    /// Number of datagrams that arrived.
    pub heard: u64,
    /// Bytes of UDP payload received.
    pub heard_bytes: u64,
    pending: bool,
    /// Whether datagrams are numbered.
    numbered: bool,
    /// When each numbered datagram was sent, or which came when.
    times: Vec<(u64, Instant)>,
}

/// Bytes of a number.
const NUMBER_LEN: usize = 8;

impl Cbr {
    /// A source of datagrams with `payload` bytes each. Only the length of the datagrams is
    /// simulated, not their bytes. The source sends at even intervals from `from` until `until`, at
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

    /// Sends at the same mean rate, but as a Poisson process.
    #[must_use]
    pub fn poisson(mut self, random: Random) -> Self {
        self.random = Some(random);
        let first = self.gap();
        self.next += first;
        self
    }

    /// Numbers the datagrams, which then have at least eight bytes, and records their sending
    /// times.
    #[must_use]
    pub fn numbered(mut self) -> Self {
        self.numbered = true;
        self
    }

    /// Returns the delay of each numbered datagram to `sink`. `None`: it is lost, or in flight.
    #[must_use]
    pub fn delays(&self, sink: &Self) -> Vec<Option<Duration>> {
        let mut delays = vec![None; self.times.len()];
        for (number, came) in &sink.times {
            let place = usize::try_from(*number).unwrap_or(usize::MAX);
            if let (Some(delay), Some((_, sent))) = (delays.get_mut(place), self.times.get(place)) {
                *delay = Some(came.since(*sent));
            }
        }
        delays
    }

    /// Makes a sink that only counts, and records the arrival times of numbered datagrams.
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
            numbered: false,
            times: Vec::new(),
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
    fn handle(&mut self, now: Instant, input: Input<'_>) {
        if let Input::Datagram(Datagram { payload, phantom, .. }) = input {
            if let Some(number) = payload.first_chunk::<NUMBER_LEN>() {
                self.times.push((u64::from_be_bytes(*number), now));
            }
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

    fn transmit(&mut self, now: Instant, out: &mut TransmitBuffer<'_>) -> Option<Transmit> {
        let remote = self.to.filter(|_| core::mem::take(&mut self.pending))?;
        let mut written = 0;
        if self.numbered
            && let Some(number) = out.buffer.first_chunk_mut::<NUMBER_LEN>()
        {
            *number = self.sent.to_be_bytes();
            self.times.push((self.sent, now));
            written = NUMBER_LEN;
        }
        self.sent += 1;
        let phantom = self.size.saturating_sub(written);
        Some(Transmit {
            local: Local(0),
            remote,
            ecn: Ecn::NotEct,
            dscp: Dscp::BestEffort,
            size: written,
            segment: written,
            phantom,
        })
    }

    fn deadline(&self) -> Option<Instant> {
        (self.next < self.until).then_some(self.next)
    }
}
