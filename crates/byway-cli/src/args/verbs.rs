//! The arguments of each verb.

use super::help_layout::EXPERT_OPTIONS;
use super::lending::Lending;
use super::relay_words::RelayCommand;
use super::selection::{Selection, TREE_OPTIONS};
use crate::address::{Advertised, Endpoint};
use crate::exit::{Exit, Failure};
use crate::marking::Marking;
use crate::messages;
use crate::units::{parse_duration, parse_positive_size, parse_rate, parse_size};
use anyhow::Result;
use byway_forward::allow_rules::AllowRule;
use byway_forward::forward_target::Target;
use byway_forward::local_port::{self, socks_listen};
use byway_registry::word as registry;
use byway_transfer::AllowedSender;
use byway_transfer::limits::rate_timetable::RateTimetable;
use byway_transfer::limits::time_of_day::TimeOfDay;
use byway_transfer::local_address::LocalAddress;
use byway_transfer::secret::Secret;
use byway_transfer::secret_words::WordArgument;
use byway_transfer::settings::Config;
use byway_transfer::ticket::{Ticket, looks_like_ticket};
use byway_wire::{Prefix, relay};
use clap::{Args, ValueEnum};
use std::ffi::OsString;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// The port that a relay listens on unless told otherwise.
pub const RELAY_PORT: u16 = 4748;

/// `byway recv`
#[derive(Clone, Debug, Args)]
#[command(before_help = include_str!("examples/recv.txt").trim_end())]
pub struct Recv {
    /// Directory to write into, or `-` for one stream to standard output. Unfinished files (in
    /// .byway-partial) and deleted ones (.byway-trash) are kept 30 days
    #[arg(value_name = "DIR")]
    pub directory: PathBuf,
    /// End after one complete transfer, with a ticket that is good for that one [default: go on
    /// until stopped]
    #[arg(long)]
    pub once: bool,
    /// Set modes as they were sent, also writable for all; setuid and setgid if the sender keeps
    /// them, too [default: what this process's umask leaves]
    #[arg(long)]
    pub keep_modes: bool,
    /// Delete nothing, though senders may ask for it [default: off]
    #[arg(long)]
    pub no_delete: bool,
    /// Print a new ticket; all printed before become worthless [default: the one of the run before]
    #[arg(long)]
    pub new_ticket: bool,
    /// Local address or interface (eth0), with or without port, to be reached at; repeatable
    /// [default: all addresses, a free port]
    #[arg(long, value_name = "ADDR")]
    pub listen: Vec<LocalAddress>,
    /// Outside address or name that leads here, as of a router that forwards a port, for the
    /// ticket. Senders look a name up: nas.example.org:4747. Without port: the one listened
    /// on. Repeatable [default: this host's own addresses, which the ticket holds too]
    #[arg(long, value_name = "ADDR")]
    pub advertise: Vec<Advertised>,
    /// Public key or peer's name of who may send, or @FILE. KEY=SUBDIR: into SUBDIR of DIR.
    /// Repeatable [default: the first who sends]
    #[arg(long, value_name = "KEY", env = "BYWAY_ALLOW", value_delimiter = ',')]
    pub allow: Vec<WordArgument<AllowedSender>>,
    /// What `byway forward` of a sender may reach from here: HOST:PORT, `*.lan:443`, 10.0.0.0/8:22
    /// or `any`. The port `*` is every port. Loopback and the local link only if they are named.
    /// Repeatable [default: nothing]
    #[arg(long, value_name = "RULE", env = "BYWAY_ALLOW_FORWARD", value_delimiter = ',')]
    pub allow_forward: Vec<AllowRule>,
    /// Relay to be reachable through, as a word or @FILE (a word a line); repeatable [default:
    /// none]
    #[arg(long, value_name = "WORD", env = "BYWAY_RELAY", hide_env_values = true, value_delimiter = ',')]
    pub relay: Vec<WordArgument<relay::Word>>,
    /// Most to take per second of all senders together: 10Mbit, 2M for 2 MiB, or `off`. It may
    /// change with the local time: "08:00,2M 23:00,off". Of UP:DOWN a receiver heeds DOWN
    #[arg(long, value_name = "RATE", env = "BYWAY_BWLIMIT", default_value = "off")]
    pub bwlimit: RateTimetable,
    /// Registry that lists this host with --also-relay, as a word for joining or @FILE [default:
    /// none]
    #[arg(long, value_name = "WORD", env = "BYWAY_REGISTRY", hide_env_values = true)]
    pub registry: Option<WordArgument<registry::RegistryWord>>,
    /// What it relays for others.
    #[command(flatten)]
    pub lending: Lending,
    /// Do not listen on TCP too, for senders whose networks drop UDP [default: listen, at the same
    /// ports]
    #[arg(long, help_heading = EXPERT_OPTIONS)]
    pub no_tcp: bool,
    /// Bytes of memory for what arrives and is not yet written, of all senders together. K/M/G
    /// binary [default: half of what the machine has, or its cgroup]
    #[arg(long, value_name = "SIZE", env = "BYWAY_MEMORY", value_parser = parse_size)]
    #[arg(help_heading = EXPERT_OPTIONS)]
    pub memory: Option<u64>,
}

/// How much a transfer asks of lines that others use too.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum Priority {
    /// Yield to others
    #[default]
    Background,
    /// Share fairly, as one TCP flow on the best path would
    Normal,
}

/// What the kernel controls the congestion of TCP connections with.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum TcpCongestion {
    /// CUBIC, as most hosts have it
    #[default]
    Cubic,
    /// NewReno
    Reno,
}

impl From<TcpCongestion> for byway_net::TcpCongestion {
    fn from(chosen: TcpCongestion) -> Self {
        match chosen {
            TcpCongestion::Cubic => Self::Cubic,
            TcpCongestion::Reno => Self::Reno,
        }
    }
}

/// `byway send`
#[derive(Clone, Debug, Args)]
#[command(before_help = include_str!("examples/send.txt").trim_end())]
pub struct Send {
    /// Files and directories to send (or `-` for standard input), then the ticket, @FILE or PEER:
    /// [env: BYWAY_TICKET]
    #[arg(value_name = "PATH… TICKET", required_unless_present = "from", num_args = 1..)]
    pub paths_and_ticket: Vec<OsString>,
    /// Relay to send through, a word or @FILE; repeatable [default: those of the ticket]
    #[arg(long, value_name = "WORD", env = "BYWAY_RELAY", hide_env_values = true, value_delimiter = ',')]
    pub relay: Vec<WordArgument<relay::Word>>,
    /// Registry to ask for relays: word or @FILE, or word for joining [default: none]
    #[arg(long, value_name = "WORD", env = "BYWAY_REGISTRY", hide_env_values = true, value_delimiter = ',')]
    pub registry: Vec<WordArgument<registry::RegistryWord>>,
    /// Use the direct path alone [default: off]
    #[arg(long)]
    pub no_relay: bool,
    /// How much to ask of lines that others use too: background (yield to others) or normal (a
    /// TCP's share)
    #[arg(long, hide_possible_values = true, value_name = "CLASS", env = "BYWAY_PRIORITY")]
    #[arg(default_value = "background")]
    pub priority: Priority,
    /// Local address or interface (eth0) to send from; repeatable, each address adds paths
    /// [default: every address with a route]
    #[arg(long, value_name = "ADDR", env = "BYWAY_BIND", value_delimiter = ',')]
    pub bind: Vec<LocalAddress>,
    /// Most to send per second: 10Mbit, 2M for 2 MiB, or `off`. It may change with the local time:
    /// "08:00,2M 23:00,off". Of UP:DOWN a sender heeds UP
    #[arg(long, value_name = "RATE", env = "BYWAY_BWLIMIT", default_value = "off")]
    pub bwlimit: RateTimetable,
    /// End with code 8 at this local time [default: go on]
    #[arg(long, value_name = "HH:MM")]
    pub stop_at: Option<TimeOfDay>,
    /// End with code 8 after SIZE of data [default: all]
    #[arg(long, value_name = "SIZE", value_parser = parse_positive_size)]
    pub max_transfer: Option<u64>,
    /// Wait for a receiver that is away. Off: --no-retry [default: off]
    #[arg(long)]
    pub retry: bool,
    /// Outside address of a router that forwards UDP to --also-relay; repeatable [default: this
    /// host's own]
    #[arg(long, value_name = "ADDR", env = "BYWAY_ADVERTISE", hide_env = true, value_delimiter = ',')]
    pub advertise: Vec<Endpoint>,
    /// Which entries are sent.
    #[command(flatten)]
    pub selection: Selection,
    /// Directory of what FILE lists [default: PATH]
    #[arg(long, value_name = "DIR", requires = "files_from", help_heading = TREE_OPTIONS)]
    pub from: Option<PathBuf>,
    /// Delete in directories sent what is no longer here; the receiver keeps it 30 days [default:
    /// off]
    #[arg(long, help_heading = TREE_OPTIONS, conflicts_with = "files_from")]
    pub delete: bool,
    /// Compare contents, not size and time [default: off]
    #[arg(long, help_heading = TREE_OPTIONS)]
    pub checksum: bool,
    /// Keep newer files there, with code 0 [default: off]
    #[arg(long, conflicts_with = "replace_newer", help_heading = TREE_OPTIONS)]
    pub update: bool,
    /// Replace newer files [default: kept, named, code 4]
    #[arg(long, help_heading = TREE_OPTIONS)]
    pub replace_newer: bool,
    /// Send contents alone, as of `photos/.` [default: off]
    #[arg(long, help_heading = TREE_OPTIONS)]
    pub into_root: bool,
    /// Keep hard links [default: each name becomes a file]
    #[arg(long, help_heading = TREE_OPTIONS)]
    pub hard_links: bool,
    /// Send setuid and setgid bits too, which `recv --keep-modes` sets [default: off]
    #[arg(long, help_heading = TREE_OPTIONS)]
    pub keep_modes: bool,
    /// List what would change, change nothing [default: off]
    #[arg(short = 'n', long, help_heading = TREE_OPTIONS)]
    pub dry_run: bool,
    /// What it relays for others.
    #[command(flatten)]
    pub lending: Lending,
    /// Congestion controller: background, mpath or newreno. `byway lab controllers` lists more, and
    /// options: hir:packets=20 [default: that of the priority]
    #[arg(long, value_name = "NAME", env = "BYWAY_CONGESTION", help_heading = EXPERT_OPTIONS)]
    pub congestion: Option<String>,
    /// Mark of what is sent (DSCP): le (lower effort, RFC 8622) or none [default: le in the class
    /// background, else none]
    #[arg(long, value_enum, hide_possible_values = true, value_name = "NAME", env = "BYWAY_DSCP")]
    #[arg(help_heading = EXPERT_OPTIONS)]
    pub dscp: Option<Marking>,
    /// Never use TCP [default: it replaces UDP where that brings far less]
    #[arg(long, help_heading = EXPERT_OPTIONS)]
    pub no_tcp: bool,
    /// What governs the kernel's TCP: cubic or reno
    #[arg(long, hide_possible_values = true, value_name = "NAME", env = "BYWAY_TCP_CONGESTION")]
    #[arg(default_value = "cubic", help_heading = EXPERT_OPTIONS)]
    pub tcp_congestion: TcpCongestion,
    /// Write each path's figures as qlog [default: off]
    #[arg(long, value_name = "FILE", help_heading = EXPERT_OPTIONS)]
    pub qlog: Option<PathBuf>,
}

impl Send {
    /// Whether a directory is sent without its name.
    #[must_use]
    pub const fn sends_contents(&self) -> bool {
        self.into_root || self.from.is_some()
    }

    /// Separates the paths from the ticket. The last argument is the ticket if it looks like one,
    /// begins with `@` (a file with the ticket) or is `NAME:` (a peer). Otherwise the ticket is
    /// `environment`, which is `BYWAY_TICKET`. Without that the last argument is the ticket in any
    /// case. If nothing else is a ticket, one that a shell has split at its white space is put
    /// together again.
    pub fn split(
        &self,
        environment: Option<&str>,
        config: &Config,
    ) -> Result<(Vec<&Path>, WordArgument<Ticket>)> {
        let usage = |sentence: String| anyhow::Error::new(Failure::new(Exit::Usage, sentence));
        let Some((last, before)) = self.paths_and_ticket.split_last() else {
            let (Some(from), Some(ticket)) = (&self.from, environment) else {
                return Err(usage(messages::send::NO_TICKET.into()));
            };
            let Ok(ticket) = ticket.parse();
            return Ok((vec![from], ticket));
        };
        let text = last.to_str().unwrap_or_default();
        let given = text.starts_with('@') || looks_like_ticket(text) || config.is_recipient(text)?;
        let begins = |part: &OsString| part.to_str().is_some_and(looks_like_ticket);
        let folded = before.iter().position(begins).filter(|_| !given && environment.is_none());
        let whole = folded
            .and_then(|at| self.paths_and_ticket.get(at..))
            .map(|parts| Secret::new(parts.iter().map(|part| part.to_string_lossy()).collect::<String>()));
        let given = given || whole.is_some();
        let (paths, ticket) = match (environment, &whole, folded) {
            (_, Some(whole), Some(at)) => (before.get(..at).unwrap_or_default(), whole.expose().as_str()),
            (Some(ticket), ..) if !given => (self.paths_and_ticket.as_slice(), ticket),
            _ => (before, text),
        };
        if let Some(from) = &self.from {
            if !paths.is_empty() {
                return Err(usage(messages::send::TWO_DIRECTORIES.into()));
            }
            let Ok(ticket) = ticket.parse();
            return Ok((vec![from], ticket));
        }
        if paths.is_empty() {
            return Err(usage(if given {
                messages::send::NO_PATH_BEFORE_TICKET.into()
            } else {
                messages::send::no_ticket(&last.to_string_lossy())
            }));
        }
        let Ok(ticket) = ticket.parse();
        Ok((paths.iter().map(Path::new).collect(), ticket))
    }
}

/// `byway forward`
#[derive(Clone, Debug, Args)]
#[command(before_help = include_str!("examples/forward.txt").trim_end())]
pub struct Forward {
    /// Local port, with or without the address to listen on, and where its connections lead. Port 0
    /// is a free one. Repeatable [default: none]
    #[arg(value_name = "[ADDR:]PORT:HOST:PORT", required_unless_present_any = ["socks", "stdio"])]
    pub ports: Vec<local_port::Forward>,
    /// Local port, with or without the address to listen on, where programs say by SOCKS5 where
    /// their connections lead; repeatable [default: none]
    #[arg(long, value_name = "[ADDR:]PORT", value_parser = socks_listen)]
    pub socks: Vec<SocketAddr>,
    /// Join standard input and output with one connection to this target, as `ssh -W` does, and end
    /// with it. Not with --json: standard output holds the connection's bytes alone
    #[arg(long, value_name = "HOST:PORT", conflicts_with_all = ["ports", "socks", "connections"])]
    pub stdio: Option<Target>,
    /// The receiver's ticket, @FILE, or the name of a peer
    #[arg(long = "to", value_name = "TICKET", env = "BYWAY_TICKET", hide_env_values = true, required = true)]
    pub ticket: Option<WordArgument<Ticket>>,
    /// Relay to send through, as a word or @FILE (a word a line); repeatable [default: those that
    /// the ticket names]
    #[arg(long, value_name = "WORD", env = "BYWAY_RELAY", hide_env_values = true, value_delimiter = ',')]
    pub relay: Vec<WordArgument<relay::Word>>,
    /// Registry to ask for relays, as a word or @FILE [default: none]
    #[arg(long, value_name = "WORD", env = "BYWAY_REGISTRY", hide_env_values = true)]
    pub registry: Option<WordArgument<registry::RegistryWord>>,
    /// How much to ask of lines that others use too, in both directions: background (yield to
    /// others) or normal (share fairly, as one TCP flow on the best path would)
    #[arg(long, hide_possible_values = true, value_name = "CLASS", env = "BYWAY_PRIORITY")]
    #[arg(default_value = "background")]
    pub priority: Priority,
    /// Local address or interface (eth0) to send from; repeatable, each address adds paths
    /// [default: every address with a route]
    #[arg(long, value_name = "ADDR", env = "BYWAY_BIND", value_delimiter = ',')]
    pub bind: Vec<LocalAddress>,
    /// Most per second over all paths and connections together: 10Mbit, 2M for 2 MiB, or `off`.
    /// UP:DOWN is to the receiver, and from it. It may change with the local time:
    /// "08:00,2M:off 23:00,off"
    #[arg(long, value_name = "RATE", env = "BYWAY_BWLIMIT", default_value = "off")]
    pub bwlimit: RateTimetable,
    /// Congestion controller of what this side sends, as of `byway send`; the receiver sends by the
    /// priority [default: the one of the priority]
    #[arg(long, value_name = "NAME", env = "BYWAY_CONGESTION", help_heading = EXPERT_OPTIONS)]
    pub congestion: Option<String>,
    /// Differentiated services code point of what is sent: le (lower effort, RFC 8622) or none, as
    /// most traffic [default: le in the class background, else none]
    #[arg(long, value_enum, hide_possible_values = true, value_name = "NAME", env = "BYWAY_DSCP")]
    #[arg(help_heading = EXPERT_OPTIONS)]
    pub dscp: Option<Marking>,
    /// Never use TCP [default: where UDP brings no answer, or far less than TCP, TCP takes its
    /// place]
    #[arg(long, help_heading = EXPERT_OPTIONS)]
    pub no_tcp: bool,
    /// Connections at once at most; further ones wait
    #[arg(long, value_name = "N", default_value_t = 10_000, value_parser = clap::value_parser!(u32).range(1..=100_000))]
    #[arg(help_heading = EXPERT_OPTIONS)]
    pub connections: u32,
}

/// `byway relay`
#[derive(Clone, Debug, Args)]
#[command(before_help = include_str!("examples/relay.txt").trim_end())]
#[command(args_conflicts_with_subcommands = true)]
pub struct Relay {
    /// Local address or interface (eth0) to listen on, with or without port; repeatable [default:
    /// all addresses, port 4748]
    #[arg(long, value_name = "ADDR", env = "BYWAY_LISTEN", value_delimiter = ',')]
    pub listen: Vec<LocalAddress>,
    /// Address that senders find it at, for the word; repeatable, at most 4 [default: those
    /// listened on]
    #[arg(long, value_name = "ADDR", env = "BYWAY_ADVERTISE", value_delimiter = ',')]
    pub advertise: Vec<Endpoint>,
    /// Network to forward to besides the public Internet; repeatable [default: public unicast only]
    #[arg(long, value_name = "CIDR", env = "BYWAY_ALLOW_DESTINATION", value_delimiter = ',')]
    pub allow_destination: Vec<Prefix>,
    /// How long the printed word is good for: 30m, 24h, 7d; rounded up to a minute
    #[arg(long, value_name = "DURATION", env = "BYWAY_EXPIRES", default_value = "7d", value_parser = parse_duration)]
    pub expires: Duration,
    /// How much the word may use per second: 80Mbit, or 10M for 10 MiB [default: no limit]
    #[arg(long, value_name = "RATE", env = "BYWAY_RATE", value_parser = parse_rate)]
    pub rate: Option<u64>,
    /// Bytes that the word may use per day (UTC), K/M/G/T binary [default: no limit]
    #[arg(long, value_name = "BYTES", env = "BYWAY_QUOTA", value_parser = parse_size)]
    pub quota: Option<u64>,
    /// Bytes that the relay carries per day (UTC) in all, K/M/G/T binary [default: no limit]
    #[arg(long, value_name = "BYTES", env = "BYWAY_PER_DAY", value_parser = parse_size)]
    pub per_day: Option<u64>,
    /// Bytes that the relay carries per month (UTC) in all, K/M/G/T binary [default: no limit]
    #[arg(long, value_name = "BYTES", env = "BYWAY_PER_MONTH", value_parser = parse_size)]
    pub per_month: Option<u64>,
    /// Registry to enrol at, as a word for joining or @FILE [default: none]
    #[arg(long, value_name = "WORD", env = "BYWAY_REGISTRY", hide_env_values = true)]
    pub registry: Option<WordArgument<registry::RegistryWord>>,
    /// Whose the relay is, for a registry, which spreads its answers over operators [default:
    /// nobody's in particular]
    #[arg(long, value_name = "NAME", env = "BYWAY_OPERATOR", default_value = "", hide_default_value = true)]
    pub operator: String,
    /// Where the relay is, in words for people who look at a registry's list [default: nothing is
    /// said]
    #[arg(long, value_name = "TEXT", env = "BYWAY_REGION", default_value = "", hide_default_value = true)]
    pub region: String,
    /// Loopback address for pages of the operator's own: /metrics, /healthz [default: none]
    #[arg(long, value_name = "ADDR", env = "BYWAY_HTTP")]
    #[cfg_attr(not(feature = "view"), arg(hide = true))]
    pub http: Option<SocketAddr>,
    /// Make a new key first: every word given out so far becomes worthless [default: off]
    #[arg(long)]
    pub roll_key: bool,
    /// Do not relay over TCP too, for hosts whose networks drop UDP [default: listen, at the same
    /// ports]
    #[arg(long, help_heading = EXPERT_OPTIONS)]
    pub no_tcp: bool,
    /// Kernel's congestion control for TCP: cubic, as most hosts have, or reno (NewReno)
    #[arg(long, hide_possible_values = true, value_name = "NAME", env = "BYWAY_TCP_CONGESTION")]
    #[arg(default_value = "cubic", help_heading = EXPERT_OPTIONS)]
    pub tcp_congestion: TcpCongestion,
    /// Packets that wait for each TCP connection at most, and in each of its buffers in the kernel;
    /// limits each to so many per round trip [default: 16 KiB, and as much as the kernel finds
    /// useful]
    #[arg(long, value_name = "PACKETS", env = "BYWAY_TCP_BUFFER", value_parser = clap::value_parser!(u16).range(4..=10_000))]
    #[arg(help_heading = EXPERT_OPTIONS)]
    pub tcp_buffer: Option<u16>,
    /// Words whose use of the day is remembered at most, K/M binary. Each takes some 300 bytes once
    /// it is used, and up to 16384 from the start
    #[arg(long, value_name = "COUNT", env = "BYWAY_ACCOUNTS", default_value = "16K", value_parser = parse_size)]
    #[arg(help_heading = EXPERT_OPTIONS)]
    pub accounts: u64,
    /// Longest time for words in use after SIGTERM
    #[arg(long, value_name = "DURATION", env = "BYWAY_DRAIN", default_value = "1m", value_parser = parse_duration)]
    #[arg(help_heading = EXPERT_OPTIONS)]
    pub drain: Duration,
    /// File that holds the key which words are made from [default: relay-key in the state
    /// directory]
    #[arg(long, value_name = "FILE", env = "BYWAY_KEY_FILE", help_heading = EXPERT_OPTIONS, global = true)]
    pub key_file: Option<PathBuf>,
    /// What to do instead.
    #[command(subcommand)]
    pub command: Option<RelayCommand>,
}

/// `byway relays`
#[derive(Clone, Debug, Args)]
#[command(before_help = include_str!("examples/relays.txt").trim_end())]
pub struct Relays {
    /// Registry to ask, as a word or @FILE
    #[arg(long, value_name = "WORD", env = "BYWAY_REGISTRY", hide_env_values = true)]
    #[arg(hide_default_value = true)]
    pub registry: WordArgument<registry::RegistryWord>,
}

/// `byway id`
#[derive(Clone, Debug, Args)]
#[command(before_help = include_str!("examples/id.txt").trim_end())]
pub struct Id {}

/// `byway ping`
#[derive(Clone, Debug, Args)]
#[command(before_help = include_str!("examples/ping.txt").trim_end())]
pub struct Ping {
    /// The receiver's ticket, @FILE, or the name of a peer
    #[arg(value_name = "TICKET", env = "BYWAY_TICKET", hide_env_values = true)]
    pub ticket: WordArgument<Ticket>,
    /// Relay to try as well, as a word or @FILE (a word a line); repeatable [default: those that
    /// the ticket names]
    #[arg(long, value_name = "WORD", env = "BYWAY_RELAY", hide_env_values = true, value_delimiter = ',')]
    pub relay: Vec<WordArgument<relay::Word>>,
    /// Registry to ask for relays, as a word or @FILE [default: none]
    #[arg(long, value_name = "WORD", env = "BYWAY_REGISTRY", hide_env_values = true)]
    pub registry: Option<WordArgument<registry::RegistryWord>>,
    /// Probes per path
    #[arg(short, long, value_name = "N", default_value_t = 4, value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub count: u32,
    /// Never use TCP [default: where UDP brings no answer, TCP takes its place]
    #[arg(long, help_heading = EXPERT_OPTIONS)]
    pub no_tcp: bool,
}

/// `byway demo`
#[derive(Clone, Debug, Args)]
#[command(before_help = include_str!("examples/demo.txt").trim_end())]
pub struct Demo {
    /// File or directory to send [default: a generated tree of mixed files]
    #[arg(value_name = "PATH")]
    pub path: Option<PathBuf>,
}

#[cfg(test)]
mod tests {
    use super::*;
    use byway_transfer::identity::PublicKey;
    use clap::FromArgMatches;

    /// Parses the arguments of one verb alone.
    fn parse<T: Args + FromArgMatches>(argv: &[&str]) -> Result<T, clap::Error> {
        let command = T::augment_args(clap::Command::new("verb"));
        command.clone().debug_assert();
        let argv = std::iter::once(&"verb").chain(argv);
        T::from_arg_matches(&command.try_get_matches_from(argv)?)
    }

    fn ticket() -> Ticket {
        let permission = Secret::new([1; 16]);
        Ticket { key: PublicKey([2; 32]), permission, addresses: vec![], relays: vec![], names: vec![] }
    }

    #[test]
    fn every_verb_has_examples_first_and_a_line_with_a_default_per_flag() {
        let commands = [
            Recv::augment_args(clap::Command::new("recv")),
            Send::augment_args(clap::Command::new("send")),
            Relay::augment_args(clap::Command::new("relay")),
            Id::augment_args(clap::Command::new("id")),
            Ping::augment_args(clap::Command::new("ping")),
            Demo::augment_args(clap::Command::new("demo")),
        ];
        for mut command in commands {
            let help = command.render_help().to_string();
            assert!(help.starts_with("Examples:\n"), "{help}");
            let flags = command.get_arguments().filter(|argument| !argument.is_positional());
            for argument in flags.filter(|flag| flag.get_id() != "help") {
                let text = argument.get_help().map(ToString::to_string).unwrap_or_default();
                let known = text.contains("[default: ") || !argument.get_default_values().is_empty();
                assert!(known, "{} --{}: {text:?}", command.get_name(), argument.get_id());
            }
        }
    }

    #[test]
    fn send_reads_paths_then_a_ticket() {
        let word = ticket().to_string();
        let send: Send = parse(&["a", "b c", &word, "--priority", "normal"]).unwrap();
        let (paths, read) = send.split(None, &Config::default()).unwrap();
        assert_eq!(paths, [Path::new("a"), Path::new("b c")]);
        assert_eq!(read.value().unwrap(), ticket());
        assert_eq!(send.priority, Priority::Normal);
        let stream: Send = parse(&["-", &word]).unwrap();
        assert_eq!(stream.split(None, &Config::default()).unwrap().0, [Path::new("-")]);
    }

    #[test]
    fn the_ticket_in_the_environment_yields_to_one_that_is_typed() {
        let word = ticket().to_string();
        let split = |argv: &[&str], environment: Option<&str>| {
            let send: Send = parse(argv).unwrap();
            let (paths, ticket) = send.split(environment, &Config::default())?;
            anyhow::Ok((paths.len(), format!("{ticket:?}"), ticket.value().is_ok()))
        };
        assert_eq!(split(&["a", "b"], Some(&word)).unwrap(), (2, "[redacted]".into(), true));
        assert_eq!(split(&["a", &word], Some("nonsense")).unwrap(), (1, "[redacted]".into(), true));
        assert_eq!(split(&["a", "@t"], Some(&word)).unwrap(), (1, "@t".into(), false));
        assert_eq!(split(&["a", "nonsense"], None).unwrap(), (1, "[redacted]".into(), false));
        let (head, tail) = word.split_at(40);
        let (middle, end) = tail.split_at(20);
        assert_eq!(split(&["a", "b", head, middle, end], None).unwrap(), (2, "[redacted]".into(), true));
        assert_eq!(split(&["a", "byway1-x"], Some(&word)).unwrap(), (1, "[redacted]".into(), false));
        for (argv, environment) in
            [(&["a"][..], None), (&[word.as_str()], None), (&[word.as_str()], Some("x"))]
        {
            assert_eq!(Exit::of(&split(argv, environment).unwrap_err()), Exit::Usage, "{argv:?}");
        }
    }

    #[test]
    fn the_other_verbs_read_what_the_examples_show() {
        let relay: Relay =
            parse(&["--listen", "192.0.2.7:4748", "--expires", "30d", "--rate", "10M", "--quota", "500G"])
                .unwrap();
        assert_eq!(relay.expires, Duration::from_secs(30 * 86_400));
        assert_eq!((relay.rate, relay.quota), (Some(10 << 20), Some(500 << 30)));
        let relay: Relay =
            parse(&["--allow-destination", "10.0.0.0/8", "--allow-destination", "fd00::/8"]).unwrap();
        assert_eq!(relay.allow_destination.len(), 2);
        assert_eq!(relay.expires, Duration::from_secs(7 * 86_400));
        let recv: Recv =
            parse(&["-", "--once", "--relay", "@r", "--allow", &PublicKey([3; 32]).to_string()]).unwrap();
        assert_eq!((recv.once, recv.relay.len()), (true, 1));
        assert_eq!(recv.allow[0].value().unwrap(), PublicKey([3; 32]).into());
        let ping: Ping = parse(&["@t", "-c", "2"]).unwrap();
        assert_eq!(ping.count, 2);
        assert_eq!(parse::<Demo>(&[]).unwrap().path, None);
        assert!(parse::<Id>(&["extra"]).is_err());
    }

    #[test]
    fn bad_values_are_answered_in_our_words() {
        let told = |error: clap::Error| error.to_string();
        let text = told(parse::<Recv>(&["d", "--listen", "eth0:x"]).unwrap_err());
        assert!(text.contains("write an IP address"), "{text}");
        let allow = parse::<Recv>(&["d", "--allow", "bob"]).unwrap().allow;
        let text = allow[0].value().unwrap_err().to_string();
        assert!(text.contains("printed by `byway id`"), "{text}");
        let text = told(parse::<Relay>(&["--allow-destination", "10.0.0.1/8"]).unwrap_err());
        assert!(text.contains("the prefix would be 10.0.0.0/8"), "{text}");
    }
}
