//! The Noise protocol as byway speaks it: snow, with keys that are erased and randomness that is
//! given.

use alloc::boxed::Box;
use alloc::vec;
use alloc::vec::Vec;

use byway_wire::ConnectionId;
use byway_wire::packet::WIRE_VERSION;
use curve25519_dalek::montgomery::MontgomeryPoint;
use snow::params::{CipherChoice, DHChoice, HashChoice};
use snow::resolvers::CryptoResolver;
use snow::types::{Cipher, Dh, Hash, Random};
use snow::{Builder, HandshakeState};
use zeroize::{Zeroize, Zeroizing};

use super::cipher::ChaChaPoly;
use super::hash::Blake2s;
use super::{HandshakeError, Identity, PublicKey};
use crate::seal::Secret;

const NOISE_PROTOCOL: &str = "Noise_IK_25519_ChaChaPoly_BLAKE2s";
/// Bytes that message 1 adds to its payload: an ephemeral key, an encrypted static key, and a tag.
pub(super) const MESSAGE_1_OVERHEAD: usize = 32 + 48 + 16;
/// Bytes that message 2 adds to its payload: an ephemeral key and a tag.
pub(super) const MESSAGE_2_OVERHEAD: usize = 32 + 16;

/// The Noise state of one side of a handshake.
pub(super) struct Noise(HandshakeState);

impl Noise {
    /// The side that speaks first, to `peer`. `seed` gives the ephemeral key.
    pub(super) fn initiator(
        identity: &Identity,
        peer: PublicKey,
        reply: ConnectionId,
        seed: Secret,
    ) -> Result<Self, HandshakeError> {
        let build = |builder: Builder<'_>| builder.remote_public_key(&peer.0)?.build_initiator();
        Self::build(identity, reply, seed, build)
    }

    /// The side that answers.
    pub(super) fn responder(
        identity: &Identity,
        reply: ConnectionId,
        seed: Secret,
    ) -> Result<Self, HandshakeError> {
        Self::build(identity, reply, seed, |builder| builder.build_responder())
    }

    fn build(
        identity: &Identity,
        reply: ConnectionId,
        seed: Secret,
        finish: impl FnOnce(Builder<'_>) -> Result<HandshakeState, snow::Error>,
    ) -> Result<Self, HandshakeError> {
        let [a, b, c, d, e, f, g, h] = reply.0;
        let prologue = [b'b', b'y', b'w', b'a', b'y', WIRE_VERSION, a, b, c, d, e, f, g, h];
        let state = NOISE_PROTOCOL.parse().and_then(|params| {
            let builder = Builder::with_resolver(params, Box::new(Primitives(seed)));
            finish(builder.local_private_key(identity.secret())?.prologue(&prologue)?)
        });
        // Nothing here can fail but for a key of the wrong length, which the types exclude.
        state.map(Self).map_err(|_| HandshakeError::BadKey)
    }

    /// The next message of ours.
    pub(super) fn write(&mut self, payload: &[u8]) -> Result<Vec<u8>, HandshakeError> {
        let mut message = vec![0; payload.len() + MESSAGE_1_OVERHEAD.max(MESSAGE_2_OVERHEAD)];
        let length = self.0.write_message(payload, &mut message).map_err(|_| HandshakeError::BadKey)?;
        message.truncate(length);
        Ok(message)
    }

    /// Reads the peer's next message and returns its payload. After an error the genuine message
    /// can still be read, because the library `snow` undoes the changes of a failed read to its
    /// state.
    pub(super) fn read(&mut self, message: &[u8]) -> Result<Vec<u8>, HandshakeError> {
        let mut payload = vec![0; message.len()];
        let length = self.0.read_message(message, &mut payload).map_err(|_| HandshakeError::Forged)?;
        payload.truncate(length);
        Ok(payload)
    }

    /// Returns the peer's key. The responder knows it after message 1.
    pub(super) fn peer(&self) -> Option<PublicKey> {
        Some(PublicKey(self.0.get_remote_static()?.try_into().ok()?))
    }

    /// The two negotiated keys, that of the initiator's packets first. Each is mixed with the hash
    /// of all messages.
    pub(super) fn split(&mut self) -> (Zeroizing<Vec<u8>>, Zeroizing<Vec<u8>>) {
        let (mut to_responder, mut to_initiator) = self.0.dangerously_get_raw_split();
        let said = self.0.get_handshake_hash();
        let material = |key: &[u8; 32]| Zeroizing::new([key.as_slice(), said].concat());
        let materials = (material(&to_responder), material(&to_initiator));
        to_responder.zeroize();
        to_initiator.zeroize();
        materials
    }
}

/// The cryptographic functions that snow uses.
struct Primitives(Secret);

impl CryptoResolver for Primitives {
    fn resolve_rng(&self) -> Option<Box<dyn Random>> {
        Some(Box::new(Seeded { seed: self.0.clone(), drawn: 0 }))
    }

    fn resolve_dh(&self, choice: &DHChoice) -> Option<Box<dyn Dh>> {
        match choice {
            DHChoice::Curve25519 => Some(Box::new(X25519::default())),
            _ => None,
        }
    }

    fn resolve_hash(&self, choice: &HashChoice) -> Option<Box<dyn Hash>> {
        match choice {
            HashChoice::Blake2s => Some(Box::new(Blake2s::default())),
            _ => None,
        }
    }

    fn resolve_cipher(&self, choice: &CipherChoice) -> Option<Box<dyn Cipher>> {
        match choice {
            CipherChoice::ChaChaPoly => Some(Box::new(ChaChaPoly::default())),
            _ => None,
        }
    }
}

/// Randomness from a seed: the entropy is the caller's to give, and a simulation gives the same
/// every time.
struct Seeded {
    seed: Secret,
    drawn: u64,
}

impl Random for Seeded {
    fn try_fill_bytes(&mut self, dest: &mut [u8]) -> Result<(), snow::Error> {
        let mut hasher = blake3::Hasher::new_keyed(self.seed.bytes());
        hasher.update(&self.drawn.to_be_bytes());
        self.drawn += 1;
        hasher.finalize_xof().fill(dest);
        Ok(())
    }
}

/// X25519 (RFC 7748) that erases its secret and refuses a shared secret of zero. A public key of
/// small order leads to that shared secret, which everyone can compute. So anyone could pass for a
/// peer with such a key.
#[derive(Default)]
struct X25519 {
    secret: Zeroizing<[u8; 32]>,
    public: [u8; 32],
}

impl Dh for X25519 {
    fn name(&self) -> &'static str {
        "25519"
    }

    fn pub_len(&self) -> usize {
        32
    }

    fn priv_len(&self) -> usize {
        32
    }

    fn set(&mut self, privkey: &[u8]) {
        if let Ok(secret) = privkey.try_into() {
            self.secret = Zeroizing::new(secret);
            self.public = MontgomeryPoint::mul_base_clamped(secret).to_bytes();
        }
    }

    fn generate(&mut self, rng: &mut dyn Random) -> Result<(), snow::Error> {
        let mut secret = Zeroizing::new([0; 32]);
        rng.try_fill_bytes(secret.as_mut())?;
        self.set(secret.as_ref());
        Ok(())
    }

    fn pubkey(&self) -> &[u8] {
        &self.public
    }

    fn privkey(&self) -> &[u8] {
        self.secret.as_slice()
    }

    fn dh(&self, pubkey: &[u8], out: &mut [u8]) -> Result<(), snow::Error> {
        // snow hands over its whole buffer, which has room for larger curves.
        let (point, _) = pubkey.split_first_chunk::<32>().ok_or(snow::Error::Dh)?;
        let (out, _) = out.split_first_chunk_mut::<32>().ok_or(snow::Error::Dh)?;
        let shared = Zeroizing::new(MontgomeryPoint(*point).mul_clamped(*self.secret).to_bytes());
        // In one pass over all bytes, so that the time taken tells nothing about a shared secret.
        if shared.iter().fold(0, |or, byte| or | byte) == 0 {
            return Err(snow::Error::Dh);
        }
        *out = *shared;
        Ok(())
    }
}
