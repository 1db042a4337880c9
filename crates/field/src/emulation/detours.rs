//! The kernel's TCP by another way than routers choose: rules of routing by the port of its server,
//! at each node of the way.

use super::run_lab::{RunLab, set_routes};
use super::transfer_setup::FIRST_SERVER_PORT;
use crate::error::{Error, Result};
use byway_lab::Setup;
use byway_lab::setup::{Carrier, NodeChoice, PathChoice, Transfer};
use byway_sim::topology::Graph;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

/// The number of the first transfer's routing table; each transfer has its own.
pub(super) const FIRST_TABLE: u32 = 20_000;

/// Returns the node through which a kernel TCP transfer is routed. `None`: it takes the direct
/// route.
pub(super) fn through(transfer: &Transfer) -> Option<&str> {
    match (&transfer.carrier, transfer.paths.as_slice()) {
        (Carrier::Tcp(_), [PathChoice::Through(node)]) => Some(node),
        _ => None,
    }
}

/// Sets up the routes of all transfers that deviate from the direct one.
pub(super) fn set_up(site: &RunLab, setup: &Setup, graph: &Graph) -> Result<()> {
    let mut scripts: BTreeMap<String, String> = BTreeMap::new();
    for (place, transfer) in setup.transfers.iter().enumerate() {
        let (Some(node), NodeChoice::Node(from), NodeChoice::Node(to)) =
            (through(transfer), &transfer.from, &transfer.to)
        else {
            continue;
        };
        let (port, table) = (FIRST_SERVER_PORT + place as u16, FIRST_TABLE + place as u32);
        let ends = [("dport", site.address(to)?), ("sport", site.address(from)?)];
        let way = graph.way(from, to, &[node])?;
        let mut met: BTreeSet<&str> = BTreeSet::new();
        if let Some(twice) = way.iter().map(|direction| graph.ends(*direction).0).find(|at| !met.insert(*at))
        {
            return Err(Error::Failed(format!(
                "{}: the way through {node} comes by {twice} twice, which routes cannot say",
                transfer.name
            )));
        }
        for direction in way {
            let (here, next) = graph.ends(direction);
            let [there, back] = &ends;
            for ((port_of, target), (at, by)) in [(there, (here, next)), (back, (next, here))] {
                let via = site.address(by)?;
                let script = scripts.entry(at.to_owned()).or_default();
                let _ = writeln!(
                    script,
                    "ip rule add priority 100 to {target}/32 ipproto tcp {port_of} {port} lookup {table}\n\
                     device=$(ip -4 neighbour show {via} | sed -n 's/.* dev \\([^ ]*\\) .*/\\1/p')\n\
                     ip route replace {target}/32 via {via} dev $device onlink table {table}"
                );
            }
        }
    }
    set_routes(site, scripts)
}
