//! The configuration that a gateway needs in a Linux kernel, as input for the programs `nft` and
//! `ip`. An nftables table marks packets that may belong to background flows. A routing rule sends
//! marked packets to the TUN device.
//!
//! **Fail-open.** The routing rule leads to a separate routing table, which has one route, to the
//! TUN device. If the gateway's process dies, the kernel removes the device and this route. Marked
//! packets then use the main routing table. With `fail-closed` the separate table has a second
//! route, *unreachable*, with the lowest preference.
//!
//! **No loops.** Only TCP packets that come in by another device than the TUN device are marked.
//! The packets of a session are UDP and originate on this host, so they are never marked.

mod kernel_inputs;
mod marks;
mod plan;
mod ruleset;

pub use kernel_inputs::KernelInputs;
pub use marks::{Family, MARK_MASK, PROTOCOL, TUN, selector, table};
pub use plan::KernelPlan;
