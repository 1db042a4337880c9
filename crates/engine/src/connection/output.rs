//! Puts packets together: what is pending on a path, ACKs, and data in runs of equal size on one path at a time.

use super::datagrams;
use super::path::{Address, State};
use super::timers::Owner;
use super::{Connection, Phase};
use crate::config::{AckWay, Payload};
use crate::data::Carried;
use crate::path::ledger::Cargo;
use crate::path::send::Outbound;
use byway_wire::frame::ack::AckWriter;
use byway_wire::frame::{self, Frame, PathHint};
use byway_wire::packet::{BASE_DATAGRAM, HEADER_LEN, Header, OVERHEAD, STAMP_LEN, TAG_LEN};
use byway_wire::{Dscp, Duration, Ecn, Instant, Out, PathId, Transmit, Writer};

/// Room for an ACK that is told twice: envelope, packet, and the newest ranges.
const MOST_ECHO: usize = 256;
/// Room for a CLOSE but for its reason: type, code, length.
const MOST_CLOSE: usize = 1 + 8 + 8;
/// Room for a PATH_CHALLENGE: envelope, packet and frame.
const MOST_ASK: usize = 128;
/// A hint is given at most this often.
const HINT_EVERY: Duration = Duration::from_millis(40);
/// An ACK leaves this much room for a path's entry, or what it misses, to be worth beginning.
const ENTRY_ROOM: usize = 48;

/// What a packet is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Purpose {
    /// What is pending on the path.
    Pending,
    /// A padded PING.
    Size,
    /// A PATH_CHALLENGE to where the path may have moved.
    Ask,
    /// ACKs and other control of the whole connection.
    Control,
    /// The ACK of this path of the peer's, for the second time.
    Echo(PathId),
    /// Data; the last of it once more if nothing else is left.
    Data,
    /// Datagrams that the path took on.
    Datagram,
    /// Data that was sent before and is not acknowledged yet.
    Tail,
    /// The end.
    Close,
}

/// What is left of a run.
#[derive(Clone, Copy, Debug)]
pub(super) struct Rest {
    path: PathId,
    size: usize,
    most: usize,
    purpose: Purpose,
}

/// A packet that was made: what stands in the buffer, and what it has beyond that.
#[derive(Clone, Copy, Debug)]
struct Made {
    length: usize,
    phantom: usize,
}

impl Connection {
    /// Writes the next datagram or run of datagrams.
    pub(crate) fn transmit(&mut self, now: Instant, out: &mut Out<'_>) -> Option<Transmit> {
        match &mut self.phase {
            Phase::Closed => return None,
            Phase::Closing { tell, reason, .. } => {
                if !core::mem::take(tell) {
                    return None;
                }
                let most = OVERHEAD + MOST_CLOSE + reason.len();
                let way =
                    self.ack_way(now).or_else(|| self.paths.iter().next().map(super::path::Path::id))?;
                let path = self.paths.get(way)?;
                // Not even this goes where more would be sent than came from: the next packet from there asks again.
                if path.credit() < (path.route.overhead() + most) as u64 {
                    return None;
                }
                return self.single(now, way, out, BASE_DATAGRAM, Purpose::Close);
            }
            Phase::Open => {}
        }
        let sent = self.send_rest(now, out);
        let sent = if sent.is_some() { sent } else { self.send_pending(now, out) };
        let sent = if sent.is_some() { sent } else { self.send_control(now, out) };
        let sent = if sent.is_some() { sent } else { self.send_echo(now, out) };
        if sent.is_some() { sent } else { self.send_data(now, out) }
    }

    fn send_pending(&mut self, now: Instant, out: &mut Out<'_>) -> Option<Transmit> {
        for _ in 0..self.urgent.len() {
            let id = self.urgent.pop_front()?;
            let Some(path) = self.paths.get_mut(id) else { continue };
            path.urgent = false;
            if core::mem::take(&mut path.pending.ask) {
                self.make_urgent(id);
                let sent = self.ask(now, id, out);
                if sent.is_some() {
                    return sent;
                }
                continue;
            }
            if path.credit() < 128 {
                continue; // until more comes from there
            }
            if let Some(size) = path.pending.mtu.take() {
                self.make_urgent(id);
                if size <= out.buffer.len() {
                    return self.single(now, id, out, size, Purpose::Size);
                }
                continue;
            }
            if path.pending.any() {
                let size = path.send.mtu.current().min(usize::try_from(path.credit()).unwrap_or(usize::MAX));
                let sent = self.single(now, id, out, size, Purpose::Pending);
                self.arm_path(id);
                return sent;
            }
        }
        None
    }

    /// Asks where a path may have moved, as soon as enough came from there. It is no packet of the route that the path has now, so
    /// nothing is learnt from its fate.
    fn ask(&mut self, now: Instant, id: PathId, out: &mut Out<'_>) -> Option<Transmit> {
        let path = self.paths.get_mut(id)?;
        let moving = path.moving.as_mut()?;
        if moving.credit < MOST_ASK as u64 {
            moving.again_at = now; // with the next packet that comes from there
            return None;
        }
        core::mem::swap(&mut path.route, &mut moving.route);
        let sent = self.single(now, id, out, MOST_ASK, Purpose::Ask);
        let path = self.paths.get_mut(id)?;
        let moving = path.moving.as_mut()?;
        core::mem::swap(&mut path.route, &mut moving.route);
        moving.credit -= sent.as_ref().map_or(0, |sent| sent.size as u64);
        sent
    }

    /// Goes on with a run whose datagrams leave one by one.
    fn send_rest(&mut self, now: Instant, out: &mut Out<'_>) -> Option<Transmit> {
        let Rest { path, size, most, purpose } = self.rest.take()?;
        self.run(now, path, out, size, most, purpose)
    }

    /// Whether more of a run follows, which others must not interrupt.
    pub(crate) const fn is_amid_run(&self) -> bool {
        self.rest.is_some()
    }

    fn send_control(&mut self, now: Instant, out: &mut Out<'_>) -> Option<Transmit> {
        let wanted = !self.ack_queue.is_empty()
            || self.snack_due
            || self.incoming.wants_to_send()
            || !self.answers.is_empty()
            || !self.farewells.due.is_empty();
        if !wanted {
            return None;
        }
        let way = self.ack_way(now)?;
        let credit = self.paths.get(way)?.credit();
        if credit < 128 {
            return None;
        }
        let size = BASE_DATAGRAM.min(usize::try_from(credit).unwrap_or(BASE_DATAGRAM));
        self.single(now, way, out, size, Purpose::Control)
    }

    /// The ACK of a path whose sender asks, once more by another way: where its packets come from, or else the fastest.
    fn send_echo(&mut self, now: Instant, out: &mut Out<'_>) -> Option<Transmit> {
        let id = self.echo.take().filter(|_| self.config.ack_way == AckWay::Fastest)?;
        let own = self.receive.get(id)?.way;
        let others = self.paths.iter().filter(|path| Some(path.id()) != self.ack_way);
        let usable = others.filter(|path| path.credit() >= MOST_ECHO as u64 && path.send.rtt.is_sampled());
        let way = usable.min_by_key(|path| (Some(path.id()) != own, path.send.rtt.smoothed()))?.id();
        self.single(now, way, out, MOST_ECHO, Purpose::Echo(id))
    }

    fn send_data(&mut self, now: Instant, out: &mut Out<'_>) -> Option<Transmit> {
        if !self.confirmed {
            return None;
        }
        let mut purpose = Purpose::Data;
        if !self.out.wants_to_send() && self.datagrams.waiting == 0 {
            if !self.finishing || !self.config.repeat_tail || self.ready.len() < 2 {
                return None;
            }
            purpose = Purpose::Tail;
        }
        for _ in 0..self.ready.len() {
            let id = self.ready.pop_front()?;
            let beside = self.riding_ack(now, id).map_or(0, |_| ENTRY_ROOM);
            let Some(path) = self.paths.get_mut(id) else { continue };
            path.ready = false;
            self.datagrams.return_misfits(path);
            let parcel = datagrams::packet_size(path, now, beside);
            if parcel.is_none() && purpose == Purpose::Data && !self.out.wants_to_send() {
                self.make_ready(id); // for what the owner adds next
                continue;
            }
            let largest = path.send.mtu.current().min(out.buffer.len());
            let whole = self.sealer.suite().whole(largest, path.route.overhead() + HEADER_LEN);
            let size = parcel.map_or(whole, |(size, _)| size.min(out.buffer.len()));
            if path.state != State::Active || path.credit() < size as u64 {
                continue;
            }
            let (in_flight, window) = (path.send.in_flight, path.allowance.window);
            let room = (window.saturating_sub(in_flight) / size as u64).max(u64::from(in_flight == 0));
            if room == 0 {
                self.cap.yields();
                continue; // an ACK brings it back
            }
            if path.send.timeouts() > 0 && in_flight > 0 {
                continue; // one packet at a time until it answers
            }
            let tokens = path.send.pacer.available(now) / size as u64;
            if tokens == 0 {
                self.cap.yields();
                path.paced = true;
                self.arm_path(id);
                continue;
            }
            if path.send.timeouts() > 0 && self.has_other(id) {
                continue; // silent: its pings will tell; others carry the data
            }
            let capped = self.cap.allows(now, size as u64);
            if capped == 0 {
                self.make_ready(id);
                self.arm_whole_at(now, self.cap.until);
                return None;
            }
            let purpose = if parcel.is_some() { Purpose::Datagram } else { purpose };
            let single = parcel.is_some_and(|(_, single)| single);
            let room = if single { 1 } else { room };
            let most = room.min(tokens).min(capped).min(out.max_segments as u64).max(1);
            let sent = self.run(now, id, out, size, usize::try_from(most).unwrap_or(1), purpose);
            self.make_ready(id);
            if sent.is_some() {
                return sent;
            }
            return None; // what wanted to be sent did not want to be sent after all
        }
        None
    }

    /// Whether a path other than this is active and answers.
    pub(super) fn has_other(&self, id: PathId) -> bool {
        self.paths
            .iter()
            .any(|path| path.id() != id && path.state == State::Active && path.send.timeouts() == 0)
    }

    /// A run of full packets on one path; the last may be shorter. Those with phantom bytes leave one by one, for a run is of
    /// datagrams that have equally many; it is the same run nevertheless.
    fn run(
        &mut self,
        now: Instant,
        id: PathId,
        out: &mut Out<'_>,
        size: usize,
        most: usize,
        purpose: Purpose,
    ) -> Option<Transmit> {
        let mut written = 0;
        let idle = self.is_idle(id);
        for made in 1..=most {
            let Some(buffer) = out.buffer.get_mut(written..written + size) else { break };
            let Some(Made { length, phantom }) = self.packet(now, id, buffer, purpose) else { break };
            written += length;
            let last = length + phantom < size || !self.has_more(id, purpose);
            if self.config.payload == Payload::Length {
                self.rest =
                    (!last && made < most).then_some(Rest { path: id, size, most: most - made, purpose });
                if idle {
                    self.arm_path(id);
                }
                return self.transmission(id, written, written, phantom);
            }
            if last {
                break;
            }
        }
        if idle {
            self.arm_path(id);
        }
        self.transmission(id, written, size, 0)
    }

    /// Whether there is more for this path after what was just written.
    fn has_more(&self, id: PathId, purpose: Purpose) -> bool {
        match purpose {
            Purpose::Datagram => self.paths.get(id).is_some_and(|path| !path.outbox.is_empty()),
            _ => self.out.wants_to_send(),
        }
    }

    /// Whether nothing is outstanding on a path, so that what is sent next arms its timer: with more sent, deadlines that there
    /// are already only move later.
    fn is_idle(&self, id: PathId) -> bool {
        self.paths.get(id).is_none_or(|path| path.send.outstanding() == 0)
    }

    fn single(
        &mut self,
        now: Instant,
        id: PathId,
        out: &mut Out<'_>,
        size: usize,
        purpose: Purpose,
    ) -> Option<Transmit> {
        let buffer = out.buffer.get_mut(..size.min(out.buffer.len()))?;
        let idle = self.is_idle(id);
        let Made { length, phantom } = self.packet(now, id, buffer, purpose)?;
        // An ACK asks for no timeout, but too many do.
        if idle || self.paths.get(id).is_some_and(|path| path.send.is_crowded()) {
            self.arm_path(id);
        }
        self.transmission(id, length, length, phantom)
    }

    fn transmission(&mut self, id: PathId, size: usize, segment: usize, phantom: usize) -> Option<Transmit> {
        if size == 0 {
            return None;
        }
        let path = self.paths.get_mut(id)?;
        debug_assert!(path.armed.covers(path.send.deadline()), "what was sent is waited for");
        path.spend((size + phantom) as u64);
        let capable = path.send.timeouts() == 0 && path.send.ecn.is_used();
        let ecn = if capable { Ecn::Ect0 } else { Ecn::NotEct };
        let dscp = if path.send.passage.is_used() { self.config.dscp } else { Dscp::BestEffort };
        Some(Transmit {
            local: path.route.local,
            remote: path.route.remote,
            ecn,
            dscp,
            size,
            segment: segment.min(size),
            phantom,
        })
    }

    /// Makes one packet in `buffer`, at most as large as that. `None`, and no number used, if there was nothing to put in.
    fn packet(&mut self, now: Instant, id: PathId, buffer: &mut [u8], purpose: Purpose) -> Option<Made> {
        let path = self.paths.get(id)?;
        let envelope = path.route.overhead();
        let number = path.send.next_number();
        let inner = buffer.get_mut(envelope..)?;
        let body = inner.len().checked_sub(TAG_LEN)?;
        let mut writer = Writer::new(inner.get_mut(..body)?);
        let epoch = self.sealer.epoch(now);
        Header { connection: path.connection_id, number: number as u32, epoch }.write(&mut writer);
        writer.u32(now.as_micros() as u32);
        let start = writer.len();
        let mut cargo = Cargo::new();
        let eliciting = self.content(now, id, &mut writer, &mut cargo, purpose);
        if writer.len() == start {
            return None;
        }
        let (sealed, phantom) = (writer.len() + TAG_LEN, writer.phantom());
        debug_assert_eq!(HEADER_LEN + STAMP_LEN, start);
        let bulk = matches!(purpose, Purpose::Data | Purpose::Datagram);
        let app_limited = !bulk || self.cap.holds() || !self.has_more(id, purpose);
        let packet = buffer.get_mut(envelope..envelope + sealed)?;
        if self.sealer.seal(id, number, packet, HEADER_LEN).is_err() {
            self.finish(super::close::WORN_OUT, "the keys are worn out", false);
            return None;
        }
        let length = envelope + sealed;
        let path = self.paths.get_mut(id)?;
        path.route.enclose(now, buffer.get_mut(..length)?);
        let counted = purpose != Purpose::Size;
        let bytes = (length + phantom) as u32;
        path.send.on_sent(now, Outbound { bytes, eliciting, counted, app_limited, cargo: &cargo });
        match purpose {
            Purpose::Size => path.send.mtu.sent(length, number),
            Purpose::Data | Purpose::Datagram | Purpose::Tail => {
                path.send.pacer.spend(u64::from(bytes));
                self.cap.spend(u64::from(bytes));
                let sent = byway_control::Sent { now, bytes, in_flight: path.send.in_flight, app_limited };
                self.controller.on_sent(id, &sent);
            }
            Purpose::Pending if path.state == State::Choked => path.probe = Some(number),
            _ => {}
        }
        Some(Made { length, phantom })
    }

    /// Writes the frames of one packet. Returns whether it must be acknowledged.
    fn content(
        &mut self,
        now: Instant,
        id: PathId,
        writer: &mut Writer<'_>,
        cargo: &mut Cargo,
        purpose: Purpose,
    ) -> bool {
        match purpose {
            Purpose::Close => {
                if let Phase::Closing { code, reason, .. } = &self.phase {
                    Frame::Close { code: *code, reason }.write(writer);
                }
                false
            }
            Purpose::Size => {
                Frame::Ping.write(writer);
                if let Some(padding) = writer.claim(writer.room()) {
                    padding.fill(0);
                }
                true
            }
            Purpose::Ask => {
                if let Some(moving) = self.paths.get(id).and_then(|path| path.moving.as_ref()) {
                    Frame::PathChallenge(moving.token).write(writer);
                }
                false
            }
            Purpose::Pending => {
                self.write_pending(now, id, writer);
                // Probing uses data packets (mPath section 2.1).
                if self.confirmed && self.paths.get(id).is_some_and(|path| path.state == State::Probing) {
                    self.out.fill(writer, cargo);
                }
                true
            }
            Purpose::Control => self.write_control(now, writer, cargo),
            Purpose::Echo(id) => {
                let mut ack = AckWriter::begin(writer);
                if let Some(receiving) = self.receive.get_mut(id) {
                    receiving.facts.write_ack(now, &mut ack, writer, &mut self.runs);
                }
                ack.finish(writer);
                false
            }
            Purpose::Data => {
                self.write_beside(now, id, writer);
                let before = writer.len();
                self.out.fill(writer, cargo);
                if writer.len() == before {
                    writer.truncate(HEADER_LEN + STAMP_LEN);
                }
                true
            }
            Purpose::Datagram => {
                self.write_beside(now, id, writer);
                let before = writer.len();
                self.write_datagrams(id, writer, cargo);
                if writer.len() == before {
                    writer.truncate(HEADER_LEN + STAMP_LEN);
                } else {
                    self.write_riding_ack(now, id, writer);
                }
                true
            }
            Purpose::Tail => {
                self.out.repeat_tail(writer, cargo);
                true
            }
        }
    }

    fn write_pending(&mut self, now: Instant, id: PathId, writer: &mut Writer<'_>) {
        let Some(path) = self.paths.get_mut(id) else { return };
        for token in path.pending.responses.drain(..) {
            Frame::PathResponse(token).write(writer);
        }
        if core::mem::take(&mut path.pending.challenge)
            && let Address::Unproven { token, .. } = path.address
        {
            Frame::PathChallenge(token).write(writer);
            path.probe_at = Some(now + path.challenge_interval());
        }
        if core::mem::take(&mut path.pending.ping) {
            Frame::Ping.write(writer);
        }
    }

    /// What goes with data: the question whether a silent path lives, and a hint about it.
    fn write_beside(&mut self, now: Instant, id: PathId, writer: &mut Writer<'_>) {
        if self.paths.get(id).is_some_and(|path| path.send.timeouts() > 0) {
            Frame::Ping.write(writer);
        }
        self.write_hint(now, id, writer);
    }

    fn write_hint(&mut self, now: Instant, id: PathId, writer: &mut Writer<'_>) {
        let Some(path) = self.paths.get_mut(id) else { return };
        let (told, next_at) = path.hint;
        if now < next_at || !path.send.rtt.is_sampled() {
            return;
        }
        let srtt = path.send.rtt.smoothed();
        let hint = PathHint {
            path: id,
            srtt_micros: u64::try_from(srtt.as_micros()).unwrap_or(u64::MAX),
            delay_limit: path.allowance.delay_limit.and_then(|limit| path.send.apparent(now, limit)),
        };
        let stale = told.is_none_or(|told| {
            let moved = told.srtt_micros.abs_diff(hint.srtt_micros) * 8 > told.srtt_micros;
            let limit = match (told.delay_limit, hint.delay_limit) {
                (Some(a), Some(b)) => (a.wrapping_sub(b) as i32).unsigned_abs() > 500,
                (a, b) => a != b,
            };
            moved || limit
        });
        path.hint.1 = now + HINT_EVERY.max(srtt / 2);
        if stale {
            Frame::PathHint(hint).write(writer);
            path.hint.0 = Some(hint);
        }
    }

    /// The peer's path whose ACK may ride with datagrams that leave by `id`, where ACKs go anyway: sent alone a little later it
    /// would cost its headers too, and that on a line which is full.
    fn riding_ack(&mut self, now: Instant, id: PathId) -> Option<PathId> {
        let soon = self.ack_soon?;
        let receiving = self.receive.get(soon)?;
        let rides = !receiving.queued && receiving.facts.ack_nearly_due(now);
        (rides && self.ack_way(now) == Some(id)).then_some(soon)
    }

    fn write_riding_ack(&mut self, now: Instant, id: PathId, writer: &mut Writer<'_>) {
        let Some(soon) = self.riding_ack(now, id).filter(|_| writer.room() >= ENTRY_ROOM) else { return };
        let Some(receiving) = self.receive.get_mut(soon) else { return };
        let mut ack = AckWriter::begin(writer);
        if receiving.facts.write_ack(now, &mut ack, writer, &mut self.runs) {
            self.ack_soon = None;
            let at = receiving.facts.deadline();
            self.timers.arm(Owner::Receive(soon), &mut receiving.armed, at);
        }
        ack.finish(writer);
    }

    fn write_control(&mut self, now: Instant, writer: &mut Writer<'_>, cargo: &mut Cargo) -> bool {
        let mut eliciting = false;
        for _ in 0..self.ack_queue.len() {
            // What a path misses is told once: not where it does not fit.
            if writer.room() < ENTRY_ROOM {
                break;
            }
            let Some(receiving) = self.ack_queue.front().and_then(|id| self.receive.get_mut(*id)) else {
                self.ack_queue.pop_front();
                continue;
            };
            receiving.facts.take_missing(&mut self.missing);
            if !self.missing.is_empty() {
                frame::write_pnack(writer, receiving.facts.id, &self.missing);
            }
            // One entry per ACK frame costs a byte more than many, and never takes back what was written.
            let mut ack = AckWriter::begin(writer);
            let fits = writer.room() >= ENTRY_ROOM
                && receiving.facts.write_ack(now, &mut ack, writer, &mut self.runs);
            ack.finish(writer);
            if !fits {
                break;
            }
            receiving.queued = false;
            let id = receiving.facts.id;
            let at = receiving.facts.deadline();
            self.timers.arm(Owner::Receive(id), &mut receiving.armed, at);
            self.ack_queue.pop_front();
        }
        if self.incoming.wants_to_send() {
            let before = writer.len();
            self.incoming.fill(writer, cargo);
            eliciting |= writer.len() > before;
        }
        while writer.room() >= 128
            && let Some(answer) = self.answers.pop_front()
        {
            answer.frame().write(writer);
            eliciting = true;
        }
        while writer.room() >= 16
            && let Some(id) = self.farewells.due.pop_front()
        {
            Frame::PathDropped(id).write(writer);
            cargo.push(Carried::PathDropped(id));
            eliciting = true;
        }
        if core::mem::take(&mut self.snack_due) {
            let tau = self.tau(now);
            self.incoming.write_snacks(now, tau, writer);
            self.arm_whole(now);
        }
        eliciting
    }
}
