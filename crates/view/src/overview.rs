//! All that is known of this host: what processes tell, made into what is shown.

use crate::frame::{Frame, ProcessFigures, Tenths, TransferFigures};
use crate::interfaces::Interfaces;
use crate::messages::{GARBLED_ANSWER, NO_ANSWER};
use crate::told::{Text, ToldProcess, ToldTransfer};
use crate::track::{PathRate, SeenPath, Track, TransferPast};
use crate::uplinks::{OwnPart, UplinkPast, Uplinks, whole};
use byway_transfer::PauseReason;
use byway_transfer::host_status::NoAnswer;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Instant;

/// Transfers of all processes that are shown.
const MAX_SHOWN_TRANSFERS: usize = 256;

/// The socket of a process and its start, and then the number of its transfer, 0 at a sender.
type TransferKey = (String, u64, u32);

/// The present state of transfers and uplinks.
#[derive(Debug, Default)]
pub struct Overview {
    second: u64,
    uplinks: Uplinks,
    interfaces: Interfaces,
    tracks: BTreeMap<TransferKey, Track>,
    /// The number of the newest transfer.
    newest_id: u32,
    /// The rate of byway's paths over each interface, as reported in this sample.
    own: BTreeMap<Arc<str>, OwnPart>,
    unplaced_bps: f64,
    frame: Frame,
}

impl Overview {
    /// Begins a look at this second of the server's clock.
    pub fn begin(&mut self, second: u64, frame: Frame) {
        self.second = second;
        self.frame = Frame { second, ..frame };
        self.own.clear();
        self.unplaced_bps = 0.0;
        self.tracks.values_mut().for_each(|track| track.is_seen = false);
        self.interfaces.refresh(second);
    }

    /// Handles the reply from one socket.
    pub fn take(&mut self, socket: &str, answer: Result<&[u8], NoAnswer>) {
        let told = answer.and_then(|answer| ToldProcess::read(answer).ok_or(NoAnswer::Garbled));
        match told {
            Ok(told) => self.take_process(socket, told),
            Err(problem) => {
                // Its transfers may well go on.
                let own = self.tracks.iter_mut().filter(|((name, ..), _)| name == socket);
                own.for_each(|(_, track)| track.is_seen = true);
                let problem = Some(if problem == NoAnswer::Late { NO_ANSWER } else { GARBLED_ANSWER });
                let process = ProcessFigures { problem, ..process(socket, ToldProcess::default()).0 };
                self.frame.processes.push(process);
            }
        }
    }

    /// Ends a sample, and returns the frame to show.
    pub fn finish(&mut self, now: Instant) -> Frame {
        self.tracks.retain(|_, track| track.is_seen);
        self.uplinks.note(self.second, now, &self.own);
        let mut frame = std::mem::take(&mut self.frame);
        // They came as they answered.
        frame.processes.sort_by(|a, b| a.id.0.cmp(&b.id.0));
        frame.uplinks = self.uplinks.figures(self.second);
        frame.unplaced_bps = Some(whole(self.unplaced_bps)).filter(|bps| *bps > 0);
        frame
    }

    /// The last ten minutes of an interface.
    pub fn uplink_past(&self, name: &str) -> Option<UplinkPast> {
        self.uplinks.past(name, self.second)
    }

    /// The last ten minutes of a transfer.
    pub fn transfer_past(&self, id: u32) -> Option<TransferPast> {
        Some(self.tracks.values().find(|track| track.id == id)?.past(self.second))
    }

    /// The second of the newest look.
    pub const fn second(&self) -> u64 {
        self.second
    }

    fn take_process(&mut self, socket: &str, told: ToldProcess) {
        let since = told.since;
        let (mut shown, transfers, more) = process(socket, told);
        self.frame.more_transfers += more;
        for told in transfers {
            let key = (socket.to_owned(), since, told.transfer.unwrap_or_default());
            match self.take_transfer(key, told) {
                Some(figures) => shown.transfers.push(figures),
                None => self.frame.more_transfers += 1,
            }
        }
        self.frame.processes.push(shown);
    }

    /// `None`: there are too many.
    fn take_transfer(&mut self, key: TransferKey, told: ToldTransfer) -> Option<TransferFigures> {
        if self.tracks.get(&key).is_some_and(|track| track.is_another(&told)) {
            self.tracks.remove(&key);
        }
        if !self.tracks.contains_key(&key) {
            if self.tracks.len() >= MAX_SHOWN_TRANSFERS {
                return None;
            }
            self.newest_id = self.newest_id.wrapping_add(1);
            self.tracks.insert(key.clone(), Track::new(self.newest_id));
        }
        let track = self.tracks.get_mut(&key)?;
        let passed = track.note(self.second, &told);
        let sends = told.transfer.is_none();
        // Paths are held back by their lines alone, also while the transfer makes room on them.
        let is_line_full = matches!(told.pause, None | Some(PauseReason::Yielding));
        let hidden = told.paths.more + told.arrivals.more;
        // Whoever sends on a path knows its losses.
        let sent = told.paths.items.into_iter().map(|path| (path.lost.is_some(), path));
        let came = told.arrivals.items.into_iter().map(|path| (false, path));
        let mut seen = Vec::new();
        for (sends, path) in sent.chain(came) {
            let interface = self.interfaces.of_path(path.local, path.remote);
            let path = SeenPath::new(sends, path, interface);
            let PathRate { bps, fills } = track.note_path(passed, &path);
            let bps = bps.unwrap_or_default();
            match &path.interface {
                None => self.unplaced_bps += bps,
                Some(interface) => {
                    let part = self.own.entry(Arc::clone(interface)).or_default();
                    let own = if path.sends() { &mut part.up } else { &mut part.down };
                    own.bps += bps;
                    own.paths += 1;
                    own.fills |= fills && is_line_full;
                }
            }
            seen.push(path);
        }
        let (paths, more, more_bps) = track.shown(self.second, seen);
        Some(TransferFigures {
            id: track.id,
            name: told.name,
            from: told.from,
            sends,
            seconds: told.seconds,
            bytes: told.bytes,
            total: told.total,
            bps: track.bps().map(whole),
            pause: told.pause.map(PauseReason::code),
            yielded_seconds: told.yielded_seconds,
            added_delay_ms: told.added_delay_ms.map(Tenths),
            paths,
            more_paths: more + hidden,
            more_bps,
        })
    }
}

/// Splits a process into its figures without transfers, the transfers, and the number of transfers
/// that it leaves out.
fn process(socket: &str, told: ToldProcess) -> (ProcessFigures, Vec<ToldTransfer>, usize) {
    let figures = ProcessFigures {
        id: Text::from(socket),
        verb: told.verb,
        pid: told.pid,
        since: told.since,
        peer: told.peer,
        listen: told.listen.items,
        problem: None,
        away: told.told.away.and_then(|away| away.reason),
        forwarded: told.told.forwarded,
        relayed: told.told.counters,
        transfers: Vec::new(),
    };
    (figures, told.transfers.items, told.transfers.more)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn look(overview: &mut Overview, second: u64, answers: &[(&str, Value)]) -> Value {
        overview.begin(second, Frame::default());
        for (name, answer) in answers {
            overview.take(name, Ok(answer.to_string().as_bytes()));
        }
        serde_json::to_value(overview.finish(Instant::now())).unwrap()
    }

    fn sender(seconds: f64, bytes: u64) -> Value {
        let path = json!({
            "path": 0, "name": "direct", "carrier": "udp", "state": "active", "bytes": bytes, "rate_bps": 8e6,
            "local": "127.0.0.1", "remote": "127.0.0.1:9", "queue_ms": 3.04, "packets": bytes / 1_000, "lost": 0,
        });
        let transfer = json!({
            "seconds": seconds, "bytes": bytes, "rate_bps": 8e6, "pause": "yielding", "yielded_seconds": 2.5,
            "added_delay_ms": 3.1234, "paths": [path],
        });
        json!({ "verb": "send", "pid": 7, "since": 9, "peer": "nas", "transfers": [transfer], "told": {} })
    }

    #[test]
    fn a_transfer_is_shown_with_its_paths_and_why_it_is_slow() {
        let mut overview = Overview::default();
        look(&mut overview, 1, &[("send-7", sender(1.0, 1_000_000))]);
        let frame = look(&mut overview, 2, &[("send-7", sender(2.0, 2_000_000))]);
        let transfer = &frame["processes"][0]["transfers"][0];
        assert_eq!((&transfer["bps"], &transfer["pause"]), (&json!(8_000_000), &json!("yielding")));
        assert_eq!(transfer["added_delay_ms"], json!(3.1));
        let path = &transfer["paths"][0];
        assert_eq!((&path["interface"], &path["loss"], &path["id"]), (&json!("lo"), &json!(0), &json!("s0")));
        assert_eq!((&path["queue_ms"], path.get("rtt_ms")), (&json!(3.0), None));
        assert_eq!(frame["uplinks"][0]["name"], "lo");
        let past = overview.transfer_past(1).unwrap();
        assert_eq!((past.bps.len(), past.paths["s0"].queue_ms.as_slice()), (2, &[Some(3.0); 2][..]));
        assert!(overview.uplink_past("lo").is_some() && overview.uplink_past("nowhere").is_none());
        look(&mut overview, 3, &[]);
        assert!(overview.transfer_past(1).is_none(), "it ended");
    }

    #[test]
    fn a_process_that_does_not_answer_is_told_and_keeps_its_past() {
        let mut overview = Overview::default();
        look(&mut overview, 1, &[("send-7", sender(1.0, 1_000_000))]);
        overview.begin(2, Frame::default());
        overview.take("send-7", Err(NoAnswer::Late));
        overview.take("send-8", Ok(b"\x00garbage"));
        overview.take("<img src=x onerror=alert(1)>\u{202e}", Ok(b"[]"));
        let frame = overview.finish(Instant::now());
        let problems: Vec<_> = frame.processes.iter().map(|process| process.problem.unwrap()).collect();
        assert_eq!(problems, [GARBLED_ANSWER, NO_ANSWER, GARBLED_ANSWER]);
        assert!(frame.processes[0].id.0.ends_with("\\u{202e}"), "{:?}", frame.processes[0].id);
        look(&mut overview, 3, &[("send-7", sender(3.0, 3_000_000))]);
        assert!(overview.transfer_past(1).is_some());
    }

    #[test]
    fn transfers_that_begin_and_end_for_a_week_leave_nothing() {
        let mut overview = Overview::default();
        for second in 0..20_000 {
            let process = format!("send-{}", second % 700);
            look(&mut overview, second, &[(&process, sender(second as f64, second))]);
        }
        assert!(overview.tracks.len() <= 1 && overview.own.len() <= 1, "{}", overview.tracks.len());
    }

    #[test]
    fn a_thousand_transfers_are_counted_and_256_shown() {
        let transfer = |number: u32| json!({ "transfer": number, "from": "byway-key-x", "seconds": 1.0, "bytes": 7, "paths": [] });
        let process = |first: u32| {
            let transfers: Vec<_> = (first..first + 200).map(transfer).collect();
            json!({ "verb": "recv", "pid": 1, "since": 1, "transfers": transfers, "told": {} })
        };
        let names = ["recv-1", "recv-2", "recv-3", "recv-4", "recv-5"];
        let answers: Vec<_> = names.iter().map(|name| (*name, process(1))).collect();
        let mut overview = Overview::default();
        let frame = look(&mut overview, 1, &answers);
        let shown = frame["processes"].as_array().unwrap().iter();
        let shown: usize = shown.map(|process| process["transfers"].as_array().unwrap().len()).sum();
        assert_eq!(
            (shown, &frame["more_transfers"]),
            (MAX_SHOWN_TRANSFERS, &json!(1_000 - MAX_SHOWN_TRANSFERS))
        );
    }
}
