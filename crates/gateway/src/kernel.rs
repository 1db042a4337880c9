//! The configuration that a gateway needs in a Linux kernel, as input for the programs `nft` and
//! `ip`. An nftables table marks packets that may belong to background flows. A routing rule sends
//! marked packets to the TUN device.
//!
//! **Fail-open.** Marked packets use a separate routing table, whose only route leads to the TUN
//! device. If the gateway's process dies, the kernel removes the device and this route, and marked
//! packets use the main routing table. With `fail-closed`, a second route of the separate table
//! makes their destinations unreachable instead.
//!
//! **No loops.** Packets that come from the TUN device are never marked. The packets of a session
//! originate on this host, so they are never marked either.

mod kernel_inputs;
mod marks;
mod plan;
mod ruleset;

pub use kernel_inputs::KernelInputs;
pub use marks::{Family, MARK_MASK, PROTOCOL, TUN, selector, table};
pub use plan::KernelPlan;
