//! Short packets beside full ones.

/// Makes the delays of short packets comparable with those of full ones.
///
/// A packet has arrived when its last bit has, so on an empty line one of 60 bytes comes earlier than one of 1500 by almost all of
/// the time that the line takes for the long one: 1.2 ms at 10 Mbit/s, 12 ms at 1 Mbit/s. A base that a short packet has set makes every
/// full one look as if it had waited for so long.
#[derive(Clone, Copy, Debug, Default)]
pub struct Short {
    /// The time that a full packet takes on the line, in nanoseconds; zero as long as it is not known.
    time: i64,
    /// What the packet that set the base lacked, as a share of a full one.
    base_lacks: f64,
}

impl Short {
    /// A full packet takes `time` nanoseconds on the line, by what is known now. Returns by how much the base that was set before is to
    /// be moved, if it was that of a short packet.
    pub fn learn(&mut self, time: i64) -> i64 {
        let change = time - core::mem::replace(&mut self.time, time);
        (change as f64 * self.base_lacks) as i64
    }

    /// The delay that a packet with this `delay` would have met if it had been full, where it lacked the share `lacks` of that.
    #[must_use]
    pub fn filled(&self, delay: i64, lacks: f64) -> i64 {
        delay.saturating_add((self.time as f64 * lacks) as i64)
    }

    /// The base is now that of a packet which lacks so much.
    pub const fn set_base(&mut self, lacks: f64) {
        self.base_lacks = lacks;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn short_packets_of_an_empty_line_are_told_as_late_as_full_ones() {
        let mut short = Short::default();
        assert_eq!(short.filled(20_000, 0.75), 20_000, "not known yet");
        short.learn(1_200);
        assert_eq!((short.filled(20_000, 0.75), short.filled(20_900, 0.0)), (20_900, 20_900));
    }

    #[test]
    fn the_base_of_a_short_packet_moves_with_what_is_known_of_the_line_and_that_of_a_full_one_stays() {
        let mut short = Short::default();
        short.set_base(0.5);
        assert_eq!((short.learn(1_200), short.learn(1_000), short.learn(1_000)), (600, -100, 0));
        short.set_base(0.0);
        assert_eq!(short.learn(5_000), 0);
    }
}
