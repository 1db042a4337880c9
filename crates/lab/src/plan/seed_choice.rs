//! Which seeds are run instead of the plan's.

use core::str::FromStr;

/// The largest seed of a plan: numbers of TOML and JSON are exact up to here.
pub const MAX_SEED: u64 = 1 << 53;
/// The most seeds of one plan that the command line asks for.
pub const MAX_SEEDS: u32 = 1_000_000;

/// The seeds to run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SeedChoice {
    /// This number of seeds, from the plan's first.
    Count(u32),
    /// This number of seeds, from the first that is given.
    From(u64, u32),
}

impl FromStr for SeedChoice {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || format!("`{text}`: expected a number of seeds, such as 20, or seeds, such as 17..32");
        let number = |text: &str| text.parse::<u64>().map_err(|_| wrong());
        let (first, last) = match text.split_once("..") {
            Some((first, last)) => (Some(number(first)?), number(last)?),
            None => (None, number(text)?),
        };
        let count = match first {
            Some(first) => last.checked_sub(first).and_then(|more| more.checked_add(1)).ok_or_else(wrong)?,
            None => last,
        };
        if count == 0 || count > u64::from(MAX_SEEDS) {
            return Err(format!("`{text}`: expected 1 to {MAX_SEEDS} seeds"));
        }
        if first.is_some() && last > MAX_SEED {
            return Err(format!("`{text}`: seeds are at most {MAX_SEED}"));
        }
        let count = u32::try_from(count).map_err(|_| wrong())?;
        Ok(first.map_or(Self::Count(count), |first| Self::From(first, count)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seeds_are_a_number_or_from_one_to_another() {
        assert_eq!("20".parse(), Ok(SeedChoice::Count(20)));
        assert_eq!("17..32".parse(), Ok(SeedChoice::From(17, 16)));
        assert_eq!("0..0".parse(), Ok(SeedChoice::From(0, 1)));
        for wrong in [
            "",
            "0",
            "-1",
            "..",
            "5..",
            "32..17",
            "1000001",
            "1..9007199254740993",
            "0..18446744073709551615",
        ] {
            assert!(wrong.parse::<SeedChoice>().is_err(), "{wrong}");
        }
    }
}
