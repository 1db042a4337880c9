//! The server: connections, their limits, and the thread that serves them.

use crate::request_checks::{protect, refusal};
use axum::Router;
use axum::extract::{Request, State};
use axum::http::StatusCode;
use axum::middleware::{Next, from_fn_with_state};
use axum::response::{IntoResponse as _, Response};
use hyper::server::conn::http1;
use hyper::service::{Service as _, service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use socket2::SockRef;
use std::collections::VecDeque;
use std::convert::Infallible;
use std::io;
use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{Builder, JoinHandle};
use std::time::Duration;
use thiserror::Error;
use tokio::net::TcpStream;
use tokio::sync::oneshot;
use tokio::task::AbortHandle;

/// The pause after the system had no descriptor for a connection.
const ACCEPT_RETRY_DELAY: Duration = Duration::from_millis(100);
/// Bytes that a connection holds of a request's head, and of an answer that was not sent yet.
const CONNECTION_BUFFER_BYTES: usize = 64 << 10;
/// Time that the end of a server waits for its router's work on other threads.
const STOP_TIMEOUT: Duration = Duration::from_secs(1);

/// The limits of a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ServerLimits {
    /// Connections at once, at least 1. One more closes the oldest of those on which no request
    /// succeeded, else the oldest of all, whatever that is doing. So answers that never end keep
    /// nobody out, and strangers end no answer.
    pub max_connections: usize,
    /// Time that a request's head may take, also the first of a connection.
    pub head_timeout: Duration,
    /// Time that the router may take until it returns a response, whose body may take longer. After
    /// it, the client gets 503.
    pub answer_timeout: Duration,
    /// Time for which a client may read none of the waiting data. After it, its connection is
    /// closed.
    pub stall_timeout: Duration,
}

impl Default for ServerLimits {
    fn default() -> Self {
        Self {
            max_connections: 64,
            head_timeout: Duration::from_secs(5),
            answer_timeout: Duration::from_secs(10),
            stall_timeout: Duration::from_secs(30),
        }
    }
}

/// Why a server does not start.
#[derive(Debug, Error)]
pub enum ServeError {
    /// Other hosts may reach the address.
    #[error("cannot serve HTTP at {0}: give a loopback address, such as 127.0.0.1")]
    NotLoopback(SocketAddr),
    /// The address is taken, or this user may not use it, or the system has no thread.
    #[error("cannot serve HTTP at {address}")]
    Io {
        /// The address.
        address: SocketAddr,
        /// The system's error.
        source: io::Error,
    },
}

/// A server that runs. It ends when this value is dropped, with all its connections.
#[derive(Debug)]
pub struct LocalServer {
    address: SocketAddr,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl LocalServer {
    /// Serves `router` at a loopback address, on a thread of its own. With port 0 the system
    /// chooses the port. Handlers run on that thread, so none may block it.
    ///
    /// # Errors
    /// The address is no loopback address or is taken; the system gives no thread.
    pub fn serve(address: SocketAddr, router: Router, limits: ServerLimits) -> Result<Self, ServeError> {
        if !address.ip().is_loopback() {
            return Err(ServeError::NotLoopback(address));
        }
        Self::start(address, router, limits).map_err(|source| ServeError::Io { address, source })
    }

    fn start(address: SocketAddr, router: Router, limits: ServerLimits) -> io::Result<Self> {
        let listener = TcpListener::bind(address)?;
        listener.set_nonblocking(true)?;
        let address = listener.local_addr()?;
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let (stop, stopped) = oneshot::channel::<()>();
        let router = router.layer(from_fn_with_state(limits.answer_timeout, guard));
        let run = move || {
            runtime.block_on(async {
                let Ok(listener) = tokio::net::TcpListener::from_std(listener) else { return };
                tokio::select! {
                    () = accept(listener, router, limits) => {}
                    _ = stopped => {}
                }
            });
            runtime.shutdown_timeout(STOP_TIMEOUT);
        };
        let thread = Builder::new().name("local http".into()).spawn(run)?;
        Ok(Self { address, stop: Some(stop), thread: Some(thread) })
    }

    /// The address that the server listens on.
    #[must_use]
    pub const fn address(&self) -> SocketAddr {
        self.address
    }
}

impl Drop for LocalServer {
    fn drop(&mut self) {
        if let Some(stop) = self.stop.take() {
            let _ = stop.send(());
        }
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// A connection under way.
struct Accepted {
    task: AbortHandle,
    /// Whether a request on the connection succeeded.
    has_succeeded: Arc<AtomicBool>,
}

/// Accepts connections, and serves each in its own task.
async fn accept(listener: tokio::net::TcpListener, router: Router, limits: ServerLimits) {
    let mut connections: VecDeque<Accepted> = VecDeque::new();
    loop {
        let Ok((stream, peer)) = listener.accept().await else {
            tokio::time::sleep(ACCEPT_RETRY_DELAY).await;
            continue;
        };
        // A host may be set up to route packets of its network to loopback addresses.
        if !peer.ip().is_loopback() || prepare(&stream, limits.stall_timeout).is_err() {
            continue;
        }
        let has_succeeded = Arc::new(AtomicBool::new(false));
        let (service, noted) = (TowerToHyperService::new(router.clone()), Arc::clone(&has_succeeded));
        let service = service_fn(move |request| {
            let (answer, noted) = (service.call(request), Arc::clone(&noted));
            async move {
                let answer = answer.await?;
                noted.fetch_or(answer.status().is_success(), Ordering::Relaxed);
                Ok::<_, Infallible>(answer)
            }
        });
        let mut http = http1::Builder::new();
        http.timer(TokioTimer::new()).header_read_timeout(limits.head_timeout);
        http.max_buf_size(CONNECTION_BUFFER_BYTES);
        let connection = http.serve_connection(TokioIo::new(stream), service);
        // A client that breaks off is nobody's trouble.
        let task = tokio::spawn(async { drop(connection.await) });
        connections.retain(|connection| !connection.task.is_finished());
        while connections.len() >= limits.max_connections.max(1) {
            let stranger = connections.iter().position(|it| !it.has_succeeded.load(Ordering::Relaxed));
            let Some(oldest) = connections.remove(stranger.unwrap_or(0)) else { break };
            oldest.task.abort();
        }
        connections.push_back(Accepted { task: task.abort_handle(), has_succeeded });
    }
}

/// Disables Nagle's delay, so that an event is sent at once. If the client's window stays closed,
/// the kernel closes the connection after `stall_timeout` (RFC 5482 calls it user timeout).
fn prepare(stream: &TcpStream, stall_timeout: Duration) -> io::Result<()> {
    stream.set_nodelay(true)?;
    SockRef::from(stream).set_tcp_user_timeout(Some(stall_timeout))
}

/// Refuses requests of other sites' pages, and limits the time until there is a response.
async fn guard(State(answer_timeout): State<Duration>, request: Request, next: Next) -> Response {
    let mut response = match refusal(&request) {
        Some(refused) => refused.into_response(),
        None => {
            let answered = tokio::time::timeout(answer_timeout, next.run(request)).await;
            answered.unwrap_or_else(|_| StatusCode::SERVICE_UNAVAILABLE.into_response())
        }
    };
    protect(response.headers_mut());
    response
}

#[cfg(test)]
mod tests {
    use super::*;
    use axum::body::Body;
    use axum::routing::get;
    use hyper::body::{Bytes, Frame};
    use std::convert::Infallible;
    use std::io::{Read as _, Write as _};
    use std::pin::Pin;
    use std::sync::Arc;
    use std::sync::mpsc::{RecvTimeoutError, SyncSender, sync_channel};
    use std::task::{Context, Poll, ready};
    use std::time::Instant;

    /// A generous time limit for steps that take little time.
    const TEST_TIMEOUT: Duration = Duration::from_secs(60);

    /// A body that gives a piece at each tick, and ends after `left` pieces.
    struct Ticks {
        interval: tokio::time::Interval,
        left: usize,
        piece: Bytes,
        /// A channel whose other end closes when the body is dropped.
        _alive: Option<Arc<SyncSender<()>>>,
    }

    fn ticks(period: Duration, left: usize, piece: Bytes, alive: Option<Arc<SyncSender<()>>>) -> Body {
        Body::new(Ticks { interval: tokio::time::interval(period), left, piece, _alive: alive })
    }

    impl hyper::body::Body for Ticks {
        type Data = Bytes;
        type Error = Infallible;

        fn poll_frame(
            mut self: Pin<&mut Self>,
            context: &mut Context<'_>,
        ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
            let Some(left) = self.left.checked_sub(1) else { return Poll::Ready(None) };
            ready!(self.interval.poll_tick(context));
            self.left = left;
            Poll::Ready(Some(Ok(Frame::data(self.piece.clone()))))
        }
    }

    fn serve(router: Router, limits: ServerLimits) -> LocalServer {
        let router = router.route("/healthz", get(|| async { "ok\n" }));
        LocalServer::serve("127.0.0.1:0".parse().unwrap(), router, limits).unwrap()
    }

    /// Opens a connection, and sends a request on it.
    fn ask(server: &LocalServer, head: &str) -> std::net::TcpStream {
        let mut stream = std::net::TcpStream::connect(server.address()).unwrap();
        stream.set_read_timeout(Some(TEST_TIMEOUT)).unwrap();
        write!(stream, "{head}\r\nConnection: close\r\n\r\n").unwrap();
        stream
    }

    fn answer(server: &LocalServer, head: &str) -> String {
        let mut text = String::new();
        ask(server, head).read_to_string(&mut text).unwrap();
        text
    }

    fn fetch(server: &LocalServer, path: &str) -> String {
        answer(server, &format!("GET {path} HTTP/1.1\r\nHost: localhost"))
    }

    #[test]
    fn other_hosts_and_other_sites_are_refused_for_every_path() {
        let server = serve(Router::new(), ServerLimits::default());
        for (head, status) in [
            ("GET /healthz HTTP/1.1\r\nHost: localhost", "200"),
            ("GET /healthz HTTP/1.1\r\nHost: 127.evil.example", "421"),
            ("GET /nothing HTTP/1.1\r\nHost: 127.evil.example", "421"),
            ("GET http://evil.example/healthz HTTP/1.1\r\nHost: localhost", "421"),
            ("GET http://localhost/healthz HTTP/1.1\r\nHost: localhost", "200"),
            ("GET /healthz HTTP/1.0\r\nAccept: */*", "421"),
            ("GET /healthz HTTP/1.1\r\nHost: localhost\r\nSec-Fetch-Site: cross-site", "403"),
            ("OPTIONS /healthz HTTP/1.1\r\nHost: localhost\r\nOrigin: http://evil.example", "403"),
            ("POST /healthz HTTP/1.1\r\nHost: localhost", "405"),
            ("GET /nothing HTTP/1.1\r\nHost: localhost", "404"),
        ] {
            let text = answer(&server, head);
            assert_eq!(text.split(' ').nth(1), Some(status), "{head}");
            assert!(text.contains("\r\ncross-origin-resource-policy: same-origin\r\n"), "{text}");
        }
        for hostile in ["\0\r\n", "GET", "GET /healthz HTTP/1.1\r\nHost: local\u{0}host", "\u{16}\u{3}\u{1}"]
        {
            let text = answer(&server, hostile);
            assert!(text.is_empty() || text.starts_with("HTTP/1.1 400"), "{hostile:?}: {text}");
        }
        let long = format!("GET /{} HTTP/1.1\r\nHost: localhost", "a".repeat(2 * CONNECTION_BUFFER_BYTES));
        let mut stream = std::net::TcpStream::connect(server.address()).unwrap();
        // The server may close before it has read all.
        let _ = stream.write_all(long.as_bytes());
        let mut head = [0; 12];
        assert!(stream.read_exact(&mut head).is_err() || head.starts_with(b"HTTP/1.1 4"));
    }

    #[test]
    fn an_address_that_is_taken_is_named() {
        let server = serve(Router::new(), ServerLimits::default());
        let again = LocalServer::serve(server.address(), Router::new(), ServerLimits::default());
        let sentence = format!("cannot serve HTTP at {}", server.address());
        assert_eq!(again.unwrap_err().to_string(), sentence);
    }

    #[test]
    fn no_address_but_a_loopback_one_is_served() {
        for address in ["192.0.2.1:80", "0.0.0.0:0", "[::]:0", "[::ffff:127.0.0.1]:0"] {
            let served = LocalServer::serve(address.parse().unwrap(), Router::new(), ServerLimits::default());
            assert!(matches!(served, Err(ServeError::NotLoopback(_))), "{address}");
        }
    }

    #[test]
    fn connections_that_ask_nothing_are_closed_and_keep_nobody_out() {
        let limits = ServerLimits { head_timeout: Duration::from_millis(500), ..ServerLimits::default() };
        let server = serve(Router::new(), limits);
        let connect = || std::net::TcpStream::connect(server.address()).unwrap();
        let mut idle: Vec<_> = (0..3 * limits.max_connections).map(|_| connect()).collect();
        assert!(fetch(&server, "/healthz").starts_with("HTTP/1.1 200"));
        // The oldest had to go, and the last ones have their time.
        let mut half = idle.pop().unwrap();
        half.write_all(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nX-Slow: ").unwrap();
        for mut stream in [idle.swap_remove(0), half, idle.pop().unwrap()] {
            stream.set_read_timeout(Some(TEST_TIMEOUT)).unwrap();
            let mut text = String::new();
            let ended = stream.read_to_string(&mut text);
            assert!(ended.is_ok_and(|_| text.is_empty() || text.starts_with("HTTP/1.1 408")), "{text}");
        }
    }

    #[test]
    fn an_answer_that_lasts_is_not_cut_and_one_that_never_begins_is() {
        let limits = ServerLimits { answer_timeout: Duration::from_millis(200), ..ServerLimits::default() };
        let period = Duration::from_millis(50);
        let router = Router::new()
            .route("/lasts", get(move || async move { ticks(period, 12, "piece\n".into(), None) }))
            .route("/never", get(std::future::pending::<()>));
        let server = serve(router, limits);
        let begun = Instant::now();
        let text = fetch(&server, "/lasts");
        assert!(text.matches("piece\n").count() == 12 && begun.elapsed() > limits.answer_timeout, "{text}");
        assert!(fetch(&server, "/never").starts_with("HTTP/1.1 503"));
    }

    #[test]
    fn streams_beyond_the_limit_close_the_oldest_and_keep_nobody_out() {
        let limits = ServerLimits { max_connections: 16, ..ServerLimits::default() };
        let stream = || async { ticks(Duration::from_millis(20), usize::MAX, "tick\n".into(), None) };
        let server = serve(Router::new().route("/events", get(stream)), limits);
        let mut streams: Vec<_> = (0..200)
            .map(|_| {
                let mut stream = ask(&server, "GET /events HTTP/1.1\r\nHost: localhost");
                let mut begin = [0; 15];
                stream.read_exact(&mut begin).unwrap();
                assert_eq!(begin, *b"HTTP/1.1 200 OK");
                stream
            })
            .collect();
        for _ in 0..8 {
            assert!(fetch(&server, "/healthz").starts_with("HTTP/1.1 200"));
        }
        let (last, begun) = (streams.len() - 1, Instant::now());
        let mut more = [0; 512];
        streams[last].read_exact(&mut more).unwrap();
        for stream in &mut streams[..last + 1 - limits.max_connections] {
            while stream.read(&mut more).is_ok_and(|count| count > 0) {
                assert!(begun.elapsed() < TEST_TIMEOUT);
            }
        }
    }

    #[test]
    fn strangers_end_no_answer() {
        let limits = ServerLimits { max_connections: 16, ..ServerLimits::default() };
        let stream = || async { ticks(Duration::from_millis(20), usize::MAX, "tick\n".into(), None) };
        let server = serve(Router::new().route("/events", get(stream)), limits);
        let mut stream = ask(&server, "GET /events HTTP/1.1\r\nHost: localhost");
        stream.read_exact(&mut [0; 15]).unwrap();
        let strangers: Vec<_> = (0..100)
            .map(|number| {
                if number % 2 == 0 {
                    return std::net::TcpStream::connect(server.address()).unwrap();
                }
                let mut refused = std::net::TcpStream::connect(server.address()).unwrap();
                // Another of them may have taken its place by now.
                let _ = refused.write_all(b"GET /events HTTP/1.1\r\nHost: evil.example\r\n\r\n");
                refused
            })
            .collect();
        assert!(fetch(&server, "/healthz").starts_with("HTTP/1.1 200"));
        stream.read_exact(&mut [0; 4_096]).unwrap();
        drop(strangers);
    }

    #[test]
    fn who_does_not_read_loses_the_connection() {
        let limits = ServerLimits { stall_timeout: Duration::from_millis(300), ..ServerLimits::default() };
        let (alive, dropped) = sync_channel(0);
        // The handler lives as long as the server, so the body has the only sender.
        let alive = std::sync::Mutex::new(Some(Arc::new(alive)));
        let endless = move || {
            let alive = alive.lock().unwrap().take();
            let piece = Bytes::from_static(&[0; 16 << 10]);
            std::future::ready(ticks(Duration::from_millis(1), usize::MAX, piece, alive))
        };
        let endless = Arc::new(endless);
        let router = Router::new().route("/endless", get(move || endless()));
        let server = serve(router, limits);
        let _silent = ask(&server, "GET /endless HTTP/1.1\r\nHost: localhost");
        assert_eq!(dropped.recv_timeout(TEST_TIMEOUT), Err(RecvTimeoutError::Disconnected));
    }

    #[test]
    fn a_server_that_is_dropped_closes_its_streams_and_its_port() {
        let stream = || async { ticks(Duration::from_millis(20), usize::MAX, "tick\n".into(), None) };
        let server = serve(Router::new().route("/events", get(stream)), ServerLimits::default());
        let mut stream = ask(&server, "GET /events HTTP/1.1\r\nHost: localhost");
        let mut begin = [0; 15];
        stream.read_exact(&mut begin).unwrap();
        let address = server.address();
        drop(server);
        let mut rest = Vec::new();
        let _ = stream.read_to_end(&mut rest);
        assert!(std::net::TcpStream::connect(address).is_err());
    }
}
