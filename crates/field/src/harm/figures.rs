//! The figures of two runs: requests alone, and the same requests beside transfers.

use byway_lab::Record;
use byway_lab::record::{LinkRecord, RequestRecord};
use byway_lab::request_times;
use byway_lab::utilization::{self, at};

/// The bounds that byway promises for its background class.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Bounds {
    /// The largest median of the requests' times, each divided by its time alone.
    pub median: f64,
    /// The 90th percentile of the ratios of requests' times, at most.
    pub p90: f64,
    /// The smallest share of the capacity that the requests leave.
    pub share: f64,
    /// Seconds until the transfers have the link again.
    pub regain: f64,
}

impl Bounds {
    /// Returns the bounds for the delay of requests by `bulk` background transfers on a line of
    /// `mbit` Mbit/s, and for the transfers' throughput. On a slower line, more delay is allowed,
    /// because each packet of a transfer takes longer to send.
    #[must_use]
    pub const fn of(mbit: u32, bulk: u32) -> Self {
        let (median, p90, share) = match (bulk, mbit) {
            (0..=1, 0..=1) => (1.15, 1.45, 0.25),
            (0..=1, 2..=3) => (1.25, 1.45, 0.50),
            (0..=1, 4..=6) => (1.25, 1.45, 0.75),
            (0..=1, 7..=29) => (1.25, 1.40, 0.82),
            (0..=1, _) => (1.05, 1.10, 0.86),
            (_, 0..=6) => (1.45, 1.70, 0.60),
            (_, _) => (1.28, 1.42, 0.80),
        };
        Self { median, p90, share, regain: 10.0 }
    }
}

/// The request times and the transfers' throughput in a run.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Figures {
    pub(super) requests: usize,
    pub(super) finished: usize,
    /// Seconds alone, median and ninetieth percentile.
    pub(super) alone: [f64; 2],
    /// Seconds beside the transfers; infinite if too many requests did not finish.
    pub(super) beside: [f64; 2],
    /// Percentiles of each request's time divided by its time alone.
    pub(super) ratio: [f64; 2],
    /// The share of delivered file bytes in the capacity that requests left. `None`: there was
    /// none.
    pub(super) share: Option<f64>,
    /// Seconds until the transfers had the link.
    pub(super) regain: Option<f64>,
}

/// Returns the figures of `beside`, whose requests are those of `alone`. `None`: no request
/// finished alone.
pub(super) fn figures(alone: &Record, beside: &Record) -> Option<Figures> {
    let (quiet, loud) = (&alone.requests.first()?.list, &beside.requests.first()?.list);
    let both = |times: &[Option<f64>]| {
        Some([
            request_times::percentile(times.iter().copied(), 50.0)?,
            request_times::percentile(times.iter().copied(), 90.0)?,
        ])
    };
    let times = |list: &[RequestRecord]| both(&list.iter().map(|request| request.took).collect::<Vec<_>>());
    let ratios: Vec<_> = request_times::ratios(loud, quiet).collect();
    let (start, end) = company(loud)?;
    Some(Figures {
        requests: loud.len(),
        finished: loud.iter().filter(|request| request.took.is_some()).count(),
        alone: times(quiet)?,
        beside: times(loud)?,
        ratio: both(&ratios)?,
        share: share(alone, beside, start, end),
        regain: regain(bottleneck(beside)?, beside.sample, end),
    })
}

impl Figures {
    /// Returns the bounds that do not hold.
    pub(super) fn missed(&self, bounds: &Bounds) -> Vec<&'static str> {
        let [median, p90] = self.ratio;
        [
            ("median", median <= bounds.median),
            ("p90", p90 <= bounds.p90),
            ("share", self.share.is_some_and(|share| share >= bounds.share)),
            ("regain", self.regain.is_some_and(|seconds| seconds <= bounds.regain)),
        ]
        .into_iter()
        .filter_map(|(bound, holds)| (!holds).then_some(bound))
        .collect()
    }
}

/// Returns the time of the first request and the end of the last, in seconds.
fn company(list: &[RequestRecord]) -> Option<(f64, f64)> {
    let begun = list.iter().filter_map(|request| request.began);
    let ended = list.iter().filter_map(|request| Some(request.began? + request.took.unwrap_or(0.0)));
    Some((begun.min_by(f64::total_cmp)?, ended.max_by(f64::total_cmp)?))
}

/// The link with a rate limit, in the direction of the answers.
fn bottleneck(record: &Record) -> Option<&LinkRecord> {
    record.links.iter().find(|link| link.rate > 0 && link.to == "far")
}

/// Returns the file bytes received, divided by the link's capacity in that time minus the bytes of
/// the requests alone.
fn share(alone: &Record, beside: &Record, start: f64, end: f64) -> Option<f64> {
    let link = bottleneck(alone)?;
    let needed = link.sent.last()?.saturating_sub(at(&link.sent, alone.sample, start)) as f64;
    let left = link.rate as f64 / 8.0 * (end - start) - needed;
    let came = |received: &[u64]| {
        at(received, beside.sample, end).saturating_sub(at(received, beside.sample, start))
    };
    let files: u64 = beside.transfers.iter().map(|transfer| came(&transfer.received)).sum();
    (left > 0.0).then(|| files as f64 / left)
}

/// Returns the time after `end` until the transfers have filled the link for a second.
fn regain(link: &LinkRecord, sample: f64, end: f64) -> Option<f64> {
    utilization::filled_after(&link.sent, sample, end, |from, to| link.rate as f64 / 8.0 * (to - from))
}

#[cfg(test)]
mod tests {
    use super::*;
    use byway_lab::record::{RequestsRecord, TransferRecord};

    /// A record of ten seconds on a link of 8 Mbit/s. Five requests begin at seconds 2 to 6, and
    /// take `took` seconds; `None` never ends. A transfer receives `company` bytes per tenth of a
    /// second until second 8.
    fn run(took: [Option<f64>; 5], company: u64) -> Record {
        let list = took.iter().enumerate().map(|(number, took)| RequestRecord {
            size: 20_000,
            began: Some(2.0 + number as f64),
            took: *took,
            given_up: false,
        });
        let requests = vec![RequestsRecord { name: "requests".into(), list: list.collect() }];
        let step = |sample: u64| match sample {
            0..80 => company,
            // All that the link carries.
            _ => 100_000 * u64::from(company > 0),
        };
        let received: Vec<u64> = (0..=100).map(|sample| (0..sample).map(step).sum()).collect();
        let asked = |sample: u64| 10_000 * u64::from((20..70).contains(&sample));
        let sent = (0..=100).map(|sample| received[sample as usize] + (0..sample).map(asked).sum::<u64>());
        let link = |from: &str, to: &str, rate| LinkRecord {
            from: from.into(),
            to: to.into(),
            rate,
            sent: sent.clone().collect(),
            ..LinkRecord::default()
        };
        Record {
            sample: 0.1,
            requests,
            links: vec![
                link("web", "near", 0),
                link("near", "far", 8_000_000),
                link("far", "near", 8_000_000),
            ],
            transfers: vec![TransferRecord { received, ..TransferRecord::default() }],
            ..Record::default()
        }
    }

    const BOUNDS: Bounds = Bounds::of(10, 1);

    const QUIET: [Option<f64>; 5] = [Some(0.1), Some(0.1), Some(0.2), Some(0.1), Some(0.1)];

    #[test]
    fn each_request_is_compared_with_itself() {
        let beside = run([Some(0.1), Some(0.1), Some(0.2), Some(0.13), Some(0.4)], 81_000);
        let found = figures(&run(QUIET, 0), &beside).unwrap();
        assert_eq!((found.requests, found.finished), (5, 5));
        assert_eq!((found.alone, found.beside), ([0.1, 0.2], [0.13, 0.4]));
        assert_eq!(found.ratio, [1.0, 4.0]);
        // Requests last from second 2.0 to 6.4. In these 4.4 s the link carries 4.4 MB, and the
        // requests need 0.5 MB of it.
        let share = found.share.unwrap();
        assert!((share - 44.0 * 81_000.0 / 3.9e6).abs() < 1e-9, "{share}");
        // `regain` begins at second 6.4, the end of the last request. It ends when 900,000 bytes
        // (90 % of the capacity) passed within one second. Each 0.1 s carries 81,000 bytes before
        // second 8, then 100,000. So 7.5 to 8.5 is the first such second.
        assert!((found.regain.unwrap() - 2.1).abs() < 0.11, "{:?}", found.regain);
        assert_eq!(found.missed(&BOUNDS), ["p90"]);
    }

    #[test]
    fn one_that_never_ends_is_the_slowest() {
        let beside = run([Some(0.1), None, Some(0.2), None, None], 50_000);
        let found = figures(&run(QUIET, 0), &beside).unwrap();
        assert_eq!((found.finished, found.ratio, found.beside), (2, [f64::INFINITY; 2], [f64::INFINITY; 2]));
        assert_eq!(found.missed(&BOUNDS), ["median", "p90", "share"]);
    }

    #[test]
    fn a_transfer_that_never_has_the_link_misses_that_bound() {
        let mut beside = run(QUIET, 85_000);
        for link in &mut beside.links {
            let before = link.sent[61];
            for (number, sent) in link.sent.iter_mut().enumerate().skip(61) {
                *sent = before + (number as u64 - 61) * 89_000;
            }
        }
        let found = figures(&run(QUIET, 0), &beside).unwrap();
        assert_eq!((found.regain, found.missed(&BOUNDS)), (None, vec!["regain"]));
    }

    #[test]
    fn a_fast_line_allows_less_harm_and_a_thin_one_a_smaller_share() {
        let lines = [1, 2, 4, 7, 30, 1_000].map(|mbit| Bounds::of(mbit, 1));
        for pair in lines.windows(2) {
            assert!(pair[0].p90 >= pair[1].p90 && pair[0].share <= pair[1].share, "{pair:?}");
        }
        assert_eq!(Bounds::of(300, 1), Bounds { median: 1.05, p90: 1.10, share: 0.86, regain: 10.0 });
        assert_eq!(Bounds::of(2, 8), Bounds { median: 1.45, p90: 1.70, share: 0.60, regain: 10.0 });
    }
}
