//! How the pages of `--help` are laid out: verbs in groups, and the order of options.

use crate::exit::Exit;
use clap::ValueEnum as _;
use clap::builder::StyledStr;
use std::fmt::Write as _;

/// The heading of options that few people need. It is the last one in the help of each verb.
pub const EXPERT_OPTIONS: &str = "Expert options";

/// Place of the first option of all verbs in the help: behind the options of the verb.
pub(super) const GLOBAL_OPTIONS_ORDER: usize = 900;

/// Groups of verbs for `byway --help`, each with its heading.
pub const VERB_GROUPS: [(&str, &[&str]); 6] = [
    ("Files", &["send", "recv", "ping", "peer", "pair", "id", "tasks"]),
    ("Programs", &["forward", "lane", "source", "sink", "gateway"]),
    ("Paths", &["relay", "registry", "relays"]),
    ("What runs", &["status", "limit", "view"]),
    ("Study", &["demo", "lab"]),
    ("Other", &["config", "completions", "man"]),
];

/// Columns for the names of verbs: the longest is `completions`.
pub(super) const VERB_NAME_COLUMNS: usize = 11;

/// The page of `byway --help`. `verbs` has all verbs. Those that the build lacks are hidden, and a
/// group without verbs too.
pub(super) fn help_template(verbs: &clap::Command) -> StyledStr {
    let mut page = "{before-help}{about}\n\n{usage-heading} {usage}\n\n".to_owned();
    for (heading, names) in VERB_GROUPS {
        let found = names.iter().filter_map(|name| verbs.find_subcommand(name));
        let shown: Vec<_> = found.filter(|verb| !verb.is_hide_set()).collect();
        if shown.is_empty() {
            continue;
        }
        page += &styled(heading);
        for verb in shown {
            let about = verb.get_about().map(ToString::to_string).unwrap_or_default();
            let _ = write!(page, "\n  {:VERB_NAME_COLUMNS$}  {about}", verb.get_name());
        }
        page += "\n\n";
    }
    page += &styled("Options");
    page += "\n{options}{after-help}";
    page.into()
}

/// Examples for `byway --help`. Lines of verbs that the build lacks are left out.
pub(super) fn examples(verbs: &clap::Command) -> String {
    let lacks = |line: &&str| {
        let verb = line.split_whitespace().skip_while(|&word| word != "byway").nth(1);
        verb.and_then(|name| verbs.find_subcommand(name)).is_some_and(clap::Command::is_hide_set)
    };
    let lines = include_str!("examples/byway.txt").lines().filter(|line| !lacks(line));
    lines.collect::<Vec<_>>().join("\n")
}

/// The end of `byway --help`: exit codes and signals.
pub(super) fn codes_and_signals() -> String {
    let code = |exit: &Exit| format!("\n  {:3}  {}", *exit as u8, exit.meaning());
    let codes: String = Exit::value_variants().iter().map(code).collect();
    format!("Exit codes:{codes}\n\n{}", include_str!("signals.txt").trim_end())
}

/// A heading in the style of the others, which have one where clap colours its help.
fn styled(heading: &str) -> String {
    #[cfg(feature = "help")]
    return format!("{0}{heading}:{0:#}", clap::builder::Styles::styled().get_header());
    #[cfg(not(feature = "help"))]
    format!("{heading}:")
}
