//! The arguments of `byway pair`.

use byway_transfer::secret_words::WordArgument;
use byway_transfer::settings::PeerName;
use byway_transfer::ticket::Ticket;
use byway_wire::relay;
use clap::Args;

/// `byway pair`
#[derive(Clone, Debug, Args)]
#[command(before_help = include_str!("examples/pair.txt").trim_end())]
pub struct Pair {
    /// What the other host shows: 7-crossover-clockwork, and @HOST:PORT of the relay where both
    /// meet [default: this host makes a code]
    #[arg(value_name = "CODE")]
    pub code: Option<String>,
    /// What to call the other host here [default: its own name]
    #[arg(value_name = "NAME")]
    pub name: Option<PeerName>,
    /// Relay where both hosts meet, as a word or @FILE [default: that of the code, else that of
    /// `recv` or `send` in config.toml, else that of the ticket]
    #[arg(long, value_name = "WORD", env = "BYWAY_RELAY", hide_env_values = true, value_delimiter = ',')]
    pub relay: Vec<WordArgument<relay::Word>>,
    /// Ticket for the other host, or @FILE [default: what `byway recv` printed last on this host]
    #[arg(long, value_name = "TICKET", hide_env_values = true)]
    pub ticket: Option<WordArgument<Ticket>>,
}
