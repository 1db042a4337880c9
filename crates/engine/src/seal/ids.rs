//! Names of paths on the wire.

use byway_wire::{ConnectionId, PathId};

/// The connection id in the packets of `path`, from the `secret` of the direction in which they
/// travel (the handshake gives both ends the secrets of both directions).
///
/// A pseudorandom function: who sees the ids of some paths learns nothing about those of the
/// others, not even that they belong together. Computed once per path, not per packet.
#[must_use]
pub fn connection_id(secret: &[u8; 32], path: PathId) -> ConnectionId {
    let mut id = [0; 8];
    let mut output = blake3::Hasher::new_keyed(secret).update(&path.0.to_be_bytes()).finalize_xof();
    output.fill(&mut id);
    ConnectionId(id)
}
