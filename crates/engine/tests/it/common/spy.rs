//! A controller that writes down what it is told, and leaves the judgement to another.

use byway_control::{
    Acked, Allowance, Congested, Controller, Opened, PathDemand, ProbeResult, Sent, Trigger, Undo,
};
use byway_wire::{Instant, PathId};
use std::sync::{Arc, Mutex};

/// What a controller was told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Told {
    Opened(PathId),
    Congested { path: PathId, trigger: Trigger, bytes: u64 },
    Undone(PathId),
}

/// What was written down, in order.
pub type Log = Arc<Mutex<Vec<Told>>>;

#[derive(Debug)]
pub struct Spy {
    judge: Box<dyn Controller>,
    log: Log,
}

impl Spy {
    pub fn new(judge: Box<dyn Controller>, log: &Log) -> Self {
        Self { judge, log: Arc::clone(log) }
    }

    fn note(&self, told: Told) {
        self.log.lock().expect("one thread").push(told);
    }
}

impl Controller for Spy {
    fn name(&self) -> &'static str {
        self.judge.name()
    }

    fn open(&mut self, path: PathId, opened: &Opened) {
        self.note(Told::Opened(path));
        self.judge.open(path, opened);
    }

    fn close(&mut self, path: PathId) {
        self.judge.close(path);
    }

    fn on_sent(&mut self, path: PathId, sent: &Sent) {
        self.judge.on_sent(path, sent);
    }

    fn on_acked(&mut self, path: PathId, acked: &Acked<'_>) {
        self.judge.on_acked(path, acked);
    }

    fn on_congested(&mut self, path: PathId, congested: &Congested) {
        let Congested { trigger, bytes, .. } = *congested;
        self.note(Told::Congested { path, trigger, bytes });
        self.judge.on_congested(path, congested);
    }

    fn on_undo(&mut self, path: PathId, undo: &Undo) {
        self.note(Told::Undone(path));
        self.judge.on_undo(path, undo);
    }

    fn on_probe(&mut self, path: PathId, probe: &ProbeResult) {
        self.judge.on_probe(path, probe);
    }

    fn on_route_change(&mut self, path: PathId, now: Instant) {
        self.judge.on_route_change(path, now);
    }

    fn on_packet_size(&mut self, path: PathId, bytes: u32) {
        self.judge.on_packet_size(path, bytes);
    }

    fn tick(&mut self, now: Instant) -> Option<Instant> {
        self.judge.tick(now)
    }

    fn allowance(&self, path: PathId) -> Allowance {
        self.judge.allowance(path)
    }

    fn wants(&self) -> PathDemand<'_> {
        self.judge.wants()
    }
}
