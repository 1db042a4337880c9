//! The arguments of what an operator does with the words of a relay that have names.

use crate::address::Endpoint;
use crate::units::{parse_duration, parse_rate, parse_size};
use byway_transfer::WordName;
use byway_wire::Duration;
use clap::{Args, Subcommand};

/// What an operator does with a relay's words.
#[derive(Clone, Debug, Subcommand)]
pub enum RelayCommand {
    /// Print a word for one person, and keep it under a name
    Word(RelayWordIssue),
    /// Show the words that have names, and what the relay carried for each
    #[command(before_help = include_str!("examples/relay-words.txt").trim_end())]
    Words,
    /// Take back a word by its name. A relay that runs obeys within a second
    #[command(before_help = include_str!("examples/relay-revoke.txt").trim_end())]
    Revoke {
        /// The name
        #[arg(value_name = "NAME")]
        name: WordName,
    },
}

/// `byway relay word`
#[derive(Clone, Debug, Args)]
#[command(before_help = include_str!("examples/relay-word.txt").trim_end())]
pub struct RelayWordIssue {
    /// Whose it is: what it is listed and revoked by
    #[arg(long = "for", value_name = "NAME")]
    pub name: WordName,
    /// How much it may use per second: 80Mbit, or 10M for 10 MiB [default: no limit]
    #[arg(long, value_name = "RATE", value_parser = parse_rate)]
    pub rate: Option<u64>,
    /// Bytes that it may use per day (UTC), K/M/G/T binary [default: no limit]
    #[arg(long, value_name = "BYTES", value_parser = parse_size)]
    pub quota: Option<u64>,
    /// How long it is good for: 12h, 30d; rounded up to a minute [default: 365d]
    #[arg(long, value_name = "DURATION", value_parser = parse_duration)]
    pub expires: Option<Duration>,
    /// Address that senders find the relay at; repeatable, at most 4 [default: where it was when it
    /// was started last]
    #[arg(long, value_name = "ADDR", env = "BYWAY_ADVERTISE", value_delimiter = ',')]
    pub advertise: Vec<Endpoint>,
}
