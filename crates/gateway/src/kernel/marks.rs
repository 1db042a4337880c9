//! By which numbers and names what is ours is known in the kernel.

use crate::Prefix;
use alloc::borrow::ToOwned as _;
use alloc::format;
use alloc::string::String;
use core::net::IpAddr;

/// The TUN device of a gateway unless told otherwise.
pub const DEFAULT_DEVICE: &str = "byway0";

/// The number that marks our routes and rules of routing ("b"; see `rtnetlink(7)`).
pub const ROUTE_PROTOCOL: u8 = 98;
/// The bits of the mark that are ours; the others are left to whoever else marks packets.
pub const MARK_MASK: u32 = 0xffff;

/// A version of IP.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Family {
    /// IP version 4.
    V4,
    /// IP version 6.
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
    pub fn has(self, prefix: &Prefix) -> bool {
        matches!((self, prefix.address()), (Self::V4, IpAddr::V4(_)) | (Self::V6, IpAddr::V6(_)))
    }
}

/// The name of the table of nftables of the gateway with this device: several may run on one host.
#[must_use]
pub fn table(tun: &str) -> String {
    if tun == DEFAULT_DEVICE { "byway_gw".to_owned() } else { format!("byway_gw_{tun}") }
}

/// What tells our rule of routing from all others.
#[must_use]
pub fn selector(mark: u16) -> String {
    format!("fwmark {mark:#x}/{MARK_MASK:#x} lookup {mark} priority {mark} protocol {ROUTE_PROTOCOL}")
}
