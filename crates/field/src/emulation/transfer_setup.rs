//! When, between whom and by which ways a transfer moves.

use crate::error::{Error, Result};
use byway_lab::Setup;
use byway_lab::setup::{Demand, NodeChoice, PathChoice, Transfer};
use byway_sim::Random;
use byway_sim::topology::{Direction, Graph};
use std::time::{Duration, Instant};

/// The port of the first transfer's server; each transfer has its own.
pub(super) const FIRST_SERVER_PORT: u16 = 5201;
/// Bytes that a transfer without an end may have to send, at most: it is a file.
const MAX_FILE_BYTES: u64 = 1_000_000_000;

/// When and between whom.
pub(super) struct TransferSetup<'a> {
    pub(super) begins: Instant,
    pub(super) lasts: Duration,
    pub(super) from: &'a str,
    pub(super) to: &'a str,
    pub(super) graph: &'a Graph,
}

impl TransferSetup<'_> {
    /// How `transfer.paths` names the direct path, and the nodes of the other paths. The direct
    /// path is named `direct`, or by a node that lies on it. byway always uses the direct path, so
    /// a transfer that does not list it is an error.
    pub(super) fn ways<'t>(&self, transfer: &'t Transfer) -> Result<(&'t str, Vec<&'t str>)> {
        let nodes = || {
            transfer.paths.iter().filter_map(|way| match way {
                PathChoice::Through(node) => Some(node.as_str()),
                PathChoice::Direct | PathChoice::Any(..) | PathChoice::Registry => None,
            })
        };
        if transfer.paths.contains(&PathChoice::Direct) {
            return Ok(("direct", nodes().collect()));
        }
        let direct = self.graph.way(self.from, self.to, &[])?;
        let leads = |node: &&str| self.graph.way(self.from, self.to, &[*node]).is_ok_and(|way| way == direct);
        match nodes().find(leads) {
            Some(own) => Ok((own, nodes().filter(|node| *node != own).collect())),
            None => {
                let sentence = format!("{}: byway always uses the direct path too", transfer.name);
                Err(Error::Failed(sentence))
            }
        }
    }

    /// The links of one route of a transfer.
    fn links(&self, way: &PathChoice) -> Result<Vec<Direction>> {
        let through = match way {
            PathChoice::Through(node) => vec![node.as_str()],
            PathChoice::Direct | PathChoice::Any(..) | PathChoice::Registry => Vec::new(),
        };
        Ok(self.graph.way(self.from, self.to, &through)?)
    }

    /// The bytes that a session or a torrent is given to carry.
    pub(super) fn bytes(&self, transfer: &Transfer) -> Result<u64> {
        Ok(match &transfer.demand {
            Demand::Size(bytes) => *bytes,
            Demand::Rate(steps) => {
                steps.first().map_or(0, |(_, rate)| rate / 8) * self.lasts.as_secs().max(1)
            }
            Demand::Unlimited => self.more_than_fits(transfer)?,
        })
    }

    /// More bytes than all routes of a transfer can carry during the run.
    fn more_than_fits(&self, transfer: &Transfer) -> Result<u64> {
        let ways = transfer.paths.iter().map(|way| self.links(way)).collect::<Result<Vec<_>>>()?;
        let mut rate = ways.iter().filter_map(|way| self.graph.bottleneck(way)).sum::<u64>();
        // Where all begin with one link, or end with one, that is what bounds them together.
        for end in [<[Direction]>::first, <[Direction]>::last] {
            let mut ends = ways.iter().filter_map(|way| end(way));
            if let Some(one) = ends.next()
                && ends.all(|other| other == one)
            {
                rate = rate.min(self.graph.config(*one).rate.unwrap_or(u64::MAX));
            }
        }
        let bytes = rate / 8 * (self.lasts.as_secs() + 1);
        if bytes > MAX_FILE_BYTES {
            return Err(Error::failed(format!(
                "{}: it would be {} MB; give it a size, or less time",
                transfer.name,
                bytes / 1_000_000
            )));
        }
        Ok(bytes)
    }
}

/// Returns the hosts and times of a transfer, and its start within the run. `None`: it is not
/// between hosts.
pub(super) fn moving<'a>(
    setup: &Setup,
    transfer: &'a Transfer,
    graph: &'a Graph,
    seed: u64,
    begun: Instant,
) -> Option<(TransferSetup<'a>, Duration)> {
    let (NodeChoice::Node(from), NodeChoice::Node(to)) = (&transfer.from, &transfer.to) else { return None };
    let late = Random::component(seed, &transfer.name).up_to(transfer.start_jitter);
    let started = transfer.start + late;
    let end = transfer.stop.unwrap_or(setup.duration).min(setup.duration);
    Some((
        TransferSetup { begins: begun + started, lasts: end.saturating_sub(started), from, to, graph },
        started,
    ))
}
