//! The replies of the page's server: the files of the page, frames as they come, and figures of the
//! past. It answers only GET, and only requests with the session's cookie.

use crate::feed::Feed;
use crate::messages::{NO_SESSION, NOT_FOUND, READ_ONLY, USED_TOKEN, Words};
use crate::overview::Overview;
use crate::past_transfers::KeptPast;
use crate::sampler::locked;
use crate::visitor::Visitors;
use axum::extract::{Path, Request, State};
use axum::http::header::{CONTENT_TYPE, LOCATION, SET_COOKIE};
use axum::http::{HeaderName, HeaderValue, Method, StatusCode};
use axum::middleware::{Next, from_fn_with_state};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use axum::{Json, Router};
use byway_transfer::host_status::{History, HistoryEntry};
use serde::Serialize;
use serde_json::json;
use std::sync::{Arc, Mutex};

/// The page's files: name, type, content.
pub const PAGE_FILES: [(&str, &str, &str); 6] = [
    ("", "text/html; charset=utf-8", include_str!("../assets/index.html")),
    ("view.css", "text/css; charset=utf-8", include_str!("../assets/view.css")),
    ("view.js", "text/javascript; charset=utf-8", include_str!("../assets/view.js")),
    ("figures.js", "text/javascript; charset=utf-8", include_str!("../assets/figures.js")),
    ("pictures.js", "text/javascript; charset=utf-8", include_str!("../assets/pictures.js")),
    ("icon.svg", "image/svg+xml", include_str!("../assets/icon.svg")),
];

/// Header fields of every reply, besides the server's. The page loads nothing from other sites.
const HEADER_FIELDS: [(&str, &str); 2] = [
    (
        "content-security-policy",
        "default-src 'self'; object-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    ),
    ("cross-origin-opener-policy", "same-origin"),
];

/// The sources of replies.
pub struct Shown {
    pub visitors: Arc<Visitors>,
    pub feed: Arc<Feed>,
    pub overview: Arc<Mutex<Overview>>,
    pub history: History,
    pub past: KeptPast,
    pub has_failed: fn(&HistoryEntry) -> bool,
    pub words: Words,
    /// The host's name, for the title.
    pub host: String,
}

/// All that is answered.
pub fn router(shown: Arc<Shown>) -> Router {
    let at = |name: &str| format!("/{}/{name}", shown.visitors.folder());
    let mut router = Router::new()
        .route(&at("words.json"), get(words))
        .route(&at("events"), get(events))
        .route(&at("transfers/{id}"), get(transfer))
        .route(&at("uplinks/{name}"), get(uplink))
        .route(&at("history.json"), get(history));
    for (name, kind, content) in PAGE_FILES {
        router = router.route(&at(name), get(move || async move { ([(CONTENT_TYPE, kind)], content) }));
    }
    router
        .fallback(|| async { (StatusCode::NOT_FOUND, NOT_FOUND) })
        .layer(from_fn_with_state(Arc::clone(&shown), guard))
        .with_state(shown)
}

/// Refuses requests that are not allowed, and adds the header fields.
async fn guard(State(shown): State<Arc<Shown>>, request: Request, next: Next) -> Response {
    let mut response = match refusal(&shown, &request) {
        Some(refusal) => refusal,
        None => next.run(request).await,
    };
    for (name, value) in HEADER_FIELDS {
        response.headers_mut().insert(HeaderName::from_static(name), HeaderValue::from_static(value));
    }
    response
}

/// The answer to a request that goes no further.
fn refusal(shown: &Shown, request: &Request) -> Option<Response> {
    let visitors = &shown.visitors;
    if request.method() != Method::GET {
        return Some((StatusCode::METHOD_NOT_ALLOWED, [("allow", "GET")], READ_ONLY).into_response());
    }
    let refused = |sentence: &'static str| Some((StatusCode::FORBIDDEN, sentence).into_response());
    let token = request.uri().query().and_then(|query| query.strip_prefix("token="));
    if let Some(token) = token.filter(|_| request.uri().path() == "/") {
        if !visitors.admit(token) {
            return refused(USED_TOKEN);
        }
        let fields = [(SET_COOKIE, visitors.cookie()), (LOCATION, format!("/{}/", visitors.folder()))];
        return Some((StatusCode::SEE_OTHER, fields).into_response());
    }
    if visitors.knows(request.headers()) { None } else { refused(NO_SESSION) }
}

async fn words(State(shown): State<Arc<Shown>>) -> Response {
    Json(json!({ "host": shown.host, "reasons": shown.words.table() })).into_response()
}

async fn events(State(shown): State<Arc<Shown>>) -> Response {
    ([(CONTENT_TYPE, "text/event-stream")], Feed::open(&shown.feed)).into_response()
}

/// Figures of ten minutes, and the second in which the last of them was measured.
#[derive(Serialize)]
struct Past<T> {
    second: u64,
    #[serde(flatten)]
    figures: T,
}

fn past<T: Serialize>(shown: &Shown, figures: impl FnOnce(&Overview) -> Option<T>) -> Response {
    let overview = locked(&shown.overview);
    let found = figures(&overview).map(|figures| Past { second: overview.second(), figures });
    drop(overview);
    found.map_or_else(
        || (StatusCode::NOT_FOUND, NOT_FOUND).into_response(),
        |found| Json(found).into_response(),
    )
}

async fn transfer(State(shown): State<Arc<Shown>>, Path(id): Path<u32>) -> Response {
    past(&shown, |overview| overview.transfer_past(id))
}

async fn uplink(State(shown): State<Arc<Shown>>, Path(name): Path<String>) -> Response {
    past(&shown, |overview| overview.uplink_past(&name))
}

async fn history(State(shown): State<Arc<Shown>>) -> Response {
    match shown.past.text(shown.history.clone(), shown.has_failed).await {
        Some(text) => ([(CONTENT_TYPE, "application/json")], text).into_response(),
        None => StatusCode::INTERNAL_SERVER_ERROR.into_response(),
    }
}
