//! The sections of a plan, one function each.

use super::Plan;
use super::gateways;
use super::node::{Node, Value};
use super::reader::{Reader, SpannedError};
use super::units::{self, QuantityKind};
use crate::setup::{
    Arrivals, Carrier, Change, Changed, Cross, Demand, Discipline, Gateways, LendLimit, LinkSetup, LinkSpec,
    Network, NodeChoice, PathChoice, QueueLimit, RegistrySetup, Requests, SessionOptions, Setup, Sizes,
    TcpOptions, Transfer,
};
use byway_control::{ChoiceError, ControllerChoice};
use byway_sim::aqm::FqCodelConfig;
use byway_wire::Duration;
use byway_wire::packet::{BASE_DATAGRAM, MAX_DATAGRAM};

/// The most copies of one transfer.
const MOST_COPIES: u32 = 10_000;
/// The most queues of FQ-CoDel, and bytes of a turn.
const MOST_QUEUES: u32 = 65_536;
const MOST_QUANTUM: u32 = 1_000_000;

/// A variant, whose labels are `axes`. What the plan says of all variants goes to `plan`.
pub(super) fn variant(
    reader: &Reader<'_>,
    axes: Vec<(String, String)>,
    plan: &mut Plan,
) -> Result<Setup, SpannedError> {
    // Read before, since they make the variants.
    reader.knows(&["sweep", "skip"]);
    plan.title = reader.needed("title", "a line that says what is asked", reader.text("title")?)?;
    plan.only_simulated = reader.text("only_simulated")?;
    plan.seeds_agree = reader.text("seeds_agree")?;
    plan.seeds = reader.count("seeds", 100_000)?.unwrap_or(10);
    if plan.seeds == 0 {
        return reader.wrong("seeds", "expected at least 1");
    }
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
    let setup = Setup {
        axes,
        duration,
        cut,
        sample,
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
        changes: {
            let mut changes = flat(reader.each("change", change)?);
            changes.sort_by_key(|change| change.at);
            changes
        },
        transfers: flat(reader.each("transfer", |reader| transfer(reader, &gateways))?),
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

pub(super) fn when(reader: &Reader<'_>) -> Result<bool, SpannedError> {
    Ok(reader.truth("when")?.unwrap_or(true))
}

pub(super) fn pair(reader: &Reader<'_>, key: &str) -> Result<Option<(String, String)>, SpannedError> {
    match reader.texts(key)? {
        None => Ok(None),
        Some(names) => match <[String; 2]>::try_from(names) {
            Ok([a, b]) if a != b => Ok(Some((a, b))),
            _ => reader.wrong(key, "expected two nodes such as [\"A\", \"B\"]"),
        },
    }
}

pub(super) fn name(reader: &Reader<'_>) -> Result<String, SpannedError> {
    let name = reader.needed("name", "a name", reader.text("name")?)?;
    let plain = |c: char| c.is_alphanumeric() || c == '_' || c == '-';
    if name.is_empty() || !name.chars().all(plain) || name.starts_with(|c: char| c.is_ascii_digit()) {
        return reader.wrong("name", "expected letters, digits, - and _, a letter first");
    }
    Ok(name)
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
            let quantum = reader.count("quantum", MOST_QUANTUM)?.unwrap_or(usual.quantum);
            let queues = reader.count("queues", MOST_QUEUES)?;
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

fn change(reader: &Reader<'_>) -> Result<Vec<Change>, SpannedError> {
    let present = when(reader)?;
    let at = reader.needed("at", QuantityKind::Time.expected(), reader.time("at")?)?;
    let link = pair(reader, "link")?;
    let node = reader.text("node")?;
    let one_way = reader.truth("one_way")?.unwrap_or(false);
    let (rate, delay, loss, up) =
        (reader.rate("rate")?, reader.time("delay")?, reader.share("loss")?, reader.truth("up")?);
    if !present {
        return Ok(Vec::new());
    }
    match (link, node, up) {
        (None, Some(node), Some(up)) => Ok(vec![Change { at, what: Changed::Relay { node, up } }]),
        (Some((from, to)), None, _)
            if rate.is_some() || delay.is_some() || loss.is_some() || up.is_some() =>
        {
            let change = |from: &str, to: &str| Change {
                at,
                what: Changed::Link { from: from.to_owned(), to: to.to_owned(), rate, delay, loss, up },
            };
            let mut changes = vec![change(&from, &to)];
            if !one_way {
                changes.push(change(&to, &from));
            }
            Ok(changes)
        }
        _ => reader.wrong("at", "expected `link` with a new rate, delay, loss or up, or `node` with up"),
    }
}

fn end(reader: &Reader<'_>, key: &str) -> Result<NodeChoice, SpannedError> {
    let any = format!("{key}_any");
    match (reader.text(key)?, reader.text(&any)?) {
        (Some(node), None) => Ok(NodeChoice::Node(node)),
        (None, Some(prefix)) => Ok(NodeChoice::Any(prefix)),
        _ => reader.wrong(key, format!("expected a node, or `{any}` with how the names of nodes begin")),
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
        Some((QuantityKind::Rate, rate)) if (1.0..=1e13).contains(&rate) => Ok(LendLimit::Rate(rate as u64)),
        _ => reader.wrong("lend", "expected \"climb\", or a rate such as \"5 Mbit/s\""),
    });
    let lend = lend.transpose()?;
    Ok(present.then_some(RegistrySetup { at, relays, lend }))
}

pub(super) fn ways(reader: &Reader<'_>) -> Result<Vec<PathChoice>, SpannedError> {
    let ways = listed(reader, "paths")?;
    if ways.contains(&PathChoice::Registry) && !ways.contains(&PathChoice::Direct) {
        return reader.wrong("paths", "relays of the registry are offered to the receiver over \"direct\"");
    }
    Ok(ways)
}

/// The ways under `key`; without it the direct one.
fn listed(reader: &Reader<'_>, key: &str) -> Result<Vec<PathChoice>, SpannedError> {
    let mut ways = Vec::new();
    for text in reader.texts(key)?.unwrap_or_else(|| vec!["direct".into()]) {
        let way = match text.split_once('*') {
            _ if text == "direct" => PathChoice::Direct,
            _ if text == "registry" => PathChoice::Registry,
            // "R*8": eight of the nodes that begin with R.
            Some((prefix, count)) => match count.parse() {
                Ok(count) if count > 0 => PathChoice::Any(prefix.to_owned(), count),
                _ => return reader.wrong(key, format!("{text:?}: expected for example \"R*8\"")),
            },
            None => PathChoice::Through(text),
        };
        if ways.contains(&way) {
            return reader.wrong(key, "a way stands there twice");
        }
        ways.push(way);
    }
    if ways.is_empty() {
        return reader.wrong(key, "expected at least one way");
    }
    Ok(ways)
}

pub(super) fn congestion(reader: &Reader<'_>, otherwise: &str) -> Result<ControllerChoice, SpannedError> {
    let text = reader.text("congestion")?.unwrap_or_else(|| otherwise.to_owned());
    let mut choice: ControllerChoice =
        text.parse().or_else(|error: ChoiceError| reader.wrong("congestion", error.to_string()))?;
    choice.options.extend(reader.table("options", |options| options.numbers())?.unwrap_or_default());
    Ok(choice)
}

fn tcp(reader: &Reader<'_>) -> Result<TcpOptions, SpannedError> {
    let read = reader.table("tcp", |tcp| {
        let usual = match tcp.text("host")?.as_deref() {
            None | Some("papers") => TcpOptions::default(),
            Some("linux") => TcpOptions::linux(),
            Some(other) => {
                return tcp.wrong("host", format!("expected \"linux\" or \"papers\", found {other:?}"));
            }
        };
        Ok(TcpOptions {
            linux: usual.linux,
            delayed_ack: tcp.truth("delayed_ack")?.unwrap_or(usual.delayed_ack),
            receive_window: tcp.size("receive_window")?,
            min_rto: tcp.time("min_rto")?.unwrap_or(usual.min_rto),
            initial_window: tcp.count("initial_window", 1_000)?.unwrap_or(usual.initial_window),
            sack: tcp.truth("sack")?.unwrap_or(usual.sack),
            mss: tcp.count("mss", 9_000)?.unwrap_or(usual.mss),
            relay_packets: tcp.count("relay_packets", 1_000_000)?.unwrap_or(usual.relay_packets),
        })
    })?;
    Ok(read.unwrap_or_default())
}

fn session(reader: &Reader<'_>) -> Result<SessionOptions, SpannedError> {
    let read = reader.table("session", |session| {
        let word = |key: &str, is: &str, usual: &str| match session.text(key)?.as_deref() {
            None => Ok(false),
            Some(word) if word == is => Ok(true),
            Some(word) if word == usual => Ok(false),
            Some(word) => session.wrong(key, format!("expected {is:?} or {usual:?}, found {word:?}")),
        };
        Ok(SessionOptions {
            pnack_first_gap: word("pnack", "first-gap", "adaptive")?,
            ack_direct: word("ack_path", "direct", "fastest")?,
            tau: session.number("tau")?,
            datagram: datagram(session)?,
            real_bytes: session.truth("real_bytes")?.unwrap_or(false),
        })
    })?;
    Ok(read.unwrap_or_default())
}

fn datagram(session: &Reader<'_>) -> Result<Option<usize>, SpannedError> {
    match session.count("datagram", MAX_DATAGRAM as u32)? {
        Some(bytes) if (bytes as usize) < BASE_DATAGRAM => {
            session.wrong("datagram", format!("expected at least {BASE_DATAGRAM} bytes, found {bytes}"))
        }
        bytes => Ok(bytes.map(|bytes| bytes as usize)),
    }
}

fn demand(reader: &Reader<'_>) -> Result<Demand, SpannedError> {
    let steps = reader.list("steps")?;
    match (reader.size("size")?, reader.rate("rate")?, steps) {
        (None, None, None) => Ok(Demand::Unlimited),
        (Some(size), None, None) => Ok(Demand::Size(size)),
        (None, Some(rate), None) => Ok(Demand::Rate(vec![(Duration::ZERO, rate)])),
        (None, None, Some(steps)) => steps.iter().map(step).collect::<Result<_, _>>().map(Demand::Rate),
        _ => reader.wrong("size", "expected one of size, rate and steps"),
    }
}

/// `["30 s", "8 Mbit/s"]`.
fn step(node: &Node) -> Result<(Duration, u64), SpannedError> {
    let wrong =
        || (node.span.clone(), "expected a time and a rate such as [\"30 s\", \"8 Mbit/s\"]".to_owned());
    let Value::List(list) = &node.value else { return Err(wrong()) };
    let mut parts = list.iter().map(|node| match &node.value {
        Value::Text(text) => units::parse(text),
        _ => None,
    });
    match (parts.next().flatten(), parts.next().flatten(), parts.next()) {
        (Some((QuantityKind::Time, at)), Some((QuantityKind::Rate, rate)), None) if rate >= 0.0 => {
            Ok((units::duration(at).ok_or_else(wrong)?, rate as u64))
        }
        _ => Err(wrong()),
    }
}

fn transfer(reader: &Reader<'_>, known: &[Gateways]) -> Result<Vec<Transfer>, SpannedError> {
    let present = when(reader)?;
    // Whatever carries it, so that a sweep may choose.
    reader.knows(&["gateways"]);
    let group = name(reader)?;
    let count = reader.count("count", MOST_COPIES)?;
    let (tcp, session) = (tcp(reader)?, session(reader)?);
    let carrier = match reader.text("carrier")?.as_deref() {
        None | Some("session") => Carrier::Session(session),
        Some("tcp") => Carrier::Tcp(tcp),
        Some("tcp-relays") => Carrier::TcpRelays(tcp),
        Some("gateways") => Carrier::Gateways(tcp, gateways::of(reader, known)?),
        Some(other) => {
            let what = format!("expected session, tcp, tcp-relays or gateways, found {other:?}");
            return reader.wrong("carrier", what);
        }
    };
    let otherwise = if matches!(carrier, Carrier::Session(_)) { "background" } else { "newreno" };
    let mut paths = ways(reader)?;
    if let Carrier::Gateways(_, by) = &carrier {
        let by = known.iter().find(|gateways| gateways.name == *by);
        paths = by.map(|gateways| gateways.paths.clone()).unwrap_or_default();
    }
    if paths.contains(&PathChoice::Registry) && !matches!(carrier, Carrier::Session(_)) {
        return reader.wrong("paths", "only sessions ask a registry");
    }
    let one = Transfer {
        name: group.clone(),
        group: group.clone(),
        from: end(reader, "from")?,
        to: end(reader, "to")?,
        paths,
        carrier,
        congestion: congestion(reader, otherwise)?,
        demand: demand(reader)?,
        start: reader.time("start")?.unwrap_or_default(),
        start_jitter: reader.time("start_jitter")?.unwrap_or_default(),
        stop: reader.time("stop")?,
    };
    if matches!((&one.from, &one.to), (NodeChoice::Node(a), NodeChoice::Node(b)) if a == b) {
        return reader.wrong("to", "expected another node than `from`");
    }
    if one.stop.is_some_and(|stop| stop <= one.start) {
        return reader.wrong("stop", "expected a time after `start`");
    }
    if !present {
        return Ok(Vec::new());
    }
    Ok(match count {
        None => vec![one],
        Some(count) => (1..=count).map(|number| numbered(&one, number)).collect(),
    })
}

/// The copy of this number; `#` in the names of its nodes is the number, `#+10` ten more than it.
fn numbered(one: &Transfer, number: u32) -> Transfer {
    let own = |name: &str| {
        let mut parts = name.split('#');
        let first = parts.next().unwrap_or_default().to_owned();
        parts.fold(first, |before, part| {
            let rest = part.strip_prefix('+').unwrap_or_default();
            let digits = rest.find(|it: char| !it.is_ascii_digit()).unwrap_or(rest.len());
            match rest[..digits].parse::<u32>() {
                Ok(more) => format!("{before}{}{}", number.saturating_add(more), &rest[digits..]),
                Err(_) => format!("{before}{number}{part}"),
            }
        })
    };
    let at = |end: &NodeChoice| match end {
        NodeChoice::Node(node) => NodeChoice::Node(own(node)),
        any @ NodeChoice::Any(_) => any.clone(),
    };
    let paths = one.paths.iter().map(|way| match way {
        PathChoice::Through(node) => PathChoice::Through(own(node)),
        way => way.clone(),
    });
    Transfer {
        name: format!("{}.{number}", one.group),
        from: at(&one.from),
        to: at(&one.to),
        paths: paths.collect(),
        ..one.clone()
    }
}

fn requests(reader: &Reader<'_>) -> Result<Requests, SpannedError> {
    let clients = reader.count("clients", MOST_COPIES)?;
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
        name: name(reader)?,
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
        name: name(reader)?,
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
