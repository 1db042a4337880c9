//! Puts packets together: what is pending on a path, ACKs, and data in runs of equal size on one
//! path at a time.

use super::acks::{ENTRY_ROOM, MAX_ECHO_LEN};
use super::audit::MIN_CREDIT_BYTES;
use super::full_sockets::FullSockets;
use super::packet_purpose::{Purpose, RunRemainder};
use super::path::{AddressValidation, Path, PathOrigin, PathState};
use super::{Connection, datagram_queues};
use crate::config::Payload;
use crate::data::Carried;
use crate::invariant::Invariant as _;
use crate::path::send::Outbound;
use crate::path::sent_packets::PacketData;
use byway_control::Controller as _;
use byway_wire::frame::{Frame, PathHint};
use byway_wire::packet::{BASE_DATAGRAM, HEADER_LEN, Header, PACKET_OVERHEAD_LEN, STAMP_LEN, TAG_LEN};
use byway_wire::{Dscp, Duration, Ecn, Instant, PathId, Transmit, TransmitBuffer, Writer};

/// The largest CLOSE without its reason, in bytes: type, code, length.
const MAX_CLOSE_LEN: usize = 1 + 8 + 8;
/// Room for a PATH_CHALLENGE: envelope, packet and frame.
const MAX_CHALLENGE_LEN: usize = 128;
/// The most packets that a responder sends before one is acknowledged. RFC 5681 section 3.1 begins
/// with 2 to 4.
const MAX_EARLY_PACKETS: usize = 4;
/// The least time between two hints.
const HINT_INTERVAL: Duration = Duration::from_millis(40);

/// A finished packet: its bytes in the buffer, and its phantom bytes.
#[derive(Clone, Copy, Debug)]
struct BuiltPacket {
    length: usize,
    phantom: usize,
}

impl Connection {
    /// Writes the next datagram or run of datagrams.
    pub(crate) fn transmit(&mut self, now: Instant, out: &mut TransmitBuffer<'_>) -> Option<Transmit> {
        let sent = if self.session.is_open() { self.send(now, out) } else { self.send_close(now, out) };
        self.settle(now);
        sent
    }

    /// Updates which sockets are full, before sending.
    #[inline]
    pub(crate) fn see(&mut self, full: &FullSockets) {
        if !full.is_as(self.paths.full()) {
            self.paths.set_full(full);
            self.scheduler.release();
            self.acks.hold(false);
        }
    }

    /// Whether something would leave if a socket were not full.
    pub(crate) fn waits_for_room(&self) -> bool {
        self.acks.are_held() || self.scheduler.holds()
    }

    fn send(&mut self, now: Instant, out: &mut TransmitBuffer<'_>) -> Option<Transmit> {
        let sent = self.send_rest(now, out);
        let sent = if sent.is_some() { sent } else { self.send_pending(now, out) };
        let sent = if sent.is_some() { sent } else { self.send_control(now, out) };
        let sent = if sent.is_some() { sent } else { self.send_echo(now, out) };
        if sent.is_some() { sent } else { self.send_data(now, out) }
    }

    fn send_close(&mut self, now: Instant, out: &mut TransmitBuffer<'_>) -> Option<Transmit> {
        if !self.session.take_tell(now) {
            return None;
        }
        let most = PACKET_OVERHEAD_LEN + MAX_CLOSE_LEN + self.session.closing()?.1.len();
        let way = self.acks.way(now, &self.peer_paths, &mut self.paths);
        let way = way.or_else(|| self.paths.iter().next().map(Path::id))?;
        let path = self.paths.get(way)?;
        // Not even this goes where more would be sent than came from: the next packet from there
        // asks again.
        if path.credit() < (path.route.overhead() + most) as u64 {
            return None;
        }
        self.single(now, way, out, BASE_DATAGRAM, Purpose::Close)
    }

    fn send_pending(&mut self, now: Instant, out: &mut TransmitBuffer<'_>) -> Option<Transmit> {
        for _ in 0..self.scheduler.urgent() {
            let id = self.scheduler.next_urgent()?;
            if self.paths.is_held(id) {
                self.scheduler.hold_urgent(id);
                continue;
            }
            let Some(path) = self.paths.quietly(id) else { continue };
            path.urgent = false;
            if core::mem::take(&mut path.pending.ask) {
                self.scheduler.make_urgent(path);
                let sent = self.ask(now, id, out);
                if sent.is_some() {
                    return sent;
                }
                continue;
            }
            if path.credit() < MIN_CREDIT_BYTES {
                continue; // until more comes from there
            }
            if let Some(size) = path.pending.mtu.take() {
                self.scheduler.make_urgent(path);
                if size <= out.buffer.len() {
                    return self.single(now, id, out, size, Purpose::Size);
                }
                continue;
            }
            if path.pending.any() {
                let size = path.send.mtu.current().min(usize::try_from(path.credit()).unwrap_or(usize::MAX));
                let sent = self.single(now, id, out, size, Purpose::Pending);
                self.arm(id);
                return sent;
            }
        }
        None
    }

    /// Sends a PATH_CHALLENGE of up to `MAX_CHALLENGE_LEN` bytes to the new address of a path,
    /// after at least as many bytes came from there. Otherwise a spoofed address could make this
    /// side send more bytes there than it received.
    fn ask(&mut self, now: Instant, id: PathId, out: &mut TransmitBuffer<'_>) -> Option<Transmit> {
        let path = self.paths.quietly(id)?;
        let moving = path.moving.as_mut()?;
        if moving.credit < MAX_CHALLENGE_LEN as u64 {
            moving.again_at = now; // with the next packet that comes from there
            return None;
        }
        core::mem::swap(&mut path.route, &mut moving.route);
        let sent = self.single(now, id, out, MAX_CHALLENGE_LEN, Purpose::Ask);
        let path = self.paths.quietly(id)?;
        let moving = path.moving.as_mut()?;
        core::mem::swap(&mut path.route, &mut moving.route);
        moving.credit -= sent.as_ref().map_or(0, |sent| sent.size as u64);
        sent
    }

    /// Continues a run whose datagrams are sent one by one.
    fn send_rest(&mut self, now: Instant, out: &mut TransmitBuffer<'_>) -> Option<Transmit> {
        let RunRemainder { path, size, most, purpose } = self.scheduler.take_rest()?;
        self.run(now, path, out, size, most, purpose)
    }

    /// Whether a run is unfinished. Nothing else may be sent before the rest of it.
    pub(crate) const fn is_amid_run(&self) -> bool {
        self.scheduler.is_amid_run()
    }

    fn send_control(&mut self, now: Instant, out: &mut TransmitBuffer<'_>) -> Option<Transmit> {
        if !(self.acks.is_due() || self.contents.has_control() || self.pending_events.has_answer()) {
            return None;
        }
        let way = self.acks.way(now, &self.peer_paths, &mut self.paths);
        if let Some(id) = self.acks.take_lacking() {
            self.restore_way(now, id);
        }
        let way = way?;
        if self.paths.is_held(way) {
            self.acks.hold(true);
            return None;
        }
        let path = self.paths.get(way)?;
        let credit = path.credit();
        if credit < MIN_CREDIT_BYTES {
            return None;
        }
        let most = BASE_DATAGRAM.min(path.send.mtu.current());
        let size = most.min(usize::try_from(credit).unwrap_or(most));
        self.single(now, way, out, size, Purpose::Control)
    }

    /// Sends a path's ACK a second time, by another path: back to its source, or the fastest.
    fn send_echo(&mut self, now: Instant, out: &mut TransmitBuffer<'_>) -> Option<Transmit> {
        let (id, way) = self.acks.take_echo(&self.peer_paths, &self.paths)?;
        self.single(now, way, out, MAX_ECHO_LEN, Purpose::Echo(id))
    }

    fn send_data(&mut self, now: Instant, out: &mut TransmitBuffer<'_>) -> Option<Transmit> {
        if !self.session.is_confirmed() {
            return None;
        }
        if let Some(id) = self.early_path() {
            return self.single(now, id, out, BASE_DATAGRAM, Purpose::Pending);
        }
        let mut purpose = Purpose::Data;
        if !self.contents.has_any() {
            #[cfg(feature = "studies")]
            self.scheduler.rule().note_blocked(self.contents.blocked_by());
            if !self.contents.is_finishing() || !self.config.repeat_tail || self.scheduler.ready() < 2 {
                return None;
            }
            purpose = Purpose::Tail;
        }
        #[cfg(feature = "studies")]
        self.scheduler.rule().begin();
        for _ in 0..self.scheduler.ready() {
            let id = self.scheduler.next_ready()?;
            if self.paths.is_held(id) {
                self.scheduler.hold_ready(id);
                continue;
            }
            let Self { paths, contents, scheduler, acks, peer_paths, sealer, .. } = self;
            let beside = acks.riding(now, id, peer_paths, paths).map_or(0, |_| ENTRY_ROOM);
            let Some(path) = paths.quietly(id).sure() else { continue };
            path.ready = false;
            contents.datagrams().return_misfits(path);
            let parcel = datagram_queues::packet_size(path, now, beside);
            if parcel.is_none() && purpose == Purpose::Data && !contents.has_data() {
                scheduler.make_ready(path); // for what the owner adds next
                continue;
            }
            let largest = path.send.mtu.current().min(out.buffer.len());
            let whole = sealer.suite().whole(largest, path.route.overhead() + HEADER_LEN);
            let size = parcel.map_or(whole, |(size, _)| size.min(out.buffer.len()));
            if path.state != PathState::Active || path.credit() < size as u64 {
                continue;
            }
            let (in_flight, window) = (path.send.in_flight, path.window_limit);
            let room = (window.saturating_sub(in_flight) / size as u64).max(u64::from(in_flight == 0));
            if room == 0 {
                scheduler.yields();
                continue; // an ACK brings it back
            }
            if path.send.timeouts() > 0 && in_flight > 0 {
                continue; // one packet at a time until it answers
            }
            let tokens = path.send.pacer.available(now) / size as u64;
            if tokens == 0 {
                scheduler.yields();
                path.paced = true;
                scheduler.arm(path);
                continue;
            }
            if path.send.timeouts() > 0 && self.has_other(id) {
                continue; // silent: its pings will tell; others carry the data
            }
            #[cfg(feature = "studies")]
            let tokens = match parcel {
                Some(_) => tokens,
                None => self.scheduler.rule().offer(now, id, tokens, &self.paths, &mut self.contents),
            };
            #[cfg(feature = "studies")]
            if tokens == 0 {
                self.stays_ready(id); // the loop ends before its next turn
                continue;
            }
            let allowed = self.scheduler.allows(now, size as u64);
            if allowed == 0 {
                self.scheduler.arm_limits(now);
                self.stays_ready(id);
                return None;
            }
            let purpose = if parcel.is_some() { Purpose::Datagram } else { purpose };
            let single = parcel.is_some_and(|(_, single)| single);
            let room = if single { 1 } else { room };
            let most = room.min(tokens).min(allowed).min(out.max_segments as u64).max(1);
            let sent = self.run(now, id, out, size, usize::try_from(most).unwrap_or(1), purpose);
            self.stays_ready(id);
            return sent; // if none: what wanted to be sent did not want to be sent after all
        }
        None
    }

    /// The path by which the handshake came, while nothing on it is acknowledged and a responder
    /// has data. The peer has proven its address. So the first answers need no further round trip.
    /// They are few, and travel as probes, which have data anyway.
    fn early_path(&self) -> Option<PathId> {
        let path = self.paths.iter().next().filter(|path| path.state == PathState::Probing)?;
        let is_of_handshake = path.id() == PathId(0) && path.origin == PathOrigin::Return;
        let may = is_of_handshake
            && path.address == AddressValidation::Valid
            && path.send.timeouts() == 0
            && path.send.outstanding() < MAX_EARLY_PACKETS
            && !self.paths.is_held(path.id());
        (may && self.contents.has_data()).then(|| path.id())
    }

    /// Arms a path's timer after a packet was sent.
    fn arm(&mut self, id: PathId) {
        if let Some(path) = self.paths.quietly(id).sure() {
            self.scheduler.arm(path);
        }
    }

    /// Moves a path to the end of the queue of paths that may send data.
    fn stays_ready(&mut self, id: PathId) {
        if let Some(path) = self.paths.quietly(id).sure() {
            self.scheduler.make_ready(path);
        }
    }

    /// Sends up to `most` packets of `size` bytes on one path in one system call. The last packet
    /// may be shorter. In simulations with `Payload::Length` (objects without bytes), each call
    /// sends one packet. `RunRemainder` then stores how many packets are still to be sent.
    fn run(
        &mut self,
        now: Instant,
        id: PathId,
        out: &mut TransmitBuffer<'_>,
        size: usize,
        most: usize,
        purpose: Purpose,
    ) -> Option<Transmit> {
        let mut written = 0;
        let idle = self.is_idle(id);
        for made in 1..=most {
            let Some(buffer) = out.buffer.get_mut(written..written + size) else { break };
            let Some(BuiltPacket { length, phantom }) = self.packet(now, id, buffer, purpose) else { break };
            written += length;
            let last = length + phantom < size || !self.has_more(id, purpose);
            if self.config.payload == Payload::Length {
                let rest = RunRemainder { path: id, size, most: most - made, purpose };
                self.scheduler.leave((!last && made < most).then_some(rest));
                if idle {
                    self.arm(id);
                }
                return self.transmission(id, written, written, phantom);
            }
            if last {
                break;
            }
        }
        if idle {
            self.arm(id);
        }
        self.transmission(id, written, size, 0)
    }

    /// Whether the path has more to send after the last packet.
    fn has_more(&self, id: PathId, purpose: Purpose) -> bool {
        match purpose {
            Purpose::Datagram => self.paths.get(id).is_some_and(|path| !path.outbox.is_empty()),
            _ => self.contents.has_data(),
        }
    }

    /// Whether no packet of a path is outstanding. Only then must the next packet arm the path's
    /// timer. With outstanding packets the timer is armed already, and one more packet only moves
    /// its deadline later.
    fn is_idle(&self, id: PathId) -> bool {
        self.paths.get(id).is_none_or(|path| path.send.outstanding() == 0)
    }

    fn single(
        &mut self,
        now: Instant,
        id: PathId,
        out: &mut TransmitBuffer<'_>,
        size: usize,
        purpose: Purpose,
    ) -> Option<Transmit> {
        let buffer = out.buffer.get_mut(..size.min(out.buffer.len()))?;
        let idle = self.is_idle(id);
        let BuiltPacket { length, phantom } = self.packet(now, id, buffer, purpose)?;
        // An ACK asks for no timeout, but too many do.
        if idle || self.paths.get(id).is_some_and(|path| path.send.is_crowded()) {
            self.arm(id);
        }
        self.transmission(id, length, length, phantom)
    }

    fn transmission(&mut self, id: PathId, size: usize, segment: usize, phantom: usize) -> Option<Transmit> {
        if size == 0 {
            return None;
        }
        let path = self.paths.quietly(id)?;
        debug_assert!(path.armed.covers(path.send.deadline()), "what was sent is waited for");
        path.spend((size + phantom) as u64);
        let capable = path.send.timeouts() == 0 && path.send.ecn.is_used();
        let ecn = if capable { Ecn::Ect0 } else { Ecn::NotEct };
        let dscp = if path.send.dscp_support.is_used() { self.config.dscp } else { Dscp::BestEffort };
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

    /// Makes one packet in `buffer`, at most as large as that. `None`, and no number used, if there
    /// was nothing to put in.
    fn packet(
        &mut self,
        now: Instant,
        id: PathId,
        buffer: &mut [u8],
        purpose: Purpose,
    ) -> Option<BuiltPacket> {
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
        let mut packet_data = PacketData::new();
        let eliciting = self.content(now, id, &mut writer, &mut packet_data, purpose);
        if writer.len() == start {
            return None;
        }
        let (sealed, phantom) = (writer.len() + TAG_LEN, writer.phantom());
        debug_assert_eq!(HEADER_LEN + STAMP_LEN, start);
        let bulk = matches!(purpose, Purpose::Data | Purpose::Datagram);
        let app_limited = !bulk || self.scheduler.is_limited() || !self.has_more(id, purpose);
        let packet = buffer.get_mut(envelope..envelope + sealed)?;
        if self.sealer.seal(id, number, packet, HEADER_LEN).is_err() {
            self.end(super::close::WORN_OUT_CODE, "the keys are worn out", false);
            return None;
        }
        let length = envelope + sealed;
        let path = self.paths.quietly(id)?;
        path.route.enclose(now, buffer.get_mut(..length)?);
        let counted = purpose != Purpose::Size;
        let bytes = (length + phantom) as u32;
        path.send
            .on_sent(now, Outbound { bytes, eliciting, counted, app_limited, packet_data: &packet_data });
        let is_data = matches!(purpose, Purpose::Data | Purpose::Datagram | Purpose::Tail);
        self.scheduler.on_sent(u64::from(bytes), is_data);
        match purpose {
            Purpose::Size => path.send.mtu.sent(length, number),
            Purpose::Data | Purpose::Datagram | Purpose::Tail => {
                path.send.pacer.spend(u64::from(bytes));
                let sent = byway_control::Sent { now, bytes, in_flight: path.send.in_flight, app_limited };
                self.controller.on_sent(id, &sent);
            }
            Purpose::Pending if path.state == PathState::Choked => path.probe = Some(number),
            _ => {}
        }
        Some(BuiltPacket { length, phantom })
    }

    /// Writes the frames of one packet. Returns whether it must be acknowledged.
    fn content(
        &mut self,
        now: Instant,
        id: PathId,
        writer: &mut Writer<'_>,
        packet_data: &mut PacketData,
        purpose: Purpose,
    ) -> bool {
        match purpose {
            Purpose::Close => {
                if let Some((code, reason)) = self.session.closing() {
                    Frame::Close { code, reason }.write(writer);
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
                if let Some(moving) = self.paths.get(id).and_then(|path| path.moving.as_ref()).sure() {
                    Frame::PathChallenge(moving.challenge).write(writer);
                }
                false
            }
            Purpose::Pending => {
                self.write_pending(now, id, writer);
                self.write_probe(id, writer, packet_data);
                true
            }
            Purpose::Control => self.write_control(now, writer, packet_data),
            Purpose::Echo(id) => {
                if let Some(receiving) = self.peer_paths.get_mut(id) {
                    self.acks.write_echo(now, receiving, writer);
                }
                false
            }
            Purpose::Data => {
                self.write_beside(now, id, writer);
                if self.config.ack_after.is_some() && self.contents.has_data() {
                    self.write_riding_ack(now, id, writer);
                }
                let before = writer.len();
                self.contents.out().fill(writer, packet_data);
                if writer.len() == before {
                    writer.truncate(HEADER_LEN + STAMP_LEN);
                }
                true
            }
            Purpose::Datagram => {
                self.write_beside(now, id, writer);
                let before = writer.len();
                if let Some(path) = self.paths.quietly(id).sure() {
                    self.contents.datagrams().write(path, writer, packet_data);
                }
                if writer.len() == before {
                    writer.truncate(HEADER_LEN + STAMP_LEN);
                } else {
                    self.write_riding_ack(now, id, writer);
                }
                true
            }
            Purpose::Tail => {
                self.contents.out().repeat_tail(writer, packet_data);
                true
            }
        }
    }

    /// Probing uses data packets (mPath section 2.1). After a timeout the probe is as large, and
    /// has no data: a dead path would take what it lost again and again, and others carry it.
    fn write_probe(&mut self, id: PathId, writer: &mut Writer<'_>, packet_data: &mut PacketData) {
        let Some(path) = self.paths.get(id).filter(|path| path.state == PathState::Probing) else { return };
        if !self.session.is_confirmed() {
            return;
        }
        if path.send.timeouts() == 0 {
            self.contents.out().fill(writer, packet_data);
        } else if self.contents.has_data()
            && let Some(padding) = writer.claim(writer.room())
        {
            padding.fill(0);
        }
    }

    fn write_pending(&mut self, now: Instant, id: PathId, writer: &mut Writer<'_>) {
        let Some(path) = self.paths.quietly(id).sure() else { return };
        for challenge in path.pending.responses.drain(..) {
            Frame::PathResponse(challenge).write(writer);
        }
        if core::mem::take(&mut path.pending.challenge)
            && let AddressValidation::Unproven { challenge, .. } = path.address
        {
            Frame::PathChallenge(challenge).write(writer);
            path.probe_at = Some(now + path.challenge_interval());
        }
        if core::mem::take(&mut path.pending.ping) {
            Frame::Ping.write(writer);
        }
    }

    /// Writes frames that accompany data: a PING on a silent path, and a path hint.
    fn write_beside(&mut self, now: Instant, id: PathId, writer: &mut Writer<'_>) {
        if self.paths.get(id).is_some_and(|path| path.send.timeouts() > 0) {
            Frame::Ping.write(writer);
        }
        self.write_hint(now, id, writer);
    }

    fn write_hint(&mut self, now: Instant, id: PathId, writer: &mut Writer<'_>) {
        let Some(path) = self.paths.quietly(id).sure() else { return };
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
        path.hint.1 = now + HINT_INTERVAL.max(srtt / 2);
        if stale {
            Frame::PathHint(hint).write(writer);
            path.hint.0 = Some(hint);
        }
    }

    fn write_riding_ack(&mut self, now: Instant, id: PathId, writer: &mut Writer<'_>) {
        let Self { acks, peer_paths, paths, scheduler, .. } = self;
        let riding = acks.riding(now, id, peer_paths, paths).filter(|_| writer.room() >= ENTRY_ROOM);
        if let Some(receiving) = riding.and_then(|soon| peer_paths.get_mut(soon)) {
            acks.write_riding(now, receiving, scheduler, writer);
        }
    }

    fn write_control(&mut self, now: Instant, writer: &mut Writer<'_>, packet_data: &mut PacketData) -> bool {
        let Self { acks, peer_paths, scheduler, contents, pending_events, .. } = self;
        acks.write(now, peer_paths, scheduler, writer);
        let before = writer.len();
        if contents.incoming().wants_to_send() {
            let rtt = acks.snacks().longest_round_trip(now, peer_paths);
            contents.incoming().fill(now, rtt, writer, packet_data);
        }
        pending_events.write_answers(writer);
        while writer.room() >= 16
            && let Some(id) = contents.farewells().pop()
        {
            Frame::PathDropped(id).write(writer);
            packet_data.push(Carried::PathDropped(id));
        }
        let eliciting = writer.len() > before;
        if acks.snacks().write(now, peer_paths, contents.incoming(), writer) {
            scheduler.reconsider();
        }
        eliciting
    }
}
