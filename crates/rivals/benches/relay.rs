//! ```text
//! cargo bench -p byway-rivals --bench relay [-- --rounds N] [--seconds S]
//! ```
//!
//! Prints how many packets of 1200 bytes byway's relay forwards per second of processor time, and
//! how many a forwarder that only copies packets. The numbers are medians over rounds that
//! alternate between relay and forwarder.

use byway_rivals::Error;
use byway_rivals::relay_comparison::{Forwarded, Forwarder, Load, PACKET_LEN, run};
use std::time::Duration;

const LOADS: [(&str, Load); 4] = [
    ("runs of 16, 1 sender", Load { senders: 1, run: 16 }),
    ("runs of 16, 64 senders", Load { senders: 64, run: 16 }),
    ("single packets, 1 sender", Load { senders: 1, run: 1 }),
    ("single packets, 64 senders", Load { senders: 64, run: 1 }),
];

fn main() -> Result<(), Error> {
    let (mut rounds, mut seconds) = (5, 1.0);
    let mut words = std::env::args().skip(1);
    while let Some(word) = words.next() {
        let mut value = || words.next().ok_or_else(|| format!("{word} wants a value"));
        match word.as_str() {
            "--bench" => {} // Cargo says so to every bench
            "--rounds" => rounds = value()?.parse()?,
            "--seconds" => seconds = value()?.parse()?,
            _ => return Err(format!("unknown argument {word}").into()),
        }
    }
    let duration = Duration::from_secs_f64(seconds);
    println!(
        "packets of {PACKET_LEN} bytes per CPU second of the forwarder, {rounds} alternating rounds of {seconds} s; medians"
    );
    println!("{:<28} {:>9} {:>9} {:>6}   packets per receive and send call", "", "relay", "bare", "ratio");
    for (name, load) in LOADS {
        let (mut relay, mut bare) = (Vec::new(), Vec::new());
        for _ in 0..rounds.max(1) {
            relay.push(run(Forwarder::Relay, load, duration)?);
            bare.push(run(Forwarder::Bare, load, duration)?);
        }
        let [ours, theirs] = [median(&relay), median(&bare)];
        let calls = relay.last().map_or([0.0; 2], |last| last.per_call);
        println!(
            "{name:<28} {ours:>9.0} {theirs:>9.0} {:>6.2}   {:.1} and {:.1}",
            ours / theirs,
            calls[0],
            calls[1]
        );
    }
    Ok(())
}

fn median(runs: &[Forwarded]) -> f64 {
    let mut values: Vec<f64> = runs.iter().map(|run| run.per_cpu_second).collect();
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(f64::NAN)
}
