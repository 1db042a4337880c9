//! The side that begins.

use alloc::boxed::Box;
use alloc::vec;
use alloc::vec::Vec;
use core::fmt;

use byway_wire::packet::{BASE_DATAGRAM, Handshake, RefuseReason};
use byway_wire::{ConnectionId, Writer};
use zeroize::Zeroizing;

use super::noise::Noise;
use super::session::{HandshakeSide, establish};
use super::{Established, HandshakeError, Identity, MAX_PAYLOAD, PublicKey};
use crate::seal::{Secret, Suites};

/// The most RETRYs of an attempt that are answered with a HELLO at once. A further RETRY only
/// changes the cookie of the next scheduled HELLO. So forged RETRYs (27 bytes) cannot make this
/// side send HELLOs (1200 bytes) without end.
const MAX_ANSWERED_RETRIES: u32 = 16;

/// The effect of a packet on an attempt to connect.
#[derive(Debug)]
pub enum HandshakeProgress {
    /// The peer answered, and these are the keys.
    Established(Box<Established>),
    /// The peer wants proof that this host receives at its address. Send [`Initiator::hello`] now,
    /// on the route of the RETRY, since the cookie is valid for no other address.
    SendHello,
    /// A RETRY, perhaps not the peer's, gave a new cookie. The next scheduled HELLO carries it.
    Waiting,
    /// The packet claims that the peer refuses, but is not authenticated. Report it only if the
    /// attempt fails.
    Refused(RefuseReason),
}

/// An attempt to reach a peer. Sends one HELLO again and again, until a REPLY comes or the caller
/// loses patience.
pub struct Initiator {
    peer: PublicKey,
    offered: Suites,
    reply: ConnectionId,
    noise: Noise,
    message: Vec<u8>,
    cookie: Vec<u8>,
    retries_left: u32,
    complete: bool,
}

impl Initiator {
    /// Prepares an attempt to connect to `peer`. The HELLO carries `payload` encrypted, at most
    /// [`MAX_PAYLOAD`] bytes. `seed` must be fresh entropy, except in simulations: the same
    /// arguments give the same HELLO.
    pub fn new(
        identity: &Identity,
        peer: PublicKey,
        payload: &[u8],
        offered: Suites,
        seed: [u8; 32],
    ) -> Result<Self, HandshakeError> {
        if payload.len() > MAX_PAYLOAD {
            return Err(HandshakeError::PayloadTooLong);
        }
        let mut said = Zeroizing::new(vec![offered.to_byte()]);
        said.extend_from_slice(payload);
        // Everything that differs between two attempts goes into their keys, so that even a seed
        // given twice never makes one key seal two texts.
        let seed = Zeroizing::new(seed);
        let parts = [seed.as_slice(), identity.secret(), &peer.0, &said];
        let material = Zeroizing::new(parts.concat());
        let attempt = Secret::derive("byway 1: attempt to connect", &material);
        let reply_id = Secret::derive("byway 1: reply id", attempt.bytes());
        let [a, b, c, d, e, f, g, h, ..] = *reply_id.bytes();
        let reply = ConnectionId([a, b, c, d, e, f, g, h]);
        let mut noise = Noise::initiator(identity, peer, reply, attempt)?;
        let message = noise.write(&said)?;
        Ok(Self {
            peer,
            offered,
            reply,
            noise,
            message,
            cookie: Vec::new(),
            retries_left: MAX_ANSWERED_RETRIES,
            complete: false,
        })
    }

    /// The public key of the peer.
    #[must_use]
    pub const fn peer(&self) -> PublicKey {
        self.peer
    }

    /// The reply id in the header of all answers to this attempt.
    #[must_use]
    pub const fn reply_id(&self) -> ConnectionId {
        self.reply
    }

    /// The HELLO: always [`BASE_DATAGRAM`] bytes, always the same Noise message, with the newest
    /// cookie.
    #[must_use]
    pub fn hello(&self) -> Vec<u8> {
        let mut packet = vec![0; BASE_DATAGRAM];
        let hello = Handshake::Hello { reply: self.reply, cookie: &self.cookie, noise: &self.message };
        hello.write(&mut Writer::new(&mut packet));
        packet
    }

    /// Takes a handshake packet that arrived. After an error, the attempt goes on as if the packet
    /// had not arrived. The only exception is a genuine REPLY that breaks the protocol: after it,
    /// the attempt can read no other REPLY.
    pub fn on_packet(&mut self, packet: &Handshake<'_>) -> Result<HandshakeProgress, HandshakeError> {
        let (Handshake::Hello { reply, .. }
        | Handshake::Retry { reply, .. }
        | Handshake::Reply { reply, .. }
        | Handshake::Refuse { reply, .. }) = packet;
        if *reply != self.reply {
            return Err(HandshakeError::NotOurs);
        }
        if self.complete {
            return Err(HandshakeError::Complete);
        }
        match packet {
            Handshake::Hello { .. } => Err(HandshakeError::NotOurs),
            Handshake::Refuse { reason, .. } => Ok(HandshakeProgress::Refused(*reason)),
            Handshake::Retry { cookie, .. } => self.on_retry(cookie),
            Handshake::Reply { noise, .. } => self.on_reply(noise),
        }
    }

    fn on_retry(&mut self, cookie: &[u8]) -> Result<HandshakeProgress, HandshakeError> {
        // First byte, version, reply id, two lengths.
        let fixed = 1 + 1 + self.reply.0.len() + 1 + 2;
        if cookie.is_empty() || fixed + cookie.len() + self.message.len() > BASE_DATAGRAM {
            return Err(HandshakeError::Forged);
        }
        self.cookie.clear();
        self.cookie.extend_from_slice(cookie);
        match self.retries_left.checked_sub(1) {
            Some(left) => {
                self.retries_left = left;
                Ok(HandshakeProgress::SendHello)
            }
            None => Ok(HandshakeProgress::Waiting),
        }
    }

    fn on_reply(&mut self, message: &[u8]) -> Result<HandshakeProgress, HandshakeError> {
        let said = self.noise.read(message)?;
        // From here on the peer itself has spoken; no other REPLY will be readable.
        self.complete = true;
        let (suite, payload) = said.split_first().ok_or(HandshakeError::Protocol)?;
        let suite = Suites::single(*suite)
            .filter(|&suite| self.offered.contains(suite))
            .ok_or(HandshakeError::Protocol)?;
        let established =
            establish(&mut self.noise, HandshakeSide::Initiator, self.peer, suite, payload.to_vec())?;
        Ok(HandshakeProgress::Established(established))
    }
}

impl fmt::Debug for Initiator {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Initiator")
            .field("peer", &self.peer)
            .field("reply", &self.reply)
            .finish_non_exhaustive()
    }
}
