//! How far the session of a source is.

use crate::message::Messages;
use byway_engine::Handle;
use byway_wire::Instant;

/// How far a session is.
pub enum ConnectState {
    /// There is none.
    Away,
    /// The sink has not answered yet.
    Connecting(Handle, Vec<bool>),
    /// It has.
    Talking(Handle, Box<ActiveSession>),
}

/// What is said in a session.
#[derive(Default)]
pub struct ActiveSession {
    /// Relays that the session knows, in the order of the ways.
    pub entered: Vec<bool>,
    /// What the sink says.
    pub messages: Messages,
    /// When the sink was last heard.
    pub heard_at: Instant,
    /// Whether the sink takes records.
    pub welcome: bool,
    /// What is to be said, from `said` on.
    pub out: Vec<u8>,
    pub said: usize,
    /// Bytes given to the session.
    pub given: u64,
    /// Whether the end was said.
    pub end_said: bool,
}

impl ConnectState {
    /// The session.
    pub const fn handle(&self) -> Option<Handle> {
        match self {
            Self::Away => None,
            Self::Connecting(handle, _) | Self::Talking(handle, _) => Some(*handle),
        }
    }
}
