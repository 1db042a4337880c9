//! `cargo bench -p byway-rivals -- [--rounds N] [--seconds S] [--only NAME] [--json]`
//!
//! Medians over the rounds, and byway's ratio to quinn: of medians, in this very run.

use byway_rivals::{DATAGRAM, Error, Outcome, byway, quic, tcp};
use std::time::Duration;

const RIVALS: [&str; 4] = ["byway normal", "byway background", "quinn", "tcp, in the clear"];

struct Arguments {
    rounds: usize,
    seconds: f64,
    only: Option<String>,
    json: bool,
}

fn arguments() -> Result<Arguments, Error> {
    let mut parsed = Arguments { rounds: 5, seconds: 2.0, only: None, json: false };
    let mut words = std::env::args().skip(1);
    while let Some(word) = words.next() {
        let mut value = || words.next().ok_or_else(|| format!("{word} wants a value"));
        match word.as_str() {
            "--bench" => {} // Cargo says so to every bench
            "--rounds" => parsed.rounds = value()?.parse()?,
            "--seconds" => parsed.seconds = value()?.parse()?,
            "--only" => parsed.only = Some(value()?),
            "--json" => parsed.json = true,
            _ => return Err(format!("unknown argument {word}").into()),
        }
    }
    if parsed.rounds == 0 || parsed.seconds <= 0.0 {
        return Err("at least one round of some time".into());
    }
    Ok(parsed)
}

fn run(rival: &str, duration: Duration) -> Result<Outcome, Error> {
    match rival {
        "byway normal" => byway::run("mpath", duration),
        "byway background" => byway::run("harp", duration),
        "quinn" => quic::run(duration),
        _ => tcp::run(duration),
    }
}

fn median(values: impl Iterator<Item = f64>) -> f64 {
    let mut values: Vec<f64> = values.collect();
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(f64::NAN)
}

fn main() -> Result<(), Error> {
    let arguments = arguments()?;
    let duration = Duration::from_secs_f64(arguments.seconds);
    let chosen: Vec<&str> = RIVALS
        .into_iter()
        .filter(|rival| arguments.only.as_ref().is_none_or(|only| rival.contains(only.as_str())))
        .collect();
    let mut outcomes = vec![Vec::new(); chosen.len()];
    for round in 0..arguments.rounds {
        for (rival, outcomes) in chosen.iter().zip(&mut outcomes) {
            let outcome = run(rival, duration).map_err(|error| format!("{rival}, round {round}: {error}"))?;
            outcomes.push(outcome);
        }
    }
    let goodput = |outcomes: &[Outcome]| median(outcomes.iter().map(|outcome| outcome.goodput));
    let quinn = chosen.iter().position(|rival| *rival == "quinn").and_then(|index| outcomes.get(index));
    let quinn = quinn.map(|outcomes| goodput(outcomes));
    if !arguments.json {
        let Arguments { rounds, seconds, .. } = arguments;
        println!(
            "loopback, {rounds} alternating rounds of {seconds} s, UDP payload {DATAGRAM}, AES-256-GCM; medians"
        );
        println!("{:<18} {:>8} {:>17} {:>9} {:>9}", "", "Gbit/s", "(range)", "CPU s/GB", "to quinn");
    }
    for (rival, outcomes) in chosen.iter().zip(&outcomes) {
        let middle = goodput(outcomes);
        let least = outcomes.iter().map(|outcome| outcome.goodput).fold(f64::INFINITY, f64::min);
        let most = outcomes.iter().map(|outcome| outcome.goodput).fold(0.0, f64::max);
        let cpu = median(outcomes.iter().map(|outcome| outcome.cpu_per_gigabyte));
        let ratio = quinn.map(|quinn| middle / quinn);
        let note = outcomes.last().map_or("", |outcome| outcome.note.as_str());
        if arguments.json {
            let ratio = ratio.map_or("null".to_owned(), |ratio| format!("{ratio:.3}"));
            println!(
                r#"{{"rival":"{rival}","bits_per_second":{middle:.0},"least":{least:.0},"most":{most:.0},"cpu_seconds_per_gigabyte":{cpu:.3},"to_quinn":{ratio}}}"#
            );
        } else {
            let range = format!("({:.2} to {:.2})", least / 1e9, most / 1e9);
            let ratio = ratio.map_or(String::new(), |ratio| format!("{ratio:.2}"));
            println!("{rival:<18} {:>8.2} {range:>17} {cpu:>9.2} {ratio:>9}", middle / 1e9);
            if !note.is_empty() {
                println!("    last round: {note}");
            }
        }
    }
    Ok(())
}
