//! The sections of a plan, one function each.

use super::node::{Node, Value};
use super::seed_choice::{MAX_SEED, MAX_SEEDS};
use super::shared_keys::{MAX_COPIES, congestion, listed, mtu, name, pair, tcp, when};
use super::table_reader::{Reader, SpannedError};
use super::units::{self, QuantityKind};
use super::{changes, gateways, transfers};
use crate::setup::{
    Arrivals, Cross, Discipline, LendLimit, LinkSetup, LinkSpec, Network, PathChoice, QueueLimit,
    RegistrySetup, Requests, Setup, Sizes, Transfer,
};
use byway_sim::aqm::FqCodelConfig;
use byway_sim::pipe::Stalls;
use byway_wire::Duration;

/// The most queues of FQ-CoDel, and the largest quantum in bytes.
const MAX_QUEUES: u32 = 65_536;
const MAX_QUANTUM_BYTES: u32 = 1_000_000;

/// The settings that all variants of a plan share.
#[derive(Debug, Default)]
pub(super) struct PlanHead {
    /// The question in one line.
    pub title: String,
    /// Number of seeds.
    pub seeds: u32,
    /// The first seed. The next seeds follow in steps of 1.
    pub first_seed: u64,
    /// Why the plan cannot be run with real programs. `None`: it can be.
    pub only_simulated: Option<String>,
    /// Why different seeds may give the same values. `None`: they should differ.
    pub seeds_agree: Option<String>,
}

/// Reads a variant with the labels `axes`. Settings of all variants are stored in `head`.
pub(super) fn variant(
    reader: &Reader<'_>,
    axes: Vec<(String, String)>,
    head: &mut PlanHead,
) -> Result<Setup, SpannedError> {
    // Read before, since they make the variants.
    reader.knows(&["sweep", "skip"]);
    head.title = reader.needed("title", "a line that says what is asked", reader.text("title")?)?;
    head.only_simulated = reader.text("only_simulated")?;
    head.seeds_agree = reader.text("seeds_agree")?;
    head.seeds = reader.count("seeds", MAX_SEEDS)?.unwrap_or(10);
    if head.seeds == 0 {
        return reader.wrong("seeds", "expected at least 1");
    }
    head.first_seed = match reader.number("first_seed")? {
        None => 1,
        Some(seed) if (0.0..=MAX_SEED as f64).contains(&seed) && libm::trunc(seed) == seed => seed as u64,
        Some(_) => {
            return reader.wrong("first_seed", format!("expected a whole number from 0 to {MAX_SEED}"));
        }
    };
    let duration = reader.needed("duration", QuantityKind::Time.expected(), reader.time("duration")?)?;
    let cut = reader.time("cut")?.unwrap_or_default();
    let sample = reader.time("sample")?.unwrap_or(Duration::from_millis(100));
    if duration.is_zero() {
        return reader.wrong("duration", "nothing happens in no time");
    }
    if cut >= duration {
        return reader.wrong("cut", "expected a time before the end");
    }
    if sample < Duration::from_millis(1) || duration.as_nanos() / sample.as_nanos().max(1) > 1_000_000 {
        return reader.wrong("sample", "expected at least 1 ms, and at most a million samples");
    }
    let gateways = gateways::all(reader)?;
    let registry = reader.table("registry", registry)?.flatten();
    let transfers = flat(reader.each("transfer", |reader| transfers::transfer(reader, &gateways))?);
    let setup = Setup {
        axes,
        duration,
        until_done: reader.truth("until_done")?.unwrap_or(false),
        cut,
        sample,
        early_wakes: reader.share("early_wakes")?.unwrap_or_default(),
        attack: reader.table("attack", changes::attack)?.unwrap_or_default(),
        memory: reader.size("memory")?.unwrap_or(1_000_000_000),
        network: Network {
            named: reader.table("topology", |topology| {
                let name =
                    topology.needed("name", "a topology (byway lab topologies)", topology.text("name")?)?;
                Ok((name, topology.numbers()?))
            })?,
            links: flat(reader.each("link", link)?),
        },
        access_jitter: reader.share("access_jitter")?.unwrap_or_default(),
        changes: changes::all(reader, &transfers, registry.as_ref())?,
        transfers,
        requests: flat(reader.each("requests", |reader| Ok(when(reader)?.then_some(requests(reader)?)))?),
        cross: flat(reader.each("cross", |reader| Ok(when(reader)?.then_some(cross(reader)?)))?),
        registry,
        gateways,
    };
    reader.finish()?;
    let asks = |transfer: &Transfer| transfer.paths.contains(&PathChoice::Registry);
    if setup.registry.is_none() && setup.transfers.iter().any(asks) {
        return Err((0..0, "a transfer finds relays by \"registry\", and there is no [registry]".into()));
    }
    let mut names: Vec<&str> = setup
        .transfers
        .iter()
        .map(|transfer| transfer.name.as_str())
        .chain(setup.requests.iter().map(|requests| requests.name.as_str()))
        .chain(setup.cross.iter().map(|cross| cross.name.as_str()))
        .chain(setup.gateways.iter().map(|gateways| gateways.name.as_str()))
        .collect();
    names.sort_unstable();
    if let Some(twice) = names.windows(2).find(|pair| pair.first() == pair.last()) {
        return Err((0..0, format!("two things are called {:?}: expected names of their own", twice[0])));
    }
    Ok(setup)
}

fn flat<T, L: IntoIterator<Item = T>>(lists: Vec<L>) -> Vec<T> {
    lists.into_iter().flatten().collect()
}

fn link(reader: &Reader<'_>) -> Result<Vec<LinkSetup>, SpannedError> {
    let present = when(reader)?;
    let (from, to) =
        reader.needed("between", "two nodes such as [\"A\", \"B\"]", pair(reader, "between")?)?;
    let one_way = reader.truth("one_way")?.unwrap_or(false);
    let spec = line(reader)?;
    let mut lines = vec![LinkSetup { from: from.clone(), to: to.clone(), spec: spec.clone() }];
    if !one_way {
        lines.push(LinkSetup { from: to, to: from, spec });
    }
    if !present {
        lines.clear();
    }
    Ok(lines)
}

fn line(reader: &Reader<'_>) -> Result<LinkSpec, SpannedError> {
    let queue =
        match reader.quantity("queue", &[QuantityKind::Packets, QuantityKind::Size, QuantityKind::Time])? {
            None => None,
            Some((kind, value)) if (0.0..=1e12).contains(&value) => Some(match kind {
                QuantityKind::Packets => QueueLimit::Packets(value as usize),
                QuantityKind::Size => QueueLimit::Bytes(value as u64),
                _ => QueueLimit::Time(units::duration(value).unwrap_or_default()),
            }),
            Some(_) => return reader.wrong("queue", "expected a queue that exists"),
        };
    let partitions = reader.list("partition")?.unwrap_or_default();
    Ok(LinkSpec {
        rate: reader.rate("rate")?,
        delay: reader.time("delay")?,
        queue,
        loss: reader.share("loss")?,
        jitter: reader.time("jitter")?,
        stalls: reader.table("stalls", |stalls| {
            let time = |key| stalls.needed(key, QuantityKind::Time.expected(), stalls.time(key)?);
            let found = Stalls { period: time("period")?, min: time("min")?, max: time("max")? };
            if found.period.is_zero() || found.min > found.max || found.max > found.period {
                return stalls.wrong("max", "expected min <= max <= period, and a period above zero");
            }
            Ok(found)
        })?,
        corruption: reader.share("corruption")?,
        duplication: reader.share("duplication")?,
        reordering: reader.table("reordering", |held| {
            let share = held.needed("share", QuantityKind::Share.expected(), held.share("share")?)?;
            let delay = held.needed("delay", QuantityKind::Time.expected(), held.time("delay")?)?;
            Ok((share, delay))
        })?,
        discipline: reader.table("discipline", discipline)?,
        burst_loss: reader.table("burst_loss", |burst| {
            let rate = burst.needed("rate", QuantityKind::Share.expected(), burst.share("rate")?)?;
            let mean = burst.needed("mean", "the mean packets of a burst", burst.number("mean")?)?;
            if rate >= 1.0 || mean < 1.0 {
                return burst.wrong("mean", "expected a rate below 1 and bursts of at least one packet");
            }
            Ok((rate, mean))
        })?,
        mtu: mtu(reader)?,
        mark_above: match reader.quantity("mark_above", &[QuantityKind::Packets, QuantityKind::Number])? {
            None => None,
            Some((_, packets)) if (0.0..=1e12).contains(&packets) && libm::trunc(packets) == packets => {
                Some(packets as usize)
            }
            Some(_) => return reader.wrong("mark_above", "expected a whole number of packets"),
        },
        bleaches: reader.truth("bleaches")?.unwrap_or(false),
        partitions: partitions.iter().map(span_of_time).collect::<Result<_, _>>()?,
    })
}

fn discipline(reader: &Reader<'_>) -> Result<Discipline, SpannedError> {
    let expected = "\"red\", \"codel\" or \"fq-codel\"";
    let kind = reader.needed("kind", expected, reader.text("kind")?)?;
    let target = || Ok(reader.time("target")?.unwrap_or(Duration::from_millis(5)));
    let interval = || Ok(reader.time("interval")?.unwrap_or(Duration::from_millis(100)));
    match kind.as_str() {
        "red" => {
            let number = |key: &str, otherwise: f64| Ok(reader.number(key)?.unwrap_or(otherwise));
            let (min, max) = (number("min", 5.0)?, number("max", 15.0)?);
            let (max_p, weight) = (number("max_p", 0.1)?, number("weight", 0.002)?);
            if !(min >= 0.0 && max > min && max_p > 0.0 && max_p <= 1.0 && weight > 0.0 && weight <= 1.0) {
                return reader.wrong("kind", "RED needs 0 <= min < max, and max_p and weight from 0 to 1");
            }
            Ok(Discipline::Red { min, max, max_p, weight, gentle: reader.truth("gentle")?.unwrap_or(true) })
        }
        "codel" => Ok(Discipline::CoDel { target: target()?, interval: interval()? }),
        "fq-codel" => {
            let usual = FqCodelConfig::default();
            let quantum = reader.count("quantum", MAX_QUANTUM_BYTES)?.unwrap_or(usual.quantum);
            let queues = reader.count("queues", MAX_QUEUES)?;
            if quantum == 0 || queues == Some(0) {
                return reader
                    .wrong("kind", "FQ-CoDel needs a quantum of at least 1 byte, and at least 1 queue");
            }
            Ok(Discipline::FqCodel {
                target: target()?,
                interval: interval()?,
                quantum,
                queues: queues.map_or(usual.queues, |queues| queues as usize),
            })
        }
        other => reader.wrong("kind", format!("expected {expected}, found {other:?}")),
    }
}

/// `["20 s", "22 s"]`.
fn span_of_time(node: &Node) -> Result<(Duration, Duration), SpannedError> {
    let wrong = || (node.span.clone(), "expected two times such as [\"20 s\", \"22 s\"]".to_owned());
    let Value::List(list) = &node.value else { return Err(wrong()) };
    let mut times = list.iter().map(|node| match &node.value {
        Value::Text(text) => match units::parse(text) {
            Some((QuantityKind::Time, seconds)) => units::duration(seconds),
            _ => None,
        },
        _ => None,
    });
    match (times.next().flatten(), times.next().flatten(), times.next()) {
        (Some(from), Some(until), None) if from < until => Ok((from, until)),
        _ => Err(wrong()),
    }
}

fn registry(reader: &Reader<'_>) -> Result<Option<RegistrySetup>, SpannedError> {
    let present = when(reader)?;
    let at = reader.needed("at", "the node of the registry", reader.text("at")?)?;
    let relays = listed(reader, "relays")?;
    if relays.iter().any(|way| matches!(way, PathChoice::Direct | PathChoice::Registry)) {
        return reader.wrong("relays", "expected nodes, for example [\"R*8\"]");
    }
    let lend = reader.text("lend")?.map(|text| match units::parse(&text) {
        _ if text == "climb" => Ok(LendLimit::Climb),
        Some((QuantityKind::Rate, rate)) if (1.0..=1e13).contains(&rate) => {
            Ok(LendLimit::Rate(libm::round(rate) as u64))
        }
        _ => reader.wrong("lend", "expected \"climb\", or a rate such as \"5 Mbit/s\""),
    });
    let lend = lend.transpose()?;
    Ok(present.then_some(RegistrySetup { at, relays, lend }))
}

fn requests(reader: &Reader<'_>) -> Result<Requests, SpannedError> {
    let clients = reader.count("clients", MAX_COPIES)?;
    let (think, rounds) = (reader.time("think")?, reader.count("rounds", 1_000_000)?);
    let (count, every) = (reader.count("count", 1_000_000)?, reader.time("every")?);
    let poisson = reader.truth("poisson")?.unwrap_or(false);
    let arrivals = match (clients, every) {
        (Some(clients), None) => {
            Arrivals::Closed { clients, think: think.unwrap_or(Duration::from_secs(1)), rounds }
        }
        (None, Some(every)) if !every.is_zero() => {
            Arrivals::Open { count: count.unwrap_or(0), every, poisson }
        }
        _ => {
            return reader
                .wrong("clients", "expected `clients` (each waits for its answer), or `every` (none waits)");
        }
    };
    let sizes = match (reader.text("kind")?.as_deref(), reader.size("size")?) {
        (Some("web") | None, None) => Sizes::Web,
        (None, Some(size)) => Sizes::Fixed(size),
        _ => return reader.wrong("size", "expected kind = \"web\", or a size"),
    };
    Ok(Requests {
        name: name(reader, "name")?,
        client: reader.needed("client", "the node of the clients", reader.text("client")?)?,
        server: reader.needed("server", "the node of the server", reader.text("server")?)?,
        arrivals,
        sizes,
        congestion: congestion(reader, "newreno")?,
        tcp: tcp(reader)?,
        start: reader.time("start")?.unwrap_or_default(),
        stop: reader.time("stop")?,
    })
}

fn cross(reader: &Reader<'_>) -> Result<Cross, SpannedError> {
    let packet = reader.count("packet", 9_000)?.unwrap_or(1_500);
    if packet < 100 {
        return reader.wrong("packet", "expected at least 100 bytes");
    }
    Ok(Cross {
        name: name(reader, "name")?,
        from: reader.needed("from", "a node", reader.text("from")?)?,
        to: reader.needed("to", "a node", reader.text("to")?)?,
        rate: reader.needed("rate", QuantityKind::Rate.expected(), reader.rate("rate")?)?,
        packet,
        poisson: reader.truth("poisson")?.unwrap_or(false),
        delays: reader.truth("delays")?.unwrap_or(false),
        start: reader.time("start")?.unwrap_or_default(),
        stop: reader.time("stop")?,
    })
}
