//! The endpoint of a registry's sessions: many, short, with little to say.

use super::sessions::{MAX_SESSIONS, SESSION_TIMEOUT};
use alloc::boxed::Box;
use alloc::vec::Vec;
use byway_control::Class;
use byway_engine::data::{IncomingLimits, OutgoingLimits};
use byway_engine::handshake::{Identity, PublicKey};
use byway_engine::seal::Suites;
use byway_engine::{Admission, Admit, Config, Endpoint, EndpointConfig};

/// Memory for the received data of one session, in bytes.
const SESSION_MEMORY_BYTES: usize = 16 << 10;

/// Sessions that end beside [`MAX_SESSIONS`]. A datagram brings one at most, and the driver takes
/// 64 buffers of datagrams before it sends and wakes.
const ENDING_SESSIONS: usize = 256;

/// Memory for the incoming data of all sessions. The endpoint gives sessions half of it.
const SHARED_MEMORY_BYTES: usize = 2 * SESSION_MEMORY_BYTES * (MAX_SESSIONS + ENDING_SESSIONS);

/// Handshakes of strangers per second, which are a registry's main task. One network gets a fourth
/// of these.
const HELLOS_PER_SECOND: u32 = 2_000;

/// Admits every peer. A client without a valid word gets a refusal with a reason.
struct AdmitAll;

impl Admission for AdmitAll {
    fn admit(&mut self, _peer: PublicKey, _said: &[u8]) -> Admit {
        Admit::Accept(Class::Normal.controller(0))
    }
}

/// An endpoint that takes everybody, and small requests of each.
pub(super) fn endpoint(identity: Identity, suites: Suites, seed: [u8; 32]) -> Endpoint {
    let connection = Config {
        outgoing: OutgoingLimits { memory: 256 << 10, read_size: 1 << 10, objects: 1 },
        incoming: IncomingLimits {
            memory: SESSION_MEMORY_BYTES,
            stream_start: 8 << 10,
            stream_window: 8 << 10,
            streams: 2,
            objects: 1,
        },
        shared_memory: Some(SHARED_MEMORY_BYTES),
        hellos_per_second: HELLOS_PER_SECOND,
        idle_timeout: SESSION_TIMEOUT,
        relays_per_peer: 0,
        ..Config::default()
    };
    let admission: Option<Box<dyn Admission>> = Some(Box::new(AdmitAll));
    Endpoint::new(EndpointConfig { identity, suites, seed, connection, admission, greeting: Vec::new() })
}
