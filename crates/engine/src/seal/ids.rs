//! Names of paths on the wire.

use byway_wire::{ConnectionId, PathId};

/// The connection id in the packets of `path`. `secret`: the secret of the direction in which the
/// packets travel. The handshake gives both ends the secrets of both directions.
///
/// The id is the output of a pseudorandom function. Whoever sees the ids of some paths learns
/// nothing about the ids of other paths, not even that all belong to one connection. The id is
/// computed once per path, not per packet.
#[must_use]
pub fn connection_id(secret: &[u8; 32], path: PathId) -> ConnectionId {
    let mut id = [0; 8];
    let mut output = blake3::Hasher::new_keyed(secret).update(&path.0.to_be_bytes()).finalize_xof();
    output.fill(&mut id);
    ConnectionId(id)
}
