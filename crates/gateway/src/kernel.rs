//! What a gateway has a Linux kernel do. A table of nftables marks packets which may be of
//! background flows. A rule of routing sends marked packets to the TUN device. Both are texts, for
//! the programs `nft` and `ip_header`.
//!
//! **Fail-open.** The route lives in a table of its own and goes by the TUN device. When the
//! process dies, the kernel takes the device away, and with it the route. Then the table is empty,
//! so the search for a route goes on in the main table. The marks mean nothing. With `fail-closed`
//! a second route in that table, of the lowest preference, says *unreachable*.
//!
//! **Loops** cannot be. What is marked is TCP that comes in by a device other than the TUN. A
//! session's packets are UDP, and are made by this host.

mod kernel_inputs;
mod marks;
mod plan;
mod ruleset;

pub use kernel_inputs::KernelInputs;
pub use marks::{Family, MARK_MASK, PROTOCOL, TUN, selector, table};
pub use plan::KernelPlan;
