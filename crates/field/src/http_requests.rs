//! `byway lab serve` answers the requests of an experiment, and `byway lab fetch` makes them, over
//! the kernel's TCP. Each request has its own connection. The client sends [`REQUEST_BYTES`] bytes.
//! The first eight say how many bytes the server sends back before it closes.

use crate::error::{About as _, Result};
use byway_sim::tcp::web::REQUEST_BYTES;
use rustix::net::sockopt::set_tcp_congestion;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::io::{self, BufRead as _, Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::thread;
use std::time::{Duration, Instant};

/// A request that a fetcher must make. It reads all tasks first, and begins after the line
/// [`GO_LINE`].
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct FetchTask {
    /// The errand's place in the list.
    pub(crate) index: usize,
    /// The number of the client. A client makes its requests one after the other.
    pub(crate) client: u32,
    /// Nanoseconds: after the beginning, or after the client's errand before.
    pub(crate) wait: u64,
    /// Whether the request does not wait for earlier ones (open loop).
    pub(crate) open: bool,
    /// Bytes of the answer.
    pub(crate) size: u64,
}

/// The report of a fetcher for each finished request.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct FetchResult {
    /// The errand's place in the list.
    pub(crate) index: usize,
    /// Seconds after the beginning.
    pub(crate) began: f64,
    /// Seconds until the end of the answer.
    pub(crate) took: f64,
}

/// The line after which time counts.
pub(crate) const GO_LINE: &str = "go";

/// Answers requests until the process ends. Answers use the kernel's congestion control
/// `congestion`. Prints `ready` once it accepts connections.
///
/// # Errors
/// The port is taken, or the kernel has no such controller.
pub fn serve(port: u16, congestion: &str) -> Result<()> {
    let listener = TcpListener::bind(SocketAddr::from(([0, 0, 0, 0], port)))?;
    // Connections have it from the socket that accepts them.
    set_tcp_congestion(&listener, congestion).about(|| format!("the kernel has no {congestion}"))?;
    writeln!(io::stdout(), "ready")?;
    for asker in listener.incoming().flatten() {
        thread::Builder::new().name("answer".into()).spawn(move || answer(asker))?;
    }
    Ok(())
}

/// Number of bytes that the server writes at a time, as other web servers do. A smaller write could
/// end with a packet that is not full. TCP holds such a packet back for one more ACK (Nagle's
/// algorithm), which would delay the answer.
const WRITE_LEN: usize = 64 * 1024;

/// A client that closes early ends the answer; that is not a failure of the server.
fn answer(mut asker: TcpStream) -> io::Result<()> {
    let mut request = [0; REQUEST_BYTES as usize];
    asker.read_exact(&mut request)?;
    let [a, b, c, d, e, f, g, h, ..] = request;
    let size = u64::from_be_bytes([a, b, c, d, e, f, g, h]);
    let mut answer = io::BufWriter::with_capacity(WRITE_LEN, asker);
    io::copy(&mut io::repeat(0x5a).take(size), &mut answer)?;
    answer.flush()
}

/// Makes the requests on standard input: a `FetchTask` as JSON per line, and `go` as the last line.
/// Prints each result when the answer is complete.
///
/// # Errors
/// A line is not a `FetchTask`, or the system gives no thread.
pub fn fetch(server: SocketAddr) -> Result<()> {
    let mut clients: BTreeMap<u32, Vec<FetchTask>> = BTreeMap::new();
    let mut open = Vec::new();
    for line in io::stdin().lock().lines() {
        let line = line?;
        if line == GO_LINE {
            break;
        }
        let errand: FetchTask = serde_json::from_str(&line)?;
        if errand.open { open.push(errand) } else { clients.entry(errand.client).or_default().push(errand) }
    }
    let begun = Instant::now();
    let run = move |errand: FetchTask| {
        let at = begun.elapsed();
        if ask(server, errand.size).is_ok() {
            let (began, took) = (at.as_secs_f64(), begun.elapsed().saturating_sub(at).as_secs_f64());
            let done = FetchResult { index: errand.index, began, took };
            if let Ok(line) = serde_json::to_string(&done) {
                let _ = writeln!(io::stdout(), "{line}");
            }
        }
    };
    let mut threads = Vec::new();
    for errands in clients.into_values() {
        threads.push(thread::Builder::new().name("client".into()).spawn(move || {
            for errand in errands {
                thread::sleep(Duration::from_nanos(errand.wait));
                run(errand);
            }
        })?);
    }
    open.sort_by_key(|errand| errand.wait);
    for errand in open {
        thread::sleep(Duration::from_nanos(errand.wait).saturating_sub(begun.elapsed()));
        threads.push(thread::Builder::new().name("errand".into()).spawn(move || run(errand))?);
    }
    for thread in threads {
        // One that panicked has told nothing, which is what came of it.
        let _ = thread.join();
    }
    Ok(())
}

fn ask(server: SocketAddr, size: u64) -> io::Result<()> {
    let mut stream = TcpStream::connect(server)?;
    let mut request = [0; REQUEST_BYTES as usize];
    if let Some(place) = request.get_mut(..8) {
        place.copy_from_slice(&size.to_be_bytes());
    }
    stream.write_all(&request)?;
    let came = io::copy(&mut stream.take(size), &mut io::sink())?;
    if came == size { Ok(()) } else { Err(io::ErrorKind::UnexpectedEof.into()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_answers_with_as_many_bytes_as_it_was_asked_for() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let server = listener.local_addr().unwrap();
        let serving = thread::Builder::new().spawn(move || answer(listener.accept().unwrap().0)).unwrap();
        ask(server, 200_000).unwrap();
        serving.join().unwrap().unwrap();
    }

    #[test]
    fn an_answer_that_breaks_off_is_none() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let server = listener.local_addr().unwrap();
        let serving = thread::Builder::new().spawn(move || drop(listener.accept().unwrap())).unwrap();
        assert!(ask(server, 1_000).is_err());
        serving.join().unwrap();
    }
}
