//! Announcements by which gateways tell each other which hosts they serve. An announcement consists
//! of small datagrams, its parts. Parts are repeated from time to time, not acknowledged.
//!
//! ```text
//! SERVES   version (1), serial (4), part (1), parts (1), entries to the end
//! entry    length (1; 64 more for IPv6), as many bytes of the prefix as that needs,
//!          number of port ranges (1; none: all ports), first (2) and last (2) of each
//! ```
//!
//! An announcement replaces one with a smaller serial once complete.

mod directory;
mod part;

pub use directory::{Directory, PartResult};
pub use part::{AnnouncementPart, MAX_PARTS, MAX_PORTS, PART_BYTES, PART_VERSION, Served, announce};

#[cfg(test)]
mod tests;
