//! How an operator opens a store by its name, and the words in it.

pub use crate::store_operations::{Issue, OperatorStore, Revoked, StoreError};

use crate::sqlite::Sqlite;
use byway_engine::handshake::PublicKey;
use byway_registry::secrets::Secrets;
use byway_registry::store::WordRow;
use byway_registry::word::{RegistryWord, WordKind, WordProof};
use std::net::SocketAddr;
use std::path::Path;

/// The name of the registry word with which relays join, which every registry has.
pub const JOIN_WORD_NAME: &str = "join";
/// The name of the registry word with which hosts ask for relays, which every registry has.
pub const USE_WORD_NAME: &str = "use";

/// The store of this name: a URL that begins with `postgres://`, or a file.
///
/// # Errors
/// It cannot be opened.
pub fn open(name: &str) -> Result<Box<dyn OperatorStore>, StoreError> {
    if name.starts_with("postgres://") || name.starts_with("postgresql://") {
        #[cfg(feature = "postgres")]
        return Ok(Box::new(crate::postgres::Postgres::open(name)?));
        #[cfg(not(feature = "postgres"))]
        return Err(StoreError::Elsewhere("this build has no PostgreSQL: use a file"));
    }
    Ok(Box::new(Sqlite::open(Path::new(name))?))
}

/// Makes the texts of registry words from the rows of a store.
pub struct Words {
    secrets: Secrets,
    addresses: Vec<SocketAddr>,
}

impl Words {
    /// Reads the secrets and addresses of a store.
    ///
    /// # Errors
    /// It does not answer, or no registry ran with it yet.
    pub fn of(keeper: &mut dyn OperatorStore) -> Result<Self, StoreError> {
        let secrets = Secrets::new(&*keeper.secret()?);
        let addresses = keeper.addresses()?;
        if addresses.is_empty() { Err(StoreError::NoAddress) } else { Ok(Self { secrets, addresses }) }
    }

    /// The registry's public key.
    #[must_use]
    pub fn key(&self) -> PublicKey {
        self.secrets.identity().public()
    }

    /// Returns the registry word of a row.
    #[must_use]
    pub fn word(&self, row: &WordRow) -> RegistryWord {
        let proof = WordProof { number: row.number, secret: self.secrets.word(row.number) };
        RegistryWord { kind: row.kind, key: self.key(), proof, addresses: self.addresses.clone() }
    }
}

/// Returns the two registry words that every registry has, and issues them if they are missing.
///
/// # Errors
/// The store does not answer.
pub fn standard(keeper: &mut dyn OperatorStore, at: u64) -> Result<[WordRow; 2], StoreError> {
    let mut find = |kind, name: &str| {
        let words = keeper.everything()?.words.into_iter();
        let known = words.filter(|word| !word.revoked).find(|word| word.name == name);
        let issue = Issue { kind, name: name.to_owned(), uses: None, rate: None, quota: None, expires: None };
        match known.map_or_else(|| keeper.issue(&issue, at), Ok) {
            // Another registry on the same store was faster.
            Err(StoreError::NameTaken(_)) => {
                let words = keeper.everything()?.words.into_iter();
                let found = words.filter(|word| !word.revoked).find(|word| word.name == name);
                found.ok_or_else(|| StoreError::Damaged(format!("it has no word {name}")))
            }
            other => other,
        }
    };
    Ok([find(WordKind::Join, JOIN_WORD_NAME)?, find(WordKind::Use, USE_WORD_NAME)?])
}
