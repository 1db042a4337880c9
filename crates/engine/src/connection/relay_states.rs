//! The states of relays and of ended paths, as an owner sees them.

use byway_wire::Duration;
use byway_wire::relay::Reason;

/// A relay's state in a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RelayAttempt {
    /// The relay that was tried.
    pub relay: RelayId,
    /// The state of the relay.
    pub standing: RelayState,
    /// RTT of the latest probe that the relay answered, without the queueing delay that packets of
    /// every path had then.
    pub rtt: Option<Duration>,
    /// Whether that RTT is within the limit for relays (mPath's τ). False if no probe was answered.
    pub in_time: bool,
    /// The highest rate in bytes per second that the relay carried while in use; zero if it never
    /// was.
    pub goodput: u64,
    /// Number of times that the relay's path fell silent since it last answered a probe.
    pub silences: u32,
}

/// The endpoint's number for a relay by which one local socket may reach the peer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct RelayId(pub u32);

/// The state of a relay.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RelayState {
    /// No packet was sent to the relay yet.
    Untried,
    /// The relay is greeted, offered to the peer or probed.
    Trying,
    /// The relay's probe was answered in time.
    Available,
    /// The relay answered its probe late. It is used only if no other relay is left.
    Reserve,
    /// The relay carries data, or did until the controller choked it.
    InUse,
    /// The relay did not answer, or refuses. It is not tried again in this session, unless its
    /// uplink comes back.
    Unusable,
    /// The relay was dropped for good because it carried little.
    CarriedLittle,
    /// The relay was dropped because it shares the direct path's bottleneck.
    Shares,
}

/// Why a path ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PathEndReason {
    /// The local socket is gone.
    LocalGone,
    /// The relay refuses to forward, for this reason.
    Refused(Reason),
    /// Two probes in a row had no answer.
    Unanswered,
    /// The TCP connection brought no answer for long, and another path does.
    Held,
    /// The path went over TCP, and was long unused, because UDP works.
    Rested,
    /// The controller dropped the path.
    GivenUp,
    /// The path was dropped because it carried too little in its whole life.
    CarriedLittle,
    /// The path shares the direct path's bottleneck.
    Shares,
    /// No path of the peer's needs this path back any more.
    Orphan,
    /// The path works, and is not needed now.
    NotNeeded,
    /// The path through a relay served until a direct path was opened from both sides.
    Opened,
}

/// Why a direct path that the peer opened does not answer, for people.
pub(crate) const UNOPENED_TEXT: &str = "a NAT or firewall on the way does not let it in";

impl PathEndReason {
    /// Returns the reason in words, for people.
    #[must_use]
    pub const fn text(self) -> &'static str {
        match self {
            Self::LocalGone => "its local address is gone",
            Self::Refused(_) => "its relay refuses",
            Self::Unanswered => "two probes in a row were lost",
            Self::Held => "its TCP connection is held up, and another path answers",
            Self::Rested => "UDP works again",
            Self::GivenUp => "it timed out",
            Self::CarriedLittle => "its share of the work was too small",
            Self::Shares => "it shares the direct path's bottleneck",
            Self::Orphan => "no path of the peer's comes by it any more",
            Self::NotNeeded => "it is not needed now",
            Self::Opened => "a direct path has opened",
        }
    }
}
