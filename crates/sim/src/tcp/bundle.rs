//! The state that the paths of a flow share: the controller, the data, and the paths to open.

use super::flow_spec::{Flow, Subflow, SubflowReport};
use super::options::TcpConfig;
use super::supply::Supply;
use byway_control::{Controller, Opened};
use byway_wire::{Instant, PathId};

/// A path that a flow may have.
#[derive(Clone, Copy, Debug)]
pub(super) struct Candidate {
    pub subflow: Subflow,
    /// Whether the path may be opened, perhaps again.
    pub free: bool,
}

#[derive(Debug)]
pub(super) struct Bundle {
    pub controller: Box<dyn Controller>,
    pub supply: Supply,
    pub options: TcpConfig,
    pub candidates: Vec<Candidate>,
    /// Number of candidates that are opened at the start.
    pub at_start: usize,
    /// Slots of the connections that are not over.
    pub connections: Vec<u32>,
    /// The final reports of paths that were closed.
    pub closed: Vec<(PathId, SubflowReport)>,
    next_path: u32,
    pub start: Instant,
    pub stop: Instant,
    pub tick_at: Instant,
    window_steps: Vec<(Instant, u64)>,
    /// Most bytes unacknowledged per path.
    pub limit: u64,
    steps_begun: usize,
    pub tag: u64,
    /// Bytes of the answer that is asked for.
    pub answer: u64,
    pub delivered: u64,
    pub started: Option<Instant>,
    pub finished: Option<Instant>,
    /// Whether a path could send more than the application provides.
    pub hungry: bool,
    /// The bundle's earliest timer that is in the queue.
    pub scheduled: Instant,
}

impl Bundle {
    pub(super) fn new(flow: Flow) -> Self {
        let Flow { subflows, opened, controller, demand, start, stop, mut window_steps, options } = flow;
        window_steps.sort_by_key(|step| step.0);
        Self {
            controller,
            supply: Supply::new(demand, options.send_buffer),
            options,
            candidates: subflows.into_iter().map(|subflow| Candidate { subflow, free: true }).collect(),
            at_start: opened,
            connections: Vec::new(),
            closed: Vec::new(),
            next_path: 0,
            start,
            stop: stop.unwrap_or(Instant::FAR_FUTURE),
            tick_at: Instant::FAR_FUTURE,
            window_steps,
            limit: u64::MAX,
            steps_begun: 0,
            tag: 0,
            answer: 0,
            delivered: 0,
            started: None,
            finished: None,
            hungry: false,
            scheduled: Instant::FAR_FUTURE,
        }
    }

    /// An id for a new path. No id is used twice.
    pub(super) fn name_path(&mut self) -> PathId {
        self.next_path += 1;
        PathId(self.next_path - 1)
    }

    /// The controller may govern `path` from now on.
    pub(super) fn open_path(&mut self, path: PathId, opened: &Opened) {
        self.controller.open(path, opened);
        self.tick(opened.now);
    }

    pub(super) fn tick(&mut self, now: Instant) {
        self.tick_at = self.controller.tick(now).unwrap_or(Instant::FAR_FUTURE);
    }

    /// Whether all data have arrived and no more will be written.
    pub(super) fn is_delivered(&self) -> bool {
        self.supply.has_ended() && self.delivered >= self.supply.written()
    }

    /// Returns the time of the bundle's own next timer, apart from its paths.
    #[inline]
    pub(super) fn deadline(&self) -> Instant {
        if self.started.is_none() {
            return self.start;
        }
        let step = self.window_steps.get(self.steps_begun).map_or(Instant::FAR_FUTURE, |step| step.0);
        let data =
            if self.hungry { self.supply.ready_at(u64::from(self.options.mss)) } else { Instant::FAR_FUTURE };
        self.tick_at.min(step).min(self.stop).min(data)
    }

    /// Runs the due timers of the bundle itself.
    pub(super) fn on_timer(&mut self, now: Instant) {
        while let Some(&(at, limit)) = self.window_steps.get(self.steps_begun)
            && at <= now
        {
            self.limit = limit;
            self.steps_begun += 1;
        }
        if self.tick_at <= now {
            self.tick(now);
        }
        if self.hungry {
            self.supply.refresh(now, self.delivered);
            self.hungry = false;
        }
        if self.stop <= now {
            self.stop = Instant::FAR_FUTURE;
            self.supply.stop(now, self.delivered);
        }
    }
}
