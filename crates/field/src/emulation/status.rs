//! What a gateway answers at its socket.

use crate::error::{About as _, Result};
use byway_gateway::report::GatewayReport;
use std::io::Read as _;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Duration;

/// How long a gateway may take to answer a question for its status.
const STATUS_TIMEOUT: Duration = Duration::from_secs(2);

/// Asks the gateway that answers at `socket` what it is doing.
pub(super) fn ask(socket: &Path) -> Result<GatewayReport> {
    let mut stream = UnixStream::connect(socket).about(|| socket.display().to_string())?;
    stream.set_read_timeout(Some(STATUS_TIMEOUT))?;
    let mut text = String::new();
    stream.read_to_string(&mut text)?;
    Ok(serde_json::from_str(&text)?)
}
