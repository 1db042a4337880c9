//! The disk side of a transfer: a tree is read here, and written there, and nothing in this crate
//! knows a network.
//!
//! A tree travels as three things:
//!
//! 1. an ordered stream of **manifest records** from sender to receiver. It tells what there is,
//!    and later each file's hash ([`manifest`]);
//! 2. **objects**: the contents of regular files, in any order, each piece written where it
//!    belongs;
//! 3. an ordered stream of **reports** from receiver to sender. It tells what was verified, what
//!    failed and why ([`receiver_report`]).
//!
//! [`Source`] reads and [`Sink`] writes. Both are passive. They do a bounded piece of disk work per
//! call, with bounded memory and a bounded number of open files. The code that calls them, their
//! owner, is responsible for pace and flow control.
//!
//! The owner of a [`Source`] calls [`Source::next_records`] whenever the manifest stream has room.
//! It calls [`Source::read`] for the bytes of an object, and [`Source::release`] once a report
//! settles it. The owner of a [`Sink`] calls [`Sink::records`], [`Sink::write`] and, when an object
//! has all its bytes, [`Sink::finish`]. Then it calls [`Sink::work`] while that returns true, and
//! sends what [`Sink::reports`] gives.
//!
//! A transfer that broke off is resumed. The sender keeps [`Journals`], and says so at the start.
//! The receiver offers the hashes of the chunks that it has ([`Report::Have`], [`Source::have`]).
//! Only chunks that differ travel. The module `resume` has the rule, step by step.
//!
//! The receiver makes two promises. No name, link or order of records makes it write outside its
//! directory or through a symbolic link. No file gets its final name before its BLAKE3 hash was
//! found right.

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
