//! The arguments of `byway gateway`.

use byway_gateway::Ports;
use byway_gateway::gateway_options::{GATEWAY_OPTIONS, GatewayOption};
use byway_gateway::machine::Settings;
use byway_gateway_host::joining::GatewayAt;
use clap::{Args, Subcommand};
use std::path::PathBuf;

/// `byway gateway`
#[derive(Clone, Debug, Args)]
#[command(args_conflicts_with_subcommands = true, subcommand_negates_reqs = true)]
#[command(before_help = include_str!("examples/gateway.txt").trim_end(), after_help = options())]
pub struct Gateway {
    /// What it is to do
    #[arg(long, value_name = "FILE", required = true)]
    pub config: Option<PathBuf>,
    /// The file's option, whatever it says
    #[arg(long, help = insisted("observe"))]
    pub observe: bool,
    /// The file's option, whatever it says
    #[arg(long, help = insisted("fail-closed"))]
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
    /// Ask a gateway to serve this host, as long as this runs
    Join(GatewayJoin),
}

/// `byway gateway join`
#[derive(Clone, Debug, Args)]
#[command(before_help = include_str!("examples/gateway-join.txt").trim_end())]
pub struct GatewayJoin {
    /// The gateway: its key, and its address, with or without port
    #[arg(value_name = "KEY@ADDR")]
    pub gateway: GatewayAt,
    /// Ports of this host, and ranges, to which flows are carried [default: all]
    #[arg(long, value_name = "PORTS", value_delimiter = ',')]
    pub ports: Vec<Ports>,
}

/// `byway gateway check`
#[derive(Clone, Debug, Args)]
#[command(before_help = include_str!("examples/gateway-check.txt").trim_end())]
pub struct GatewayCheck {
    /// The configuration
    #[arg(value_name = "FILE")]
    pub file: PathBuf,
}

/// `byway gateway status`
#[derive(Clone, Debug, Args)]
#[command(before_help = include_str!("examples/gateway-status.txt").trim_end())]
pub struct GatewayStatus {
    /// The gateway with this device
    #[arg(long, value_name = "DEVICE", default_value = byway_gateway::kernel::DEFAULT_DEVICE)]
    pub tun: String,
    /// The gateway that answers at this socket [default: that of the device]
    #[arg(long, value_name = "PATH")]
    pub socket: Option<PathBuf>,
}

/// The help of a flag that insists on an option of the file.
fn insisted(name: &str) -> String {
    let help = GatewayOption::named(name, false).map(|option| option.help).unwrap_or_default();
    let mut letters = help.chars();
    let first = letters.next().map(|letter| letter.to_ascii_uppercase());
    format!("{}{} [default: as the file says]", first.map(String::from).unwrap_or_default(), letters.as_str())
}

/// The options that a file may have, with their defaults.
fn options() -> String {
    let usual = Settings::default();
    let table = |limit: bool| {
        let options = GATEWAY_OPTIONS.iter().filter(move |option| option.limit == limit);
        options.map(|option| {
            let value = option.get(&usual).map(|value| value.to_string());
            format!("\n  {:16} {:13} {}", option.name, value.as_deref().unwrap_or("-"), option.explained())
        })
    };
    let (gateway, limits): (String, String) = (table(false).collect(), table(true).collect());
    format!("Options of the file, and their defaults:\n[gateway]{gateway}\n[limits]{limits}")
}
