//! The side that answers. It remembers nothing about whom it answered: that is the endpoint's
//! table, bounded by it.

use alloc::boxed::Box;
use alloc::vec;
use alloc::vec::Vec;
use core::fmt;
use core::net::SocketAddr;

use byway_wire::packet::{BASE_DATAGRAM, Handshake, RefuseReason};
use byway_wire::{ConnectionId, DecodeError, Instant, Writer};
use zeroize::Zeroizing;

use super::cookie::Cookies;
use super::noise::{MESSAGE_1_OVERHEAD, Noise};
use super::session::{HandshakeSide, establish};
use super::{Established, HandshakeError, Identity, MAX_PAYLOAD};
use crate::seal::{Secret, Suites};

/// Identifies a HELLO by its reply id and its Noise message, whatever its cookie.
pub type HelloDigest = [u8; 32];

/// The response to a HELLO. No answer is larger than the HELLO.
#[derive(Debug)]
pub enum HelloResponse {
    /// Send these bytes, a RETRY: the sender must first prove that it receives at its address.
    Retry(Vec<u8>),
    /// The HELLO is for this host. If its sender is admitted, send the bytes and keep the keys.
    Reply {
        /// The REPLY. The same HELLO again gets these very bytes, without another call.
        bytes: Vec<u8>,
        /// The session, unconfirmed: the HELLO may be a replay until a data packet opens.
        established: Box<Established>,
        /// [`digest`] of the HELLO.
        digest: HelloDigest,
        /// Whether the HELLO carried a valid cookie, so that its address needs no more proof.
        validated: bool,
    },
    /// Send these bytes, a REFUSE with the reason.
    Refuse {
        /// The bytes of the REFUSE.
        bytes: Vec<u8>,
        /// The reason that the REFUSE gives.
        reason: RefuseReason,
    },
    /// Send nothing: the packet is no HELLO, or too small to be answered.
    Ignore,
}

/// Answers the HELLOs of newcomers.
pub struct Responder {
    identity: Identity,
    suites: Suites,
    cookies: Cookies,
    seed: Secret,
    answered: u64,
    computed: u64,
}

impl Responder {
    /// A responder that answers for `identity`, with one of `suites`. `cookie_key` and `seed` are
    /// fresh entropy, except in simulations. If a host has several responders that share an
    /// address, all get the same cookie key.
    #[must_use]
    pub fn new(identity: Identity, suites: Suites, cookie_key: [u8; 16], seed: [u8; 32]) -> Self {
        let seed = Secret::new(seed);
        Self { identity, suites, cookies: Cookies::new(cookie_key), seed, answered: 0, computed: 0 }
    }

    /// Returns the number of HELLOs so far that needed computations on the curve, whether answered
    /// or not.
    #[must_use]
    pub const fn computed(&self) -> u64 {
        self.computed
    }

    /// Whether a HELLO from `remote` has a valid cookie, which proves that its sender receives
    /// there.
    #[must_use]
    pub fn shows_cookie(&self, now: Instant, remote: SocketAddr, datagram: &[u8]) -> bool {
        matches!(Handshake::read(datagram), Ok(Handshake::Hello { cookie, .. }) if self.cookies.check(now, remote, cookie))
    }

    /// Answers the HELLO in `datagram`, which came from `remote`. `demand_cookie` (set under load):
    /// a cookie in the HELLO must show that the sender receives at `remote`. `payload` goes to the
    /// initiator, encrypted. If it exceeds [`MAX_PAYLOAD`] bytes, the HELLO is ignored.
    pub fn on_hello(
        &mut self,
        now: Instant,
        remote: SocketAddr,
        datagram: &[u8],
        demand_cookie: bool,
        payload: &[u8],
    ) -> HelloResponse {
        // What is smaller than the largest answer earns none.
        if datagram.len() < BASE_DATAGRAM || payload.len() > MAX_PAYLOAD {
            return HelloResponse::Ignore;
        }
        let (reply, cookie, noise) = match Handshake::read(datagram) {
            Ok(Handshake::Hello { reply, cookie, noise }) => (reply, cookie, noise),
            Err(DecodeError::Range("version")) => {
                return Handshake::hello_reply_id(datagram)
                    .map_or(HelloResponse::Ignore, |reply| refusal(reply, RefuseReason::Version));
            }
            _ => return HelloResponse::Ignore,
        };
        if noise.len() < MESSAGE_1_OVERHEAD {
            return HelloResponse::Ignore;
        }
        let validated = self.cookies.check(now, remote, cookie);
        if demand_cookie && !validated {
            let cookie = self.cookies.make(now, remote);
            return HelloResponse::Retry(write(&Handshake::Retry { reply, cookie: &cookie }));
        }
        let digest = digest_of(reply, noise);
        // This costs some hundred microseconds, even if the HELLO was made for another key.
        match self.answer(reply, noise, &digest, payload) {
            Ok((bytes, established)) => HelloResponse::Reply { bytes, established, digest, validated },
            Err(HandshakeError::Forged) => refusal(reply, RefuseReason::WrongKey),
            // To people, two peers without a common suite are peers of two versions.
            Err(HandshakeError::Protocol) => refusal(reply, RefuseReason::Version),
            Err(_) => HelloResponse::Ignore,
        }
    }

    fn answer(
        &mut self,
        reply: ConnectionId,
        message: &[u8],
        digest: &HelloDigest,
        payload: &[u8],
    ) -> Result<(Vec<u8>, Box<Established>), HandshakeError> {
        self.computed += 1;
        // A counter and the HELLO both go into the ephemeral key: a replay meets another key, and
        // so another session.
        let parts =
            [self.seed.bytes().as_slice(), self.identity.secret(), &self.answered.to_be_bytes(), digest];
        let material = Zeroizing::new(parts.concat());
        let seed = Secret::derive("byway 1: answer to an attempt", &material);
        let mut noise = Noise::responder(&self.identity, reply, seed)?;
        let said = noise.read(message)?;
        let (offered, theirs) = said.split_first().ok_or(HandshakeError::Protocol)?;
        let suite = self.suites.agree(Suites::from_byte(*offered)).ok_or(HandshakeError::Protocol)?;
        let peer = noise.peer().ok_or(HandshakeError::Protocol)?;
        self.answered += 1;

        let ours = [&[suite.to_byte()], payload].concat();
        let message = noise.write(&ours)?;
        let established = establish(&mut noise, HandshakeSide::Responder, peer, suite, theirs.to_vec())?;
        Ok((write(&Handshake::Reply { reply, noise: &message }), established))
    }
}

impl fmt::Debug for Responder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Responder")
            .field("identity", &self.identity)
            .field("answered", &self.answered)
            .finish_non_exhaustive()
    }
}

/// The digest of a HELLO. The caller looks it up to repeat the answer to a HELLO that was answered
/// before. `None` if the datagram is no HELLO of this version. Costs a hash of at most 1200 bytes.
#[must_use]
pub fn digest(datagram: &[u8]) -> Option<HelloDigest> {
    match Handshake::read(datagram) {
        Ok(Handshake::Hello { reply, noise, .. }) => Some(digest_of(reply, noise)),
        _ => None,
    }
}

fn digest_of(reply: ConnectionId, noise: &[u8]) -> HelloDigest {
    *blake3::Hasher::new().update(&reply.0).update(noise).finalize().as_bytes()
}

/// A REFUSE packet for the HELLO with this reply id.
#[must_use]
pub fn refuse(reply: ConnectionId, reason: RefuseReason) -> Vec<u8> {
    write(&Handshake::Refuse { reply, reason })
}

fn refusal(reply: ConnectionId, reason: RefuseReason) -> HelloResponse {
    HelloResponse::Refuse { bytes: refuse(reply, reason), reason }
}

fn write(packet: &Handshake<'_>) -> Vec<u8> {
    let mut buffer = vec![0; BASE_DATAGRAM];
    let mut writer = Writer::new(&mut buffer);
    packet.write(&mut writer);
    let length = writer.len();
    buffer.truncate(length);
    buffer
}
