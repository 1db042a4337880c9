//! What a transfer's host relays for others meanwhile.

use crate::units::parse_size;
use byway_transfer::lending::Quota;
use byway_wire::Prefix;
use clap::Args;

/// Options of `send` and `recv`.
#[derive(Clone, Debug, Default, Args)]
#[command(next_help_heading = "Relaying for others")]
pub struct Lending {
    /// Relay for others while this runs, behind this host's own traffic, so many bytes at most:
    /// 500M/day, 20G/month (UTC). Needs a --registry word for joining [default: off]
    #[arg(long, value_name = "QUOTA", env = "BYWAY_ALSO_RELAY", requires = "registry")]
    pub also_relay: Option<Quota>,
    /// Most bytes per second to lend either way, less what this host needs itself. K/M/G binary
    /// [default: what the line has shown]
    #[arg(long, value_name = "RATE", env = "BYWAY_LEND", value_parser = parse_size, requires = "also_relay")]
    pub lend: Option<u64>,
    /// Network that may be relayed to besides the public Internet; repeatable [default: public
    /// unicast only]
    #[arg(
        long,
        value_name = "CIDR",
        env = "BYWAY_ALLOW_DESTINATION",
        value_delimiter = ',',
        requires = "also_relay"
    )]
    pub allow_destination: Vec<Prefix>,
}
