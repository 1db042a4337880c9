//! Random networks and transfers with random faults, each made from a seed. No invariant may break,
//! and every transfer that can end must end, with exactly its size. Every tenth seed runs twice,
//! and must give the same record.

use crate::record::Record;
use crate::setup::{
    Arrivals, Carrier, Change, Changed, Cross, Demand, Discipline, LinkSetup, LinkSpec, Network, NodeChoice,
    PathChoice, QueueLimit, Requests, SessionOptions, Setup, Sizes, TcpOptions, Transfer,
};
use crate::world::{self, RunError};
use byway_control::{ControllerChoice, NAMES};
use byway_sim::Random;
use byway_wire::Duration;
use core::sync::atomic::AtomicBool;
use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// Faults and changes happen before this; afterwards the network is as good as it began.
const TROUBLED: u64 = 30;
/// A transfer has until this second.
const PATIENCE: u64 = 1_200;
/// Controllers that take the smallest delay of a path's whole life for the delay without a queue,
/// as their papers say. After a change to a longer route they yield for ever, so their transfers
/// need not end, only progress.
const YIELDING: [&str; 7] =
    ["harp-adaptive", "harp-independent", "harp-joint", "hir", "hir-literal", "nice", "tcp-lp"];
/// A transfer progresses if it received at least one byte in its last `STANDSTILL` seconds. The
/// time is long because a burst of losses can last for several retransmission timeouts, each of up
/// to a minute.
const STANDSTILL: usize = 400;

/// What a seed did that it should not.
#[derive(Clone, Debug, PartialEq)]
pub struct Finding {
    /// The seed: run it again with `byway lab fuzz --first SEED --seeds 1`.
    pub seed: u64,
    /// What is wrong, in one sentence.
    pub what: String,
}

/// Runs the world of `seed` and judges it.
///
/// # Errors
/// The law that was broken.
pub fn judge(seed: u64) -> Result<Record, Finding> {
    let setup = setup(seed);
    let wrong = |what: String| Finding { seed, what };
    let run = || {
        catch_unwind(AssertUnwindSafe(|| world::run(&setup, seed, &AtomicBool::new(false))))
            .map_err(|panic| wrong(sentence(&*panic)))?
            .map_err(|error: RunError| wrong(error.to_string()))
    };
    let record = run()?;
    for (transfer, asked) in record.transfers.iter().zip(&setup.transfers) {
        let Demand::Size(size) = asked.demand else { continue };
        let received = transfer.received.last().copied().unwrap_or_default();
        if let Some(why) = &transfer.failed {
            return Err(wrong(format!("{} failed: {why}", transfer.name)));
        }
        let before = transfer.received.iter().rev().nth(STANDSTILL).copied().unwrap_or_default();
        if transfer.finished.is_none()
            && YIELDING.contains(&asked.congestion.name.as_str())
            && received > before
        {
            continue;
        }
        if transfer.finished.is_none() {
            return Err(wrong(format!(
                "{} has {received} of {size} bytes after {PATIENCE} s",
                transfer.name
            )));
        }
        if received != size {
            return Err(wrong(format!("{} is finished with {received} of {size} bytes", transfer.name)));
        }
    }
    // Each tenth is done again: the same seed does the same.
    if seed.is_multiple_of(10) && run()? != record {
        return Err(wrong("the second run of this seed did something else".into()));
    }
    Ok(record)
}

fn sentence(panic: &(dyn core::any::Any + Send)) -> String {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    text.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("a panic without a message").to_owned()
}

/// The world of a seed.
#[must_use]
pub fn setup(seed: u64) -> Setup {
    let mut random = Random::component(seed, "a random world");
    let random = &mut random;
    let relays: Vec<String> = (0..random.below(5)).map(|number| format!("R{number}")).collect();
    let mut links = Vec::new();
    let mut both = |a: &str, b: &str, there: LinkSpec, back: LinkSpec| {
        links.push(LinkSetup { from: a.into(), to: b.into(), spec: there });
        links.push(LinkSetup { from: b.into(), to: a.into(), spec: back });
    };
    both("S", "A", access(), access());
    both("B", "D", access(), access());
    both("A", "B", line(random), line(random));
    for relay in &relays {
        both("A", relay, access(), access());
        both(relay, "B", line(random), line(random));
    }
    let mut transfers: Vec<Transfer> =
        (0..1 + random.below(3)).map(|number| transfer(number, &relays, random)).collect();
    // One at least whose relays may crash and whose bytes are real.
    if let Some(first) = transfers.first_mut() {
        first.carrier = Carrier::Session(SessionOptions { real_bytes: true, ..SessionOptions::default() });
    }
    let crossed = transfers.iter().any(|transfer| matches!(transfer.carrier, Carrier::Session(_)));
    let mut changes = Vec::new();
    for relay in &relays {
        let used = transfers.iter().any(|transfer| {
            matches!(transfer.carrier, Carrier::Session(_))
                && transfer.paths.contains(&PathChoice::Through(relay.clone()))
        });
        if crossed && used && random.chance(0.3) {
            let at = seconds(random, 1, TROUBLED - 5);
            let back = at + seconds(random, 0, 4);
            changes.push(Change { at, what: Changed::Relay { node: relay.clone(), up: false } });
            changes.push(Change { at: back, what: Changed::Relay { node: relay.clone(), up: true } });
        }
    }
    if random.chance(0.5) {
        let at = seconds(random, 1, TROUBLED);
        let what = Changed::Link {
            from: "A".into(),
            to: "B".into(),
            rate: random.chance(0.5).then(|| rate(random)),
            delay: Some(millis(random, 1, 300)),
            loss: None,
            up: None,
        };
        changes.push(Change { at, what });
    }
    changes.sort_by_key(|change| change.at);
    Setup {
        registry: None,
        axes: Vec::new(),
        duration: Duration::from_secs(PATIENCE),
        cut: Duration::ZERO,
        sample: Duration::from_secs(1),
        gateways: Vec::new(),
        network: Network { named: None, links },
        access_jitter: 0.0,
        changes,
        transfers,
        requests: if random.chance(0.3) { vec![requests(random)] } else { Vec::new() },
        cross: if random.chance(0.2) { vec![cross(random)] } else { Vec::new() },
        memory: 4_000_000_000,
    }
}

fn seconds(random: &mut Random, least: u64, most: u64) -> Duration {
    Duration::from_millis(1_000 * least + random.below(1_000 * (most - least).max(1)))
}

fn millis(random: &mut Random, least: u64, most: u64) -> Duration {
    Duration::from_micros(1_000 * least + random.below(1_000 * (most - least).max(1)))
}

/// From 0.5 to 50 Mbit/s, each order of magnitude as likely.
fn rate(random: &mut Random) -> u64 {
    (5e5 * libm::exp(random.unit() * libm::log(100.0))) as u64
}

fn access() -> LinkSpec {
    LinkSpec { rate: Some(1_000_000_000), delay: Some(Duration::from_micros(200)), ..LinkSpec::default() }
}

fn line(random: &mut Random) -> LinkSpec {
    let sometimes =
        |random: &mut Random, chance: f64, most: f64| random.chance(chance).then(|| random.unit() * most);
    let discipline = match random.below(6) {
        0 => Some(Discipline::Red { min: 5.0, max: 25.0, max_p: 0.1, weight: 0.002, gentle: true }),
        1 => {
            Some(Discipline::CoDel { target: Duration::from_millis(5), interval: Duration::from_millis(100) })
        }
        2 => Some(Discipline::FqCodel {
            target: Duration::from_millis(5),
            interval: Duration::from_millis(100),
            quantum: 1_514,
            queues: 8,
        }),
        _ => None,
    };
    let queue = if random.chance(0.5) {
        QueueLimit::Packets(4 + random.below(200) as usize)
    } else {
        QueueLimit::Time(millis(random, 10, 300))
    };
    let partitions = if random.chance(0.2) {
        let from = seconds(random, 1, TROUBLED - 10);
        vec![(from, from + seconds(random, 0, 10))]
    } else {
        Vec::new()
    };
    LinkSpec {
        rate: Some(rate(random)),
        delay: Some(millis(random, 1, 150)),
        queue: Some(queue),
        loss: sometimes(random, 0.3, 0.05),
        jitter: random.chance(0.3).then(|| millis(random, 0, 20)),
        corruption: sometimes(random, 0.15, 0.02),
        duplication: sometimes(random, 0.15, 0.05),
        reordering: sometimes(random, 0.2, 0.05).map(|share| (share, millis(random, 1, 50))),
        discipline,
        burst_loss: sometimes(random, 0.15, 0.05).map(|share| (share, 1.0 + random.unit() * 10.0)),
        partitions,
    }
}

fn transfer(number: u64, relays: &[String], random: &mut Random) -> Transfer {
    let mut paths = vec![PathChoice::Direct];
    paths
        .extend(relays.iter().filter(|_| random.chance(0.7)).map(|relay| PathChoice::Through(relay.clone())));
    let carrier = if random.chance(0.6) {
        Carrier::Session(SessionOptions::default())
    } else {
        Carrier::Tcp(TcpOptions {
            delayed_ack: random.chance(0.5),
            sack: random.chance(0.7),
            receive_window: random.chance(0.3).then(|| 20_000 + random.below(200_000)),
            linux: random.chance(0.5),
            ..TcpOptions::default()
        })
    };
    let name = NAMES.get(random.below(NAMES.len() as u64) as usize).map_or("background", |(name, _)| name);
    Transfer {
        name: format!("transfer{number}"),
        group: "transfer".into(),
        from: NodeChoice::Node("S".into()),
        to: NodeChoice::Node("D".into()),
        paths,
        carrier,
        congestion: ControllerChoice { name: name.into(), options: BTreeMap::new() },
        demand: Demand::Size(10_000 + random.below(1_500_000)),
        start: millis(random, 0, 3_000),
        start_jitter: Duration::ZERO,
        stop: None,
    }
}

fn requests(random: &mut Random) -> Requests {
    Requests {
        name: "web".into(),
        client: "D".into(),
        server: "S".into(),
        arrivals: Arrivals::Open { count: 20, every: millis(random, 50, 2_000), poisson: true },
        sizes: if random.chance(0.5) { Sizes::Web } else { Sizes::Fixed(20_000) },
        congestion: ControllerChoice { name: "newreno".into(), options: BTreeMap::new() },
        tcp: TcpOptions::default(),
        start: Duration::ZERO,
        stop: None,
    }
}

fn cross(random: &mut Random) -> Cross {
    Cross {
        name: "noise".into(),
        from: "S".into(),
        to: "D".into(),
        rate: 200_000,
        packet: 200 + random.below(1_300) as u32,
        poisson: random.chance(0.5),
        start: Duration::ZERO,
        stop: Some(Duration::from_secs(TROUBLED)),
        delays: false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seed_is_a_world_and_another_is_another() {
        let text = |seed| format!("{:?}", setup(seed));
        assert_eq!(text(7), text(7));
        assert_ne!(text(7), text(8));
    }

    #[test]
    fn a_dozen_worlds_keep_the_laws() {
        for seed in 1..=12 {
            if let Err(finding) = judge(seed) {
                panic!("seed {}: {}", finding.seed, finding.what);
            }
        }
    }
}
