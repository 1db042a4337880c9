//! ```text
//! cargo bench -p byway-rivals --bench loopback [--features aws-lc] --
//!     [--rounds N] [--seconds S] [--only NAME] [--json]
//! ```
//!
//! Prints median goodput, median processor time per 10^9 bytes and largest memory of byway, quinn
//! and kernel TCP, at both ends. The last columns compare goodput with quinn and with kernel TCP.
//! quinn runs with two cryptography libraries (`ring`, `aws-lc-rs`); the faster result counts.

use byway_rivals::process::{TransferResult, is_end, transfer};
use byway_rivals::{Error, MAX_DATAGRAM_LEN, Rival};
use std::time::Duration;

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

fn median(values: impl Iterator<Item = f64>) -> f64 {
    let mut values: Vec<f64> = values.collect();
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(f64::NAN)
}

fn of(outcomes: &[TransferResult], figure: impl Fn(&TransferResult) -> f64) -> f64 {
    median(outcomes.iter().map(figure))
}

/// What others reach in the same run, if they are in it.
#[derive(Clone, Copy)]
struct Others {
    quinn: Option<f64>,
    tcp: Option<f64>,
}

fn print(name: &str, outcomes: &[TransferResult], others: Others, json: bool) {
    let middle = of(outcomes, |outcome| outcome.goodput);
    let least = outcomes.iter().map(|outcome| outcome.goodput).fold(f64::INFINITY, f64::min);
    let most = outcomes.iter().map(|outcome| outcome.goodput).fold(0.0, f64::max);
    let [giving, taking] = [0, 1].map(|end| of(outcomes, |outcome| outcome.processor[end]));
    let [here, there] =
        [0, 1].map(|end| outcomes.iter().map(|outcome| outcome.memory[end]).max().unwrap_or(0));
    let ratios = [others.quinn, others.tcp].map(|other| other.map(|other| middle / other));
    if json {
        let [quinn, tcp] = ratios.map(|ratio| ratio.map_or("null".to_owned(), |ratio| format!("{ratio:.3}")));
        println!(
            r#"{{"rival":"{name}","bits_per_second":{middle:.0},"least":{least:.0},"most":{most:.0},"cpu_seconds_per_gigabyte":[{giving:.3},{taking:.3}],"memory":[{here},{there}],"to_quinn":{quinn},"to_tcp":{tcp}}}"#
        );
        return;
    }
    let range = format!("({:.2} to {:.2})", least / 1e9, most / 1e9);
    let [quinn, tcp] = ratios.map(|ratio| ratio.map_or(String::new(), |ratio| format!("{ratio:.2}")));
    let processor = format!("{giving:.2} + {taking:.2}");
    let memory = format!("{:.1} + {:.1}", here as f64 / 1048576.0, there as f64 / 1048576.0);
    println!("{name:<18} {:>8.2} {range:>17} {processor:>12} {memory:>14} {quinn:>9} {tcp:>7}", middle / 1e9);
    for note in outcomes.last().iter().flat_map(|outcome| &outcome.notes).filter(|note| !note.is_empty()) {
        println!("    last round: {note}");
    }
}

fn main() -> Result<(), Error> {
    if is_end()? {
        return Ok(());
    }
    let arguments = arguments()?;
    let duration = Duration::from_secs_f64(arguments.seconds);
    let wanted = |name: &str| arguments.only.as_ref().is_none_or(|only| name.contains(only.as_str()));
    let chosen: Vec<&str> = Rival::ALL.iter().map(|(name, _)| *name).filter(|name| wanted(name)).collect();
    let mut outcomes = vec![Vec::new(); chosen.len()];
    for round in 0..arguments.rounds {
        for (rival, outcomes) in chosen.iter().zip(&mut outcomes) {
            let outcome =
                transfer(rival, duration).map_err(|error| format!("{rival}, round {round}: {error}"))?;
            outcomes.push(outcome);
        }
    }
    let best = |start: &str| {
        let those = chosen.iter().zip(&outcomes).filter(|(name, _)| name.starts_with(start));
        those.map(|(_, outcomes)| of(outcomes, |outcome| outcome.goodput)).reduce(f64::max)
    };
    let others = Others { quinn: best("quinn"), tcp: best("tcp") };
    if !arguments.json {
        let Arguments { rounds, seconds, .. } = arguments;
        println!(
            "loopback, two processes, {rounds} alternating rounds of {seconds} s, UDP payload {MAX_DATAGRAM_LEN} at most, AES-256-GCM; medians, most memory"
        );
        println!(
            "{:<18} {:>8} {:>17} {:>12} {:>14} {:>9} {:>7}",
            "", "Gbit/s", "(range)", "CPU s/GB", "MiB", "to quinn", "to TCP"
        );
    }
    for (rival, outcomes) in chosen.iter().zip(&outcomes) {
        print(rival, outcomes, others, arguments.json);
    }
    Ok(())
}
