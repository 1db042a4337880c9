//! Compares byway with other transports: the same bulk transfer, on the same machine, in the same
//! run. Also compares byway's relay with a forwarder that only copies packets ([`forward`]).
//!
//! `cargo bench -p byway-rivals --bench loopback` sends bytes from one process to another
//! ([`process`]) over real loopback sockets. The transports are byway (once in each of its traffic
//! classes), byway over TCP, quinn, and kernel TCP. Kernel TCP does not encrypt: it shows what is
//! possible on this machine. The transports take turns in each round, so all of them suffer alike
//! if the machine becomes slower. Rules of the comparison:
//!
//! * Each end has a process of its own, in which one thread works.
//! * UDP payloads have at most [`DATAGRAM`] bytes. Each transport uses the size that its own path
//!   MTU discovery finds. Frames over TCP have any size.
//! * All transports that encrypt use AES-256-GCM. byway takes it from the crate `ring`. quinn runs
//!   with `ring` and, with the feature `aws-lc`, once more with `aws-lc-rs`. byway is compared with
//!   the faster quinn.
//! * The sending application passes reference-counted buffers to byway and quinn, so neither copies
//!   data before it makes packets.
//! * All transports ask for socket buffers of the same size.
//! * The clock starts when the connection is established. So slow start counts, and the handshake
//!   does not.
//! * Bytes count when the receiving application has them. Memory is the largest resident set of a
//!   process.

pub mod byway;
pub mod forward;
pub mod meter;
pub mod process;
pub mod quic;
pub mod tcp;

use byway::Carries;
pub use meter::{EndTotals, Meter};

/// The largest UDP payload: what QUIC's own path MTU discovery stops at, Ethernet with IPv6.
pub const DATAGRAM: usize = 1452;
/// What the sending application hands over at once, in bytes.
pub const PIECE: usize = 256 << 10;
/// What may be under way or waiting for the receiving application, in bytes.
pub const WINDOW: usize = 32 << 20;

/// Why a rival could not run.
pub type Error = Box<dyn std::error::Error + Send + Sync>;

/// Ends one end of a transfer, and tells what it has to say about itself.
pub type Finish = Box<dyn FnOnce() -> Result<String, Error>>;

/// Who moves the bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rival {
    /// byway over UDP, under the controller of this name.
    Byway(&'static str),
    /// byway over one TCP connection, under the controller of this name.
    BywayOverTcp(&'static str),
    /// quinn, with this library's AES-256-GCM.
    Quinn(quic::Provider),
    /// The kernel's TCP.
    Tcp,
}

impl Rival {
    /// All of them, and what they are called.
    pub const ALL: &'static [(&'static str, Self)] = &[
        ("byway normal", Self::Byway("mpath")),
        ("byway background", Self::Byway("background")),
        ("byway over TCP", Self::BywayOverTcp("mpath")),
        ("quinn", Self::Quinn(quic::Provider::Ring)),
        #[cfg(feature = "aws-lc")]
        ("quinn, aws-lc", Self::Quinn(quic::Provider::AwsLc)),
        ("tcp, in the clear", Self::Tcp),
    ];

    /// The rival of this name.
    #[must_use]
    pub fn by_name(name: &str) -> Option<Self> {
        Self::ALL.iter().find(|(known, _)| *known == name).map(|(_, rival)| *rival)
    }

    /// Begins to receive. Returns what [`give`](Self::give) has to know.
    ///
    /// # Errors
    ///
    /// What the system refuses.
    pub fn take(self, meter: Meter) -> Result<(String, Finish), Error> {
        match self {
            Self::Byway(congestion) => byway::take(congestion, Carries::Udp, meter),
            Self::BywayOverTcp(congestion) => byway::take(congestion, Carries::Tcp, meter),
            Self::Quinn(provider) => quic::take(provider, meter),
            Self::Tcp => tcp::take(meter),
        }
    }

    /// Begins to send to whoever said `word`.
    ///
    /// # Errors
    ///
    /// What the system refuses, or a word that is none.
    pub fn give(self, word: &str, meter: Meter) -> Result<Finish, Error> {
        match self {
            Self::Byway(congestion) => byway::give(congestion, Carries::Udp, word, meter),
            Self::BywayOverTcp(congestion) => byway::give(congestion, Carries::Tcp, word, meter),
            Self::Quinn(provider) => quic::give(provider, word, meter),
            Self::Tcp => tcp::give(word, meter),
        }
    }
}
