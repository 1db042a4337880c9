//! Decides which paths over TCP the session's controller governs. The kernel controls the
//! congestion of TCP connections. A controller that yields to other traffic
//! [governs paths over TCP](Controller::governs_connections) too: these paths send what both the
//! controller and the kernel allow.

use super::path::Path;
use crate::path::send::{NewlyAcked, SendPath};
use crate::path::transport::PathTransport;
use crate::route::Route;
use alloc::boxed::Box;
use alloc::vec::Vec;
use byway_control::{
    Acked, Allowance, Congested, Controller, Delay, Opened, PathDemand, ProbeResult, Sent, Undo,
};
use byway_wire::{Instant, PathId};

/// A congestion window counts as used only if at least 1/`USED_SHARE` of it was in flight.
/// Otherwise something else limits the path, such as the processor (RFC 9002 section 7.8).
const USED_SHARE: u64 = 4;

/// The allowance of a path whose congestion the kernel controls: as much as its socket takes.
const KERNEL_ALLOWANCE: Allowance =
    Allowance { window: u64::MAX, rate: Some(u64::MAX), choked: false, spare: false, delay_limit: None };

/// A session's controller, and the paths whose congestion the kernel controls.
#[derive(Debug)]
pub(super) struct Governor {
    controller: Box<dyn Controller>,
    /// Paths in use that the kernel alone governs.
    kernels: Vec<PathId>,
    /// The one-way delays of the ACK entry that is being read. The memory is kept, so that no ACK
    /// allocates.
    delays: Vec<Delay>,
}

impl Governor {
    pub const fn new(controller: Box<dyn Controller>) -> Self {
        Self { controller, kernels: Vec::new(), delays: Vec::new() }
    }

    /// Tells `send` whether UDP or TCP carries the packets of a new path. If the congestion
    /// controller yields to other traffic, the session itself detects losses over TCP too. Then
    /// `send` treats every path as UDP.
    pub fn entrust(&self, send: &mut SendPath, route: &Route) {
        if self.controller.yields() {
            return;
        }
        send.set_carriage(route.carriage());
        if self.controller.governs_connections() && route.local.is_connection() {
            send.set_carried_whole();
        }
    }

    /// Registers a path that may now carry data: with the controller, or as a TCP path that the
    /// kernel controls.
    pub fn take(&mut self, path: PathId, carriage: PathTransport, opened: &Opened) {
        if carriage == PathTransport::Connection && !self.controller.governs_connections() {
            self.kernels.push(path);
        } else {
            self.controller.open(path, opened);
        }
    }

    /// Returns the list for the one-way delays of an ACK entry, emptied.
    #[inline]
    pub fn empty_delays(&mut self) -> &mut Vec<Delay> {
        self.delays.clear();
        &mut self.delays
    }

    /// Returns the last one-way delay of the ACK entry, if it had any.
    pub fn last_delay(&self) -> Option<Delay> {
        self.delays.last().copied()
    }

    /// Passes the packets that an ACK entry acknowledged to the controller. `latest`: when the
    /// latest of these was sent, and whether the application limited it.
    #[inline]
    pub fn tell_progress(
        &mut self,
        now: Instant,
        path: &Path,
        progress: &NewlyAcked,
        (sent_at, app_limited): (Instant, bool),
    ) {
        if self.is_kernels(path.id()) {
            return;
        }
        let (send, rtt) = (&path.send, &path.send.rtt);
        // A window that is hardly used limits nothing (RFC 9002 section 7.8). Something else does,
        // such as the processor.
        let flight = send.in_flight + progress.bytes;
        let app_limited = app_limited || flight.saturating_mul(USED_SHARE) < path.allowance.window;
        self.controller.on_acked(
            path.id(),
            &Acked {
                now,
                bytes: progress.bytes,
                packets: progress.packets,
                sent_at,
                rtt: progress.rtt,
                srtt: rtt.smoothed(),
                min_rtt: rtt.minimum(),
                delays: &self.delays,
                in_flight: send.in_flight,
                app_limited,
                delivery_rate: send.delivery_rate(),
                ce: progress.ce,
            },
        );
    }

    #[inline]
    fn is_kernels(&self, path: PathId) -> bool {
        !self.kernels.is_empty() && self.kernels.contains(&path)
    }

    /// Returns the controller, if it governs this path. `None`: the kernel does.
    #[inline]
    fn of(&mut self, path: PathId) -> Option<&mut dyn Controller> {
        if self.is_kernels(path) { None } else { Some(self.controller.as_mut()) }
    }
}

impl Controller for Governor {
    fn name(&self) -> &'static str {
        self.controller.name()
    }

    fn yields(&self) -> bool {
        self.controller.yields()
    }

    fn own_rate(&self) -> Option<u64> {
        self.controller.own_rate()
    }

    fn governs_connections(&self) -> bool {
        self.controller.governs_connections()
    }

    fn asks_once_probed(&self) -> bool {
        self.controller.asks_once_probed()
    }

    fn open(&mut self, path: PathId, opened: &Opened) {
        self.take(path, PathTransport::Datagrams, opened);
    }

    fn close(&mut self, path: PathId) {
        if self.is_kernels(path) {
            self.kernels.retain(|kernels| *kernels != path);
        } else {
            self.controller.close(path);
        }
    }

    fn on_sent(&mut self, path: PathId, sent: &Sent) {
        if let Some(controller) = self.of(path) {
            controller.on_sent(path, sent);
        }
    }

    fn on_acked(&mut self, path: PathId, acked: &Acked<'_>) {
        if let Some(controller) = self.of(path) {
            controller.on_acked(path, acked);
        }
    }

    fn on_congested(&mut self, path: PathId, congested: &Congested) {
        if let Some(controller) = self.of(path) {
            controller.on_congested(path, congested);
        }
    }

    fn on_undo(&mut self, path: PathId, undo: &Undo) {
        if let Some(controller) = self.of(path) {
            controller.on_undo(path, undo);
        }
    }

    fn on_probe(&mut self, path: PathId, probe: &ProbeResult) {
        if let Some(controller) = self.of(path) {
            controller.on_probe(path, probe);
        }
    }

    fn on_route_change(&mut self, path: PathId, now: Instant) {
        if let Some(controller) = self.of(path) {
            controller.on_route_change(path, now);
        }
    }

    fn on_packet_size(&mut self, path: PathId, bytes: u32) {
        if let Some(controller) = self.of(path) {
            controller.on_packet_size(path, bytes);
        }
    }

    fn tick(&mut self, now: Instant) -> Option<Instant> {
        self.controller.tick(now)
    }

    #[inline]
    fn allowance(&self, path: PathId) -> Allowance {
        if self.is_kernels(path) { KERNEL_ALLOWANCE } else { self.controller.allowance(path) }
    }

    fn wants(&self) -> PathDemand<'_> {
        self.controller.wants()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use byway_control::Class;

    const OPENED: Opened = Opened { now: Instant::ZERO, proxied: false, packet_size: 1200, rtt: None };

    fn governor(class: Class) -> Governor {
        let mut governor = Governor::new(class.controller(1));
        governor.take(PathId(0), PathTransport::Datagrams, &OPENED);
        governor.take(PathId(1), PathTransport::Connection, &OPENED);
        governor
    }

    #[test]
    fn a_class_that_takes_its_share_leaves_a_connection_to_the_kernel() {
        let mut governor = governor(Class::Normal);
        let alone = governor.allowance(PathId(0));
        assert_eq!(governor.allowance(PathId(1)), KERNEL_ALLOWANCE);
        let (trigger, now) = (byway_control::Trigger::Loss, Instant::from_millis(9));
        let lost =
            Congested { trigger, first_sent_at: now, sent_at: now, now, bytes: 1200, in_flight: 9_600 };
        governor.on_congested(PathId(1), &lost);
        assert_eq!(governor.allowance(PathId(0)), alone, "what befalls the connection is nothing to it");
        governor.on_congested(PathId(0), &lost);
        assert!(governor.allowance(PathId(0)).window < alone.window);
        governor.close(PathId(1));
        assert_eq!(governor.allowance(PathId(1)), Allowance::default());
    }

    #[test]
    fn a_class_that_yields_stands_above_the_kernel() {
        let governor = governor(Class::Background);
        let allowance = governor.allowance(PathId(1));
        assert!(
            allowance.window < 1 << 20 && allowance.delay_limit.is_none_or(|limit| limit > 0),
            "{allowance:?}"
        );
    }
}
