//! The cost of a transfer to others: the time for which it yielded, and the delay of the queues
//! that it met while the line seemed otherwise unused. It caused those queues itself.

use byway_wire::Duration;

/// The cost of a transfer to others so far.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct CostToOthers {
    /// Time in which the transfer yielded.
    pub yielded: Duration,
    /// Time in which it did not yield and its queueing delay was measured.
    filling: Duration,
    /// The sum of queueing delay over that time, in seconds times seconds.
    queue_sum: f64,
}

impl CostToOthers {
    /// Adds the time `passed`. `queues`: for each path in use, its bits per second, and its
    /// queueing delay if measured.
    pub(crate) fn note(
        &mut self,
        passed: Duration,
        is_yielding: bool,
        queues: impl Iterator<Item = (f64, Option<Duration>)>,
    ) {
        if is_yielding {
            self.yielded += passed;
            return;
        }
        let (mut rates, mut weighted) = (0.0, 0.0);
        for (rate, queue) in queues.filter_map(|(rate, queue)| Some((rate, queue?))) {
            rates += rate;
            weighted += rate * queue.as_secs_f64();
        }
        if rates > 0.0 {
            self.filling += passed;
            self.queue_sum += weighted / rates * passed.as_secs_f64();
        }
    }

    /// Returns the mean queueing delay of the transfer's packets while it did not yield, which
    /// others on the same links share. `None`: not measured.
    #[must_use]
    pub fn added_delay(&self) -> Option<Duration> {
        let seconds = self.filling.as_secs_f64();
        (seconds > 0.0).then(|| Duration::from_nanos((self.queue_sum / seconds * 1e9) as u64))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    #[test]
    fn queues_count_by_what_is_sent_through_them_and_not_while_it_yields() {
        let mut cost = CostToOthers::default();
        assert_eq!(cost.added_delay(), None);
        let millis = |queue| Some(Duration::from_millis(queue));
        cost.note(SECOND, false, [(3e6, millis(4)), (1e6, millis(8)), (9e6, None)].into_iter());
        assert_eq!(cost.added_delay(), millis(5));
        cost.note(SECOND * 3, true, [(1e6, millis(90))].into_iter());
        cost.note(SECOND * 4, false, [(0.0, millis(70))].into_iter());
        cost.note(SECOND, false, [(1e6, millis(1))].into_iter());
        assert_eq!((cost.yielded, cost.added_delay()), (SECOND * 3, millis(3)));
    }
}
