//! Which targets (host and port) the exit of forwarded connections may dial. The rules judge each
//! address of a target's name separately; only allowed addresses are dialled. *Near* addresses must
//! be named in a rule, because services there often need no authentication: loopback, all addresses
//! of the host itself, its link, and the metadata services of clouds.

use crate::forward_target::{Name, Target, TargetError, TargetHost, port_of};
use alloc::string::String;
use alloc::vec::Vec;
use byway_wire::cidr::{Prefix, PrefixError};
use core::fmt;
use core::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use core::str::FromStr;

/// Why a text is no rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RuleError {
    /// The host or the port is none.
    #[error("{0}")]
    Target(#[from] TargetError),
    /// The network in a rule is no valid prefix.
    #[error("{0}")]
    Prefix(#[from] PrefixError),
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum HostPattern {
    /// Every host, except near addresses and those of the exit itself.
    Any,
    Name(Name),
    /// All host names below one domain: `*.lan`.
    Below(String),
    Network(Prefix),
}

/// A rule for targets: `HOST:PORT`, `*.lan:443`, `192.0.2.0/24:22` or `any`. The port `*` is every
/// port.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AllowRule {
    host: HostPattern,
    /// The port that is allowed. `None`: every port.
    port: Option<u16>,
}

/// The decision of one rule about dialling an address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DialDecision {
    /// The address may be dialled.
    Allowed,
    /// No rule allows the address.
    Forbidden,
    /// A rule would allow the address, but it is one of the host or the link, which no rule names.
    Near,
}

/// A function that returns whether an address is one of the host's own.
pub type IsOwn<'a> = &'a dyn Fn(IpAddr) -> bool;

impl AllowRule {
    /// Returns this rule's decision about dialling `address` for `target`.
    fn verdict(&self, target: &Target, address: IpAddr, is_own: IsOwn<'_>) -> DialDecision {
        let inner = embedded_v4(address).map(IpAddr::V4);
        // Whoever translates such an address leads to the one inside.
        let leads_to = inner.unwrap_or(address);
        if self.port.is_some_and(|port| port != target.port) {
            return DialDecision::Forbidden;
        }
        let (applies, names_near) = match (&self.host, &target.host) {
            (HostPattern::Any, _) => (true, false),
            (HostPattern::Name(name), TargetHost::Name(asked)) => {
                (name == asked, name.is_localhost() && address.is_loopback())
            }
            (HostPattern::Below(suffix), TargetHost::Name(asked)) => {
                (asked.as_str().ends_with(suffix.as_str()), false)
            }
            (HostPattern::Network(network), _) => {
                let names = is_near_all(network) || is_one_host(network);
                (network.contains(leads_to) || network.contains(address), names)
            }
            (HostPattern::Name(_) | HostPattern::Below(_), TargetHost::Address(_)) => (false, false),
        };
        match applies {
            false => DialDecision::Forbidden,
            true if names_near => DialDecision::Allowed,
            true if [leads_to, address].into_iter().any(|it| is_near(it) || is_own(it)) => DialDecision::Near,
            true => DialDecision::Allowed,
        }
    }
}

/// Near networks: the host itself, its link, addresses of no single host, and addresses at which
/// clouds offer services to each host.
const NEAR_NETWORKS: [(IpAddr, u8); 19] = [
    (IpAddr::V4(Ipv4Addr::new(0, 0, 0, 0)), 8),
    (IpAddr::V4(Ipv4Addr::new(127, 0, 0, 0)), 8),
    (IpAddr::V4(Ipv4Addr::new(169, 254, 0, 0)), 16),
    (IpAddr::V4(Ipv4Addr::new(224, 0, 0, 0)), 4),
    (IpAddr::V4(Ipv4Addr::BROADCAST), 32),
    (IpAddr::V6(Ipv6Addr::UNSPECIFIED), 128),
    (IpAddr::V6(Ipv6Addr::LOCALHOST), 128),
    (IpAddr::V6(Ipv6Addr::new(0xfe80, 0, 0, 0, 0, 0, 0, 0)), 10),
    (IpAddr::V6(Ipv6Addr::new(0xff00, 0, 0, 0, 0, 0, 0, 0)), 8),
    // Site-local addresses, deprecated by RFC 3879.
    (IpAddr::V6(Ipv6Addr::new(0xfec0, 0, 0, 0, 0, 0, 0, 0)), 10),
    // NAT64 of a site's own (RFC 8215): where its IPv4 address stands is the site's affair.
    (IpAddr::V6(Ipv6Addr::new(0x64, 0xff9b, 1, 0, 0, 0, 0, 0)), 48),
    // Alibaba Cloud, and the resolver of Tailscale.
    (IpAddr::V4(Ipv4Addr::new(100, 100, 100, 200)), 32),
    (IpAddr::V4(Ipv4Addr::new(100, 100, 100, 100)), 32),
    // Azure, Oracle.
    (IpAddr::V4(Ipv4Addr::new(168, 63, 129, 16)), 32),
    (IpAddr::V4(Ipv4Addr::new(192, 0, 0, 192)), 32),
    // AWS, Google, Oracle, Scaleway.
    (IpAddr::V6(Ipv6Addr::new(0xfd00, 0xec2, 0, 0, 0, 0, 0, 0)), 32),
    (IpAddr::V6(Ipv6Addr::new(0xfd20, 0xce, 0, 0, 0, 0, 0, 0x254)), 128),
    (IpAddr::V6(Ipv6Addr::new(0xfd00, 0xc1, 0, 0, 0, 0, 0xa9fe, 0xa9fe)), 128),
    (IpAddr::V6(Ipv6Addr::new(0xfd00, 0x42, 0, 0, 0, 0, 0, 0x42)), 128),
];

/// Returns the IPv4 address to which an IPv6 address leads through a translator.
///
/// | form | source |
/// |---|---|
/// | IPv4-compatible | RFC 4291, section 2.5.5.1 |
/// | IPv4-translated | RFC 2765 |
/// | NAT64 | RFC 6052, section 2.1 |
/// | 6to4 | RFC 3056 |
/// | Teredo: the client's, inverted | RFC 4380, section 4 |
/// | ISATAP, in any prefix | RFC 5214, section 6.1 |
fn embedded_v4(address: IpAddr) -> Option<Ipv4Addr> {
    let IpAddr::V6(address) = address else { return None };
    let of = |high: u16, low: u16| Ipv4Addr::from_bits(u32::from(high) << 16 | u32::from(low));
    match address.segments() {
        // `::` and `::1` are no such addresses.
        [0, 0, 0, 0, 0, 0, 0, 0 | 1] => None,
        [0, 0, 0, 0, 0, 0, high, low]
        | [0, 0, 0, 0, 0xffff, 0, high, low]
        | [0x64, 0xff9b, 0, 0, 0, 0, high, low]
        | [0x2002, high, low, ..]
        | [_, _, _, _, 0 | 0x100 | 0x200 | 0x300, 0x5efe, high, low] => Some(of(high, low)),
        [0x2001, 0, _, _, _, _, high, low] => Some(of(!high, !low)),
        _ => None,
    }
}

fn near() -> impl Iterator<Item = Prefix> {
    NEAR_NETWORKS.into_iter().map(|(address, length)| Prefix::of(address, length))
}

fn is_near(address: IpAddr) -> bool {
    near().any(|network| network.contains(address))
}

fn is_near_all(network: &Prefix) -> bool {
    near().any(|near| near.covers(network))
}

/// Whether a network is a single address. A near address must be named so.
fn is_one_host(network: &Prefix) -> bool {
    network.length() == if network.address().is_ipv4() { 32 } else { 128 }
}

impl FromStr for AllowRule {
    type Err = RuleError;

    fn from_str(text: &str) -> Result<Self, RuleError> {
        if text == "any" {
            return Ok(Self { host: HostPattern::Any, port: None });
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
        Ok(Self { host: who, port })
    }
}

impl fmt::Display for AllowRule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.host {
            HostPattern::Any => f.write_str("any")?,
            HostPattern::Name(name) => f.write_str(name.as_str())?,
            HostPattern::Below(suffix) => write!(f, "*{suffix}")?,
            HostPattern::Network(network) if network.address().is_ipv6() => write!(f, "[{network}]")?,
            HostPattern::Network(network) => network.fmt(f)?,
        }
        match (self.port, &self.host) {
            (Some(port), _) => write!(f, ":{port}"),
            (None, HostPattern::Any) => Ok(()),
            (None, _) => f.write_str(":*"),
        }
    }
}

/// All rules about what an exit may dial.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Allow(Vec<AllowRule>);

impl Allow {
    /// Makes the rules of an exit. A target is allowed if any rule allows it.
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
        let could = |rule: &AllowRule| match &rule.host {
            HostPattern::Any | HostPattern::Network(_) => true,
            HostPattern::Name(own) => own == name,
            HostPattern::Below(suffix) => name.as_str().ends_with(suffix.as_str()),
        };
        self.0.iter().any(|rule| rule.port.is_none_or(|port| port == target.port) && could(rule))
    }

    /// Whether this address may be dialled for `target`, whose name resolved to the address.
    /// `is_own` is called only for addresses that a rule allows.
    #[must_use]
    pub fn verdict(&self, target: &Target, address: IpAddr, is_own: IsOwn<'_>) -> DialDecision {
        let address = address.to_canonical();
        let verdicts = || self.0.iter().map(|rule| rule.verdict(target, address, is_own));
        if verdicts().any(|verdict| verdict == DialDecision::Allowed) {
            return DialDecision::Allowed;
        }
        if verdicts().any(|verdict| verdict == DialDecision::Near) {
            DialDecision::Near
        } else {
            DialDecision::Forbidden
        }
    }

    /// Returns the addresses of a target that may be dialled, in their order.
    ///
    /// # Errors
    /// None may: the mildest verdict.
    pub fn choose(
        &self,
        target: &Target,
        addresses: &[IpAddr],
        is_own: IsOwn<'_>,
    ) -> Result<Vec<SocketAddr>, DialDecision> {
        let (mut allowed, mut near) = (Vec::new(), false);
        for address in addresses {
            match self.verdict(target, *address, is_own) {
                DialDecision::Allowed => allowed.push(SocketAddr::new(address.to_canonical(), target.port)),
                DialDecision::Near => near = true,
                DialDecision::Forbidden => {}
            }
        }
        if !allowed.is_empty() {
            return Ok(allowed);
        }
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

    /// Whether an address is the host's own, which has two in these tests.
    fn is_own(address: IpAddr) -> bool {
        address.is_loopback()
            || ["10.0.0.77", "2001:db8::77"].map(|it| it.parse().unwrap()).contains(&address)
    }

    fn verdict(rules: &[&str], target: &str, address: &str) -> DialDecision {
        allow(rules).verdict(&target.parse().unwrap(), address.parse().unwrap(), &is_own)
    }

    #[test]
    fn the_hosts_own_addresses_are_reached_only_by_a_rule_that_names_them() {
        for (rule, target, address, expected) in [
            ("any", "10.0.0.77:80", "10.0.0.77", Near),
            ("any:80", "a.lan:80", "10.0.0.77", Near),
            ("10.0.0.0/8:*", "10.0.0.77:80", "10.0.0.77", Near),
            ("*.lan:80", "host.lan:80", "10.0.0.77", Near),
            ("host.lan:80", "host.lan:80", "2001:db8::77", Near),
            ("[2001:db8::/32]:80", "[2001:db8::77]:80", "2001:db8::77", Near),
            ("any", "[::ffff:10.0.0.77]:80", "::ffff:10.0.0.77", Near),
            ("any", "[64:ff9b::a00:4d]:80", "64:ff9b::a00:4d", Near),
            ("10.0.0.77:80", "10.0.0.77:80", "10.0.0.77", Allowed),
            ("10.0.0.77:80", "host.lan:80", "10.0.0.77", Allowed),
            ("10.0.0.77:80", "10.0.0.77:81", "10.0.0.77", Forbidden),
            ("[2001:db8::77]:80", "[2001:db8::77]:80", "2001:db8::77", Allowed),
            ("10.0.0.0/8:*", "10.0.0.78:80", "10.0.0.78", Allowed),
        ] {
            assert_eq!(verdict(&[rule], target, address), expected, "{rule} for {target} at {address}");
        }
    }

    #[test]
    fn metadata_services_and_addresses_that_hide_others_are_near() {
        for near in [
            "100.100.100.200",
            "100.100.100.100",
            "168.63.129.16",
            "192.0.0.192",
            "fd00:ec2::254",
            "fd00:ec2::253",
            "fd20:ce::254",
            "fd00:c1::a9fe:a9fe",
            "fd00:42::42",
            "fec0::1",
            "feff::1",
            "64:ff9b::7f00:1",
            "64:ff9b::a9fe:a9fe",
            "64:ff9b::6464:64c8",
            "64:ff9b:1::a00:5",
            "2002:7f00:1::1",
            "2002:a9fe:a9fe::",
            "::127.0.0.1",
            "::169.254.169.254",
            "::ffff:169.254.169.254",
            "::ffff:0:7f00:1",
            "2001:0:c000:201:8000:63bf:80ff:fffe",
            "2001:0:c000:201:0:63bf:5601:5601",
            "2001:db8:1:2:0:5efe:7f00:1",
            "2001:db8:1:2:200:5efe:a9fe:a9fe",
            "fd00::5efe:6464:64c8",
            "2001:db8:1:2:300:5efe:a00:4d",
        ] {
            let is_v6 = near.parse::<IpAddr>().unwrap().to_canonical().is_ipv6();
            for rule in ["any", if is_v6 { "[::/0]:80" } else { "0.0.0.0/0:80" }] {
                assert_eq!(verdict(&[rule], "a.lan:80", near), Near, "{rule} at {near}");
            }
        }
        for (rule, address, expected) in [
            ("any", "64:ff9b::5db8:d822", Allowed),
            ("any", "2002:5db8:d822::1", Allowed),
            ("any", "2001:0:c000:201:8000:63bf:a247:27dd", Allowed),
            ("any", "2001:1:c000:201:8000:63bf:80ff:fffe", Allowed),
            ("any", "2001:db8:1:2:200:5efe:5db8:d822", Allowed),
            ("any", "2001:db8:1:2:200:5eff:7f00:1", Allowed),
            ("any", "100.100.100.201", Allowed),
            ("any", "fd00:ec3::254", Allowed),
            ("10.0.0.0/8:80", "64:ff9b::a00:5", Allowed),
            ("10.0.0.0/8:80", "64:ff9b::b00:5", Forbidden),
            ("[64:ff9b::/96]:80", "64:ff9b::a00:5", Allowed),
            ("[64:ff9b::/96]:80", "64:ff9b::7f00:5", Near),
            ("[64:ff9b::7f00:5]:80", "64:ff9b::7f00:5", Allowed),
            ("100.100.100.200:80", "100.100.100.200", Allowed),
            ("100.64.0.0/10:80", "100.100.100.200", Near),
        ] {
            assert_eq!(verdict(&[rule], "a.lan:80", address), expected, "{rule} at {address}");
        }
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
        let chosen = |target: &str| rules.choose(&target.parse().unwrap(), &addresses, &is_own);
        assert_eq!(
            chosen("a.lan:443"),
            Ok(["10.0.0.1:443", "192.0.2.1:443"].map(|it| it.parse().unwrap()).to_vec())
        );
        assert_eq!(chosen("b:22"), Ok([SocketAddr::from(([10, 0, 0, 1], 22))].to_vec()));
        assert_eq!(chosen("b:23"), Err(Forbidden));
        assert_eq!(rules.choose(&"a.lan:443".parse().unwrap(), &addresses[..1], &is_own), Err(Near));
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
