//! What background transfers and somebody's TCP make of each other on a line of 10 Mbit/s or more.

use super::shared::{Session, Shared};
use super::{MS, Plan, line};
use byway_control::bundle::UncoupledPaths;
use byway_control::by_name;
use byway_control::newreno::{NewReno, NewRenoOptions as Reno};
use byway_sim::tcp::web::{self, Clients, RequestOutcome};
use byway_sim::tcp::{Demand, Flow, FlowId, ServerConfig, Subflow, TcpConfig, TcpHost};
use byway_sim::{Handle, PipeConfig, Random};
use byway_wire::{Duration, Instant};

/// Of a packet of 1500 bytes on the line, these are the object's.
pub const PAYLOAD: f64 = 1424.0 / 1500.0;
/// Bytes of a request.
const REQUEST: u64 = 20_000;
const REQUESTS: u64 = 400;
/// The line that requests use.
const MBIT: f64 = 10.0;

/// A transfer that does not end, headers only.
pub fn endless(congestion: &'static str) -> Plan {
    Plan::new(congestion, &[1 << 40], &[]).lengths()
}

/// A line with this many background transfers, each between two hosts of its own.
fn beside(line: &PipeConfig, congestion: &'static str, others: u8) -> Shared {
    let mut world = Shared::new(1, line);
    for other in 0..others {
        world.session(other + 1, endless(congestion));
    }
    world
}

/// Adds the host that has these flows to send; they go to `to`.
fn client(
    world: &mut Shared,
    flows: impl FnOnce(std::net::SocketAddr) -> Vec<Flow>,
) -> (Handle<TcpHost>, Vec<FlowId>) {
    let (from, to) = world.pair();
    let mut host = TcpHost::new(77);
    let flows = flows(to).into_iter().map(|flow| host.open(flow)).collect();
    let client = world.world.add("client", host, &[from]);
    world.world.add("server", TcpHost::new(78), &[to]);
    world.connect(from, to);
    (client, flows)
}

/// Seconds that each flow took, ascending.
fn took(world: &Shared, client: Handle<TcpHost>, flows: &[FlowId]) -> Vec<f64> {
    let took = |flow: &FlowId| {
        let report = world.world[client].report(*flow).unwrap_or_default();
        let took = report.finished.zip(report.started).map(|(end, start)| end.since(start));
        took.map_or(f64::INFINITY, |took| took.as_secs_f64())
    };
    let mut took: Vec<f64> = flows.iter().map(took).collect();
    took.sort_by(f64::total_cmp);
    took
}

/// The value that this percentage of `ascending` lies below.
pub fn percentile(ascending: &[f64], percent: usize) -> f64 {
    ascending[ascending.len() * percent / 100]
}

/// The seconds, ascending, of fetches of 500 kB over TCP, one each two seconds. `others` background
/// transfers run beside them.
pub fn fetches(line: &PipeConfig, others: u8) -> Vec<f64> {
    let mut world = beside(line, "background", others);
    let (client, flows) = client(&mut world, |to| {
        let fetch = |number| {
            // Not in step with anything that happens once a second.
            let start = Instant::from_millis(20_000) + Duration::from_millis(2_037) * number;
            Flow::tcp(to).demand(Demand::Size(500_000)).start(start)
        };
        (0..60).map(fetch).collect()
    });
    world.rates(Duration::from_secs(160));
    took(&world, client, &flows)
}

/// What requests and background transfers make of each other.
pub struct Harm {
    /// Seconds that each request took.
    pub took: Vec<f64>,
    /// Bytes of files delivered meanwhile, as a share of what the requests leave of the line.
    pub share: f64,
    /// Seconds after the last request until one second has brought nine tenths of what the line
    /// carries, that second included.
    pub back: f64,
}

/// Runs [`pages`] with and without `others` background transfers. Returns means over `seeds` seeds:
/// median and 90th percentile of (a request's time beside transfers) / (its time alone). Then
/// (transfers' rate) / (line rate - requests' rate), and the transfers' seconds to full speed
/// afterwards.
pub fn asked(seeds: u64, jitter: Duration, others: u8) -> [f64; 4] {
    let of = |seed| {
        let alone = pages(seed, jitter, "background", 0);
        let beside = pages(seed, jitter, "background", others);
        let mut ratios: Vec<f64> =
            beside.took.iter().zip(&alone.took).map(|(beside, alone)| beside / alone).collect();
        ratios.sort_by(f64::total_cmp);
        [percentile(&ratios, 50), percentile(&ratios, 90), beside.share, beside.back]
    };
    mean(seeds, of)
}

/// Percentiles of requests' times beside [`requests`], as multiples of those alone.
pub fn requested(seeds: u64, queue: usize, others: u8) -> [f64; 4] {
    mean(seeds, |seed| {
        let (alone, beside) = (requests(seed, queue, 0), requests(seed, queue, others));
        let times = |percent| percentile(&beside.took, percent) / percentile(&alone.took, percent);
        [times(50), times(90), beside.share, beside.back]
    })
}

fn mean(seeds: u64, of: impl Fn(u64) -> [f64; 4]) -> [f64; 4] {
    let sum = (1..=seeds).map(of).reduce(|sum, found| core::array::from_fn(|at| sum[at] + found[at]));
    sum.expect("a seed").map(|sum| sum / seeds as f64)
}

/// Requests of 20 kB over TCP, one each 200 ms on average, beside `others` background transfers.
/// The line has 10 Mbit/s, an RTT of 20 ms, and a queue of `queue` packets. TCP begins with ten
/// segments (RFC 6928).
pub fn requests(seed: u64, queue: usize, others: u8) -> Harm {
    let mut world = beside(&line(MBIT as u64, 10 * MS).queue(queue), "background", others);
    let mut chance = Random::component(seed, "requests");
    let begins = Duration::from_secs(20);
    let mut start = Instant::ZERO + begins;
    let (client, flows) = client(&mut world, |to| {
        let request = |_| {
            start += Duration::from_micros(100_000 + chance.below(200_000));
            let reno = Reno { initial: 10.0, limit: 2.0 };
            let controller =
                UncoupledPaths::new("newreno", move |opened: &_| NewReno::with_options(opened, reno));
            let flow = Flow::new(vec![Subflow::direct(to)], Box::new(controller));
            flow.demand(Demand::Size(REQUEST)).start(start)
        };
        (0..REQUESTS).map(request).collect()
    });
    let ends = start.since(Instant::ZERO);
    world.rates(begins);
    let meanwhile: f64 = world.rates(ends).iter().sum();
    world.rates(ends + Duration::from_secs(30));
    let seconds = ends.saturating_sub(begins).as_secs_f64();
    let asked = (REQUESTS * REQUEST * 8) as f64 * 1e-6 * 1500.0 / 1448.0 / seconds;
    let full = 0.9 * MBIT * PAYLOAD;
    let rate_of_all = |at: Duration| {
        let rate = |session: &Session| world.world[session.receiver].goodput(at, at + 1_000 * MS);
        world.sessions.iter().map(rate).sum::<f64>() / 1e6
    };
    let back = (0..290).find(|tenths| rate_of_all(ends + 100 * MS * *tenths) >= full);
    Harm {
        took: took(&world, client, &flows),
        share: meanwhile / (MBIT - asked),
        back: back.map_or(f64::INFINITY, |tenths| 1.0 + f64::from(tenths) / 10.0),
    }
}

/// Requests over complete TCP connections, beside `others` transfers. `congestion` names the
/// transfers' congestion control. Each request is a SYN, 300 bytes to the server, and 20 kB back
/// under CUBIC in the transfers' direction. Requests begin at random times, so some overlap.
pub fn pages(seed: u64, jitter: Duration, congestion: &'static str, others: u8) -> Harm {
    let mut world = beside(&line(MBIT as u64, 10 * MS).queue(50).jitter(jitter), congestion, others);
    let begins = Duration::from_secs(20);
    let lasts = 200 * MS * REQUESTS as u32;
    let list = web::fetches(seed, REQUESTS as u32, REQUEST, Instant::ZERO + begins, lasts, true);
    let (server, client) = world.pair();
    let options = TcpConfig { initial_window: Some(10), ..TcpConfig::default() };
    let cubic = |seed, _: &TcpConfig| by_name("cubic", seed).expect("a controller");
    let serve = ServerConfig { options: options.clone(), controller: cubic, ..ServerConfig::default() };
    world.world.add("server", TcpHost::serving(78, serve), &[server]);
    let clients = Clients::new(server, &list, Instant::ZERO, options);
    let clients = world.world.add("clients", clients, &[client]);
    world.connect(server, client);

    world.rates(begins);
    let ends = begins + lasts;
    let meanwhile: f64 = world.rates(ends).iter().sum();
    world.rates(ends + Duration::from_secs(30));
    let took = |outcome: &RequestOutcome| {
        let took = outcome.finished.zip(outcome.started).map(|(end, start)| end.since(start));
        took.map_or(f64::INFINITY, |took| took.as_secs_f64())
    };
    let asked = (REQUESTS * REQUEST * 8) as f64 * 1e-6 * 1500.0 / 1448.0 / lasts.as_secs_f64();
    let full = 0.9 * MBIT * PAYLOAD;
    let rate_of_all = |at: Duration| {
        let rate = |session: &Session| world.world[session.receiver].goodput(at, at + 1_000 * MS);
        world.sessions.iter().map(rate).sum::<f64>() / 1e6
    };
    let back = (0..290).find(|tenths| rate_of_all(ends + 100 * MS * *tenths) >= full);
    Harm {
        took: world.world[clients].outcomes().iter().map(took).collect(),
        share: meanwhile / (MBIT - asked),
        back: back.map_or(f64::INFINITY, |tenths| 1.0 + f64::from(tenths) / 10.0),
    }
}
