//! The use of registries: a relay enrols, a sender asks for relays while it sends, and a person
//! lists relays.

mod cache;
mod enrolling;
mod question;
mod relay_discovery;
mod transfer_relays;

pub use enrolling::{EnrolEvent, Enrolling, EnrollingPlan};
pub use question::ask;
pub use relay_discovery::{FindEvent, RelayDiscovery};
pub use transfer_relays::FindPlan;

pub(crate) use transfer_relays::{Finder, goes_on_without};
