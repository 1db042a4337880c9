//! The data that a registry keeps in its store, such as a database. The registry's state machine
//! emits [`StoreRequest`]s and takes [`StoreReply`]s whenever they come. The store numbers its
//! changes (revisions). Registries that share a store ask for all changes after the revision that
//! they know.

use crate::message::Label;
use crate::word::WordKind;
use alloc::collections::BTreeMap;
use alloc::string::String;
use alloc::vec::Vec;
use byway_engine::handshake::PublicKey;
use byway_wire::heartbeat::RelayId;
use byway_wire::relay::{QuotaClass, RangeKey, RateClass};
use core::net::{IpAddr, SocketAddr};

/// The most relays at one IP address.
pub const MAX_RELAYS_AT_ADDRESS: usize = 2;
/// Seconds for which the last epoch holds after a planned roll.
pub const LAST_EPOCH_SECONDS: u64 = 3_600;
/// The most registry words, as each has a serial number of a range. The first is the registry's
/// own.
pub const MAX_WORDS: u32 = byway_wire::relay::SERIAL_COUNT - 1;

/// An issued registry word. Its secret is derived from its number.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WordRow {
    /// The number of the registry word, from 1. It is also the serial number of its grants at every
    /// relay.
    pub number: u32,
    /// The permission of the registry word: to enrol relays, or to ask for them.
    pub kind: WordKind,
    /// The name of the registry word, by which it is revoked. No two valid words have the same
    /// name.
    pub name: String,
    /// Number of relays that the registry word may still enrol. `None`: any number.
    pub uses: Option<u32>,
    /// Bytes per second at each relay.
    pub rate: RateClass,
    /// Bytes per day at each relay.
    pub quota: QuotaClass,
    /// The expiry of the registry word, in seconds of Unix time. `u64::MAX`: never.
    pub expires: u64,
    /// Whether the registry word is revoked.
    pub revoked: bool,
}

/// A relay that is enrolled.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RelayRow {
    /// The name of the relay.
    pub relay: RelayId,
    /// The key that enrolled the relay. Only its owner may change the entry.
    pub key: PublicKey,
    /// The number of the registry word with which the relay enrolled.
    pub word: u32,
    /// The number of the range of grants that the relay gave the registry, 0 to 127.
    pub range: u8,
    /// The key with which the registry mints grants of the range.
    pub range_key: RangeKey,
    /// Bytes per second that the relay grants to a client.
    pub rate: RateClass,
    /// Bytes per day that the relay grants to a client.
    pub quota: QuotaClass,
    /// The name of the relay's operator.
    pub operator: Label,
    /// The region of the relay, as its operator named it.
    pub region: Label,
    /// The addresses at which the relay passed its test.
    pub addresses: Vec<SocketAddr>,
    /// Whether the relay passed its test over TCP too, at one address at least.
    pub tcp: bool,
    /// Whether the operator revoked the relay.
    pub revoked: bool,
}

/// The last sign of life of a relay: a heartbeat, or a passed test.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LastHeartbeat {
    /// The name of the relay.
    pub relay: RelayId,
    /// In seconds of Unix time.
    pub at: u64,
    /// The counter of the relay's last heartbeat.
    pub counter: u64,
    /// Bytes per second that the relay forwards.
    pub load: u64,
}

/// The present epoch of grants, and the time at which those of the previous epoch expire.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Epoch {
    /// The epoch's number, from 1.
    pub number: u32,
    /// When the epoch began, in seconds of Unix time.
    pub began: u64,
    /// The expiry of relay words of the previous epoch, in seconds of Unix time.
    pub last_until: u64,
}

/// Something for the audit log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AuditEntry {
    /// When, in seconds of Unix time.
    pub at: u64,
    /// `enrolled`, `changed`, `refused`, `revoked`, `issued`, `rolled`.
    pub what: &'static str,
    /// Who: a relay's or a word's name.
    pub who: String,
    /// The rest, for a person.
    pub detail: String,
}

/// A request to a store.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StoreRequest {
    /// To return the changes since a revision. Since 0: everything.
    Changes {
        /// The last revision that is known.
        since: u64,
    },
    /// To enrol or change a relay.
    Enrol {
        /// The row of the relay.
        row: RelayRow,
        /// When, in seconds of Unix time.
        at: u64,
    },
    /// To note when relays were heard of, and entries of the log.
    Note {
        /// The last heartbeats of relays.
        seen: Vec<LastHeartbeat>,
        /// Entries for the audit log.
        entries: Vec<AuditEntry>,
    },
    /// To go on to the epoch after `from`; if another did already, nothing.
    Roll {
        /// The epoch that is to end.
        from: u32,
        /// When, in seconds of Unix time.
        at: u64,
    },
}

/// The changes in the store since a revision.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Changes {
    /// The number of the last revision.
    pub revision: u64,
    /// The present epoch.
    pub epoch: Epoch,
    /// New or changed registry words.
    pub words: Vec<WordRow>,
    /// Relays that are new or changed.
    pub relays: Vec<RelayRow>,
    /// The last heartbeats of relays. Empty unless everything was requested.
    pub seen: Vec<LastHeartbeat>,
}

/// Why a relay is not enrolled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EnrolRefusal {
    /// The registry word does not exist, or is no longer valid.
    Word,
    /// The registry word has enrolled as many relays as it may.
    UsedUp,
    /// One of the relay's addresses has too many relays.
    Crowded,
    /// Another key has enrolled this relay.
    OtherKey,
}

/// A reply of a store.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StoreReply {
    /// To [`StoreRequest::Changes`], and to [`StoreRequest::Roll`] without rows.
    Changes(Changes),
    /// Reply to [`StoreRequest::Enrol`]: the relay is written or refused.
    Enrolled(Result<(), EnrolRefusal>),
    /// Reply to [`StoreRequest::Note`]: the entries are written.
    Noted,
    /// The request failed, or its outcome is unknown.
    Gone,
}

/// Stores durably the data that a registry must not lose.
pub trait Store {
    /// Carries out the request durably. Returns [`StoreReply::Gone`] if that fails.
    fn answer(&mut self, request: StoreRequest) -> StoreReply;
}

/// Decides whether a relay may be enrolled beside `others`: the rule of every store.
///
/// # Errors
/// It may not.
pub fn judge<'a>(
    row: &RelayRow,
    at: u64,
    word: Option<&WordRow>,
    others: impl Iterator<Item = &'a RelayRow>,
) -> Result<EnrolCheck, EnrolRefusal> {
    let word = word
        .filter(|word| word.kind == WordKind::Join && !word.revoked && word.expires > at)
        .ok_or(EnrolRefusal::Word)?;
    let (mut before, mut neighbours) = (None, BTreeMap::<IpAddr, usize>::new());
    for other in others.filter(|other| !other.revoked) {
        if other.relay == row.relay {
            before = Some(other);
        } else {
            let mut ips: Vec<IpAddr> = other.addresses.iter().map(SocketAddr::ip).collect();
            ips.sort_unstable();
            ips.dedup();
            ips.into_iter().for_each(|ip| *neighbours.entry(ip).or_default() += 1);
        }
    }
    if before.is_some_and(|before| before.key != row.key) {
        return Err(EnrolRefusal::OtherKey);
    }
    let crowded = |address: &SocketAddr| {
        neighbours.get(&address.ip()).is_some_and(|count| *count >= MAX_RELAYS_AT_ADDRESS)
    };
    if row.addresses.iter().any(crowded) {
        return Err(EnrolRefusal::Crowded);
    }
    if before.is_none() && word.uses == Some(0) {
        return Err(EnrolRefusal::UsedUp);
    }
    Ok(if before.is_some() { EnrolCheck::Known } else { EnrolCheck::New })
}

/// Whether a relay that may be enrolled is new or known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EnrolCheck {
    /// The relay is new, and counts as one use of its registry word.
    New,
    /// The relay was enrolled before.
    Known,
}

/// A store in memory, which is lost when dropped.
#[derive(Clone, Debug, Default)]
pub struct Memory {
    revision: u64,
    epoch: Epoch,
    words: BTreeMap<u32, (u64, WordRow)>,
    relays: BTreeMap<RelayId, (u64, RelayRow)>,
    seen: BTreeMap<RelayId, LastHeartbeat>,
    log: Vec<AuditEntry>,
}

impl Memory {
    /// An empty store. Its first epoch begins at `at`, in seconds of Unix time.
    #[must_use]
    pub fn new(at: u64) -> Self {
        Self { epoch: Epoch { number: 1, began: at, last_until: 0 }, ..Self::default() }
    }

    /// Adds or replaces a registry word.
    pub fn put_word(&mut self, word: WordRow) {
        self.revision += 1;
        self.words.insert(word.number, (self.revision, word));
    }

    /// Adds or replaces a relay, without any check.
    pub fn put_relay(&mut self, relay: RelayRow) {
        self.revision += 1;
        self.relays.insert(relay.relay, (self.revision, relay));
    }

    /// Revokes a registry word by its name. Grants minted for it end at once.
    pub fn revoke(&mut self, name: &str, at: u64) {
        self.revision += 1;
        let revision = self.revision;
        for (changed, word) in self.words.values_mut().filter(|(_, word)| word.name == name) {
            (*changed, word.revoked) = (revision, true);
        }
        self.epoch = Epoch { number: self.epoch.number + 1, began: at, last_until: at };
    }

    /// The entries of the audit log.
    #[must_use]
    pub fn log(&self) -> &[AuditEntry] {
        &self.log
    }

    fn enrol(&mut self, row: RelayRow, at: u64) -> Result<(), EnrolRefusal> {
        let word = self.words.get(&row.word).map(|(_, word)| word);
        let judged = judge(&row, at, word, self.relays.values().map(|(_, relay)| relay))?;
        self.revision += 1;
        if judged == EnrolCheck::New
            && let Some((revision, word)) = self.words.get_mut(&row.word)
        {
            (*revision, word.uses) = (self.revision, word.uses.map(|uses| uses.saturating_sub(1)));
        }
        self.relays.insert(row.relay, (self.revision, row));
        Ok(())
    }
}

impl Store for Memory {
    fn answer(&mut self, request: StoreRequest) -> StoreReply {
        match request {
            StoreRequest::Changes { since } => StoreReply::Changes(Changes {
                revision: self.revision,
                epoch: self.epoch,
                words: self
                    .words
                    .values()
                    .filter(|(at, _)| *at > since)
                    .map(|(_, word)| word.clone())
                    .collect(),
                relays: self
                    .relays
                    .values()
                    .filter(|(at, _)| *at > since)
                    .map(|(_, row)| row.clone())
                    .collect(),
                seen: if since == 0 { self.seen.values().copied().collect() } else { Vec::new() },
            }),
            StoreRequest::Enrol { row, at } => StoreReply::Enrolled(self.enrol(row, at)),
            StoreRequest::Note { seen, entries } => {
                self.seen.extend(seen.into_iter().map(|seen| (seen.relay, seen)));
                self.log.extend(entries);
                StoreReply::Noted
            }
            StoreRequest::Roll { from, at } => {
                if self.epoch.number == from {
                    self.revision += 1;
                    self.epoch = Epoch { number: from + 1, began: at, last_until: at + LAST_EPOCH_SECONDS };
                }
                StoreReply::Changes(Changes {
                    revision: self.revision,
                    epoch: self.epoch,
                    ..Changes::default()
                })
            }
        }
    }
}
