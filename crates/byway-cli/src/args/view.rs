//! The arguments of `byway view`.

use clap::Args;
use std::net::SocketAddr;

/// `byway view`
#[derive(Clone, Debug, Args)]
#[command(before_help = include_str!("examples/view.txt").trim_end())]
pub struct View {
    /// Loopback address to serve the page on; port 0 is any that is free
    #[arg(long, value_name = "ADDR", default_value = "127.0.0.1:0")]
    pub listen: SocketAddr,
    /// Print the address, and open no browser [default: a browser opens if there is a display]
    #[arg(long)]
    pub no_open: bool,
}
