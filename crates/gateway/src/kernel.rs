//! The configuration that a gateway needs in a Linux kernel, as input for `nft` and `ip`. An
//! nftables table marks packets that may belong to background flows. A routing rule sends marked
//! packets to the TUN device.
//!
//! | property | how |
//! |---|---|
//! | fail-open | if the gateway's process dies, the kernel removes the TUN device and its route, and marked packets use the main routing table |
//! | `fail-closed` | a second route makes the destinations of marked packets unreachable instead |
//! | no loops | neither packets from the TUN device nor the packets of a session, which originate on this host, are ever marked |

mod kernel_inputs;
mod marks;
mod plan;
mod ruleset;

pub use kernel_inputs::KernelInputs;
pub use marks::{DEFAULT_DEVICE, Family, MARK_MASK, ROUTE_PROTOCOL, selector, table};
pub use plan::KernelPlan;
