//! Headers between gateways travel short where both understand that: the last step at the entry, and the first at the exit. All else is
//! about whole packets.

use super::carry::{Carriage, Next};
use super::peers::Peer;
use super::{By, Counters, Gateway, Parcel};
use crate::compact::{Form, Generation, MOST_SHORT, Template, Turn, mark};
use crate::encap::{COMPACT, Label, Message, ORDERED_LEN};
use crate::flow::{FlowId, FlowTable};
use crate::loss::Rule;
use alloc::vec::Vec;
use byway_wire::{Duration, Instant, Writer};

/// What gateways tell each other and packets that go once more, waiting for a path, at most; beyond it nothing is told.
const MOST_TOLD: usize = 1_024;
/// Of templates that are not known here a peer hears no more often than this.
const COMPLAIN_EVERY: Duration = Duration::from_millis(5);

impl Next {
    /// The datagram of the packet, with short headers if `short` allows it.
    pub(super) fn into_datagram(
        mut self,
        now: Instant,
        rule: Rule,
        (peer, rtt): (&mut Peer, Duration),
        flows: &mut FlowTable<Carriage>,
        short: bool,
        counters: &mut Counters,
    ) -> Vec<u8> {
        let exit = (peer.begun, rtt);
        let flow = flows.get_mut(self.waiting.flow).filter(|_| short && peer.speaks);
        let mut headers = [0; MOST_SHORT];
        let mut writer = Writer::new(&mut headers);
        let parcel = &mut self.waiting.parcel;
        let turn = flow.map(|flow| flow.data.teaching.turn(now, exit, parcel.packet(), &mut writer));
        match (turn, self.sequence) {
            (Some(Turn::Short(payload)), sequence) => {
                counters.short += 1;
                counters.short_saved += payload.saturating_sub(writer.len()) as u64;
                self.waiting.parcel.short(rule, self.label, sequence, writer.written(), payload)
            }
            (Some(Turn::Example(generation)), sequence) => {
                counters.examples += 1;
                peer.labels.insert(self.label, self.waiting.flow);
                mark(parcel.packet_mut(), generation);
                match sequence {
                    Some(sequence) => self.waiting.parcel.in_place(rule, self.label, sequence),
                    None => self.waiting.parcel.labelled(self.label),
                }
            }
            (_, Some(sequence)) => self.waiting.parcel.in_place(rule, self.label, sequence),
            (_, None) => self.waiting.parcel.unordered(),
        }
    }
}

/// The packet that a datagram to a peer carries, as its host sent it; `None` if it carries none.
pub(super) fn recover(datagram: Vec<u8>, peer: &Peer, flows: &FlowTable<Carriage>) -> Option<Parcel> {
    let (label, packet) = match Message::read(&datagram).ok()? {
        Message::Ordered { label, packet, .. }
        | Message::Batched { label, packet, .. }
        | Message::Labelled { label, packet } => (Some(label), packet),
        Message::Unordered { packet } => (None, packet),
        _ => return None,
    };
    match Form::of(packet) {
        Form::Whole => Some(Parcel::copy(Vec::new(), packet)),
        Form::Example(_, first) => {
            let mut parcel = Parcel::copy(Vec::new(), packet);
            *parcel.packet_mut().first_mut()? = first;
            Some(parcel)
        }
        Form::Short(generation) => {
            let flow = flows.get(*peer.labels.get(&label?)?)?;
            let mut buffer = Parcel::copy(Vec::new(), &[]).into_buffer();
            flow.data.teaching.recover(generation, packet, &mut buffer).then(|| Parcel::new(buffer))
        }
    }
}

impl Gateway {
    /// The packet that stands `header` bytes into a datagram, and which example it is, if it is one. `None` if there is none.
    pub(super) fn unpack(
        &mut self,
        now: Instant,
        by: By,
        label: Option<Label>,
        header: usize,
        mut data: Vec<u8>,
    ) -> Option<(Parcel, Option<Generation>)> {
        let form = label.map_or(Form::Whole, |_| Form::of(data.get(header..).unwrap_or_default()));
        if let (Form::Short(generation), Some(label)) = (form, label) {
            let mut buffer = Parcel::copy(self.buffer(), &[]).into_buffer();
            let short = data.get(header..).unwrap_or_default();
            let known = self.learned.get(&(by.peer, label)).and_then(|slots| slots.get(generation));
            let expanded = known.map(|template| template.expand(short, &mut buffer));
            self.give_back(by.session, data);
            if let Some(Ok(())) = expanded {
                return Some((Parcel::new(buffer), None));
            }
            self.recycle(buffer);
            if expanded.is_some() {
                self.counters.malformed += 1;
            } else {
                self.counters.unknown += 1;
                self.complain(now, by, label, generation);
            }
            return None;
        }
        if header != ORDERED_LEN {
            let copy = Parcel::copy(self.buffer(), data.get(header..).unwrap_or_default()).into_buffer();
            self.recycle(core::mem::replace(&mut data, copy));
        }
        let mut parcel = Parcel::new(data);
        let Form::Example(generation, first) = form else { return Some((parcel, None)) };
        parcel.packet_mut().first_mut().into_iter().for_each(|byte| *byte = first);
        Some((parcel, Some(generation)))
    }

    /// Remembers an example of a flow that is carried here, and says so.
    pub(super) fn learn(
        &mut self,
        by: By,
        (label, generation): (Label, Generation),
        id: FlowId,
        packet: &[u8],
    ) {
        let Some(flow) = self.flows.get_mut(id).filter(|flow| flow.data.peer == by.peer) else { return };
        let Some(template) = Template::of(packet).filter(|_| self.settings.compact) else { return };
        // One label per flow, so that there are no more templates than flows.
        if let Some(before) = flow.data.incoming.replace(label).filter(|before| *before != label) {
            self.learned.remove(&(by.peer, before));
        }
        let proof = template.proof();
        self.learned.entry((by.peer, label)).or_default().put(generation, template);
        self.tell(by.tunnel, &Message::Known { label, generation, proof });
    }

    fn complain(&mut self, now: Instant, by: By, label: Label, generation: Generation) {
        let Some(peer) = self.peers.get_mut(by.peer) else { return };
        if peer.complained.is_none_or(|last| now.since(last) >= COMPLAIN_EVERY) {
            peer.complained = Some(now);
            self.tell(by.tunnel, &Message::Unknown { label, generation });
        }
    }

    fn tell(&mut self, index: usize, message: &Message<'_>) {
        let Some(tunnel) = self.tunnels.get_mut(index).filter(|tunnel| tunnel.returned.len() < MOST_TOLD)
        else {
            return;
        };
        let mut buffer = [0; 16];
        let mut writer = Writer::new(&mut buffer);
        message.write(&mut writer);
        tunnel.returned.push_back(writer.written().to_vec());
        self.note_waiting(index);
    }

    /// What a peer says about short headers.
    pub(super) fn on_told(&mut self, index: usize, message: &Message<'_>) {
        let Self { peers, flows, settings, .. } = self;
        let Some(peer) = peers.get_mut(index) else { return };
        let (label, generation, proof) = match *message {
            Message::Speaks { features } => {
                let understood = features.first().is_some_and(|features| features & COMPACT != 0);
                peer.speaks = understood && settings.compact;
                return;
            }
            Message::Known { label, generation, proof } => (label, generation, Some(proof)),
            Message::Unknown { label, generation } => (label, generation, None),
            _ => return,
        };
        let Some(flow) = peer.labels.get(&label).and_then(|id| flows.get_mut(*id)) else { return };
        match proof {
            Some(proof) => flow.data.teaching.on_known(generation, proof),
            None => flow.data.teaching.on_unknown(generation),
        }
    }
}
