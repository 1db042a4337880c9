//! A machine and its owner as one object. So the driver is compiled once, and not for each owner.

use crate::carrier::Carrier;
use crate::device::DeviceSource;
use crate::owner::{LoopControl, Owner};
use crate::tcp_limits::TcpLimits;
use crate::watched_fds::Ready;
use byway_wire::{Instant, Machine};

/// A machine with its owner.
pub(crate) struct OwnedMachine<O: Owner> {
    pub(crate) machine: O::Machine,
    pub(crate) owner: O,
}

/// What a driver calls: the machine, and the functions of [`Owner`] with that machine.
pub(crate) trait Driven {
    /// The machine.
    fn machine(&mut self) -> &mut dyn Machine;

    /// The time of the next [`Machine::wake`] or [`Owner::turn`], whichever is earlier.
    fn deadline(&self) -> Option<Instant>;

    /// Like [`Owner::before`].
    fn before(&mut self, now: Instant);

    /// Like [`Owner::ready`].
    fn ready(&mut self, ready: Ready, now: Instant);

    /// Like [`Owner::turn`].
    fn turn(&mut self, now: Instant) -> LoopControl;

    /// Like [`Owner::opened`].
    fn opened(&mut self) -> Vec<Carrier>;

    /// Like [`Owner::device`].
    fn device(&self) -> Option<DeviceSource>;

    /// Like [`Owner::depth`].
    fn depth(&self) -> TcpLimits;
}

impl<O: Owner> Driven for OwnedMachine<O> {
    fn machine(&mut self) -> &mut dyn Machine {
        &mut self.machine
    }

    fn deadline(&self) -> Option<Instant> {
        self.machine.deadline().into_iter().chain(self.owner.deadline()).min()
    }

    fn before(&mut self, now: Instant) {
        self.owner.before(&mut self.machine, now);
    }

    fn ready(&mut self, ready: Ready, now: Instant) {
        self.owner.ready(&mut self.machine, ready, now);
    }

    fn turn(&mut self, now: Instant) -> LoopControl {
        self.owner.turn(&mut self.machine, now)
    }

    fn opened(&mut self) -> Vec<Carrier> {
        self.owner.opened()
    }

    fn device(&self) -> Option<DeviceSource> {
        self.owner.device()
    }

    fn depth(&self) -> TcpLimits {
        self.owner.depth()
    }
}
