//! Asks every process of this host.

use super::request::Request;
use super::runtime_directory::RuntimeDirectory;
use super::status_socket::SOCKET_SUFFIX;
use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType, connect, socket_with};
use std::fs;
use std::io::{self, Read as _, Write as _};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::{Duration, Instant};

/// Bytes of the longest answer.
const MAX_ANSWER_BYTES: usize = 4 << 20;

/// What a process answered.
#[derive(Clone, Debug, PartialEq)]
pub struct Answer {
    /// The name of its socket, without the ending: `send-4711`.
    pub name: String,
    /// What it says.
    pub reply: Result<serde_json::Value, NoAnswer>,
}

/// Why there is no answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NoAnswer {
    /// The process did not answer in time: it is stopped, or very busy.
    Late,
    /// What it answered is no JSON, or too long.
    Garbled,
}

/// Asks every process with a socket in `directories`, and waits for `patience` at most in all.
/// Sockets that nobody listens on are removed. The answers are sorted by the sockets' names.
#[must_use]
pub fn ask_all(directories: &[RuntimeDirectory], request: &Request, patience: Duration) -> Vec<Answer> {
    let deadline = Instant::now() + patience;
    let line = serde_json::to_string(request).unwrap_or_default() + "\n";
    let mut asked = Vec::new();
    for entry in directories.iter().flat_map(|it| fs::read_dir(it.path())).flatten().flatten() {
        let path = entry.path();
        let file = entry.file_name();
        let Some(name) = file.to_str().and_then(|name| name.strip_suffix(SOCKET_SUFFIX)) else { continue };
        let stream = match ask(&path, &line) {
            Ok(stream) => Some(stream),
            Err(Errno::CONNREFUSED) => {
                let _ = fs::remove_file(&path);
                continue;
            }
            // It is busy with many others.
            Err(Errno::AGAIN | Errno::PIPE) => None,
            // It is gone, or another user's.
            Err(_) => continue,
        };
        asked.push((name.to_owned(), stream));
    }
    let read = |stream: Option<UnixStream>| stream.map_or(Err(NoAnswer::Late), |it| read(it, deadline));
    let mut answers: Vec<Answer> =
        asked.into_iter().map(|(name, stream)| Answer { name, reply: read(stream) }).collect();
    answers.sort_by(|a, b| a.name.cmp(&b.name));
    answers
}

/// Connects without waiting, and asks. A request fits into the socket's buffer.
fn ask(path: &Path, line: &str) -> Result<UnixStream, Errno> {
    let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
    let socket = socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None)?;
    connect(&socket, &SocketAddrUnix::new(path)?)?;
    let mut stream = UnixStream::from(socket);
    stream.write_all(line.as_bytes()).map_err(|_| Errno::PIPE)?;
    stream.set_nonblocking(false).map_err(|_| Errno::PIPE)?;
    Ok(stream)
}

fn read(mut stream: UnixStream, deadline: Instant) -> Result<serde_json::Value, NoAnswer> {
    let mut text = Vec::new();
    let mut buffer = [0; 16 << 10];
    loop {
        // A timeout of zero would be none.
        let left = deadline.saturating_duration_since(Instant::now()).max(Duration::from_millis(1));
        let count = stream.set_read_timeout(Some(left)).and_then(|()| stream.read(&mut buffer));
        match count {
            Ok(0) => break,
            Ok(count) => text.extend_from_slice(buffer.get(..count).unwrap_or_default()),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(_) => return Err(NoAnswer::Late),
        }
        if text.len() > MAX_ANSWER_BYTES {
            return Err(NoAnswer::Garbled);
        }
    }
    serde_json::from_slice(&text).map_err(|_| NoAnswer::Garbled)
}
