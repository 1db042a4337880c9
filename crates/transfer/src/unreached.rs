//! Why there is no connection, for a person: by what came back on each way.

use crate::error::NotConnected;
use crate::ways::{Heard, Tried};
use byway_engine::{ConnectError, RelayTrouble};
use byway_net::Echo;
use byway_wire::packet::BASE_DATAGRAM;
use byway_wire::relay::Reason;
use std::fmt;

/// Bytes of a header of IPv4 and of IPv6, each with that of UDP.
const HEADERS: (usize, usize) = (20 + 8, 40 + 8);

/// Why there is no connection, for a person.
pub(crate) fn not_connected(error: ConnectError, tried: &[Tried]) -> NotConnected {
    match error {
        ConnectError::NoAnswer | ConnectError::Unreachable | ConnectError::NoRoute => {
            NotConnected::NoAnswer(unanswered(error, tried))
        }
        ConnectError::WrongKey => NotConnected::OtherKey,
        ConnectError::Version => NotConnected::OtherVersion,
        ConnectError::Full => NotConnected::ReceiverFull,
        ConnectError::Impossible => NotConnected::ImpossibleKey,
    }
}

/// What most likely stands between sender and receiver, and what to do.
fn unanswered(error: ConnectError, tried: &[Tried]) -> String {
    let direct = || tried.iter().filter(|way| matches!(way.heard, Heard::Direct(_)));
    let all = |echo: Echo| direct().count() > 0 && direct().all(|way| way.heard == Heard::Direct(Some(echo)));
    let relay = tried.iter().find_map(|way| match way.heard {
        Heard::Relay(Some(RelayTrouble::Refused(reason))) => Some((way.address, reason)),
        _ => None,
    });
    let narrow = direct().find_map(|way| match way.heard {
        Heard::Direct(Some(Echo::TooNarrow(mtu))) => Some((way.address, mtu)),
        _ => None,
    });
    if let Some((address, mtu)) = narrow {
        let header = if address.is_ipv4() { HEADERS.0 } else { HEADERS.1 };
        let takes = mtu.map(|mtu| format!(" (it takes {mtu})")).unwrap_or_default();
        return format!(
            "the way to {address} is too narrow: byway needs packets of {} bytes{takes}; raise the MTU of the tunnel or \
             link on the way, or use a relay (--relay)",
            BASE_DATAGRAM + header
        );
    }
    if let Some((address, reason)) = relay {
        let advice = match reason {
            Reason::Destination => "its operator may allow them with --allow-destination",
            Reason::UnknownWord | Reason::Expired => {
                "get a new word from its operator, and start the receiver again with that"
            }
            Reason::NoConsent | Reason::ConsentExpired => {
                "start the receiver again, and use the ticket that it prints then"
            }
            _ => "another relay may help",
        };
        return format!("the receiver does not answer, and relay {address} refuses: {reason}; {advice}");
    }
    if all(Echo::PortUnreachable) {
        return "the receiver is not running: every address of the ticket answers that nothing listens on the port; \
                start `byway recv` there, and use the ticket that it prints"
            .into();
    }
    if all(Echo::Forbidden) {
        return "a firewall forbids to send to the receiver: let UDP out of this host".into();
    }
    let has_relay = tried.iter().any(|way| matches!(way.heard, Heard::Relay(_)));
    if direct().count() > 0 && direct().all(Tried::is_private) && !has_relay {
        return "the receiver does not answer, and every address of the ticket is private: none leads there from \
                another network; let it run with `--advertise` or a relay. In the same network: does it run, and does a \
                firewall let UDP through?"
            .into();
    }
    match error {
        ConnectError::NoAnswer => {
            "the receiver does not answer at any address of the ticket: is `byway recv` still running there, \
             and does a firewall let UDP through? A relay may help (--relay)"
        }
        _ => {
            "the receiver cannot be reached from here: no network leads to any address of the ticket; \
             a relay may help (--relay)"
        }
    }
    .into()
}

impl Heard {
    /// The same, as programs read it.
    #[must_use]
    pub const fn code(&self) -> &'static str {
        match self {
            Self::Direct(None) | Self::Relay(None) => "nothing",
            Self::Direct(Some(echo)) => match echo {
                Echo::PortUnreachable => "port_unreachable",
                Echo::HostUnreachable => "host_unreachable",
                Echo::NetworkUnreachable => "network_unreachable",
                Echo::Forbidden => "forbidden",
                Echo::TooNarrow(_) => "too_narrow",
                Echo::Other => "unreachable",
            },
            Self::Relay(Some(trouble)) => match trouble {
                RelayTrouble::Silent => "relay_silent",
                RelayTrouble::Refused(_) => "relay_refuses",
                RelayTrouble::PeerCannot => "relay_out_of_the_receivers_reach",
                RelayTrouble::NoRoute | RelayTrouble::Unfit(_) => "relay_unreachable",
            },
        }
    }
}

impl fmt::Display for Heard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = match self {
            Self::Direct(None) => "nothing came back",
            Self::Direct(Some(Echo::PortUnreachable)) => {
                "port unreachable: nothing listens there, or a firewall says so"
            }
            Self::Direct(Some(Echo::HostUnreachable)) => "host unreachable",
            Self::Direct(Some(Echo::NetworkUnreachable)) => "no network leads there",
            Self::Direct(Some(Echo::Forbidden)) => "a firewall forbids it",
            Self::Direct(Some(Echo::TooNarrow(Some(mtu)))) => {
                return write!(f, "packets of more than {mtu} bytes do not pass");
            }
            Self::Direct(Some(Echo::TooNarrow(None))) => "packets that byway needs do not pass",
            Self::Direct(Some(Echo::Other)) => "the system cannot send there",
            Self::Relay(None) => "nothing came back through it",
            Self::Relay(Some(trouble)) => return trouble.fmt(f),
        };
        f.write_str(text)
    }
}

impl fmt::Display for Tried {
    /// `192.0.2.7:4747: nothing came back`
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let relay = if matches!(self.heard, Heard::Relay(_)) { "relay " } else { "" };
        write!(f, "{relay}{}: {}", self.address, self.heard)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PUBLIC: &str = "198.51.100.7:4747";
    const PRIVATE: &str = "192.168.1.2:4747";

    fn direct(address: &str, echo: impl Into<Option<Echo>>) -> Tried {
        Tried { address: address.parse().unwrap(), heard: Heard::Direct(echo.into()) }
    }

    fn relay(trouble: impl Into<Option<RelayTrouble>>) -> Tried {
        Tried { address: "198.51.100.9:4748".parse().unwrap(), heard: Heard::Relay(trouble.into()) }
    }

    fn says(tried: &[Tried]) -> String {
        let error = not_connected(ConnectError::NoAnswer, tried);
        assert!(matches!(error, NotConnected::NoAnswer(_)));
        error.to_string()
    }

    #[test]
    fn every_failure_to_connect_says_what_to_do() {
        for error in [
            ConnectError::NoRoute,
            ConnectError::NoAnswer,
            ConnectError::Unreachable,
            ConnectError::Full,
            ConnectError::WrongKey,
            ConnectError::Version,
            ConnectError::Impossible,
        ] {
            let said = not_connected(error, &[]).to_string();
            assert!(said.contains(':'), "{said}");
        }
    }

    #[test]
    fn each_cause_has_a_sentence_of_its_own() {
        let refused = |reason| relay(RelayTrouble::Refused(reason));
        let closed = |address| direct(address, Echo::PortUnreachable);
        for (tried, words) in [
            (vec![closed(PUBLIC), closed(PRIVATE)], "the receiver is not running"),
            (vec![closed(PUBLIC), direct(PRIVATE, None)], "does a firewall let UDP through?"),
            (vec![direct(PUBLIC, None)], "does not answer at any address of the ticket"),
            (vec![direct(PRIVATE, None)], "every address of the ticket is private"),
            (vec![direct(PRIVATE, Echo::HostUnreachable)], "every address of the ticket is private"),
            (vec![direct(PRIVATE, None), relay(None)], "does not answer at any address of the ticket"),
            (
                vec![direct(PUBLIC, Echo::TooNarrow(Some(1_000)))],
                "needs packets of 1228 bytes (it takes 1000)",
            ),
            (vec![direct("[2001:db8::1]:1", Echo::TooNarrow(None))], "needs packets of 1248 bytes;"),
            (vec![direct(PUBLIC, Echo::Forbidden)], "let UDP out of this host"),
            (
                vec![direct(PRIVATE, None), refused(Reason::Destination)],
                "relay 198.51.100.9:4748 refuses: the relay does not send to such addresses; its operator may allow",
            ),
            (vec![closed(PUBLIC), refused(Reason::ConsentExpired)], "the receiver's consent has run out"),
        ] {
            let said = says(&tried);
            assert!(said.contains(words), "{words}: {said}");
        }
    }

    #[test]
    fn every_way_is_told_with_what_came_back() {
        assert_eq!(direct(PUBLIC, None).to_string(), "198.51.100.7:4747: nothing came back");
        let narrow = direct(PUBLIC, Echo::TooNarrow(Some(1_000)));
        assert_eq!(narrow.to_string(), "198.51.100.7:4747: packets of more than 1000 bytes do not pass");
        let silent = relay(RelayTrouble::Silent);
        assert_eq!(
            (silent.to_string(), silent.heard.code()),
            ("relay 198.51.100.9:4748: it does not answer".into(), "relay_silent",)
        );
    }
}
