//! Which targets (host and port) the exit of forwarded connections may dial. The rules judge each
//! address of a target's name separately; only allowed addresses are dialled. *Near* addresses
//! (loopback, link-local, multicast) must be named in a rule, because services there often need no
//! authentication.

use crate::forward_target::{Name, Target, TargetError, TargetHost, port_of};
use alloc::string::String;
use alloc::vec::Vec;
use byway_wire::prefix::{Prefix, PrefixError};
use core::fmt;
use core::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use core::str::FromStr;

/// Why a text is no rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RuleError {
    /// The host or the port is none.
    #[error("{0}")]
    Target(#[from] TargetError),
    /// The network is none.
    #[error("{0}")]
    Prefix(#[from] PrefixError),
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum HostPattern {
    /// Everybody but who is near.
    Any,
    Name(Name),
    /// All names below one: `*.lan`.
    Below(String),
    Network(Prefix),
}

/// What may be dialled: `HOST:PORT`, `*.lan:443`, `192.0.2.0/24:22` or `any`. The port `*` is every
/// port.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AllowRule {
    who: HostPattern,
    /// The port that is allowed. `None`: every port.
    port: Option<u16>,
}

/// What a rule says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DialDecision {
    /// The address may be dialled.
    Allowed,
    /// No rule allows it.
    Forbidden,
    /// A rule would allow it, but it is an address of the host or the link, which no rule names.
    Near,
}

impl AllowRule {
    /// What it says of dialling `address` for `target`.
    fn verdict(&self, target: &Target, address: IpAddr) -> DialDecision {
        if self.port.is_some_and(|port| port != target.port) {
            return DialDecision::Forbidden;
        }
        let (applies, names_near) = match (&self.who, &target.host) {
            (HostPattern::Any, _) => (true, false),
            (HostPattern::Name(name), TargetHost::Name(asked)) => {
                (name == asked, name.is_localhost() && address.is_loopback())
            }
            (HostPattern::Below(suffix), TargetHost::Name(asked)) => {
                (asked.as_str().ends_with(suffix.as_str()), false)
            }
            (HostPattern::Network(network), _) => (network.contains(address), is_near_all(network)),
            (HostPattern::Name(_) | HostPattern::Below(_), TargetHost::Address(_)) => (false, false),
        };
        match applies {
            false => DialDecision::Forbidden,
            true if is_near(address) && !names_near => DialDecision::Near,
            true => DialDecision::Allowed,
        }
    }
}

/// Networks that are near: the host itself, its link, and what is no single host.
const NEAR: [(IpAddr, u8); 9] = [
    (IpAddr::V4(Ipv4Addr::new(0, 0, 0, 0)), 8),
    (IpAddr::V4(Ipv4Addr::new(127, 0, 0, 0)), 8),
    (IpAddr::V4(Ipv4Addr::new(169, 254, 0, 0)), 16),
    (IpAddr::V4(Ipv4Addr::new(224, 0, 0, 0)), 4),
    (IpAddr::V4(Ipv4Addr::BROADCAST), 32),
    (IpAddr::V6(Ipv6Addr::UNSPECIFIED), 128),
    (IpAddr::V6(Ipv6Addr::LOCALHOST), 128),
    (IpAddr::V6(Ipv6Addr::new(0xfe80, 0, 0, 0, 0, 0, 0, 0)), 10),
    (IpAddr::V6(Ipv6Addr::new(0xff00, 0, 0, 0, 0, 0, 0, 0)), 8),
];

fn near() -> impl Iterator<Item = Prefix> {
    NEAR.into_iter().map(|(address, length)| Prefix::of(address, length))
}

fn is_near(address: IpAddr) -> bool {
    near().any(|network| network.contains(address))
}

fn is_near_all(network: &Prefix) -> bool {
    near().any(|near| near.covers(network))
}

impl FromStr for AllowRule {
    type Err = RuleError;

    fn from_str(text: &str) -> Result<Self, RuleError> {
        if text == "any" {
            return Ok(Self { who: HostPattern::Any, port: None });
        }
        let (host, port) = text.rsplit_once(':').ok_or(TargetError::NoPort)?;
        if host.contains(':') && !host.starts_with('[') && !host.contains('/') {
            return Err(TargetError::NoPort.into());
        }
        let port = match port {
            "*" => None,
            port => Some(port_of(port)?),
        };
        let who = match host.strip_prefix("*.") {
            _ if host == "any" => HostPattern::Any,
            Some(name) => {
                let mut suffix = String::from(".");
                suffix.push_str(name.parse::<Name>()?.as_str());
                HostPattern::Below(suffix)
            }
            None if host.contains('/') => {
                let inner = host.strip_prefix('[').and_then(|host| host.strip_suffix(']'));
                HostPattern::Network(inner.unwrap_or(host).parse()?)
            }
            None => match host.parse()? {
                // It would be shown as the rule for everybody.
                TargetHost::Name(name) if name.as_str() == "any" => return Err(TargetError::Host.into()),
                TargetHost::Name(name) => HostPattern::Name(name),
                TargetHost::Address(address) => HostPattern::Network(Prefix::of(address, 128)),
            },
        };
        Ok(Self { who, port })
    }
}

impl fmt::Display for AllowRule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.who {
            HostPattern::Any => f.write_str("any")?,
            HostPattern::Name(name) => f.write_str(name.as_str())?,
            HostPattern::Below(suffix) => write!(f, "*{suffix}")?,
            HostPattern::Network(network) if network.address().is_ipv6() => write!(f, "[{network}]")?,
            HostPattern::Network(network) => network.fmt(f)?,
        }
        match (self.port, &self.who) {
            (Some(port), _) => write!(f, ":{port}"),
            (None, HostPattern::Any) => Ok(()),
            (None, _) => f.write_str(":*"),
        }
    }
}

/// All that an exit may dial.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Allow(Vec<AllowRule>);

impl Allow {
    /// What any of these rules allows.
    #[must_use]
    pub const fn new(rules: Vec<AllowRule>) -> Self {
        Self(rules)
    }

    /// Whether nothing is allowed.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The rules in the order of the options.
    #[must_use]
    pub fn rules(&self) -> &[AllowRule] {
        &self.0
    }

    /// Whether the exit may look up the name of a target. It may only if a rule could allow one of
    /// the name's addresses. Otherwise anyone could use the exit to find out which names exist in
    /// its network.
    #[must_use]
    pub fn may_look_up(&self, target: &Target, name: &Name) -> bool {
        let could = |rule: &AllowRule| match &rule.who {
            HostPattern::Any | HostPattern::Network(_) => true,
            HostPattern::Name(own) => own == name,
            HostPattern::Below(suffix) => name.as_str().ends_with(suffix.as_str()),
        };
        self.0.iter().any(|rule| rule.port.is_none_or(|port| port == target.port) && could(rule))
    }

    /// Whether this address may be dialled for a target, whose name it has.
    #[must_use]
    pub fn verdict(&self, target: &Target, address: IpAddr) -> DialDecision {
        let address = address.to_canonical();
        let verdicts = || self.0.iter().map(|rule| rule.verdict(target, address));
        if verdicts().any(|verdict| verdict == DialDecision::Allowed) {
            return DialDecision::Allowed;
        }
        if verdicts().any(|verdict| verdict == DialDecision::Near) {
            DialDecision::Near
        } else {
            DialDecision::Forbidden
        }
    }

    /// Of the addresses of a target, those that may be dialled, in their order.
    ///
    /// # Errors
    /// None may: the mildest verdict.
    pub fn choose(&self, target: &Target, addresses: &[IpAddr]) -> Result<Vec<SocketAddr>, DialDecision> {
        let is_allowed = |address: &&IpAddr| self.verdict(target, **address) == DialDecision::Allowed;
        let allowed = addresses.iter().filter(is_allowed);
        let allowed: Vec<_> =
            allowed.map(|address| SocketAddr::new(address.to_canonical(), target.port)).collect();
        if !allowed.is_empty() {
            return Ok(allowed);
        }
        let near = addresses.iter().any(|address| self.verdict(target, *address) == DialDecision::Near);
        Err(if near { DialDecision::Near } else { DialDecision::Forbidden })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use DialDecision::{Allowed, Forbidden, Near};
    use std::string::ToString as _;

    fn allow(rules: &[&str]) -> Allow {
        Allow::new(rules.iter().map(|rule| rule.parse().unwrap()).collect())
    }

    fn verdict(rules: &[&str], target: &str, address: &str) -> DialDecision {
        allow(rules).verdict(&target.parse().unwrap(), address.parse().unwrap())
    }

    #[test]
    fn a_rule_allows_what_it_says() {
        for (rule, target, address, expected) in [
            ("localhost:873", "localhost:873", "127.0.0.1", Allowed),
            ("localhost:873", "localhost:873", "::1", Allowed),
            ("localhost:873", "localhost:874", "127.0.0.1", Forbidden),
            ("localhost:873", "127.0.0.1:873", "127.0.0.1", Forbidden),
            // Whoever answers for the name decides what it means, but never that it means what is
            // near.
            ("localhost:873", "localhost:873", "192.0.2.1", Allowed),
            ("localhost:873", "localhost:873", "169.254.169.254", Near),
            ("db.lan:5432", "DB.lan:5432", "10.0.0.5", Allowed),
            ("db.lan:5432", "db.lan:5432", "127.0.0.1", Near),
            ("*.lan:443", "a.lan:443", "10.0.0.5", Allowed),
            ("*.lan:443", "a.b.lan:443", "10.0.0.5", Allowed),
            ("*.lan:443", "lan:443", "10.0.0.5", Forbidden),
            ("*.lan:443", "evil-lan:443", "10.0.0.5", Forbidden),
            ("*.lan:443", "a.lan:443", "::ffff:127.0.0.1", Near),
            ("*.lan:443", "10.0.0.5:443", "10.0.0.5", Forbidden),
            ("127.0.0.1:5432", "127.0.0.1:5432", "127.0.0.1", Allowed),
            ("127.0.0.1:5432", "localhost:5432", "127.0.0.1", Allowed),
            ("127.0.0.1:5432", "localhost:5432", "::1", Forbidden),
            ("10.0.0.0/8:22", "10.1.2.3:22", "10.1.2.3", Allowed),
            ("10.0.0.0/8:22", "host.lan:22", "10.1.2.3", Allowed),
            ("10.0.0.0/8:22", "host.lan:22", "11.1.2.3", Forbidden),
            ("10.0.0.0/8:*", "10.1.2.3:1", "10.1.2.3", Allowed),
            ("0.0.0.0/0:22", "127.0.0.1:22", "127.0.0.1", Near),
            ("0.0.0.0/0:22", "0.0.0.0:22", "0.0.0.0", Near),
            ("127.0.0.0/8:22", "127.0.0.1:22", "127.0.0.1", Allowed),
            ("[2001:db8::/32]:22", "[2001:db8::1]:22", "2001:db8::1", Allowed),
            ("2001:db8::/32:22", "[2001:db8::1]:22", "2001:db8::1", Allowed),
            ("any", "example.org:25", "192.0.2.1", Allowed),
            ("any:80", "example.org:25", "192.0.2.1", Forbidden),
            ("any", "example.org:80", "169.254.169.254", Near),
            ("any", "[fe80::1]:80", "fe80::1", Near),
            ("any", "[::1]:80", "::1", Near),
            ("any", "[ff02::1]:80", "ff02::1", Near),
            ("[::1]:80", "[::1]:80", "::1", Allowed),
        ] {
            assert_eq!(verdict(&[rule], target, address), expected, "{rule} for {target} at {address}");
        }
        assert_eq!(verdict(&[], "a:1", "192.0.2.1"), Forbidden);
        assert_eq!(verdict(&["any", "127.0.0.1:80"], "127.0.0.1:80", "127.0.0.1"), Allowed);
    }

    #[test]
    fn only_addresses_that_are_allowed_are_dialled() {
        let rules = allow(&["*.lan:443", "10.0.0.0/8:22"]);
        let addresses = ["127.0.0.1", "10.0.0.1", "::ffff:192.0.2.1"].map(|it| it.parse().unwrap());
        let chosen = |target: &str| rules.choose(&target.parse().unwrap(), &addresses);
        assert_eq!(
            chosen("a.lan:443"),
            Ok(["10.0.0.1:443", "192.0.2.1:443"].map(|it| it.parse().unwrap()).to_vec())
        );
        assert_eq!(chosen("b:22"), Ok([SocketAddr::from(([10, 0, 0, 1], 22))].to_vec()));
        assert_eq!(chosen("b:23"), Err(Forbidden));
        assert_eq!(rules.choose(&"a.lan:443".parse().unwrap(), &addresses[..1]), Err(Near));
        let looked_up = |target: &str| {
            let name = target.split(':').next().unwrap().parse().unwrap();
            rules.may_look_up(&target.parse().unwrap(), &name)
        };
        assert!(looked_up("a.lan:443") && looked_up("b:22") && !looked_up("b:443") && !looked_up("b:23"));
    }

    #[test]
    fn rules_are_read_and_shown() {
        for (text, shown) in [
            ("localhost:873", "localhost:873"),
            ("*.LAN:443", "*.lan:443"),
            ("10.0.0.0/8:22", "10.0.0.0/8:22"),
            ("2001:db8::/32:22", "[2001:db8::/32]:22"),
            ("any", "any"),
            ("any:80", "any:80"),
            ("a:*", "a:*"),
        ] {
            assert_eq!(text.parse::<AllowRule>().unwrap().to_string(), shown);
        }
        for text in [
            "",
            "ANY:2",
            "any.:2",
            "a",
            "a:0",
            "*:80",
            "*.:80",
            "*a.lan:80",
            "10.0.0.1/8:22",
            "10.0.0.0/33:22",
            "::1:80",
            "[::1]",
        ] {
            assert!(text.parse::<AllowRule>().is_err(), "{text}");
        }
    }
}
