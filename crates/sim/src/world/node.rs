//! Who lives in a world: a machine and the application that uses it.

use byway_wire::{Instant, Machine};
use core::any::Any;
use core::fmt;
use core::marker::PhantomData;

/// A machine together with the application logic of a test. Every [`Machine`] alone is a node without logic.
pub trait Node: Any {
    /// The machine that the world drives.
    fn machine(&mut self) -> &mut dyn Machine;

    /// Application logic: called at the start, after each input and each due deadline, before the machine transmits.
    /// `now` is the node's own clock.
    fn turn(&mut self, now: Instant) {
        let _ = now;
    }

    /// When the application wants its next [`turn`](Self::turn) though nothing else happens; on the node's own clock.
    /// Must move on (or be `None`) once that turn has come.
    fn alarm(&self) -> Option<Instant> {
        None
    }
}

impl<M: Machine + Any> Node for M {
    fn machine(&mut self) -> &mut dyn Machine {
        self
    }
}

/// Which node. Numbered in the order of [`World::add`](crate::World::add).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct NodeId(pub u32);

/// Which node, and of what type: indexes the world.
pub struct Handle<T> {
    pub(crate) id: NodeId,
    pub(crate) kind: PhantomData<fn() -> T>,
}

impl<T> Handle<T> {
    /// The node's number.
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
