//! Losses that come in bursts.

use crate::random::Random;
use byway_wire::Instant;

/// A line that alternates between a good and a bad state, with a loss probability for each state.
/// The model is Gilbert's ("Capacity of a burst-noise channel", 1960), as Elliott extended it
/// (1963). The state may change once per packet. On an idle line of some rate it may change once
/// per time that a full packet takes, so that a bad spell ends though nobody sends.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct GilbertElliott {
    /// Probability per packet that a good line turns bad.
    pub to_bad: f64,
    /// Probability per packet that a bad line turns good; its inverse is the mean length of a bad
    /// spell in packets.
    pub to_good: f64,
    /// Probability that a packet is lost while the line is good.
    pub loss_good: f64,
    /// Probability that a packet is lost while the line is bad.
    pub loss_bad: f64,
}

impl GilbertElliott {
    /// A line that loses nothing while good and everything while bad. In the long run it loses the
    /// share `loss` of all packets, in runs of `length` packets on average. A `length` below 1
    /// counts as 1.
    #[must_use]
    pub fn of(loss: f64, length: f64) -> Self {
        let to_good = 1.0 / length.max(1.0);
        let loss = loss.clamp(0.0, 0.999_999);
        Self { to_bad: (to_good * loss / (1.0 - loss)).min(1.0), to_good, loss_good: 0.0, loss_bad: 1.0 }
    }

    /// The share of packets that is lost in the long run.
    #[must_use]
    pub fn mean(&self) -> f64 {
        let moves = self.to_bad + self.to_good;
        let bad = if moves > 0.0 { self.to_bad / moves } else { 0.0 };
        bad * self.loss_bad + (1.0 - bad) * self.loss_good
    }
}

/// Bytes of the packet whose time on the line is a step of the chain while nothing is sent: the
/// largest of an Ethernet.
const STEP_BYTES: u64 = 1_500;
/// The most steps that make a difference: of a spell of 1,000,000 packets, a third is left then.
const MAX_STEPS: u64 = 1 << 20;

/// The state of the loss model: whether the line is in a bad spell, and since when it is idle.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Spell {
    bad: bool,
    idle_at: Option<Instant>,
}

impl Spell {
    /// Moves on by the whole packet times for which the line was idle until `now`. Its `rate` is in
    /// bits per second. A line without a rate has no packet time: there the chain moves on with
    /// packets alone.
    pub fn rest(&mut self, chain: &GilbertElliott, now: Instant, rate: Option<u64>, random: &mut Random) {
        let (Some(idle_at), Some(rate)) = (self.idle_at, rate) else { return };
        let bits = now.since(idle_at).as_nanos().saturating_mul(u128::from(rate)) / 1_000_000_000;
        let steps = bits / u128::from(8 * STEP_BYTES);
        let moves = chain.to_bad + chain.to_good;
        if steps == 0 || moves <= 0.0 {
            return;
        }
        // Two states: what is known of the present one fades by the same factor with each step.
        let steps = u64::try_from(steps).unwrap_or(MAX_STEPS).min(MAX_STEPS);
        let known = libm::pow(1.0 - moves, steps as f64);
        let usual = chain.to_bad / moves;
        let now_bad = if self.bad { 1.0 } else { 0.0 };
        self.bad = random.chance(usual + (now_bad - usual) * known);
    }

    /// Moves on by a packet, which the line has sent at `idle_at`. It finds the line in the state
    /// that the chain moved to. Whether the packet is lost.
    pub fn loses(&mut self, chain: &GilbertElliott, idle_at: Instant, random: &mut Random) -> bool {
        self.idle_at = Some(idle_at);
        self.bad ^= random.chance(if self.bad { chain.to_good } else { chain.to_bad });
        random.chance(if self.bad { chain.loss_bad } else { chain.loss_good })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use byway_wire::Duration;

    /// Returns which of 200,000 packets a line of 12 Mbit/s loses. The line is idle for `gap`
    /// microseconds after each packet.
    fn lost(gap: u64, rate: Option<u64>) -> Vec<bool> {
        let chain = GilbertElliott::of(0.1, 50.0);
        let (mut spell, mut random) = (Spell::default(), Random::new(7));
        let step = Duration::from_micros(1_000 + gap);
        let each = (0..200_000_u32).map(|packet| {
            let begins = Instant::ZERO + step * packet;
            spell.rest(&chain, begins, rate, &mut random);
            spell.loses(&chain, begins + Duration::from_millis(1), &mut random)
        });
        each.collect()
    }

    /// The share that is lost, and how many are lost in a row on average.
    fn share_and_run(lost: &[bool]) -> (f64, f64) {
        let all = lost.iter().filter(|lost| **lost).count() as f64;
        let runs = lost.split(|lost| !lost).filter(|run| !run.is_empty()).count() as f64;
        (all / lost.len() as f64, all / runs)
    }

    #[test]
    fn a_bad_spell_ends_though_nobody_sends() {
        let rate = Some(12_000_000);
        for gap in [0, 900] {
            let (share, run) = share_and_run(&lost(gap, rate));
            assert!((0.08..0.12).contains(&share) && (42.0..58.0).contains(&run), "{gap}: {share} {run}");
        }
        // One packet time of rest and one packet are two steps: a bad line is good after them with
        // a probability of 4 %.
        let (share, run) = share_and_run(&lost(1_000, rate));
        assert!((0.08..0.12).contains(&share) && (21.0..30.0).contains(&run), "{share} {run}");
        // What a timeout of a second meets has nothing to do with what the one before met.
        let (share, run) = share_and_run(&lost(1_000_000, rate));
        assert!((0.08..0.12).contains(&share) && run < 1.3, "{share} {run}");
        // Without a rate the chain knows only packets.
        assert_eq!(lost(1_000_000, None), lost(0, rate));
    }
}
