//! Sizes, rates and durations as people write and read them. For sizes and limits `K` means 1024
//! bytes, as in rsync and rclone, and `KB` 1000 bytes. A rate may be written in
//! the same way, or in bits per second. It is always shown in bits per second. 1 kbit is 1000 bits.

use byway_wire::units;
use std::fmt;
use std::str::FromStr;
use std::time::Duration;
use thiserror::Error;

/// Why a text is no quantity.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum UnitError {
    /// The text is not a size.
    #[error("`{0}` is not a number of bytes: write for example 500, 64K, 10M or 1.5G")]
    Size(String),
    /// The text is not a rate.
    #[error("`{0}` is not a rate: write for example 10Mbit, or 2M for 2 MiB per second")]
    Rate(String),
    /// The text is not a duration.
    #[error("`{0}` is not a duration: write for example 90s, 30m, 24h or 7d")]
    Duration(String),
    /// The text is not an amount of bytes in a time.
    #[error("`{0}` is no quota: write for example 500M/day or 20G/month")]
    Quota(String),
    /// The size is 0.
    #[error("0 bytes is nothing: write a size, such as 20G")]
    EmptySize,
    /// The limit is 0.
    #[error("a limit of 0 never lets anything through: write `off` for no limit")]
    Zero,
}

/// [`parse_size`] of at least a byte.
pub fn parse_positive_size(text: &str) -> Result<u64, UnitError> {
    match parse_size(text)? {
        0 => Err(UnitError::EmptySize),
        size => Ok(size),
    }
}

/// Parses bytes with an optional [unit](units::bytes) and a decimal fraction: `500`, `64K`, `1.5G`,
/// `10MiB`, `10MB`.
pub fn parse_size(text: &str) -> Result<u64, UnitError> {
    let wrong = || UnitError::Size(text.to_owned());
    let text_trimmed = text.trim();
    let split = text_trimmed.find(|c: char| c != '.' && !c.is_ascii_digit()).unwrap_or(text_trimmed.len());
    let (number, suffix) = text_trimmed.split_at(split);
    let unit = units::bytes(suffix.trim()).ok_or_else(wrong)?;
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    if whole.is_empty() || fraction.len() > 9 || fraction.contains('.') {
        return Err(wrong());
    }
    let whole: u64 = whole.parse().map_err(|_| wrong())?;
    let part = match fraction {
        "" => 0,
        digits => {
            let numerator: u64 = digits.parse().map_err(|_| wrong())?;
            let denominator = 10u64.pow(digits.len() as u32);
            // At most 10^9 × 2^40, just below 2^70: wide arithmetic, and the quotient is below one
            // unit.
            (u128::from(numerator) * u128::from(unit) / u128::from(denominator)) as u64
        }
    };
    whole.checked_mul(unit).and_then(|bytes| bytes.checked_add(part)).ok_or_else(wrong)
}

/// Parses a rate. It is in bits per second (`10Mbit`, `1.5 Gbit/s`), or in bytes per second as
/// [`parse_size`] reads them (`2M`). `/s` at its end changes nothing. Gives whole bytes per second.
pub fn parse_rate(text: &str) -> Result<u64, UnitError> {
    let wrong = |_| UnitError::Rate(text.to_owned());
    let trimmed = text.trim();
    let amount = trimmed.strip_suffix("/s").unwrap_or(trimmed);
    let bits = amount.len().checked_sub("bit".len()).and_then(|at| amount.split_at_checked(at));
    match bits {
        // `10Mbit` are as many bits as `10Mb` are bytes: the unit is a decimal one.
        Some((number, unit)) if unit.eq_ignore_ascii_case("bit") => {
            parse_size(&format!("{number}b")).map(|bits| bits / 8).map_err(wrong)
        }
        _ => parse_size(amount).map_err(wrong),
    }
}

/// Parses a duration with suffix s, m, h or d; a bare number is seconds. Parts may follow each
/// other: `1h30m`.
pub fn parse_duration(text: &str) -> Result<Duration, UnitError> {
    let wrong = || UnitError::Duration(text.to_owned());
    let mut rest = text.trim();
    let mut seconds = 0u64;
    if rest.is_empty() {
        return Err(wrong());
    }
    while !rest.is_empty() {
        let split = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
        let (number, tail) = rest.split_at(split);
        let number: u64 = number.parse().map_err(|_| wrong())?;
        let unit = match tail.chars().next() {
            None if rest.len() == text.trim().len() => 1,
            Some('s') => 1,
            Some('m') => 60,
            Some('h') => 3600,
            Some('d') => 86_400,
            _ => return Err(wrong()),
        };
        seconds = number.checked_mul(unit).and_then(|part| seconds.checked_add(part)).ok_or_else(wrong)?;
        rest = tail.get(1..).unwrap_or_default();
    }
    Ok(Duration::from_secs(seconds))
}

/// Bandwidth limits in bytes per second of payload. `None`: no limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct RateLimits {
    /// Bytes per second towards the peer.
    pub up: Option<u64>,
    /// Bytes per second from the peer.
    pub down: Option<u64>,
}

impl FromStr for RateLimits {
    type Err = UnitError;

    /// Reads `RATE` for both directions, `UP:DOWN`, or `off` for no limit (also in one direction).
    /// [`parse_rate`] describes a rate.
    fn from_str(text: &str) -> Result<Self, UnitError> {
        let one = |part: &str| match part.trim() {
            off if off.eq_ignore_ascii_case("off") => Ok(None),
            part => match parse_rate(part)? {
                0 => Err(UnitError::Zero),
                rate => Ok(Some(rate)),
            },
        };
        match text.split_once(':') {
            Some((up, down)) => Ok(Self { up: one(up)?, down: one(down)? }),
            None => one(text).map(|both| Self { up: both, down: both }),
        }
    }
}

/// Bytes with three significant digits and a binary unit.
#[derive(Clone, Copy, Debug)]
pub struct Bytes(pub u64);

impl fmt::Display for Bytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = if self.0 < 1024 {
            format!("{} B", self.0)
        } else {
            scaled(self.0 as f64, 1024.0, &["B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"])
        };
        f.pad(&text)
    }
}

/// Bits per second with three significant digits and a decimal unit.
#[derive(Clone, Copy, Debug)]
pub struct Rate(pub f64);

impl Rate {
    /// `bytes` in `seconds`; zero if no time passed.
    #[must_use]
    pub fn of(bytes: u64, seconds: f64) -> Self {
        Self(if seconds > 0.0 { bytes as f64 * 8.0 / seconds } else { 0.0 })
    }
}

impl fmt::Display for Rate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&scaled(self.0.max(0.0), 1000.0, &["bit/s", "kbit/s", "Mbit/s", "Gbit/s", "Tbit/s"]))
    }
}

/// A span of time in seconds, rounded for a person: `0.42 s`, `12.3 s`, `3m 05s`, `2h 10m`, `3d
/// 04h`.
#[derive(Clone, Copy, Debug)]
pub struct Span(pub f64);

impl fmt::Display for Span {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let seconds = self.0.max(0.0);
        let whole = seconds.round() as u64;
        let text = if seconds < 9.995 {
            format!("{seconds:.2} s")
        } else if seconds < 59.95 {
            format!("{seconds:.1} s")
        } else if whole < 3600 {
            format!("{}m {:02}s", whole / 60, whole % 60)
        } else if whole < 86_400 {
            format!("{}h {:02}m", whole / 3600, whole % 3600 / 60)
        } else {
            format!("{}d {:02}h", whole / 86_400, whole % 86_400 / 3600)
        };
        f.pad(&text)
    }
}

fn scaled(value: f64, base: f64, units: &[&str]) -> String {
    let mut value = value;
    let mut units = units.iter();
    let mut unit = units.next().copied().unwrap_or_default();
    // What would be rounded up to the next unit is shown in it.
    for next in units {
        if value < base - 0.5 {
            break;
        }
        value /= base;
        unit = next;
    }
    match value {
        v if v < 9.995 => format!("{v:.2} {unit}"),
        v if v < 99.95 => format!("{v:.1} {unit}"),
        v => format!("{v:.0} {unit}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn sizes_are_binary() {
        for (text, bytes) in [
            ("0", 0),
            ("500", 500),
            ("64K", 65_536),
            ("10M", 10 << 20),
            ("1.5G", 3 << 29),
            ("2 MiB", 2 << 20),
            ("3MB", 3_000_000),
            ("0.000000001T", 1099),
        ] {
            assert_eq!(parse_size(text), Ok(bytes), "{text}");
        }
        for text in ["", "K", ".5", "1.2.3M", "-1", "10X", "99999999999999999999", "16777216T", "1e3"] {
            assert_eq!(parse_size(text), Err(UnitError::Size(text.into())), "{text}");
        }
    }

    #[test]
    fn durations_add_their_parts() {
        for (text, seconds) in
            [("90", 90), ("30s", 30), ("1h30m", 5400), ("7d", 604_800), ("1d12h", 129_600), ("0s", 0)]
        {
            assert_eq!(parse_duration(text), Ok(Duration::from_secs(seconds)), "{text}");
        }
        for text in ["", "s", "1w", "1h30", "-5s", "1.5h", "99999999999999999d", "é"] {
            assert_eq!(parse_duration(text), Err(UnitError::Duration(text.into())), "{text}");
        }
    }

    #[test]
    fn limits_have_two_sides_and_refuse_what_they_cannot_keep() {
        let limit = |up, down| Ok(RateLimits { up, down });
        assert_eq!("off".parse(), limit(None, None));
        assert_eq!("10M".parse(), limit(Some(10 << 20), Some(10 << 20)));
        assert_eq!("1M:off".parse(), limit(Some(1 << 20), None));
        assert_eq!("512K/s:2G".parse(), limit(Some(512 << 10), Some(2 << 30)));
        assert_eq!("0".parse::<RateLimits>(), Err(UnitError::Zero));
        assert_eq!((parse_positive_size("0K"), parse_positive_size("1")), (Err(UnitError::EmptySize), Ok(1)));
        assert!(matches!("08:00,512K".parse::<RateLimits>(), Err(UnitError::Rate(_))));
        assert!(matches!("fast".parse::<RateLimits>(), Err(UnitError::Rate(_))));
        assert_eq!("10Mbit:500kbit/s".parse(), limit(Some(1_250_000), Some(62_500)));
        assert_eq!("1bit".parse::<RateLimits>(), Err(UnitError::Zero));
    }

    #[test]
    fn a_rate_is_written_in_bits_or_in_bytes() {
        for (text, bytes) in [
            ("10Mbit", 1_250_000),
            ("10 Mbit/s", 1_250_000),
            ("1.5gbit", 187_500_000),
            ("64 kbit/s", 8_000),
            ("800bit", 100),
            ("2M", 2 << 20),
            ("2MB/s", 2_000_000),
        ] {
            assert_eq!(parse_rate(text), Ok(bytes), "{text}");
        }
        for text in ["", "bit", "Mbit", "10Mbits", "10Xbit", "-1Mbit", "10Mbit/h", "ébit"] {
            assert_eq!(parse_rate(text), Err(UnitError::Rate(text.into())), "{text}");
        }
        // What is shown can be written.
        for rate in [1_000.0, 27.1e6, 1e10] {
            assert_eq!(parse_rate(&Rate(rate).to_string()), Ok((rate / 8.0) as u64));
        }
    }

    #[test]
    fn quantities_read_well() {
        let bytes = [0, 1023, 1024, 1536, 10 << 20, (1 << 30) - 1, u64::MAX].map(|b| Bytes(b).to_string());
        assert_eq!(bytes, ["0 B", "1023 B", "1.00 KiB", "1.50 KiB", "10.0 MiB", "1.00 GiB", "16.0 EiB"]);
        let rates = [0.0, 999.9, 27.13e6, 123_456.0, 1e10, 1e18, -1.0, f64::NAN].map(|r| Rate(r).to_string());
        assert_eq!(
            rates,
            [
                "0.00 bit/s",
                "1.00 kbit/s",
                "27.1 Mbit/s",
                "123 kbit/s",
                "10.0 Gbit/s",
                "1000000 Tbit/s",
                "0.00 bit/s",
                "0.00 bit/s"
            ]
        );
        let spans = [0.418, 12.34, 59.97, 185.0, 7800.0, 273_600.0].map(|s| Span(s).to_string());
        assert_eq!(spans, ["0.42 s", "12.3 s", "1m 00s", "3m 05s", "2h 10m", "3d 04h"]);
        assert_eq!(Rate::of(1_000_000, 2.0).to_string(), "4.00 Mbit/s");
        assert_eq!(Rate::of(1_000_000, 0.0).to_string(), "0.00 bit/s");
    }

    proptest! {
        #[test]
        fn whole_sizes_survive(bytes: u64) {
            prop_assert_eq!(parse_size(&bytes.to_string()), Ok(bytes));
        }

        #[test]
        fn garbage_never_panics(text in "\\PC{0,20}") {
            let _ = parse_size(&text);
            let _ = parse_rate(&text);
            let _ = parse_duration(&text);
            let _ = text.parse::<RateLimits>();
        }
    }
}
