//! Records samples of a world while it runs, and makes its record at the end.

use super::actors::{Actors, CrossActor, TransferActor};
use super::gateways::GatewayPair;
use super::layout::{Layout, PlacedTransfer};
use super::run_error::RunError;
use super::transfer_sample::{PathSample, SendState, TransferSample};
use crate::record::{
    CrossRecord, GatewayRecord, LinkRecord, PathRecord, Record, RequestRecord, RequestsRecord, TransferRecord,
};
use crate::setup::{Cross, Setup};
use byway_gateway::reorder::BOUNDS_MS;
use byway_sim::pipe::OVERHEAD_IPV4;
use byway_sim::topology::{Built, Direction, Graph};
use byway_sim::{LinkId, World};
use byway_wire::{Instant, PathId};
use std::collections::{BTreeMap, BTreeSet};

/// The most links of which all are recorded. Of more links, only the slowest of each route are.
const MAX_LINKS: usize = 64;

/// Returns the links to record.
pub(super) fn watched(graph: &Graph, actors: &Actors, layout: &Layout<'_>) -> BTreeSet<Direction> {
    let ways = actors.transfers.iter().flat_map(|moving| &moving.ways);
    let ways: Vec<_> = ways.chain(actors.requests.iter().map(|asking| &asking.way)).collect();
    let all: BTreeSet<Direction> = ways.iter().copied().flatten().copied().collect();
    if all.len() <= MAX_LINKS {
        // And back, where the ACKs are.
        let back = all.iter().map(|link| link.reversed()).filter(|link| layout.used().contains(link));
        return all.iter().copied().chain(back).collect();
    }
    let slowest = |way: &&Vec<Direction>| {
        let least = graph.bottleneck(way);
        way.iter().copied().filter(move |link| graph.config(*link).rate == least).collect::<Vec<_>>()
    };
    ways.iter().flat_map(slowest).collect()
}

/// Returns the links to record, with empty records.
pub(super) fn links(
    graph: &Graph,
    actors: &Actors,
    layout: &Layout<'_>,
    built: &Built,
) -> Result<Vec<(LinkId, LinkRecord)>, RunError> {
    let record = |link: Direction| {
        let (from, to) = graph.ends(link);
        let record = LinkRecord {
            from: from.to_owned(),
            to: to.to_owned(),
            rate: graph.config(link).rate.unwrap_or(0),
            ..LinkRecord::default()
        };
        Ok((built.link(from, to)?, record))
    };
    watched(graph, actors, layout).into_iter().map(record).collect()
}

/// Notes a run's state at each sample.
#[derive(Debug)]
pub(super) struct Recorder {
    all: Vec<LinkId>,
    transfers: Vec<TransferNotes>,
    links: Vec<(LinkId, LinkRecord)>,
}

/// Notes of a transfer.
#[derive(Debug)]
struct TransferNotes {
    record: TransferRecord,
    ways: Vec<PathTotals>,
    /// The routes whose relays have answered a probe in time, by their numbers in the transfer.
    available: BTreeSet<usize>,
    /// The index of each route to a relay of a registry, by the relay's number.
    listed: BTreeMap<usize, usize>,
    /// The counts of every path that ever existed, or of TCP's subflows by number.
    paths: BTreeMap<PathId, PathCounts>,
    /// Bytes acknowledged at the last sample.
    acked: u64,
}

/// A way over the whole run.
#[derive(Clone, Copy, Debug, Default)]
struct PathTotals {
    /// Bytes of data acknowledged.
    acked: u64,
    /// Whether a path on the route was ever usable.
    usable: bool,
}

/// The counts of a path at the last sample.
#[derive(Clone, Copy, Debug, Default)]
struct PathCounts {
    way: usize,
    /// Bytes acknowledged, with headers if the path counts them.
    bytes: u64,
    lost: u64,
}

impl Recorder {
    /// Makes a recorder that records `links`, and counts the packets on `all`.
    pub(super) fn new(
        setup: &Setup,
        graph: &Graph,
        actors: &Actors,
        all: Vec<LinkId>,
        links: Vec<(LinkId, LinkRecord)>,
    ) -> Self {
        let abroad = |placed: &PlacedTransfer| Some(graph.region(&placed.from)? != graph.region(&placed.to)?);
        let base_rtt = |placed: &PlacedTransfer| {
            let there = graph.way(&placed.from, &placed.to, &[]).unwrap_or_default();
            let back: Vec<Direction> = there.iter().map(|direction| direction.reversed()).collect();
            graph.base_rtt(&there, &back).as_secs_f64() * 1e3
        };
        let notes = |(transfer, moving): (&crate::setup::Transfer, &TransferActor)| TransferNotes {
            record: TransferRecord {
                name: transfer.name.clone(),
                group: transfer.group.clone(),
                started: moving.start.as_secs_f64(),
                abroad: abroad(&moving.placed),
                base_rtt: base_rtt(&moving.placed),
                paths: moving
                    .names()
                    .map(|name| PathRecord { name: name.to_owned(), ..PathRecord::default() })
                    .collect(),
                ..TransferRecord::default()
            },
            ways: vec![PathTotals::default(); moving.ways.len()],
            available: BTreeSet::new(),
            listed: BTreeMap::new(),
            paths: BTreeMap::new(),
            acked: 0,
        };
        Self { all, transfers: setup.transfers.iter().zip(&actors.transfers).map(notes).collect(), links }
    }

    /// Notes how things are now.
    pub(super) fn sample(&mut self, world: &World, actors: &Actors) {
        for (notes, moving) in self.transfers.iter_mut().zip(&actors.transfers) {
            notes.sample(world, actors, moving);
        }
        for (link, record) in &mut self.links {
            let books = world.counters(*link);
            record.sent.push(books.delivered_bytes + u64::from(OVERHEAD_IPV4) * books.delivered);
            record.queue.push(books.queued as u32);
            record.dropped.push(books.dropped() as u32);
        }
    }

    /// Makes the record at the end of a run.
    pub(super) fn finish(
        self,
        setup: &Setup,
        seed: u64,
        world: &World,
        actors: &Actors,
        optimum: Option<f64>,
    ) -> Record {
        let request = |outcome: &byway_sim::tcp::web::RequestOutcome| RequestRecord {
            size: outcome.size,
            began: outcome.started.map(Instant::as_secs_f64),
            took: outcome
                .started
                .and_then(|began| outcome.finished.map(|finished| finished.since(began).as_secs_f64())),
            given_up: outcome.given_up,
        };
        let requests = setup.requests.iter().zip(&actors.requests).map(|(requests, asking)| RequestsRecord {
            name: requests.name.clone(),
            list: world[asking.clients].outcomes().iter().map(request).collect(),
        });
        let transfers = self.transfers.into_iter().zip(&actors.transfers);
        let links: Vec<LinkRecord> = self.links.into_iter().map(|(_, record)| record).collect();
        Record {
            axes: setup.axes.clone(),
            seed,
            trace: world.trace(),
            sample: setup.sample.as_secs_f64(),
            duration: setup.duration.as_secs_f64(),
            cut: setup.cut.as_secs_f64(),
            packets: self.all.iter().map(|link| world.counters(*link).delivered).sum(),
            transfers: transfers.map(|(notes, moving)| notes.finish(world, moving)).collect(),
            requests: requests.collect(),
            links,
            cross: cross(setup, world, actors),
            gateways: gateways(world, actors),
            optimum,
        }
    }
}

/// The cross traffic whose delays were asked for.
fn cross(setup: &Setup, world: &World, actors: &Actors) -> Vec<CrossRecord> {
    let asked = setup.cross.iter().zip(&actors.cross).filter(|(cross, _)| cross.delays);
    let record = |(cross, crossing): (&Cross, &CrossActor)| {
        let delays = world[crossing.source].delays(&world[crossing.sink]);
        let delays = delays.into_iter().map(|delay| delay.map(|delay| delay.as_secs_f64())).collect();
        CrossRecord { name: cross.name.clone(), delays }
    };
    asked.map(record).collect()
}

/// Makes the records of the gateways at the end of a run.
fn gateways(world: &World, actors: &Actors) -> Vec<GatewayRecord> {
    let record = |pair: &GatewayPair| {
        let (entry, exit) = (&world[pair.entry], &world[pair.exit]);
        let waits = exit.gateway.status().waits;
        let bounds = BOUNDS_MS.into_iter().chain([u64::MAX]);
        GatewayRecord {
            name: pair.name.clone(),
            waits: bounds.zip(waits.waits).collect(),
            released: waits.packets(),
            timed_out: waits.timed_out,
            carried: entry.gateway.status().peers.iter().map(|peer| peer.carried).sum(),
            dropped: entry
                .gateway
                .status()
                .peers
                .iter()
                .map(|peer| peer.entry.dropped + peer.entry.dropped_of_flow)
                .sum(),
            plain: entry.plain + exit.plain,
            found: entry
                .gateway
                .status()
                .found
                .after()
                .map(|after| (after.as_secs_f64() * 1e3) as f32)
                .collect(),
        }
    };
    actors.gateways.iter().map(record).collect()
}

impl TransferNotes {
    fn sample(&mut self, world: &World, actors: &Actors, moving: &TransferActor) {
        let TransferSample { received, mut paths, available, together } =
            moving.ends.carrier().look(world, &actors.gateways);
        for seen in &mut paths {
            if let Some(number) = seen.way.checked_sub(moving.ways.len()) {
                seen.way = self.listed(number, actors);
            }
        }
        self.record.received.push(received);
        let mut glances = vec![SendState::default(); self.ways.len()];
        // Bytes acknowledged on each way since the last sample.
        let mut fresh = vec![0; self.ways.len()];
        for seen in paths {
            if let (Some(glance), Some(now)) = (glances.get_mut(seen.way), seen.send_state) {
                *glance = SendState {
                    window: glance.window + now.window,
                    window_bytes: glance.window_bytes.saturating_add(now.window_bytes),
                    ..now
                };
            }
            self.tally(&seen, &mut fresh);
        }
        if let Some(together) = together {
            // A path counts its packets whole. What is new in them is shared among the paths by
            // that.
            let new = together.saturating_sub(self.acked);
            self.acked = together;
            share(new, &mut fresh);
        }
        let mut lost = vec![0; self.ways.len()];
        for tally in self.paths.values() {
            if let Some(lost) = lost.get_mut(tally.way) {
                *lost += tally.lost;
            }
        }
        for (course, fresh) in self.ways.iter_mut().zip(fresh) {
            course.acked += fresh;
        }
        self.record.found.push(self.ways.iter().filter(|way| way.usable).count() as u32);
        if let Some(available) = available {
            self.available.extend(available);
            self.record.available.push(self.available.len() as u32);
        }
        let seen = self.ways.iter().zip(glances).zip(lost);
        for (record, ((course, glance), lost)) in self.record.paths.iter_mut().zip(seen) {
            record.acked.push(course.acked);
            record.lost.push(lost as u32);
            record.window.push(glance.window as f32);
            record.window_bytes.push(u32::try_from(glance.window_bytes).unwrap_or(u32::MAX));
            record.rtt.push((glance.rtt.as_secs_f64() * 1e3) as f32);
            record.choked.push(glance.choked);
        }
    }

    /// Returns the index of the route through the registry's relay `number`. A new route has
    /// carried no bytes so far.
    fn listed(&mut self, number: usize, actors: &Actors) -> usize {
        let (ways, record) = (&mut self.ways, &mut self.record);
        *self.listed.entry(number).or_insert_with(|| {
            let samples = record.received.len();
            record.paths.push(PathRecord {
                name: actors.relays.enrolled().get(number).cloned().unwrap_or_default(),
                acked: vec![0; samples],
                window: vec![0.0; samples],
                window_bytes: vec![0; samples],
                rtt: vec![0.0; samples],
                lost: vec![0; samples],
                choked: vec![false; samples],
            });
            ways.push(PathTotals::default());
            ways.len() - 1
        })
    }

    /// Takes note of a path.
    fn tally(&mut self, seen: &PathSample, fresh: &mut [u64]) {
        let tally = PathCounts { way: seen.way, bytes: seen.bytes, lost: seen.lost };
        let before = self.paths.insert(seen.path, tally).unwrap_or_default();
        if let (Some(course), Some(fresh)) = (self.ways.get_mut(seen.way), fresh.get_mut(seen.way)) {
            course.usable |= seen.usable;
            *fresh += seen.bytes.saturating_sub(before.bytes);
        }
    }

    fn finish(self, world: &World, moving: &TransferActor) -> TransferRecord {
        let mut record = self.record;
        record.opened = self.ways.iter().filter(|way| way.usable).count() as u64;
        record.lost = Some(self.paths.values().map(|path| path.lost).sum());
        moving.ends.carrier().finish(world, &mut record);
        record
    }
}

/// Replaces the parts by parts of `whole` in the same proportion. Nothing stays nothing.
fn share(whole: u64, parts: &mut [u64]) {
    let mut sum: u64 = parts.iter().sum();
    let mut left = whole;
    for part in parts {
        // The last part that is something takes what rounding left.
        let given =
            if sum == 0 { 0 } else { (u128::from(left) * u128::from(*part) / u128::from(sum)) as u64 };
        sum -= *part;
        left -= given;
        *part = given;
    }
}

#[cfg(test)]
mod tests {
    use super::share;

    #[test]
    fn shares_are_in_proportion_and_make_the_whole() {
        for (whole, parts, expected) in [
            (90, [50, 50, 0], [45, 45, 0]),
            (100, [1, 1, 1], [33, 33, 34]),
            (7, [0, 0, 3], [0, 0, 7]),
            (7, [0, 0, 0], [0, 0, 0]),
        ] {
            let mut shared = parts;
            share(whole, &mut shared);
            assert_eq!(shared, expected);
        }
    }
}
