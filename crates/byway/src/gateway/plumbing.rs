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
mod marks;
mod plan;
mod ruleset;
pub mod system;

pub use install::{Found, install, installed, present, reload, remove};
pub use marks::{Family, MARK_MASK, PROTOCOL, table};
pub use plan::Plan;
pub use ruleset::ruleset;

#[cfg(test)]
mod tests;
