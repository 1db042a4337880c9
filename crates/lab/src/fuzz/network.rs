//! A random network: two sites, one with a second uplink perhaps, a line between them, and relays.

use super::draw::{millis, one, rate, seconds, sometimes};
use super::world_facts::TROUBLE_END_SECONDS;
use crate::setup::{Discipline, LinkSetup, LinkSpec, QueueLimit};
use byway_sim::Random;
use byway_wire::Duration;

/// The most relays with lines of their own to both sites.
const MAX_RELAYS: u64 = 5;
/// The smallest MTU of a line in bytes: byway's smallest datagram, with the headers of IPv4 and UDP
/// and a relay's envelope.
const MIN_MTU: u64 = 1_300;

/// The slow lines of the network.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Shape {
    /// Every path has its own lines.
    OwnLines,
    /// All paths share the sender's uplink.
    SharedUplink,
    /// All paths share the receiver's access.
    SharedAccess,
    /// Relays are near the sender's site, so the lines to them hardly limit a path.
    NearRelays,
}

/// A random network and the names of its nodes. Hosts are at the nodes S, S2 and D.
#[derive(Debug)]
pub(super) struct NetworkDraw {
    links: Vec<LinkSetup>,
    relays: Vec<String>,
    /// End hosts with one line each, which may lend that line.
    lenders: Vec<String>,
    /// Nodes of further uplinks of the sender.
    uplinks: Vec<String>,
}

impl NetworkDraw {
    pub(super) fn new(random: &mut Random) -> Self {
        let shape = match random.below(10) {
            0..4 => Shape::OwnLines,
            4..6 => Shape::SharedUplink,
            6..8 => Shape::SharedAccess,
            _ => Shape::NearRelays,
        };
        let mut draw = Self {
            links: Vec::new(),
            relays: (0..random.below(MAX_RELAYS)).map(|number| format!("R{number}")).collect(),
            lenders: Vec::new(),
            uplinks: Vec::new(),
        };
        draw.join("S", "A", [shape == Shape::SharedUplink; 2].map(|is_line| either(random, is_line)));
        draw.join("B", "D", [shape == Shape::SharedAccess; 2].map(|is_line| either(random, is_line)));
        draw.join("A", "B", [line(random), line(random)]);
        for relay in draw.relays.clone() {
            draw.join("A", &relay, [shape != Shape::NearRelays; 2].map(|is_line| either(random, is_line)));
            draw.join(&relay, "B", [line(random), line(random)]);
        }
        if random.chance(0.15) {
            draw.uplinks.push("S2".to_owned());
            draw.join("S2", "B", [line(random), line(random)]);
        }
        if random.chance(0.12) {
            for number in 0..2 + random.below(4) {
                let lender = format!("L{number}");
                let site = if random.chance(0.5) { "A" } else { "B" };
                draw.join(&lender, site, [line(random), line(random)]);
                draw.lenders.push(lender);
            }
        }
        draw
    }

    /// Returns the nodes of relays with lines of their own to both sites.
    pub(super) fn relays(&self) -> &[String] {
        &self.relays
    }

    /// End hosts with one line each, which may lend that line.
    pub(super) fn lenders(&self) -> &[String] {
        &self.lenders
    }

    /// Nodes of further uplinks of the sender.
    pub(super) fn uplinks(&self) -> &[String] {
        &self.uplinks
    }

    /// The links, in both directions.
    pub(super) fn into_links(self) -> Vec<LinkSetup> {
        self.links
    }

    fn join(&mut self, a: &str, b: &str, [there, back]: [LinkSpec; 2]) {
        self.links.push(LinkSetup { from: a.into(), to: b.into(), spec: there });
        self.links.push(LinkSetup { from: b.into(), to: a.into(), spec: back });
    }

    /// A line on some path, in the direction of the data.
    pub(super) fn line(&self, random: &mut Random) -> (String, String) {
        let all: Vec<_> = self.links.iter().filter(|link| link.spec.rate != access().rate).collect();
        let chosen = one(random, &all).map(|link| (link.from.clone(), link.to.clone()));
        chosen.unwrap_or_else(|| ("A".to_owned(), "B".to_owned()))
    }
}

fn either(random: &mut Random, is_line: bool) -> LinkSpec {
    if is_line { line(random) } else { access() }
}

pub(super) fn access() -> LinkSpec {
    LinkSpec { rate: Some(1_000_000_000), delay: Some(Duration::from_micros(200)), ..LinkSpec::default() }
}

/// A line with faults, or a clean one.
fn line(random: &mut Random) -> LinkSpec {
    let queue = if random.chance(0.5) {
        QueueLimit::Packets(4 + random.below(200) as usize)
    } else {
        QueueLimit::Time(millis(random, 10, 300))
    };
    let clean = LinkSpec {
        rate: Some(rate(random)),
        delay: Some(millis(random, 1, 150)),
        queue: Some(queue),
        discipline: discipline(random),
        mark_above: random.chance(0.1).then(|| 2 + random.below(40) as usize),
        bleaches: random.chance(0.05),
        mtu: random.chance(0.1).then(|| (MIN_MTU + random.below(1_500 - MIN_MTU)) as usize),
        ..LinkSpec::default()
    };
    if random.chance(0.4) {
        return clean;
    }
    let partitions = if random.chance(0.25) {
        let from = seconds(random, 1, TROUBLE_END_SECONDS - 12);
        vec![(from, from + seconds(random, 0, 10) + Duration::from_millis(1))]
    } else {
        Vec::new()
    };
    LinkSpec {
        loss: sometimes(random, 0.4, 0.05),
        jitter: random.chance(0.4).then(|| millis(random, 0, 20)),
        corruption: sometimes(random, 0.2, 0.02),
        duplication: sometimes(random, 0.2, 0.05),
        reordering: sometimes(random, 0.25, 0.05).map(|share| (share, millis(random, 1, 50))),
        burst_loss: sometimes(random, 0.2, 0.05).map(|share| (share, 1.0 + random.unit() * 10.0)),
        partitions,
        ..clean
    }
}

fn discipline(random: &mut Random) -> Option<Discipline> {
    let (target, interval) = (Duration::from_millis(5), Duration::from_millis(100));
    match random.below(8) {
        0 => Some(Discipline::Red { min: 5.0, max: 25.0, max_p: 0.1, weight: 0.002, gentle: true }),
        1 => Some(Discipline::CoDel { target, interval }),
        2 => Some(Discipline::FqCodel { target, interval, quantum: 1_514, queues: 8 }),
        _ => None,
    }
}
