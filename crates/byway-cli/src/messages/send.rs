//! Messages of `byway send`.

use crate::units::{Bytes, Span};
use byway_transfer::LookedAt;
use byway_transfer::secret_words::shortened;
use std::fmt::Display;
use std::ops::RangeInclusive;
use std::path::Path;

pub const NO_TICKET: &str = "the command has no ticket: give what `byway recv` printed, or set BYWAY_TICKET";
pub const NO_PATH_BEFORE_TICKET: &str =
    "the command names nothing to send: name at least one path before the ticket";
pub const STREAM_WITH_FILES: &str =
    "`-` is standard input, which cannot be sent together with files: send it with a command of its own";
pub const STREAM_WITH_RETRY: &str = "`-` is standard input, which cannot be read again: --retry is for files";
pub const STREAM_WITH_DIRECTORY: &str = "`-` is standard input, which lands in no directory: write the peer's name and a colon, and nothing behind it";
pub const STREAM_WITH_SELECTION: &str = "`-` is standard input, of which all is sent: --exclude, --include, --files-from and --delete are for directories";
pub const CONTENTS_WITH_DELETE: &str = "with --delete one directory's contents are sent at a time, or what the others hold would be gone: name it alone";
pub const LIST_WITHOUT_DIRECTORY: &str =
    "--files-from lists paths in one directory: name this directory, and nothing else, before the ticket";
pub const TWO_DIRECTORIES: &str =
    "--from names the directory in which the list's paths begin: name no other path before the ticket";
pub const SESSION_FORGOTTEN: &str =
    "the receiver no longer knows this session: this command begins another and sends what is missing there";

pub const QLOG_NOT_WRITTEN: &str =
    "the file of --qlog is not whole: free space on its disk for the next transfer";
pub const CONTENTS_DIFFER: &str = "what arrived is not what was sent: run the same command again";
pub const NOT_ALL_DELETED: &str =
    "not everything that is gone here was deleted at the receiver: the warnings name what is left";
pub const NEWER_STAY: &str =
    "files that are newer at the receiver would stay: --update says that this is meant";
pub const PARTIAL_TRANSFER: &str = "not everything was transferred: the warnings name what is missing";

/// The answer of a dry run.
pub const STREAM_TO_ITS_END: &str = "standard input, to its end";

/// The last argument was taken for a path.
pub fn no_ticket(last: &str) -> String {
    let last = if last.contains('/') { last.into() } else { shortened(last) };
    format!(
        "the command has no ticket after `{last}`: give there what `byway recv` printed, or set BYWAY_TICKET"
    )
}

/// The result of `byway tasks`. `bytes` counts all lists; `each` goes from the smallest list's
/// bytes to the largest list's.
pub fn lists(lists: usize, entries: usize, bytes: u64, each: RangeInclusive<u64>) -> String {
    let (smallest, largest) = each.into_inner();
    format!(
        "{lists} lists of {entries} entries and {}; each has {} to {}",
        Bytes(bytes),
        Bytes(smallest),
        Bytes(largest)
    )
}

/// The reason of a stop by a signal.
pub const STOPPED_BY_HAND: &str = "stopped";
pub const STOPPED_BY_CLOCK: &str = "stopped by --stop-at";
pub const STOPPED_BY_BYTES: &str = "stopped by --max-transfer";

pub fn stopped_stream(stopped: &str, sent: u64) -> String {
    format!("{stopped} with {} sent: a stream cannot be resumed, so send all of it again", Bytes(sent))
}

pub fn stopped_tree(stopped: &str, sent: u64, command: &str) -> String {
    format!("{stopped} with {} sent; to go on: {command}", Bytes(sent))
}

/// The receiver is away for this number of seconds.
pub fn away(reason: &str, seconds: u64) -> String {
    let since = match seconds {
        0..60 => String::new(),
        _ => format!(" for {}", Span(seconds as f64)),
    };
    format!("the receiver is away{since} ({reason}): trying again until it answers")
}

pub fn bad_pattern(pattern: &str, error: impl Display) -> String {
    format!("the pattern `{pattern}` matches nothing: {error}")
}

/// The error for an `--include` before every `--exclude`, where it has no effect.
pub fn include_of_nothing(pattern: &str) -> String {
    format!(
        "--include {pattern} stands before every --exclude, and all is sent anyway: write it behind the --exclude that it makes an exception of"
    )
}

pub fn bad_list(file: &Path, error: impl Display) -> String {
    format!("the list {} cannot be used ({error}): check it", file.display())
}

/// The answer of a dry run.
pub fn would_send(bytes: u64, files: u64, directories: u64, links: u64) -> String {
    format!("{} in {files} files, {directories} directories and {links} symbolic links", Bytes(bytes))
}

/// Returns the first word of a line about an entry: what a transfer would do with the entry.
pub const fn looked_at(what: LookedAt) -> &'static str {
    match what {
        LookedAt::New => "new",
        LookedAt::Replaced => "replaced",
        LookedAt::Newer => "newer there",
        LookedAt::Compared => "compared",
        LookedAt::Deleted => "deleted",
    }
}

/// The end of the answer of a dry run, if the receiver was asked.
pub fn found(counts: [u64; 5], travelling_bytes: u64) -> String {
    let counted = counts.into_iter().zip(LookedAt::ALL).filter(|(count, _)| *count > 0);
    let parts: Vec<_> = counted.map(|(count, what)| format!("{count} {}", looked_at(what))).collect();
    if parts.is_empty() {
        return "; the receiver has all of it".into();
    }
    format!("; of these {} would travel at most: {}", Bytes(travelling_bytes), parts.join(", "))
}

/// The message that the receiver cannot be asked for its files, so that only the sender's are
/// counted.
pub fn counted_alone(error: impl Display) -> String {
    format!("the receiver was not asked ({error}): this is all there is here, whatever it has already")
}

/// The end of that answer.
pub fn excluded(count: u64) -> String {
    match count {
        0 => String::new(),
        1 => "; 1 entry is excluded".into(),
        _ => format!("; {count} entries are excluded"),
    }
}

pub fn cannot_read_entries(count: u64) -> String {
    format!("{count} entries cannot be read and would not be sent: check their permissions")
}
