//! Where a gateway is asked what it is doing, and who asks there.

use byway_gateway::report::GatewayReport;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use std::io::{self, ErrorKind, Read as _, Write as _};
use std::os::unix::fs::FileTypeExt as _;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use thiserror::Error;

/// The longest wait for a status request and its answer.
const STATUS_TIMEOUT: Duration = Duration::from_secs(2);
/// The pause after a request that could not be accepted.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// Why a gateway cannot answer at a path.
#[derive(Debug, Error)]
pub enum StatusSocketError {
    /// The socket cannot be made.
    #[error("cannot listen at {}", socket.display())]
    Listen {
        /// The socket's path.
        socket: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// The system cannot examine the file at the path.
    #[error("cannot find out what {} is", socket.display())]
    NotExamined {
        /// The socket's path.
        socket: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// A dead gateway's socket stays.
    #[error("cannot remove the socket of an earlier gateway, {}", socket.display())]
    NotRemoved {
        /// The socket's path.
        socket: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// The path holds something else.
    #[error("{} exists and is not a socket: choose another path with `status`", .0.display())]
    NoSocket(PathBuf),
    /// The path is in use.
    #[error("another gateway answers at {}: choose another path with `status`", .0.display())]
    OtherGateway(PathBuf),
}

/// A socket of the file system for status requests, for root and the gateway's own user. It is
/// removed when this value is dropped.
pub struct StatusSocket {
    listener: UnixListener,
    path: PathBuf,
    begun: Instant,
}

impl StatusSocket {
    /// Listens at `path`, in place of a dead gateway.
    ///
    /// # Errors
    /// The path is in use, or holds something else than a socket; or the system refuses it.
    pub fn open(path: PathBuf) -> Result<Self, StatusSocketError> {
        clear(&path)?;
        let listening =
            UnixListener::bind(&path).and_then(|listener| listener.set_nonblocking(true).map(|()| listener));
        match listening {
            Ok(listener) => Ok(Self { listener, path, begun: Instant::now() }),
            Err(source) => Err(StatusSocketError::Listen { socket: path, source }),
        }
    }

    /// Time since the socket was opened.
    #[must_use]
    pub fn uptime(&self) -> Duration {
        self.begun.elapsed()
    }

    /// Waits for a status request, but at most for `limit`.
    pub fn wait(&self, limit: Duration) {
        let limit = Timespec::try_from(limit).ok();
        // Whatever cuts the wait short, a look too many does no harm.
        let _ = poll(&mut [PollFd::new(&self.listener, PollFlags::IN)], limit.as_ref());
    }

    /// Answers all waiting requests, each with a `report` of its own.
    pub fn answer(&self, report: impl Fn() -> GatewayReport) {
        loop {
            let mut stream = match self.listener.accept() {
                Ok((stream, _)) => stream,
                Err(error) if error.kind() == ErrorKind::WouldBlock => return,
                // Too few descriptors, say: whoever asks is still there at the next look.
                Err(_) => return std::thread::sleep(ACCEPT_PAUSE),
            };
            // Who does not read is not waited for.
            let _ = stream.set_nonblocking(false);
            let _ = stream.set_write_timeout(Some(STATUS_TIMEOUT));
            let line = serde_json::to_string(&report());
            debug_assert!(line.is_ok(), "a report is made of strings and numbers: {line:?}");
            let _ = stream.write_all(line.unwrap_or_default().as_bytes());
        }
    }
}

impl Drop for StatusSocket {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.path);
    }
}

/// Removes the socket of a dead gateway at `path`. An error: the path holds anything else.
fn clear(path: &Path) -> Result<(), StatusSocketError> {
    let socket = path.to_owned();
    match std::fs::symlink_metadata(path) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(()),
        Err(source) => return Err(StatusSocketError::NotExamined { socket, source }),
        Ok(found) if !found.file_type().is_socket() => return Err(StatusSocketError::NoSocket(socket)),
        Ok(_) => {}
    }
    if UnixStream::connect(path).is_ok() {
        return Err(StatusSocketError::OtherGateway(socket));
    }
    std::fs::remove_file(path).map_err(|source| StatusSocketError::NotRemoved { socket, source })
}

/// Asks the gateway at `socket` for its status.
///
/// # Errors
/// Nobody answers there, or not as a gateway does.
pub fn ask(socket: &Path) -> io::Result<GatewayReport> {
    let mut stream = UnixStream::connect(socket)?;
    stream.set_read_timeout(Some(STATUS_TIMEOUT))?;
    let mut text = String::new();
    stream.read_to_string(&mut text)?;
    Ok(serde_json::from_str(&text)?)
}
