//! A file, event by event: what is known of the session and its paths at a time.

use n0_qlog::events::quic::{RecoveryMetricsUpdated, TupleAssigned};
use n0_qlog::events::{EventData, JsonEvent};
use n0_qlog::reader::{Event, QlogSeqReader};
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::Path;

/// A path as the file has told it so far.
#[derive(Clone, Debug, Default)]
pub struct ReadPath {
    pub name: String,
    pub state: String,
    pub has_tuple: bool,
    /// As events of congestion say.
    pub is_choked: bool,
    pub smoothed_rtt: Option<f32>,
    pub min_rtt: Option<f32>,
    pub congestion_window: Option<u64>,
    /// The sums, by the name of their field.
    pub totals: BTreeMap<String, u64>,
}

/// A file that is read.
pub struct Replay {
    events: Vec<(f64, Event)>,
    next: usize,
    pub paths: BTreeMap<u64, ReadPath>,
    pub received: Option<u64>,
    pub scenario: Option<Value>,
    pub controller: Option<String>,
    pub started: Option<f64>,
    pub closed: Option<f64>,
}

impl Replay {
    pub fn open(file: &Path) -> Result<Self, String> {
        let reader =
            QlogSeqReader::with_file(file).map_err(|error| format!("{}: {error}", file.display()))?;
        let head = &reader.qlog;
        expect(&head.file_schema, "urn:ietf:params:qlog:file:sequential")?;
        expect(&head.serialization_format, "application/qlog+json-seq")?;
        let schemas = &head.trace.event_schemas;
        if !schemas.iter().any(|schema| schema == n0_qlog::events::QUIC_URI) {
            return Err(format!("the schema of quic is not among {schemas:?}"));
        }
        let own = |schema: &&String| schema.contains("byway");
        if schemas.iter().filter(own).any(|schema| schema.starts_with("urn:ietf:")) {
            return Err(format!("a schema of byway has a name of the IETF: {schemas:?}"));
        }
        let records = std::fs::read(file).map_err(|error| error.to_string())?;
        let records = records.iter().filter(|byte| **byte == 0x1e).count();
        let events: Vec<(f64, Event)> = reader.map(|event| (time(&event), event)).collect();
        // The reader passes over what it cannot read.
        expect(&events.len().to_string(), &(records - 1).to_string())?;
        if !events.is_sorted_by(|(one, _), (other, _)| one <= other) {
            return Err("events are not in the order of their times".to_owned());
        }
        Ok(Self {
            events,
            next: 0,
            paths: BTreeMap::new(),
            received: None,
            scenario: None,
            controller: None,
            started: None,
            closed: None,
        })
    }

    /// Takes all events until `millis`, those at that time included.
    pub fn until(&mut self, millis: f64) -> Result<(), String> {
        while let Some((at, event)) = self.events.get(self.next).filter(|(at, _)| *at <= millis).cloned() {
            self.next += 1;
            match event {
                Event::Qlog(event) => self.standard(at, event.tuple.as_deref(), event.data)?,
                Event::Json(event) => self.own(&event)?,
            }
        }
        Ok(())
    }

    fn standard(&mut self, at: f64, tuple: Option<&str>, data: EventData) -> Result<(), String> {
        match data {
            EventData::QuicConnectionStarted(_) => self.started = Some(at),
            EventData::QuicConnectionClosed(_) => self.closed = Some(at),
            EventData::QuicTupleAssigned(TupleAssigned { tuple_id, tuple_remote, tuple_local }) => {
                let path = tuple_id.strip_prefix('p').and_then(|number| number.parse().ok());
                let path = path.ok_or_else(|| format!("{tuple_id} is no tuple of a path"))?;
                let has_tuple = tuple_remote.is_some() || tuple_local.is_some();
                self.paths.entry(path).or_default().has_tuple = has_tuple;
            }
            EventData::QuicMetricsUpdated(metrics) => {
                let RecoveryMetricsUpdated { path_id, smoothed_rtt, min_rtt, congestion_window, .. } =
                    metrics;
                let path = path_id.ok_or("metrics without a path")?;
                expect(tuple.unwrap_or_default(), &format!("p{path}"))?;
                let path = self.paths.entry(path).or_default();
                path.smoothed_rtt = smoothed_rtt.or(path.smoothed_rtt);
                path.min_rtt = min_rtt.or(path.min_rtt);
                path.congestion_window = congestion_window.or(path.congestion_window);
            }
            EventData::QuicCongestionStateUpdated(state) => {
                let path = tuple.and_then(|tuple| tuple.strip_prefix('p')?.parse().ok());
                let path = path.ok_or("a congestion state without a path")?;
                self.paths.entry(path).or_default().is_choked = state.new == "choked";
            }
            other => return Err(format!("an event that byway does not write: {other:?}")),
        }
        Ok(())
    }

    fn own(&mut self, event: &JsonEvent) -> Result<(), String> {
        let data = &event.data;
        let text = |name: &str| data[name].as_str().unwrap_or_default().to_owned();
        let path = data["path_id"].as_u64();
        match (event.name.as_str(), path) {
            ("simulation:scenario", _) => self.scenario = Some(data.clone()),
            ("byway:controller_set", _) => self.controller = Some(text("controller")),
            ("byway:session_totals_updated", _) => self.received = data["received_bytes"].as_u64(),
            ("byway:path_state_updated", Some(path)) => {
                let path = self.paths.entry(path).or_default();
                (path.name, path.state) = (text("path"), text("new"));
            }
            ("byway:path_totals_updated", Some(path)) => {
                let totals = data.as_object().into_iter().flatten();
                let totals = totals.filter(|(name, _)| *name != "path_id");
                let totals = totals.filter_map(|(name, sum)| Some((name.clone(), sum.as_u64()?)));
                self.paths.entry(path).or_default().totals.extend(totals);
            }
            (name, _) => return Err(format!("an event that byway does not write: {name}")),
        }
        Ok(())
    }
}

fn time(event: &Event) -> f64 {
    match event {
        Event::Qlog(event) => event.time,
        Event::Json(event) => event.time,
    }
}

/// An error if the two differ.
pub fn expect(found: &str, wanted: &str) -> Result<(), String> {
    if found == wanted { Ok(()) } else { Err(format!("{found} instead of {wanted}")) }
}
