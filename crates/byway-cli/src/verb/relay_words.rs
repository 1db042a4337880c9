//! `byway relay word`, `words` and `revoke`: words that have names.

use crate::args::Global;
use crate::args::relay_words::RelayCommand;
use crate::args::verbs::{RELAY_PORT, Relay};
use crate::exit::Exit;
use crate::messages;
use crate::output::{Align, Event, Fields, Outcome, Output, Table};
use crate::units::{Bytes, Rate, Span};
use anyhow::Result;
use byway_transfer::{ListedWord, WORD_CHANGE_TIME, WordLimits, WordOperator};

/// Runs the operator's command on the relay words: makes, lists or revokes them.
pub(super) fn run(
    global: &Global,
    arguments: &Relay,
    command: &RelayCommand,
    output: &mut Output,
) -> Result<Exit> {
    let makes_key = matches!(command, RelayCommand::Word(_));
    let operator = WordOperator::open(&global.state()?, arguments.key_file.as_deref(), makes_key)?;
    let fields = match command {
        RelayCommand::Word(issue) => {
            let limits = WordLimits { rate: issue.rate, quota: issue.quota, expires: issue.expires };
            let addresses = issue.advertise.iter().map(|endpoint| endpoint.or_port(RELAY_PORT)).collect();
            let word = operator.issue(&issue.name, limits, addresses)?.reveal();
            std::thread::sleep(WORD_CHANGE_TIME); // whoever has the word may use it at once
            output.answer(&word)?;
            Fields::one("word", &word)
        }
        RelayCommand::Words => {
            let words = operator.list()?;
            match words.is_empty() {
                true => output.say(messages::relay::NO_NAMED_WORD),
                false => output.answer_table(&table(&words))?,
            }
            Fields::one("words", &words)
        }
        RelayCommand::Revoke { name } => {
            operator.revoke(name)?;
            std::thread::sleep(WORD_CHANGE_TIME);
            output.say(&messages::relay::revoked(name));
            Fields::one("name", &name.to_string())
        }
    };
    output.emit(&Event::result("relay", Exit::Ok, Outcome::Told(fields)));
    Ok(Exit::Ok)
}

fn table(words: &[ListedWord]) -> Table {
    let names = ["name", "state"].map(|heading| (heading, Align::Left));
    let numbers = ["rate", "per day", "good for", "carried"].map(|heading| (heading, Align::Right));
    let mut table = Table::new(names.into_iter().chain(numbers)).keyed_by(1);
    let any = || "any".to_owned();
    for word in words {
        table.row([
            word.name.clone(),
            word.state.into(),
            word.rate_bps.map_or_else(any, |rate| Rate(rate as f64).to_string()),
            word.quota_bytes_per_day.map_or_else(any, |quota| Bytes(quota).to_string()),
            Span(word.good_seconds as f64).to_string(),
            Bytes(word.carried_bytes).to_string(),
        ]);
    }
    table
}
