//! PostgreSQL: several registries share one database. A change is one transaction, which first
//! locks the row that holds the revision. So changes happen one after the other, and no registry
//! misses one. The next request replaces a lost connection.

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
use deadpool_postgres::{Manager, ManagerConfig, Pool, RecyclingMethod, Transaction};
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject as _;
use rustls::{ClientConfig, RootCertStore};
use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::runtime::{Builder, Runtime};
use tokio_postgres::config::SslMode;
use tokio_postgres::types::ToSql;
use tokio_postgres::{Config, IsolationLevel, NoTls, Row};
use tokio_postgres_rustls::MakeRustlsConnect;
use zeroize::Zeroizing;

/// The most connections of one registry to the database.
const MAX_CONNECTIONS: usize = 2;
/// Time to wait for a connection, and for a statement.
const STATEMENT_TIMEOUT: Duration = Duration::from_secs(5);
/// Time that a database may take for its first reply. It may have started together with this host.
const START_TIMEOUT: Duration = Duration::from_secs(30);
/// Entries of the audit log that are kept.
const MAX_LOG_ENTRIES: i64 = 100_000;
/// The number of the advisory lock that a migration takes.
const MIGRATION_LOCK_ID: i64 = 0x6279_7761_7972;

/// The statements that each version of the tables adds to the version before.
const SCHEMA_MIGRATIONS: [&str; 2] = ["
    CREATE TABLE meta (key TEXT PRIMARY KEY, value BYTEA NOT NULL);
    CREATE TABLE state (
        id INT PRIMARY KEY CHECK (id = 1), version BIGINT NOT NULL, revision BIGINT NOT NULL,
        epoch BIGINT NOT NULL, began BIGINT NOT NULL, last_until BIGINT NOT NULL);
    CREATE TABLE words (
        number BIGINT PRIMARY KEY, kind BIGINT NOT NULL, name TEXT NOT NULL, uses BIGINT, rate BIGINT NOT NULL,
        quota BIGINT NOT NULL, expires BIGINT NOT NULL, revoked BOOLEAN NOT NULL, revision BIGINT NOT NULL);
    CREATE UNIQUE INDEX words_name ON words (name) WHERE NOT revoked;
    CREATE INDEX words_revision ON words (revision);
    CREATE TABLE relays (
        relay BYTEA PRIMARY KEY, key BYTEA NOT NULL, word BIGINT NOT NULL, range BIGINT NOT NULL, range_key BYTEA NOT NULL,
        rate BIGINT NOT NULL, quota BIGINT NOT NULL, operator TEXT NOT NULL, region TEXT NOT NULL,
        addresses TEXT NOT NULL, revoked BOOLEAN NOT NULL, enrolled BIGINT NOT NULL, revision BIGINT NOT NULL);
    CREATE INDEX relays_revision ON relays (revision);
    CREATE TABLE relay_ips (ip TEXT NOT NULL, relay BYTEA NOT NULL, PRIMARY KEY (ip, relay));
    CREATE INDEX relay_ips_relay ON relay_ips (relay);
    CREATE TABLE seen (relay BYTEA PRIMARY KEY, at BIGINT NOT NULL, counter BIGINT NOT NULL, load BIGINT NOT NULL);
    CREATE TABLE audit (
        id BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY, at BIGINT NOT NULL, what TEXT NOT NULL, who TEXT NOT NULL,
        detail TEXT NOT NULL);
    ", "
    ALTER TABLE relays ADD COLUMN tcp BOOLEAN NOT NULL DEFAULT FALSE;
    "];

const WORD_COLUMNS: &str = "number, kind, name, uses, rate, quota, expires, revoked";
const RELAY_COLUMNS: &str =
    "relay, key, word, range, range_key, rate, quota, operator, region, addresses, revoked, tcp";

/// A store in a data base.
pub struct Postgres {
    runtime: Runtime,
    database: Database,
}

type Result<T> = std::result::Result<T, StoreError>;

impl Postgres {
    /// Opens the database at this URL, and makes the tables if they are missing.
    ///
    /// | in the URL | effect |
    /// |---|---|
    /// | `sslmode=verify-full` | TLS is required |
    /// | `sslmode=disable` | no TLS |
    /// | no `sslmode` | TLS if the server offers it |
    /// | `sslrootcert=FILE` | a certificate in this file must have signed the server's |
    /// | no `sslrootcert` | a certificate that this host trusts must have signed the server's |
    ///
    /// # Errors
    /// The database does not answer, or has the tables of a later version.
    pub fn open(url: &str) -> Result<Self> {
        let runtime = Builder::new_current_thread().enable_all().build();
        let runtime =
            runtime.map_err(|source| StoreError::Io { path: "a thread for PostgreSQL".into(), source })?;
        let database = Database { pool: pool(url)? };
        let store = Self { runtime, database };
        let began = Instant::now();
        loop {
            match store.wait(store.database.migrate()) {
                Err(StoreError::Silent) if began.elapsed() < START_TIMEOUT => {}
                outcome => return outcome.map(|()| store),
            }
        }
    }

    /// Waits for an answer, and no longer than is bearable.
    fn wait<T>(&self, work: impl Future<Output = Result<T>>) -> Result<T> {
        let limited = async { tokio::time::timeout(2 * STATEMENT_TIMEOUT, work).await };
        self.runtime.block_on(limited).unwrap_or(Err(StoreError::Silent))
    }
}

fn pool(url: &str) -> Result<Pool> {
    let (url, roots) = split(url);
    let mut config: Config = url.parse()?;
    config.connect_timeout(STATEMENT_TIMEOUT).keepalives_idle(Duration::from_secs(30));
    if config.get_application_name().is_none() {
        config.application_name("byway registry");
    }
    let recycling = ManagerConfig { recycling_method: RecyclingMethod::Verified };
    let manager = if config.get_ssl_mode() == SslMode::Disable {
        Manager::from_config(config, NoTls, recycling)
    } else {
        Manager::from_config(config, MakeRustlsConnect::new(tls(roots.as_deref())?), recycling)
    };
    let builder =
        Pool::builder(manager).max_size(MAX_CONNECTIONS).runtime(deadpool_postgres::Runtime::Tokio1);
    let builder = builder
        .wait_timeout(Some(STATEMENT_TIMEOUT))
        .create_timeout(Some(STATEMENT_TIMEOUT))
        .recycle_timeout(Some(STATEMENT_TIMEOUT));
    builder.build().map_err(|error| StoreError::DataBase(error.to_string()))
}

/// Splits a URL into one that the driver reads, and the file of certificates to trust. The driver
/// always checks certificates, and does not know `verify-full`.
fn split(url: &str) -> (String, Option<String>) {
    let Some((base, query)) = url.split_once('?') else { return (url.to_owned(), None) };
    let mut roots = None;
    let kept = query.split('&').filter_map(|part| match part.split_once('=') {
        Some(("sslmode", "verify-full" | "verify-ca")) => Some("sslmode=require"),
        Some(("sslrootcert", file)) => {
            roots = Some(file.to_owned());
            None
        }
        _ => Some(part),
    });
    let kept: Vec<&str> = kept.collect();
    (if kept.is_empty() { base.to_owned() } else { format!("{base}?{}", kept.join("&")) }, roots)
}

fn tls(roots: Option<&str>) -> Result<ClientConfig> {
    let mut trusted = RootCertStore::empty();
    if let Some(file) = roots {
        let io = |source| StoreError::Io { path: file.to_owned(), source };
        let found = CertificateDer::pem_file_iter(file)
            .map_err(|error| io(std::io::Error::other(error.to_string())))?;
        trusted.add_parsable_certificates(found.flatten());
    } else {
        trusted.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
    }
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions();
    let config = config.map_err(|error| StoreError::DataBase(error.to_string()))?;
    Ok(config.with_root_certificates(trusted).with_no_client_auth())
}

/// The pool of connections to the database.
struct Database {
    pool: Pool,
}

impl Database {
    async fn migrate(&self) -> Result<()> {
        let mut client = self.pool.get().await?;
        let transaction = client.transaction().await?;
        // Of several registries that begin at once one makes the tables.
        transaction.execute("SELECT pg_advisory_xact_lock($1)", &[&MIGRATION_LOCK_ID]).await?;
        let there = "SELECT to_regclass('state') IS NOT NULL";
        let there: bool = transaction.query_one(there, &[]).await?.get(0);
        let version: i64 =
            if there { transaction.query_one("SELECT version FROM state", &[]).await?.get(0) } else { 0 };
        let latest = SCHEMA_MIGRATIONS.len() as i64;
        if version > latest {
            return Err(StoreError::Later(version));
        }
        for migration in SCHEMA_MIGRATIONS.iter().skip(usize::try_from(version).unwrap_or(0)) {
            transaction.batch_execute(migration).await?;
        }
        if version == 0 {
            let secret: [u8; 32] = byway_net::seed()?;
            transaction.execute("INSERT INTO meta VALUES ('secret', $1)", &[&&secret[..]]).await?;
            let began = signed(byway_net::unix_seconds());
            transaction.execute("INSERT INTO state VALUES (1, 0, 0, 1, $1, 0)", &[&began]).await?;
        }
        transaction.execute("UPDATE state SET version = $1", &[&latest]).await?;
        transaction.commit().await?;
        Ok(())
    }

    async fn changes(&self, since: u64) -> Result<Changes> {
        let mut client = self.pool.get().await?;
        let reading =
            client.build_transaction().isolation_level(IsolationLevel::RepeatableRead).read_only(true);
        let transaction = reading.start().await?;
        let (revision, epoch) = state(&transaction).await?;
        let mut changes = Changes { revision, epoch, ..Changes::default() };
        if revision > since || since == 0 {
            let after: &[&(dyn ToSql + Sync)] = &[&signed(since)];
            let query = format!("SELECT {WORD_COLUMNS} FROM words WHERE revision > $1");
            changes.words = all(&transaction, &query, after, word).await?;
            let query = format!("SELECT {RELAY_COLUMNS} FROM relays WHERE revision > $1");
            changes.relays = all(&transaction, &query, after, relay).await?;
            if since == 0 {
                changes.seen =
                    all(&transaction, "SELECT relay, at, counter, load FROM seen", &[], seen).await?;
            }
        }
        transaction.commit().await?;
        Ok(changes)
    }

    async fn enrol(&self, row: &RelayRow, at: u64) -> Result<std::result::Result<(), EnrolRefusal>> {
        let mut client = self.pool.get().await?;
        let transaction = client.transaction().await?;
        let revision = next_revision(&transaction).await?;
        let name = &row.relay.0[..];
        let query = format!("SELECT {WORD_COLUMNS} FROM words WHERE number = $1");
        let of_word = all(&transaction, &query, &[&i64::from(row.word)], word).await?;
        let query = format!("SELECT {RELAY_COLUMNS} FROM relays WHERE relay = $1");
        let mut others = all(&transaction, &query, &[&name], relay).await?;
        let query = format!(
            "SELECT {RELAY_COLUMNS} FROM relays WHERE relay <> $2 AND relay IN (SELECT relay FROM relay_ips WHERE ip = ANY($1))"
        );
        let ips = ips_of(&row.addresses);
        others.extend(all(&transaction, &query, &[&ips, &name], relay).await?);
        if others.iter().any(|other| other.relay == row.relay && other.revoked) {
            return Ok(Err(EnrolRefusal::OtherKey));
        }
        let judged = match judge(row, at, of_word.first(), others.iter()) {
            Ok(judged) => judged,
            Err(unfit) => return Ok(Err(unfit)),
        };
        if judged == EnrolCheck::New {
            let query =
                "UPDATE words SET uses = uses - 1, revision = $2 WHERE number = $1 AND uses IS NOT NULL";
            transaction.execute(query, &[&i64::from(row.word), &signed(revision)]).await?;
        }
        let values: [&(dyn ToSql + Sync); 13] = [
            &name,
            &&row.key.0[..],
            &i64::from(row.word),
            &i64::from(row.range),
            &&row.range_key.reveal()[..],
            &i64::from(row.rate.0),
            &i64::from(row.quota.0),
            &row.operator.as_str(),
            &row.region.as_str(),
            &text_of(&row.addresses),
            &signed(at),
            &signed(revision),
            &row.tcp,
        ];
        transaction
            .execute(
                "INSERT INTO relays VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, FALSE, $11, $12, $13)
                 ON CONFLICT (relay) DO UPDATE SET key = $2, word = $3, range = $4, range_key = $5, rate = $6, quota = $7,
                     operator = $8, region = $9, addresses = $10, revoked = FALSE, revision = $12, tcp = $13",
                &values,
            )
            .await?;
        transaction.execute("DELETE FROM relay_ips WHERE relay = $1", &[&name]).await?;
        transaction.execute("INSERT INTO relay_ips SELECT unnest($1::text[]), $2", &[&ips, &name]).await?;
        transaction.commit().await?;
        Ok(Ok(()))
    }

    async fn note(&self, seen: &[LastHeartbeat], entries: &[AuditEntry]) -> Result<()> {
        let mut client = self.pool.get().await?;
        let transaction = client.transaction().await?;
        let mut seen: Vec<&LastHeartbeat> = seen.iter().collect();
        // In one order, so that two registries never wait for each other.
        seen.sort_by_key(|seen| seen.relay);
        let names: Vec<&[u8]> = seen.iter().map(|seen| &seen.relay.0[..]).collect();
        let numbers = |of: fn(&LastHeartbeat) -> u64| -> Vec<i64> {
            seen.iter().map(|seen| signed(of(seen))).collect()
        };
        let (ats, counters, loads) = (numbers(|it| it.at), numbers(|it| it.counter), numbers(|it| it.load));
        // Another registry may know better.
        transaction
            .execute(
                "INSERT INTO seen SELECT * FROM unnest($1::bytea[], $2::bigint[], $3::bigint[], $4::bigint[])
                 ON CONFLICT (relay) DO UPDATE SET at = excluded.at, load = excluded.load,
                     counter = greatest(seen.counter, excluded.counter) WHERE seen.at <= excluded.at",
                &[&names, &ats, &counters, &loads],
            )
            .await?;
        log(&transaction, entries).await?;
        transaction.commit().await?;
        Ok(())
    }

    async fn roll(&self, from: u32, at: u64) -> Result<Changes> {
        let mut client = self.pool.get().await?;
        let transaction = client.transaction().await?;
        transaction.execute("SELECT 1 FROM state FOR UPDATE", &[]).await?;
        let (_, epoch) = state(&transaction).await?;
        if epoch.number == from {
            roll(&transaction, from, at, LAST_EPOCH_SECONDS).await?;
            let detail = format!("epoch {} begins, the last one holds for an hour", from + 1);
            log(&transaction, &[AuditEntry { at, what: "rolled", who: String::new(), detail }]).await?;
        }
        let (revision, epoch) = state(&transaction).await?;
        transaction.commit().await?;
        Ok(Changes { revision, epoch, ..Changes::default() })
    }

    async fn meta(&self, key: &str) -> Result<Option<Vec<u8>>> {
        let client = self.pool.get().await?;
        let row = client.query_opt("SELECT value FROM meta WHERE key = $1", &[&key]).await?;
        Ok(row.map(|row| row.try_get(0)).transpose()?)
    }

    async fn set_meta(&self, key: &str, value: &[u8]) -> Result<()> {
        let client = self.pool.get().await?;
        let query = "INSERT INTO meta VALUES ($1, $2) ON CONFLICT (key) DO UPDATE SET value = $2";
        client.execute(query, &[&key, &value]).await?;
        Ok(())
    }

    async fn issue(&self, issue: &Issue, at: u64) -> Result<WordRow> {
        let mut client = self.pool.get().await?;
        let transaction = client.transaction().await?;
        let revision = next_revision(&transaction).await?;
        let taken = "SELECT 1 FROM words WHERE name = $1 AND NOT revoked";
        if transaction.query_opt(taken, &[&issue.name]).await?.is_some() {
            return Err(StoreError::NameTaken(issue.name.clone()));
        }
        let last: i64 =
            transaction.query_one("SELECT coalesce(max(number), 0) FROM words", &[]).await?.try_get(0)?;
        let number =
            u32::try_from(last + 1).ok().filter(|number| *number <= MAX_WORDS).ok_or(StoreError::Full)?;
        let row = issue.row(number);
        let values: [&(dyn ToSql + Sync); 8] = [
            &i64::from(number),
            &i64::from(row.kind.number()),
            &row.name,
            &row.uses.map(i64::from),
            &i64::from(row.rate.0),
            &i64::from(row.quota.0),
            &signed(row.expires),
            &signed(revision),
        ];
        transaction
            .execute("INSERT INTO words VALUES ($1, $2, $3, $4, $5, $6, $7, FALSE, $8)", &values)
            .await?;
        let detail = format!("{:?} word {number}", row.kind).to_lowercase();
        log(&transaction, &[AuditEntry { at, what: "issued", who: row.name.clone(), detail }]).await?;
        transaction.commit().await?;
        Ok(row)
    }

    async fn revoke(&self, name: &str, at: u64) -> Result<Revoked> {
        let mut client = self.pool.get().await?;
        let transaction = client.transaction().await?;
        let revision = signed(next_revision(&transaction).await?);
        let query = format!("SELECT {WORD_COLUMNS} FROM words WHERE name = $1 AND NOT revoked");
        let (revoked, detail) = if let Some(row) = all(&transaction, &query, &[&name], word).await?.pop() {
            let query = "UPDATE words SET revoked = TRUE, revision = $2 WHERE number = $1";
            transaction.execute(query, &[&i64::from(row.number), &revision]).await?;
            if row.kind == WordKind::Use {
                let (_, epoch) = state(&transaction).await?;
                roll(&transaction, epoch.number, at, 0).await?;
            }
            let detail = format!("word {}", row.number);
            (Revoked::Word(row), detail)
        } else {
            let none = || StoreError::NoSuchName(name.to_owned());
            let relay = relay_of(name).ok_or_else(none)?;
            let key = &relay.0[..];
            let query = "UPDATE relays SET revoked = TRUE, revision = $2 WHERE relay = $1 AND NOT revoked";
            if transaction.execute(query, &[&key, &revision]).await? == 0 {
                return Err(none());
            }
            transaction.execute("DELETE FROM relay_ips WHERE relay = $1", &[&key]).await?;
            (Revoked::Relay(relay), String::from("relay"))
        };
        log(&transaction, &[AuditEntry { at, what: "revoked", who: name.to_owned(), detail }]).await?;
        transaction.commit().await?;
        Ok(revoked)
    }

    async fn entries(&self, most: u32) -> Result<Vec<AuditEntry>> {
        let mut client = self.pool.get().await?;
        let transaction = client.transaction().await?;
        let query = "SELECT at, what, who, detail FROM audit ORDER BY id DESC LIMIT $1";
        let entry = |row: &Row| {
            let what: String = row.try_get(1)?;
            let at = unsigned(row.try_get(0)?);
            Ok(AuditEntry { at, what: known(&what), who: row.try_get(2)?, detail: row.try_get(3)? })
        };
        all(&transaction, query, &[&i64::from(most)], entry).await
    }
}

impl Store for Postgres {
    fn answer(&mut self, request: StoreRequest) -> StoreReply {
        let database = &self.database;
        let reply = match request {
            StoreRequest::Changes { since } => self.wait(database.changes(since)).map(StoreReply::Changes),
            StoreRequest::Enrol { row, at } => self.wait(database.enrol(&row, at)).map(StoreReply::Enrolled),
            StoreRequest::Note { seen, entries } => {
                self.wait(database.note(&seen, &entries)).map(|()| StoreReply::Noted)
            }
            StoreRequest::Roll { from, at } => self.wait(database.roll(from, at)).map(StoreReply::Changes),
        };
        reply.unwrap_or(StoreReply::Gone)
    }
}

impl OperatorStore for Postgres {
    fn everything(&mut self) -> Result<Changes> {
        self.wait(self.database.changes(0))
    }

    fn secret(&mut self) -> Result<Zeroizing<[u8; 32]>> {
        let value = Zeroizing::new(self.wait(self.database.meta("secret"))?.unwrap_or_default());
        let secret = <[u8; 32]>::try_from(value.as_slice());
        secret.map(Zeroizing::new).map_err(|_| StoreError::Damaged(String::from("it has no secret")))
    }

    fn addresses(&mut self) -> Result<Vec<SocketAddr>> {
        let value = self.wait(self.database.meta("addresses"))?.unwrap_or_default();
        Ok(addresses_of(&String::from_utf8_lossy(&value)))
    }

    fn set_addresses(&mut self, addresses: &[SocketAddr]) -> Result<()> {
        self.wait(self.database.set_meta("addresses", text_of(addresses).as_bytes()))
    }

    fn issue(&mut self, issue: &Issue, at: u64) -> Result<WordRow> {
        self.wait(self.database.issue(issue, at))
    }

    fn revoke(&mut self, name: &str, at: u64) -> Result<Revoked> {
        self.wait(self.database.revoke(name, at))
    }

    fn log(&mut self, most: u32) -> Result<Vec<AuditEntry>> {
        self.wait(self.database.entries(most))
    }

    fn backup(&mut self, _to: &Path) -> Result<()> {
        Err(StoreError::Elsewhere("a data base is copied with its own tools: use `pg_dump`"))
    }

    fn check(&mut self) -> Result<()> {
        self.secret()?;
        self.everything().map(drop)
    }
}

async fn all<T>(
    transaction: &Transaction<'_>,
    query: &str,
    values: &[&(dyn ToSql + Sync)],
    read: impl Fn(&Row) -> Result<T>,
) -> Result<Vec<T>> {
    transaction.query(query, values).await?.iter().map(read).collect()
}

async fn state(transaction: &Transaction<'_>) -> Result<(u64, Epoch)> {
    let row = transaction.query_one("SELECT revision, epoch, began, last_until FROM state", &[]).await?;
    let number: i64 = row.try_get(1)?;
    let epoch = Epoch {
        number: u32::try_from(number).unwrap_or(u32::MAX),
        began: unsigned(row.try_get(2)?),
        last_until: unsigned(row.try_get(3)?),
    };
    Ok((unsigned(row.try_get(0)?), epoch))
}

/// The revision of a change. Who has it holds the row: other changes wait, and readers see this one
/// whole or not at all.
async fn next_revision(transaction: &Transaction<'_>) -> Result<u64> {
    let query = "UPDATE state SET revision = revision + 1 RETURNING revision";
    Ok(unsigned(transaction.query_one(query, &[]).await?.try_get(0)?))
}

async fn roll(transaction: &Transaction<'_>, from: u32, at: u64, last_holds: u64) -> Result<()> {
    let query = "UPDATE state SET revision = revision + 1, epoch = $1, began = $2, last_until = $3";
    transaction.execute(query, &[&(i64::from(from) + 1), &signed(at), &signed(at + last_holds)]).await?;
    Ok(())
}

async fn log(transaction: &Transaction<'_>, entries: &[AuditEntry]) -> Result<()> {
    for entry in entries {
        let query = "INSERT INTO audit (at, what, who, detail) VALUES ($1, $2, $3, $4)";
        transaction.execute(query, &[&signed(entry.at), &entry.what, &entry.who, &entry.detail]).await?;
    }
    if !entries.is_empty() {
        let query = "DELETE FROM audit WHERE id <= (SELECT max(id) FROM audit) - $1";
        transaction.execute(query, &[&MAX_LOG_ENTRIES]).await?;
    }
    Ok(())
}

fn word(row: &Row) -> Result<WordRow> {
    let kind: u8 = small(row, 1)?;
    let uses: Option<i64> = row.try_get(3)?;
    Ok(WordRow {
        number: small(row, 0)?,
        kind: WordKind::of(kind).unwrap_or(WordKind::Use),
        name: row.try_get(2)?,
        uses: uses.map(|uses| u32::try_from(uses).unwrap_or(0)),
        rate: RateClass(small(row, 4)?),
        quota: QuotaClass(small(row, 5)?),
        expires: unsigned(row.try_get(6)?),
        revoked: row.try_get(7)?,
    })
}

fn relay(row: &Row) -> Result<RelayRow> {
    let (operator, region, addresses): (&str, &str, &str) =
        (row.try_get(7)?, row.try_get(8)?, row.try_get(9)?);
    Ok(RelayRow {
        relay: RelayId(bytes(row, 0)?),
        key: PublicKey(bytes(row, 1)?),
        word: small(row, 2)?,
        range: small(row, 3)?,
        range_key: RangeKey::new(bytes(row, 4)?),
        rate: RateClass(small(row, 5)?),
        quota: QuotaClass(small(row, 6)?),
        operator: Label::new(operator),
        region: Label::new(region),
        addresses: addresses_of(addresses),
        revoked: row.try_get(10)?,
        tcp: row.try_get(11)?,
    })
}

fn seen(row: &Row) -> Result<LastHeartbeat> {
    Ok(LastHeartbeat {
        relay: RelayId(bytes(row, 0)?),
        at: unsigned(row.try_get(1)?),
        counter: unsigned(row.try_get(2)?),
        load: unsigned(row.try_get(3)?),
    })
}

fn small<T: TryFrom<i64>>(row: &Row, at: usize) -> Result<T> {
    let value: i64 = row.try_get(at)?;
    T::try_from(value).map_err(|_| StoreError::Damaged(format!("{value} is no value of its column")))
}

fn bytes<const N: usize>(row: &Row, at: usize) -> Result<[u8; N]> {
    let value: &[u8] = row.try_get(at)?;
    value.try_into().map_err(|_| StoreError::Damaged(format!("{} bytes are no key", value.len())))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_driver_does_not_know_of_a_url_is_read_here() {
        let (url, roots) =
            split("postgres://u@h/db?sslmode=verify-full&sslrootcert=/etc/ca.pem&application_name=x");
        assert_eq!(
            (url.as_str(), roots.as_deref()),
            ("postgres://u@h/db?sslmode=require&application_name=x", Some("/etc/ca.pem"))
        );
        assert_eq!(split("postgres://h/db"), ("postgres://h/db".into(), None));
        assert_eq!(split("postgres://h/db?sslrootcert=x"), ("postgres://h/db".into(), Some("x".into())));
    }
}
