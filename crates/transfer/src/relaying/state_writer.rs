//! Saves to disk what a relay has to know after a restart. It does so on a thread of its own, so
//! that a slow or full disk holds up no packet.

use super::run_event::RelayRunEvent;
use super::saved_state::{MAX_FILE_BYTES, SavedState};
use crate::event_loop::news_channel::NewsSender;
use crate::state_directory::{StateError, put};
use byway_net::{Waker, unix_seconds};
use byway_relay::{Relay, Reserve, Used};
use byway_wire::{Duration, Instant};
use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::sync::{Arc, Mutex, PoisonError};

/// Time between two looks at what was carried. A relay without a quota may lose by a kill what it
/// carried in this time and while the disk wrote. One with a quota keeps ahead what it is going to
/// carry.
const SNAPSHOT_INTERVAL: Duration = Duration::from_secs(10);

/// Heartbeats between two writes, if nothing else has changed.
const HEARTBEATS_PER_WRITE: u64 = 1_024;

/// Reads the saved state. Empty if there is no file.
pub(super) fn read(path: &Path) -> Result<SavedState, StateError> {
    let cannot = |source| StateError::Io {
        what: "read what the relay carried in".into(),
        path: path.to_owned(),
        source,
    };
    let file = match File::open(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(SavedState::default()),
        opened => opened.map_err(cannot)?,
    };
    let mut bytes = Vec::new();
    file.take(MAX_FILE_BYTES).read_to_end(&mut bytes).map_err(cannot)?;
    let kept = std::str::from_utf8(&bytes).ok().and_then(|text| text.parse().ok());
    kept.ok_or_else(|| StateError::Damaged {
        path: path.to_owned(),
        holds: "holds no whole account of what the relay carried".into(),
    })
}

/// The values of a relay to be saved.
pub(super) struct Snapshot {
    used: Used,
    /// The reserve that the relay may carry once this is saved.
    reserve: Reserve,
    beats: u64,
    /// Ranges of grants: the number, the epoch, and how long relay words of the previous epoch stay
    /// valid.
    epochs: Vec<(u8, u32, Duration)>,
    /// The bytes carried for each named relay word, with the id of its grant.
    words: Vec<(u32, u64)>,
}

impl Snapshot {
    /// Takes a snapshot of a running relay. Its bytes include a reserve that the relay may carry
    /// next.
    pub(super) fn of(relay: &mut Relay, now: Instant) -> Self {
        let (used, reserve) = relay.to_keep(now);
        Self { used, reserve, ..Self::last(relay, now) }
    }

    /// Takes the snapshot of a relay that ends.
    pub(super) fn last(relay: &mut Relay, now: Instant) -> Self {
        let (used, reserve) = (relay.used(now), Reserve::UNLIMITED);
        let words = relay.named_words().iter().filter(|word| word.carried > 0);
        let words = words.map(|word| (word.grant, word.carried)).collect();
        Self { used, reserve, beats: relay.beat_counter(), epochs: relay.epochs(now).collect(), words }
    }
}

/// A reserve that is counted on the disk, until the relay takes it.
#[derive(Default)]
pub(super) struct ReserveOffer(Mutex<Option<Reserve>>);

impl ReserveOffer {
    /// Gives the reserve to the relay, if there is one.
    pub(super) fn give(&self, relay: &mut Relay, now: Instant) {
        let reserve = self.0.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(reserve) = reserve {
            relay.kept(now, reserve);
        }
    }

    fn set(&self, reserve: Reserve) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(reserve);
    }
}

/// Writes the state that a relay needs after a restart.
pub(super) struct StateWriter {
    path: PathBuf,
    /// The state to write.
    kept: SavedState,
    news: NewsSender<RelayRunEvent>,
    /// Number of times that the state could not be written.
    failures: Arc<AtomicU64>,
    reserve: Arc<ReserveOffer>,
    /// The state on the disk. `None`: nothing was written since the start.
    written: Option<SavedState>,
    failing: bool,
}

impl StateWriter {
    pub(super) fn new(
        path: PathBuf,
        kept: SavedState,
        news: NewsSender<RelayRunEvent>,
        failures: Arc<AtomicU64>,
        reserve: Arc<ReserveOffer>,
    ) -> Self {
        Self { path, kept, news, failures, reserve, written: None, failing: false }
    }

    /// Writes snapshots, and requests the next ones, until the relay has ended. Returns itself for
    /// the last snapshot.
    pub(super) fn run(mut self, inbox: &Receiver<Snapshot>, ask: &AtomicBool, waker: &Waker) -> Self {
        loop {
            match inbox.recv_timeout(SNAPSHOT_INTERVAL) {
                Ok(snapshot) => {
                    self.keep(&snapshot);
                    waker.wake();
                }
                Err(RecvTimeoutError::Timeout) => {
                    ask.store(true, Ordering::Release);
                    waker.wake();
                }
                Err(RecvTimeoutError::Disconnected) => return self,
            }
        }
    }

    /// Writes, if there is something new, and lets the relay carry what was kept ahead. A disk that
    /// takes nothing is told of once, until it takes something again. It stops no relay.
    pub(super) fn keep(&mut self, snapshot: &Snapshot) {
        let is_kept = self.write(snapshot);
        let reserve = if is_kept { snapshot.reserve } else { Reserve::UNLIMITED };
        self.reserve.set(reserve);
    }

    /// Writes the state if it changed. Returns whether the disk has it.
    fn write(&mut self, snapshot: &Snapshot) -> bool {
        (self.kept.used, self.kept.beats) = (snapshot.used, snapshot.beats);
        self.kept.words.clone_from(&snapshot.words);
        let unix = unix_seconds();
        for (number, epoch, last_holds) in &snapshot.epochs {
            let range = self.kept.ranges.iter_mut().find(|range| range.number == *number);
            if let Some(range) = range.filter(|range| range.epoch != *epoch) {
                (range.epoch, range.last_until) = (*epoch, unix.saturating_add(last_holds.as_secs()));
            }
        }
        // Heartbeats alone are not worth a write each: a restart counts far ahead.
        let is_new = |written: &SavedState| {
            written.used != self.kept.used
                || written.ranges != self.kept.ranges
                || self.kept.beats.saturating_sub(written.beats) > HEARTBEATS_PER_WRITE
        };
        if !self.written.as_ref().is_none_or(is_new) {
            return true;
        }
        let put = put(&self.path, &self.kept.to_string());
        let is_kept = put.is_ok();
        match put {
            Ok(()) => {
                self.written = Some(self.kept.clone());
                if std::mem::take(&mut self.failing) {
                    let _ = self.news.try_send(RelayRunEvent::KeptAgain);
                }
            }
            Err(error) => {
                self.failures.fetch_add(1, Ordering::Relaxed);
                if !std::mem::replace(&mut self.failing, true) {
                    let _ = self.news.try_send(RelayRunEvent::NotKept(error));
                }
            }
        }
        is_kept
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event_loop::news_channel::news_channel;

    fn snapshot(today: u64) -> Snapshot {
        let used = Used { day: 1, today, month: 0, this_month: today, ..Used::default() };
        Snapshot { used, reserve: Reserve::UNLIMITED, beats: today, epochs: Vec::new(), words: Vec::new() }
    }

    #[test]
    fn a_disk_that_takes_nothing_is_counted_and_told_of_once() {
        let place = tempfile::tempdir().unwrap();
        let directory = place.path().join("state");
        let path = directory.join("relay-kept");
        let (news, inbox) = news_channel(8);
        let mut keeper =
            StateWriter::new(path.clone(), SavedState::default(), news, Arc::default(), Arc::default());
        std::fs::write(&directory, "in the way").unwrap();
        for today in 1..4 {
            keeper.keep(&snapshot(today));
        }
        assert_eq!(keeper.failures.load(Ordering::Relaxed), 3);
        let told: Vec<_> = inbox.try_iter().collect();
        assert!(matches!(told.as_slice(), [RelayRunEvent::NotKept(_)]), "{told:?}");
        std::fs::remove_file(&directory).unwrap();
        for today in [4, 5, 5] {
            keeper.keep(&snapshot(today));
        }
        let told: Vec<_> = inbox.try_iter().collect();
        assert!(matches!(told.as_slice(), [RelayRunEvent::KeptAgain]), "{told:?}");
        assert_eq!(keeper.failures.load(Ordering::Relaxed), 3);
        assert_eq!(read(&path).unwrap().used, snapshot(5).used);
        let names = std::fs::read_dir(&directory).unwrap().count();
        assert_eq!(names, 1, "no draft stays behind");
    }

    #[test]
    fn a_damaged_file_is_not_taken_for_nothing() {
        let place = tempfile::tempdir().unwrap();
        let path = place.path().join("relay-kept");
        assert_eq!(read(&path).unwrap(), SavedState::default());
        std::fs::write(&path, "byway-relay-kept 1\nday 1").unwrap();
        assert!(read(&path).unwrap_err().to_string().contains("remove the file"));
    }
}
