//! The words that were given out: which word a proof is of, and how often its holder may ask.

use crate::message::Reason;
use crate::secrets::Secrets;
use crate::store::WordRow;
use crate::word::{WordKind, WordProof};
use alloc::collections::BTreeMap;
use byway_wire::{Instant, Meter};

/// Questions that a word may ask in a second, and at once.
const ASKS_PER_SECOND: u64 = 50;
const ASKS_AT_ONCE: u64 = 500;
/// Relays that its holders may complain of in a second, and at once.
const COMPLAINTS_PER_SECOND: u64 = 4;
const COMPLAINTS_AT_ONCE: u64 = 64;

/// All words that were given out.
#[derive(Debug)]
pub(super) struct Words {
    secrets: Secrets,
    rows: BTreeMap<u32, WordRow>,
    asks: BTreeMap<u32, Meter>,
    complaints: BTreeMap<u32, Meter>,
}

impl Words {
    pub const fn new(secrets: Secrets) -> Self {
        Self { secrets, rows: BTreeMap::new(), asks: BTreeMap::new(), complaints: BTreeMap::new() }
    }

    pub const fn secrets(&self) -> &Secrets {
        &self.secrets
    }

    /// A word is new, or changed.
    pub fn enter(&mut self, row: WordRow) {
        if row.revoked {
            self.asks.remove(&row.number);
            self.complaints.remove(&row.number);
        }
        self.rows.insert(row.number, row);
    }

    /// The word that a proof is of, if that word is good for `kind`.
    pub fn find(&self, proof: &WordProof, kind: WordKind, unix: u64) -> Result<&WordRow, Reason> {
        let row = self.rows.get(&proof.number).ok_or(Reason::UnknownWord)?;
        if self.secrets.word(proof.number) != proof.secret {
            return Err(Reason::UnknownWord);
        }
        if row.revoked {
            return Err(Reason::Revoked);
        }
        if row.expires <= unix {
            return Err(Reason::Expired);
        }
        if row.kind == kind { Ok(row) } else { Err(Reason::OtherKind) }
    }

    /// Counts a question, if the word's holder may ask one now.
    pub fn may_ask(&mut self, now: Instant, number: u32) -> Result<(), Reason> {
        spend(self.asks.entry(number).or_default(), now, 1, (ASKS_PER_SECOND, ASKS_AT_ONCE))
    }

    /// Counts a complaint of so many relays.
    pub fn may_complain(&mut self, now: Instant, number: u32, relays: usize) -> Result<(), Reason> {
        let limits = (COMPLAINTS_PER_SECOND, COMPLAINTS_AT_ONCE);
        spend(self.complaints.entry(number).or_default(), now, relays as u64, limits)
    }
}

fn spend(meter: &mut Meter, now: Instant, units: u64, (rate, at_once): (u64, u64)) -> Result<(), Reason> {
    if meter.wait(now, at_once * (1_000_000_000 / rate)) > 0 {
        return Err(Reason::TooOften);
    }
    meter.take(now, units, rate);
    Ok(())
}
