//! Transfers that ended: one line of JSON each, in a file of the state directory.

use rustix::fs::{FlockOperation, OFlags, flock};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::fs::{self, File, OpenOptions};
use std::io::{self, BufRead as _, BufReader, Read as _, Seek as _, SeekFrom, Write as _};
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::thread;
use std::time::Duration;

/// Time for which an ended transfer is remembered, in seconds.
pub const MAX_AGE_SECONDS: u64 = 30 * 24 * 3_600;
/// Bytes of the file from which older lines go.
const MAX_FILE_BYTES: u64 = 10_000_000;
/// Bytes of the newest lines that stay then.
const KEPT_BYTES: u64 = MAX_FILE_BYTES / 2;
/// Letters of the shortest ticket, relay word or registry word.
const MIN_SECRET_LEN: usize = 32;
/// The number of attempts to lock the file, and the pause between two.
const MAX_LOCK_TRIES: u32 = 20;
const LOCK_RETRY_DELAY: Duration = Duration::from_millis(5);
/// The longest line in bytes. A longer entry loses its paths.
const MAX_LINE_BYTES: usize = 16 << 10;

/// A transfer that ended.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct HistoryEntry {
    /// The end of the transfer, in seconds since 1970.
    pub at: u64,
    /// The verb that the process ran: `send`, `recv`, …
    pub verb: String,
    /// The peer's name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub peer: Option<String>,
    /// The result event, as `--json` prints it.
    pub result: Value,
}

/// The file with all entries of the last 30 days, or with the newest 5 to 10 MB of entries.
#[derive(Clone, Debug)]
pub struct History {
    path: PathBuf,
}

impl History {
    /// The history in the file `path`, which need not exist.
    #[must_use]
    pub const fn at(path: PathBuf) -> Self {
        Self { path }
    }

    /// Adds an entry, and removes entries that are too old. Tickets, relay words and registry words
    /// are shortened.
    ///
    /// # Errors
    /// The file cannot be written. What it held stays.
    pub fn add(&self, entry: &HistoryEntry) -> io::Result<()> {
        let mut line = without_secrets(&serde_json::to_string(entry)?);
        if line.len() > MAX_LINE_BYTES {
            let fields = ["bytes", "seconds", "exit", "error", "goodput_bps"];
            let short =
                fields.iter().filter_map(|name| Some(((*name).to_owned(), entry.result.get(name)?.clone())));
            let short = HistoryEntry { result: Value::Object(short.collect()), ..entry.clone() };
            line = without_secrets(&serde_json::to_string(&short)?);
        }
        let mut file = self.lock()?;
        let length = file.metadata()?.len();
        if length > MAX_FILE_BYTES || oldest(&self.path).is_some_and(|at| is_old(at, entry.at)) {
            return self.rewrite(entry.at, length, &line);
        }
        // A line that a full disk cut is ended, so that it takes no other with it.
        let is_cut = length > 0 && {
            file.seek(SeekFrom::End(-1))?;
            let mut last = [0];
            file.read_exact(&mut last)?;
            last != *b"\n"
        };
        file.write_all(format!("{}{line}\n", if is_cut { "\n" } else { "" }).as_bytes())
    }

    /// A number that differs after a change of the file. 0: there is no file.
    #[must_use]
    pub fn version(&self) -> u64 {
        let Ok(found) = fs::metadata(&self.path) else { return 0 };
        let changed = found.mtime().wrapping_mul(1_000_000_000).wrapping_add(found.mtime_nsec());
        (changed as u64).wrapping_add(found.len())
    }

    /// All entries younger than 30 days at `now`, the newest last. Lines that are none are passed
    /// over.
    ///
    /// # Errors
    /// The file cannot be read. That there is none is no error.
    pub fn read(&self, now: u64) -> io::Result<Vec<HistoryEntry>> {
        let found = match fs::metadata(&self.path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            found => found?,
        };
        if !found.is_file() {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        // A damaged file may be longer than one that was written here.
        let file = File::open(&self.path)?.take(2 * MAX_FILE_BYTES);
        let lines = BufReader::new(file).split(b'\n').map_while(Result::ok);
        let entries = lines.filter_map(|line| serde_json::from_slice::<HistoryEntry>(&line).ok());
        Ok(entries.filter(|entry| !is_old(entry.at, now)).collect())
    }

    /// The file, locked against other processes of this host.
    fn lock(&self) -> io::Result<File> {
        loop {
            let mut options = OpenOptions::new();
            let flags = OFlags::NONBLOCK.bits() as i32;
            let options = options.read(true).append(true).create(true).mode(0o600).custom_flags(flags);
            let file = options.open(&self.path)?;
            if !file.metadata()?.is_file() {
                return Err(io::ErrorKind::InvalidInput.into());
            }
            // A process that holds it for long may be stopped. No transfer waits for that.
            let mut tries = 0..MAX_LOCK_TRIES;
            while let Err(errno) = flock(&file, FlockOperation::NonBlockingLockExclusive) {
                tries.next().ok_or(errno)?;
                thread::sleep(LOCK_RETRY_DELAY);
            }
            // Another process may have put a new file in its place meanwhile.
            if fs::metadata(&self.path).is_ok_and(|now| file.metadata().is_ok_and(|it| it.ino() == now.ino()))
            {
                return Ok(file);
            }
        }
    }

    /// Puts a file with the newest lines in place.
    fn rewrite(&self, now: u64, length: u64, line: &str) -> io::Result<()> {
        let mut old = BufReader::new(File::open(&self.path)?);
        if length > MAX_FILE_BYTES {
            old.seek(SeekFrom::Start(length - KEPT_BYTES))?;
            old.skip_until(b'\n')?;
        }
        let draft = self.path.with_extension("draft");
        let mut new = OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&draft)?;
        let mut kept = Vec::new();
        for old in old.split(b'\n') {
            let old = old?;
            if serde_json::from_slice::<HistoryEntry>(&old).is_ok_and(|entry| !is_old(entry.at, now)) {
                kept.extend_from_slice(&old);
                kept.push(b'\n');
            }
        }
        kept.extend_from_slice(format!("{line}\n").as_bytes());
        let put = new.write_all(&kept).and_then(|()| fs::rename(&draft, &self.path));
        if put.is_err() {
            let _ = fs::remove_file(&draft);
        }
        put
    }
}

/// A text in which tickets and words are cut to where their secrets begin. Both are long, and begin
/// with `byway` and a version or a kind. A public key is no secret.
fn without_secrets(text: &str) -> String {
    let is_inside = |letter: char| letter.is_ascii_alphanumeric() || letter == '-';
    let mut told = String::with_capacity(text.len());
    for part in text.split_inclusive(|letter| !is_inside(letter)) {
        let word = part.trim_end_matches(|letter| !is_inside(letter));
        let is_secret = word.len() >= MIN_SECRET_LEN
            && word.strip_prefix("byway").is_some_and(|rest| !rest.starts_with("-key-"));
        match word.rfind('-').filter(|_| is_secret) {
            Some(end) => told.extend([
                word.get(..=end).unwrap_or_default(),
                "…",
                part.get(word.len()..).unwrap_or_default(),
            ]),
            None => told.push_str(part),
        }
    }
    told
}

fn is_old(at: u64, now: u64) -> bool {
    // A clock that was wrong may have dated it in the future.
    now.abs_diff(at) > MAX_AGE_SECONDS
}

/// When the first transfer in the file ended.
fn oldest(path: &Path) -> Option<u64> {
    let mut line = Vec::new();
    let first = File::open(path).ok()?.take(2 * MAX_LINE_BYTES as u64);
    BufReader::new(first).read_until(b'\n', &mut line).ok()?;
    serde_json::from_slice::<HistoryEntry>(&line).ok().map(|entry| entry.at)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    const DAY_SECONDS: u64 = 24 * 3_600;

    fn entry(at: u64, result: Value) -> HistoryEntry {
        HistoryEntry { at, verb: "send".into(), peer: Some("nas".into()), result }
    }

    #[test]
    fn what_is_older_than_thirty_days_goes() {
        let place = tempfile::tempdir().unwrap();
        let history = History::at(place.path().join("history"));
        assert_eq!(history.read(0).unwrap(), []);
        let entries = [1, 20, 35].map(|day| entry(day * DAY_SECONDS, json!({ "bytes": day })));
        entries.iter().for_each(|entry| history.add(entry).unwrap());
        let now = 35 * DAY_SECONDS;
        assert_eq!(history.read(now).unwrap(), entries[1..]);
        assert_eq!(fs::read_to_string(&history.path).unwrap().lines().count(), 2, "nor is it kept");
        assert_eq!(fs::metadata(&history.path).unwrap().mode() & 0o777, 0o600);
    }

    #[test]
    fn lines_that_are_none_take_no_other_with_them() {
        let place = tempfile::tempdir().unwrap();
        let history = History::at(place.path().join("history"));
        let entries = [1, 2].map(|at| entry(at, json!({ "bytes": at })));
        history.add(&entries[0]).unwrap();
        let mut cut = OpenOptions::new().append(true).open(&history.path).unwrap();
        cut.write_all(b"{\"at\":7,\"ve").unwrap();
        history.add(&entries[1]).unwrap();
        assert_eq!(history.read(3).unwrap(), entries);
    }

    #[test]
    fn the_file_stays_small_and_so_does_each_line() {
        let place = tempfile::tempdir().unwrap();
        let history = History::at(place.path().join("history"));
        let long = "x".repeat(12_000);
        for at in 0..900 {
            history.add(&entry(at, json!({ "bytes": at, "error": long }))).unwrap();
        }
        let length = fs::metadata(&history.path).unwrap().len();
        assert!(length <= MAX_FILE_BYTES + MAX_LINE_BYTES as u64, "{length}");
        let entries = history.read(900).unwrap();
        assert!(entries.len() >= 400 && entries.last().unwrap().at == 899, "{}", entries.len());
        history.add(&entry(901, json!({ "bytes": 7, "paths": [long, long] }))).unwrap();
        assert_eq!(history.read(901).unwrap().last().unwrap().result, json!({ "bytes": 7 }));
    }

    #[test]
    fn no_secret_is_kept() {
        let place = tempfile::tempdir().unwrap();
        let history = History::at(place.path().join("history"));
        let (secret, key) =
            ("7724hk2sqwyzetrjaz2fnbu5momkrisxegwd7uw4", "byway-key-77piok32d26cjz5g6vcctkgd3kue");
        let words =
            ["byway1-", "byway2-", "byway-relay-", "byway-registry-"].map(|kind| format!("{kind}{secret}"));
        let error = format!("stopped by {key}; go on: `byway send big {}`", words.join(" --relay "));
        history.add(&entry(1, json!({ "error": error, "name": words[0] }))).unwrap();
        let text = fs::read_to_string(&history.path).unwrap();
        assert!(!text.contains(&secret[..8]) && text.contains(key), "{text}");
        assert!(text.contains("byway send big byway1-… --relay byway2-… --relay byway-relay-… "), "{text}");
        assert_eq!(history.read(1).unwrap().len(), 1);
    }

    #[test]
    fn a_process_that_holds_the_file_holds_up_no_transfer() {
        let place = tempfile::tempdir().unwrap();
        let history = History::at(place.path().join("history"));
        history.add(&entry(1, Value::Null)).unwrap();
        let held = history.lock().unwrap();
        assert!(history.add(&entry(2, Value::Null)).is_err());
        drop(held);
        history.add(&entry(3, Value::Null)).unwrap();
        assert_eq!(history.read(3).unwrap().len(), 2);
        // Nor does a file that is none.
        assert!(History::at(place.path().to_owned()).add(&entry(1, Value::Null)).is_err());
    }

    #[test]
    fn processes_that_add_at_once_lose_nothing() {
        let place = tempfile::tempdir().unwrap();
        let history = History::at(place.path().join("history"));
        // The first one is too old for all others, so that one of them writes a new file.
        history.add(&entry(0, Value::Null)).unwrap();
        std::thread::scope(|scope| {
            for thread in 0..8 {
                let history = &history;
                scope.spawn(move || {
                    for at in 0..50 {
                        // A busy machine may hold the lock for longer than one waits.
                        while history.add(&entry(40 * DAY_SECONDS + at, json!(thread))).is_err() {}
                    }
                });
            }
        });
        assert_eq!(history.read(40 * DAY_SECONDS).unwrap().len(), 400);
    }
}
