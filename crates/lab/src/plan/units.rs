//! Quantities as a plan writes them: a number with a unit, perhaps times or divided by plain
//! numbers.

use byway_wire::{Duration, units};

/// The kind of an expected quantity.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum QuantityKind {
    /// A rate in bits per second.
    Rate,
    /// A time in seconds.
    Time,
    /// A size in bytes.
    Size,
    /// A number of packets.
    Packets,
    /// A share of one.
    Share,
    /// A number without unit.
    Number,
}

impl QuantityKind {
    /// An example of the expected value, for error messages.
    #[must_use]
    pub const fn expected(self) -> &'static str {
        match self {
            Self::Rate => "a rate such as \"10 Mbit/s\" or \"200 KB/s\"",
            Self::Time => "a time such as \"20 ms\" or \"5 min\"",
            Self::Size => "a number of bytes such as \"64 KB\" or \"100 MB\"",
            Self::Packets => "a number of packets such as \"50 packets\"",
            Self::Share => "a share such as \"0.1 %\" or 0.001",
            Self::Number => "a number",
        }
    }
}

/// Units by kind: the name, and the number of base units in one. [`byway_wire::units`] has those of
/// bytes.
const UNIT_TABLE: &[(QuantityKind, &str, f64)] = &[
    (QuantityKind::Rate, "bit/s", 1.0),
    (QuantityKind::Rate, "kbit/s", 1e3),
    (QuantityKind::Rate, "Mbit/s", 1e6),
    (QuantityKind::Rate, "Gbit/s", 1e9),
    (QuantityKind::Rate, "B/s", 8.0),
    (QuantityKind::Rate, "KB/s", 8e3),
    (QuantityKind::Rate, "MB/s", 8e6),
    (QuantityKind::Time, "ns", 1e-9),
    (QuantityKind::Time, "us", 1e-6),
    (QuantityKind::Time, "ms", 1e-3),
    (QuantityKind::Time, "s", 1.0),
    (QuantityKind::Time, "min", 60.0),
    (QuantityKind::Time, "h", 3600.0),
    (QuantityKind::Packets, "packets", 1.0),
    (QuantityKind::Packets, "packet", 1.0),
    (QuantityKind::Share, "%", 0.01),
];

/// Returns the value of `text` in base units, and its kind. The base units are `bit/s, s, bytes,
/// packets, 1`.
pub fn parse(text: &str) -> Option<(QuantityKind, f64)> {
    let mut product = 1.0;
    let mut kind = None;
    let mut divide = false;
    let mut rest = text.trim();
    loop {
        let (number, behind) = number(rest)?;
        product = if divide { product / number } else { product * number };
        let end = behind.find(" *").into_iter().chain(behind.find(" / ")).min().unwrap_or(behind.len());
        let (unit, onward) = behind.split_at(end);
        match unit.trim() {
            "" => {}
            name => {
                let known = UNIT_TABLE.iter().find(|(_, known, _)| *known == name);
                let bytes = || units::bytes(name).map(|bytes| (QuantityKind::Size, bytes as f64));
                let (found, scale) = known.map(|(kind, _, scale)| (*kind, *scale)).or_else(bytes)?;
                // A second unit, or a unit below the line, is no quantity.
                if divide || kind.replace(found).is_some() {
                    return None;
                }
                product *= scale;
            }
        }
        let onward = onward.trim_start();
        let Some(sign) = onward.chars().next() else { break };
        divide = sign == '/';
        rest = onward.get(1..)?.trim_start();
    }
    product.is_finite().then(|| (kind.unwrap_or(QuantityKind::Number), product))
}

/// Splits `text` into a leading number and the rest.
fn number(text: &str) -> Option<(f64, &str)> {
    let end = text
        .char_indices()
        .find(|&(at, c)| !(c.is_ascii_digit() || c == '.' || (at == 0 && (c == '-' || c == '+'))))
        .map_or(text.len(), |(at, _)| at);
    let (digits, rest) = text.split_at(end);
    digits.parse().ok().map(|value| (value, rest))
}

/// The number that a label of an axis begins with, if any: `"20 ms"` is 20.
#[must_use]
pub fn leading_number(label: &str) -> Option<f64> {
    number(label.trim()).map(|(value, _)| value)
}

/// Seconds as a duration; `None` below zero or beyond 10 years.
#[must_use]
pub fn duration(seconds: f64) -> Option<Duration> {
    (0.0..=315_360_000.0).contains(&seconds).then(|| Duration::from_nanos(libm::round(seconds * 1e9) as u64))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantities() {
        for (text, kind, value) in [
            ("10 Mbit/s", QuantityKind::Rate, 1e7),
            ("200 KB/s", QuantityKind::Rate, 1.6e6),
            ("10Mbit/s", QuantityKind::Rate, 1e7),
            ("20 ms", QuantityKind::Time, 0.02),
            ("5 ms * 3", QuantityKind::Time, 0.015),
            ("60 s / 4", QuantityKind::Time, 15.0),
            ("10 * 5 ms", QuantityKind::Time, 0.05),
            ("50 packets", QuantityKind::Packets, 50.0),
            ("0.1 %", QuantityKind::Share, 0.001),
            ("1.5", QuantityKind::Number, 1.5),
            ("64 KB", QuantityKind::Size, 64_000.0),
            ("1 MiB", QuantityKind::Size, 1_048_576.0),
        ] {
            let (found, got) = parse(text).unwrap_or_else(|| panic!("{text}"));
            assert_eq!(found, kind, "{text}");
            assert!((got - value).abs() < 1e-9 * value, "{text}: {got}");
        }
    }

    #[test]
    fn what_is_none() {
        for text in
            ["", "ms", "5 parsec", "5 ms * 3 ms", "1 / 2 s", "5 ms *", "--5", "1e9999 s", "5 ms 6", "1 / 0"]
        {
            assert_eq!(parse(text), None, "{text}");
        }
        assert_eq!(duration(-1.0), None);
        assert_eq!(duration(f64::NAN), None);
        assert_eq!(duration(0.0015), Some(Duration::from_micros(1500)));
        assert_eq!(leading_number("20 ms"), Some(20.0));
        assert_eq!(leading_number("joint"), None);
    }
}
