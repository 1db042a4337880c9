//! Which packets of a path are lost. Later packets tell, or time, or that no answer comes (RFC
//! 9002, section 6).

use super::{ACK_DELAY, DetectedLosses, MAX_TIMEOUT, SILENCE_TIMEOUTS, SendPath};
use crate::data::Carried;
use crate::invariant::Invariant as _;
use crate::path::reordering::REORDER_PACKETS;
use crate::path::sent_packets::PacketState;
use byway_wire::{Duration, Instant};

impl SendPath {
    /// Handles packets that the receiver reports as missing. Calls `lost` for their data, except on
    /// a path over TCP, where the kernel repeats them.
    pub fn on_missing(
        &mut self,
        now: Instant,
        missing: impl Iterator<Item = (u64, u64)>,
        mut lost: impl FnMut(&Carried),
    ) -> Option<DetectedLosses> {
        let mut losses = None;
        if !self.transport.loses() {
            return losses;
        }
        for (start, end) in missing {
            for number in start.max(self.sent_packets.base())..end.min(self.next_number()) {
                self.lose(now, number, &mut losses, &mut lost);
            }
        }
        losses
    }

    /// Finds lost packets below the largest acknowledged number, without a report by the receiver.
    /// Packets are lost once older than the RTT plus a tolerance. If the receiver counted more
    /// losses than this side, the smallest RTT suffices for packets `REORDER_PACKETS` or more
    /// below.
    pub fn detect_losses(&mut self, now: Instant, mut lost: impl FnMut(&Carried)) -> Option<DetectedLosses> {
        let largest = self.largest_acked.filter(|_| self.transport.loses())?;
        let patience = self.patience();
        let counted = self.reported.0 > self.totals.lost;
        let minimum = self.rtt.minimum();
        let is_old = |sent_at: Instant| sent_at + patience <= now;
        let is_told = |number: u64, sent_at: Instant| {
            counted && number + REORDER_PACKETS <= largest && sent_at + minimum <= now
        };
        let (mut number, sent_at) = self.sent_packets.oldest()?;
        if number >= largest || !is_old(sent_at) && !is_told(number, sent_at) {
            return None; // as nearly always
        }
        let mut losses = None;
        while number < largest {
            let Some(entry) = self.sent_packets.get(number).sure() else { break };
            if entry.fate == PacketState::Outstanding {
                if !is_old(entry.sent_at) && !is_told(number, entry.sent_at) {
                    break;
                }
                self.lose(now, number, &mut losses, &mut lost);
            }
            number += 1;
        }
        losses
    }

    /// Returns the time after which an unacknowledged packet counts as lost.
    pub(super) fn patience(&self) -> Duration {
        self.expected() + self.lateness.wait()
    }

    pub(super) fn lose(
        &mut self,
        now: Instant,
        number: u64,
        losses: &mut Option<DetectedLosses>,
        lost: &mut impl FnMut(&Carried),
    ) {
        // An ACK that acknowledges many packets and shows a loss does not make the flight smaller
        // that met the loss (RFC 5681, FlightSize).
        let (acked_at, before_ack) = self.before_ack;
        let in_flight = if acked_at == now { before_ack.max(self.in_flight) } else { self.in_flight };
        let Some((PacketState::Outstanding, packet)) =
            self.sent_packets.get(number).map(|entry| entry.fate).and_then(|fate| {
                if fate == PacketState::Outstanding {
                    self.sent_packets.settle(number, PacketState::Lost)
                } else {
                    None
                }
            })
        else {
            return;
        };
        let packet = packet.clone();
        packet.first.iter().for_each(&mut *lost);
        if packet.more {
            self.sent_packets.more(number).for_each(lost);
        }
        if !packet.counted {
            self.mtu.lost(now, number);
            return;
        }
        self.mtu.suspect(now, packet.bytes as usize, packet.sent_at);
        self.in_flight -= u64::from(packet.bytes);
        self.totals.lost += 1;
        self.totals.lost_bytes += u64::from(packet.bytes);
        let sum = losses.get_or_insert(DetectedLosses {
            packets: 0,
            bytes: 0,
            first_sent_at: packet.sent_at,
            last_sent_at: packet.sent_at,
            in_flight,
        });
        sum.packets += 1;
        sum.bytes += u64::from(packet.bytes);
        sum.last_sent_at = packet.sent_at;
    }

    pub(super) fn loss_deadline(&self) -> Option<Instant> {
        let largest = self.largest_acked.filter(|_| self.transport.loses())?;
        let (number, sent_at) = self.sent_packets.oldest()?;
        (number < largest).then(|| sent_at + self.patience())
    }

    /// Returns the time at which silence on this path becomes a timeout. `None`: no packet is
    /// outstanding.
    #[must_use]
    pub fn timeout_deadline(&self) -> Option<Instant> {
        if self.sent_packets.outstanding() == 0 {
            return None;
        }
        if self.is_crowded() {
            return Some(self.last_sent_at);
        }
        let timeout = self.transport.patience(self.rtt.probe_timeout(ACK_DELAY));
        let backed_off = timeout.saturating_mul(1 << self.timeouts.min(10)).min(MAX_TIMEOUT.max(timeout));
        let silence = self.last_sent_at + backed_off;
        // If something new is sent now and then, that silence never comes. So it is one, too, if
        // nothing is heard for long.
        let (_, oldest) = self.sent_packets.oldest()?;
        let (_, heard_at) = self.delivered;
        if !self.transport.loses() {
            // What is under way stays so after a timeout, and what asks may wait for its socket.
            return Some(oldest.max(heard_at).max(self.timed_out_at) + backed_off);
        }
        Some(silence.min(oldest.max(heard_at) + backed_off * SILENCE_TIMEOUTS))
    }

    /// Handles a timeout. Over UDP, all outstanding packets count as lost, so that their data goes
    /// out again on the best path. Late ACKs undo these losses. TCP repeats packets itself, so
    /// nothing counts as lost unless the list of sent packets is too long.
    pub fn on_timeout(&mut self, now: Instant, mut lost: impl FnMut(&Carried)) -> Option<DetectedLosses> {
        self.timeouts = self.timeouts.saturating_add(1);
        self.timed_out_at = now;
        self.dscp_support.on_timeout();
        self.totals.timeouts += 1;
        let mut losses = None;
        if self.transport.loses() || self.is_crowded() {
            for number in self.sent_packets.base()..self.next_number() {
                self.lose(now, number, &mut losses, &mut lost);
            }
        }
        losses
    }

    /// The path will carry nothing more: all that is outstanding goes to `lost`.
    pub fn abandon(&mut self, now: Instant, mut lost: impl FnMut(&Carried)) {
        let mut losses = None;
        for number in self.sent_packets.base()..self.next_number() {
            self.lose(now, number, &mut losses, &mut lost);
        }
    }
}
