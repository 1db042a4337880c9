//! Paths of bundles: opened, dropped, ended.

use super::{SLOT_COUNT, Stack, StackEvent};
use crate::tcp::connection::{Connection, NO_ENTRY};
use crate::tcp::receive::ReadPattern;
use crate::tcp::segment::SynFields;
use crate::tcp::{SubflowState, TcpConfig};
use byway_wire::{Instant, Local, PathId};
use core::net::SocketAddr;

impl Stack {
    /// Opens a path of a bundle.
    pub(super) fn connect(&mut self, now: Instant, index: u32, place: usize) {
        let bundle = &mut self.bundles[index as usize];
        let Some(candidate) = bundle.candidates.get_mut(place).filter(|candidate| candidate.free) else {
            return;
        };
        candidate.free = false;
        let subflow = candidate.subflow;
        let (options, path) = (bundle.options.clone(), bundle.name_path());
        let (tag, answer) = (bundle.tag, bundle.answer);
        let Some(slot) = self.claim(now, (subflow.local, subflow.remote), &options, ReadPattern::All) else {
            return;
        };
        let connection = &mut self.connections[slot as usize];
        (connection.bundle, connection.path, connection.place) = (index, path, place);
        (connection.opening.tag, connection.opening.answer) = (tag, answer);
        self.bundles[index as usize].connections.push(slot);
        self.ready(slot);
    }

    /// A slot for a new connection. `None`: all are taken.
    pub(super) fn claim(
        &mut self,
        now: Instant,
        way: (Local, SocketAddr),
        options: &TcpConfig,
        reading: ReadPattern,
    ) -> Option<u32> {
        let (slot, port) = match self.free.pop_front() {
            Some(slot) => {
                let port = self.connections[slot as usize].port;
                (slot, port.wrapping_add(SLOT_COUNT) & 0xff_ffff)
            }
            None if (self.connections.len() as u32) < SLOT_COUNT => {
                (self.connections.len() as u32, self.connections.len() as u32)
            }
            None => return None,
        };
        let mut connection = Connection::new(now, port, way, options, reading);
        connection.opening =
            SynFields { port, shift: connection.receive.shift, sack: options.sack, tag: 0, answer: 0 };
        match self.connections.get_mut(slot as usize) {
            Some(place) => {
                // It may still stand in the queue and among the timers.
                (connection.queued, connection.scheduled) = (place.queued, place.scheduled);
                *place = connection;
            }
            None => self.connections.push(connection),
        }
        Some(slot)
    }

    /// Removes a connection from its bundle, and keeps its report.
    pub(super) fn detach(&mut self, now: Instant, slot: u32) {
        let connection = &mut self.connections[slot as usize];
        let index = core::mem::replace(&mut connection.bundle, NO_ENTRY);
        // A connection that only receives has none.
        let Some(bundle) = self.bundles.get_mut(index as usize) else { return };
        let mut report = connection.report(bundle);
        (report.state, report.closed) = (SubflowState::Closed, Some(now));
        // What it still had goes another way.
        bundle.supply.give_back(connection.scoreboard.abandon());
        bundle.closed.push((connection.path, report));
        bundle.controller.close(connection.path);
        bundle.connections.retain(|&other| other != slot);
        if bundle.connections.is_empty() {
            if bundle.candidates.is_empty() {
                self.free_bundles.push(index);
            } else if self.watched {
                self.events.push(StackEvent::Gone(index));
            }
        } else {
            self.settle_bundle(index);
        }
    }

    /// After something happened to a path of a bundle: the end of its data, the wishes of its
    /// controller.
    pub(super) fn after(&mut self, now: Instant, index: u32) {
        let bundle = &mut self.bundles[index as usize];
        if bundle.finished.is_none() && bundle.is_delivered() {
            bundle.finished = Some(now);
            for &slot in &bundle.connections {
                self.connections[slot as usize].closing = true;
            }
            self.settle_bundle(index);
            return;
        }
        if bundle.connections.len() > 1 {
            self.settle_bundle(index);
        }
        self.fulfil(now, index);
    }

    /// Opens and drops paths as the controller wants.
    fn fulfil(&mut self, now: Instant, index: u32) {
        let bundle = &mut self.bundles[index as usize];
        if bundle.candidates.len() < 2 || bundle.finished.is_some() {
            return;
        }
        let wants = bundle.controller.wants();
        let open = wants.open;
        let leave: Vec<_> = wants
            .drop
            .iter()
            .map(|&path| (path, true))
            .chain(wants.forget.iter().map(|&path| (path, false)))
            .collect();
        for (path, again) in leave {
            self.leave(path, again, index);
        }
        let bundle = &self.bundles[index as usize];
        let free = bundle.candidates.iter().enumerate().filter(|(_, candidate)| candidate.free);
        let places: Vec<usize> = free.map(|(place, _)| place).take(open).collect();
        for place in places {
            self.connect(now, index, place);
        }
    }

    /// Drops a path. Its data are sent on other paths.
    fn leave(&mut self, path: PathId, again: bool, index: u32) {
        let bundle = &mut self.bundles[index as usize];
        let found =
            bundle.connections.iter().copied().find(|&slot| self.connections[slot as usize].path == path);
        let Some(slot) = found else { return };
        let connection = &mut self.connections[slot as usize];
        if connection.closing {
            return;
        }
        connection.abandon(bundle);
        connection.closing = true;
        bundle.controller.close(path);
        bundle.candidates[connection.place].free = again;
        self.settle_bundle(index);
    }
}
