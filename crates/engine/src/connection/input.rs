//! Takes packets apart: opens them, reads their frames, and tells path, controller and data layer what they say.

use super::path::{Address, State};
use super::{Connection, Event, MOST_PATHS, Phase, Receiving, RelayNews, arrived, close, lost};
use crate::config::Payload;
use crate::data::{DataId, ProtocolError};
use crate::path::receive::{Arrival, ReceivePath};
use crate::path::send::Losses;
use crate::route::Source;
use crate::seal::{OpenError, ReplayWindow};
use byway_control::{Acked, Congested, ProbeResult, Trigger, Undo};
use byway_wire::frame::ack::{AckEntries, AckEntry};
use byway_wire::frame::{Frame, Frames, Ranges};
use byway_wire::packet::{HEADER_LEN, Header, STAMP_LEN, restore_number};
use byway_wire::{Duration, Ecn, Instant, PathId};

/// A window of which less than this part was in flight is not what limits a path. The pacer alone never leaves so little in
/// flight, however fast the window grows.
const USED_SHARE: u64 = 4;

/// A datagram that carries a packet of this connection.
#[derive(Debug)]
pub(crate) struct Inbound<'a> {
    /// The peer's path, from the connection id.
    pub path: PathId,
    /// Where it came from.
    pub source: Source,
    /// Its ECN mark.
    pub ecn: Ecn,
    /// When it arrived.
    pub at: Instant,
    /// UDP payload bytes, envelope and phantom ones included.
    pub bytes: usize,
    /// The packet.
    pub packet: &'a mut [u8],
    /// Bytes of objects that it has beyond that.
    pub phantom: usize,
}

/// How the packet came that a frame stood in.
#[derive(Clone, Copy, Debug)]
struct Came {
    /// The peer's path.
    on: PathId,
    /// When it arrived.
    at: Instant,
    /// When it left, by the peer's clock.
    stamp: u32,
}

/// Why a packet was not taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Rejected {
    /// Not a packet.
    Malformed,
    /// Seen before.
    Replayed,
    /// Not made with the peer's keys.
    Forged,
    /// For a path that the peer dropped, or too many paths.
    Unexpected,
}

impl Connection {
    /// Takes a packet.
    pub(crate) fn on_packet(&mut self, now: Instant, inbound: Inbound<'_>) -> Result<(), Rejected> {
        let Inbound { path: id, source, ecn, at, bytes, packet, phantom } = inbound;
        let header = Header::read(packet).map_err(|_| Rejected::Malformed)?;
        let known = self.receive.get(id);
        if known.is_none() && (self.settled.contains(id) || self.receive.len() >= MOST_PATHS) {
            return Err(Rejected::Unexpected);
        }
        let number = restore_number(known.map_or(0, |receiving| receiving.facts.expected()), header.number);
        if known.is_some_and(|receiving| !receiving.replay.check(number)) {
            return Err(Rejected::Replayed);
        }
        let plain = match self.opener.open(now, id, number, header.epoch, packet, HEADER_LEN) {
            Ok(plain) => plain,
            Err(OpenError::Exhausted) => {
                self.close(now, close::WORN_OUT, "too many forged packets");
                return Err(Rejected::Forged);
            }
            Err(_) => return Err(Rejected::Forged),
        };
        // From here on the packet is the peer's.
        if let Phase::Closing { tell, .. } = &mut self.phase {
            *tell = true;
        }
        if self.phase == Phase::Closed {
            return Ok(());
        }
        self.last_heard = now;
        let first = !core::mem::replace(&mut self.confirmed, true);
        if first {
            self.raise(Event::Confirmed);
        }
        let Some((stamp, frames)) = plain.split_first_chunk::<STAMP_LEN>() else {
            return Err(Rejected::Malformed);
        };
        let stamp = u32::from_be_bytes(*stamp);
        self.enter(now, id, &source);
        let came = Came { on: id, at, stamp };
        let (mut eliciting, mut asked) = (false, false);
        let frames = match self.config.payload {
            Payload::Bytes => Frames::new(frames),
            Payload::Length => Frames::with_phantom(frames, phantom),
        };
        for frame in frames {
            let Ok(frame) = frame else {
                self.close(now, close::MALFORMED, "a packet could not be understood");
                return Ok(());
            };
            eliciting |= frame.is_eliciting();
            asked |= matches!(frame, Frame::Ping);
            self.data_came |= matches!(frame, Frame::Stream(_) | Frame::Object(_) | Frame::Datagram(_));
            if let Err(error) = self.on_frame(now, came, frame) {
                self.close(now, close::DATA + error.code, error.reason);
                return Ok(());
            }
        }
        let Some(receiving) = self.receive.get_mut(id) else { return Ok(()) };
        receiving.replay.accept(number);
        let newest = receiving.facts.on_packet(&Arrival { number, at, stamp, bytes, ecn, eliciting });
        if asked {
            receiving.facts.ack_at_once(at);
            self.echo = Some(id);
        }
        if receiving.settled != Some(self.routes) || !receiving.source.is_alike(&source) {
            let moved = newest && receiving.source != source;
            if moved {
                self.source_changed(now, id, source);
            }
            self.credit_way(now, id, &source, bytes);
        }
        if asked {
            self.doubt_ack_way();
        }
        self.queue_ack(now, id);
        // Nothing else that a packet brings makes the connection as a whole due earlier than it was.
        if first {
            self.arm_whole(now);
        } else if eliciting && self.incoming.snack_deadline(Duration::ZERO).is_some() {
            let at = self.snack_at(now);
            self.arm_whole_at(now, at);
        }
        Ok(())
    }

    /// Who asks may do so because the way of the ACKs is dead: it is asked in turn. Only once per data that came, or two
    /// idle peers would ask each other for ever.
    fn doubt_ack_way(&mut self) {
        if !core::mem::take(&mut self.data_came) {
            return;
        }
        if let Some(way) = self.ack_way
            && let Some(path) = self.paths.get_mut(way)
            && path.send.outstanding() == 0
        {
            path.pending.ping = true;
            self.make_urgent(way);
        }
    }

    /// What came from an address may be answered there: as many bytes, until it is proven.
    fn credit_way(&mut self, now: Instant, id: PathId, source: &Source, bytes: usize) {
        let Some(receiving) = self.receive.get_mut(id) else { return };
        let Some((way, path)) = receiving.way.and_then(|way| Some((way, self.paths.get_mut(way)?))) else {
            return;
        };
        if !source.is_end_of(&path.route) {
            return self.credit_move(now, way, source, bytes);
        }
        if path.refresh_ticket(source) {
            self.routes += 1;
        }
        if path.address != Address::Valid {
            path.earn(bytes as u64);
            self.make_urgent(way);
        } else if receiving.source == *source {
            (receiving.source, receiving.settled) = (*source, Some(self.routes));
        }
    }

    /// Makes sure that the peer's path is known, and a way back to it.
    fn enter(&mut self, now: Instant, id: PathId, source: &Source) {
        if self.receive.get(id).is_some() {
            return;
        }
        let receiving = Receiving {
            facts: ReceivePath::new(id, now, self.config.pnack),
            replay: ReplayWindow::new(),
            source: *source,
            way: None,
            settled: None,
            queued: false,
            armed: super::Armed::default(),
        };
        self.receive.insert(id, receiving);
        self.seen(id);
        let way = self.way_to(now, source);
        if let Some(receiving) = self.receive.get_mut(id) {
            receiving.way = way;
        }
        self.ack_way_until = Instant::ZERO;
    }

    fn on_frame(&mut self, now: Instant, came: Came, frame: Frame<'_>) -> Result<(), ProtocolError> {
        let Came { on, at, stamp } = came;
        match frame {
            Frame::Padding | Frame::Ping => {}
            Frame::Ack(entries) => self.on_ack(now, on, &entries),
            Frame::Pnack { path, missing } => self.on_pnack(now, path, &missing),
            Frame::SnackStream { id, missing } => self.on_snack(DataId::Stream(id), &missing),
            Frame::SnackObject { id, missing } => self.on_snack(DataId::Object(id), &missing),
            Frame::Stream(stream) => self.incoming.on_stream(now, &stream)?,
            Frame::Object(object) => self.incoming.on_object(now, &object)?,
            Frame::Datagram(data) => self.datagrams.on_received(on, at, stamp, data),
            Frame::MaxData(limit) => self.out.on_max_data(limit),
            Frame::MaxStreamData { id, limit } => self.out.on_max_stream_data(id, limit),
            Frame::ResetStream { id, code } => self.incoming.on_reset_stream(id, code)?,
            Frame::StopSending { id, code } => self.out.on_stop_sending(id, code),
            Frame::Close { code, reason } => self.finish(code, reason, true),
            Frame::PathChallenge(token) => {
                if let Some(way) = self.receive.get(on).and_then(|receiving| receiving.way)
                    && let Some(path) = self.paths.get_mut(way)
                    && path.pending.responses.len() < 2
                {
                    path.pending.responses.push(token);
                    self.make_urgent(way);
                }
            }
            Frame::PathResponse(token) => self.on_path_response(now, token),
            Frame::PathDropped(path) => self.on_path_dropped(now, path),
            Frame::PathHint(hint) => {
                if let Some(receiving) = self.receive.get_mut(hint.path) {
                    receiving.facts.on_hint(hint);
                }
            }
            Frame::RelayOffer(offer) => self.tell(RelayNews::Offered(offer)),
            Frame::RelayConsent(consent) => self.tell(RelayNews::Consented {
                offer: consent.offer,
                address: consent.address,
                consent: consent.consent.to_vec(),
            }),
            Frame::RelayRefused(offer) => self.tell(RelayNews::Refused(offer)),
        }
        Ok(())
    }

    fn on_ack(&mut self, now: Instant, way: PathId, entries: &AckEntries<'_>) {
        for entry in entries.iter() {
            if !self.on_ack_entry(now, way, &entry) {
                self.close(now, close::VIOLATION, "an ACK of what was never sent");
                return;
            }
        }
        self.consult(now);
    }

    /// Returns `false` if the entry is a lie.
    fn on_ack_entry(&mut self, now: Instant, way: PathId, entry: &AckEntry<'_>) -> bool {
        let Self { paths, out, incoming, farewells, datagrams, controller, delays, config, .. } = self;
        let (id, judged) = (entry.path, config.owner_judges_losses);
        let Some(path) = paths.get_mut(id) else { return id < paths.next_id() };
        delays.clear();
        let probe = path.probe;
        let silent = path.send.timeouts() > 0;
        let Some(progress) =
            path.send.on_ack(now, entry, way, delays, |carried| arrived(out, farewells, datagrams, carried))
        else {
            return false;
        };
        if let Some((sent_at, app_limited)) = progress.latest {
            farewells.on_known(id);
            if path.state == State::Active {
                let rtt = &path.send.rtt;
                // A window that is hardly used limits nothing (RFC 9002 section 7.8): what does is the processor, say.
                let flight = path.send.in_flight + progress.bytes;
                let app_limited = app_limited || flight.saturating_mul(USED_SHARE) < path.allowance.window;
                controller.on_acked(
                    id,
                    &Acked {
                        now,
                        bytes: progress.bytes,
                        packets: progress.packets,
                        sent_at,
                        rtt: progress.rtt,
                        srtt: rtt.smoothed(),
                        min_rtt: rtt.minimum(),
                        delays,
                        in_flight: path.send.in_flight,
                        app_limited,
                        delivery_rate: path.send.delivery_rate(),
                        ce: progress.ce,
                    },
                );
            }
            if probe.is_some_and(|number| number <= entry.largest) && path.state == State::Choked {
                path.probe = None;
                let delay = delays.last().copied();
                controller.on_probe(id, &ProbeResult { now, delay, rtt: progress.rtt });
            }
        }
        let mut others = false;
        // Each by itself: a controller takes a decrease back when all that it was told of has turned up.
        for sent_at in progress.undone {
            if !judged {
                controller.on_undo(id, &Undo { now, sent_at });
            }
        }
        if progress.ce > 0 {
            let in_flight = path.send.in_flight;
            let sent_at = progress.latest.map_or(now, |(sent_at, _)| sent_at);
            let bytes = u64::from(progress.ce) * path.send.mtu.current() as u64;
            let marks =
                Congested { trigger: Trigger::Ce, first_sent_at: sent_at, sent_at, now, bytes, in_flight };
            controller.on_congested(id, &marks);
            others = true;
        }
        if let Some(losses) =
            path.send.detect_losses(now, |carried| lost(out, incoming, farewells, datagrams, carried))
            && !judged
        {
            let losses = congested(now, Trigger::Loss, &losses);
            controller.on_congested(id, &losses);
            others = true;
        }
        if progress.packets > 0 && path.state == State::Probing {
            self.proven(now, id);
        } else if silent {
            self.ack_way_until = Instant::ZERO;
        }
        if others {
            self.refresh_all(now, Some(id));
        } else {
            self.refresh(now, id);
        }
        true
    }

    fn on_pnack(&mut self, now: Instant, id: PathId, missing: &Ranges<'_>) {
        let Self { paths, out, incoming, farewells, datagrams, controller, config, .. } = self;
        let Some(path) = paths.get_mut(id) else { return };
        if let Some(losses) = path
            .send
            .on_missing(now, missing.iter(), |carried| lost(out, incoming, farewells, datagrams, carried))
        {
            if config.owner_judges_losses {
                return self.refresh(now, id);
            }
            let losses = congested(now, Trigger::Loss, &losses);
            controller.on_congested(id, &losses);
            self.refresh_all(now, Some(id));
        }
    }

    fn on_snack(&mut self, what: DataId, missing: &Ranges<'_>) {
        for (start, end) in missing.iter() {
            self.out.missing(what, start, end);
        }
    }

    fn on_path_response(&mut self, now: Instant, token: [u8; 8]) {
        let proven = self.paths.iter_mut().find_map(|path| match path.address {
            Address::Unproven { token: ours, .. } if ours == token => {
                path.address = Address::Valid;
                path.probe_at = None;
                Some(path.id())
            }
            _ => None,
        });
        if let Some(id) = proven {
            (self.ack_way_until, self.may_open) = (Instant::ZERO, true);
            self.proven(now, id);
        } else {
            self.move_proven(now, token);
        }
    }
}

pub(super) fn congested(now: Instant, trigger: Trigger, losses: &Losses) -> Congested {
    Congested {
        trigger,
        first_sent_at: losses.first_sent_at,
        sent_at: losses.last_sent_at,
        now,
        bytes: losses.bytes,
        in_flight: losses.in_flight,
    }
}
