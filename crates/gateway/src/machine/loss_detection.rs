//! Finds lost packets by the loss rules `AllPassed` (paper: Harp) and `Batched` (paper: HIR). With
//! the rule `PathNumbers`, the connection to the peer reports losses here, and the
//! [cache](crate::cache) sends them again. When a path falls silent or closes, all its packets in
//! flight count as lost.

use crate::encap::{Label, Message};
use crate::flow_table::FlowId;
use crate::loss::{BatchMap, LossRule, LossRuleKind, SentPacket};
use alloc::boxed::Box;
use alloc::collections::{BTreeMap, BTreeSet};
use alloc::vec::Vec;
use byway_engine::connection::datagrams::DatagramResult;
use byway_wire::{Duration, Instant, PathId, Writer};

/// Number of later packets of a path that report a packet as missing before it is lost, because
/// paths reorder. It is `kPacketThreshold` (RFC 9002, section 6.1.1).
const REORDER_PACKETS: u32 = 3;
/// The most packets of a flow in flight that are remembered.
const MAX_UNDER_WAY: usize = 1 << 14;
/// Number of packets believed lost that are remembered, to find those that arrive late.
const MAX_REMEMBERED: usize = 4_096;
/// The bit of a mark for a datagram with a flow's packet. The other bits hold the label, and the
/// packet's place under it.
const MARK_BIT: u64 = 1 << 63;
/// The number of bits of a mark that hold the packet's place under its label.
const PLACE_BITS: u32 = 39;

/// A packet that is lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Lost {
    pub label: Label,
    pub sequence: u32,
    pub flow: FlowId,
    pub path: PathId,
    pub sent_at: Instant,
    pub bytes: u64,
    /// Whether the gateway must report the loss to the controller. The session reports losses that
    /// it finds itself.
    pub tell: bool,
}

#[derive(Clone, Copy, Debug)]
struct InFlight {
    packet: SentPacket,
    sequence: u32,
    sent_at: Instant,
    bytes: u64,
}

#[derive(Debug)]
struct FlowInFlight {
    id: FlowId,
    /// The packets in flight by place. Each packet sent has its own place, even if it repeats an
    /// old sequence number.
    under_way: BTreeMap<u64, InFlight>,
    places: BTreeMap<u32, u64>,
    next: u64,
    rule: Option<Box<dyn LossRule>>,
    maps: BatchMap,
}

impl FlowInFlight {
    fn take(&mut self, place: u64) -> Option<InFlight> {
        let flight = self.under_way.remove(&place)?;
        if self.places.get(&flight.sequence) == Some(&place) {
            self.places.remove(&flight.sequence);
        }
        Some(flight)
    }
}

/// Finds the lost packets of one tunnel.
#[derive(Debug)]
pub(super) struct LossDetector {
    rule: LossRuleKind,
    flows: BTreeMap<Label, FlowInFlight>,
    /// Paths with packets in flight, and whether each is silent.
    paths: BTreeMap<PathId, bool>,
    /// Marks of packets that were taken for lost.
    given_up: BTreeSet<u64>,
    spurious: u64,
    found: Vec<SentPacket>,
}

impl LossDetector {
    /// The detection for a flow that has sent nothing yet.
    pub const fn new(rule: LossRuleKind) -> Self {
        Self {
            rule,
            flows: BTreeMap::new(),
            paths: BTreeMap::new(),
            given_up: BTreeSet::new(),
            spurious: 0,
            found: Vec::new(),
        }
    }

    /// Packets held for lost that arrived.
    pub const fn spurious(&self) -> u64 {
        self.spurious
    }

    /// The flow of a label.
    pub fn begin(&mut self, label: Label, id: FlowId) {
        let rule = (self.rule == LossRuleKind::AllPassed).then(|| self.rule.make(REORDER_PACKETS));
        self.flows.entry(label).or_insert_with(|| FlowInFlight {
            id,
            under_way: BTreeMap::new(),
            places: BTreeMap::new(),
            next: 0,
            rule,
            maps: BatchMap::new(),
        });
    }

    /// Notes a datagram that a path accepted, and writes its map. Returns the mark under which its
    /// fate is reported.
    pub fn on_sent(&mut self, now: Instant, path: PathId, datagram: &mut [u8]) -> u64 {
        let (label, sequence, maps) = match Message::read(datagram) {
            Ok(Message::Ordered { label, sequence, .. }) => (label, sequence, false),
            Ok(Message::Batched { label, sequence, .. }) => (label, sequence, true),
            _ => return 0,
        };
        let Some(flow) = self.flows.get_mut(&label) else { return 0 };
        let place = flow.next;
        flow.next += 1;
        if maps {
            let map = flow.maps.next(path, u64::from(sequence));
            // The packet stays where it is.
            Message::Batched { label, sequence, map, packet: &[] }.write_header(&mut Writer::new(datagram));
        }
        let packet = SentPacket { path, number: place, start: place, end: place + 1 };
        if let Some(rule) = &mut flow.rule {
            rule.on_sent(packet);
        }
        flow.under_way
            .insert(place, InFlight { packet, sequence, sent_at: now, bytes: datagram.len() as u64 });
        flow.places.insert(sequence, place);
        if flow.under_way.len() > MAX_UNDER_WAY
            && let Some((&oldest, _)) = flow.under_way.first_key_value()
            && let (Some(gone), Some(rule)) = (flow.take(oldest), &mut flow.rule)
        {
            rule.withdraw(gone.packet);
        }
        self.paths.entry(path).or_insert(false);
        MARK_BIT | u64::from(label.number()) << PLACE_BITS | place & ((1 << PLACE_BITS) - 1)
    }

    /// Forgets a datagram that its path refused or returned.
    pub fn withdraw(&mut self, mark: u64) {
        let Some((_, flow, place)) = named(&mut self.flows, mark) else { return };
        if let Some(flight) = flow.take(place)
            && let Some(rule) = &mut flow.rule
        {
            rule.withdraw(flight.packet);
        }
    }

    /// Handles the result of a datagram that the session reports.
    pub fn on_fate(&mut self, fate: DatagramResult, lost: &mut Vec<Lost>) {
        let Self { rule, flows, given_up, found, spurious, .. } = self;
        let Some((label, flow, place)) = named(flows, fate.mark) else { return };
        if !fate.arrived {
            if *rule == LossRuleKind::PathNumbers
                && let Some(flight) = flow.take(place)
            {
                give_up(given_up, fate.mark);
                lost.push(of(label, flow.id, &flight, false));
            }
            return;
        }
        let Some(flight) = flow.take(place) else {
            *spurious += u64::from(given_up.remove(&fate.mark));
            return;
        };
        let Some(rule) = &mut flow.rule else { return };
        found.clear();
        rule.on_arrived(flight.packet, found);
        for packet in found.iter() {
            if let Some(flight) = flow.take(packet.start) {
                give_up(given_up, MARK_BIT | u64::from(label.number()) << PLACE_BITS | packet.start);
                lost.push(of(label, flow.id, &flight, true));
            }
        }
    }

    /// Handles the peer's report of missing packets of `label`, from `first` to before `end`. It
    /// cannot concern packets sent less than `least` ago.
    pub fn on_reported(
        &mut self,
        now: Instant,
        (label, first, end): (Label, u32, u32),
        least: Duration,
        lost: &mut Vec<Lost>,
    ) {
        let Some(flow) = self.flows.get_mut(&label).filter(|_| self.rule == LossRuleKind::Batched) else {
            return;
        };
        let within = |sequence: u32| sequence.wrapping_sub(first) < end.wrapping_sub(first);
        let named = flow.places.range(first..).chain(flow.places.range(..first));
        let places: Vec<u64> =
            named.take_while(|(sequence, _)| within(**sequence)).map(|(_, place)| *place).collect();
        for place in places {
            if flow.under_way.get(&place).is_none_or(|flight| now.since(flight.sent_at) < least) {
                continue;
            }
            if let Some(flight) = flow.take(place) {
                give_up(&mut self.given_up, MARK_BIT | u64::from(label.number()) << PLACE_BITS | place);
                lost.push(of(label, flow.id, &flight, true));
            }
        }
    }

    /// Updates the state of the paths. `is_silent` returns whether a path is silent, and `None` if
    /// the path does not exist any more. When a path falls silent or ceases to exist, its packets
    /// in flight are added to `lost`.
    pub fn on_paths(&mut self, is_silent: impl Fn(PathId) -> Option<bool>, lost: &mut Vec<Lost>) {
        let Self { flows, given_up, paths: known, .. } = self;
        known.retain(|path, was_silent| {
            let silent = is_silent(*path);
            let fell = !*was_silent && silent != Some(false);
            *was_silent = silent == Some(true);
            if fell {
                for (label, flow) in flows.iter_mut() {
                    if let Some(rule) = &mut flow.rule {
                        rule.close(*path);
                    }
                    flow.maps.close(*path);
                    let on_it = flow.under_way.iter().filter(|(_, flight)| flight.packet.path == *path);
                    let places: Vec<u64> = on_it.map(|(place, _)| *place).collect();
                    for place in places {
                        if let Some(flight) = flow.take(place) {
                            give_up(given_up, MARK_BIT | u64::from(label.number()) << PLACE_BITS | place);
                            lost.push(of(*label, flow.id, &flight, false));
                        }
                    }
                }
            }
            silent.is_some()
        });
    }

    /// A flow is no more.
    pub fn forget(&mut self, label: Label) {
        self.flows.remove(&label);
    }

    /// Forgets all packets, because the session has ended.
    pub fn clear(&mut self) {
        self.flows.clear();
        self.paths.clear();
        self.given_up.clear();
    }
}

/// The label, the flow and the sequence number that a mark encodes.
fn named(flows: &mut BTreeMap<Label, FlowInFlight>, mark: u64) -> Option<(Label, &mut FlowInFlight, u64)> {
    let label = Label::new((mark >> PLACE_BITS) as u32);
    let flow = flows.get_mut(&label).filter(|_| mark & MARK_BIT != 0)?;
    Some((label, flow, mark & ((1 << PLACE_BITS) - 1)))
}

fn give_up(given_up: &mut BTreeSet<u64>, mark: u64) {
    given_up.insert(mark);
    while given_up.len() > MAX_REMEMBERED {
        given_up.pop_first();
    }
}

const fn of(label: Label, flow: FlowId, flight: &InFlight, tell: bool) -> Lost {
    let InFlight { packet: SentPacket { path, .. }, sequence, sent_at, bytes } = *flight;
    Lost { label, sequence, flow, path, sent_at, bytes, tell }
}
