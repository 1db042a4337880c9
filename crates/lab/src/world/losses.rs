//! How soon each of three rules finds what gateways lost: all see the same packets, and judge at the exit.
//!
//! The rules themselves are `byway_gateway::loss`; what happens in the world does not depend on them. The sealed part of packets
//! can be read here, for the simulator's gateways use the null cipher.

use crate::record::FindingRecord;
use byway_gateway::loss::{LossRule, Packet, Rule};
use byway_gateway::{Label, Message};
use byway_wire::frame::{Frame, Frames};
use byway_wire::packet::{HEADER_LEN, Header, STAMP_LEN, TAG_LEN};
use byway_wire::relay::{Delivered, Forward};
use byway_wire::{Instant, PathId};
use std::collections::BTreeMap;

/// The rules, and what a plan's measures call them.
const RULES: [(&str, Rule); 3] =
    [("all-passed", Rule::AllPassed), ("batched", Rule::Batched), ("path-numbers", Rule::PathNumbers)];
/// Later packets of a path that make an earlier one lost: lines of the simulator keep the order unless they are told otherwise.
const LATER: u32 = 1;

/// The flows of one direction.
#[derive(Debug, Default)]
pub(super) struct Finding {
    /// Paths by the names that the exit gave to them, numbered as they were first used, and the next number on each.
    paths: BTreeMap<[u8; 8], (PathId, u64)>,
    flows: BTreeMap<Label, Flow>,
    found: [FindingRecord; 3],
}

/// What the rules know of a flow.
#[derive(Debug)]
struct Flow {
    rules: [Box<dyn LossRule>; 3],
    /// What did not arrive, by its number among all of the flow, and when it was sent; and its number by its place.
    sent: BTreeMap<u64, (Packet, Instant)>,
    numbers: BTreeMap<u32, u64>,
    next: u64,
    lost: Vec<Packet>,
}

impl Flow {
    fn new() -> Self {
        let rules = RULES.map(|(_, rule)| rule.make(LATER));
        Self { rules, sent: BTreeMap::new(), numbers: BTreeMap::new(), next: 0, lost: Vec::new() }
    }
}

impl Finding {
    /// The entry sends a packet.
    pub(super) fn sent(&mut self, now: Instant, packet: &[u8]) {
        let inner = Forward::read(packet).ok().and_then(|envelope| packet.get(envelope.inner..));
        let Some((header, label, sequence)) = read(inner.unwrap_or(packet)) else { return };
        let number = self.paths.len() as u32;
        let (path, numbered) = self.paths.entry(header.connection.0).or_insert((PathId(number), 0));
        let flow = self.flows.entry(label).or_insert_with(Flow::new);
        let sent = Packet { path: *path, number: *numbered, start: flow.next, end: flow.next + 1 };
        *numbered += 1;
        flow.next += 1;
        flow.numbers.insert(sequence, sent.start);
        flow.sent.insert(sent.start, (sent, now));
        flow.rules.iter_mut().for_each(|rule| rule.on_sent(sent));
    }

    /// A packet comes to the exit.
    pub(super) fn arrived(&mut self, now: Instant, packet: &[u8]) {
        let inner = Delivered::read(packet).ok().and_then(|envelope| packet.get(envelope.inner..));
        let Some((_, label, sequence)) = read(inner.unwrap_or(packet)) else { return };
        let Some(flow) = self.flows.get_mut(&label) else { return };
        let number = flow.numbers.remove(&sequence);
        let Some((arrived, _)) = number.and_then(|number| flow.sent.remove(&number)) else { return };
        for (rule, found) in flow.rules.iter_mut().zip(&mut self.found) {
            flow.lost.clear();
            rule.on_arrived(arrived, &mut flow.lost);
            for lost in &flow.lost {
                let at = flow.sent.get(&lost.start).map(|(_, at)| *at);
                found.after.extend(at.map(|at| (now.since(at).as_secs_f64() * 1e3) as f32));
            }
        }
    }

    /// What each rule found.
    pub(super) fn records(&self) -> Vec<FindingRecord> {
        let named = |((name, _), found): (&(&str, Rule), &FindingRecord)| FindingRecord {
            rule: (*name).to_owned(),
            ..found.clone()
        };
        RULES.iter().zip(&self.found).map(named).collect()
    }
}

/// The header of a packet with a packet of a flow in it, and which that is.
fn read(packet: &[u8]) -> Option<(Header, Label, u32)> {
    let header = Header::read(packet).ok()?;
    let sealed = packet.get(HEADER_LEN + STAMP_LEN..packet.len().checked_sub(TAG_LEN)?)?;
    Frames::new(sealed).map_while(Result::ok).find_map(|frame| match frame {
        Frame::Datagram(data) => match Message::read(data).ok()? {
            Message::Ordered { label, sequence, .. } | Message::Batched { label, sequence, .. } => {
                Some((header, label, sequence))
            }
            _ => None,
        },
        _ => None,
    })
}
