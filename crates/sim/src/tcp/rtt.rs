//! Round-trip time and retransmission timeout, RFC 6298.

use super::options::{Recovery, TcpConfig};
use byway_wire::time::nanos;
use byway_wire::{Duration, Instant};

/// The retransmission timeout before the first sample (RFC 6298, 2.1).
const INITIAL_RTO: Duration = Duration::from_secs(1);

#[derive(Clone, Debug)]
pub(super) struct Rtt {
    /// Zero: no sample yet.
    pub smoothed: Duration,
    pub min: Duration,
    /// `smoothed` in nanoseconds, so that no sample needs a conversion.
    nanos: u64,
    variation: u64,
    base: u64,
    /// Timeouts in a row.
    pub backoff: u32,
    /// The smallest timeout, and the smallest margin above the smoothed RTT, in nanoseconds.
    least: u64,
    margin: u64,
    most: u64,
}

impl Rtt {
    pub(super) fn new(options: &TcpConfig) -> Self {
        Self {
            smoothed: Duration::ZERO,
            min: Duration::ZERO,
            nanos: 0,
            variation: 0,
            base: nanos(INITIAL_RTO),
            backoff: 0,
            least: nanos(options.min_rto),
            margin: if options.recovery == Recovery::Rack { nanos(options.min_rto) } else { 0 },
            most: nanos(options.max_rto),
        }
    }

    /// RFC 6298, 2.2 to 2.4.
    pub(super) fn sample(&mut self, rtt: Duration) {
        let sample = nanos(rtt).max(1);
        let mut smoothed = self.nanos;
        if smoothed == 0 {
            smoothed = sample;
            self.variation = sample / 2;
            self.min = rtt;
        } else {
            self.variation = self.variation - self.variation / 4 + smoothed.abs_diff(sample) / 4;
            smoothed = smoothed - smoothed / 8 + sample / 8;
            self.min = self.min.min(rtt);
        }
        self.nanos = smoothed;
        self.smoothed = Duration::from_nanos(smoothed);
        let beyond = self.variation.saturating_mul(4).max(self.margin);
        self.base = smoothed.saturating_add(beyond).max(self.least);
    }

    /// The timeout in nanoseconds, doubled for each in a row (5.5).
    #[inline]
    fn timeout_nanos(&self) -> u64 {
        let backed_off = self.base.saturating_mul(1 << self.backoff.min(16));
        backed_off.min(self.most.max(self.base))
    }

    /// Returns the most time after the smoothed RTT at which a delayed ACK may arrive.
    #[inline]
    pub(super) fn worst_ack_delay(&self) -> Duration {
        Duration::from_nanos(self.least)
    }

    /// When a segment that is sent at `now` times out.
    #[inline]
    pub(super) fn times_out(&self, now: Instant) -> Instant {
        Instant::from_nanos(now.as_nanos().saturating_add(self.timeout_nanos()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn timeout(rtt: &Rtt) -> Duration {
        rtt.times_out(Instant::ZERO).since(Instant::ZERO)
    }

    #[test]
    fn follows_the_rfc() {
        let ms = Duration::from_millis;
        let mut rtt = Rtt::new(&TcpConfig { min_rto: ms(1), max_rto: ms(5_000), ..TcpConfig::default() });
        assert_eq!(timeout(&rtt), ms(1_000));
        rtt.sample(ms(100));
        assert_eq!(timeout(&rtt), ms(300), "R + 4 R/2");
        rtt.sample(ms(180));
        // RTTVAR = 3/4 * 50 + 80/4 = 57.5, SRTT = 7/8 * 100 + 180/8 = 110.
        assert_eq!((rtt.smoothed, timeout(&rtt)), (ms(110), ms(340)));
        rtt.backoff = 2;
        assert_eq!(timeout(&rtt), ms(1_360));
        rtt.backoff = 60;
        assert_eq!(timeout(&rtt), ms(5_000));
        let mut rtt = Rtt::new(&TcpConfig::default());
        for _ in 0..100 {
            rtt.sample(ms(20));
        }
        assert_eq!((timeout(&rtt), rtt.min), (ms(200), ms(20)), "the least timeout");
    }

    /// Linux's timeout (`__tcp_set_rto`) is the RTT plus its variation, which counts as at least
    /// 200 ms.
    #[test]
    fn linux_adds_its_least_timeout_to_the_rtt() {
        let ms = Duration::from_millis;
        let mut rtt = Rtt::new(&TcpConfig::linux());
        for _ in 0..100 {
            rtt.sample(ms(20));
        }
        assert_eq!(timeout(&rtt).as_millis(), 220);
        rtt.sample(ms(820));
        // RTTVAR = 800/4, SRTT = 20 + 800/8.
        assert_eq!(timeout(&rtt).as_millis(), 920);
    }
}
