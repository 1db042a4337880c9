//! Which gateway serves which hosts: what gateways tell each other, and whom to ask for when a flow
//! opens.
//!
//! Announcements are small datagrams, sent again and again. So none needs an answer, and a gateway
//! that has begun anew is known again by itself:
//!
//! ```text
//! SERVES   version (1), serial (4), part (1), parts (1), entries to the end
//! entry    length (1; 64 more for IPv6), as many bytes of the prefix as that needs,
//!          number of port ranges (1; none: all ports), first (2) and last (2) of each
//! ```
//!
//! A larger serial replaces everything with a smaller one, once all its parts have come.

mod directory;
mod part;

pub use directory::{Directory, PartResult};
pub use part::{AnnouncementPart, MOST_PARTS, MOST_PORTS, PART_BYTES, Served, VERSION, announce};

#[cfg(test)]
mod tests;
