//! A relay's reports to its operator: counters for metrics, and now and then an event for the log.

use byway_wire::relay::Reason;
use core::net::SocketAddr;

/// Why a datagram went no further.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Dropped {
    /// The sender's relay word does not allow the packet. A notice gives the sender the reason, if
    /// the limit of notices permits.
    #[error("{0}")]
    Refused(Reason),
    /// The datagram is truncated, or not a packet of the relay protocol.
    #[error("no relay packet")]
    Malformed,
    /// A RETURN packet whose tag this relay did not make, made for another host, or made too long
    /// ago.
    #[error("a way back that is not its own or ran out")]
    BadReturn,
    /// A RETURN for an account that the relay does not keep: it restarted. The sender's next packet
    /// brings it back.
    #[error("a way back under a word not seen since the start")]
    UnknownAccount,
    /// A greeting beyond the limit
    /// [`Config::greetings_per_second`](crate::Config::greetings_per_second).
    #[error("too many greetings")]
    Greeting,
    /// The send queue is full.
    #[error("more than could leave")]
    QueueFull,
    /// An end host needs its lent line itself, or cannot measure whether it does.
    #[error("this host's own traffic goes first")]
    Yielded,
    /// The packet is within the quota, but the count that includes it is not on the disk yet.
    #[error("the count of what is carried is not on the disk yet")]
    NotKept,
    /// An answer of a registry that belongs to no heartbeat of this relay, or fails authentication.
    #[error("an answer to no heartbeat of this relay's")]
    BadAnswer,
}

impl Dropped {
    /// Number of kinds, for tables.
    pub const COUNT: usize = Reason::ALL.len() + 8;

    /// All reasons why a datagram is dropped.
    pub fn all() -> impl Iterator<Item = Self> {
        let others = [
            Self::Malformed,
            Self::BadReturn,
            Self::UnknownAccount,
            Self::Greeting,
            Self::QueueFull,
            Self::BadAnswer,
            Self::Yielded,
            Self::NotKept,
        ];
        Reason::ALL.into_iter().map(Self::Refused).chain(others)
    }

    const fn index(self) -> usize {
        match self {
            Self::Refused(reason) => reason as usize - 1,
            Self::Malformed => Reason::ALL.len(),
            Self::BadReturn => Reason::ALL.len() + 1,
            Self::UnknownAccount => Reason::ALL.len() + 2,
            Self::Greeting => Reason::ALL.len() + 3,
            Self::QueueFull => Reason::ALL.len() + 4,
            Self::BadAnswer => Reason::ALL.len() + 5,
            Self::Yielded => Reason::ALL.len() + 6,
            Self::NotKept => Reason::ALL.len() + 7,
        }
    }
}

/// The counters of a relay since its start. Bytes are those of UDP payloads.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RelayCounters {
    /// Datagrams that arrived.
    pub received_packets: u64,
    /// Bytes that arrived.
    pub received_bytes: u64,
    /// Datagrams from senders to receivers.
    pub forwarded_packets: u64,
    /// Bytes from senders to receivers.
    pub forwarded_bytes: u64,
    /// Datagrams from receivers back to senders.
    pub returned_packets: u64,
    /// Bytes from receivers back to senders.
    pub returned_bytes: u64,
    /// Number of greetings that were answered.
    pub greeted: u64,
    /// Number of requests that were answered with a receiver's location.
    pub located: u64,
    /// Number of requests about mailboxes that were answered.
    pub mailed: u64,
    /// Number of notices sent.
    pub notices: u64,
    /// Sends that the system refused.
    pub send_errors: u64,
    /// Accounts removed to make room for others. Only accounts within their rate are removed.
    pub evicted: u64,
    /// Heartbeats sent. One that goes to several addresses counts once for each.
    pub beats: u64,
    /// Answers to heartbeats that were proven.
    pub answers: u64,
    dropped: [u64; Dropped::COUNT],
}

impl RelayCounters {
    /// Returns the number of datagrams dropped for the reason `why`.
    #[must_use]
    pub fn dropped(&self, why: Dropped) -> u64 {
        self.dropped.get(why.index()).copied().unwrap_or_default()
    }

    /// Datagrams dropped.
    #[must_use]
    pub fn dropped_in_all(&self) -> u64 {
        self.dropped.iter().sum()
    }

    pub(crate) fn drop(&mut self, why: Dropped) {
        if let Some(count) = self.dropped.get_mut(why.index()) {
            *count += 1;
        }
    }
}

/// Something for the log. At most ten are made per second; the rest is counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LogEvent {
    /// Why the datagram was dropped.
    pub dropped: Dropped,
    /// The grant that the datagram named, whether or not the datagram was authentic.
    pub grant: u32,
    /// The source address of the datagram.
    pub from: SocketAddr,
    /// Number of events left out since the previous event in the log.
    pub left_out: u64,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_reason_has_a_counter_of_its_own() {
        let mut counters = RelayCounters::default();
        for why in Dropped::all() {
            assert_eq!(counters.dropped(why), 0);
            counters.drop(why);
            assert_eq!(counters.dropped(why), 1);
        }
        assert_eq!(counters.dropped_in_all(), Dropped::COUNT as u64);
    }
}
