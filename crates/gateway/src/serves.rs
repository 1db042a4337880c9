//! Which gateway serves which hosts: the announcements that gateways send each other, and the
//! directory in which the gateway of a host is found when a flow opens.
//!
//! Announcements are small datagrams that are sent again and again. So they need no answer, and a
//! gateway that was started anew becomes known again:
//!
//! ```text
//! SERVES   version (1), serial (4), part (1), parts (1), entries to the end
//! entry    length (1; 64 more for IPv6), as many bytes of the prefix as that needs,
//!          number of port ranges (1; none: all ports), first (2) and last (2) of each
//! ```
//!
//! An announcement with a larger serial replaces all earlier ones, once all its parts have come.

mod directory;
mod part;

pub use directory::{Directory, PartResult};
pub use part::{AnnouncementPart, MOST_PARTS, MOST_PORTS, PART_BYTES, Served, VERSION, announce};

#[cfg(test)]
mod tests;
