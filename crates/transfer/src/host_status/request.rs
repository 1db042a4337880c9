//! What may be asked of a process.

use serde::{Deserialize, Serialize};

/// A request to a process: one line of JSON.
///
/// ```
/// use byway_transfer::host_status::Request;
///
/// let line = r#"{"ask":"limit","peer":"nas","up":524288,"down":null}"#;
/// let request: Request = serde_json::from_str(line)?;
/// let peer = Some("nas".to_owned());
/// assert_eq!(request, Request::Limit { peer, up: Some(524_288), down: None, void_after: None });
/// # Ok::<(), serde_json::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "ask", rename_all = "snake_case", deny_unknown_fields)]
pub enum Request {
    /// What it does.
    Status,
    /// New bandwidth limits from now on.
    Limit {
        /// The peer for which they hold. `None`: for every peer.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        peer: Option<String>,
        /// Bytes per second that it sends at most. `None`: no limit.
        #[serde(deserialize_with = "Option::deserialize")]
        up: Option<u64>,
        /// Bytes per second that it receives at most. `None`: no limit.
        #[serde(deserialize_with = "Option::deserialize")]
        down: Option<u64>,
        /// Milliseconds since 1970 after which the request is void, because whoever asked has left.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        void_after: Option<u64>,
    },
    /// The limits that it was started with, and their timetable, from now on.
    OwnLimit {
        /// As in [`Request::Limit`].
        #[serde(default, skip_serializing_if = "Option::is_none")]
        peer: Option<String>,
        /// As in [`Request::Limit`].
        #[serde(default, skip_serializing_if = "Option::is_none")]
        void_after: Option<u64>,
    },
}
