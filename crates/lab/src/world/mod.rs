//! Builds the simulated world of one variant of a plan with one seed, runs it and records it.
//!
//! | module | what it holds |
//! |---|---|
//! | `network` | the nodes and links |
//! | `access_jitter` | jitter where hosts enter the network |
//! | `layout` | the node of each host, and the routes between hosts |
//! | `actors` | adds the plan's transfers, requests and cross traffic |
//! | `recorder` | records what happens |
//! | `session`, `supply` | byway's sender and receiver; the data that a sender has |
//! | `exchange` | hosts that restart, sleep and move, and what they exchange |
//! | `interventions` | what happens to hosts, relays and middleboxes at a time |
//! | `middleboxes` | what drops, marks, replays and forges packets between hosts |
//! | `relays`, `lending_relay` | byway's relays and their nodes |
//! | `registry` | the registry that senders ask for relays |
//! | `gateways` | byway's gateways between TCP hosts |
//! | `tcp` | TCP hosts to compare with |
//! | `wang` | TCP sources that set their rates to each relay (Wang et al.) |
//! | `memory` | an upper bound of a world's memory |
//! | `max_flow` | the largest goodput that is possible through relays |

mod access_jitter;
mod actors;
mod exchange;
mod gateways;
mod interventions;
mod layout;
mod lending_relay;
mod max_flow;
mod memory;
mod middleboxes;
mod network;
mod recorder;
mod registry;
mod relays;
mod session;
mod supply;
mod tcp;
mod transfers;
mod wang;

use crate::record::Record;
use crate::setup::{Attack, Changed, Demand, Setup};
use crate::trace::pcapng::Pcapng;
use actors::Actors;
use byway_control::ChoiceError;
use byway_sim::topology::TopologyError;
use byway_sim::world::{CaptureDirection, World};
use byway_wire::{Duration, Instant};
use core::sync::atomic::{AtomicBool, Ordering};
use layout::Layout;
pub use memory::memory_bound;
use middleboxes::Middleboxes;
pub use network::graph;
use recorder::Recorder;
use std::collections::BTreeSet;
use std::io::{self, Write};
use std::sync::{Arc, Mutex};
pub use tcp::requests;

/// Why a variant does not run, or did not run to its end.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum RunError {
    /// The network cannot be made, or a way not be found in it.
    #[error(transparent)]
    Network(#[from] TopologyError),
    /// A new link leads one way only.
    #[error("a link leads from {from} to {to}, but none back: without `one_way`, it is one each way")]
    OneWay {
        /// The node at which the link begins.
        from: String,
        /// The node at which the link ends.
        to: String,
    },
    /// Fewer nodes than a plan wants to choose among.
    #[error(
        "{transfer}: {wanted} nodes that begin with {prefix:?} are wanted, but only {there} can be chosen"
    )]
    TooFew {
        /// The transfer's name.
        transfer: String,
        /// How their names should begin.
        prefix: String,
        /// Nodes with this prefix that the plan asks for.
        wanted: usize,
        /// Nodes with this prefix that there are.
        there: usize,
    },
    /// A way through one of its own ends, or twice through the same node.
    #[error("{transfer}: a way leads through {node}, which is one of its ends or stands there already")]
    OwnRelay {
        /// The transfer's name.
        transfer: String,
        /// The node's name.
        node: String,
    },
    /// A relay is to crash where there is none.
    #[error("at {node} there is no relay that could go down or come up: no session goes through there")]
    NoRelay {
        /// The node's name.
        node: String,
    },
    /// Something is to happen to a transfer, or a registry, that is not there.
    #[error("{what}")]
    NothingThere {
        /// What is not there.
        what: String,
    },
    /// A host that lends has several lines.
    #[error("at {node} there is a relay that lends the line of its host, and that has not just one")]
    Lines {
        /// The node's name.
        node: String,
    },
    /// What the plan says of a controller is wrong.
    #[error("{of}: {error}")]
    Congestion {
        /// The transfer's name.
        of: String,
        /// What is wrong with the choice.
        error: ChoiceError,
    },
    /// A server of requests has fewer controllers to choose from.
    #[error("{requests}: servers run newreno or cubic without options, not {name}")]
    Server {
        /// The name of the requests.
        requests: String,
        /// The controller that was asked for.
        name: String,
    },
    /// What the plan asks for cannot be done by this carrier.
    #[error("{transfer}: {why}")]
    Carrier {
        /// The transfer's name.
        transfer: String,
        /// What cannot be done.
        why: &'static str,
    },
    /// The world could need more memory than the plan allows.
    #[error("this may need {needed} MB of memory, and the plan allows {allowed} MB (`memory`)")]
    Memory {
        /// Megabytes that the run would need, rounded up.
        needed: u64,
        /// Megabytes that a run may use.
        allowed: u64,
    },
    /// The packets could not be written.
    #[error("cannot write the packets: {0}")]
    Capture(String),
    /// Somebody wanted it to end.
    #[error("cancelled")]
    Cancelled,
}

/// Runs a variant with a seed. The same variant and seed give the same record on every machine.
/// `cancel` is checked once per sample.
///
/// # Errors
/// [`RunError`]: what in the plan is wrong, or that it was cancelled.
pub fn run(setup: &Setup, seed: u64, cancel: &AtomicBool) -> Result<Record, RunError> {
    run_in(World::new(seed), setup, seed, cancel)
}

/// Runs `setup`, and writes every datagram that leaves a host to `packets` as pcapng.
///
/// # Errors
/// [`RunError`], also if `packets` cannot be written.
pub fn run_captured(
    setup: &Setup,
    seed: u64,
    cancel: &AtomicBool,
    packets: Box<dyn Write + Send>,
) -> Result<Record, RunError> {
    let file = Arc::new(Mutex::new((Pcapng::new(packets), None)));
    let mut world = World::new(seed);
    let shared = Arc::clone(&file);
    world.capture(move |seen| {
        if let Ok(mut file) = shared.lock()
            && let (Ok(packets), failed @ None) = &mut *file
            && seen.way == CaptureDirection::Sent
        {
            let ends = (seen.from, seen.to);
            *failed = packets.datagram(seen.at, ends, seen.ecn, seen.payload, seen.phantom).err();
        }
    });
    let record = run_in(world, setup, seed, cancel)?;
    let unwritten = |error: io::Error| RunError::Capture(error.to_string());
    // The world is gone, and with it the other owner.
    match Arc::into_inner(file).and_then(|file| file.into_inner().ok()) {
        Some((Ok(packets), None)) => packets.finish().map_err(unwritten)?,
        Some((Err(error), _) | (_, Some(error))) => return Err(unwritten(error)),
        None => {}
    }
    Ok(record)
}

fn run_in(mut world: World, setup: &Setup, seed: u64, cancel: &AtomicBool) -> Result<Record, RunError> {
    let mut graph = network::graph(setup, seed)?;
    access_jitter::add(&mut graph, setup, seed)?;
    let mut layout = Layout::new(&graph);
    let mut actors = Actors::new(setup, seed, &mut layout, &mut world)?;
    let needed = memory::estimate(setup, &graph, &actors, &layout);
    if needed > setup.memory {
        let megabytes = |bytes: u64| bytes.div_ceil(1_000_000);
        return Err(RunError::Memory { needed: megabytes(needed), allowed: megabytes(setup.memory) });
    }
    let built = layout.build(&mut world)?;
    actors.relays.watch(&mut world, &graph, &built)?;
    let links = recorder::links(&graph, &actors, &layout, &built)?;
    let optimum = max_flow::optimum(setup, &graph, &actors)?;
    let all = built.links(&layout.used().iter().copied().collect::<Vec<_>>())?;
    let mut watch = Recorder::new(setup, &graph, &actors, all, links);
    if setup.early_wakes > 0.0 {
        world.wake_spuriously(setup.early_wakes);
    }
    let middleboxes = middleboxes(setup, seed, &layout, &actors)?;
    if let Some(middleboxes) = &middleboxes {
        middleboxes.watch(&mut world);
    }
    let mut due = interventions::all(setup, &graph, &built, &actors)?.into_iter().peekable();
    let end = Instant::ZERO + setup.duration;
    let mut at = Instant::ZERO;
    while at <= end {
        while let Some((when, what)) = due.next_if(|next| next.0 <= at) {
            wang::run_until(&mut world, &mut actors.sources, when);
            what.happen(&mut world, &actors, middleboxes.as_ref());
        }
        wang::run_until(&mut world, &mut actors.sources, at);
        if let Some(middleboxes) = &middleboxes {
            middleboxes.attack(&mut world);
        }
        watch.sample(&world, &actors);
        if cancel.load(Ordering::Relaxed) {
            return Err(RunError::Cancelled);
        }
        if setup.until_done && is_done(setup, &world, &actors) {
            return Ok(watch.finish(setup, seed, &world, &actors, optimum));
        }
        at += setup.sample.max(Duration::from_nanos(1));
    }
    wang::run_until(&mut world, &mut actors.sources, end);
    Ok(watch.finish(setup, seed, &world, &actors, optimum))
}

/// Whether every transfer of a size is over, and every request of a list is answered.
fn is_done(setup: &Setup, world: &World, actors: &Actors) -> bool {
    let mut transfers = setup.transfers.iter().zip(&actors.transfers);
    transfers.all(|(transfer, moving)| {
        !matches!(transfer.demand, Demand::Size(_)) || moving.ends.carrier().is_over(world)
    }) && actors
        .requests
        .iter()
        .all(|asking| world[asking.clients].outcomes().iter().all(|outcome| outcome.finished.is_some()))
}

/// What stands between hosts and looks into packets. `None`: nothing does in this plan.
fn middleboxes(
    setup: &Setup,
    seed: u64,
    layout: &Layout<'_>,
    actors: &Actors,
) -> Result<Option<Middleboxes>, RunError> {
    let bleaching = setup.network.links.iter().filter(|link| link.spec.bleaches);
    let bleaching = bleaching
        .map(|link| layout.graph().direction(&link.from, &link.to))
        .collect::<Result<BTreeSet<_>, _>>()?;
    let filters = setup.changes.iter().any(|change| matches!(change.what, Changed::Udp { .. }));
    if bleaching.is_empty() && !filters && setup.attack == Attack::default() {
        return Ok(None);
    }
    let ways = layout.ways().map(|(ends, way)| (ends, way.to_vec())).collect();
    Ok(Some(Middleboxes::new(ways, bleaching, setup.attack, actors.byway_hosts().clone(), seed)))
}
