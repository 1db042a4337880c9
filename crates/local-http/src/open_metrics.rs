//! Figures as Prometheus reads them: the text format of OpenMetrics 1.0. The registry of a scrape
//! is made for it, from counters that the program keeps anyway.

use axum::http::StatusCode;
use axum::http::header::CONTENT_TYPE;
use axum::response::{IntoResponse as _, Response};
use prometheus_client::encoding::text::encode;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry as Metrics;

/// The media type of OpenMetrics 1.0.
const OPEN_METRICS_TYPE: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// Adds a counter that has reached `count`. The text format adds `_total` to its name.
pub fn add_counter(metrics: &mut Metrics, name: &str, help: &str, count: u64) {
    let counter: Counter = Counter::default();
    counter.inc_by(count);
    metrics.register(name, help, counter);
}

/// Adds a gauge with the value `value`.
pub fn add_gauge(metrics: &mut Metrics, name: &str, help: &str, value: u64) {
    let gauge: Gauge = Gauge::default();
    gauge.set(i64::try_from(value).unwrap_or(i64::MAX));
    metrics.register(name, help, gauge);
}

/// The answer to who asked for metrics.
#[must_use]
pub fn response(metrics: &Metrics) -> Response {
    let mut text = String::new();
    match encode(&mut text, metrics) {
        Ok(()) => ([(CONTENT_TYPE, OPEN_METRICS_TYPE)], text).into_response(),
        Err(_) => StatusCode::INTERNAL_SERVER_ERROR.into_response(),
    }
}
