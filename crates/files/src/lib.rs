//! Reads a tree of files at the sender ([`Source`]) and writes it at the receiver ([`Sink`]). The
//! caller moves the bytes over the network by the calls in the table.
//!
//! | what travels | sender's call | receiver's call |
//! |---|---|---|
//! | manifest, in order: names, metadata, later the hash of each file ([`manifest`]) | [`Source::next_records`] | [`Sink::records`] |
//! | objects: contents of regular files, bytes in any order | [`Source::read`] | [`Sink::write`], after the last byte [`Sink::finish`] |
//! | reports, in order: files that were verified, or failed and why ([`receiver_report`]) | [`Source::release`], once per reported object | [`Sink::reports`] |
//! | nothing: disk work of the receiver | | [`Sink::work`], until the result is false |
//!
//! The disk work of each call is bounded. The receiver never writes outside its directory or
//! through a symbolic link. A file gets its final name only after its BLAKE3 hash was verified.

mod chunk_journal;
mod chunks;
mod contained_dir;
mod error;
mod expired_files;
mod file_status;
mod linked_names;
pub mod manifest;
mod missing_ranges;
mod name;
mod not_copied;
mod open_files;
mod path_pattern;
pub mod receiver_report;
mod resume;
mod sender_journals;
mod sink;
mod size_totals;
mod source;
mod source_options;
mod test_tree;
mod trash;
mod tree_compare;
mod tree_selection;
mod tree_shares;
mod tree_walk;

pub use error::{SinkError, SourceError};
pub use expired_files::{RETENTION_TIME, expire_journals, expire_partials, expire_trash};
pub use manifest::{Counts, Metadata, Timestamp};
pub use name::{
    MAX_COMPONENT_LEN, MAX_PATH_LEN, NameError, PARTIAL_DIRECTORY, Printable, Subdirectory, TRASH_DIRECTORY,
    check_name,
};
pub use not_copied::NotCopied;
pub use path_pattern::MAX_PATTERN_LEN;
pub use receiver_report::{LookedAt, ObjectRange, Reason, Report, Reports};
pub use sender_journals::Journals;
pub use sink::{
    Finish, Look, MadeFile, Modes, Problem, Sink, SinkOptions, SmallFile, Summary, TreeTop, Written,
};
pub use size_totals::Totals;
pub use source::{Batch, NewObject, Source};
pub use source_options::SourceOptions;
pub use test_tree::{Generated, generate};
pub use trash::TrashName;
pub use tree_compare::{Difference, compare};
pub use tree_selection::{
    ListedPaths, MAX_PATTERN_BYTES, MAX_PATTERNS, SelectionError, TreeFilter, TreeSelection,
};
pub use tree_shares::{MAX_SHARES, ShareCount, TreeShare, TreeShares};
pub use tree_walk::{Warning, WarningKind, names_contents};

/// Files that may be announced and not settled at one time. A [`Source`] announces no more; a
/// [`Sink`] refuses more.
pub const MAX_OUTSTANDING: usize = 65_536;
