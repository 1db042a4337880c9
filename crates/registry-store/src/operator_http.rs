//! What a registry shows its operator over HTTP, on loopback: metrics for Prometheus, whether the
//! registry is alive and ready, and its relays as JSON. Nothing can be changed. No metric's label
//! holds a grant, an address or a name.

use crate::registry_process::{RelayView, View};
use axum::extract::{Request, State};
use axum::http::StatusCode;
use axum::http::header::{CONTENT_TYPE, HOST};
use axum::middleware::{Next, from_fn};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use axum::{Json, Router};
use byway_registry::message::Reason;
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::encoding::text::encode;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry as Metrics;
use serde::Serialize;
use std::collections::VecDeque;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpListener};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{Builder, JoinHandle};
use std::time::Duration;
use tokio::sync::oneshot;
use tokio::task::AbortHandle;

/// The longest time for a request after its head has arrived.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(10);
/// How long a request's head may take, also the first of a connection.
const HEAD_TIMEOUT: Duration = Duration::from_secs(5);
/// The most connections at once. One more closes the oldest, which is idle: a request takes
/// milliseconds.
const MAX_CONNECTIONS: usize = 64;
/// How long to wait where the system has no descriptor for a connection.
const ACCEPT_RETRY_DELAY: Duration = Duration::from_millis(100);

/// The HTTP service for the operator. It ends when this value is dropped.
pub struct Page {
    address: SocketAddr,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Page {
    /// Serves what `view` shows.
    ///
    /// # Errors
    /// The address is no loopback address or is taken; the system gives no thread.
    pub fn serve(address: SocketAddr, view: Arc<Mutex<View>>) -> io::Result<Self> {
        if !address.ip().is_loopback() {
            let sentence = "operators' pages are served on loopback alone, such as 127.0.0.1:4751";
            return Err(io::Error::new(io::ErrorKind::InvalidInput, sentence));
        }
        let listener = TcpListener::bind(address)?;
        listener.set_nonblocking(true)?;
        let address = listener.local_addr()?;
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let (stop, stopped) = oneshot::channel::<()>();
        let run = move || {
            runtime.block_on(async {
                let Ok(listener) = tokio::net::TcpListener::from_std(listener) else { return };
                tokio::select! {
                    () = serve(listener, router(view)) => {}
                    _ = stopped => {}
                }
            });
        };
        let thread = Builder::new().name("byway page".into()).spawn(run)?;
        Ok(Self { address, stop: Some(stop), thread: Some(thread) })
    }

    /// The address that the server listens on.
    #[must_use]
    pub const fn address(&self) -> SocketAddr {
        self.address
    }
}

impl Drop for Page {
    fn drop(&mut self) {
        if let Some(stop) = self.stop.take() {
            let _ = stop.send(());
        }
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// Accepts connections, and serves each in its own task.
async fn serve(listener: tokio::net::TcpListener, router: Router) {
    let mut connections: VecDeque<AbortHandle> = VecDeque::new();
    loop {
        let Ok((stream, _)) = listener.accept().await else {
            tokio::time::sleep(ACCEPT_RETRY_DELAY).await;
            continue;
        };
        let service = TowerToHyperService::new(router.clone());
        let mut http = http1::Builder::new();
        http.timer(TokioTimer::new()).header_read_timeout(HEAD_TIMEOUT);
        let connection = http.serve_connection(TokioIo::new(stream), service);
        // A client that breaks off is nobody's trouble.
        let task = tokio::spawn(async { drop(connection.await) });
        connections.retain(|connection| !connection.is_finished());
        if connections.len() >= MAX_CONNECTIONS
            && let Some(oldest) = connections.pop_front()
        {
            oldest.abort();
        }
        connections.push_back(task.abort_handle());
    }
}

type Shared = Arc<Mutex<View>>;

fn router(view: Shared) -> Router {
    Router::new()
        .route("/metrics", get(metrics))
        .route("/healthz", get(|| async { "ok\n" }))
        .route("/readyz", get(ready))
        .route("/v1/relays", get(relays))
        .layer(from_fn(local))
        .with_state(view)
}

/// A page of the Internet that a browser of this host shows must not read this one by a name that
/// leads here.
async fn local(request: Request, next: Next) -> Response {
    if !names_this_host(&request) {
        return StatusCode::MISDIRECTED_REQUEST.into_response();
    }
    let answered = tokio::time::timeout(REQUEST_TIMEOUT, next.run(request)).await;
    answered.unwrap_or_else(|_| StatusCode::REQUEST_TIMEOUT.into_response())
}

/// Whether the request's target and all its `Host` fields name this host.
fn names_this_host(request: &Request) -> bool {
    let hosts = request.headers().get_all(HOST).iter().map(|host| host.to_str().unwrap_or_default());
    let mut named = hosts.chain(request.uri().host()).peekable();
    named.peek().is_some() && named.all(is_this_host)
}

/// Whether a request's `Host` (RFC 9110, section 7.2) is a loopback address or `localhost`, with or
/// without a port.
fn is_this_host(host: &str) -> bool {
    let name = match host.rsplit_once(':') {
        Some((name, port)) if port.parse::<u16>().is_ok() => name,
        _ => host,
    };
    let address: Option<IpAddr> = match name.strip_prefix('[').and_then(|name| name.strip_suffix(']')) {
        Some(inner) => inner.parse::<Ipv6Addr>().ok().map(IpAddr::V6),
        None => name.parse::<Ipv4Addr>().ok().map(IpAddr::V4),
    };
    name.eq_ignore_ascii_case("localhost") || address.is_some_and(|it| it.to_canonical().is_loopback())
}

fn look(view: &Shared) -> View {
    view.lock().unwrap_or_else(PoisonError::into_inner).clone()
}

async fn ready(State(view): State<Shared>) -> Response {
    let answers = view.lock().unwrap_or_else(PoisonError::into_inner).store_answers;
    match answers {
        true => "ready\n".into_response(),
        false => (StatusCode::SERVICE_UNAVAILABLE, "the store does not answer\n").into_response(),
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Why {
    reason: &'static str,
}

async fn metrics(State(view): State<Shared>) -> Response {
    match text_of(&look(&view)) {
        Some(text) => {
            let kind = "application/openmetrics-text; version=1.0.0; charset=utf-8";
            ([(CONTENT_TYPE, kind)], text).into_response()
        }
        None => StatusCode::INTERNAL_SERVER_ERROR.into_response(),
    }
}

/// All metrics, in the text format of Prometheus.
fn text_of(view: &View) -> Option<String> {
    let mut metrics = Metrics::with_prefix("byway_registry");
    let counters = &view.counters;
    let counts = [
        ("heartbeats", "Heartbeats answered", counters.beats),
        ("heartbeats_unknown", "Heartbeats of relays that are not enrolled", counters.beats_unknown),
        ("heartbeats_forged", "Heartbeats that were not made with the relay's key", counters.beats_forged),
        ("heartbeats_replayed", "Heartbeats that came before", counters.beats_replayed),
        ("enrolments", "Enrolments and changes answered", counters.enrolled),
        ("questions", "Questions answered", counters.questions),
        ("grants", "Grants in the answers", counters.grants),
        ("complaints", "Complaints about relays", counters.complaints),
        ("tests", "Addresses of relays that were tested", counters.tests),
        ("tests_failed", "Tests that a relay did not pass", counters.tests_failed),
        ("sessions_overdue", "Sessions that took too long", counters.overdue),
        ("sessions_dismissed", "Sessions that had to make room for others", counters.dismissed),
        ("store_gone", "Times that the store did not do what it was asked", counters.store_gone),
        ("malformed", "Datagrams that are none of byway's", counters.malformed),
    ];
    for (name, help, count) in counts {
        let counter: Counter = Counter::default();
        counter.inc_by(count);
        metrics.register(name, help, counter);
    }
    let refused = Family::<Why, Counter>::default();
    for reason in Reason::ALL {
        refused.get_or_create(&Why { reason: reason.name() }).inc_by(counters.refused(reason));
    }
    metrics.register("refused", "Requests refused", refused);
    let listed = view.relays.iter().filter(|relay| relay.listed).count();
    let gauges = [
        ("relays", "Relays that are enrolled", view.relays.len()),
        ("relays_listed", "Relays that are listed", listed),
        ("epoch", "The epoch of grants", usize::try_from(view.epoch).unwrap_or(usize::MAX)),
    ];
    for (name, help, value) in gauges {
        let gauge: Gauge = Gauge::default();
        gauge.set(i64::try_from(value).unwrap_or(i64::MAX));
        metrics.register(name, help, gauge);
    }
    let mut text = String::new();
    encode(&mut text, &metrics).ok()?;
    Some(text)
}

/// A relay, as shown in JSON.
#[derive(Clone, Debug, Serialize)]
struct Relay {
    /// The relay's name.
    relay: String,
    /// The name of the relay's operator.
    operator: String,
    /// The relay's region, as its operator named it.
    region: String,
    /// The addresses and ports of the relay.
    addresses: Vec<String>,
    /// The transports over which the relay forwards, as the registry tested them: `udp`, `tcp`.
    carriers: Vec<&'static str>,
    /// Seconds since the relay's last heartbeat. `None`: there was none since the registry started.
    seen_seconds_ago: Option<u64>,
    /// Bytes per second that the relay forwards.
    load: u64,
    /// Whether the registry lists the relay for senders.
    listed: bool,
}

impl From<&RelayView> for Relay {
    fn from(shown: &RelayView) -> Self {
        Self {
            relay: shown.relay.to_string(),
            operator: shown.operator.clone(),
            region: shown.region.clone(),
            addresses: shown.addresses.iter().map(ToString::to_string).collect(),
            carriers: shown.carriers.to_vec(),
            seen_seconds_ago: shown.seen,
            load: shown.load,
            listed: shown.listed,
        }
    }
}

/// All relays that are enrolled.
async fn relays(State(view): State<Shared>) -> Json<Vec<Relay>> {
    Json(look(&view).relays.iter().map(Relay::from).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use byway_wire::heartbeat::RelayId;
    use std::io::{Read as _, Write as _};
    use std::net::TcpStream;

    fn shown() -> RelayView {
        RelayView {
            relay: RelayId([0xab; 16]),
            operator: "Somebody".into(),
            region: "eu".into(),
            addresses: vec!["192.0.2.7:4748".parse().unwrap()],
            carriers: &["udp"],
            seen: Some(3),
            load: 5,
            listed: true,
        }
    }

    fn fetch(page: &Page, path: &str, host: &str) -> String {
        let mut stream = TcpStream::connect(page.address()).unwrap();
        write!(stream, "GET {path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n").unwrap();
        let mut text = String::new();
        stream.read_to_string(&mut text).unwrap();
        text
    }

    fn page() -> Page {
        Page::serve("127.0.0.1:0".parse().unwrap(), Arc::default()).unwrap()
    }

    #[test]
    fn a_name_that_only_looks_like_this_host_is_not_answered() {
        let page = page();
        for host in ["localhost", "LocalHost:80", "127.0.0.1", "127.9.0.1:4751", "[::1]", "[::1]:80"] {
            assert!(fetch(&page, "/healthz", host).starts_with("HTTP/1.1 200"), "{host}");
        }
        for host in [
            "127.evil.example",
            "127.evil.example:4751",
            "127.",
            "127.0.0.1.nip.io",
            "localhost.evil.example",
            "[::1].evil.example",
            "evil.example",
            "127.0.0.1:80:80",
            "192.0.2.1",
            "0.0.0.0",
            "::1",
            "",
        ] {
            assert!(fetch(&page, "/v1/relays", host).starts_with("HTTP/1.1 421"), "{host}");
        }
    }

    /// A proxy on this host may read another of two `Host` lines than this page.
    #[test]
    fn a_request_that_names_another_host_anywhere_is_not_answered() {
        let page = page();
        let answer = |head: &str| {
            let mut stream = TcpStream::connect(page.address()).unwrap();
            write!(stream, "{head}\r\nConnection: close\r\n\r\n").unwrap();
            let mut text = String::new();
            stream.read_to_string(&mut text).unwrap();
            text.split(' ').nth(1).unwrap_or_default().to_owned()
        };
        let ask = |host: &str| answer(&format!("GET /healthz HTTP/1.1\r\nHost: {host}"));
        for host in [
            "localhost@evil.example",
            "127.0.0.1@evil.example",
            "localhost.",
            "127.0.0.1.",
            "127.1",
            "2130706433",
            "0x7f000001",
            "0177.0.0.1",
            "[::1",
            "[::1]evil.example",
            "[::ffff:192.0.2.1]",
            "[fe80::1%25lo]",
            "localhost:80:80",
            "localhost:99999",
            "localhost,evil.example",
            "xn--lclhost-2fg",
        ] {
            assert!(["400", "421"].contains(&&*ask(host)), "{host}");
        }
        for (head, allowed) in [
            ("GET /healthz HTTP/1.1\r\nHost: localhost\r\nHost: localhost", "200"),
            ("GET /healthz HTTP/1.1\r\nHost: localhost\r\nHost: evil.example", "421"),
            ("GET /healthz HTTP/1.1\r\nHost: evil.example\r\nHost: localhost", "421"),
            ("GET http://evil.example/healthz HTTP/1.1\r\nHost: localhost", "421"),
            ("GET http://localhost/healthz HTTP/1.1\r\nHost: localhost", "200"),
            ("GET /healthz HTTP/1.0\r\nAccept: */*", "421"),
        ] {
            assert_eq!(answer(head), allowed, "{head}");
        }
        assert_eq!(ask("[::ffff:127.0.0.1]:80"), "200");
    }

    #[test]
    fn connections_that_ask_nothing_are_closed_and_keep_nobody_out() {
        let page = page();
        let mut idle: Vec<TcpStream> =
            (0..3 * MAX_CONNECTIONS).map(|_| TcpStream::connect(page.address()).unwrap()).collect();
        assert!(fetch(&page, "/readyz", "localhost").starts_with("HTTP/1.1 503"));
        // The oldest had to go, and the last ones have their time.
        let mut half = idle.pop().unwrap();
        half.write_all(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nX-Slow: ").unwrap();
        for mut stream in [idle.swap_remove(0), half, idle.pop().unwrap()] {
            stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
            let mut text = String::new();
            let ended = stream.read_to_string(&mut text);
            assert!(ended.is_ok_and(|_| text.is_empty() || text.starts_with("HTTP/1.1 408")), "{text}");
        }
    }

    #[test]
    fn what_is_shown_and_what_is_not() {
        let view =
            Arc::new(Mutex::new(View { relays: vec![shown()], store_answers: true, ..View::default() }));
        let page = Page::serve("127.0.0.1:0".parse().unwrap(), Arc::clone(&view)).unwrap();
        let metrics = fetch(&page, "/metrics", "localhost");
        assert!(
            metrics.starts_with("HTTP/1.1 200") && metrics.contains("byway_registry_relays_listed 1"),
            "{metrics}"
        );
        for secret in ["192.0.2.7", "Somebody", "abab"] {
            assert!(!metrics.contains(secret), "{metrics}");
        }
        assert!(fetch(&page, "/healthz", "127.0.0.1:80").starts_with("HTTP/1.1 200"));
        assert!(fetch(&page, "/readyz", "localhost").starts_with("HTTP/1.1 200"));
        view.lock().unwrap().store_answers = false;
        assert!(fetch(&page, "/readyz", "localhost").starts_with("HTTP/1.1 503"));
        let relays = fetch(&page, "/v1/relays", "[::1]:80");
        assert!(
            relays.contains("\"operator\":\"Somebody\"") && relays.contains("192.0.2.7:4748"),
            "{relays}"
        );
        assert!(fetch(&page, "/v1/relays", "evil.example").starts_with("HTTP/1.1 421"));
        assert!(Page::serve("192.0.2.1:80".parse().unwrap(), view).is_err());
    }
}
