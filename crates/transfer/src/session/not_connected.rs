//! Why there is no connection, for a person: by what came back on each way.

use crate::error::NotConnected;
use crate::session::connect_attempts::{AttemptPlace, AttemptReply, AttemptResult};
use crate::session::name_lookup::NoAddress;
use crate::session::no_answer::NoAnswer;
use byway_engine::{ConnectError, RelayTrouble};
use byway_net::IcmpError;
use std::fmt;

/// The error to report when no connection could be made, by the reply on each path.
#[must_use]
pub fn not_connected(error: ConnectError, tried: &[AttemptResult]) -> NotConnected {
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

/// The most probable reason why the receiver does not answer, and the first name without an
/// address.
fn unanswered(error: ConnectError, tried: &[AttemptResult]) -> NoAnswer {
    let unresolved = tried.iter().find_map(|way| match (&way.place, &way.heard) {
        (AttemptPlace::Name(host), AttemptReply::NoAddress(why)) => Some((host.name.clone(), why.clone())),
        _ => None,
    });
    let Some((name, why)) = unresolved else { return unanswered_at_addresses(error, tried) };
    let has_address = tried.iter().any(|way| way.address().is_some());
    let rest = has_address.then(|| Box::new(unanswered_at_addresses(error, tried)));
    NoAnswer::Unresolved { name, why, rest }
}

fn unanswered_at_addresses(error: ConnectError, tried: &[AttemptResult]) -> NoAnswer {
    let direct = || tried.iter().filter(|way| matches!(way.heard, AttemptReply::Direct(_)));
    let all = |echo: IcmpError| {
        direct().count() > 0 && direct().all(|way| way.heard == AttemptReply::Direct(Some(echo)))
    };
    let narrow = direct().find_map(|way| match way.heard {
        AttemptReply::Direct(Some(IcmpError::TooNarrow(mtu))) => {
            way.address().map(|address| NoAnswer::TooNarrow { address, mtu })
        }
        _ => None,
    });
    let refused = tried.iter().find_map(|way| match way.heard {
        AttemptReply::Relay(Some(RelayTrouble::Refused(reason))) => {
            way.address().map(|relay| NoAnswer::RelayRefuses { relay, reason })
        }
        _ => None,
    });
    let other = tried.iter().find(|way| way.heard == AttemptReply::OtherOverTcp);
    let other = other.and_then(AttemptResult::address).map(|address| NoAnswer::OtherOverTcp { address });
    if let Some(found) = narrow.or(refused).or(other) {
        return found;
    }
    let has_relay = tried.iter().any(|way| matches!(way.heard, AttemptReply::Relay(_)));
    if all(IcmpError::PortUnreachable) {
        NoAnswer::NotRunning
    } else if all(IcmpError::Forbidden) {
        NoAnswer::Firewall
    } else if direct().count() > 0 && direct().all(AttemptResult::is_private) && !has_relay {
        NoAnswer::PrivateAddresses
    } else if error == ConnectError::NoAnswer {
        NoAnswer::Silent
    } else {
        NoAnswer::NoRoute
    }
}

impl AttemptReply {
    /// The reply's code, for programs.
    #[must_use]
    pub const fn code(&self) -> &'static str {
        match self {
            Self::Direct(None) | Self::Relay(None) => "nothing",
            Self::OtherOverTcp => "other_over_tcp",
            Self::NoAddress(NoAddress::Unknown(_)) => "name_without_address",
            Self::NoAddress(NoAddress::Forbidden(_)) => "name_of_no_host",
            Self::NoAddress(NoAddress::Unanswered) => "resolver_silent",
            Self::Direct(Some(echo)) => match echo {
                IcmpError::PortUnreachable => "port_unreachable",
                IcmpError::HostUnreachable => "host_unreachable",
                IcmpError::NetworkUnreachable => "network_unreachable",
                IcmpError::Forbidden => "forbidden",
                IcmpError::TooNarrow(_) => "too_narrow",
                IcmpError::Other => "unreachable",
            },
            Self::Relay(Some(trouble)) => match trouble {
                RelayTrouble::Silent => "relay_silent",
                RelayTrouble::Refused(_) => "relay_refuses",
                RelayTrouble::PeerCannot => "relay_out_of_the_receivers_reach",
                RelayTrouble::TooMany | RelayTrouble::Busy => "too_many_relays",
                RelayTrouble::NoRoute | RelayTrouble::Unfit(_) => "relay_unreachable",
            },
        }
    }
}

impl fmt::Display for AttemptReply {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = match self {
            Self::Direct(None) => "nothing came back",
            Self::OtherOverTcp => "something else answers over TCP",
            Self::Direct(Some(IcmpError::PortUnreachable)) => {
                "port unreachable: nothing listens there, or a firewall says so"
            }
            Self::Direct(Some(IcmpError::HostUnreachable)) => "host unreachable",
            Self::Direct(Some(IcmpError::NetworkUnreachable)) => "no network leads there",
            Self::Direct(Some(IcmpError::Forbidden)) => "a firewall forbids it",
            Self::Direct(Some(IcmpError::TooNarrow(Some(mtu)))) => {
                return write!(f, "packets of more than {mtu} bytes do not pass");
            }
            Self::Direct(Some(IcmpError::TooNarrow(None))) => "packets that byway needs do not pass",
            Self::Direct(Some(IcmpError::Other)) => "the system cannot send there",
            Self::Relay(None) => "nothing came back through it",
            Self::Relay(Some(trouble)) => return trouble.fmt(f),
            Self::NoAddress(why) => return why.fmt(f),
        };
        f.write_str(text)
    }
}

impl fmt::Display for AttemptResult {
    /// `192.0.2.7:4747: nothing came back`
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let relay = if matches!(self.heard, AttemptReply::Relay(_)) { "relay " } else { "" };
        write!(f, "{relay}{}: {}", self.place, self.heard)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::host_name::NamedAddress;
    use byway_wire::relay::Reason;
    use std::net::SocketAddr;

    const PUBLIC: &str = "198.51.100.7:4747";
    const PRIVATE: &str = "192.168.1.2:4747";

    fn direct(address: &str, echo: impl Into<Option<IcmpError>>) -> AttemptResult {
        let address: SocketAddr = address.parse().unwrap();
        AttemptResult { place: address.into(), heard: AttemptReply::Direct(echo.into()) }
    }

    fn relay(trouble: impl Into<Option<RelayTrouble>>) -> AttemptResult {
        AttemptResult {
            place: SocketAddr::from(([198, 51, 100, 9], 4748)).into(),
            heard: AttemptReply::Relay(trouble.into()),
        }
    }

    fn says(tried: &[AttemptResult]) -> String {
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
        let closed = |address| direct(address, IcmpError::PortUnreachable);
        let portal = |address: &str| AttemptResult {
            place: address.parse::<SocketAddr>().unwrap().into(),
            heard: AttemptReply::OtherOverTcp,
        };
        for (tried, words) in [
            (vec![closed(PUBLIC), closed(PRIVATE)], "the receiver is not running"),
            (vec![closed(PUBLIC), direct(PRIVATE, None)], "does a firewall let UDP through?"),
            (vec![direct(PUBLIC, None)], "does not answer at any address of the ticket"),
            (vec![direct(PRIVATE, None)], "every address of the ticket is private"),
            (vec![direct(PRIVATE, IcmpError::HostUnreachable)], "every address of the ticket is private"),
            (vec![direct(PRIVATE, None), relay(None)], "does not answer at any address of the ticket"),
            (
                vec![direct(PUBLIC, IcmpError::TooNarrow(Some(1_000)))],
                "needs packets of 1228 bytes (it takes 1000)",
            ),
            (vec![direct("[2001:db8::1]:1", IcmpError::TooNarrow(None))], "needs packets of 1248 bytes;"),
            (vec![direct(PUBLIC, IcmpError::Forbidden)], "let UDP out of this host"),
            (
                vec![direct(PRIVATE, None), refused(Reason::Destination)],
                "relay 198.51.100.9:4748 refuses: the relay does not send to such addresses; its operator may allow",
            ),
            (vec![portal(PRIVATE), direct(PUBLIC, None)], "answers over TCP at 192.168.1.2:4747"),
            (vec![direct(PRIVATE, None), portal(PUBLIC)], "a captive portal or a proxy"),
            (vec![closed(PUBLIC), refused(Reason::ConsentExpired)], "the receiver's consent has run out"),
        ] {
            let said = says(&tried);
            assert!(said.contains(words), "{words}: {said}");
        }
    }

    #[test]
    fn a_name_without_an_address_is_told_with_what_came_back_elsewhere() {
        let host = NamedAddress { name: "nas.example.org".parse().unwrap(), port: 4747 };
        let name = AttemptResult::of_name(host, NoAddress::Unknown("it is unknown".into()));
        assert_eq!(name.to_string(), "nas.example.org:4747: no address: it is unknown");
        let alone = says(std::slice::from_ref(&name));
        assert!(alone.contains("nas.example.org: no address: it is unknown;"), "{alone}");
        let both = says(&[direct(PUBLIC, None), name]);
        assert!(both.contains("does not answer at any address of the ticket"), "{both}");
        assert!(both.ends_with(". And nas.example.org: no address: it is unknown"), "{both}");
    }

    #[test]
    fn every_way_is_told_with_what_came_back() {
        assert_eq!(direct(PUBLIC, None).to_string(), "198.51.100.7:4747: nothing came back");
        let narrow = direct(PUBLIC, IcmpError::TooNarrow(Some(1_000)));
        assert_eq!(narrow.to_string(), "198.51.100.7:4747: packets of more than 1000 bytes do not pass");
        let silent = relay(RelayTrouble::Silent);
        assert_eq!(
            (silent.to_string(), silent.heard.code()),
            ("relay 198.51.100.9:4748: it does not answer".into(), "relay_silent",)
        );
    }
}
