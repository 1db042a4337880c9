//! Series of samples: what had come by a second, and how much in a window.

use super::undefined_value::Undefined;
use crate::record::Record;
use serde::{Deserialize, Serialize};

/// A part of a run, in seconds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Window {
    pub(super) from: f64,
    pub(super) to: f64,
}

impl Window {
    pub(super) const fn seconds(&self) -> f64 {
        self.to - self.from
    }

    /// The window from `from` to `to`. The defaults are the cut, and the end of the run.
    pub(super) fn of(times: RunTimes, from: Option<f64>, to: Option<f64>) -> Result<Self, Undefined> {
        let end = times.end();
        let window = Self { from: from.unwrap_or(times.cut), to: to.unwrap_or(end) };
        // A second that a person wrote may lie a little after the last sample.
        if window.from < 0.0 || window.to > end.max(times.duration) + 1e-6 {
            return Err(Undefined::wrong(format!(
                "seconds {} to {}: the run is from 0 to {end}",
                window.from, window.to
            )));
        }
        if window.from.partial_cmp(&window.to) != Some(core::cmp::Ordering::Less) {
            return Err(Undefined::wrong(format!(
                "seconds {} to {}: nothing lies between",
                window.from, window.to
            )));
        }
        Ok(window)
    }
}

/// When a run samples, is judged and ends, in seconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct RunTimes {
    /// The time between samples.
    pub(super) sample: f64,
    pub(super) duration: f64,
    /// The second from which measures count by default.
    pub(super) cut: f64,
}

impl RunTimes {
    pub(super) const fn of(record: &Record) -> Self {
        Self { sample: record.sample, duration: record.duration, cut: record.cut }
    }

    /// Whether all times are times.
    pub(super) fn are_valid(self) -> bool {
        let all = [self.sample, self.duration, self.cut];
        all.iter().all(|time| time.is_finite() && *time >= 0.0) && self.sample > 0.0
    }

    /// The second of the last sample.
    pub(super) fn end(self) -> f64 {
        let samples = libm::floor(self.duration / self.sample + 1e-9);
        // Sixty seconds are sixty, whatever 600 tenths make.
        if libm::fabs(samples * self.sample - self.duration) < 1e-6 {
            self.duration
        } else {
            samples * self.sample
        }
    }
}

/// A number of a cumulative series.
pub(super) trait Cumulative: Copy {
    fn count(self) -> f64;
}

impl Cumulative for u64 {
    fn count(self) -> f64 {
        self as f64
    }
}

impl Cumulative for u32 {
    fn count(self) -> f64 {
        f64::from(self)
    }
}

/// The value of a cumulative series at a second. It is interpolated between samples, and constant
/// after the last.
pub(super) fn by<T: Cumulative>(series: &[T], sample: f64, second: f64) -> Result<f64, Undefined> {
    let Some(last) = series.last() else {
        return Err(Undefined::no_data("nothing was noted in this run"));
    };
    let mut place = second / sample;
    // On a sample, but for how floating point divides.
    if libm::fabs(place - libm::round(place)) < 1e-6 {
        place = libm::round(place);
    }
    let below = libm::floor(place);
    let at = |index: f64| series.get(index as usize).unwrap_or(last).count();
    Ok(at(below) + (at(below + 1.0) - at(below)) * (place - below))
}

/// Returns the growth of a cumulative series within a window.
pub(super) fn grown<T: Cumulative>(series: &[T], sample: f64, window: Window) -> Result<f64, Undefined> {
    Ok((by(series, sample, window.to)? - by(series, sample, window.from)?).max(0.0))
}

/// The samples that lie in a window, both ends included.
pub(super) fn within<T>(series: &[T], sample: f64, window: Window) -> &[T] {
    let first = libm::ceil(window.from / sample - 1e-6).max(0.0) as usize;
    let last = (libm::floor(window.to / sample + 1e-6).max(0.0) as usize).min(series.len().saturating_sub(1));
    series.get(first..=last).unwrap_or_default()
}

/// Bytes in seconds as Mbit/s.
pub(super) fn megabits(bytes: f64, seconds: f64) -> f64 {
    bytes * 8.0 / 1e6 / seconds
}

/// Divides a window into parts of `seconds` each. A shorter rest at the end is left out.
pub(super) fn parts(window: Window, seconds: f64) -> impl Iterator<Item = Window> {
    let count = libm::floor(window.seconds() / seconds + 1e-9).min(1e7) as u64;
    (0..count).map(move |at| {
        let from = window.from + at as f64 * seconds;
        // The last one may not reach beyond the window by a rounding.
        Window { from, to: (from + seconds).min(window.to) }
    })
}
