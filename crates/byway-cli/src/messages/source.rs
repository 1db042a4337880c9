//! Messages of `byway source`.

use crate::units::Rate;
use std::fmt::Display;
use std::path::Path;

pub const NO_RELAY: &str =
    "the registry lists no relay that serves TCP: name one with --relay, or start again later";

/// The warning that a registry does not answer now. It is asked again, since the relay words from
/// it expire within a day.
pub fn no_registry(why: impl Display) -> String {
    format!(
        "the registry does not help now, and is asked again, for its relays' words end within a day: {why}"
    )
}

/// `error` says why the registry was of no use.
pub fn last_list(error: impl Display) -> String {
    format!("{error}; byway takes the relays that the registry listed the last time")
}

pub const CANNOT_START_THREAD: &str = "cannot start a thread that reads standard input";

pub const NEGATIVE_DEMAND: &str = "a demand must be more than 0 bytes per second: write for example 150K";
pub const ZERO_DEMAND: &str = "a demand of 0 lets no record through: write for example 150K";

pub fn not_a_demand(text: &str) -> String {
    format!("`{text}` is not a rate: write for example 1.2Mbit, or 150K for 150 KiB per second")
}

pub fn not_a_beta(text: &str) -> String {
    format!("`{text}` is not a part of a rate: write a number from 0 to 1, for example 0.1")
}

pub fn record_size(longest: usize, given: u64) -> String {
    format!("--record {given} is out of range: a record has 1 to {longest} bytes")
}

pub fn cannot_read(file: &Path) -> String {
    format!("cannot read {}", file.display())
}

/// The error for a file that holds no demand. `error` quotes the file's text and says what to
/// write.
pub fn demand_in_file(file: &Path, error: impl Display) -> String {
    format!("the file {} holds no demand: {error}", file.display())
}

pub fn new_demand(bytes_per_second: u64) -> String {
    format!("the demand is {} now", Rate(bytes_per_second as f64 * 8.0))
}

pub fn demand_stays(error: impl Display) -> String {
    format!("{error}; the demand stays as it was")
}

pub fn connected(sink: &str, written: u64) -> String {
    format!("connected to the sink {sink}, which has {written} records")
}

pub fn foreign_records(sink: &str, name: &str, records: u64) -> String {
    format!(
        "another byway process with this host's key wrote to the sink {sink} under the name {name} meanwhile (records: {records}): this process's records follow; give each process a --name of its own"
    )
}

pub fn away(sink: &str, why: impl Display) -> String {
    format!("no connection to the sink {sink}: {why}; byway tries again")
}

/// Adds the sink that an error is about, for commands with several sinks.
pub fn about_sink(sink: &str, error: impl Display) -> String {
    format!("the sink {sink}: {error}")
}

pub fn long_lines(longest: usize) -> String {
    format!(
        "a line of the input is longer than {longest} bytes: --long-lines says what becomes of such lines; if the input has no lines, give --record N or --prefixed"
    )
}

/// `8.00 Mbit/s of 9.00 Mbit/s, 12 records (0.5 s) behind, 3 given up, 2 lines too long: the disk
/// is slow`. `left_out`: records given up, and lines that were too long.
pub fn progress(rates_bps: (f64, f64), lag: (u64, f64), left_out: (u64, u64), why: Option<&str>) -> String {
    let (rate, demand) = (Rate(rates_bps.0), Rate(rates_bps.1));
    let (records, seconds) = lag;
    let counted = |count: u64, what: &str| match count {
        0 => String::new(),
        count => format!(", {count} {what}"),
    };
    let lost = counted(left_out.0, "given up") + &counted(left_out.1, "lines too long");
    let why = why.map(|why| format!(": {why}")).unwrap_or_default();
    format!("{rate} of {demand}, {records} records ({seconds:.1} s) behind{lost}{why}")
}
