//! The kernel rules of a configuration.

use super::kernel_inputs::KernelInputs;
use super::marks::{Family, ROUTE_PROTOCOL, selector, table};
use super::ruleset::ruleset;
use alloc::borrow::ToOwned as _;
use alloc::string::String;
use alloc::vec::Vec;
use core::fmt::Write as _;

/// The metric of the unreachable route. It is so high that every other route is preferred.
const LAST_METRIC: u32 = 4_278_198_272;

/// The address of the TUN device, used by no host. Without an address, the kernel's source
/// validation (`fib_validate_source`; RFC 3704, section 2.4) drops all packets from the device.
/// Link-local (RFC 3927), so no router forwards packets to it.
const DEVICE_ADDRESS: &str = "169.254.98.119/32";

/// The kernel state to install: firewall table, routing rules and routes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KernelPlan {
    /// The name of the TUN device.
    pub tun: String,
    /// The name of the table of nftables, in the family `inet`.
    pub table: String,
    /// The input of `nft -f -`: one transaction that replaces the gateway's table.
    pub ruleset: String,
    /// The mark, the number of the routing table, and the priority of the rule that leads there.
    pub mark: u16,
    /// The input of `ip -4 -batch -` and `ip -6 -batch -`, for each served IP version.
    pub routing: Vec<(Family, String)>,
}

impl KernelPlan {
    /// The kernel state for `site`.
    #[must_use]
    pub fn new(site: KernelInputs<'_>) -> Self {
        let KernelInputs { tun, mark, here, there, fail_closed, .. } = site;
        let families = [Family::V4, Family::V6].into_iter();
        let used =
            families.filter(|family| [here, there].iter().all(|side| side.iter().any(|p| family.has(p))));
        Self {
            tun: tun.to_owned(),
            table: table(tun),
            ruleset: ruleset(&site),
            mark,
            routing: used.map(|family| (family, routing(family, tun, mark, fail_closed))).collect(),
        }
    }
}

/// The commands of `ip` for one version of IP. The rule comes last, since the routes have no effect
/// without it.
fn routing(family: Family, tun: &str, mark: u16, fail_closed: bool) -> String {
    let mut text = String::new();
    if family == Family::V4 {
        let _ = writeln!(text, "address replace {DEVICE_ADDRESS} dev {tun} scope link");
    }
    let _ = writeln!(text, "route replace default dev {tun} table {mark} protocol {ROUTE_PROTOCOL}");
    if fail_closed {
        let _ = writeln!(
            text,
            "route replace unreachable default metric {LAST_METRIC} table {mark} protocol {ROUTE_PROTOCOL}"
        );
    }
    let _ = writeln!(text, "rule add {}", selector(mark));
    text
}
