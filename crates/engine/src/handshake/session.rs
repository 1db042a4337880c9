//! The result of a handshake.

use alloc::boxed::Box;
use alloc::vec::Vec;
use core::fmt;

use super::noise::Noise;
use super::{HandshakeError, PublicKey};
use crate::seal::{Opener, Sealer, Secret, Suite};

/// The keys of a connection, and what the peer said about itself. The HELLO may be an attacker's
/// replay. The peer's first data packet proves that the peer is there. Until then the responder
/// sends no data and hides the connection from the application.
pub struct Established {
    /// Seals the packets that this host sends.
    pub sealer: Sealer,
    /// Opens the packets that this host receives.
    pub opener: Opener,
    /// The peer's public key.
    pub peer: PublicKey,
    /// The application data in the peer's message. They are authentic, but only as trustworthy as
    /// the peer.
    pub payload: Vec<u8>,
    /// The secret for [`crate::seal::connection_id`] on the paths of the peer.
    pub receive_ids: [u8; 32],
    /// The secret for [`crate::seal::connection_id`] on the paths of this side.
    pub send_ids: [u8; 32],
    /// The negotiated cipher.
    pub suite: Suite,
}

impl fmt::Debug for Established {
    /// Leaves out secrets: the payload may hold a permission, and the ids show which paths belong
    /// together.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Established")
            .field("peer", &self.peer)
            .field("suite", &self.suite)
            .finish_non_exhaustive()
    }
}

/// The side of a handshake: initiator or responder.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum HandshakeSide {
    Initiator,
    Responder,
}

/// Turns a finished handshake into keys: for each direction one for packets and one for connection
/// ids.
pub(super) fn establish(
    noise: &mut Noise,
    side: HandshakeSide,
    peer: PublicKey,
    suite: Suite,
    payload: Vec<u8>,
) -> Result<Box<Established>, HandshakeError> {
    let (to_responder, to_initiator) = noise.split();
    let responder_packets = Secret::derive("byway 1: data packets to the responder", &to_responder);
    let responder_ids = blake3::derive_key("byway 1: connection ids to the responder", &to_responder);
    let initiator_packets = Secret::derive("byway 1: data packets to the initiator", &to_initiator);
    let initiator_ids = blake3::derive_key("byway 1: connection ids to the initiator", &to_initiator);
    let (send, receive, send_ids, receive_ids) = match side {
        HandshakeSide::Initiator => (responder_packets, initiator_packets, responder_ids, initiator_ids),
        HandshakeSide::Responder => (initiator_packets, responder_packets, initiator_ids, responder_ids),
    };
    // The cipher refuses keys of a wrong length only.
    let sealer = Sealer::new(suite, send).map_err(|_| HandshakeError::BadKey)?;
    let opener = Opener::new(suite, &receive).map_err(|_| HandshakeError::BadKey)?;
    Ok(Box::new(Established { sealer, opener, peer, payload, receive_ids, send_ids, suite }))
}
