//! The arguments of `byway gateway`.

use clap::{Args, Subcommand};
use std::path::PathBuf;

/// `byway gateway`
#[derive(Clone, Debug, Args)]
#[command(before_help = "\
Examples:
  byway gateway check gw.toml    what a configuration means, and what it would install

docs/gateway.md shows two sites, step by step.")]
pub struct Gateway {
    /// What to do.
    #[command(subcommand)]
    pub command: GatewayCommand,
}

/// What can be asked of a gateway.
#[derive(Clone, Debug, Subcommand)]
pub enum GatewayCommand {
    /// Say what a configuration means, what is odd about it, and what it would install
    Check(GatewayCheck),
}

/// `byway gateway check`
#[derive(Clone, Debug, Args)]
pub struct GatewayCheck {
    /// The configuration
    #[arg(value_name = "FILE")]
    pub file: PathBuf,
}
