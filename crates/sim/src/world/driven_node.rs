//! A node of a world: a machine, and the application that uses it.

use byway_wire::{Input, Instant, Machine, Transmit, TransmitBuffer};
use core::any::Any;
use core::fmt;
use core::marker::PhantomData;

/// A machine together with the application logic of a test. Every [`Machine`] alone is a node
/// without logic.
pub trait Node: Any {
    /// The machine that the world drives.
    fn machine(&mut self) -> &mut dyn Machine;

    /// Application logic: called at the start, after each input and each due deadline, before the
    /// machine transmits. `now` is the node's own clock.
    fn turn(&mut self, now: Instant) {
        let _ = now;
    }

    /// Returns the time, on the node's own clock, at which the application wants its next
    /// [`turn`](Self::turn) even if nothing happens before. In this turn, the application must set
    /// a later time or `None`.
    fn alarm(&self) -> Option<Instant> {
        None
    }
}

impl<M: Machine + Any> Node for M {
    fn machine(&mut self) -> &mut dyn Machine {
        self
    }
}

/// A node as the loop runs it: one call for each step, with the node's own type known inside.
pub(super) trait DrivenNode {
    fn handle(&mut self, now: Instant, input: Input<'_>);
    /// Wakes the machine if its deadline has come, then lets the application have its turn.
    fn turn(&mut self, now: Instant);
    fn transmit(&mut self, now: Instant, out: &mut TransmitBuffer<'_>) -> Option<Transmit>;
    /// When machine or application want to run next.
    fn next(&mut self) -> Option<Instant>;
    fn machine(&mut self) -> &mut dyn Machine;
    fn any(&self) -> &dyn Any;
    fn any_mut(&mut self) -> &mut dyn Any;
}

impl<T: Node> DrivenNode for T {
    fn handle(&mut self, now: Instant, input: Input<'_>) {
        Node::machine(self).handle(now, input);
    }

    fn turn(&mut self, now: Instant) {
        let machine = Node::machine(self);
        if machine.deadline().is_some_and(|deadline| deadline <= now) {
            machine.wake(now);
        }
        Node::turn(self, now);
    }

    fn transmit(&mut self, now: Instant, out: &mut TransmitBuffer<'_>) -> Option<Transmit> {
        Node::machine(self).transmit(now, out)
    }

    fn next(&mut self) -> Option<Instant> {
        let alarm = self.alarm();
        match (Node::machine(self).deadline(), alarm) {
            (Some(deadline), Some(alarm)) => Some(deadline.min(alarm)),
            (deadline, alarm) => deadline.or(alarm),
        }
    }

    fn machine(&mut self) -> &mut dyn Machine {
        Node::machine(self)
    }

    fn any(&self) -> &dyn Any {
        self
    }

    fn any_mut(&mut self) -> &mut dyn Any {
        self
    }
}

/// The number of a node, in the order of [`World::add`](crate::World::add).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct NodeId(pub u32);

/// Identifies a node and its type. It indexes the world.
pub struct Handle<T> {
    pub(crate) id: NodeId,
    pub(crate) kind: PhantomData<fn() -> T>,
}

impl<T> Handle<T> {
    /// The number of the node.
    #[must_use]
    pub const fn id(self) -> NodeId {
        self.id
    }
}

impl<T> Clone for Handle<T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for Handle<T> {}

impl<T> fmt::Debug for Handle<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.id.fmt(f)
    }
}

impl<T> From<Handle<T>> for NodeId {
    fn from(handle: Handle<T>) -> Self {
        handle.id
    }
}
