//! The longest time of a transfer: a generous bound from the best line that is left to it.

use super::world_facts::{self, exchanges, happenings, trouble_end};
use crate::record::Record;
use crate::setup::{
    Carrier, Changed, EndChange, LinkSpec, NodeChoice, PathChoice, QueueLimit, Setup, Transfer,
};
use byway_sim::topology::{Direction, Graph};
use byway_wire::Duration;
use std::collections::BTreeMap;

/// The longest time of a transfer, as a multiple of the time that its bytes need on its best line.
const MAX_SLOWDOWN_FACTOR: f64 = 20.0;
/// A transfer may need this many seconds to notice that all is well again. A timeout, or the next
/// attempt to connect, is up to a minute away. The attempt before takes 20 s to fail.
const RECOVERY_SECONDS: f64 = 90.0;
/// Bits of a full packet.
const PACKET_BITS: f64 = 1_200.0 * 8.0;
/// The factor of the rate that random loss leaves a TCP (Mathis et al. 1997, with one ACK per
/// packet).
const MATHIS_FACTOR: f64 = 1.22;

/// Returns the second by which a transfer must end. `None`: there is no bound.
pub(super) fn latest_end(setup: &Setup, transfer: &Transfer, record: &Record) -> Option<f64> {
    let bytes = world_facts::bytes(&transfer.demand, &transfer.carrier)? as f64;
    if !matches!(transfer.carrier, Carrier::Session(_) | Carrier::Exchange(_)) {
        return None;
    }
    let name = transfer.congestion.name.as_str();
    if !matches!(name, "background" | "mpath") {
        return None;
    }
    let lines = Lines::after(setup)?;
    let paths = transfer.paths.iter().filter_map(|path| lines.path(transfer, path));
    let rates = paths.filter(|path| !path.is_dead).map(|path| path.rate_of_class(name));
    let best = rates.max_by(f64::total_cmp)?;
    if name == "background" && lines.is_jittered() {
        // What it keeps of such a line is written down as a frontier (docs/background.md).
        return None;
    }
    let mut seconds = MAX_SLOWDOWN_FACTOR * bytes * 8.0 / best;
    if let Carrier::Exchange(options) = &transfer.carrier {
        for rate in [options.reads, options.writes].into_iter().flatten() {
            seconds += MAX_SLOWDOWN_FACTOR * bytes * 8.0 / rate as f64;
        }
    }
    // It may have waited for everybody else.
    let others = record.transfers.iter().filter(|other| other.name != transfer.name);
    let others = others.filter_map(|other| other.finished);
    let requests = record.requests.iter().flat_map(|requests| &requests.list);
    let requests = requests.filter_map(|request| Some(request.began? + request.took?));
    let stops = setup.transfers.iter().filter_map(|other| other.stop).map(|stop| stop.as_secs_f64());
    let begins = transfer.start.as_secs_f64();
    let free = others.chain(requests).chain(stops).chain([trouble_end(setup).as_secs_f64()]);
    Some(free.fold(begins, f64::max) + RECOVERY_SECONDS + seconds)
}

/// Whether a session of this transfer may be lost: its peer restarts, or nothing passes for almost
/// as long as the timeout.
pub(super) fn may_lose_session(setup: &Setup, name: &str) -> bool {
    // The shortest sleep that may lose a session.
    const MIN_LOSING_SLEEP: Duration = Duration::from_secs(40);
    let mut asleep: BTreeMap<_, Duration> = BTreeMap::new();
    for (at, end, what) in happenings(setup, name) {
        match what {
            EndChange::Restart => return true,
            EndChange::Freeze(true) => {
                asleep.insert(end, at);
            }
            EndChange::Freeze(false)
                if asleep.remove(&end).is_some_and(|since| at >= since + MIN_LOSING_SLEEP) =>
            {
                return true;
            }
            _ => {}
        }
    }
    // A clock that jumps by more than the timeout may do the same as a sleep.
    let clocks = exchanges(setup).filter(|(known, _)| *known == name);
    let mut steps = clocks.flat_map(|(_, options)| [options.sender_clock.step, options.receiver_clock.step]);
    steps.any(|step| step.is_some_and(|(_, by)| by >= MIN_LOSING_SLEEP))
}

/// The quality of a path after all changes.
#[derive(Clone, Copy, Debug)]
struct PathQuality {
    /// Bits per second of the slowest line.
    rate: f64,
    /// Seconds of a round trip, with full queues.
    round_trip: f64,
    /// The probability that a packet is lost or damaged, 0 to 1.
    loss: f64,
    is_dead: bool,
}

impl PathQuality {
    /// The lowest rate that a class reaches on the path. Random losses and short queues limit it.
    fn rate_of_class(&self, name: &str) -> f64 {
        let by_loss = if self.loss > 0.0 {
            MATHIS_FACTOR * PACKET_BITS / (self.round_trip * libm::sqrt(self.loss))
        } else {
            f64::INFINITY
        };
        // The class for the background answers to marks and losses more than once a round trip.
        let share = if name == "background" { 0.5 } else { 1.0 };
        share * self.rate.min(by_loss)
    }
}

/// The lines of a world after all changes, with the routes that routers choose.
struct Lines<'a> {
    graph: Graph,
    specs: BTreeMap<(&'a str, &'a str), (LinkSpec, bool)>,
}

impl<'a> Lines<'a> {
    fn after(setup: &'a Setup) -> Option<Self> {
        let mut specs: BTreeMap<_, _> = setup
            .network
            .links
            .iter()
            .map(|link| ((link.from.as_str(), link.to.as_str()), (link.spec.clone(), true)))
            .collect();
        for change in &setup.changes {
            let Changed::Link { from, to, rate, delay, loss, up, .. } = &change.what else { continue };
            let Some((spec, is_up)) = specs.get_mut(&(from.as_str(), to.as_str())) else { continue };
            spec.rate = rate.or(spec.rate);
            spec.delay = delay.or(spec.delay);
            spec.loss = loss.or(spec.loss);
            *is_up = up.unwrap_or(*is_up);
        }
        Some(Self { graph: crate::world::graph(setup, 0).ok()?, specs })
    }

    /// Whether a line has jitter, or holds packets up.
    fn is_jittered(&self) -> bool {
        self.specs.values().any(|(spec, _)| spec.jitter.is_some() || spec.reordering.is_some())
    }

    /// The path of the sender's first address, directly or through a relay. `None`: there is none.
    fn path(&self, transfer: &Transfer, path: &PathChoice) -> Option<PathQuality> {
        let (NodeChoice::Node(from), NodeChoice::Node(to)) = (&transfer.from, &transfer.to) else {
            return None;
        };
        let through: &[&str] = match path {
            PathChoice::Direct => &[],
            PathChoice::Through(relay) => &[relay],
            PathChoice::Any(..) | PathChoice::Registry => return None,
        };
        Some(self.along(&self.graph.way(from, to, through).ok()?))
    }

    /// The quality of a route in both directions.
    fn along(&self, way: &[Direction]) -> PathQuality {
        let mut path = PathQuality { rate: f64::INFINITY, round_trip: 0.0, loss: 0.0, is_dead: false };
        for link in way.iter().copied().flat_map(|link| [link, link.reversed()]) {
            let Some((spec, is_up)) = self.specs.get(&self.graph.ends(link)) else { continue };
            let rate = spec.rate.unwrap_or(u64::MAX) as f64;
            path.rate = path.rate.min(rate);
            let queue = match spec.queue {
                Some(QueueLimit::Packets(packets)) => packets as f64 * PACKET_BITS / rate,
                Some(QueueLimit::Bytes(bytes)) => bytes as f64 * 8.0 / rate,
                Some(QueueLimit::Time(time)) => time.as_secs_f64(),
                None => 0.0,
            };
            path.round_trip += spec.delay.unwrap_or_default().as_secs_f64() + queue;
            let bursts = spec.burst_loss.map_or(0.0, |burst| burst.0);
            path.loss += spec.loss.unwrap_or_default() + spec.corruption.unwrap_or_default() + bursts;
            path.is_dead |= !is_up;
        }
        path
    }
}

/// Whether the direct line of a transfer is cut for good.
pub(super) fn is_cut(setup: &Setup, transfer: &Transfer) -> bool {
    let direct = Lines::after(setup).and_then(|lines| lines.path(transfer, &PathChoice::Direct));
    direct.is_some_and(|path| path.is_dead)
}

/// Whether a line has jitter, or holds packets up.
pub(super) fn is_jittered(setup: &Setup) -> bool {
    Lines::after(setup).is_some_and(|lines| lines.is_jittered())
}

/// Whether every transfer has a path that no line cuts for good.
pub(super) fn is_reachable(setup: &Setup) -> bool {
    let Some(lines) = Lines::after(setup) else { return false };
    setup.transfers.iter().all(|transfer| {
        let mut paths = transfer.paths.iter().filter_map(|path| lines.path(transfer, path));
        paths.any(|path| !path.is_dead)
    })
}
