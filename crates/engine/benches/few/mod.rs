//! A controller that opens no more than so many paths, and leaves all other judgement to another.

use byway_control::{Acked, Allowance, Congested, Controller, Opened, PathDemand, ProbeResult, Sent, Undo};
use byway_wire::{Instant, PathId};

#[derive(Debug)]
pub struct Few {
    judge: Box<dyn Controller>,
    most: usize,
    open: usize,
}

impl Few {
    pub fn new(judge: Box<dyn Controller>, most: usize) -> Self {
        Self { judge, most, open: 0 }
    }
}

impl Controller for Few {
    fn name(&self) -> &'static str {
        self.judge.name()
    }

    fn open(&mut self, path: PathId, opened: &Opened) {
        self.open += 1;
        self.judge.open(path, opened);
    }

    fn close(&mut self, path: PathId) {
        self.open -= 1;
        self.judge.close(path);
    }

    fn on_sent(&mut self, path: PathId, sent: &Sent) {
        self.judge.on_sent(path, sent);
    }

    fn on_acked(&mut self, path: PathId, acked: &Acked<'_>) {
        self.judge.on_acked(path, acked);
    }

    fn on_congested(&mut self, path: PathId, congested: &Congested) {
        self.judge.on_congested(path, congested);
    }

    fn on_undo(&mut self, path: PathId, undo: &Undo) {
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
        let wants = self.judge.wants();
        PathDemand { open: wants.open.min(self.most.saturating_sub(self.open)), ..wants }
    }
}
