//! A relay's pages for its operator over HTTP, on a loopback address: metrics for Prometheus, and
//! whether the relay is alive. Nothing can be changed. A word's label is the name that the operator
//! gave it. No label holds a grant or an address.

use axum::Router;
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::{IntoResponse as _, Response};
use axum::routing::get;
use byway_local_http::open_metrics::{add_counter, add_gauge, response};
use byway_local_http::{LocalServer, ServeError, ServerLimits};
use byway_relay::Dropped;
use byway_transfer::{CountersReader, RelayReport};
use byway_wire::relay::Reason;
use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::registry::Registry as Metrics;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::sync::Mutex;

/// Time that the relay may take for its counters. After it, the relay counts as dead.
const REPORT_TIMEOUT: Duration = Duration::from_secs(2);
/// Time for which a report is shown again, so that frequent requests cost the relay little.
const REPORT_LIFETIME: Duration = Duration::from_millis(100);

/// Serves `/metrics` and `/healthz` on a loopback address. Who asks gets counters of the relay as
/// of 100 ms before at most.
///
/// # Errors
/// The address is no loopback address or is taken; the system gives no thread.
pub fn serve(address: SocketAddr, reader: CountersReader) -> Result<LocalServer, ServeError> {
    let router = Router::new()
        .route("/metrics", get(metrics))
        .route("/healthz", get(health))
        .with_state(Reports { reader, last: Arc::default() });
    LocalServer::serve(address, router, ServerLimits::default())
}

/// When a report was made, and the report.
type DatedReport = (Instant, Arc<RelayReport>);

/// The reports of the relay, one at a time.
#[derive(Clone)]
struct Reports {
    reader: CountersReader,
    /// The last report. `None`: there is none yet.
    last: Arc<Mutex<Option<DatedReport>>>,
}

impl Reports {
    /// A report. `None`: the relay does not answer. The lock goes to the thread that waits for the
    /// relay. So one thread waits at a time, however many clients ask and break off.
    async fn next(&self) -> Option<Arc<RelayReport>> {
        let mut last = Arc::clone(&self.last).lock_owned().await;
        if let Some((at, report)) = &*last
            && at.elapsed() < REPORT_LIFETIME
        {
            return Some(Arc::clone(report));
        }
        let reader = self.reader.clone();
        let ask = move || {
            let report = Arc::new(reader.report(REPORT_TIMEOUT)?);
            *last = Some((Instant::now(), Arc::clone(&report)));
            Some(report)
        };
        tokio::task::spawn_blocking(ask).await.ok().flatten()
    }
}

/// The answer if the relay gives none.
fn dead() -> Response {
    (StatusCode::SERVICE_UNAVAILABLE, "the relay does not answer\n").into_response()
}

async fn health(State(reports): State<Reports>) -> Response {
    reports.next().await.map_or_else(dead, |_| "ok\n".into_response())
}

async fn metrics(State(reports): State<Reports>) -> Response {
    reports.next().await.map_or_else(dead, |report| response(&metrics_of(&report)))
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ReasonLabel {
    reason: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct WordLabel {
    word: String,
}

fn metrics_of(report: &RelayReport) -> Metrics {
    let mut metrics = Metrics::with_prefix("byway_relay");
    let (summary, counters) = (&report.summary, &report.summary.counters);
    for (name, help, count) in [
        ("received_packets", "Datagrams that arrived", counters.received_packets),
        ("received_bytes", "Bytes that arrived", counters.received_bytes),
        ("forwarded_packets", "Datagrams from senders to receivers", counters.forwarded_packets),
        ("forwarded_bytes", "Bytes from senders to receivers", counters.forwarded_bytes),
        ("returned_packets", "Datagrams from receivers back to senders", counters.returned_packets),
        ("returned_bytes", "Bytes from receivers back to senders", counters.returned_bytes),
        ("greetings", "Greetings answered", counters.greeted),
        ("locations", "Questions for a receiver answered with its location", counters.located),
        ("mailbox_requests", "Requests about mailboxes answered", counters.mailed),
        ("notices", "Notices sent to senders whose datagrams were dropped", counters.notices),
        ("send_errors", "Sends that the system refused", counters.send_errors),
        ("evicted_accounts", "Accounts that had to make room for others", counters.evicted),
        ("heartbeats", "Heartbeats sent to registries", counters.beats),
        ("heartbeat_answers", "Heartbeats that registries answered", counters.answers),
        ("unsaved_counts", "Times that the counts could not be written to the disk", summary.not_kept),
    ] {
        add_counter(&mut metrics, name, help, count);
    }
    for (name, help, value) in [
        ("today_bytes", "Bytes carried on this day (UTC), over restarts", summary.used.today),
        ("month_bytes", "Bytes carried in this month (UTC), over restarts", summary.used.this_month),
        ("load_bytes_per_second", "Bytes per second that the relay carries", summary.load.rate),
        ("grants", "Grants in use within half a minute", u64::from(summary.load.grants)),
        ("tcp_connections", "Open TCP connections", summary.connections as u64),
        ("remembered_receivers", "Receivers whose addresses are remembered", summary.receivers as u64),
    ] {
        add_gauge(&mut metrics, name, help, value);
    }
    let dropped = Family::<ReasonLabel, Counter>::default();
    for why in Dropped::all() {
        let label = ReasonLabel { reason: reason_label(why) };
        dropped.get_or_create(&label).inc_by(counters.dropped(why));
    }
    metrics.register("dropped_packets", "Datagrams dropped", dropped);
    // At most `MAX_NAMED_WORDS` labels, each of at most 64 letters.
    let carried = Family::<WordLabel, Counter>::default();
    for word in report.words.iter().filter(|word| !word.is_revoked) {
        let label = WordLabel { word: word.name.to_string() };
        carried.get_or_create(&label).inc_by(word.carried_bytes);
    }
    let help = "Bytes carried for a word that has a name and is not revoked, over restarts";
    metrics.register("word_bytes", help, carried);
    metrics
}

/// The label of a reason why a datagram was dropped.
const fn reason_label(why: Dropped) -> &'static str {
    match why {
        Dropped::Malformed => "malformed",
        Dropped::BadReturn => "bad_return",
        Dropped::UnknownAccount => "unknown_account",
        Dropped::Greeting => "too_many_greetings",
        Dropped::QueueFull => "queue_full",
        Dropped::Yielded => "yielded",
        Dropped::NotKept => "count_not_saved",
        Dropped::BadAnswer => "bad_heartbeat_answer",
        Dropped::Refused(reason) => match reason {
            Reason::UnknownWord => "unknown_word",
            Reason::Expired => "word_expired",
            Reason::OverQuota => "over_word_quota",
            Reason::OverRate => "over_word_rate",
            Reason::NoConsent => "no_consent",
            Reason::ConsentExpired => "consent_expired",
            Reason::Destination => "destination_not_allowed",
            Reason::Clock => "clock_too_far_off",
            Reason::Scope => "use_not_permitted",
            Reason::Wider => "wider_than_its_word",
            Reason::Busy => "too_many_accounts",
            Reason::Unreachable => "no_socket_of_address_family",
            Reason::UnknownRange => "unknown_range",
            Reason::EpochOver => "epoch_over",
            Reason::RelayQuota => "over_relay_quota",
            Reason::Draining => "draining",
            Reason::StaleCookie => "stale_cookie",
            Reason::NoReceiver => "no_receiver",
            Reason::Revoked => "word_revoked",
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use byway_relay::Policy;
    use byway_transfer::WordUse;
    use byway_transfer::state_directory::StateDir;
    use byway_transfer::{Relaying, RelayingPlan, sockets};
    use std::collections::BTreeSet;
    use std::io::{Read as _, Write as _};
    use std::net::TcpStream;

    fn relay() -> Relaying {
        let place = tempfile::tempdir().unwrap();
        let state = StateDir::locate(Some(place.path()), |_| None).unwrap();
        let sockets = sockets::serving(&["127.0.0.1:0".parse().unwrap()], 0).unwrap();
        let plan = RelayingPlan {
            key: state.relay_key(None).unwrap(),
            policy: Policy::public(),
            addresses: sockets.iter().map(|socket| socket.address()).collect(),
            sockets,
            listeners: Vec::new(),
            tcp_congestion: byway_net::TcpCongestion::Cubic,
            tcp_buffer: None,
            expires: Duration::from_secs(3_600),
            rate: None,
            quota: None,
            per_day: None,
            per_month: None,
            accounts: None,
            words: None,
            keep: None,
            registries: Vec::new(),
            lend: None,
        };
        Relaying::start(plan).unwrap()
    }

    fn fetch(server: &LocalServer, path: &str) -> String {
        let mut stream = TcpStream::connect(server.address()).unwrap();
        write!(stream, "GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n").unwrap();
        let mut text = String::new();
        stream.read_to_string(&mut text).unwrap();
        text
    }

    #[test]
    fn a_relay_that_ended_is_not_said_to_live() {
        let relay = relay();
        let server = serve("127.0.0.1:0".parse().unwrap(), relay.counters_reader()).unwrap();
        assert!(fetch(&server, "/healthz").ends_with("ok\n"));
        let metrics = fetch(&server, "/metrics");
        assert!(metrics.contains("\nbyway_relay_forwarded_bytes_total 0\n"), "{metrics}");
        relay.stop().unwrap();
        for path in ["/healthz", "/metrics"] {
            let answer = loop {
                let answer = fetch(&server, path);
                if !answer.starts_with("HTTP/1.1 200") {
                    break answer;
                }
            };
            assert!(answer.starts_with("HTTP/1.1 503"), "{answer}");
        }
    }

    #[test]
    fn each_reason_has_a_label_of_its_own() {
        let labels: BTreeSet<_> = Dropped::all().map(reason_label).collect();
        assert_eq!(labels.len(), Dropped::COUNT);
        let is_plain = |label: &str| label.bytes().all(|it| it.is_ascii_lowercase() || it == b'_');
        assert!(labels.iter().all(|label| is_plain(label)), "{labels:?}");
    }

    #[test]
    fn words_are_shown_by_name_and_revoked_ones_are_not() {
        let word = |name: &str, carried_bytes, is_revoked| WordUse {
            name: name.parse().unwrap(),
            carried_bytes,
            is_revoked,
        };
        let words = vec![word("alice", 7, false), word("alice.old", 9, true), word("bob", 0, false)];
        let report = RelayReport { words, ..RelayReport::default() };
        let mut text = String::new();
        prometheus_client::encoding::text::encode(&mut text, &metrics_of(&report)).unwrap();
        let shown: Vec<&str> =
            text.lines().filter(|line| line.starts_with("byway_relay_word_bytes")).collect();
        assert_eq!(shown.len(), 2, "{text}");
        assert!(shown.contains(&"byway_relay_word_bytes_total{word=\"alice\"} 7"), "{text}");
        assert!(text.contains("\nbyway_relay_dropped_packets_total{reason=\"queue_full\"} 0\n"), "{text}");
    }
}
