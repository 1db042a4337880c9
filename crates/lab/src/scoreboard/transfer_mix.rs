//! How the transfers of one scene differ.

use core::fmt;

/// How the transfers of a scene differ among themselves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TransferMix {
    /// The transfers are equal, and begin within a second.
    Alike,
    /// The last transfer begins `LATE_START_MS` after the others.
    Late,
    /// The round-trip time of the last transfer is this multiple of the others'.
    Rtt(u32),
    /// The last has the direct path alone.
    Single,
}

/// The name of the case: `alike`, `late`, `rtt4` or `single`.
impl fmt::Display for TransferMix {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Alike => write!(f, "alike"),
            Self::Late => write!(f, "late"),
            Self::Rtt(times) => write!(f, "rtt{times}"),
            Self::Single => write!(f, "single"),
        }
    }
}
