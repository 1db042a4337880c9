//! The file that a relay keeps for a restart: how many bytes it carried, the number of its last
//! heartbeat, and the ranges of its registries. A registry gives permissions to use the relay
//! (grants), with numbers from its own range.
//!
//! ```text
//! byway-relay-kept 1
//! relay 0123456789abcdef0123456789abcdef     whose key it is
//! day 20849 123456                           days since 1970, bytes
//! month 684 1234567                          months since 1970, bytes
//! earlier-day 20848 99                       other days that the clock showed, the last one first
//! earlier-month 683 1234                     other months
//! beats 1801396800123                        the last counter
//! range 5 REGISTRY 9 1801400400              number, the registry's key, epoch, until when the last one holds (Unix)
//! address 203.0.113.9:4748                   where senders reach the relay
//! word 123456789 1234567                     a word that has a name: id of its grant, bytes
//! check 01234567                             of all lines before: BLAKE3, 4 bytes
//! ```

use super::checked_lines::{check, checked, hex};
use super::named_words::MAX_NAMED_WORDS;
use byway_relay::{Used, UsedIn};
use byway_wire::heartbeat::RelayId;
use byway_wire::relay::{MAX_ADDRESSES, RANGE_COUNT};
use std::fmt;
use std::net::SocketAddr;
use std::str::{FromStr, Lines};
use thiserror::Error;

/// The first line of the file, with its kind and version.
const FIRST_LINE: &str = "byway-relay-kept 1";
/// Bytes of the longest file: every range, and the rest.
pub(super) const MAX_FILE_BYTES: u64 = 64 << 10;

/// The state of a relay that survives a restart.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SavedState {
    /// The relay to which the heartbeats and ranges belong. A new key makes it another relay.
    pub relay: Option<RelayId>,
    /// Bytes that the relay carried.
    pub used: Used,
    /// The number of the relay's last heartbeat.
    pub beats: u64,
    /// The ranges of grants that the relay gave to registries, one for each registry.
    pub ranges: Vec<KeptRange>,
    /// The addresses at which senders reach the relay, for relay words that are made while it does
    /// not run.
    pub addresses: Vec<SocketAddr>,
    /// The bytes that the relay carried for each named relay word, with the id of its grant.
    pub words: Vec<(u32, u64)>,
}

/// A range of grants that was given to a registry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KeptRange {
    /// The range's number, 0 to 127.
    pub number: u8,
    /// The registry's public key.
    pub registry: [u8; 32],
    /// The number of the last epoch that the relay knew; 0 before the first.
    pub epoch: u32,
    /// The end of the previous epoch, in Unix seconds.
    pub last_until: u64,
}

/// The saved state is damaged.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("holds no whole account of what a relay carried")]
pub struct NotKept;

impl SavedState {
    /// The range of a registry, or a new one. `None`: no range is left.
    pub fn range_of(&mut self, registry: &[u8; 32]) -> Option<&mut KeptRange> {
        if let Some(at) = self.ranges.iter().position(|range| range.registry == *registry) {
            return self.ranges.get_mut(at);
        }
        let free = |number: &u8| self.ranges.iter().all(|range| range.number != *number);
        let number = (0..RANGE_COUNT as u8).find(free)?;
        self.ranges.push(KeptRange { number, registry: *registry, epoch: 0, last_until: 0 });
        self.ranges.last_mut()
    }
}

impl fmt::Display for SavedState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut text = format!("{FIRST_LINE}\n");
        let mut line = |line: fmt::Arguments<'_>| text.push_str(&format!("{line}\n"));
        if let Some(relay) = self.relay {
            line(format_args!("relay {relay}"));
        }
        line(format_args!("day {} {}", self.used.day, self.used.today));
        line(format_args!("month {} {}", self.used.month, self.used.this_month));
        let mut earlier = |name, counts: &[UsedIn]| {
            let known = counts.iter().filter(|it| it.bytes > 0);
            known.for_each(|it| line(format_args!("earlier-{name} {} {}", it.number, it.bytes)));
        };
        earlier("day", &self.used.earlier_days);
        earlier("month", &self.used.earlier_months);
        line(format_args!("beats {}", self.beats));
        for KeptRange { number, registry, epoch, last_until } in &self.ranges {
            let registry = blake3::Hash::from_bytes(*registry).to_hex();
            line(format_args!("range {number} {registry} {epoch} {last_until}"));
        }
        self.addresses.iter().for_each(|address| line(format_args!("address {address}")));
        self.words.iter().for_each(|(grant, bytes)| line(format_args!("word {grant} {bytes}")));
        writeln!(f, "{text}check {}", check(&text))
    }
}

impl FromStr for SavedState {
    type Err = NotKept;

    fn from_str(text: &str) -> Result<Self, NotKept> {
        let lines = checked(text, FIRST_LINE).ok_or(NotKept)?;
        Self::read(lines).ok_or(NotKept)
    }
}

impl SavedState {
    fn read(lines: Lines<'_>) -> Option<Self> {
        let mut kept = Self::default();
        for line in lines {
            let words: Vec<&str> = line.split(' ').collect();
            match words.as_slice() {
                ["relay", id] => kept.relay = Some(RelayId(hex(id)?)),
                ["day", day, bytes] => {
                    (kept.used.day, kept.used.today) = (day.parse().ok()?, bytes.parse().ok()?);
                }
                ["month", month, bytes] => {
                    (kept.used.month, kept.used.this_month) = (month.parse().ok()?, bytes.parse().ok()?);
                }
                ["earlier-day", number, bytes] => learn(&mut kept.used.earlier_days, number, bytes)?,
                ["earlier-month", number, bytes] => learn(&mut kept.used.earlier_months, number, bytes)?,
                ["beats", counter] => kept.beats = counter.parse().ok()?,
                ["range", number, registry, epoch, last_until] => {
                    let number = number.parse().ok().filter(|number| usize::from(*number) < RANGE_COUNT)?;
                    let registry = hex(registry)?;
                    let taken =
                        kept.ranges.iter().any(|range| range.number == number || range.registry == registry);
                    if taken {
                        return None;
                    }
                    let (epoch, last_until) = (epoch.parse().ok()?, last_until.parse().ok()?);
                    kept.ranges.push(KeptRange { number, registry, epoch, last_until });
                }
                ["address", address] if kept.addresses.len() < MAX_ADDRESSES => {
                    kept.addresses.push(address.parse().ok()?);
                }
                ["word", grant, bytes] if kept.words.len() < MAX_NAMED_WORDS => {
                    kept.words.push((grant.parse().ok()?, bytes.parse().ok()?));
                }
                _ => return None,
            }
        }
        Some(kept)
    }
}

/// Reads the bytes of an earlier day or month. `None`: the text is not valid, or there are too
/// many.
fn learn(counts: &mut [UsedIn], number: &str, bytes: &str) -> Option<()> {
    let free = counts.iter_mut().find(|it| it.bytes == 0)?;
    *free = UsedIn { number: number.parse().ok()?, bytes: bytes.parse().ok().filter(|bytes| *bytes > 0)? };
    Some(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn counts<const N: usize>(counts: [(u64, u64); N]) -> [UsedIn; N] {
        counts.map(|(number, bytes)| UsedIn { number, bytes })
    }

    fn some() -> SavedState {
        SavedState {
            relay: Some(RelayId([0xab; 16])),
            used: Used {
                day: 20_849,
                today: 123_456,
                month: 684,
                this_month: 1_234_567,
                earlier_days: counts([(20_848, 99), (0, 7), (0, 0), (0, 0), (0, 0), (0, 0), (0, 0)]),
                earlier_months: counts([(683, 1_234), (0, 0), (0, 0)]),
            },
            beats: 1_801_396_800_123,
            ranges: vec![KeptRange { number: 5, registry: [0xcd; 32], epoch: 9, last_until: 1_801_400_400 }],
            addresses: vec!["203.0.113.9:4748".parse().unwrap(), "[2001:db8::1]:4748".parse().unwrap()],
            words: vec![(123_456_789, 1_234_567)],
        }
    }

    #[test]
    fn frozen_text() {
        let registry = "cd".repeat(32);
        let text = format!(
            "byway-relay-kept 1\nrelay {}\nday 20849 123456\nmonth 684 1234567\nearlier-day 20848 99\nearlier-day 0 7\nearlier-month 683 1234\nbeats 1801396800123\n\
             range 5 {registry} 9 1801400400\naddress 203.0.113.9:4748\n\
             address [2001:db8::1]:4748\nword 123456789 1234567\ncheck ",
            "ab".repeat(16)
        );
        assert_eq!(some().to_string().split_at(text.len()).0, text);
        assert_eq!(some().to_string().parse(), Ok(some()));
        assert_eq!(SavedState::default().to_string().parse(), Ok(SavedState::default()));
    }

    #[test]
    fn what_is_damaged_or_of_another_kind_is_refused() {
        let good = some().to_string();
        for cut in 0..good.len() {
            assert_eq!(good[..cut].parse::<SavedState>(), Err(NotKept), "{cut}");
        }
        assert_eq!(
            good.replace("123456 ", "023456 ").replace("day 20849 1", "day 20849 2").parse::<SavedState>(),
            Err(NotKept)
        );
        let with = |body: &str| format!("{body}check {}\n", check(body)).parse::<SavedState>();
        assert!(with("byway-relay-kept 1\n").is_ok());
        let registry = "cd".repeat(32);
        for body in [
            "byway-relay-kept 2\n".to_owned(),
            "byway-relay-kept 1\nmore\n".into(),
            "byway-relay-kept 1\nday 1\n".into(),
            "byway-relay-kept 1\nday 1 -1\n".into(),
            "byway-relay-kept 1\nearlier-day 1 0\n".into(),
            format!("byway-relay-kept 1\n{}", "earlier-month 1 1\n".repeat(4)),
            "byway-relay-kept 1\nrelay abc\n".into(),
            format!("byway-relay-kept 1\n{}", "address 192.0.2.1:1\n".repeat(5)),
            "byway-relay-kept 1\nword 1\n".into(),
            "byway-relay-kept 1\nword 4294967296 1\n".into(),
            format!("byway-relay-kept 1\nrange 128 {registry} 1 1\n"),
            format!("byway-relay-kept 1\nrange 1 {registry} 1 1\nrange 2 {registry} 1 1\n"),
        ] {
            assert_eq!(with(&body), Err(NotKept), "{body}");
        }
    }

    #[test]
    fn a_registry_has_one_range_and_a_new_one_gets_a_new_one() {
        let mut kept = some();
        assert_eq!(kept.range_of(&[0xcd; 32]).unwrap().number, 5);
        for (registry, number) in (0..127).zip((0..5).chain(6..128)) {
            assert_eq!(kept.range_of(&[registry; 32]).unwrap().number, number);
        }
        assert_eq!(kept.range_of(&[0xff; 32]), None);
        kept.words = (0..MAX_NAMED_WORDS).map(|at| (u32::MAX - at as u32, u64::MAX)).collect();
        assert!(kept.to_string().len() as u64 <= MAX_FILE_BYTES);
        assert_eq!(kept.to_string().parse(), Ok(kept));
    }

    proptest! {
        #[test]
        fn garbage_never_panics(text in "\\PC{0,80}", lines in prop::collection::vec("(day|range|relay|beats) [0-9a-f]{0,40}( [0-9]{0,22}){0,4}", 0..5)) {
            let _ = text.parse::<SavedState>();
            let body = format!("{FIRST_LINE}\n{}\n", lines.join("\n"));
            let _ = format!("{body}check {}\n", check(&body)).parse::<SavedState>();
        }
    }
}
