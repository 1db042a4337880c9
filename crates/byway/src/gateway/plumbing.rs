//! What a gateway puts into the kernel, and takes out again: a table of nftables that marks packets which may be of background
//! flows, and a rule of routing by which marked packets go to the TUN device.
//!
//! What is installed is a pure function of the configuration ([`Plan`]); [`install`] puts it in place and [`system`] says what about
//! this host stands in the way.
//!
//! **Fail-open.** The route lives in a table of its own and goes by the TUN device. When the process dies, however it does, the kernel
//! takes the device away and with it the route; the table is empty then, the search for a route goes on in the main table, and the
//! marks mean nothing. With `fail-closed` a second route in that table, of the lowest preference, says *unreachable*.
//!
//! **Leftovers** of a gateway that was killed are of no harm. They carry our names and numbers ([`PROTOCOL`]), so that they are known
//! again and replaced by the next start, or removed by [`remove`].
//!
//! **Loops** cannot be: what is marked is TCP that comes in by a device other than the TUN; a session's packets are UDP, and
//! are made by this host.

mod install;
mod ruleset;
pub mod system;

pub use install::{Found, install, installed, present, reload, remove};
pub use ruleset::ruleset;

use super::config::{GatewayConfig, TUN};
use byway_gateway::Prefix;
use std::fmt::Write as _;

/// Who installed a route or a rule of routing ("b"; see `rtnetlink(7)`).
pub const PROTOCOL: u8 = 98;
/// The bits of the mark that are ours; the others are left to whoever else marks packets.
pub const MARK_MASK: u32 = 0xffff;
/// The metric of the unreachable route: nothing comes after it.
const LAST: u32 = 4_278_198_272;

/// The address of the TUN device. Nobody speaks to it; without one, the kernel's check of sources takes none of what comes by the device
/// (loose or strict, `fib_validate_source`; RFC 3704, section 2.4). Link-local (RFC 3927): it is never looked up elsewhere.
const ADDRESS: &str = "169.254.98.119/32";

/// A version of IP.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Family {
    /// IPv4.
    V4,
    /// IPv6.
    V6,
}

impl Family {
    /// The flag of `ip`.
    #[must_use]
    pub const fn flag(self) -> &'static str {
        match self {
            Self::V4 => "-4",
            Self::V6 => "-6",
        }
    }

    /// Whether a prefix is of this version.
    #[must_use]
    pub const fn has(self, prefix: &Prefix) -> bool {
        matches!(
            (self, prefix.address()),
            (Self::V4, std::net::IpAddr::V4(_)) | (Self::V6, std::net::IpAddr::V6(_))
        )
    }
}

/// What is to be installed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Plan {
    /// The TUN device.
    pub tun: String,
    /// The name of the table of nftables, in the family `inet`.
    pub table: String,
    /// What `nft -f -` is given: one transaction that replaces what is there.
    pub ruleset: String,
    /// The mark, the number of the routing table, and the priority of the rule that leads there.
    pub mark: u16,
    /// What `ip -4 -batch -` and `ip -6 -batch -` are given, for the versions of IP that are served.
    pub routing: Vec<(Family, String)>,
}

impl Plan {
    /// What `config` asks for.
    #[must_use]
    pub fn new(config: &GatewayConfig) -> Self {
        let here: Vec<Prefix> = config.serves.iter().map(|served| served.hosts).collect();
        let there: Vec<Prefix> = config.elsewhere().collect();
        let families = [Family::V4, Family::V6].into_iter();
        let used =
            families.filter(|family| [&here, &there].iter().all(|side| side.iter().any(|p| family.has(p))));
        let (tun, mark) = (config.tun.as_str(), config.mark);
        Self {
            tun: tun.to_owned(),
            table: table(tun),
            ruleset: ruleset(config),
            mark,
            routing: used
                .map(|family| (family, routing(family, tun, mark, config.settings.fail_closed)))
                .collect(),
        }
    }
}

/// The name of the table of nftables of the gateway with this device: several may run on one host.
#[must_use]
pub fn table(tun: &str) -> String {
    if tun == TUN { "byway_gw".to_owned() } else { format!("byway_gw_{tun}") }
}

/// The commands of `ip` for one version of IP. The rule comes last, as it is what makes the routes count.
fn routing(family: Family, tun: &str, mark: u16, fail_closed: bool) -> String {
    let mut text = String::new();
    if family == Family::V4 {
        let _ = writeln!(text, "address replace {ADDRESS} dev {tun} scope link");
    }
    let _ = writeln!(text, "route replace default dev {tun} table {mark} protocol {PROTOCOL}");
    if fail_closed {
        let _ = writeln!(
            text,
            "route replace unreachable default metric {LAST} table {mark} protocol {PROTOCOL}"
        );
    }
    let _ = writeln!(text, "rule add {}", selector(mark));
    text
}

/// What tells our rule of routing from all others.
fn selector(mark: u16) -> String {
    format!("fwmark {mark:#x}/{MARK_MASK:#x} lookup {mark} priority {mark} protocol {PROTOCOL}")
}

#[cfg(test)]
mod tests;
