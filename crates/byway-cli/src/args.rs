//! The command-line arguments, with units and defaults. A flag overrides its environment variable
//! `BYWAY_*`, which overrides the configuration files. Those are in place of the defaults here.
//!
//! Other users can see arguments. So secrets, such as tickets, can also be given in the variable,
//! or as `@FILE` (FILE holds the secret).

pub mod disabled_verbs;
#[cfg(feature = "gateway")]
pub mod gateway;
pub mod help_layout;
#[cfg(feature = "lab")]
pub mod lab;
#[cfg(feature = "lab")]
pub mod lab_options;
#[cfg(feature = "lane")]
pub mod lane;
pub mod lending;
#[cfg(feature = "help")]
pub mod manual;
#[cfg(feature = "pairing")]
pub mod pairing;
pub mod peers;
#[cfg(feature = "registry")]
pub mod registry;
pub mod relay_words;
pub mod selection;
pub mod sources;
pub mod status;
#[cfg(feature = "lab")]
pub mod sweep;
pub mod tasks;
pub mod verbs;
#[cfg(feature = "view")]
pub mod view;

#[cfg(not(feature = "gateway"))]
use disabled_verbs::Absent as Gateway;
#[cfg(not(feature = "lab"))]
use disabled_verbs::Absent as Lab;
#[cfg(not(feature = "lane"))]
use disabled_verbs::Absent as Lane;
#[cfg(not(feature = "pairing"))]
use disabled_verbs::Absent as Pair;
#[cfg(not(feature = "registry"))]
use disabled_verbs::Absent as Registry;
#[cfg(not(feature = "view"))]
use disabled_verbs::Absent as View;
#[cfg(not(feature = "help"))]
use disabled_verbs::{Absent as Completions, Absent as Man};
#[cfg(feature = "gateway")]
use gateway::Gateway;
#[cfg(feature = "lab")]
use lab::Lab;
#[cfg(feature = "lane")]
use lane::Lane;
#[cfg(feature = "help")]
use manual::{Completions, Man};
#[cfg(feature = "pairing")]
use pairing::Pair;
#[cfg(feature = "registry")]
use registry::Registry;
#[cfg(feature = "view")]
use view::View;

use crate::exit::Exit;
use crate::output::{self, Style};
use byway_transfer::secret_words::shortened;
use byway_transfer::settings::{Config, ConfigSources, PeerError, SETTING_KEYS, SettingKey};
use byway_transfer::state_directory::{StateDir, StateError};
use byway_transfer::ticket::looks_like_ticket;
use clap::{Args, CommandFactory as _, FromArgMatches as _, Parser, Subcommand};
use help_layout::GLOBAL_OPTIONS_ORDER;
use std::ffi::OsString;
use std::io::{self, Write as _};
use std::path::PathBuf;

/// Moves bulk data over many paths at once: the direct one and detours through relays.
#[derive(Debug, Parser)]
#[command(name = "byway", version, before_help = help_layout::examples(&verbs()))]
#[command(after_help = help_layout::codes_and_signals(), help_template = help_layout::help_template(&verbs()))]
#[command(disable_help_subcommand = true, arg_required_else_help = true)]
pub struct Cli {
    /// What holds for every verb.
    #[command(flatten)]
    pub global: Global,
    /// The verb.
    #[command(subcommand)]
    pub command: Command,
}

/// What holds for every verb.
#[derive(Clone, Debug, Default, Args)]
pub struct Global {
    /// Write NDJSON: one event per line, the last is "result" [default: text]
    #[arg(long, global = true, env = "BYWAY_JSON", value_parser = clap::builder::FalseyValueParser::new())]
    #[arg(display_order = GLOBAL_OPTIONS_ORDER)]
    pub json: bool,
    /// Show bars or a line a second. Off: --no-progress [default: bars, else a line every 5 s]
    #[arg(short = 'P', long, global = true, display_order = GLOBAL_OPTIONS_ORDER + 1)]
    pub progress: bool,
    /// Write nothing but errors and what was asked for [default: off]
    #[arg(short, long, global = true, display_order = GLOBAL_OPTIONS_ORDER + 2, conflicts_with_all = ["verbose", "progress"])]
    pub quiet: bool,
    /// Also write what happens to each path [default: off]
    #[arg(short, long, global = true, display_order = GLOBAL_OPTIONS_ORDER + 3)]
    pub verbose: bool,
    /// Directory that holds this host's keys [default: $XDG_DATA_HOME/byway, else
    /// ~/.local/share/byway]
    #[arg(long, global = true, display_order = GLOBAL_OPTIONS_ORDER + 4, env = "BYWAY_STATE_DIR", value_name = "DIR")]
    pub state_dir: Option<PathBuf>,
    /// Read no configuration file [default: off]
    #[arg(long, global = true, display_order = GLOBAL_OPTIONS_ORDER + 5)]
    pub no_config: bool,
    /// What the configuration files say.
    #[arg(skip)]
    pub config: Config,
}

impl Global {
    /// The directory of this host's keys.
    ///
    /// # Errors
    /// Nothing says where it is.
    pub fn state(&self) -> Result<StateDir, StateError> {
        StateDir::locate(self.state_dir.as_deref(), |name| std::env::var_os(name))
    }

    /// An error if the configuration files have mistakes.
    ///
    /// # Errors
    /// The first of them.
    pub fn usable(&self) -> Result<(), PeerError> {
        Ok(self.config.usable()?)
    }

    /// How much is told, and in which form.
    #[must_use]
    pub const fn style(&self) -> Style {
        // A configuration file may ask for progress where the command line asks for quiet.
        Style {
            json: self.json,
            progress: self.progress && !self.quiet,
            quiet: self.quiet,
            verbose: self.verbose,
        }
    }
}

/// The verbs.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// See it work: one machine, three paths, one path against all
    #[cfg_attr(not(feature = "demo"), command(hide = true))]
    Demo(verbs::Demo),
    /// Send files, directories or a stream to whoever printed the ticket
    Send(verbs::Send),
    /// Print a ticket, then take what is sent
    Recv(verbs::Recv),
    /// Cut a directory into lists that several hosts can send
    Tasks(tasks::Tasks),
    /// Lead local ports to services on the receiver's side
    Forward(verbs::Forward),
    /// Pace uploads to hosts without byway, so that others hardly wait
    #[cfg_attr(not(feature = "lane"), command(hide = true))]
    Lane(Lane),
    /// Forward what it cannot read, for whoever holds its word
    Relay(verbs::Relay),
    /// Send the records of standard input to a sink, at a rate
    Source(sources::Source),
    /// Print a ticket, then write down the records of live sources
    Sink(sources::Sink),
    /// List the relays that enrol, and offer them to whoever may ask
    #[cfg_attr(not(feature = "registry"), command(hide = true))]
    Registry(Registry),
    /// Show which relays a registry offers
    Relays(verbs::Relays),
    /// Print the public key that peers know this host by
    Id(verbs::Id),
    /// See whether a receiver is there, over which paths, how far away
    Ping(verbs::Ping),
    /// Give receivers names, in place of their tickets
    Peer(peers::Peer),
    /// Get to know another host by a short code, without a ticket
    #[cfg_attr(not(feature = "pairing"), command(hide = true))]
    Pair(Pair),
    /// Look for mistakes in the configuration files
    Config(peers::Config),
    /// Show all that runs on this host, how fast, and why slow
    Status(status::Status),
    /// Change the bandwidth limits of what runs on this host
    Limit(status::Limit),
    /// Show all that runs on this host in a browser
    #[cfg_attr(not(feature = "view"), command(hide = true))]
    View(View),
    /// Carry background flows of unmodified hosts between sites
    #[cfg_attr(not(feature = "gateway"), command(hide = true))]
    Gateway(Gateway),
    /// Ask questions about networks in a simulator; test papers' claims
    #[cfg_attr(not(feature = "lab"), command(hide = true))]
    Lab(Lab),
    /// Print the completions for a shell
    #[cfg_attr(not(feature = "help"), command(hide = true))]
    Completions(Completions),
    /// Write the manual pages
    #[cfg_attr(not(feature = "help"), command(hide = true))]
    Man(Man),
}

/// All verbs, also those that this build lacks.
fn verbs() -> clap::Command {
    Command::augment_subcommands(clap::Command::new("byway"))
}

impl Command {
    /// The verb as it is typed and as results name it.
    #[must_use]
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Demo(_) => "demo",
            Self::Send(_) => "send",
            Self::Recv(_) => "recv",
            Self::Tasks(_) => "tasks",
            Self::Forward(_) => "forward",
            Self::Lane(_) => "lane",
            Self::Relay(_) => "relay",
            Self::Source(_) => "source",
            Self::Sink(_) => "sink",
            Self::Registry(_) => "registry",
            Self::Relays(_) => "relays",
            Self::Gateway(_) => "gateway",
            Self::Id(_) => "id",
            Self::Ping(_) => "ping",
            Self::Peer(_) => "peer",
            Self::Pair(_) => "pair",
            Self::Config(_) => "config",
            Self::Status(_) => "status",
            Self::Limit(_) => "limit",
            Self::View(_) => "view",
            Self::Lab(_) => "lab",
            Self::Completions(_) => "completions",
            Self::Man(_) => "man",
        }
    }
}

impl Cli {
    /// Parses `argv`. If there is nothing to run, prints help, the version or a parse error, and
    /// `Err` holds the exit code. With `--json` in `argv`, a parse error is also a result event on
    /// standard output.
    pub fn read(argv: impl IntoIterator<Item = OsString>) -> Result<Self, Exit> {
        let argv: Vec<OsString> = argv.into_iter().collect();
        Self::parse_with_files(&argv).map_err(|error| {
            // Neither stream may be there; the exit code still is.
            let _ = match shown(&error, &argv) {
                None => error.print(),
                Some(text) => write!(io::stderr(), "{text}"),
            };
            if !error.use_stderr() {
                return Exit::Ok;
            }
            if argv.iter().any(|argument| argument == "--json") {
                let text = shown(&error, &argv).unwrap_or_else(|| error.to_string());
                let sentence = text.lines().next().unwrap_or_default();
                output::print_failure("", Exit::Usage, sentence.strip_prefix("error: ").unwrap_or(sentence));
            }
            Exit::Usage
        })
    }

    /// Parses the command line twice: for the verb, and then with the defaults of the configuration
    /// files. Those of files with mistakes are left out.
    fn parse_with_files(argv: &[OsString]) -> Result<Self, clap::Error> {
        let command = with_negations(Self::command());
        let matches = command.clone().try_get_matches_from(argv)?;
        let mut cli = Self::from_arg_matches(&matches)?;
        if cli.global.no_config {
            return Ok(cli);
        }
        let config = Config::read(ConfigSources::locate(|name| std::env::var_os(name)));
        if config.usable().is_ok() && !config.settings().is_empty() {
            let is_stream = argv.iter().any(|argument| argument == "-");
            let command = with_defaults(command, &matches, &config, is_stream);
            cli = Self::from_arg_matches(&command.try_get_matches_from(argv)?)?;
        }
        cli.global.config = config;
        Ok(cli)
    }
}

/// A parse error without the tickets that it quotes. `None`: it quotes none.
fn shown(error: &clap::Error, argv: &[OsString]) -> Option<String> {
    let text = error.to_string();
    let quoted = argv.iter().filter_map(|argument| argument.to_str());
    let quoted: Vec<&str> = quoted.filter(|it| looks_like_ticket(it) && text.contains(it)).collect();
    let short = |text: String, ticket: &&str| text.replace(*ticket, &shortened(ticket));
    (!quoted.is_empty()).then(|| quoted.iter().fold(text, short))
}

/// The option that switches off what a configuration file switches on: `no-retry`.
fn negation(key: &SettingKey) -> &'static str {
    // Clap takes names that live as long as the program. There are few.
    format!("no-{}", key.key).leak()
}

/// The command line with a `--no-FLAG` for each flag that a configuration file may set. The last of
/// both counts.
fn with_negations(command: clap::Command) -> clap::Command {
    SETTING_KEYS.iter().filter(|key| key.is_flag()).fold(command, |command, key| {
        let name = negation(key);
        let argument = clap::Arg::new(name).long(name).hide(true).action(clap::ArgAction::SetTrue);
        let argument = argument.overrides_with(key.key).global(key.table.is_empty());
        match key.table {
            "" => command.arg(argument),
            verb => command.mut_subcommand(verb, |command| command.arg(argument)),
        }
    })
}

/// Whether the command line switches off what this key switches on.
fn is_negated(matches: &clap::ArgMatches, key: &SettingKey) -> bool {
    let matches = if key.table.is_empty() { Some(matches) } else { matches.subcommand_matches(key.table) };
    key.is_flag() && matches.is_some_and(|matches| matches.get_flag(negation(key)))
}

/// The command line with what configuration files say in place of defaults. A stream cannot be
/// retried, so that `retry` does not hold for it.
fn with_defaults(
    mut command: clap::Command,
    matches: &clap::ArgMatches,
    config: &Config,
    is_stream: bool,
) -> clap::Command {
    let is_off = |key: &SettingKey| is_stream && key.key == "retry" || is_negated(matches, key);
    for setting in config.settings().iter().filter(|setting| !is_off(setting.key)) {
        // Clap takes defaults that live as long as the program. There are few.
        let values = setting.values.iter().map(|value| &*value.clone().leak());
        let id = setting.key.key.replace('-', "_");
        let set = |argument: clap::Arg| argument.default_values(values);
        command = match setting.key.table {
            "" => command.mut_arg(id, set),
            verb => command.mut_subcommand(verb, |command| command.mut_arg(id, set)),
        };
    }
    command
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn the_catalogue_is_consistent() {
        with_negations(Cli::command()).debug_assert();
    }

    #[test]
    fn what_a_file_switches_on_the_command_line_switches_off() {
        let config = Config::of_text("progress = true\n[send]\nretry = true\n");
        assert!(config.usable().is_ok());
        let flags = |more: &[&str]| {
            let argv = [&["byway"], more].concat();
            let command = with_negations(Cli::command());
            let matches = command.clone().try_get_matches_from(&argv).unwrap();
            let command = with_defaults(command, &matches, &config, false);
            let cli = Cli::from_arg_matches(&command.try_get_matches_from(&argv).unwrap()).unwrap();
            let Command::Send(send) = cli.command else { panic!("{more:?}") };
            (cli.global.progress, send.retry)
        };
        assert_eq!(flags(&["send", "a", "b"]), (true, true));
        assert_eq!(flags(&["send", "a", "b", "--no-retry"]), (true, false));
        assert_eq!(flags(&["send", "a", "b", "--no-progress", "-q"]), (false, true));
        assert_eq!(flags(&["--no-progress", "send", "a", "--no-retry", "b"]), (false, false));
        assert_eq!(flags(&["send", "a", "b", "--no-retry", "--retry", "-P"]), (true, true));
        assert_eq!(flags(&["send", "a", "b", "--retry", "--no-retry"]), (true, false));
        assert_eq!(SETTING_KEYS.iter().filter(|key| key.is_flag()).count(), 2, "try each of them here");
        let command = Cli::command();
        for key in &SETTING_KEYS {
            let verb =
                if key.table.is_empty() { &command } else { command.find_subcommand(key.table).unwrap() };
            let option = verb.get_arguments().find(|option| option.get_long() == Some(key.key)).unwrap();
            assert_eq!(option.get_value_delimiter() == Some(','), key.is_split_at_commas(), "{key:?}");
        }
        let unknown =
            with_negations(Cli::command()).try_get_matches_from(["byway", "recv", "a", "--no-retry"]);
        assert!(unknown.is_err());
    }

    #[test]
    fn every_verb_stands_in_one_group_on_a_line_of_80_columns() {
        let mut grouped: Vec<_> =
            help_layout::VERB_GROUPS.iter().flat_map(|(_, names)| names.iter().copied()).collect();
        grouped.sort_unstable();
        let command = Cli::command();
        let width = help_layout::VERB_NAME_COLUMNS;
        let mut verbs: Vec<_> = command.get_subcommands().map(clap::Command::get_name).collect();
        verbs.sort_unstable();
        assert_eq!(grouped, verbs);
        let page = Cli::command().render_help().to_string();
        for verb in command.get_subcommands().filter(|verb| !verb.is_hide_set()) {
            let start = format!("  {:width$}  ", verb.get_name());
            let lines: Vec<_> = page.lines().filter(|line| line.starts_with(&start)).collect();
            let [line] = lines.as_slice() else { panic!("{}: {lines:?}", verb.get_name()) };
            assert!(line.len() <= 80, "{line}");
        }
    }

    #[test]
    fn help_begins_with_examples() {
        let help = Cli::command().render_help().to_string();
        assert!(help.starts_with("Examples:\n  byway "), "{help}");
    }

    #[test]
    fn global_flags_stand_before_or_after_the_verb() {
        for argv in [["byway", "--json", "id"], ["byway", "id", "--json"]] {
            let cli = Cli::try_parse_from(argv).unwrap();
            assert!(cli.global.json);
            assert_eq!(cli.command.name(), "id");
        }
        assert!(Cli::try_parse_from(["byway", "id", "-q", "-v"]).is_err());
    }
}
