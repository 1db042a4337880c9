//! What a gateway answers at its socket, as far as a run needs it: the JSON of `byway gateway status`.

use crate::error::{About as _, Result};
use serde::Deserialize;
use std::collections::BTreeMap;
use std::io::Read as _;
use std::net::SocketAddr;
use std::os::unix::net::UnixStream;
use std::path;
use std::time::Duration;

/// A status is asked for and answered within this time.
const PATIENCE: Duration = Duration::from_secs(2);

/// A gateway.
#[derive(Clone, Debug, PartialEq, Deserialize)]
pub(super) struct Status {
    pub(super) peers: Vec<Peer>,
    pub(super) counters: BTreeMap<String, u64>,
    /// Share of packets that waited less than 20 ms to be put in order.
    pub(super) waited_under_20ms: f64,
    /// Share for which something before them never came.
    pub(super) waited_in_vain: f64,
    /// Seconds after they were sent until packets were held for lost, of the newest.
    #[serde(default)]
    pub(super) found_after: Vec<f64>,
}

/// Another gateway.
#[derive(Clone, Debug, PartialEq, Deserialize)]
pub(super) struct Peer {
    pub(super) up: bool,
    pub(super) paths: Vec<Path>,
    #[serde(default)]
    pub(super) bundles: Vec<Bundle>,
    /// Packets dropped since too many waited.
    pub(super) dropped: u64,
    /// The hosts that it serves.
    pub(super) serves: Vec<String>,
}

/// A flow's own bundle of paths.
#[derive(Clone, Debug, PartialEq, Deserialize)]
pub(super) struct Bundle {
    /// Address and port that the flow was opened to.
    to: String,
    pub(super) paths: Vec<Path>,
}

/// A path to a gateway.
#[derive(Clone, Debug, PartialEq, Deserialize)]
pub(super) struct Path {
    /// Where it leads: an address, and whether that is a relay's.
    pub(super) route: String,
    pub(super) state: String,
    /// Bytes.
    pub(super) window: u64,
    /// Seconds.
    pub(super) srtt: f64,
    pub(super) sent_bytes: u64,
    /// Packets.
    pub(super) lost: u64,
}

impl Bundle {
    /// Whether its flow was opened to this port.
    pub(super) fn is_to(&self, port: u16) -> bool {
        self.to.parse().is_ok_and(|to: SocketAddr| to.port() == port)
    }
}

/// Asks the gateway that answers at `socket` what it is doing.
pub(super) fn ask(socket: &path::Path) -> Result<Status> {
    let mut stream = UnixStream::connect(socket).about(|| socket.display().to_string())?;
    stream.set_read_timeout(Some(PATIENCE))?;
    let mut text = String::new();
    stream.read_to_string(&mut text)?;
    Ok(serde_json::from_str(&text)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_run_does_not_need_is_passed_over() {
        let path = r#"{"path":3,"route":"10.66.0.2:4749 (relay)","state":"active","window":9000,"in_flight":1,"srtt":0.02,"sent_bytes":7,"lost":1}"#;
        let text = format!(
            r#"{{"uptime":1.5,"peers":[{{"name":"b","up":true,"paths":[{path}],"dropped":2,"serves":["10.0.0.0/8"],
                "bundles":[{{"from":"10.66.0.1:4000","to":"10.66.0.9:5201","paths":[{path}]}}]}}],
                "counters":{{"delivered":10}},"waited_under_20ms":0.9,"waited_in_vain":0.0}}"#
        );
        let status: Status = serde_json::from_str(&text).unwrap();
        let peer = &status.peers[0];
        assert!(peer.up && peer.bundles[0].is_to(5201) && !peer.bundles[0].is_to(4000));
        assert_eq!((peer.paths[0].window, status.counters["delivered"]), (9000, 10));
        assert!(status.found_after.is_empty());
    }
}
