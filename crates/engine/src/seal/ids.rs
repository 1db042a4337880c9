//! Names of paths on the wire.

use byway_wire::{ConnectionId, PathId};

/// The connection id in the packets of `path`. `secret`: the secret of the packets' direction, from
/// the handshake. The id is the output of a pseudorandom function, so ids do not show that paths
/// belong to one connection.
#[must_use]
pub fn connection_id(secret: &[u8; 32], path: PathId) -> ConnectionId {
    let mut id = [0; 8];
    let mut output = blake3::Hasher::new_keyed(secret).update(&path.0.to_be_bytes()).finalize_xof();
    output.fill(&mut id);
    ConnectionId(id)
}
