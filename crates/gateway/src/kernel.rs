//! What a gateway has a Linux kernel do. A table of nftables marks packets that may belong to
//! background flows. A routing rule sends marked packets to the TUN device. Both are texts, for the
//! programs `nft` and `ip`.
//!
//! **Fail-open.** The rule leads to a routing table of its own, whose route goes to the TUN device.
//! When the process dies, the kernel removes the device, and the route with it. Then this routing
//! table is empty, and the kernel looks the route up in the main table instead. So the marks have
//! no effect. With `fail-closed` this routing table has a second route of the lowest preference,
//! which is *unreachable*.
//!
//! **Loops** cannot happen. Only TCP packets that come in by a device other than the TUN device are
//! marked. The packets of a session are UDP and originate on this host.

mod kernel_inputs;
mod marks;
mod plan;
mod ruleset;

pub use kernel_inputs::KernelInputs;
pub use marks::{Family, MARK_MASK, PROTOCOL, TUN, selector, table};
pub use plan::KernelPlan;
