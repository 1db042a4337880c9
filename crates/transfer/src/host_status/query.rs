//! Asks every process of this host.

use super::request::Request;
use super::runtime_directory::{OpenDirectory, RuntimeDirectory, SOCKET_SUFFIX};
use rustix::event::{PollFd, PollFlags, poll};
use rustix::fs::{AtFlags, Dir, FileType, Mode, OFlags, fstat, openat, unlinkat};
use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType, connect, socket_with};
use std::io::{self, Read as _, Write as _};
use std::os::fd::AsRawFd as _;
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

/// Bytes of the longest answer.
const MAX_ANSWER_BYTES: usize = 4 << 20;
/// Bytes that are held of answers that have not ended.
const MAX_HELD_BYTES: usize = 32 << 20;
/// Processes that are asked at once.
const MAX_PROCESSES: usize = 512;

/// The reply of one process.
#[derive(Clone, Debug, PartialEq)]
pub struct Answer {
    /// The name of the process's socket, without the ending: `send-4711`.
    pub name: String,
    /// The reply as JSON, or the reason why there is none.
    pub reply: Result<serde_json::Value, NoAnswer>,
}

/// Why there is no answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NoAnswer {
    /// The process did not answer in time: it is stopped, or very busy.
    Late,
    /// The reply is too long, or not a JSON object.
    Garbled,
}

/// Asks the processes with sockets in `directories`, 512 at most, and waits for `patience` at most
/// in all. Directories in which others could put something are passed over. The user's own sockets
/// that nobody listens on are removed. The answers are sorted by the sockets' names.
#[must_use]
pub fn ask_all(directories: &[RuntimeDirectory], request: &Request, patience: Duration) -> Vec<Answer> {
    let mut answers = Vec::new();
    ask_each(directories, request, patience, |name, text| {
        let object = |text: &[u8]| {
            let answer = serde_json::from_slice(text).ok().filter(serde_json::Value::is_object);
            answer.ok_or(NoAnswer::Garbled)
        };
        answers.push(Answer { name: name.to_owned(), reply: text.and_then(object) });
    });
    answers.sort_by(|a, b| a.name.cmp(&b.name));
    answers
}

/// As [`ask_all`], for those who read an answer themselves. `take` gets the name of each socket,
/// and what came from it: 4 MiB at most, and perhaps no JSON. It gets each answer when that has
/// ended. At most 32 MiB are held of those that have not.
pub fn ask_each(
    directories: &[RuntimeDirectory],
    request: &Request,
    patience: Duration,
    mut take: impl FnMut(&str, Result<&[u8], NoAnswer>),
) {
    let deadline = Instant::now() + patience;
    let line = serde_json::to_string(request).unwrap_or_default() + "\n";
    let (mut pending, mut busy) = (Vec::new(), 0);
    for directory in directories.iter().filter_map(|directory| directory.open().ok()) {
        for name in names(&directory) {
            if pending.len() + busy == MAX_PROCESSES {
                break;
            }
            match ask(&directory, &name, &line) {
                Ok(stream) => pending.push(Asked { name, stream, text: Vec::new() }),
                // It is busy with many others.
                Err(Errno::AGAIN | Errno::PIPE) => {
                    busy += 1;
                    take(&name, Err(NoAnswer::Late));
                }
                // It is gone, or no socket.
                Err(_) => {}
            }
        }
    }
    read_all(pending, deadline, &mut take);
}

/// Returns the names of possible sockets in a directory, without the ending.
fn names(directory: &OpenDirectory) -> Vec<String> {
    let entries = Dir::read_from(&directory.directory).into_iter().flatten().flatten();
    let name = |name: &str| Some(name.strip_suffix(SOCKET_SUFFIX)?.to_owned());
    entries.filter_map(|entry| name(entry.file_name().to_str().ok()?)).collect()
}

/// Connects without waiting, and asks. A request fits into the socket's buffer. A socket of this
/// user that nobody listens on is removed.
fn ask(directory: &OpenDirectory, name: &str, line: &str) -> Result<UnixStream, Errno> {
    let file = format!("{name}{SOCKET_SUFFIX}");
    // The socket itself, so that nothing can take its place before it is connected to.
    let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let found = openat(&directory.directory, &file, flags, Mode::empty())?;
    if FileType::from_raw_mode(fstat(&found)?.st_mode) != FileType::Socket {
        return Err(Errno::NOTSOCK);
    }
    let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
    let socket = socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None)?;
    let address = SocketAddrUnix::new(format!("/proc/self/fd/{}", found.as_raw_fd()))?;
    match connect(&socket, &address) {
        Err(Errno::CONNREFUSED) if directory.owner == rustix::process::geteuid().as_raw() => {
            let _ = unlinkat(&directory.directory, &file, AtFlags::empty());
            return Err(Errno::CONNREFUSED);
        }
        connected => connected?,
    }
    let mut stream = UnixStream::from(socket);
    stream.write_all(line.as_bytes()).map_err(|_| Errno::PIPE)?;
    Ok(stream)
}

/// A process to which the question was sent, and its reply so far.
struct Asked {
    name: String,
    stream: UnixStream,
    text: Vec<u8>,
}

impl Asked {
    /// Reads the bytes that have arrived. `None`: more may come. `budget`: bytes that the replies
    /// of all processes may still hold.
    fn read(&mut self, budget: &mut usize) -> Option<Result<(), NoAnswer>> {
        let mut buffer = [0; 16 << 10];
        loop {
            match self.stream.read(&mut buffer) {
                Ok(0) => return Some(Ok(())),
                Ok(count) if count > *budget || self.text.len() + count > MAX_ANSWER_BYTES => {
                    return Some(Err(NoAnswer::Garbled));
                }
                Ok(count) => {
                    *budget -= count;
                    self.text.extend_from_slice(buffer.get(..count).unwrap_or_default());
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return None,
                Err(_) => return Some(Err(NoAnswer::Late)),
            }
        }
    }
}

/// Reads all answers at once, so that one that does not come holds up no other.
fn read_all(
    mut pending: Vec<Asked>,
    deadline: Instant,
    take: &mut impl FnMut(&str, Result<&[u8], NoAnswer>),
) {
    let mut budget = MAX_HELD_BYTES;
    while !pending.is_empty() {
        let left = deadline.saturating_duration_since(Instant::now());
        let mut watched: Vec<_> = pending.iter().map(|it| PollFd::new(&it.stream, PollFlags::IN)).collect();
        // A signal ends the wait early, and then nothing is ready.
        let _ = poll(&mut watched, left.try_into().ok().as_ref());
        let ready: Vec<bool> = watched.iter().map(|it| !it.revents().is_empty()).collect();
        let mut ready = ready.into_iter();
        pending.retain_mut(|asked| {
            let read = if ready.next() == Some(true) { asked.read(&mut budget) } else { None };
            // Whoever keeps the connection has still answered if there is a line.
            let is_whole = asked.text.last() == Some(&b'\n');
            let at_end = || left.is_zero().then_some(if is_whole { Ok(()) } else { Err(NoAnswer::Late) });
            let Some(end) = read.or_else(at_end) else { return true };
            take(&asked.name, end.map(|()| &*asked.text));
            budget += asked.text.len();
            false
        });
    }
}
