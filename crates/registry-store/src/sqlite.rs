//! One file: SQLite with a write-ahead log. One connection writes; those of other processes of the
//! operator wait for it.

use crate::column_values::{addresses_of, ips_of, known, relay_of, signed, text_of, unsigned};
use crate::store_operations::{Issue, OperatorStore, Revoked, StoreError};
use byway_engine::handshake::PublicKey;
use byway_registry::message::Label;
use byway_registry::store::{
    AuditEntry, Changes, EnrolCheck, EnrolRefusal, Epoch, LAST_EPOCH_SECONDS, LastHeartbeat, MAX_WORDS,
    RelayRow, Store, StoreReply, StoreRequest, WordRow, judge,
};
use byway_registry::word::WordKind;
use byway_wire::heartbeat::RelayId;
use byway_wire::relay::{QuotaClass, RangeKey, RateClass};
use rusqlite::{Connection, OptionalExtension, Row, Transaction, TransactionBehavior, params};
use std::fs::{DirBuilder, OpenOptions};
use std::net::SocketAddr;
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::Path;
use std::time::Duration;
use zeroize::Zeroizing;

/// Time to wait while another process writes.
const BUSY_TIMEOUT: Duration = Duration::from_secs(5);
/// Entries of the audit log that are kept.
const MAX_LOG_ENTRIES: i64 = 100_000;

/// The statements that each version of the tables adds to the version before.
const SCHEMA_MIGRATIONS: [&str; 2] = ["
    CREATE TABLE meta (key TEXT PRIMARY KEY, value BLOB NOT NULL) WITHOUT ROWID;
    CREATE TABLE state (
        id INTEGER PRIMARY KEY CHECK (id = 1), revision INTEGER NOT NULL,
        epoch INTEGER NOT NULL, began INTEGER NOT NULL, last_until INTEGER NOT NULL);
    CREATE TABLE words (
        number INTEGER PRIMARY KEY, kind INTEGER NOT NULL, name TEXT NOT NULL, uses INTEGER, rate INTEGER NOT NULL,
        quota INTEGER NOT NULL, expires INTEGER NOT NULL, revoked INTEGER NOT NULL, revision INTEGER NOT NULL);
    CREATE UNIQUE INDEX words_name ON words (name) WHERE revoked = 0;
    CREATE INDEX words_revision ON words (revision);
    CREATE TABLE relays (
        relay BLOB PRIMARY KEY, key BLOB NOT NULL, word INTEGER NOT NULL, range INTEGER NOT NULL, range_key BLOB NOT NULL,
        rate INTEGER NOT NULL, quota INTEGER NOT NULL, operator TEXT NOT NULL, region TEXT NOT NULL,
        addresses TEXT NOT NULL, revoked INTEGER NOT NULL, enrolled INTEGER NOT NULL, revision INTEGER NOT NULL)
        WITHOUT ROWID;
    CREATE INDEX relays_revision ON relays (revision);
    CREATE TABLE relay_ips (ip TEXT NOT NULL, relay BLOB NOT NULL, PRIMARY KEY (ip, relay)) WITHOUT ROWID;
    CREATE INDEX relay_ips_relay ON relay_ips (relay);
    CREATE TABLE seen (
        relay BLOB PRIMARY KEY, at INTEGER NOT NULL, counter INTEGER NOT NULL, load INTEGER NOT NULL) WITHOUT ROWID;
    CREATE TABLE audit (
        id INTEGER PRIMARY KEY, at INTEGER NOT NULL, what TEXT NOT NULL, who TEXT NOT NULL, detail TEXT NOT NULL);
    ", "
    ALTER TABLE relays ADD COLUMN tcp INTEGER NOT NULL DEFAULT 0;
    "];

const WORD_COLUMNS: &str = "number, kind, name, uses, rate, quota, expires, revoked";
const RELAY_COLUMNS: &str =
    "relay, key, word, range, range_key, rate, quota, operator, region, addresses, revoked, tcp";

/// A store in one SQLite file.
pub struct Sqlite {
    connection: Connection,
}

impl Sqlite {
    /// Opens the file, and makes it if it is missing. Only the file's owner may read it, since it
    /// holds the registry's secret.
    ///
    /// # Errors
    /// The file cannot be opened, or has the tables of a later version.
    pub fn open(path: &Path) -> Result<Self, StoreError> {
        make(path, false)?;
        let mut connection = Connection::open(path)?;
        connection.busy_timeout(BUSY_TIMEOUT)?;
        connection.pragma_update(None, "journal_mode", "wal")?;
        // An enrolment that was answered is there after a power failure too.
        connection.pragma_update(None, "synchronous", "full")?;
        migrate(&mut connection)?;
        Ok(Self { connection })
    }

    fn begin(&mut self) -> Result<Transaction<'_>, rusqlite::Error> {
        self.connection.transaction_with_behavior(TransactionBehavior::Immediate)
    }

    fn changes(&mut self, since: u64) -> Result<Changes, StoreError> {
        let transaction = self.connection.transaction()?;
        let (revision, epoch) = state(&transaction)?;
        let mut changes = Changes { revision, epoch, ..Changes::default() };
        if revision > since || since == 0 {
            let since = signed(since);
            changes.words = all(
                &transaction,
                &format!("SELECT {WORD_COLUMNS} FROM words WHERE revision > ?"),
                [since],
                word,
            )?;
            changes.relays = all(
                &transaction,
                &format!("SELECT {RELAY_COLUMNS} FROM relays WHERE revision > ?"),
                [since],
                relay,
            )?;
            if since == 0 {
                changes.seen = all(&transaction, "SELECT relay, at, counter, load FROM seen", [], seen)?;
            }
        }
        Ok(changes)
    }

    fn enrol(&mut self, row: &RelayRow, at: u64) -> Result<Result<(), EnrolRefusal>, StoreError> {
        let transaction = self.begin()?;
        let query = format!("SELECT {WORD_COLUMNS} FROM words WHERE number = ?");
        let of_word = transaction.query_row(&query, [row.word], word).optional()?;
        let mut others: Vec<RelayRow> = Vec::new();
        let query = format!("SELECT {RELAY_COLUMNS} FROM relays WHERE relay = ?1");
        others.extend(transaction.query_row(&query, [row.relay.0], relay).optional()?);
        let query = format!(
            "SELECT {RELAY_COLUMNS} FROM relays WHERE relay IN (SELECT relay FROM relay_ips WHERE ip = ?1) AND relay <> ?2"
        );
        for ip in ips_of(&row.addresses) {
            for other in all(&transaction, &query, params![ip, row.relay.0], relay)? {
                if !others.iter().any(|known| known.relay == other.relay) {
                    others.push(other);
                }
            }
        }
        if others.iter().any(|other| other.relay == row.relay && other.revoked) {
            return Ok(Err(EnrolRefusal::OtherKey));
        }
        let judged = match judge(row, at, of_word.as_ref(), others.iter()) {
            Ok(judged) => judged,
            Err(unfit) => return Ok(Err(unfit)),
        };
        let revision = next_revision(&transaction)?;
        if judged == EnrolCheck::New {
            transaction.execute(
                "UPDATE words SET uses = uses - 1, revision = ?2 WHERE number = ?1 AND uses IS NOT NULL",
                params![row.word, signed(revision)],
            )?;
        }
        transaction.execute(
            "INSERT INTO relays VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, 0, ?11, ?12, ?13)
             ON CONFLICT (relay) DO UPDATE SET key = ?2, word = ?3, range = ?4, range_key = ?5, rate = ?6, quota = ?7,
                 operator = ?8, region = ?9, addresses = ?10, revoked = 0, revision = ?12, tcp = ?13",
            params![
                row.relay.0,
                row.key.0,
                row.word,
                row.range,
                row.range_key.reveal(),
                row.rate.0,
                row.quota.0,
                row.operator.as_str(),
                row.region.as_str(),
                text_of(&row.addresses),
                signed(at),
                signed(revision),
                row.tcp,
            ],
        )?;
        transaction.execute("DELETE FROM relay_ips WHERE relay = ?", [row.relay.0])?;
        for ip in ips_of(&row.addresses) {
            transaction.execute("INSERT OR IGNORE INTO relay_ips VALUES (?, ?)", params![ip, row.relay.0])?;
        }
        transaction.commit()?;
        Ok(Ok(()))
    }

    fn note(&mut self, seen: &[LastHeartbeat], entries: &[AuditEntry]) -> Result<(), StoreError> {
        let transaction = self.begin()?;
        {
            // A registry that shares the file may know better.
            let mut put = transaction.prepare(
                "INSERT INTO seen VALUES (?1, ?2, ?3, ?4) ON CONFLICT (relay) DO UPDATE SET at = ?2, load = ?4,
                     counter = max(counter, ?3) WHERE at <= ?2",
            )?;
            for seen in seen {
                put.execute(params![seen.relay.0, signed(seen.at), signed(seen.counter), signed(seen.load)])?;
            }
        }
        log(&transaction, entries)?;
        transaction.commit()?;
        Ok(())
    }

    fn roll(&mut self, from: u32, at: u64) -> Result<Changes, StoreError> {
        let transaction = self.begin()?;
        let (_, epoch) = state(&transaction)?;
        if epoch.number == from {
            roll(&transaction, from, at, LAST_EPOCH_SECONDS)?;
            let detail = format!("epoch {} begins, the last one holds for an hour", from + 1);
            log(&transaction, &[AuditEntry { at, what: "rolled", who: String::new(), detail }])?;
        }
        let (revision, epoch) = state(&transaction)?;
        transaction.commit()?;
        Ok(Changes { revision, epoch, ..Changes::default() })
    }
}

impl Store for Sqlite {
    fn answer(&mut self, request: StoreRequest) -> StoreReply {
        let reply = match request {
            StoreRequest::Changes { since } => self.changes(since).map(StoreReply::Changes),
            StoreRequest::Enrol { row, at } => self.enrol(&row, at).map(StoreReply::Enrolled),
            StoreRequest::Note { seen, entries } => self.note(&seen, &entries).map(|()| StoreReply::Noted),
            StoreRequest::Roll { from, at } => self.roll(from, at).map(StoreReply::Changes),
        };
        reply.unwrap_or(StoreReply::Gone)
    }
}

impl OperatorStore for Sqlite {
    fn everything(&mut self) -> Result<Changes, StoreError> {
        self.changes(0)
    }

    fn secret(&mut self) -> Result<Zeroizing<[u8; 32]>, StoreError> {
        let query = "SELECT value FROM meta WHERE key = 'secret'";
        Ok(Zeroizing::new(self.connection.query_row(query, [], |row| row.get(0))?))
    }

    fn addresses(&mut self) -> Result<Vec<SocketAddr>, StoreError> {
        let query = "SELECT CAST(value AS TEXT) FROM meta WHERE key = 'addresses'";
        let text: Option<String> = self.connection.query_row(query, [], |row| row.get(0)).optional()?;
        Ok(addresses_of(&text.unwrap_or_default()))
    }

    fn set_addresses(&mut self, addresses: &[SocketAddr]) -> Result<(), StoreError> {
        self.connection.execute(
            "INSERT OR REPLACE INTO meta VALUES ('addresses', CAST(? AS BLOB))",
            [text_of(addresses)],
        )?;
        Ok(())
    }

    fn issue(&mut self, issue: &Issue, at: u64) -> Result<WordRow, StoreError> {
        let transaction = self.begin()?;
        let taken = "SELECT 1 FROM words WHERE name = ? AND revoked = 0";
        if transaction.query_row(taken, [&issue.name], |_| Ok(())).optional()?.is_some() {
            return Err(StoreError::NameTaken(issue.name.clone()));
        }
        let last: Option<u32> =
            transaction.query_row("SELECT max(number) FROM words", [], |row| row.get(0))?;
        let number = last.unwrap_or(0) + 1;
        if number > MAX_WORDS {
            return Err(StoreError::Full);
        }
        let row = issue.row(number);
        let revision = next_revision(&transaction)?;
        transaction.execute(
            "INSERT INTO words VALUES (?, ?, ?, ?, ?, ?, ?, 0, ?)",
            params![
                number,
                row.kind.number(),
                row.name,
                row.uses,
                row.rate.0,
                row.quota.0,
                signed(row.expires),
                signed(revision)
            ],
        )?;
        let detail = format!("{:?} word {number}", row.kind).to_lowercase();
        log(&transaction, &[AuditEntry { at, what: "issued", who: row.name.clone(), detail }])?;
        transaction.commit()?;
        Ok(row)
    }

    fn revoke(&mut self, name: &str, at: u64) -> Result<Revoked, StoreError> {
        let transaction = self.begin()?;
        let query = format!("SELECT {WORD_COLUMNS} FROM words WHERE name = ? AND revoked = 0");
        let found = transaction.query_row(&query, [name], word).optional()?;
        let revision = next_revision(&transaction)?;
        let (revoked, detail) = if let Some(row) = found {
            transaction.execute(
                "UPDATE words SET revoked = 1, revision = ?2 WHERE number = ?1",
                params![row.number, signed(revision)],
            )?;
            if row.kind == WordKind::Use {
                let (_, epoch) = state(&transaction)?;
                roll(&transaction, epoch.number, at, 0)?;
            }
            let detail = format!("word {}", row.number);
            (Revoked::Word(row), detail)
        } else {
            let relay = relay_of(name).ok_or_else(|| StoreError::NoSuchName(name.to_owned()))?;
            let changed = transaction.execute(
                "UPDATE relays SET revoked = 1, revision = ?2 WHERE relay = ?1 AND revoked = 0",
                params![relay.0, signed(revision)],
            )?;
            if changed == 0 {
                return Err(StoreError::NoSuchName(name.to_owned()));
            }
            transaction.execute("DELETE FROM relay_ips WHERE relay = ?", [relay.0])?;
            (Revoked::Relay(relay), String::from("relay"))
        };
        log(&transaction, &[AuditEntry { at, what: "revoked", who: name.to_owned(), detail }])?;
        transaction.commit()?;
        Ok(revoked)
    }

    fn log(&mut self, most: u32) -> Result<Vec<AuditEntry>, StoreError> {
        let query = "SELECT at, what, who, detail FROM audit ORDER BY id DESC LIMIT ?";
        let entry = |row: &Row<'_>| {
            let what: String = row.get(1)?;
            Ok(AuditEntry {
                at: unsigned(row.get(0)?),
                what: known(&what),
                who: row.get(2)?,
                detail: row.get(3)?,
            })
        };
        Ok(all(&self.connection, query, [most], entry)?)
    }

    fn backup(&mut self, to: &Path) -> Result<(), StoreError> {
        make(to, true)?;
        // An empty file may be written to, one with something in it may not.
        self.connection.execute("VACUUM INTO ?", [to.to_string_lossy()])?;
        Ok(())
    }

    fn check(&mut self) -> Result<(), StoreError> {
        let found: String = self.connection.query_row("PRAGMA integrity_check(1)", [], |row| row.get(0))?;
        if found != "ok" {
            return Err(StoreError::Damaged(found));
        }
        self.secret()?;
        self.everything().map(drop)
    }
}

/// Makes a file that only its owner can read, if it is missing. `new`: it must be missing.
fn make(path: &Path, new: bool) -> Result<(), StoreError> {
    let io = |source| StoreError::Io { path: path.display().to_string(), source };
    if let Some(directory) = path.parent().filter(|it| !it.as_os_str().is_empty()) {
        DirBuilder::new().recursive(true).mode(0o700).create(directory).map_err(io)?;
    }
    let mut options = OpenOptions::new();
    options.write(true).mode(0o600);
    if new {
        options.create_new(true)
    } else {
        options.create(true).truncate(false)
    };
    options.open(path).map_err(io)?;
    Ok(())
}

fn migrate(connection: &mut Connection) -> Result<(), StoreError> {
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    let version: i64 = transaction.query_row("PRAGMA user_version", [], |row| row.get(0))?;
    let known = SCHEMA_MIGRATIONS.len() as i64;
    if version > known {
        return Err(StoreError::Later(version));
    }
    for migration in SCHEMA_MIGRATIONS.iter().skip(usize::try_from(version).unwrap_or(0)) {
        transaction.execute_batch(migration)?;
    }
    if version == 0 {
        let secret: [u8; 32] = byway_net::seed()?;
        transaction.execute("INSERT INTO meta VALUES ('secret', ?)", [secret])?;
        transaction
            .execute("INSERT INTO state VALUES (1, 0, 1, ?, 0)", [signed(byway_net::unix_seconds())])?;
    }
    transaction.pragma_update(None, "user_version", known)?;
    transaction.commit()?;
    Ok(())
}

fn all<T>(
    connection: &Connection,
    query: &str,
    values: impl rusqlite::Params,
    read: impl FnMut(&Row<'_>) -> Result<T, rusqlite::Error>,
) -> Result<Vec<T>, rusqlite::Error> {
    connection.prepare(query)?.query_map(values, read)?.collect()
}

fn state(connection: &Connection) -> Result<(u64, Epoch), rusqlite::Error> {
    connection.query_row("SELECT revision, epoch, began, last_until FROM state", [], |row| {
        let epoch =
            Epoch { number: row.get(1)?, began: unsigned(row.get(2)?), last_until: unsigned(row.get(3)?) };
        Ok((unsigned(row.get(0)?), epoch))
    })
}

fn next_revision(transaction: &Transaction<'_>) -> Result<u64, rusqlite::Error> {
    let query = "UPDATE state SET revision = revision + 1 RETURNING revision";
    transaction.query_row(query, [], |row| row.get(0)).map(unsigned)
}

fn roll(transaction: &Transaction<'_>, from: u32, at: u64, last_holds: u64) -> Result<(), rusqlite::Error> {
    next_revision(transaction)?;
    let values = params![from + 1, signed(at), signed(at + last_holds)];
    transaction.execute("UPDATE state SET epoch = ?, began = ?, last_until = ?", values)?;
    Ok(())
}

fn log(transaction: &Transaction<'_>, entries: &[AuditEntry]) -> Result<(), rusqlite::Error> {
    let mut put = transaction.prepare("INSERT INTO audit (at, what, who, detail) VALUES (?, ?, ?, ?)")?;
    for entry in entries {
        put.execute(params![signed(entry.at), entry.what, entry.who, entry.detail])?;
    }
    if !entries.is_empty() {
        transaction
            .execute("DELETE FROM audit WHERE id <= (SELECT max(id) FROM audit) - ?", [MAX_LOG_ENTRIES])?;
    }
    Ok(())
}

fn word(row: &Row<'_>) -> Result<WordRow, rusqlite::Error> {
    Ok(WordRow {
        number: row.get(0)?,
        kind: WordKind::of(row.get(1)?).unwrap_or(WordKind::Use),
        name: row.get(2)?,
        uses: row.get(3)?,
        rate: RateClass(row.get(4)?),
        quota: QuotaClass(row.get(5)?),
        expires: unsigned(row.get(6)?),
        revoked: row.get(7)?,
    })
}

fn relay(row: &Row<'_>) -> Result<RelayRow, rusqlite::Error> {
    let (operator, region, addresses): (String, String, String) = (row.get(7)?, row.get(8)?, row.get(9)?);
    Ok(RelayRow {
        relay: RelayId(row.get(0)?),
        key: PublicKey(row.get(1)?),
        word: row.get(2)?,
        range: row.get(3)?,
        range_key: RangeKey::new(row.get(4)?),
        rate: RateClass(row.get(5)?),
        quota: QuotaClass(row.get(6)?),
        operator: Label::new(&operator),
        region: Label::new(&region),
        addresses: addresses_of(&addresses),
        revoked: row.get(10)?,
        tcp: row.get(11)?,
    })
}

fn seen(row: &Row<'_>) -> Result<LastHeartbeat, rusqlite::Error> {
    Ok(LastHeartbeat {
        relay: RelayId(row.get(0)?),
        at: unsigned(row.get(1)?),
        counter: unsigned(row.get(2)?),
        load: unsigned(row.get(3)?),
    })
}
