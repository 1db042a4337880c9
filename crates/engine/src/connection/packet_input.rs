//! Takes packets apart. It opens them, reads their frames, and tells path, controller and data
//! layer what they say.

use super::loss_response::{Evidence, LossOutcome, judge};
use super::path::{Path, PathState};
use super::{Connection, Event, Inbound, Rejected, RelayEvent, close};
use crate::config::Payload;
use crate::data::{DataId, ProtocolError};
use crate::invariant::Invariant as _;
use crate::path::receive::PacketArrival;
use crate::path::send::NewlyAcked;
use crate::seal::OpenError;
use byway_control::{Congested, Controller, ProbeResult, Trigger, Undo};
use byway_wire::frame::ack::{AckEntries, AckEntry};
use byway_wire::frame::{Frame, Frames, Ranges};
use byway_wire::packet::{HEADER_LEN, Header, STAMP_LEN, restore_number};
use byway_wire::{Duration, Instant, PathId};

/// The most PATH_CHALLENGEs of one path that wait to be answered.
const MAX_RESPONSES: usize = 2;

/// The packet in which a frame arrived.
#[derive(Clone, Copy, Debug)]
struct PacketInfo {
    /// The path of the peer's that the packet came on.
    on: PathId,
    /// When the packet arrived.
    at: Instant,
    /// The peer's timestamp of the packet.
    stamp: u32,
}

impl Connection {
    /// Handles a received packet.
    pub(crate) fn on_packet(&mut self, now: Instant, mut inbound: Inbound<'_>) -> Result<(), Rejected> {
        let taken = self.take(now, &mut inbound);
        self.settle(now);
        taken
    }

    #[inline]
    fn take(&mut self, now: Instant, inbound: &mut Inbound<'_>) -> Result<(), Rejected> {
        let Inbound { path: id, source, ecn, at, bytes, ref mut packet, phantom } = *inbound;
        let header = Header::read(packet).map_err(|_| Rejected::Malformed)?;
        let known = self.peer_paths.get(id);
        if known.is_none() && !self.peer_paths.may_begin(id) {
            return Err(Rejected::Unexpected);
        }
        let number = restore_number(known.map_or(0, |receiving| receiving.facts.expected()), header.number);
        if known.is_some_and(|receiving| !receiving.replay.check(number)) {
            return Err(Rejected::Replayed);
        }
        let plain = match self.opener.open(now, id, number, header.epoch, packet, HEADER_LEN) {
            Ok(plain) => plain,
            Err(OpenError::Exhausted) => {
                self.close_at(now, close::WORN_OUT_CODE, "too many forged packets");
                return Err(Rejected::Forged);
            }
            Err(_) => return Err(Rejected::Forged),
        };
        // From here on the packet is the peer's.
        self.session.answer_close();
        if self.session.is_closed() {
            return Ok(());
        }
        let first = self.session.on_heard(now);
        if first {
            self.pending_events.raise(Event::Confirmed);
        }
        let Some((stamp, frames)) = plain.split_first_chunk::<STAMP_LEN>() else {
            return Err(Rejected::Malformed);
        };
        let stamp = u32::from_be_bytes(*stamp);
        self.enter(now, id, &source);
        let came = PacketInfo { on: id, at, stamp };
        let (mut eliciting, mut asked, mut is_asked_sooner) = (false, false, false);
        let frames = match self.config.payload {
            Payload::Bytes => Frames::new(frames),
            Payload::Length => Frames::with_phantom(frames, phantom),
        };
        for frame in frames {
            let Ok(frame) = frame else {
                self.close_at(now, close::MALFORMED_CODE, "a packet could not be understood");
                return Ok(());
            };
            eliciting |= frame.is_eliciting();
            asked |= matches!(frame, Frame::Ping);
            if matches!(frame, Frame::Stream(_) | Frame::Object(_) | Frame::Datagram(_)) {
                self.acks.on_data();
                is_asked_sooner |= self.session.on_data();
            }
            if let Err(error) = self.on_frame(now, came, frame) {
                self.close_at(now, close::DATA_CODE_OFFSET + error.code, error.reason);
                return Ok(());
            }
        }
        let Some(receiving) = self.peer_paths.get_mut(id) else { return Ok(()) };
        receiving.replay.accept(number);
        let newest = receiving.facts.on_packet(&PacketArrival { number, at, stamp, bytes, ecn, eliciting });
        if asked {
            receiving.facts.ack_at_once(at);
        }
        if receiving.settled != Some(self.paths.routes()) || !receiving.source.is_alike(&source) {
            let moved = newest && receiving.source != source;
            if moved {
                self.source_changed(now, id, source);
            }
            self.credit_way(now, id, &source, bytes);
        }
        let Self { acks, peer_paths, scheduler, contents, paths, .. } = self;
        if asked {
            acks.on_asked(id, paths);
        }
        if let Some(receiving) = peer_paths.get_mut(id).sure() {
            acks.queue(now, receiving, scheduler);
        }
        // Nothing else that a packet brings makes the connection as a whole due earlier than it
        // was.
        if first || asked || is_asked_sooner {
            scheduler.reconsider();
        } else if eliciting && contents.incoming().snack_deadline(Duration::ZERO).is_some() {
            let at = acks.snacks().deadline(now, peer_paths, contents.incoming());
            scheduler.arm_whole(now, at);
        }
        Ok(())
    }

    fn on_frame(&mut self, now: Instant, came: PacketInfo, frame: Frame<'_>) -> Result<(), ProtocolError> {
        let PacketInfo { on, at, stamp } = came;
        match frame {
            Frame::Padding | Frame::Ping => {}
            Frame::Ack(entries) => self.on_ack(now, on, &entries),
            Frame::Pnack { path, missing } => self.on_pnack(now, path, &missing),
            Frame::SnackStream { id, missing } => self.on_snack(DataId::Stream(id), &missing),
            Frame::SnackObject { id, missing } => self.on_snack(DataId::Object(id), &missing),
            Frame::Stream(stream) => self.contents.incoming().on_stream(now, &stream)?,
            Frame::Object(object) => self.contents.incoming().on_object(now, &object)?,
            Frame::Datagram(data) => self.contents.datagrams().on_received(on, at, stamp, data),
            Frame::MaxStreams(limit) => self.contents.out().on_max_streams(limit),
            Frame::MaxData(limit) => self.contents.out().on_max_data(limit),
            Frame::MaxStreamData { id, limit } => self.contents.out().on_max_stream_data(id, limit),
            Frame::ResetStream { id, code } => self.contents.incoming().on_reset_stream(id, code)?,
            Frame::StopSending { id, code } => self.contents.out().on_stop_sending(id, code),
            Frame::Close { code, reason } => self.on_close(now, code, reason),
            Frame::PathChallenge(challenge) => {
                if let Some(way) = self.peer_paths.get(on).and_then(|receiving| receiving.way)
                    && let Some(path) = self.paths.edit(way)
                    && path.pending.responses.len() < MAX_RESPONSES
                {
                    path.pending.responses.push(challenge);
                }
            }
            Frame::PathResponse(challenge) => self.on_path_response(now, challenge),
            Frame::PathDropped(path) => self.on_path_dropped(now, path),
            Frame::PathHint(hint) => {
                if let Some(receiving) = self.peer_paths.get_mut(hint.path) {
                    receiving.facts.on_hint(hint);
                }
            }
            Frame::RelayOffer(offer) => self.pending_events.tell(RelayEvent::Offered(offer)),
            Frame::RelayConsent(consent) => self.pending_events.tell(RelayEvent::Consented {
                offer: consent.offer,
                address: consent.address,
                consent: consent.consent.to_vec(),
            }),
            Frame::RelayRefused(offer) => self.pending_events.tell(RelayEvent::Refused(offer)),
            Frame::Addresses(list) => self.pending_events.tell(RelayEvent::Addresses {
                is_answer: list.is_answer,
                token: list.token,
                addresses: list.addresses().collect(),
            }),
        }
        Ok(())
    }

    fn on_ack(&mut self, now: Instant, way: PathId, entries: &AckEntries<'_>) {
        for entry in entries.iter() {
            if !self.on_ack_entry(now, way, &entry) {
                self.close_at(now, close::VIOLATION_CODE, "an ACK of what was never sent");
                return;
            }
        }
        self.scheduler.consult();
        self.settle(now);
        self.end_standstill(now);
    }

    /// Returns `false` if the entry is a lie.
    fn on_ack_entry(&mut self, now: Instant, way: PathId, entry: &AckEntry<'_>) -> bool {
        let Self { paths, contents, controller, config, .. } = self;
        let id = entry.path;
        let Some(path) = paths.judge(id) else { return id < paths.next_id() };
        let delays = controller.empty_delays();
        let (probe, silent) = (path.probe, path.send.timeouts() > 0);
        let Some(progress) = path.send.on_ack(now, entry, way, delays, |carried| contents.arrived(carried))
        else {
            return false;
        };
        if let Some(latest) = progress.latest {
            contents.farewells().on_known(id);
            if path.state == PathState::Active {
                controller.tell_progress(now, path, &progress, latest);
            }
            if probe.is_some_and(|number| number <= entry.largest) && path.state == PathState::Choked {
                path.probe = None;
                let delay = controller.last_delay();
                controller.on_probe(id, &ProbeResult { now, delay, rtt: progress.rtt });
            }
        }
        // Each by itself: a controller takes a decrease back when all that it was told of has
        // turned up.
        for sent_at in progress.undone.iter().copied().filter(|_| !config.owner_judges_losses) {
            controller.on_undo(id, &Undo { now, sent_at });
        }
        let marked = progress.ce > 0;
        if marked {
            tell_marks(now, path, &progress, controller);
        }
        let outcome = judge(now, path, Evidence::Holes, contents, controller, config);
        let works = progress.packets > 0 && path.state == PathState::Probing;
        if marked || outcome == LossOutcome::Told {
            paths.judge_all();
        }
        if works {
            self.proven(now, id);
        } else if silent {
            paths.ways_changed();
        }
        true
    }

    fn on_pnack(&mut self, now: Instant, id: PathId, missing: &Ranges<'_>) {
        let Self { paths, contents, controller, config, .. } = self;
        let Some(path) = paths.quietly(id) else { return };
        let outcome = judge(now, path, Evidence::Missing(missing), contents, controller, config);
        if outcome != LossOutcome::Nothing {
            paths.judge(id);
        }
        if outcome == LossOutcome::Told {
            paths.judge_all();
        }
        self.settle(now);
    }

    fn on_snack(&mut self, what: DataId, missing: &Ranges<'_>) {
        for (start, end) in missing.iter() {
            self.contents.out().missing(what, start, end);
        }
    }
}

/// Reports CE marks to the controller.
fn tell_marks(now: Instant, path: &Path, progress: &NewlyAcked, controller: &mut dyn Controller) {
    let in_flight = path.send.in_flight;
    let sent_at = progress.latest.map_or(now, |(sent_at, _)| sent_at);
    let bytes = u64::from(progress.ce) * path.send.mtu.current() as u64;
    let marks = Congested { trigger: Trigger::Ce, first_sent_at: sent_at, sent_at, now, bytes, in_flight };
    controller.on_congested(path.id(), &marks);
}
