//! The arguments of `byway lane`.

use byway_forward::local_port::{self, socks_listen};
use clap::Args;
use std::net::SocketAddr;

/// `byway lane`
#[derive(Clone, Debug, Args)]
#[command(before_help = include_str!("examples/lane.txt").trim_end())]
pub struct Lane {
    /// Port of loopback, and where its connections lead. Port 0 is a free one. Repeatable [default:
    /// none]
    #[arg(value_name = "[ADDR:]PORT:HOST:PORT", required_unless_present_any = ["socks", "observe"])]
    pub ports: Vec<local_port::Forward>,
    /// Port of loopback where programs say by SOCKS5 or by HTTP CONNECT where their connections
    /// lead; repeatable [default: none]
    #[arg(long, value_name = "[ADDR:]PORT", value_parser = socks_listen)]
    pub socks: Vec<SocketAddr>,
    /// Only tell each second what the uplink carries, what is idle, and what a queue costs
    #[arg(long, conflicts_with_all = ["ports", "socks"])]
    pub observe: bool,
    /// Connections at once at most; further ones wait
    #[arg(long, value_name = "N", default_value_t = 1_000, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub connections: u32,
}
