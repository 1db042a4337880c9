//! What hosts have to do with registries: a relay enrols, a sender asks for relays while it sends, a person asks what there is.

mod cache;
mod enrolling;
mod finder;
mod finding;
mod question;

pub use enrolling::{EnrolNews, Enrolling, EnrollingPlan};
pub use finder::FindPlan;
pub use finding::{FindNews, Finding};
pub use question::ask;

pub(crate) use finder::Finder;
