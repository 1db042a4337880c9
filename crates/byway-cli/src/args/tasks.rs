//! The arguments of `byway tasks`.

use crate::units::parse_positive_size;
use byway_files::{MAX_SHARES, ShareCount};
use clap::Args;
use std::path::PathBuf;

/// `byway tasks`
#[derive(Clone, Debug, Args)]
#[command(before_help = include_str!("examples/tasks.txt").trim_end())]
pub struct Tasks {
    /// The directory whose contents are cut
    #[arg(value_name = "DIR")]
    pub directory: PathBuf,
    /// Directory for the lists: 01, 02 and so on
    #[arg(value_name = "LISTS")]
    pub lists: PathBuf,
    /// How many lists
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=MAX_SHARES as i64))]
    #[arg(required_unless_present = "bytes", conflicts_with = "bytes")]
    pub count: Option<u32>,
    /// How much each list is to have: 10G
    #[arg(long, value_name = "SIZE", value_parser = parse_positive_size)]
    pub bytes: Option<u64>,
}

impl Tasks {
    /// How many lists are asked for.
    #[must_use]
    pub fn share_count(&self) -> ShareCount {
        let bytes = ShareCount::Bytes(self.bytes.unwrap_or(u64::MAX));
        self.count.map_or(bytes, |count| ShareCount::Shares(count as usize))
    }
}
