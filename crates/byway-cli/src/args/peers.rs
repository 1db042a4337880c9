//! The arguments of `byway peer` and `byway config`.

use byway_transfer::secret_words::WordArgument;
use byway_transfer::settings::PeerName;
use byway_transfer::ticket::Ticket;
use clap::{Args, Subcommand};

/// `byway peer`
#[derive(Clone, Debug, Args)]
#[command(before_help = include_str!("examples/peer.txt").trim_end())]
pub struct Peer {
    /// What to do.
    #[command(subcommand)]
    pub command: PeerCommand,
}

/// What can be done with names.
#[derive(Clone, Debug, Subcommand)]
pub enum PeerCommand {
    /// Give a receiver a name, which stands for its ticket from then on
    #[command(before_help = include_str!("examples/peer-add.txt").trim_end())]
    Add {
        /// Letters, digits, `-`, `_` and `.`, at most 64
        #[arg(value_name = "NAME")]
        name: PeerName,
        /// The receiver's ticket, or @FILE
        #[arg(value_name = "TICKET")]
        ticket: WordArgument<Ticket>,
        /// Let a name that is taken stand for this ticket from now on [default: a name that is
        /// taken is refused]
        #[arg(long)]
        replace: bool,
    },
    /// Show the names, and what they stand for
    #[command(before_help = include_str!("examples/peer-list.txt").trim_end())]
    List,
    /// Change a name
    #[command(before_help = include_str!("examples/peer-rename.txt").trim_end())]
    Rename {
        /// The name so far
        #[arg(value_name = "OLD")]
        old: PeerName,
        /// The name from now on
        #[arg(value_name = "NEW")]
        new: PeerName,
    },
    /// Forget a name and its ticket
    #[command(before_help = include_str!("examples/peer-remove.txt").trim_end())]
    Remove {
        /// The name
        #[arg(value_name = "NAME")]
        name: PeerName,
    },
}

/// `byway config`
#[derive(Clone, Debug, Args)]
#[command(before_help = include_str!("examples/config.txt").trim_end())]
pub struct Config {
    /// What to do.
    #[command(subcommand)]
    pub command: ConfigCommand,
}

/// What can be done with configuration files.
#[derive(Clone, Debug, Subcommand)]
pub enum ConfigCommand {
    /// Look for mistakes in the configuration files: exit code 2 if there is one
    #[command(before_help = include_str!("examples/config-check.txt").trim_end())]
    Check,
}
