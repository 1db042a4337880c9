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
//! | `run_error` | why a world does not run |
//! | `transfers`, `transfer_sample` | who carries a transfer; what it says at a sample |
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
mod run_error;
mod session;
mod supply;
mod tcp;
mod transfer_sample;
mod transfers;
mod wang;

use crate::record::Record;
use crate::setup::{Attack, Changed, Demand, Setup};
use crate::trace::pcapng::Pcapng;
use actors::Actors;
use byway_sim::world::{CaptureDirection, World};
use byway_wire::{Duration, Instant};
use core::sync::atomic::{AtomicBool, Ordering};
use layout::Layout;
pub use memory::memory_bound;
use middleboxes::Middleboxes;
pub use network::graph;
use recorder::Recorder;
pub use run_error::RunError;
use std::collections::BTreeSet;
use std::io::{self, Write};
use std::sync::{Arc, Mutex};
pub use tcp::requests;

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

/// Makes the middleboxes of a plan. `None`: the plan has none.
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
