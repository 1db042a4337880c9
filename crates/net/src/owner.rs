//! The owner of a machine: the application's part of a driver.

use crate::carrier::Carrier;
use crate::device::DeviceSource;
use crate::tcp_limits::TcpLimits;
use crate::watched_fds::Ready;
use byway_wire::{Instant, Machine};

/// The owner of a machine: the application's code, which runs on the driver's thread.
pub trait Owner: Send {
    /// The machine that the owner has.
    type Machine: Machine + Send;

    /// Called after each wait, before the driver hands input (for example received datagrams) to
    /// the protocol, `machine`. Here the owner can tell `machine` what it must know before it
    /// handles this input. Must not block.
    fn before(&mut self, _machine: &mut Self::Machine, _now: Instant) {}

    /// Handles a ready descriptor that the owner entered in the driver's [`Watch`](crate::Watch).
    /// Called before the turn. Must not block.
    fn ready(&mut self, _machine: &mut Self::Machine, _ready: Ready, _now: Instant) {}

    /// Called after `machine` was handed input, after each wake-up by the [`Waker`](crate::Waker),
    /// at the deadlines of `machine` and of the owner, or without cause. Then the driver sends what
    /// `machine` writes. Must not block, because the sockets wait meanwhile.
    fn turn(&mut self, machine: &mut Self::Machine, now: Instant) -> LoopControl;

    /// Sockets and TCP connections that the owner opened in this turn, for the driver to take over.
    /// Each new socket gets the next number, for example `Local(2)` after two sockets. TCP
    /// connections have [numbers of their own](byway_wire::Local::connection).
    fn opened(&mut self) -> Vec<Carrier> {
        Vec::new()
    }

    /// Returns the latest time of the next turn. It is asked after each turn.
    fn deadline(&self) -> Option<Instant> {
        None
    }

    /// A device, for example a TUN device, that the driver watches beside its sockets. The driver
    /// calls `turn` whenever the device has something to read. It asks for the device once, before
    /// the first `turn`.
    fn device(&self) -> Option<DeviceSource> {
        None
    }

    /// Called once, after the last turn, whatever ended the driver. Here the owner hangs up
    /// channels on which other threads wait. The driver hands the owner back only to who joins its
    /// thread.
    fn ended(&mut self) {}

    /// The buffer limits of TCP connections. They are asked once, before the first turn.
    fn depth(&self) -> TcpLimits {
        TcpLimits::default()
    }
}

/// Whether a driver continues after a turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LoopControl {
    /// The driver goes on.
    Continue,
    /// The driver sends what it can without waiting, and ends.
    Stop,
}
