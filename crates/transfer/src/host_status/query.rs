//! Asks every process of this host.

use super::request::Request;
use super::runtime_directory::{OpenDirectory, RuntimeDirectory, SOCKET_SUFFIX};
use rustix::fs::{AtFlags, Dir, FileType, Mode, OFlags, fstat, openat, unlinkat};
use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType, connect, socket_with};
use std::io::{self, Read as _, Write as _};
use std::os::fd::AsRawFd as _;
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

/// Bytes of the longest answer.
const MAX_ANSWER_BYTES: usize = 4 << 20;
/// Processes that are asked at once.
const MAX_PROCESSES: usize = 512;

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
    /// What it answered is no object of JSON, or too long.
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
    answers
}

/// As [`ask_all`], for those who read an answer themselves. `take` gets the name of each socket,
/// and what came from it: 4 MiB at most, and perhaps no JSON. One answer is held at a time.
pub fn ask_each(
    directories: &[RuntimeDirectory],
    request: &Request,
    patience: Duration,
    mut take: impl FnMut(&str, Result<&[u8], NoAnswer>),
) {
    let deadline = Instant::now() + patience;
    let line = serde_json::to_string(request).unwrap_or_default() + "\n";
    let mut asked = Vec::new();
    for directory in directories.iter().filter_map(|directory| directory.open().ok()) {
        for name in names(&directory) {
            if asked.len() == MAX_PROCESSES {
                break;
            }
            match ask(&directory, &name, &line) {
                Ok(stream) => asked.push((name, Some(stream))),
                // It is busy with many others.
                Err(Errno::AGAIN | Errno::PIPE) => asked.push((name, None)),
                // It is gone, or no socket.
                Err(_) => {}
            }
        }
    }
    asked.sort_by(|(a, _), (b, _)| a.cmp(b));
    let mut text = Vec::new();
    for (name, stream) in asked {
        text.clear();
        let read = stream.map_or(Err(NoAnswer::Late), |stream| read(stream, deadline, &mut text));
        take(&name, read.map(|()| &*text));
    }
}

/// The names of what may be sockets, without the ending.
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
    stream.set_nonblocking(false).map_err(|_| Errno::PIPE)?;
    Ok(stream)
}

/// Reads an answer to its end.
fn read(mut stream: UnixStream, deadline: Instant, text: &mut Vec<u8>) -> Result<(), NoAnswer> {
    let mut buffer = [0; 16 << 10];
    loop {
        let left = deadline.saturating_duration_since(Instant::now());
        let is_over = left.is_zero();
        // What has come by the deadline is read, and nothing is waited for.
        let waits = match is_over {
            true => stream.set_nonblocking(true),
            false => stream.set_read_timeout(Some(left)),
        };
        match waits.and_then(|()| stream.read(&mut buffer)) {
            Ok(0) => break,
            Ok(count) => text.extend_from_slice(buffer.get(..count).unwrap_or_default()),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(_) => return Err(NoAnswer::Late),
        }
        if text.len() > MAX_ANSWER_BYTES || is_over && text.last() != Some(&b'\n') {
            return Err(if is_over { NoAnswer::Late } else { NoAnswer::Garbled });
        }
        if is_over {
            break;
        }
    }
    Ok(())
}
