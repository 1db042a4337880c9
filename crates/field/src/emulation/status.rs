//! Reads a gateway's status from its socket.

use crate::error::{About as _, Result};
use byway_gateway::report::GatewayReport;
use std::io::Read as _;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Duration;

/// The longest wait for a gateway's answer to a status request.
const STATUS_TIMEOUT: Duration = Duration::from_secs(2);

/// Asks the gateway whose status socket is `socket` for a report.
pub(super) fn ask(socket: &Path) -> Result<GatewayReport> {
    let mut stream = UnixStream::connect(socket).about(|| socket.display().to_string())?;
    stream.set_read_timeout(Some(STATUS_TIMEOUT))?;
    let mut text = String::new();
    stream.read_to_string(&mut text)?;
    Ok(serde_json::from_str(&text)?)
}
