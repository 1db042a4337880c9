//! Requests by real programs, and the reports of these.

use super::capabilities::kernel;
use super::process::{HelperProcess, later, said_ready};
use super::run_lab::RunLab;
use crate::error::{Error, OrFailed as _, Result};
use crate::http_requests::{FetchResult, FetchTask, GO_LINE};
use byway_lab::Setup;
use byway_lab::record::{RequestRecord, RequestsRecord};
use byway_lab::world;
use byway_sim::tcp::web::{Request, RequestStart};
use byway_wire::time::nanos;
use std::io::{BufRead as _, BufReader, Write as _};
use std::process::Stdio;
use std::thread::JoinHandle;
use std::time::Instant;

/// The port of the first HTTP server. Each server has its own.
const FIRST_HTTP_PORT: u16 = 8000;

/// A workload of requests that is running.
pub(super) struct RunningRequests {
    name: String,
    list: Vec<Request>,
    server: HelperProcess,
    reports: JoinHandle<Result<Vec<FetchResult>>>,
}

/// Starts the servers and the clients of a variant.
pub(super) fn start(site: &RunLab, setup: &Setup, seed: u64, begun: Instant) -> Result<Vec<RunningRequests>> {
    let mut all = Vec::new();
    for (number, requests) in setup.requests.iter().enumerate() {
        let port = FIRST_HTTP_PORT + number as u16;
        let congestion = kernel(&requests.congestion.name).unwrap_or("cubic");
        let program = site.program.to_string_lossy().into_owned();
        let serve = [program.as_str(), "lab", "serve", &port.to_string(), "--congestion", congestion];
        let server = said_ready(site.on(&requests.server, &serve))?;
        let list = world::requests(requests, seed, setup.duration);
        let address = format!("{}:{port}", site.address(&requests.server)?);
        let mut fetcher = site.on(&requests.client, &[program.as_str(), "lab", "fetch", &address]);
        let mut child = fetcher.stdin(Stdio::piped()).stderr(Stdio::null()).spawn()?;
        let mut told = child.stdin.take().or_failed(|| "no input")?;
        let said = child.stdout.take().or_failed(|| "no output")?;
        let fetcher = HelperProcess(child);
        for (index, request) in list.iter().enumerate() {
            // A client's first errand waits for the beginning of all, the others for each other.
            let first = !list.iter().take(index).any(|before| before.client == request.client);
            let (wait, open) = match request.when {
                RequestStart::At(at) => (at.as_nanos(), true),
                RequestStart::After(think) => {
                    (nanos(think) + if first { nanos(requests.start) } else { 0 }, false)
                }
            };
            let errand = FetchTask { index, client: request.client, wait, open, size: request.size };
            writeln!(told, "{}", serde_json::to_string(&errand)?)?;
        }
        let end = begun + setup.duration;
        let reports = later(begun, move || {
            writeln!(told, "{GO_LINE}")?;
            let ending = later(end, move || {
                // What has not come by the end of the run never comes.
                drop(fetcher);
                Ok(())
            })?;
            let lines = BufReader::new(said).lines().map_while(Result::ok);
            let done = lines.filter_map(|line| serde_json::from_str(&line).ok()).collect();
            drop(ending);
            Ok(done)
        })?;
        all.push(RunningRequests { name: requests.name.clone(), list, server, reports });
    }
    Ok(all)
}

impl RunningRequests {
    /// Whether all requests were answered.
    pub(super) fn is_over(&self) -> bool {
        self.reports.is_finished()
    }

    /// The record of the requests, when the run has ended.
    pub(super) fn finish(self) -> Result<RequestsRecord> {
        let done =
            self.reports.join().map_err(|_| Error::Failed(format!("{}: it panicked", self.name)))??;
        drop(self.server);
        let unknown = |request: &Request| RequestRecord {
            size: request.size,
            began: None,
            took: None,
            given_up: false,
        };
        let mut list: Vec<_> = self.list.iter().map(unknown).collect();
        // Of an open loop it is known when each began, whether it ended or not.
        for (record, request) in list.iter_mut().zip(&self.list) {
            if let RequestStart::At(at) = request.when {
                record.began = Some(at.as_secs_f64());
            }
        }
        for done in done {
            if let Some(record) = list.get_mut(done.index) {
                (record.began, record.took) = (Some(done.began), Some(done.took));
            }
        }
        Ok(RequestsRecord { name: self.name, list })
    }
}
