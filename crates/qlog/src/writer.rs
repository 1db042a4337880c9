//! The file: a header, then an event a line. What did not change since the last sample is left out.

use crate::event::{CloseTrigger, EVENT_SCHEMAS, Event, Metrics, PathTotals, TupleEnd};
use crate::{CHOKED_STATE, CLOSED_STATE};
use serde::Serialize;
use std::collections::BTreeMap;
use std::io::{self, Write};
use std::net::{IpAddr, SocketAddr};

/// The byte before each JSON text (RFC 7464 section 2.2).
const RECORD_SEPARATOR: u8 = 0x1e;

/// The schema of a file with a header, followed by events.
const FILE_SCHEMA: &str = "urn:ietf:params:qlog:file:sequential";

/// How such a file is written.
const SERIALIZATION_FORMAT: &str = "application/qlog+json-seq";

/// The header of a file.
#[derive(Clone, Copy, Debug, Default)]
pub struct TraceHeader<'a> {
    /// The title of the file, for a person.
    pub title: &'a str,
    /// The program or host whose view the file is.
    pub vantage_point: &'a str,
}

#[derive(Serialize)]
struct FileHeader<'a> {
    file_schema: &'static str,
    serialization_format: &'static str,
    title: &'a str,
    trace: Trace<'a>,
}

#[derive(Serialize)]
struct Trace<'a> {
    common_fields: CommonFields,
    vantage_point: VantagePoint<'a>,
    event_schemas: [&'static str; 3],
}

#[derive(Serialize)]
struct CommonFields {
    time_format: &'static str,
    reference_time: ReferenceTime,
}

#[derive(Serialize)]
struct ReferenceTime {
    clock_type: &'static str,
    epoch: &'static str,
}

#[derive(Serialize)]
struct VantagePoint<'a> {
    name: &'a str,
    #[serde(rename = "type")]
    kind: &'static str,
}

#[derive(Serialize)]
struct TimedEvent<'a> {
    time: f64,
    #[serde(flatten)]
    event: &'a Event<'a>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tuple: Option<String>,
}

/// A path at a sample.
#[derive(Clone, Copy, Debug, Default)]
pub struct PathSample<'a> {
    /// The path's number.
    pub path: u32,
    /// The name of the path, for a person.
    pub name: &'a str,
    /// The path's state. [`CLOSED_STATE`] ends it.
    pub state: &'a str,
    /// The first address to which the path's datagrams go. `None`: not known.
    pub remote: Option<SocketAddr>,
    /// The local address. `None`: the system chooses it.
    pub local: Option<IpAddr>,
    /// The path's figures.
    pub metrics: Metrics,
    /// The path's totals.
    pub totals: PathTotals,
}

/// The state of a path as it was last written.
#[derive(Debug, Default)]
struct ToldPath {
    state: String,
    /// The path's ends, as in its tuple.
    ends: (Option<SocketAddr>, Option<IpAddr>),
    metrics: Metrics,
    totals: PathTotals,
}

/// Writes the file of one session.
#[derive(Debug)]
pub struct QlogWriter<W: Write> {
    out: W,
    paths: BTreeMap<u32, ToldPath>,
    received: Option<u64>,
}

/// Converts `seconds` to milliseconds, rounded to whole microseconds.
#[must_use]
pub fn millis(seconds: f64) -> f64 {
    (seconds * 1e6).round() / 1e3
}

impl<W: Write> QlogWriter<W> {
    /// Writes the head of the file.
    ///
    /// # Errors
    /// If `out` cannot be written.
    pub fn new(out: W, header: TraceHeader<'_>) -> io::Result<Self> {
        let mut file = Self { out, paths: BTreeMap::new(), received: None };
        file.put(&FileHeader {
            file_schema: FILE_SCHEMA,
            serialization_format: SERIALIZATION_FORMAT,
            title: header.title,
            trace: Trace {
                common_fields: CommonFields {
                    time_format: "relative_to_epoch",
                    reference_time: ReferenceTime { clock_type: "monotonic", epoch: "unknown" },
                },
                // The host that sends is the one that begins the session.
                vantage_point: VantagePoint { name: header.vantage_point, kind: "client" },
                event_schemas: EVENT_SCHEMAS,
            },
        })?;
        Ok(file)
    }

    /// Writes an event of the whole session, `seconds` after the clock began.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub fn event(&mut self, seconds: f64, event: &Event<'_>) -> io::Result<()> {
        self.put(&TimedEvent { time: millis(seconds), event, tuple: None })
    }

    /// The session begins.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub fn started(&mut self, seconds: f64) -> io::Result<()> {
        self.event(seconds, &Event::Started { local: TupleEnd::default(), remote: TupleEnd::default() })
    }

    /// Writes the end of the session, with `failure` if it failed.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub fn closed(&mut self, seconds: f64, failure: Option<&str>) -> io::Result<()> {
        let trigger = if failure.is_some() { CloseTrigger::Error } else { CloseTrigger::Application };
        self.event(seconds, &Event::Closed { trigger, reason: failure })
    }

    /// Writes how many payload bytes the receiver has, if that is news.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub fn received(&mut self, seconds: f64, received_bytes: u64) -> io::Result<()> {
        if self.received.replace(received_bytes) == Some(received_bytes) {
            return Ok(());
        }
        self.event(seconds, &Event::SessionTotalsUpdated { received_bytes })
    }

    /// Writes the changes of a path: first its tuple and state, then its figures and totals.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub fn sample(&mut self, seconds: f64, now: &PathSample<'_>) -> io::Result<()> {
        self.path_state(seconds, now, None)?;
        let ends = (now.remote, now.local);
        let is_known = self.paths.get(&now.path).is_some_and(|told| told.ends == ends);
        if now.remote.is_some() && !is_known && now.state != CLOSED_STATE {
            self.tuple(seconds, now)?;
        }
        let told = self.paths.entry(now.path).or_default();
        let metrics = now.metrics.news(&mut told.metrics);
        let totals = (told.totals != now.totals).then_some(now.totals);
        told.totals = now.totals;
        if let Some(metrics) = metrics {
            self.of_path(seconds, now.path, &Event::MetricsUpdated { path_id: now.path, metrics })?;
        }
        if let Some(totals) = totals {
            self.of_path(seconds, now.path, &Event::PathTotalsUpdated { path_id: now.path, totals })?;
        }
        Ok(())
    }

    /// Writes the state of a path if it changed, with `reason`. It ignores the figures and totals
    /// of `now`.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub fn path_state(&mut self, seconds: f64, now: &PathSample<'_>, reason: Option<&str>) -> io::Result<()> {
        let path_id = now.path;
        let before = self.paths.get(&path_id).map(|told| told.state.clone());
        if before.as_deref() == Some(now.state) {
            return Ok(());
        }
        let old = before.as_deref();
        if old.is_none_or(|old| old == CLOSED_STATE) {
            self.tuple(seconds, now)?;
        }
        let (path, new) = (now.name, now.state);
        self.of_path(seconds, path_id, &Event::PathStateUpdated { path_id, path, old, new, reason })?;
        let is_choked = now.state == CHOKED_STATE;
        if is_choked != (old == Some(CHOKED_STATE)) {
            let new = if is_choked { CHOKED_STATE } else { "open" };
            self.of_path(seconds, path_id, &Event::CongestionStateUpdated { path_id, new })?;
        }
        if now.state == CLOSED_STATE {
            let tuple_id = tuple_id(path_id);
            let over = Event::TupleAssigned { tuple_id, tuple_remote: None, tuple_local: None };
            self.of_path(seconds, path_id, &over)?;
        }
        now.state.clone_into(&mut self.paths.entry(path_id).or_default().state);
        Ok(())
    }

    /// Writes the bytes that are still buffered.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub fn finish(mut self) -> io::Result<()> {
        self.out.flush()
    }

    /// Writes the ends of a path.
    fn tuple(&mut self, seconds: f64, now: &PathSample<'_>) -> io::Result<()> {
        self.paths.entry(now.path).or_default().ends = (now.remote, now.local);
        let tuple = Event::TupleAssigned {
            tuple_id: tuple_id(now.path),
            // Without ends a tuple is over, so an end that is not known is an empty one.
            tuple_remote: Some(now.remote.map(|to| end(to.ip(), Some(to.port()))).unwrap_or_default()),
            tuple_local: now.local.map(|from| end(from, None)),
        };
        self.of_path(seconds, now.path, &tuple)
    }

    fn of_path(&mut self, seconds: f64, path: u32, event: &Event<'_>) -> io::Result<()> {
        self.put(&TimedEvent { time: millis(seconds), event, tuple: Some(tuple_id(path)) })
    }

    fn put(&mut self, text: &impl Serialize) -> io::Result<()> {
        self.out.write_all(&[RECORD_SEPARATOR])?;
        serde_json::to_writer(&mut self.out, text)?;
        self.out.write_all(b"\n")
    }
}

/// The identifier of a path's tuple.
fn tuple_id(path: u32) -> String {
    format!("p{path}")
}

fn end(ip: IpAddr, port: Option<u16>) -> TupleEnd {
    let text = Some(ip.to_string());
    match ip {
        IpAddr::V4(_) => TupleEnd { ip_v4: text, port_v4: port, ..TupleEnd::default() },
        IpAddr::V6(_) => TupleEnd { ip_v6: text, port_v6: port, ..TupleEnd::default() },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(write: impl FnOnce(&mut QlogWriter<&mut Vec<u8>>)) -> Vec<String> {
        let mut out = Vec::new();
        let header = TraceHeader { title: "t", vantage_point: "v" };
        let mut file = QlogWriter::new(&mut out, header).expect("a header");
        write(&mut file);
        file.finish().expect("flushed");
        let text = String::from_utf8(out).expect("text");
        text.split('\u{1e}').skip(1).map(|line| line.trim_end().to_owned()).collect()
    }

    #[test]
    fn the_header_comes_first_and_names_its_schemas() {
        let lines = written(|_| ());
        let header = "{\"file_schema\":\"urn:ietf:params:qlog:file:sequential\",\
             \"serialization_format\":\"application/qlog+json-seq\",\"title\":\"t\",\
             \"trace\":{\"common_fields\":{\"time_format\":\"relative_to_epoch\",\
             \"reference_time\":{\"clock_type\":\"monotonic\",\"epoch\":\"unknown\"}},\
             \"vantage_point\":{\"name\":\"v\",\"type\":\"client\"},\
             \"event_schemas\":[\"urn:ietf:params:qlog:events:quic-12\",\
             \"urn:ietf:params:qlog:events:simulation-13\",\"byway:qlog:events:byway-1\"]}}";
        assert_eq!(lines, [header]);
    }

    #[test]
    fn only_news_is_told() {
        let metrics =
            Metrics { smoothed_rtt: Some(40.5), congestion_window: Some(3000), ..Metrics::default() };
        let first = PathSample { path: 2, name: "direct", state: "active", metrics, ..PathSample::default() };
        let wider = Metrics { congestion_window: Some(4500), ..metrics };
        let lines = written(|file| {
            file.sample(0.1, &first).expect("written");
            file.sample(0.2, &first).expect("written");
            file.sample(0.3, &PathSample { metrics: wider, ..first }).expect("written");
        });
        assert_eq!(
            lines[1..],
            [
                "{\"time\":100.0,\"name\":\"quic:tuple_assigned\",\"data\":{\"tuple_id\":\"p2\",\
                 \"tuple_remote\":{}},\"tuple\":\"p2\"}",
                "{\"time\":100.0,\"name\":\"byway:path_state_updated\",\
                 \"data\":{\"path_id\":2,\"path\":\"direct\",\"new\":\"active\"},\"tuple\":\"p2\"}",
                "{\"time\":100.0,\"name\":\"quic:recovery_metrics_updated\",\"data\":{\"path_id\":2,\
                 \"smoothed_rtt\":40.5,\"congestion_window\":3000},\"tuple\":\"p2\"}",
                "{\"time\":300.0,\"name\":\"quic:recovery_metrics_updated\",\"data\":{\"path_id\":2,\
                 \"congestion_window\":4500},\"tuple\":\"p2\"}",
            ]
        );
    }

    #[test]
    fn a_choked_path_opens_again_and_a_closed_one_gives_its_tuple_back() {
        let sample = |state| PathSample { path: 0, name: "r", state, ..PathSample::default() };
        let lines = written(|file| {
            for (at, state) in ["active", "choked", "active", "closed", "closed"].into_iter().enumerate() {
                file.path_state(at as f64, &sample(state), None).expect("written");
            }
        });
        let of = |name: &str| lines.iter().filter(|line| line.contains(name)).collect::<Vec<_>>();
        assert_eq!(of("byway:path_state_updated").len(), 4);
        let states = of("quic:congestion_state_updated");
        assert!(
            states[0].contains("\"new\":\"choked\"") && states[1].contains("\"new\":\"open\""),
            "{states:?}"
        );
        let tuples = of("quic:tuple_assigned");
        assert_eq!(tuples.len(), 2);
        assert!(tuples[1].contains("\"data\":{\"tuple_id\":\"p0\"}"), "{tuples:?}");
    }

    #[test]
    fn a_tuple_gets_its_ends_once_they_are_known() {
        let named = PathSample { path: 1, name: "direct", state: "active", ..PathSample::default() };
        let seen = PathSample { remote: Some(([192, 0, 2, 1], 9).into()), ..named };
        let lines = written(|file| {
            file.path_state(0.1, &named, None).expect("written");
            file.sample(0.2, &seen).expect("written");
            file.sample(0.3, &seen).expect("written");
        });
        let tuples: Vec<_> = lines.iter().filter(|line| line.contains("quic:tuple_assigned")).collect();
        assert_eq!(tuples.len(), 2, "{tuples:?}");
        assert!(tuples[1].contains("\"ip_v4\":\"192.0.2.1\",\"port_v4\":9"), "{tuples:?}");
    }

    #[test]
    fn an_end_of_a_tuple_says_which_family_it_is_of() {
        let four = end([10, 0, 0, 1].into(), Some(9));
        assert_eq!((four.ip_v4.as_deref(), four.port_v4, four.ip_v6), (Some("10.0.0.1"), Some(9), None));
        let six = end(std::net::Ipv6Addr::LOCALHOST.into(), Some(9));
        assert_eq!((six.ip_v6.as_deref(), six.port_v6, six.ip_v4), (Some("::1"), Some(9), None));
    }
}
