//! Values as a plan has them, in units that people read.

use crate::setup::PathChoice;
use byway_wire::Duration;
use core::fmt::Write as _;

/// Keys and their values, in order.
#[derive(Default, PartialEq)]
pub(super) struct Keys(Vec<(String, String)>);

impl Keys {
    pub(super) fn set(&mut self, key: &str, value: String) {
        self.0.push((key.to_owned(), value));
    }

    pub(super) fn set_if(&mut self, present: bool, key: &str, value: impl FnOnce() -> String) {
        if present {
            self.set(key, value());
        }
    }

    /// Adds the key if `value` is not `None`.
    pub(super) fn maybe<T>(&mut self, key: &str, value: Option<T>, written: impl FnOnce(T) -> String) {
        if let Some(value) = value {
            self.set(key, written(value));
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns the keys of `first`, followed by these.
    pub(super) fn behind(self, mut first: Self) -> Self {
        first.0.extend(self.0);
        first
    }

    /// The keys and values, one per line.
    pub(super) fn lines(&self) -> String {
        self.0.iter().fold(String::new(), |mut lines, (key, value)| {
            let _ = writeln!(lines, "{} = {value}", bare(key));
            lines
        })
    }

    /// The keys and values as an inline table.
    pub(super) fn table(&self) -> String {
        let all: Vec<_> = self.0.iter().map(|(key, value)| format!("{} = {value}", bare(key))).collect();
        if all.is_empty() { "{}".to_owned() } else { format!("{{ {} }}", all.join(", ")) }
    }
}

/// Returns a key, in quotation marks if TOML requires them.
fn bare(key: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    if !key.is_empty() && key.chars().all(plain) { key.to_owned() } else { text(key) }
}

pub(super) fn text(text: &str) -> String {
    let mut quoted = String::from("\"");
    for c in text.chars() {
        match c {
            '"' | '\\' => quoted.extend(['\\', c]),
            c if c.is_control() => {
                let _ = write!(quoted, "\\u{:04X}", u32::from(c));
            }
            c => quoted.push(c),
        }
    }
    quoted + "\""
}

/// Writes `amount` in the first unit that gives at least 1, or in the last. All scales are powers
/// of ten, so the decimal fraction is exact.
fn quantity(amount: u64, units: &[(&str, u64)]) -> String {
    let Some((unit, scale)) = units.iter().find(|(_, scale)| amount >= *scale).or(units.last()) else {
        return String::new();
    };
    let digits = scale.ilog10() as usize;
    let fraction = format!("{:0digits$}", amount % scale);
    let written = format!("{}.{}", amount / scale, if digits == 0 { "" } else { fraction.as_str() });
    format!("\"{} {unit}\"", written.trim_end_matches('0').trim_end_matches('.'))
}

pub(super) fn time(time: Duration) -> String {
    if time.is_zero() {
        return "\"0 s\"".to_owned();
    }
    let nanos = u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
    quantity(nanos, &[("s", 1_000_000_000), ("ms", 1_000_000), ("us", 1_000), ("ns", 1)])
}

pub(super) fn rate(bits: u64) -> String {
    quantity(bits, &[("Mbit/s", 1_000_000), ("kbit/s", 1_000), ("bit/s", 1)])
}

/// A whole number of the largest unit: people compare sizes byte by byte.
pub(super) fn size(bytes: u64) -> String {
    let units = [("GB", 1_000_000_000), ("MB", 1_000_000), ("KB", 1_000)];
    match units.iter().find(|(_, scale)| bytes >= *scale && bytes.is_multiple_of(*scale)) {
        Some((unit, scale)) => format!("\"{} {unit}\"", bytes / scale),
        None => format!("\"{bytes} B\""),
    }
}

/// The shortest number that reads back as the same, without exponent.
pub(super) fn number(number: f64) -> String {
    let written = number.to_string();
    // A whole number that is larger than an integer of TOML, or less than nothing and yet none, is
    // written as a float.
    let float = number.abs() >= 1e15 || (number == 0.0 && number.is_sign_negative());
    if float && !written.contains('.') { written + ".0" } else { written }
}

pub(super) fn list(values: impl IntoIterator<Item = String>) -> String {
    format!("[{}]", values.into_iter().collect::<Vec<_>>().join(", "))
}

pub(super) fn node_ways(ways: &[PathChoice]) -> impl Iterator<Item = String> + '_ {
    ways.iter().map(|way| match way {
        PathChoice::Direct => text("direct"),
        PathChoice::Registry => text("registry"),
        PathChoice::Through(node) => text(node),
        PathChoice::Any(prefix, count) => text(&format!("{prefix}*{count}")),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::units;

    #[test]
    fn quantities_read_back_as_the_same() {
        let nanos = |written: &str| {
            let (_, seconds) = units::parse(written.trim_matches('"')).expect("a quantity");
            units::duration(seconds).expect("a time").as_nanos() as u64
        };
        let seconds = [0, 1, 60, 315_360_000].map(|seconds: u64| seconds * 1_000_000_000);
        let finer = (1..2_000).map(|n: u64| n * 604_799_123_457 + n);
        for wanted in seconds.into_iter().chain(finer).chain([1, 999, 1_000, 1_500_000]) {
            assert_eq!(nanos(&time(Duration::from_nanos(wanted))), wanted);
        }
        let parsed =
            |written: &str| libm::round(units::parse(written.trim_matches('"')).expect("a quantity").1);
        let rates = (1..2_000).map(|n: u64| n * 4_987_654_321 + n);
        for wanted in
            [1, 999, 1_000, 1_500, 2_000_000, 49_999_999, 10_000_000_000_000].into_iter().chain(rates)
        {
            assert_eq!(parsed(&rate(wanted)), wanted as f64);
            assert_eq!(parsed(&size(wanted)), wanted as f64);
        }
        let times = [0, 7, 200_000, 20_000_000, 107_973_000, 1_500_000_000, 1_200_000_000_000];
        let times = times.map(|nanos| time(Duration::from_nanos(nanos)));
        let readable = ["0 s", "7 ns", "200 us", "20 ms", "107.973 ms", "1.5 s", "1200 s"];
        assert_eq!(times, readable.map(|time| format!("\"{time}\"")));
        let rates = [rate(1), rate(2_500), rate(10_000_000), size(0), size(64_000), size(1_001)];
        let readable = ["1 bit/s", "2.5 kbit/s", "10 Mbit/s", "0 B", "64 KB", "1001 B"];
        assert_eq!(rates, readable.map(|quantity| format!("\"{quantity}\"")));
    }

    #[test]
    fn numbers_and_texts_are_those_of_toml() {
        let document = |value: &str| format!("k = {value}").parse::<toml::Table>().expect("TOML");
        for wanted in [0.1, 1.0 / 3.0, -50.0, 1e-9, 1e300, -0.0, 8.0, f64::MIN_POSITIVE, 1e15, 9.1e18] {
            let found = match &document(&number(wanted))["k"] {
                toml::Value::Float(found) => *found,
                toml::Value::Integer(found) => *found as f64,
                other => panic!("{other}"),
            };
            assert_eq!(found.to_bits(), f64::to_bits(wanted), "{}", number(wanted));
        }
        for wanted in ["", "R1", "a \"word\" \\ and\nmore\u{7f}", "Größe"] {
            assert_eq!(document(&text(wanted))["k"].as_str(), Some(wanted));
        }
        let mut keys = Keys::default();
        keys.set("a b", text("c"));
        assert_eq!((keys.lines(), keys.table()), ("\"a b\" = \"c\"\n".into(), "{ \"a b\" = \"c\" }".into()));
    }
}
