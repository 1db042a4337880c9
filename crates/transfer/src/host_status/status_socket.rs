//! The socket on which a process reports its state.

use super::request::Request;
use super::runtime_directory::{RuntimeDirectory, SOCKET_SUFFIX};
use rustix::fs::{CWD, RenameFlags, renameat_with};
use rustix::io::Errno;
use std::fs::{self, Permissions};
use std::io::{self, ErrorKind, Read, Write as _};
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

/// Bytes of the longest request.
const MAX_REQUEST_BYTES: u64 = 4_096;
/// Time in which a request must arrive and its reply must be read. Other queries wait meanwhile.
const CLIENT_TIMEOUT: Duration = Duration::from_millis(200);
/// The pause after a connection could not be accepted, as for want of file descriptors.
const ACCEPT_PAUSE: Duration = Duration::from_secs(1);
/// Processes with one verb and one number, of several PID namespaces.
const MAX_NAMESAKES: u32 = 64;

/// A listening socket `VERB-PID.socket` with mode 0600. Its thread sleeps until a query comes. When
/// this value is dropped, the thread ends and the socket is removed.
#[derive(Debug)]
pub struct StatusSocket {
    path: PathBuf,
    is_over: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl StatusSocket {
    /// Opens the socket of this process, which runs `verb`. `respond` turns a request into a line.
    ///
    /// # Errors
    /// The directory is no safe place, or the socket cannot be made.
    pub fn open(
        directory: &RuntimeDirectory,
        verb: &str,
        respond: impl Fn(&Request) -> String + Send + 'static,
    ) -> io::Result<Self> {
        directory.create()?;
        let name = format!("{verb}-{}", std::process::id());
        let draft = directory.path().join(format!("{name}.draft"));
        match fs::remove_file(&draft) {
            Err(error) if error.kind() != ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        let listener = UnixListener::bind(&draft)?;
        fs::set_permissions(&draft, Permissions::from_mode(0o600))?;
        // It listens before it is found.
        let path = placed(directory.path(), &name, &draft)?;
        let is_over = Arc::new(AtomicBool::new(false));
        let ending = Arc::clone(&is_over);
        let serving = thread::Builder::new().name("status".into());
        let thread = serving.spawn(move || serve(&listener, &ending, &respond))?;
        Ok(Self { path, is_over, thread: Some(thread) })
    }

    /// The socket's path.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for StatusSocket {
    fn drop(&mut self) {
        self.is_over.store(true, Ordering::Release);
        let wakes = UnixStream::connect(&self.path).is_ok();
        let _ = fs::remove_file(&self.path);
        // Without a way to wake it, the thread ends with the process.
        if let (true, Some(thread)) = (wakes, self.thread.take()) {
            let _ = thread.join();
        }
    }
}

fn serve(listener: &UnixListener, is_over: &AtomicBool, respond: &impl Fn(&Request) -> String) {
    while !is_over.load(Ordering::Acquire) {
        match listener.accept() {
            // One that asks nothing sensible is hung up on.
            Ok((client, _)) => drop(answer(client, respond)),
            Err(_) => thread::sleep(ACCEPT_PAUSE),
        }
    }
}

fn answer(mut client: UnixStream, respond: &impl Fn(&Request) -> String) -> io::Result<()> {
    client.set_write_timeout(Some(CLIENT_TIMEOUT))?;
    let line = read_line(&mut client, Instant::now() + CLIENT_TIMEOUT)?;
    let reply = match serde_json::from_slice(&line) {
        Ok(request) => respond(&request),
        Err(error) => serde_json::json!({ "error": error.to_string() }).to_string(),
    };
    client.write_all(format!("{reply}\n").as_bytes())
}

/// The first line that a client sends, at most `MAX_REQUEST_BYTES` long.
fn read_line(client: &mut UnixStream, deadline: Instant) -> io::Result<Vec<u8>> {
    let mut line = Vec::new();
    let mut buffer = [0; 512];
    loop {
        let left = deadline.saturating_duration_since(Instant::now());
        if left.is_zero() || line.len() as u64 > MAX_REQUEST_BYTES {
            return Err(ErrorKind::InvalidData.into());
        }
        client.set_read_timeout(Some(left))?;
        let count = client.read(&mut buffer)?;
        let piece = buffer.get(..count).unwrap_or_default();
        if let Some(end) = piece.iter().position(|byte| *byte == b'\n') {
            line.extend_from_slice(piece.get(..end).unwrap_or_default());
            return Ok(line);
        }
        if count == 0 {
            return Err(ErrorKind::UnexpectedEof.into());
        }
        line.extend_from_slice(piece);
    }
}

/// Renames a socket to its final name. A number is added if the name is taken, by a process of
/// another PID namespace or a killed process with the same PID.
fn placed(directory: &Path, name: &str, draft: &Path) -> io::Result<PathBuf> {
    for number in 1..=MAX_NAMESAKES {
        let further = if number > 1 { format!("-{number}") } else { String::new() };
        let path = directory.join(format!("{name}{further}{SOCKET_SUFFIX}"));
        match renameat_with(CWD, draft, CWD, &path, RenameFlags::NOREPLACE) {
            Ok(()) => return Ok(path),
            Err(Errno::EXIST) => {}
            Err(errno) => return Err(errno.into()),
        }
    }
    Err(ErrorKind::AlreadyExists.into())
}
