//! The transport of a path: whether the session or the kernel controls congestion and repeats lost
//! data.

use byway_wire::Duration;

/// The shortest timeout on a path without loss. It means that the connection is delayed, not that
/// data must be sent again.
const MIN_HELD_UP_TIMEOUT: Duration = Duration::from_secs(1);
/// The longest such timeout. A connection's RTT may be many seconds, as it includes queues in this
/// host. Three timeouts are half of the usual idle timeout.
const MAX_HELD_UP_TIMEOUT: Duration = Duration::from_secs(10);
/// Number of timeouts in a row that count as the end of a connection, if another path answers.
const GONE_TIMEOUTS: u32 = 3;

/// The transport of a path's packets, all the way to the peer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum PathTransport {
    /// Datagrams: any may be lost, and only the session finds out.
    #[default]
    Datagrams,
    /// A TCP connection to the peer. The kernel controls congestion and repeats lost data, so all
    /// data arrive in order while it lasts.
    Connection,
}

impl PathTransport {
    /// Whether the session detects losses and sends lost data again.
    #[must_use]
    pub fn loses(self) -> bool {
        self == Self::Datagrams
    }

    /// Returns the silence that makes a timeout, where `usual` is the probe timeout of RFC 9002.
    #[must_use]
    pub fn patience(self, usual: Duration) -> Duration {
        match self {
            Self::Datagrams => usual,
            Self::Connection => (usual * 3).clamp(MIN_HELD_UP_TIMEOUT, MAX_HELD_UP_TIMEOUT),
        }
    }

    /// Whether `timeouts` timeouts in a row end a path, if another answers.
    #[must_use]
    pub fn is_as_good_as_gone(self, timeouts: u32) -> bool {
        self == Self::Connection && timeouts >= GONE_TIMEOUTS
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_connection_is_waited_for_longer() {
        let ms = Duration::from_millis;
        assert_eq!(PathTransport::Datagrams.patience(ms(70)), ms(70));
        assert_eq!(
            (PathTransport::Connection.patience(ms(70)), PathTransport::Connection.patience(ms(700))),
            (ms(1_000), ms(2_100))
        );
        assert_eq!(PathTransport::Connection.patience(ms(9_000)), ms(10_000));
        assert!(!PathTransport::Datagrams.is_as_good_as_gone(9));
        assert!(
            PathTransport::Connection.is_as_good_as_gone(3)
                && !PathTransport::Connection.is_as_good_as_gone(2)
        );
    }
}
