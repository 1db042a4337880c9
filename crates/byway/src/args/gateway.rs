//! The arguments of `byway gateway`.

use clap::{Args, Subcommand};
use std::path::PathBuf;

/// `byway gateway`
#[derive(Clone, Debug, Args)]
#[command(args_conflicts_with_subcommands = true, subcommand_negates_reqs = true)]
#[command(before_help = "\
Examples:
  byway gateway check gw.toml                what a configuration means, and what it would install
  byway gateway --config gw.toml --observe   change nothing: show which flows would be carried, and how much
  byway gateway --config gw.toml             carry them, until stopped
  byway gateway status                       peers, paths, flows

Hosts behind it are not changed. docs/gateway.md shows two sites, step by step. Needs CAP_NET_ADMIN, nft and ip.")]
pub struct Gateway {
    /// What it is to do
    #[arg(long, value_name = "FILE", required = true)]
    pub config: Option<PathBuf>,
    /// Carry nothing, and show what would be carried [default: as the file says]
    #[arg(long)]
    pub observe: bool,
    /// Let background flows wait while there is no session, rather than go by the plain route [default: as the file says]
    #[arg(long)]
    pub fail_closed: bool,
    /// What to do instead.
    #[command(subcommand)]
    pub command: Option<GatewayCommand>,
}

/// What a gateway can be asked.
#[derive(Clone, Debug, Subcommand)]
pub enum GatewayCommand {
    /// Say what a configuration means, what is odd about it, and what it would install
    Check(GatewayCheck),
    /// Say how the gateway on this host is doing
    Status(GatewayStatus),
}

/// `byway gateway check`
#[derive(Clone, Debug, Args)]
pub struct GatewayCheck {
    /// The configuration
    #[arg(value_name = "FILE")]
    pub file: PathBuf,
}

/// `byway gateway status`
#[derive(Clone, Debug, Args)]
pub struct GatewayStatus {
    /// The gateway with this device
    #[arg(long, value_name = "DEVICE", default_value = byway_gateway::kernel::TUN)]
    pub tun: String,
    /// The gateway that answers at this socket [default: that of the device]
    #[arg(long, value_name = "PATH")]
    pub socket: Option<PathBuf>,
}
