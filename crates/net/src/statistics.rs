//! The counts of a driver, which only the driver changes and every thread can read.

use byway_wire::SendErrorKind;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

macro_rules! statistics {
    ($($(#[$doc:meta])* $name:ident,)*) => {
        /// Counts since a driver started.
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
        pub struct Statistics {
            $($(#[$doc])* pub $name: u64,)*
        }

        /// The growing counts of [`Statistics`]. Only one thread writes, so a count needs no locked
        /// instruction.
        #[derive(Debug, Default)]
        pub(crate) struct Counters {
            $(pub(crate) $name: Count,)*
        }

        impl Counters {
            /// A reading. Counts are exact each for itself; they may be of slightly different
            /// moments.
            pub(crate) fn read(&self) -> Statistics {
                Statistics { $($name: self.$name.0.load(Relaxed),)* }
            }
        }
    };
}

statistics! {
    /// Datagrams handed to the system.
    sent_datagrams,
    /// Payload bytes handed to the system.
    sent_bytes,
    /// System calls that sent something.
    send_calls,
    /// Runs of more than one datagram that the system cut itself (segmentation offload).
    gso_runs,
    /// Datagrams handed to the machine.
    received_datagrams,
    /// Payload bytes handed to the machine.
    received_bytes,
    /// System calls that received something.
    receive_calls,
    /// Buffers received that held more than one datagram (coalesced by the system).
    gro_runs,
    /// Receive calls that failed for another reason than having nothing to give.
    receive_errors,
    /// Sends that failed because there is no route to the destination.
    unreachable,
    /// Sends that failed because the datagram was larger than the interface takes.
    too_large,
    /// Sends that the system forbade.
    denied,
    /// Number of times that a full socket or device delayed data.
    blocked,
    /// Datagrams dropped because the machine wrote to a socket that it knew to be full.
    overflowed,
    /// Sockets that lost segmentation offload while running.
    offload_lost,
    /// Sockets that got smaller buffers than requested.
    clipped_sockets,
    /// Turns of the owner.
    turns,
    /// Number of times that another thread woke the driver.
    rung,
}

impl Counters {
    pub(crate) fn failed(&self, kind: SendErrorKind) {
        match kind {
            SendErrorKind::Unreachable => self.unreachable.add(1),
            SendErrorKind::TooLarge => self.too_large.add(1),
            SendErrorKind::Denied => self.denied.add(1),
        }
    }
}

/// A counter with a single writer.
#[derive(Debug, Default)]
pub(crate) struct Count(AtomicU64);

impl Count {
    pub(crate) fn add(&self, more: u64) {
        self.0.store(self.0.load(Relaxed).wrapping_add(more), Relaxed);
    }
}
