//! The numbers and names that identify this program's entries in the kernel.

use crate::Prefix;
use alloc::borrow::ToOwned as _;
use alloc::format;
use alloc::string::String;
use core::net::IpAddr;

/// The default name of a gateway's TUN device.
pub const DEFAULT_DEVICE: &str = "byway0";

/// The number that marks our routes and rules of routing ("b"; see `rtnetlink(7)`).
pub const ROUTE_PROTOCOL: u8 = 98;
/// The bits of the packet mark that a gateway uses. Other programs may use the rest.
pub const MARK_MASK: u32 = 0xffff;

/// The version of IP: 4 or 6.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Family {
    /// IP version 4.
    V4,
    /// IP version 6.
    V6,
}

impl Family {
    /// The option of `ip` for this version.
    #[must_use]
    pub const fn flag(self) -> &'static str {
        match self {
            Self::V4 => "-4",
            Self::V6 => "-6",
        }
    }

    /// Whether a prefix has this version.
    #[must_use]
    pub fn has(self, prefix: &Prefix) -> bool {
        matches!((self, prefix.address()), (Self::V4, IpAddr::V4(_)) | (Self::V6, IpAddr::V6(_)))
    }
}

/// The name of the table of nftables of the gateway with this device: several may run on one host.
#[must_use]
pub fn table(tun: &str) -> String {
    if tun == DEFAULT_DEVICE { "byway_gw".to_owned() } else { format!("byway_gw_{tun}") }
}

/// Returns the selector that distinguishes the gateway's routing rule from all other rules.
#[must_use]
pub fn selector(mark: u16) -> String {
    format!("fwmark {mark:#x}/{MARK_MASK:#x} lookup {mark} priority {mark} protocol {ROUTE_PROTOCOL}")
}
