//! The handshake: sets up a connection between two hosts in one round trip, as
//! `Noise_IK_25519_ChaChaPoly_BLAKE2s` (The Noise Protocol Framework, revision 34).
//!
//! ```text
//! initiator                                     responder
//!     |  HELLO: e, es, s, ss, {suites, payload}     |
//!     |-------------------------------------------->|
//!     |  RETRY: cookie             (if it is busy)  |
//!     |<--------------------------------------------|
//!     |  HELLO with the cookie, same Noise message  |
//!     |-------------------------------------------->|
//!     |  REPLY: e, ee, se, {suite, payload}         |  session, unconfirmed
//!     |<--------------------------------------------|
//!     |  first data packet                          |
//!     |-------------------------------------------->|  confirmed: it was no replay
//! ```
//!
//! | part | property |
//! |---|---|
//! | initiator | has the responder's public key beforehand, from a ticket |
//! | responder | learns the initiator's public key from HELLO |
//! | both payloads | encrypted |
//! | payload of HELLO | can be read by whoever later steals the responder's secret key |
//! | HELLO | can be replayed by whoever saw it |
//! | prologue | authenticates version and reply id (by which the initiator recognizes answers) |
//! | padding, cookie | not authenticated, because they decide only whether a RETRY is needed |
//! | end of an attempt | only the caller ends it; no forged, damaged or late datagram does |

mod cipher;
mod cookie;
mod hash;
mod identity;
mod initiator;
mod noise;
mod responder;
mod session;
#[cfg(test)]
mod tests;

use thiserror::Error;

pub use cookie::{COOKIE_LEN, COOKIE_LIFETIME};
pub use identity::{Identity, PublicKey};
pub use initiator::{HandshakeProgress, Initiator};
pub use responder::{HelloDigest, HelloResponse, Responder, digest, refuse};
pub use session::Established;

/// Bytes of the caller's payload that fit each of the two messages.
pub const MAX_PAYLOAD: usize = 1024;

/// Why a handshake could not begin, or why a packet was not part of one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum HandshakeError {
    /// More than [`MAX_PAYLOAD`] bytes of payload.
    #[error("handshake payload is longer than {MAX_PAYLOAD} bytes")]
    PayloadTooLong,
    /// The public key is one with which nothing secret can be agreed (RFC 7748 section 6.1), or
    /// none at all.
    #[error("public key is not usable")]
    BadKey,
    /// The packet belongs to another attempt, or to no initiator at all.
    #[error("handshake packet belongs to another attempt")]
    NotOurs,
    /// The packet was not made by the peer, or was changed on the route.
    #[error("handshake packet is forged or damaged")]
    Forged,
    /// The peer itself sent an invalid answer, such as a suite that was not offered.
    #[error("peer breaks the protocol")]
    Protocol,
    /// The attempt has succeeded already; the packet is late.
    #[error("handshake is complete")]
    Complete,
}
