//! Reads a tree of files at the sender and writes it at the receiver. This crate knows disks and no
//! network.
//!
//! A tree travels as three things:
//!
//! 1. **Manifest records**, an ordered stream from sender to receiver: names, metadata, and later
//!    the hash of each file ([`manifest`]).
//! 2. **Objects**: the contents of regular files, whose bytes may come in any order.
//! 3. **Reports**, an ordered stream from receiver to sender: which files were verified, and which
//!    failed and why ([`receiver_report`]).
//!
//! [`Source`] reads the tree and [`Sink`] writes it. Each call does a bounded amount of disk work.
//! The caller moves the bytes over the network:
//!
//! - The sender calls [`Source::next_records`] for the manifest, and [`Source::read`] for the bytes
//!   of an object. It calls [`Source::release`] when a report says that the object was verified or
//!   failed.
//! - The receiver calls [`Sink::records`] and [`Sink::write`] with the bytes that arrive, and
//!   [`Sink::finish`] after the last byte of an object. It repeats [`Sink::work`] until the result
//!   is false, and sends the bytes of [`Sink::reports`].
//!
//! A transfer that broke off is resumed if the sender kept [`Journals`]. The receiver sends the
//! hashes of the chunks on its disk ([`Report::Have`]), and the sender sends only the other chunks
//! (module `resume`).
//!
//! The receiver never writes outside its directory or through a symbolic link. It gives a file its
//! final name only after it has verified the file's BLAKE3 hash.

mod chunk_journal;
mod chunks;
mod contained_dir;
mod error;
mod expired_files;
mod file_status;
pub mod manifest;
mod missing_ranges;
mod name;
mod open_files;
pub mod receiver_report;
mod resume;
mod sender_journals;
mod sink;
mod size_totals;
mod source;
mod test_tree;
mod tree_compare;
mod tree_walk;

pub use error::{SinkError, SourceError};
pub use expired_files::{KEPT_FOR, expire_journals, expire_partials};
pub use manifest::{Counts, Metadata, Timestamp};
pub use name::{MAX_COMPONENT, MAX_PATH, NameError, PARTIAL_DIRECTORY, Printable, check_name};
pub use receiver_report::{Reason, Report, Reports};
pub use sender_journals::Journals;
pub use sink::{Finish, MadeFile, Modes, Problem, Sink, SinkOptions, SmallFile, Summary, TreeTop, Written};
pub use size_totals::Totals;
pub use source::{Batch, NewObject, Source, SourceOptions};
pub use test_tree::{Generated, generate};
pub use tree_compare::{Difference, compare};
pub use tree_walk::{Warning, WarningKind};

/// Files that may be announced and not settled at one time. A [`Source`] announces no more; a
/// [`Sink`] refuses more.
pub const MAX_OUTSTANDING: usize = 65_536;
