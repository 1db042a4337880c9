//! A process's status socket, which gives the newest events. The results of ended transfers go into
//! the history.

use super::history::{History, HistoryEntry};
use super::request::Request;
use super::runtime_directory::RuntimeDirectory;
use super::status_socket::StatusSocket;
use crate::limits::limit_choice::LimitWish;
use crate::state_directory::StateDir;
use crate::units::RateLimits;
use byway_net::{unix_millis, unix_seconds};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::fmt;
use std::io;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// The event that the peer does not answer. A later event that it is connected, or progress,
/// removes this one.
const AWAY_EVENT: &str = "away";
const CONNECTED_EVENT: &str = "connected";
/// The fields that a result lacks and that are taken from the transfer's last progress.
const PROGRESS_FIELDS: [&str; 2] = ["bytes", "seconds"];

/// Time that a query waits for figures that are made on request.
const FIGURES_TIMEOUT: Duration = Duration::from_millis(80);

/// The status of a process.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ProcessStatus {
    /// The verb that the process runs: `send`, `recv`, …
    pub verb: String,
    /// The number of the process.
    pub pid: u32,
    /// The start of the process, in seconds since 1970.
    pub since: u64,
    /// The peer, as the command line names it. `None`: the command line has a ticket, or there is
    /// no single peer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub peer: Option<String>,
    /// Addresses on which the process listens.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub listen: Vec<String>,
    /// The newest progress event; at a receiver, one for each transfer.
    pub transfers: Vec<Value>,
    /// The newest event of each other kind, by the event's name.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub told: BTreeMap<String, Value>,
}

/// The state that the socket's thread shares with the process.
#[derive(Default)]
struct Shared {
    status: ProcessStatus,
    /// Progress by the number of the transfer, 0 at a sender.
    transfers: BTreeMap<u32, Value>,
    /// Whether the process has limits.
    is_limited: bool,
    wanted: Option<LimitWish>,
    /// Wakes the process, which then takes the limits.
    wake: Option<Box<dyn Fn() + Send>>,
    /// Asks the process for events with its newest figures. `None`: such events come by themselves.
    refresh: Option<Arc<dyn Fn() + Send + Sync>>,
    /// Number of events noted.
    told_count: u64,
}

/// [`Shared`] for two threads. One may wait until the other notes an event.
#[derive(Default)]
struct Board(Mutex<Shared>, Condvar);

/// The status socket of this process, and the history of its user.
pub struct StatusBoard {
    shared: Arc<Board>,
    history: History,
    _socket: StatusSocket,
}

impl StatusBoard {
    /// Opens the socket of a process that runs `verb` with `peer`.
    ///
    /// # Errors
    /// There is no safe place for a socket.
    pub fn open(verb: &str, peer: Option<String>, state: &StateDir) -> io::Result<Self> {
        let (pid, since) = (std::process::id(), unix_seconds());
        let status = ProcessStatus { verb: verb.into(), pid, since, peer, ..ProcessStatus::default() };
        let shared = Board(Mutex::new(Shared { status, ..Shared::default() }), Condvar::new());
        let shared = Arc::new(shared);
        let user = rustix::process::geteuid().as_raw();
        let directory = RuntimeDirectory::locate(user, |name| std::env::var_os(name));
        let asked = Arc::clone(&shared);
        let socket = StatusSocket::open(&directory, verb, move |request| asked.answer(request))?;
        Ok(Self { shared, history: History::at(state.history_path()), _socket: socket })
    }

    /// Notes the addresses on which the process listens.
    pub fn listens(&self, addresses: &[String]) {
        self.shared.locked().status.listen = addresses.to_vec();
    }

    /// Notes how far a transfer is. `number`: 0 at a sender.
    pub fn progress(&self, number: u32, progress: Value) {
        let mut shared = self.shared.locked();
        shared.status.told.remove(AWAY_EVENT);
        shared.transfers.insert(number, progress);
    }

    /// Notes the event `name`. Its fields must hold no secret.
    pub fn told(&self, name: &str, fields: Value) {
        let mut shared = self.shared.locked();
        if name == CONNECTED_EVENT {
            shared.status.told.remove(AWAY_EVENT);
        }
        shared.status.told.insert(name.into(), fields);
        shared.told_count += 1;
        self.shared.1.notify_all();
    }

    /// Sets a function that a query calls before it reads the status. The query then waits a moment
    /// for new events.
    pub fn refreshes(&self, ask: impl Fn() + Send + Sync + 'static) {
        self.shared.locked().refresh = Some(Arc::new(ask));
    }

    /// Sets a function that is called when a query sets limits. It must return quickly.
    pub fn wake_by(&self, wake: impl Fn() + Send + 'static) {
        self.shared.locked().wake = Some(Box::new(wake));
    }

    /// A transfer ended. One that moved something or failed is remembered.
    ///
    /// # Errors
    /// The history cannot be written.
    pub fn ended(&self, number: u32, mut result: Value) -> io::Result<()> {
        let mut shared = self.shared.locked();
        let last = shared.transfers.remove(&number);
        if let (Some(last), Some(result)) = (last, result.as_object_mut()) {
            for name in PROGRESS_FIELDS {
                if let (None, Some(value)) = (result.get(name), last.get(name)) {
                    result.insert(name.into(), value.clone());
                }
            }
        }
        if result.get("bytes").is_none() && result.get("error").is_none() {
            return Ok(());
        }
        let (verb, peer) = (shared.status.verb.clone(), shared.status.peer.clone());
        drop(shared);
        self.history.add(&HistoryEntry { at: unix_seconds(), verb, peer, result })
    }

    /// Returns the limits that a query set since the last call. From the first call on, queries are
    /// told that limits will apply.
    #[must_use]
    pub fn take_limits(&self) -> Option<LimitWish> {
        let mut shared = self.shared.locked();
        shared.is_limited = true;
        shared.wanted.take()
    }
}

impl Shared {
    /// The answer to a request, as a line of JSON.
    fn answer(&mut self, request: &Request) -> String {
        let ProcessStatus { verb, pid, peer, .. } = &self.status;
        let answer = match request {
            Request::Status => {
                let transfers = self.transfers.values().cloned().collect();
                json!(ProcessStatus { transfers, ..self.status.clone() })
            }
            Request::Limit { peer: meant, .. } | Request::OwnLimit { peer: meant, .. }
                if !self.is_limited || meant.is_some() && meant != peer =>
            {
                json!({ "limited": false })
            }
            Request::Limit { up: Some(0), .. } | Request::Limit { down: Some(0), .. } => {
                json!({ "limited": false, "error": "a limit of 0 would stop it: leave it out for no limit" })
            }
            Request::Limit { void_after: Some(last), .. }
            | Request::OwnLimit { void_after: Some(last), .. }
                if unix_millis() > *last =>
            {
                json!({ "limited": false, "error": "the request came too late" })
            }
            Request::Limit { .. } | Request::OwnLimit { .. } => {
                self.wanted = Some(match request {
                    Request::Limit { up, down, .. } => LimitWish::Set(RateLimits { up: *up, down: *down }),
                    _ => LimitWish::Own,
                });
                if let Some(wake) = &self.wake {
                    wake();
                }
                json!({ "limited": true, "verb": verb, "pid": pid, "peer": peer })
            }
        };
        answer.to_string()
    }
}

impl Board {
    /// Locks the board, even if a thread panicked while it held the lock. Each update is one
    /// assignment, so none is half made.
    fn locked(&self) -> MutexGuard<'_, Shared> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn answer(&self, request: &Request) -> String {
        let (refresh, before) = {
            let shared = self.locked();
            (shared.refresh.clone(), shared.told_count)
        };
        if let (Request::Status, Some(refresh)) = (request, refresh) {
            refresh();
            let is_old = |shared: &mut Shared| shared.told_count == before;
            // Late figures are shown at the next request.
            drop(self.1.wait_timeout_while(self.locked(), FIGURES_TIMEOUT, is_old));
        }
        self.locked().answer(request)
    }
}

impl fmt::Debug for StatusBoard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StatusBoard").field("status", &self.shared.locked().status).finish_non_exhaustive()
    }
}
