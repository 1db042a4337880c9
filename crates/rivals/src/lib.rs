//! Compares byway with other transports by the same bulk transfer over loopback, between two
//! processes of one machine ([`process`]). Also compares byway's relay with a forwarder that only
//! copies packets ([`relay_comparison`]).
//!
//! | rule of the comparison | detail |
//! |---|---|
//! | transports | byway in each traffic class, byway over TCP, quinn, kernel TCP |
//! | kernel TCP | does not encrypt: shows what is possible on this machine |
//! | order | all take turns in each round, so a slower machine slows all alike |
//! | processes | one for each end, in which one thread works |
//! | UDP payload | found by path MTU discovery, at most [`MAX_DATAGRAM_LEN`] bytes |
//! | frames over TCP | have any size |
//! | encryption | AES-256-GCM; byway uses the crate `ring` |
//! | quinn | runs with `ring` and (feature `aws-lc`) with `aws-lc-rs`; the faster counts |
//! | sent data | passed in reference-counted buffers, so byway and quinn need no extra copy |
//! | socket buffers | all transports ask for the same size |
//! | clock | starts at the established connection: slow start counts, the handshake does not |
//! | counted bytes | those that the receiving application has |
//! | memory | the largest resident set of a process |

pub mod byway;
pub mod meter;
pub mod process;
pub mod quic;
pub mod relay_comparison;
pub mod tcp;

use byway::Carries;
pub use meter::{EndTotals, Meter};

/// The largest UDP payload: where QUIC's own path MTU discovery stops, on Ethernet with IPv6.
pub const MAX_DATAGRAM_LEN: usize = 1452;
/// Bytes that the sending application writes at a time.
pub const PIECE_LEN: usize = 256 << 10;
/// The most bytes that may be in flight, or wait for the receiving application.
pub const WINDOW_BYTES: usize = 32 << 20;

/// Why a rival could not run.
pub type Error = Box<dyn std::error::Error + Send + Sync>;

/// Stops one end of a transfer. Returns its remarks about itself, for the report.
pub type Finish = Box<dyn FnOnce() -> Result<String, Error>>;

/// The program that sends the bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rival {
    /// byway over UDP, under the controller of this name.
    Byway(&'static str),
    /// byway over one TCP connection, under the controller of this name.
    BywayOverTcp(&'static str),
    /// quinn, with the AES-256-GCM of this cryptographic library.
    Quinn(quic::Provider),
    /// The kernel's TCP.
    Tcp,
}

impl Rival {
    /// All rivals, each with its name on the command line.
    pub const ALL: &'static [(&'static str, Self)] = &[
        ("byway normal", Self::Byway("mpath")),
        ("byway background", Self::Byway("background")),
        ("byway over TCP", Self::BywayOverTcp("mpath")),
        ("quinn", Self::Quinn(quic::Provider::Ring)),
        #[cfg(feature = "aws-lc")]
        ("quinn, aws-lc", Self::Quinn(quic::Provider::AwsLc)),
        ("tcp, in the clear", Self::Tcp),
    ];

    /// The rival with this name. `None`: no rival has it.
    #[must_use]
    pub fn by_name(name: &str) -> Option<Self> {
        Self::ALL.iter().find(|(known, _)| *known == name).map(|(_, rival)| *rival)
    }

    /// Begins to receive. Returns the text for [`give`](Self::give).
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

    /// Starts the sender of this rival. `word` is the text that the receiver's `take` returned.
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
