//! What a transfer's host relays for others meanwhile.

use crate::units::parse_rate;
use byway_transfer::lending::Quota;
use byway_wire::Prefix;
use clap::Args;

/// Options of `send` and `recv`.
#[derive(Clone, Debug, Default, Args)]
#[command(next_help_heading = "Relaying for others")]
pub struct Lending {
    /// Relay for others while this runs, behind this host's own traffic, so many bytes at most:
    /// 500M/day, 20G/month (UTC). Needs a --registry word for joining [default: off]
    #[arg(long, value_name = "QUOTA", env = "BYWAY_ALSO_RELAY")]
    pub also_relay: Option<Quota>,
    /// Most to lend per second either way, less what this host needs itself: 20Mbit, or 5M for 5
    /// MiB [default: what the line has shown]
    #[arg(long, value_name = "RATE", env = "BYWAY_LEND", value_parser = parse_rate, requires = "also_relay")]
    pub lend: Option<u64>,
    /// Network that may be relayed to besides the public Internet; repeatable [default: public
    /// unicast only]
    #[arg(long, value_name = "CIDR", env = "BYWAY_ALLOW_DESTINATION", value_delimiter = ',')]
    #[arg(requires = "also_relay")]
    pub allow_destination: Vec<Prefix>,
}
