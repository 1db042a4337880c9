//! The history of 30 days, as the page shows it.

use crate::told::Text;
use axum::body::Bytes;
use byway_net::unix_seconds;
use byway_transfer::host_status::{History, HistoryEntry};
use serde::Serialize;
use serde_json::Value;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Instant;
use tokio::sync::Mutex;

/// Transfers that are listed, the newest. All are counted.
const MAX_LISTED: usize = 200;
/// The unit in which the page makes days: every zone's midnight is at one of its ends.
const QUARTER_SECONDS: u64 = 900;

/// For how many times as long as reading took, the result is shown again. So reading takes 1 % of a
/// core at most.
const REST_FACTOR: u32 = 100;

/// All transfers that ended in 30 days.
#[derive(Debug, Default, Serialize)]
pub struct PastTransfers {
    /// The number of [`History::version`] that this is of, or of a newer one.
    pub version: String,
    pub bytes: u64,
    pub transfers: usize,
    pub failed: usize,
    /// Quarters of an hour since 1970 in which transfers ended: bytes, transfers, failed ones.
    pub quarters: Vec<(u64, u64, u32, u32)>,
    /// The newest first.
    pub newest: Vec<PastTransfer>,
    /// Why the history cannot be read.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub problem: Option<String>,
}

/// A transfer that ended.
#[derive(Debug, Serialize)]
pub struct PastTransfer {
    pub at: u64,
    pub verb: Text,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub peer: Option<Text>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<Text>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bytes: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub seconds: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub goodput_bps: Option<f64>,
    pub failed: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<Text>,
}

/// Reads the history. `has_failed` distinguishes a failure from an end by a limit or a signal.
pub fn read(history: &History, now: u64, has_failed: fn(&HistoryEntry) -> bool) -> PastTransfers {
    let mut past = PastTransfers { version: history.version().to_string(), ..PastTransfers::default() };
    let entries = match history.read(now) {
        Ok(entries) => entries,
        Err(error) => return PastTransfers { problem: Some(error.to_string()), ..past },
    };
    let mut quarters: BTreeMap<u64, (u64, u32, u32)> = BTreeMap::new();
    for entry in &entries {
        let bytes = entry.result.get("bytes").and_then(Value::as_u64).unwrap_or_default();
        let failed = has_failed(entry);
        let quarter = quarters.entry(entry.at / QUARTER_SECONDS).or_default();
        quarter.0 = quarter.0.saturating_add(bytes);
        quarter.1 += 1;
        quarter.2 += u32::from(failed);
        past.bytes = past.bytes.saturating_add(bytes);
        past.transfers += 1;
        past.failed += usize::from(failed);
    }
    past.quarters =
        quarters.into_iter().map(|(quarter, (bytes, all, bad))| (quarter, bytes, all, bad)).collect();
    let newest = entries.iter().rev().take(MAX_LISTED);
    past.newest = newest.map(|entry| listed(entry, has_failed(entry))).collect();
    past
}

fn listed(entry: &HistoryEntry, failed: bool) -> PastTransfer {
    let result = &entry.result;
    let text = |name: &str| result.get(name).and_then(Value::as_str).map(Text::from);
    let float = |name: &str| result.get(name).and_then(Value::as_f64);
    PastTransfer {
        at: entry.at,
        verb: entry.verb.as_str().into(),
        peer: entry.peer.as_deref().map(Text::from).or_else(|| text("from")),
        name: text("name"),
        bytes: result.get("bytes").and_then(Value::as_u64),
        seconds: float("seconds"),
        goodput_bps: float("goodput_bps"),
        failed,
        error: text("error"),
    }
}

/// The history that was read last. It is read once at a time, however many ask.
#[derive(Clone, Default)]
pub struct KeptPast(Arc<Mutex<Option<Kept>>>);

struct Kept {
    text: Bytes,
    version: u64,
    /// The time until which the result is shown, even if the history has changed.
    until: Instant,
}

impl KeptPast {
    /// The history as JSON, a moment old at most. `None`: reading it failed badly.
    pub async fn text(&self, history: History, has_failed: fn(&HistoryEntry) -> bool) -> Option<Bytes> {
        // Whoever breaks off leaves the lock to the thread that reads.
        let mut kept = Arc::clone(&self.0).lock_owned().await;
        let text = move || {
            let (begun, version) = (Instant::now(), history.version());
            if let Some(kept) = &*kept
                && (begun < kept.until || version == kept.version && version != 0)
            {
                return kept.text.clone();
            }
            let past = read(&history, unix_seconds(), has_failed);
            // All fields are numbers, texts and lists of these.
            let text = Bytes::from(serde_json::to_vec(&past).unwrap_or_default());
            let until = Instant::now() + begun.elapsed() * REST_FACTOR;
            *kept = Some(Kept { text: text.clone(), version, until });
            text
        };
        tokio::task::spawn_blocking(text).await.ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn all_are_counted_and_the_newest_listed() {
        let place = tempfile::tempdir().unwrap();
        let history = History::at(place.path().join("history"));
        let now = 1_000_000;
        for number in 0..300 {
            let result = match number % 3 {
                0 => json!({ "exit": 5, "error": "no\u{202e}answer" }),
                _ => json!({ "exit": 0, "bytes": 10, "seconds": 2.0, "goodput_bps": 40.0 }),
            };
            let (verb, peer) = ("send".to_owned(), Some("nas".to_owned()));
            history.add(&HistoryEntry { at: now - 300 + number, verb, peer, result }).unwrap();
        }
        let past = read(&history, now, |entry| entry.result["exit"] != 0);
        assert_eq!((past.transfers, past.failed, past.bytes), (300, 100, 2_000));
        assert_eq!((past.newest.len(), past.newest[0].at), (MAX_LISTED, now - 1));
        assert_eq!(past.newest[2].error.as_ref().unwrap().0, "no\\u{202e}answer");
        let summed: u32 = past.quarters.iter().map(|quarter| quarter.2).sum();
        assert_eq!((past.quarters.len(), summed), (2, 300));
    }

    #[test]
    fn it_is_read_anew_after_a_change_and_else_kept() {
        let place = tempfile::tempdir().unwrap();
        let history = History::at(place.path().join("history"));
        let add = || {
            let entry =
                HistoryEntry { at: unix_seconds(), verb: "send".into(), peer: None, result: json!({}) };
            history.add(&entry).unwrap();
        };
        let kept = KeptPast::default();
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        let text = || runtime.block_on(kept.text(history.clone(), |_| false)).unwrap();
        let count = |text: &Bytes| serde_json::from_slice::<Value>(text).unwrap()["transfers"].as_u64();
        add();
        let first = text();
        assert_eq!((count(&first), first.as_ptr()), (Some(1), text().as_ptr()));
        add();
        // The first reading took some time, and 100 times that passes.
        while count(&text()) == Some(1) {}
        assert_eq!(count(&text()), Some(2));
    }

    #[test]
    fn one_that_cannot_be_read_is_told() {
        let place = tempfile::tempdir().unwrap();
        assert!(read(&History::at(place.path().to_owned()), 0, |_| true).problem.is_some());
        assert!(read(&History::at(place.path().join("none")), 0, |_| true).problem.is_none());
    }
}
