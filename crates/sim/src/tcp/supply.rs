//! The data that an application has written, and the part that was handed to paths.

use super::flow_spec::Demand;
use super::pace::Pace;
use byway_wire::Instant;

#[derive(Debug)]
enum SupplyKind {
    Bulk,
    Size,
    Paced(Pace),
}

#[derive(Debug)]
pub(super) struct Supply {
    kind: SupplyKind,
    /// Bytes written so far. For some applications they are counted only when they are sent.
    written: u64,
    /// Bytes handed to paths, minus those that paths returned.
    taken: u64,
    stopped: bool,
    buffer: u64,
}

impl Supply {
    pub(super) fn new(demand: Demand, buffer: Option<u64>) -> Self {
        let (kind, written) = match demand {
            Demand::Bulk => (SupplyKind::Bulk, 0),
            Demand::Size(bytes) => (SupplyKind::Size, bytes),
            Demand::Rate(steps) => (SupplyKind::Paced(Pace::new(steps)), 0),
        };
        let stopped = matches!(kind, SupplyKind::Size);
        Self { kind, written, taken: 0, stopped, buffer: buffer.unwrap_or(u64::MAX) }
    }

    /// Ends the application's data.
    pub(super) fn stop(&mut self, now: Instant, delivered: u64) {
        self.refresh(now, delivered);
        self.stopped = true;
        if matches!(self.kind, SupplyKind::Size) {
            self.written = self.taken;
        }
    }

    pub(super) fn set_rate(&mut self, now: Instant, rate: Option<u64>, delivered: u64) {
        self.refresh(now, delivered);
        match &mut self.kind {
            SupplyKind::Paced(pace) => pace.set(now, rate),
            _ => self.kind = SupplyKind::Paced(Pace::new(vec![(now, rate)])),
        }
        self.refresh(now, delivered);
    }

    fn is_unlimited(&self) -> bool {
        !self.stopped
            && match &self.kind {
                SupplyKind::Bulk => true,
                SupplyKind::Paced(pace) => pace.is_unlimited(),
                SupplyKind::Size => false,
            }
    }

    /// Lets the application write until `now`. `delivered` bytes have left its buffer.
    #[inline]
    pub(super) fn refresh(&mut self, now: Instant, delivered: u64) {
        if self.stopped {
            return;
        }
        if let SupplyKind::Paced(pace) = &mut self.kind {
            let room = self.buffer.saturating_sub(self.written.saturating_sub(delivered));
            let written = pace.take(now, room);
            if !pace.is_unlimited() {
                self.written += written;
            }
        }
    }

    /// Bytes that could be sent now.
    pub(super) fn available(&self, delivered: u64) -> u64 {
        let waiting = if self.is_unlimited() { u64::MAX } else { self.written - self.taken };
        waiting.min(self.buffer.saturating_sub(self.taken.saturating_sub(delivered)))
    }

    pub(super) fn take(&mut self, bytes: u64) {
        self.taken += bytes;
        self.written = self.written.max(self.taken);
    }

    /// The application writes `bytes` by hand.
    pub(super) fn write(&mut self, bytes: u64) {
        self.written += bytes;
    }

    /// Bytes written and handed to no path yet.
    pub(super) fn waiting(&self) -> u64 {
        self.written.saturating_sub(self.taken)
    }

    /// Takes back bytes that a path did not deliver.
    pub(super) fn give_back(&mut self, bytes: u64) {
        self.taken = self.taken.saturating_sub(bytes);
    }

    /// Whether nothing more will be written.
    pub(super) fn has_ended(&self) -> bool {
        self.stopped
    }

    /// Bytes that the application has written.
    pub(super) fn written(&self) -> u64 {
        self.written
    }

    /// When `bytes` bytes are likely to be available.
    pub(super) fn ready_at(&self, bytes: u64) -> Instant {
        match &self.kind {
            SupplyKind::Paced(pace) if !self.stopped => {
                let missing = bytes.saturating_sub(self.written - self.taken).max(1);
                let at = if pace.is_unlimited() { pace.when(u64::MAX) } else { pace.when(missing) };
                at.unwrap_or(Instant::FAR_FUTURE)
            }
            _ => Instant::FAR_FUTURE,
        }
    }
}
