//! Changes to hosts, relays and middleboxes at the times in a plan.

use super::actors::Actors;
use super::middleboxes::Middleboxes;
use super::run_error::RunError;
use super::transfers::TransferHosts;
use crate::setup::{Changed, EndChange, EndChoice, Setup, UdpFilter};
use byway_sim::topology::{Built, Direction, Graph};
use byway_sim::{LinkId, World};
use byway_wire::Instant;

/// Something that happens at a time.
#[derive(Debug)]
pub(super) enum Intervention {
    /// The relay at a node crashes, or starts again.
    Relay { node: String, up: bool },
    /// The registry's host is suspended or resumed.
    Registry { up: bool },
    /// A link's largest packet changes.
    Mtu { link: LinkId, bytes: usize },
    /// A filter for UDP on a link changes.
    Udp { link: Direction, filter: Option<UdpFilter> },
    /// A change at an end of the exchange with this number.
    End { transfer: usize, end: EndChoice, what: EndChange },
}

/// All interventions of a plan, in order of time.
pub(super) fn all(
    setup: &Setup,
    graph: &Graph,
    built: &Built,
    actors: &Actors,
) -> Result<Vec<(Instant, Intervention)>, RunError> {
    let mut found = Vec::new();
    for change in &setup.changes {
        let what = match &change.what {
            Changed::Link { from, to, mtu, .. } => {
                let Some(bytes) = *mtu else { continue };
                // A link that no host uses was not made.
                let Ok(link) = built.link(from, to) else { continue };
                Intervention::Mtu { link, bytes }
            }
            Changed::Udp { from, to, filter } => {
                Intervention::Udp { link: graph.direction(from, to)?, filter: *filter }
            }
            Changed::Relay { node, up } => {
                if !actors.relays.is_at(node) {
                    return Err(RunError::NoRelay { node: node.clone() });
                }
                Intervention::Relay { node: node.clone(), up: *up }
            }
            Changed::Registry { up } => {
                if actors.registry().is_none() {
                    let what = "there is no registry that could go down or come up".to_owned();
                    return Err(RunError::NothingThere { what });
                }
                Intervention::Registry { up: *up }
            }
            Changed::End { transfer, end, what } => {
                let place = setup.transfers.iter().position(|known| known.name == *transfer);
                let hosts = place.and_then(|place| actors.transfers.get(place)).map(|moving| &moving.ends);
                let (Some(place), Some(TransferHosts::Exchange(_))) = (place, hosts) else {
                    let what = format!("there is no exchange called {transfer:?} whose ends could change");
                    return Err(RunError::NothingThere { what });
                };
                Intervention::End { transfer: place, end: *end, what: *what }
            }
        };
        found.push((Instant::ZERO + change.at, what));
    }
    found.sort_by_key(|next| next.0);
    Ok(found)
}

impl Intervention {
    /// Carries out the intervention now.
    pub(super) fn happen(&self, world: &mut World, actors: &Actors, middleboxes: Option<&Middleboxes>) {
        match self {
            Self::Relay { node, up } => actors.relays.set_up(world, node, *up),
            Self::Registry { up } => {
                if let Some(registry) = actors.registry() {
                    world.freeze(registry, !up);
                }
            }
            Self::Mtu { link, bytes } => world.pipe(*link).set_mtu(Some(*bytes)),
            Self::Udp { link, filter } => {
                if let Some(middleboxes) = middleboxes {
                    middleboxes.filter(*link, *filter);
                }
            }
            Self::End { transfer, end, what } => {
                let hosts = actors.transfers.get(*transfer).map(|moving| &moving.ends);
                if let Some(TransferHosts::Exchange(hosts)) = hosts {
                    hosts.change(world, *end, *what);
                }
            }
        }
    }
}
