//! A part of a list of runs that all machines know.

use core::str::FromStr;

/// One of several parts of equal size, such as `3/16`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Part {
    number: u64,
    of: u64,
}

impl Default for Part {
    /// The whole.
    fn default() -> Self {
        Self { number: 1, of: 1 }
    }
}

impl Part {
    /// Whether the entry at `place`, counted from 0, is in the part. Neighbours are in different
    /// parts, since they often take as long.
    #[must_use]
    pub const fn takes(self, place: usize) -> bool {
        place as u64 % self.of == self.number - 1
    }

    /// Whether the part is the whole.
    #[must_use]
    pub const fn is_whole(self) -> bool {
        self.of == 1
    }
}

impl FromStr for Part {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let part = text.split_once('/').and_then(|(number, of)| {
            let part = Self { number: number.parse().ok()?, of: of.parse().ok()? };
            (1..=part.of).contains(&part.number).then_some(part)
        });
        part.ok_or_else(|| format!("`{text}`: expected a part of all, such as 3/16"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_entry_is_in_one_part() {
        let parts: Vec<Part> = (1..=3).map(|number| format!("{number}/3").parse().expect("a part")).collect();
        for place in 0..20 {
            assert_eq!(parts.iter().filter(|part| part.takes(place)).count(), 1);
        }
        assert!((0..20).all(|place| Part::default().takes(place)) && Part::default().is_whole());
        for wrong in ["", "3", "0/3", "4/3", "1/0", "-1/3", "1/3/5"] {
            assert!(wrong.parse::<Part>().is_err(), "{wrong}");
        }
    }
}
