//! Reference TCP hosts of a plan: what they are told, and requests that people wait for.

use super::run_error::RunError;
use crate::setup::{Arrivals, Demand, Requests, Sizes, TcpOptions};
use byway_control::{Controller, ControllerChoice, SenderKind};
use byway_sim::Random;
use byway_sim::tcp::web::{self, Request, WebTrace};
use byway_sim::tcp::{self, MakeController, Recovery, ServerConfig, TcpConfig};
use byway_wire::{Duration, Instant};
use std::collections::BTreeMap;

/// Unacknowledged bytes that a source of any rate may have. A fast source may have those of one
/// second.
const MIN_BACKLOG_BYTES: u64 = 64 << 10;

/// How a host of `tcp` behaves.
pub(super) fn options(tcp: &TcpOptions) -> TcpConfig {
    let usual = if tcp.linux { TcpConfig::linux() } else { TcpConfig::default() };
    TcpConfig {
        mss: tcp.mss.max(1),
        delayed_ack: tcp.delayed_ack,
        initial_window: Some(tcp.initial_window),
        min_rto: tcp.min_rto,
        receive_window: tcp.receive_window.unwrap_or(usual.receive_window),
        sack: tcp.sack,
        partial_ack: tcp.partial_ack,
        ..usual
    }
}

/// Returns the data of a flow, and the bytes that may wait.
pub(super) fn demand(demand: &Demand) -> (tcp::Demand, Option<u64>) {
    match demand {
        Demand::Unlimited => (tcp::Demand::Bulk, None),
        Demand::Size(size) => (tcp::Demand::Size(*size), None),
        Demand::Rate(steps) => {
            let most = steps.iter().map(|step| step.1).max().unwrap_or(0);
            let steps = steps.iter().map(|(at, rate)| (Instant::ZERO + *at, Some(*rate)));
            (tcp::Demand::Rate(steps.collect()), Some((most / 8).max(MIN_BACKLOG_BYTES)))
        }
    }
}

/// The host that serves requests.
pub(super) fn serve(requests: &Requests) -> Result<ServerConfig, RunError> {
    let unknown =
        || RunError::Server { requests: requests.name.clone(), name: requests.congestion.name.clone() };
    let controller = answering(&requests.congestion).ok_or_else(unknown)?;
    Ok(ServerConfig { options: options(&requests.tcp), controller, ..ServerConfig::default() })
}

/// Returns a function that makes the controllers of a host which answers or forwards. It supports
/// two controllers, without options.
pub(super) fn answering(asked: &ControllerChoice) -> Option<MakeController> {
    match asked.name.as_str() {
        "newreno" if asked.options.is_empty() => Some(|seed, options| begins("newreno", seed, options)),
        "cubic" if asked.options.is_empty() => Some(|seed, options| begins("cubic", seed, options)),
        _ => None,
    }
}

/// The controller of this name, which begins with the window that the options say.
fn begins(name: &str, seed: u64, options: &TcpConfig) -> Box<dyn Controller> {
    let usual = TcpOptions::default().initial_window;
    let host = sender(options.recovery == Recovery::Rack, options.initial_window.unwrap_or(usual));
    let asked = ControllerChoice { name: name.to_owned(), options: BTreeMap::new() };
    byway_control::controller(&asked, host, seed).unwrap_or_else(|_| tcp::newreno())
}

/// Returns the requests of a plan in the world of `seed` that ends after `time`, as its clients
/// make them in the simulator.
#[must_use]
pub fn requests(requests: &Requests, seed: u64, time: Duration) -> Vec<Request> {
    let mut random = Random::component(seed, &format!("requests of {}", requests.name));
    list(requests, random.next_u64(), Instant::ZERO + time)
}

/// Returns the list of requests. It depends only on the seed, on the plan's part about these
/// requests, and on the end of the run.
pub(super) fn list(requests: &Requests, seed: u64, end: Instant) -> Vec<Request> {
    let start = Instant::ZERO + requests.start;
    let stop = requests.stop.map_or(end, |stop| (Instant::ZERO + stop).min(end));
    let time = stop.since(start);
    let mut list = match requests.arrivals {
        Arrivals::Closed { clients, think, rounds } => {
            let requests = rounds.unwrap_or_else(|| most_rounds(time, think));
            web::trace(seed, &WebTrace { clients, requests, think, ..WebTrace::default() })
        }
        Arrivals::Open { count, every, poisson } => {
            let rounds = time.as_nanos() / every.as_nanos().max(1);
            let most = u32::try_from(rounds).unwrap_or(u32::MAX);
            let count = if count == 0 { most } else { count };
            web::fetches(seed, count, 0, start, every * count, poisson)
        }
    };
    if let Sizes::Fixed(size) = requests.sizes {
        list.iter_mut().for_each(|request| request.size = size);
    }
    list
}

/// Rounds that a client which thinks for `think` makes in `time` at most, but for one client in a
/// thousand.
fn most_rounds(time: Duration, think: Duration) -> u32 {
    let mean = time.as_secs_f64() / think.as_secs_f64().max(1e-3);
    (mean + 4.0 * libm::sqrt(mean) + 8.0).min(1e6) as u32
}

/// The controller of a flow.
pub(super) fn controller(
    of: &str,
    tcp: &TcpOptions,
    asked: &ControllerChoice,
    seed: u64,
) -> Result<Box<dyn Controller>, RunError> {
    byway_control::controller(asked, sender(tcp.linux, tcp.initial_window), seed)
        .map_err(|error| RunError::Congestion { of: of.to_owned(), error })
}

fn sender(linux: bool, initial_window: u32) -> SenderKind {
    if linux { SenderKind::Linux { initial_window } } else { SenderKind::Tcp { initial_window } }
}
