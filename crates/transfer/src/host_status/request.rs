//! The requests to a process's status socket.

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
    /// The status of the process.
    Status,
    /// New bandwidth limits from now on.
    Limit {
        /// The peer to which the limits apply. `None`: every peer.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        peer: Option<String>,
        /// The most bytes per second that the process sends. `None`: no limit.
        #[serde(deserialize_with = "Option::deserialize")]
        up: Option<u64>,
        /// The most bytes per second that the process receives. `None`: no limit.
        #[serde(deserialize_with = "Option::deserialize")]
        down: Option<u64>,
        /// Milliseconds since 1970 after which the request is void, because its sender no longer
        /// waits.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        void_after: Option<u64>,
    },
    /// A return to the limits, or the timetable, with which the process was started.
    OwnLimit {
        /// The peer to which the limits apply. `None`: every peer.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        peer: Option<String>,
        /// Milliseconds since 1970 after which the request is void.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        void_after: Option<u64>,
    },
}
