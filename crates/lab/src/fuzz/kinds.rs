//! Which kinds of world a random world belongs to. A test counts them, so that none is forgotten.

use super::world_facts::{exchanges, happenings};
use crate::setup::{Carrier, Changed, EndChange, PathChoice, Setup};
use std::collections::BTreeSet;

/// A feature or trouble that a random simulated network can have. One network may have several.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum WorldKind {
    /// A transfer has several paths on different lines.
    SeparateLines,
    /// Several paths share a slow line at either end.
    SharedBottleneck,
    /// UDP is dropped where hosts have TCP.
    TcpForUdp,
    /// UDP is dropped by size, or in part.
    UdpPoliced,
    /// A line's MTU shrinks.
    MtuShrinks,
    /// A process is restarted.
    EndRestarts,
    /// A host sleeps.
    EndSleeps,
    /// A host sleeps for an hour or more.
    EndSleepsLong,
    /// A host's address changes, or its NAT's port.
    EndMoves,
    /// A socket goes down and comes up.
    SocketFlaps,
    /// The sender has two uplinks.
    TwoUplinks,
    /// Several objects at once.
    ManyObjects,
    /// Parts are there from an earlier run.
    PartsPresent,
    /// Streams, some half closed before the answer.
    Streams,
    /// A stream is reset.
    StreamResets,
    /// Unreliable datagrams.
    Datagrams,
    /// Objects in both directions.
    BothDirections,
    /// The receiver's application reads slowly, or stops for a while.
    SlowReader,
    /// The sender's application writes at a rate.
    SourceRate,
    /// Live sources over TCP relays.
    LiveSources,
    /// A registry that is asked for relays.
    Registry,
    /// Relays on end hosts lend their lines.
    Lenders,
    /// A registry goes down.
    RegistryDies,
    /// Relay words expire.
    WordsExpire,
    /// A relay crashes.
    RelayCrashes,
    /// A clock drifts, jumps, or is wrong.
    OddClock,
    /// Machines are woken early.
    EarlyWakes,
    /// Lines mark with ECN.
    EcnMarks,
    /// Marks are cleared on the way.
    EcnBleached,
    /// Packets are forged and replayed.
    Attacked,
    /// A line changes more than once.
    SeveralChanges,
    /// A line becomes longer by 100 ms or more.
    LongerRoute,
    /// A line is dead for good.
    DeadLine,
}

impl WorldKind {
    /// All kinds, in the order of their declaration.
    pub const ALL: [Self; 33] = [
        Self::SeparateLines,
        Self::SharedBottleneck,
        Self::TcpForUdp,
        Self::UdpPoliced,
        Self::MtuShrinks,
        Self::EndRestarts,
        Self::EndSleeps,
        Self::EndSleepsLong,
        Self::EndMoves,
        Self::SocketFlaps,
        Self::TwoUplinks,
        Self::ManyObjects,
        Self::PartsPresent,
        Self::Streams,
        Self::StreamResets,
        Self::Datagrams,
        Self::BothDirections,
        Self::SlowReader,
        Self::SourceRate,
        Self::LiveSources,
        Self::Registry,
        Self::Lenders,
        Self::RegistryDies,
        Self::WordsExpire,
        Self::RelayCrashes,
        Self::OddClock,
        Self::EarlyWakes,
        Self::EcnMarks,
        Self::EcnBleached,
        Self::Attacked,
        Self::SeveralChanges,
        Self::LongerRoute,
        Self::DeadLine,
    ];

    /// The smallest share of random worlds that must be of this kind, 0 to 1.
    #[must_use]
    pub const fn least_share(self) -> f64 {
        match self {
            // Each costs much simulated time, or needs a rare network.
            Self::EndSleepsLong | Self::DeadLine => 0.005,
            Self::RegistryDies | Self::LiveSources => 0.03,
            _ => 0.05,
        }
    }

    /// The kinds to which this world belongs.
    #[must_use]
    pub fn of(setup: &Setup) -> BTreeSet<Self> {
        let mut found = BTreeSet::new();
        network(setup, &mut found);
        traffic(setup, &mut found);
        changes(setup, &mut found);
        found
    }
}

/// The rate in bits per second above which a line is no bottleneck of these worlds.
const MAX_BOTTLENECK_BPS: u64 = 100_000_000;

fn network(setup: &Setup, found: &mut BTreeSet<WorldKind>) {
    let is_slow = |a: &str, b: &str| {
        let link = setup.network.links.iter().find(|link| link.from == a && link.to == b);
        link.and_then(|link| link.spec.rate).is_some_and(|rate| rate < MAX_BOTTLENECK_BPS)
    };
    let relays = |path: &PathChoice| match path {
        PathChoice::Through(relay) => is_slow("A", relay),
        _ => false,
    };
    let several = setup.transfers.iter().filter(|transfer| transfer.paths.len() > 1);
    for transfer in several {
        if is_slow("S", "A") || is_slow("B", "D") {
            found.insert(WorldKind::SharedBottleneck);
        } else if transfer.paths.iter().any(relays) {
            found.insert(WorldKind::SeparateLines);
        }
    }
    for link in &setup.network.links {
        if link.spec.mark_above.is_some() {
            found.insert(WorldKind::EcnMarks);
        }
        if link.spec.bleaches {
            found.insert(WorldKind::EcnBleached);
        }
    }
    if setup.early_wakes > 0.0 {
        found.insert(WorldKind::EarlyWakes);
    }
    if setup.attack.forged > 0.0 {
        found.insert(WorldKind::Attacked);
    }
    if let Some(registry) = &setup.registry {
        found.insert(WorldKind::Registry);
        if registry.lend.is_some() {
            found.insert(WorldKind::Lenders);
        }
    }
}

fn traffic(setup: &Setup, found: &mut BTreeSet<WorldKind>) {
    if setup.transfers.iter().any(|transfer| matches!(transfer.carrier, Carrier::TcpRelays(_))) {
        found.insert(WorldKind::LiveSources);
    }
    for (name, options) in exchanges(setup) {
        let clocks = [options.sender_clock, options.receiver_clock];
        let stops = happenings(setup, name).any(|(_, _, what)| what == EndChange::Reads(false));
        let kinds = [
            (!options.uplinks.is_empty(), WorldKind::TwoUplinks),
            (options.objects.len() > 1, WorldKind::ManyObjects),
            (options.objects_present > 0, WorldKind::PartsPresent),
            (!options.streams.is_empty(), WorldKind::Streams),
            (options.streams.iter().any(|it| it.reset_after.is_some()), WorldKind::StreamResets),
            (options.datagrams > 0, WorldKind::Datagrams),
            (!options.objects_back.is_empty(), WorldKind::BothDirections),
            (options.reads.is_some() || stops, WorldKind::SlowReader),
            (options.writes.is_some(), WorldKind::SourceRate),
            (options.words_hold.is_some(), WorldKind::WordsExpire),
            (clocks.iter().any(|clock| *clock != Default::default()), WorldKind::OddClock),
        ];
        found.extend(kinds.into_iter().filter(|kind| kind.0).map(|kind| kind.1));
    }
}

fn changes(setup: &Setup, found: &mut BTreeSet<WorldKind>) {
    let has_tcp = exchanges(setup).any(|(_, options)| options.tcp);
    let mut changed = BTreeSet::new();
    for change in &setup.changes {
        let kind = match &change.what {
            Changed::Link { from, to, delay, up, mtu, .. } => {
                if !changed.insert((from, to)) {
                    found.insert(WorldKind::SeveralChanges);
                }
                if delay.is_some_and(|delay| delay.as_millis() >= 100) {
                    found.insert(WorldKind::LongerRoute);
                }
                if mtu.is_some() {
                    found.insert(WorldKind::MtuShrinks);
                }
                let comes_back = |later: &&crate::setup::Change| {
                    let same = |what: &Changed| matches!(what, Changed::Link { from: a, to: b, up: Some(true), .. } if a == from && b == to);
                    later.at >= change.at && same(&later.what)
                };
                if *up == Some(false) && setup.changes.iter().find(comes_back).is_none() {
                    found.insert(WorldKind::DeadLine);
                }
                continue;
            }
            Changed::Udp { filter: Some(filter), .. } if has_tcp => {
                if filter.above > 0 || filter.share < 1.0 {
                    found.insert(WorldKind::UdpPoliced);
                }
                WorldKind::TcpForUdp
            }
            Changed::Udp { .. } => continue,
            Changed::Relay { .. } => WorldKind::RelayCrashes,
            Changed::Registry { .. } => WorldKind::RegistryDies,
            Changed::End { transfer, end, what } => match what {
                EndChange::Restart => WorldKind::EndRestarts,
                EndChange::Freeze(true) => {
                    let wakes = happenings(setup, transfer).find(|(at, other, next)| {
                        *at > change.at && other == end && *next == EndChange::Freeze(false)
                    });
                    if wakes.is_some_and(|(at, ..)| at > change.at + byway_wire::Duration::from_secs(60)) {
                        found.insert(WorldKind::EndSleepsLong);
                    }
                    WorldKind::EndSleeps
                }
                EndChange::Rebind | EndChange::NatFilter(_) | EndChange::Move => WorldKind::EndMoves,
                EndChange::Socket { .. } => WorldKind::SocketFlaps,
                EndChange::Freeze(false) | EndChange::Reads(_) | EndChange::Reset => continue,
            },
        };
        found.insert(kind);
    }
}
