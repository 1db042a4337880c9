//! The arguments of `byway registry`.

use super::help_layout::EXPERT_OPTIONS;
use crate::address::Endpoint;
use crate::units::{parse_duration, parse_rate, parse_size};
use byway_transfer::local_address::LocalAddress;
use clap::{Args, Subcommand};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

/// `byway registry`
#[derive(Clone, Debug, Args)]
#[command(before_help = include_str!("examples/registry.txt").trim_end())]
pub struct Registry {
    /// Local address or interface (eth0) to listen on, with or without port; repeatable [default:
    /// all addresses, port 4750]
    #[arg(long, value_name = "ADDR", env = "BYWAY_LISTEN", value_delimiter = ',')]
    pub listen: Vec<LocalAddress>,
    /// Address that relays and senders find it at, for the words; repeatable, at most 4 [default:
    /// those listened on]
    #[arg(long, value_name = "ADDR", env = "BYWAY_ADVERTISE", value_delimiter = ',')]
    pub advertise: Vec<Endpoint>,
    /// Where it keeps what it knows: a file, or postgres://… for several registries on one
    /// PostgreSQL [default: registry.db in the state directory]
    #[arg(long, value_name = "STORE", env = "BYWAY_STORE", hide_env_values = true, global = true)]
    pub store: Option<String>,
    /// Loopback address for pages of the operator's own: /metrics, /healthz, /readyz, /v1/relays
    /// [default: none]
    #[arg(long, value_name = "ADDR", env = "BYWAY_HTTP")]
    pub http: Option<SocketAddr>,
    /// A second local address or interface, from which relays behind NATs are tested. No word may
    /// name it; repeatable, one per address family [default: none; relays behind NATs are not
    /// listed]
    #[arg(long, value_name = "ADDR", env = "BYWAY_PROBE_FROM", value_delimiter = ',')]
    #[arg(value_parser = LocalAddress::without_port, help_heading = EXPERT_OPTIONS)]
    pub probe_from: Vec<LocalAddress>,
    /// What to do instead.
    #[command(subcommand)]
    pub command: Option<RegistryCommand>,
}

/// What a registry's operator can do.
#[derive(Clone, Debug, Subcommand)]
pub enum RegistryCommand {
    /// Print a new word: for relays (--uses), or for a sender (--for)
    Word(WordIssue),
    /// Show words and relays
    #[command(before_help = include_str!("examples/registry-list.txt").trim_end())]
    List,
    /// Take back a word by its name, or a relay by its own
    #[command(before_help = include_str!("examples/registry-revoke.txt").trim_end())]
    Revoke {
        /// The name
        #[arg(value_name = "NAME")]
        name: String,
    },
    /// Copy all that it keeps into a new file, secrets included
    #[command(before_help = include_str!("examples/registry-backup.txt").trim_end())]
    Backup {
        /// The file
        #[arg(value_name = "FILE")]
        file: PathBuf,
    },
    /// Look for damage
    #[command(before_help = include_str!("examples/registry-check.txt").trim_end())]
    Check {
        /// A copy [default: the store itself]
        #[arg(value_name = "FILE")]
        file: Option<PathBuf>,
    },
}

/// `byway registry word`
#[derive(Clone, Debug, Args)]
#[command(before_help = include_str!("examples/registry-word.txt").trim_end())]
pub struct WordIssue {
    /// How many relays it enrols [default: it enrols none]
    #[arg(long, value_name = "N", required_unless_present = "name")]
    pub uses: Option<u32>,
    /// Whose it is: what it is listed and revoked by [default: a number, of a word that enrols]
    #[arg(long = "for", value_name = "NAME", id = "name")]
    pub name: Option<String>,
    /// How much per second at each relay: 20Mbit, or 5M for 5 MiB [default: as much as it lends]
    #[arg(long, value_name = "RATE", value_parser = parse_rate)]
    pub rate: Option<u64>,
    /// Bytes per day (UTC) at each relay, K/M/G/T binary [default: as many as it lends]
    #[arg(long, value_name = "BYTES", value_parser = parse_size)]
    pub quota: Option<u64>,
    /// How long it is good for: 12h, 30d [default: until it is revoked]
    #[arg(long, value_name = "DURATION", value_parser = parse_duration)]
    pub expires: Option<Duration>,
}
