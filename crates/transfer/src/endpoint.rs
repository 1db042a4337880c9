//! The endpoint of either side, and the two streams of a transfer.

use crate::identity::Identity;
use byway_engine::seal::Suites;
use byway_engine::{Admission, Config, Endpoint, EndpointConfig, handshake};
use byway_net::EntropyError;
use byway_wire::StreamId;

/// The stream from the sender: the manifest, or the bytes of a pipe.
pub(crate) const SENDER_STREAM: StreamId = StreamId(0);
/// The stream from the receiver: reports, or the receipt of a pipe.
pub(crate) const RECEIVER_STREAM: StreamId = StreamId(1);

/// An endpoint with this key pair. `admission` decides about peers that connect. `None`: all are
/// refused.
///
/// # Errors
/// The system gives no randomness.
pub fn endpoint(
    identity: &Identity,
    connection: Config,
    admission: Option<Box<dyn Admission>>,
) -> Result<Endpoint, EntropyError> {
    Ok(Endpoint::new(EndpointConfig {
        identity: handshake::Identity::from_secret(*identity.secret().expose()),
        suites: Suites::SECURE,
        seed: byway_net::seed()?,
        connection,
        admission,
        greeting: Vec::new(),
    }))
}
