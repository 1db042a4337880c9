//! A sender's sessions as qlog files: what the program hears of them, by sample. Nothing is noted
//! per packet.

use crate::error::{Error, TransferError};
use crate::events::TransferEvent;
use crate::progress::{PathCounters, TransferProgress};
use crate::sender::SentTransfer;
use byway_net::Clock;
use byway_qlog::{CLOSED_STATE, Event, Metrics, PathSample, PathTotals, QlogWriter, TraceHeader};
use byway_wire::{Duration, Instant};
use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, BufWriter};
use std::path::{Path, PathBuf};

/// Writes a file for each session of a sender.
#[derive(Debug, Default)]
pub struct SessionLog {
    place: Option<LogPlace>,
    /// The session that is written. `None`: there is none, or its file cannot be written.
    open: Option<OpenLog>,
    /// Whether the file of the last session could not be written.
    is_broken: bool,
}

/// The names of the log files.
#[derive(Debug)]
struct LogPlace {
    file: PathBuf,
    controller: &'static str,
    /// Sessions so far.
    sessions: u32,
}

/// A change of a path's state that waits for the next sample: only that has a time of the session.
#[derive(Debug)]
struct Change {
    at: Instant,
    path: u32,
    name: String,
    state: &'static str,
    reason: Option<String>,
}

#[derive(Debug)]
struct OpenLog {
    writer: QlogWriter<BufWriter<File>>,
    clock: Clock,
    begun: Option<Instant>,
    /// The time of the last entry, in seconds of the session.
    seconds: f64,
    changes: Vec<Change>,
    /// The names of paths that are not closed.
    names: BTreeMap<u32, String>,
}

impl SessionLog {
    /// Makes `file`, for the first session. One after it goes to a file with its number before the
    /// ending. `controller` is the name of what governs all paths. Without `file` nothing is
    /// written.
    ///
    /// # Errors
    /// The file cannot be made.
    pub fn create(file: Option<&Path>, controller: &'static str) -> Result<Self, Error> {
        let Some(file) = file else { return Ok(Self::default()) };
        let mut place = LogPlace { file: file.to_owned(), controller, sessions: 0 };
        let open = place.next().map_err(|source| Error::SessionLog { file: file.to_owned(), source })?;
        Ok(Self { place: Some(place), open: Some(open), is_broken: false })
    }

    /// Writes an event of the transfer. A file that cannot be written ends there.
    pub fn note(&mut self, news: &TransferEvent) {
        if matches!(news, TransferEvent::Begun)
            && let (None, Some(place)) = (&self.open, &mut self.place)
        {
            self.open = place.next().ok();
            self.is_broken = self.open.is_none();
        }
        if self.open.as_mut().is_some_and(|open| open.note(news).is_err()) {
            self.open = None;
            self.is_broken = true;
        }
    }

    /// Notes how a session ended. False if its file could not be written.
    #[must_use]
    pub fn end(&mut self, sent: &SentTransfer) -> bool {
        let is_broken = std::mem::take(&mut self.is_broken);
        self.open.take().map_or(!is_broken, |open| open.end(sent).is_ok())
    }
}

impl LogPlace {
    /// Makes the file of the next session.
    fn next(&mut self) -> io::Result<OpenLog> {
        self.sessions += 1;
        let file = numbered(&self.file, self.sessions);
        let header = TraceHeader { title: "byway send", vantage_point: "byway send" };
        let mut writer = QlogWriter::new(BufWriter::new(File::create(file)?), header)?;
        writer.event(0.0, &Event::ControllerSet { controller: self.controller })?;
        Ok(OpenLog {
            writer,
            clock: Clock::new(),
            begun: None,
            seconds: 0.0,
            changes: Vec::new(),
            names: BTreeMap::new(),
        })
    }
}

/// `a.sqlog`, then `a-2.sqlog` and so on.
fn numbered(file: &Path, number: u32) -> PathBuf {
    if number == 1 {
        return file.to_owned();
    }
    let text = |part: Option<&std::ffi::OsStr>| part.unwrap_or_default().to_string_lossy().into_owned();
    let ending = file.extension().map(|ending| format!(".{}", text(Some(ending)))).unwrap_or_default();
    file.with_file_name(format!("{}-{number}{ending}", text(file.file_stem())))
}

impl OpenLog {
    fn note(&mut self, news: &TransferEvent) -> io::Result<()> {
        match news {
            TransferEvent::Begun => {
                self.begun = Some(self.clock.now());
                self.writer.started(0.0)
            }
            TransferEvent::Path { path, name, state, reason } => {
                let (at, reason) = (self.clock.now(), reason.clone());
                self.changes.push(Change { at, path: *path, name: name.clone(), state, reason });
                Ok(())
            }
            TransferEvent::Progress(progress) => self.look(progress),
            _ => Ok(()),
        }
    }

    /// Writes a look at the transfer.
    fn look(&mut self, progress: &TransferProgress) -> io::Result<()> {
        let seconds = self.settle(progress.seconds)?;
        self.writer.received(seconds, progress.bytes)?;
        for path in &progress.paths {
            self.names.insert(path.path, path.name.clone());
            self.writer.sample(seconds, &sample(path))?;
        }
        // One that never worked ends without a word.
        let there = |number: &u32| progress.paths.iter().any(|path| path.path == *number);
        let over: Vec<u32> = self.names.keys().copied().filter(|number| !there(number)).collect();
        for number in over {
            let name = self.names.remove(&number).unwrap_or_default();
            self.writer.path_state(seconds, &closed(number, &name), None)?;
        }
        Ok(())
    }

    /// Writes the changes that wait, none later than `seconds`. Returns the time that is then
    /// reached.
    fn settle(&mut self, seconds: f64) -> io::Result<f64> {
        let seconds = seconds.max(self.seconds);
        for Change { at, path, name, state, reason } in std::mem::take(&mut self.changes) {
            let since = self.begun.map_or(Duration::ZERO, |begun| at.since(begun)).as_secs_f64();
            self.seconds = since.clamp(self.seconds, seconds);
            let now = PathSample { path, name: &name, state, ..PathSample::default() };
            self.writer.path_state(self.seconds, &now, reason.as_deref())?;
            if state == CLOSED_STATE {
                self.names.remove(&path);
            } else {
                self.names.insert(path, name);
            }
        }
        self.seconds = seconds;
        Ok(seconds)
    }

    fn end(mut self, sent: &SentTransfer) -> io::Result<()> {
        let seconds = self.settle(sent.seconds)?;
        if self.begun.is_some() {
            self.writer.received(seconds, sent.bytes)?;
        }
        for path in &sent.paths {
            self.writer.sample(seconds, &sample(path))?;
        }
        let failure = sent.outcome.as_ref().err().map(TransferError::to_string);
        self.writer.closed(seconds, failure.as_deref())?;
        self.writer.finish()
    }
}

fn closed(path: u32, name: &str) -> PathSample<'_> {
    PathSample { path, name, state: CLOSED_STATE, ..PathSample::default() }
}

fn sample(path: &PathCounters) -> PathSample<'_> {
    let millis = |time: Duration| (time.as_secs_f64() * 1e3) as f32;
    PathSample {
        path: path.path,
        name: &path.name,
        state: path.state,
        remote: Some(path.route.remote),
        local: path.local,
        metrics: Metrics {
            min_rtt: path.base_rtt.map(millis),
            smoothed_rtt: path.rtt.map(millis),
            congestion_window: path.window,
            bytes_in_flight: path.in_flight,
        },
        totals: PathTotals {
            sent_bytes: Some(path.bytes),
            sent_packets: path.packets,
            lost_packets: path.lost,
            ..PathTotals::default()
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_further_session_has_its_number_before_the_ending() {
        let name = |file: &str, number| numbered(Path::new(file), number).display().to_string();
        assert_eq!(name("logs/a.sqlog", 1), "logs/a.sqlog");
        assert_eq!(name("logs/a.sqlog", 3), "logs/a-3.sqlog");
        assert_eq!(name("a", 2), "a-2");
    }

    #[test]
    fn changes_of_paths_wait_for_a_sample_and_are_no_later_than_it() {
        let place = tempfile::tempdir().unwrap();
        let file = place.path().join("a.sqlog");
        let mut log = SessionLog::create(Some(&file), "background").unwrap();
        log.note(&TransferEvent::Begun);
        for state in ["probing", "active", "closed"] {
            let (name, reason) = ("direct".to_owned(), None);
            log.note(&TransferEvent::Path { path: 1, name, state, reason });
        }
        log.note(&TransferEvent::Progress(TransferProgress { bytes: 7, ..TransferProgress::default() }));
        drop(log);
        let text = std::fs::read_to_string(&file).unwrap();
        let events: Vec<serde_json::Value> =
            text.split('\u{1e}').skip(2).map(|record| serde_json::from_str(record).unwrap()).collect();
        let told: Vec<_> = events.iter().map(|event| event["name"].as_str().unwrap()).collect();
        assert_eq!(
            told,
            [
                "byway:controller_set",
                "quic:connection_started",
                "quic:tuple_assigned",
                "byway:path_state_updated",
                "byway:path_state_updated",
                "byway:path_state_updated",
                "quic:tuple_assigned",
                "byway:session_totals_updated",
            ]
        );
        assert!(events.iter().all(|event| event["time"] == 0.0), "{events:?}");
    }

    #[test]
    fn without_a_file_nothing_is_written_and_all_is_well() {
        let mut log = SessionLog::create(None, "background").unwrap();
        log.note(&TransferEvent::Begun);
        assert!(log.open.is_none());
        let nowhere = Path::new("/nonexistent/a.sqlog");
        assert!(SessionLog::create(Some(nowhere), "background").is_err());
    }
}
