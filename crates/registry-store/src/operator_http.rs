//! A registry's pages for its operator over HTTP, on loopback: metrics for Prometheus, whether the
//! registry is alive and ready, and its relays as JSON. Nothing can be changed. No metric's label
//! holds a grant, an address or a name.

use crate::registry_process::{RelayView, View};
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use axum::{Json, Router};
use byway_local_http::open_metrics::{add_counter, add_gauge, response};
use byway_local_http::{LocalServer, ServeError, ServerLimits};
use byway_registry::message::Reason;
use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::registry::Registry as Metrics;
use serde::Serialize;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};

/// Serves the contents of `view`, on a loopback address.
///
/// # Errors
/// The address is no loopback address or is taken; the system gives no thread.
pub fn serve(address: SocketAddr, view: Arc<Mutex<View>>) -> Result<LocalServer, ServeError> {
    LocalServer::serve(address, router(view), ServerLimits::default())
}

type Shared = Arc<Mutex<View>>;

fn router(view: Shared) -> Router {
    Router::new()
        .route("/metrics", get(metrics))
        .route("/healthz", get(|| async { "ok\n" }))
        .route("/readyz", get(ready))
        .route("/v1/relays", get(relays))
        .with_state(view)
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
    let view = look(&view);
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
        add_counter(&mut metrics, name, help, count);
    }
    let refused = Family::<Why, Counter>::default();
    for reason in Reason::ALL {
        refused.get_or_create(&Why { reason: reason.name() }).inc_by(counters.refused(reason));
    }
    metrics.register("refused", "Requests refused", refused);
    let listed = view.relays.iter().filter(|relay| relay.listed).count();
    let gauges = [
        ("relays", "Relays that are enrolled", view.relays.len() as u64),
        ("relays_listed", "Relays that are listed", listed as u64),
        ("epoch", "The epoch of grants", u64::from(view.epoch)),
    ];
    for (name, help, value) in gauges {
        add_gauge(&mut metrics, name, help, value);
    }
    response(&metrics)
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

    fn fetch(page: &LocalServer, path: &str, host: &str) -> String {
        let mut stream = TcpStream::connect(page.address()).unwrap();
        write!(stream, "GET {path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n").unwrap();
        let mut text = String::new();
        stream.read_to_string(&mut text).unwrap();
        text
    }

    #[test]
    fn what_is_shown_and_what_is_not() {
        let view =
            Arc::new(Mutex::new(View { relays: vec![shown()], store_answers: true, ..View::default() }));
        let page = serve("127.0.0.1:0".parse().unwrap(), Arc::clone(&view)).unwrap();
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
        assert!(serve("192.0.2.1:80".parse().unwrap(), view).is_err());
    }
}
