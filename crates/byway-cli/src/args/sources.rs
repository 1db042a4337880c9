//! The arguments of `byway source` and `byway sink`.

use super::help_layout::EXPERT_OPTIONS;
use crate::address::Advertised;
use crate::messages;
use crate::units::{UnitError, parse_rate, parse_size};
use byway_registry::word as registry;
use byway_sources::{AllowedSource, Name};
use byway_transfer::local_address::LocalAddress;
use byway_transfer::secret_words::WordArgument;
use byway_transfer::ticket::Ticket;
use byway_wire::relay;
use clap::{ArgGroup, Args, ValueEnum};
use std::path::PathBuf;

/// `byway sink`
#[derive(Clone, Debug, Args)]
#[command(before_help = include_str!("examples/sink.txt").trim_end())]
pub struct Sink {
    /// Directory to write into: a file for each source, under its name
    #[arg(value_name = "DIR")]
    pub directory: PathBuf,
    /// Local address or interface (eth0), with or without port, to be reached at; repeatable
    /// [default: all addresses, a free port]
    #[arg(long, value_name = "ADDR")]
    pub listen: Vec<LocalAddress>,
    /// Outside address or name that leads here, for the ticket. Sources look a name up:
    /// nas.example.org:4747. Without port: the one listened on. Repeatable [default: this host's
    /// own addresses, which the ticket holds too]
    #[arg(long, value_name = "ADDR")]
    pub advertise: Vec<Advertised>,
    /// Relay to be reachable through, as a word or @FILE (a word a line); repeatable [default:
    /// none]
    #[arg(long, value_name = "WORD", env = "BYWAY_RELAY", hide_env_values = true, value_delimiter = ',')]
    pub relay: Vec<WordArgument<relay::Word>>,
    /// Key that may use the name, as `byway id` prints it on the source's host; repeatable. With it
    /// no other name and no other key is let in [default: a name is that of the first key that uses
    /// it]
    #[arg(long, value_name = "NAME=KEY", value_delimiter = ',')]
    pub allow: Vec<AllowedSource>,
    /// Tell sources that records are written when they would survive a loss of power [default: when
    /// this process has written them]
    #[arg(long)]
    pub fsync: bool,
    /// Print a new ticket; every one printed before becomes worthless [default: the ticket of the
    /// run before]
    #[arg(long)]
    pub new_ticket: bool,
    /// Bytes of memory for what arrives and is not yet written, of all sources together, K/M/G
    /// binary
    #[arg(long, value_name = "SIZE", env = "BYWAY_MEMORY", value_parser = parse_size, default_value = "64M")]
    #[arg(help_heading = EXPERT_OPTIONS)]
    pub memory: u64,
}

/// `byway source`
#[derive(Clone, Debug, Args)]
#[command(group = ArgGroup::new("rate").required(true), before_help = include_str!("examples/source.txt").trim_end())]
pub struct Source {
    /// Name of the source, of letters, digits, `.`, `_` and `-`. The sink's file has it
    #[arg(long, value_name = "NAME")]
    pub name: Name,
    /// Ticket of a sink, @FILE, or the name of a peer; repeatable, every record goes to each
    #[arg(long, value_name = "TICKET", env = "BYWAY_TICKET", hide_env_values = true)]
    #[arg(value_delimiter = ',', required = true)]
    pub to: Vec<WordArgument<Ticket>>,
    /// Records to send to each sink per second: 1.2Mbit, or 150K for 150 KiB
    #[arg(long, value_name = "RATE", group = "rate", value_parser = parse_demand, allow_hyphen_values = true)]
    pub demand: Option<u64>,
    /// File that holds the same, read every second
    #[arg(long, value_name = "FILE", group = "rate")]
    pub demand_file: Option<PathBuf>,
    /// Relay to send through, as a word or @FILE (a word a line); repeatable [default: those that
    /// the ticket names; without any the sink is reached directly]
    #[arg(long, value_name = "WORD", env = "BYWAY_RELAY", hide_env_values = true, value_delimiter = ',')]
    pub relay: Vec<WordArgument<relay::Word>>,
    /// Registry whose relays to draw from, beside those of --relay, as a word or @FILE. It is asked
    /// at the beginning, and renews the words of these relays [default: none]
    #[arg(long, value_name = "WORD", env = "BYWAY_REGISTRY", hide_env_values = true)]
    pub registry: Option<WordArgument<registry::RegistryWord>>,
    /// How many relays to draw by lot of those that there are
    #[arg(long, value_name = "K", default_value_t = 2, value_parser = clap::value_parser!(u8).range(1..=16))]
    pub paths: u8,
    /// Local address or interface (eth0) to connect from; repeatable, each address adds paths
    /// [default: the system chooses one]
    #[arg(long, value_name = "ADDR", env = "BYWAY_BIND", value_delimiter = ',')]
    #[arg(value_parser = LocalAddress::without_port)]
    pub bind: Vec<LocalAddress>,
    /// Records of so many bytes each, K/M binary, at most 1M [default: each line is a record]
    #[arg(long, value_name = "N", value_parser = parse_size, conflicts_with = "prefixed")]
    pub record: Option<u64>,
    /// Before each record stands its length: 4 bytes, most significant first [default: each line is
    /// a record]
    #[arg(long)]
    pub prefixed: bool,
    /// What to do with a line that is longer than a record may be (1M): cut the rest off, or skip
    /// the line. Both are counted
    #[arg(long, value_name = "cut|skip", hide_possible_values = true, default_value = "cut")]
    pub long_lines: LongLinesArgument,
    /// Give up the oldest records that cannot be sent, and count them [default: hold standard input
    /// back]
    #[arg(long)]
    pub give_up_oldest: bool,
    /// Standard input begins with the first record that there ever was: pass over those that the
    /// sink has [default: every record is new]
    #[arg(long)]
    pub replay: bool,
    /// Bytes of records to keep until a sink has written them, K/M/G binary [default: 8M; of an
    /// input that gives more than --demand, a quarter of a second of it]
    #[arg(long, value_name = "SIZE", value_parser = parse_size, help_heading = EXPERT_OPTIONS)]
    pub keep: Option<u64>,
    /// Set rates by figure 2 of Wang et al. word by word, for research [default: no path's
    /// probability to be raised vanishes]
    #[arg(long, help_heading = EXPERT_OPTIONS)]
    pub literal: bool,
    /// beta(0) of figure 2 of Wang et al.: the part of its rate, 0 to 1, by which a raise of a new
    /// path exceeds the constant step. Their testbed (section V) has 0, figure 3 has 0 and 0.1
    #[arg(long, value_name = "PART", default_value = "0", value_parser = parse_beta)]
    #[arg(allow_hyphen_values = true, help_heading = EXPERT_OPTIONS)]
    pub beta: f64,
}

/// What becomes of lines that are too long.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum LongLinesArgument {
    /// Their beginnings are records
    Cut,
    /// They are no records
    Skip,
}

/// A demand: bytes per second, at least one.
pub fn parse_demand(text: &str) -> Result<u64, String> {
    if text.trim_start().starts_with('-') {
        return Err(messages::source::NEGATIVE_DEMAND.into());
    }
    match parse_rate(text) {
        Ok(0) => Err(messages::source::ZERO_DEMAND.into()),
        Ok(demand) => Ok(demand),
        Err(UnitError::Rate(text)) => Err(messages::source::not_a_demand(&text)),
        Err(error) => Err(error.to_string()),
    }
}

/// beta(0), a factor from 0 to 1.
fn parse_beta(text: &str) -> Result<f64, String> {
    let beta = text.trim().parse().ok().filter(|beta| (0.0..=1.0).contains(beta));
    beta.ok_or_else(|| messages::source::not_a_beta(text))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_beta_is_from_nothing_to_one() {
        assert_eq!((parse_beta("0"), parse_beta(" 0.1"), parse_beta("1")), (Ok(0.0), Ok(0.1), Ok(1.0)));
        for wrong in ["-0.1", "1.01", "NaN", "inf", "", "10 %"] {
            assert!(parse_beta(wrong).unwrap_err().contains("0.1"), "{wrong}");
        }
    }

    #[test]
    fn a_demand_is_more_than_nothing() {
        assert_eq!(parse_demand("150K"), Ok(153_600));
        assert_eq!(parse_demand(" 150000/s\n"), Ok(150_000));
        assert_eq!(parse_demand("1.2Mbit/s"), Ok(150_000));
        for wrong in ["0", "-5", "fast", "", "off"] {
            assert!(parse_demand(wrong).unwrap_err().contains("150K"), "{wrong}");
        }
    }
}
