//! The words that were given out: which word a proof is of, and how often its holder may ask.

use super::shared_limit::{Limits, SharedLimit};
use crate::message::Reason;
use crate::secrets::Secrets;
use crate::store::WordRow;
use crate::word::{WordKind, WordProof};
use alloc::collections::BTreeMap;
use byway_wire::{Instant, NetworkPrefix};

/// Limits on the questions of a registry word's holders.
const ASK_LIMITS: Limits = Limits { per_second: 50, at_once: 500 };
/// Limits on the relays in complaints of a registry word's holders.
const COMPLAINT_LIMITS: Limits = Limits { per_second: 4, at_once: 64 };

/// The registry words that were issued.
#[derive(Debug)]
pub(super) struct Words {
    secrets: Secrets,
    rows: BTreeMap<u32, WordRow>,
    asks: BTreeMap<u32, SharedLimit>,
    complaints: BTreeMap<u32, SharedLimit>,
}

impl Words {
    pub const fn new(secrets: Secrets) -> Self {
        Self { secrets, rows: BTreeMap::new(), asks: BTreeMap::new(), complaints: BTreeMap::new() }
    }

    pub const fn secrets(&self) -> &Secrets {
        &self.secrets
    }

    /// Adds or replaces a registry word.
    pub fn enter(&mut self, row: WordRow) {
        if row.revoked {
            self.asks.remove(&row.number);
            self.complaints.remove(&row.number);
        }
        self.rows.insert(row.number, row);
    }

    /// Returns the registry word of a proof, if that word is valid for `kind`.
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

    /// Counts a question of a registry word's holder in this network. An error: there are too many.
    pub fn may_ask(&mut self, now: Instant, number: u32, network: NetworkPrefix) -> Result<(), Reason> {
        self.asks.entry(number).or_insert_with(|| SharedLimit::new(ASK_LIMITS)).spend(now, network, 1)
    }

    /// Counts a complaint of `relays` relays.
    pub fn may_complain(
        &mut self,
        now: Instant,
        number: u32,
        network: NetworkPrefix,
        relays: usize,
    ) -> Result<(), Reason> {
        let limit = self.complaints.entry(number).or_insert_with(|| SharedLimit::new(COMPLAINT_LIMITS));
        limit.spend(now, network, relays as u64)
    }
}
