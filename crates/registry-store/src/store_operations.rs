//! The operations of every store for its operator, besides answering a registry.

use byway_registry::store::{AuditEntry, Changes, Store, WordRow};
use byway_registry::word::WordKind;
use byway_wire::heartbeat::RelayId;
use byway_wire::relay::{QuotaClass, RateClass};
use std::net::SocketAddr;
use std::path::Path;
use thiserror::Error;
use zeroize::Zeroizing;

/// Why an operation of a store failed.
#[derive(Debug, Error)]
pub enum StoreError {
    /// Something is wrong with the file or the data base.
    #[error("the registry's store: {0}")]
    Sqlite(#[from] rusqlite::Error),
    /// The data base refused something.
    #[cfg(feature = "postgres")]
    #[error("the registry's data base: {}", told(.0))]
    Postgres(#[from] tokio_postgres::Error),
    /// The database cannot be reached.
    #[cfg(feature = "postgres")]
    #[error("the registry's data base cannot be reached: {0}")]
    Pool(#[source] deadpool_postgres::PoolError),
    /// The data base cannot be used.
    #[error("the registry's data base: {0}")]
    DataBase(String),
    /// The data base does not answer in time.
    #[error("the registry's data base does not answer in time")]
    Silent,
    /// The operating system reported an error for a file.
    #[error("the registry's store in {path}: {source}")]
    Io {
        /// The file's path.
        path: String,
        /// The system's error.
        source: std::io::Error,
    },
    /// A later version of byway wrote the store.
    #[error("the registry's store has format {0}, which this byway does not read: update it")]
    Later(i64),
    /// The store's contents are damaged.
    #[error("the registry's store is damaged: {0}")]
    Damaged(String),
    /// No registry word and no relay has this name.
    #[error("there is no word and no relay of the name {0}")]
    NoSuchName(String),
    /// Another registry word already has this name.
    #[error("there is a word of the name {0} already: revoke it first, or take another name")]
    NameTaken(String),
    /// The registry has the largest possible number of registry words.
    #[error("there are as many words as there is room for")]
    Full,
    /// No registry has run with this store yet, so the store holds no addresses for its words.
    #[error(
        "no registry ran with this store yet, so its words would lead nowhere: start `byway registry` first"
    )]
    NoAddress,
    /// This kind of store does not offer the operation.
    #[error("{0}")]
    Elsewhere(&'static str),
    /// The system gives no randomness.
    #[error(transparent)]
    Entropy(#[from] byway_net::EntropyError),
}

#[cfg(feature = "postgres")]
impl From<deadpool_postgres::PoolError> for StoreError {
    fn from(error: deadpool_postgres::PoolError) -> Self {
        match error {
            deadpool_postgres::PoolError::Timeout(_) => Self::Silent,
            error => Self::Pool(error),
        }
    }
}

/// Returns the error of the database, with its cause.
#[cfg(feature = "postgres")]
fn told(error: &tokio_postgres::Error) -> String {
    let because = std::error::Error::source(error).map(|because| format!(": {because}"));
    format!("{error}{}", because.unwrap_or_default())
}

/// A registry word to issue.
#[derive(Clone, Debug)]
pub struct Issue {
    /// The permission of the registry word: to enrol relays, or to ask for them.
    pub kind: WordKind,
    /// The name of the registry word's holder.
    pub name: String,
    /// Number of relays that the registry word may enrol. `None`: any number.
    pub uses: Option<u32>,
    /// Bytes per second at each relay; `None`: as many as that lends.
    pub rate: Option<u64>,
    /// Bytes per day at each relay.
    pub quota: Option<u64>,
    /// The expiry of the registry word, in seconds of Unix time. `None`: it never expires.
    pub expires: Option<u64>,
}

impl Issue {
    /// Returns the row of the registry word `number`.
    #[must_use]
    pub fn row(&self, number: u32) -> WordRow {
        WordRow {
            number,
            kind: self.kind,
            name: self.name.clone(),
            uses: self.uses,
            rate: self.rate.map_or(RateClass::UNLIMITED, RateClass::at_most),
            quota: self.quota.map_or(QuotaClass::UNLIMITED, QuotaClass::at_most),
            expires: self.expires.unwrap_or(u64::MAX),
            revoked: false,
        }
    }
}

/// The registry word or relay that was revoked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Revoked {
    /// A registry word. Grants that were minted for it ended with their epoch.
    Word(WordRow),
    /// A relay. It is no longer listed, and cannot enrol again under its name.
    Relay(RelayId),
}

/// A store with the operations for its operator.
pub trait OperatorStore: Store + Send {
    /// Returns all registry words and relays, without the audit log.
    ///
    /// # Errors
    /// The store does not answer.
    fn everything(&mut self) -> Result<Changes, StoreError>;

    /// The secret from which the registry's keys are derived.
    ///
    /// # Errors
    /// The store does not answer.
    fn secret(&mut self) -> Result<Zeroizing<[u8; 32]>, StoreError>;

    /// Returns the registry's addresses, as its registry words contain them.
    ///
    /// # Errors
    /// The store does not answer.
    fn addresses(&mut self) -> Result<Vec<SocketAddr>, StoreError>;

    /// Keeps that.
    ///
    /// # Errors
    /// The store does not answer.
    fn set_addresses(&mut self, addresses: &[SocketAddr]) -> Result<(), StoreError>;

    /// Issues a registry word.
    ///
    /// # Errors
    /// The name is taken, or the store does not answer.
    fn issue(&mut self, issue: &Issue, at: u64) -> Result<WordRow, StoreError>;

    /// Revokes a registry word or a relay.
    ///
    /// # Errors
    /// There is none of the name, or the store does not answer.
    fn revoke(&mut self, name: &str, at: u64) -> Result<Revoked, StoreError>;

    /// The last `most` entries of the audit log, the latest first.
    ///
    /// # Errors
    /// The store does not answer.
    fn log(&mut self, most: u32) -> Result<Vec<AuditEntry>, StoreError>;

    /// Copies everything into a new file, while a registry runs.
    ///
    /// # Errors
    /// The file exists, or cannot be written.
    fn backup(&mut self, to: &Path) -> Result<(), StoreError>;

    /// Looks for damage.
    ///
    /// # Errors
    /// There is some.
    fn check(&mut self) -> Result<(), StoreError>;
}
