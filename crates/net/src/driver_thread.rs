//! A driver on a thread of its own.

use crate::clock::Clock;
use crate::driver::{Finished, run};
use crate::driver_control::Control;
use crate::owner::Owner;
use crate::socket::Socket;
use crate::statistics::Statistics;
use crate::waker::Waker;
use std::any::Any;
use std::io;
use std::thread::{Builder, JoinHandle};

/// A driver on a thread of its own. Dropping it ends the driver soon, without waiting for the end.
#[derive(Debug)]
pub struct Handle<O: Owner> {
    control: Control,
    thread: Option<JoinHandle<Finished<O>>>,
}

/// The machine or its owner panicked on the driver's thread. The text is the panic message.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the driver's thread panicked: {0}")]
pub struct Panicked(pub String);

/// Runs `machine` on a new thread named `name` (cut to 15 bytes by the system), as [`run`] does.
///
/// # Errors
///
/// What the system said when it would not give a thread or descriptors.
pub fn spawn<O>(
    name: &str,
    machine: O::Machine,
    owner: O,
    sockets: Vec<Socket>,
    clock: Clock,
) -> io::Result<Handle<O>>
where
    O: Owner + 'static,
    O::Machine: 'static,
{
    spawn_with(Control::new()?, name, machine, owner, sockets, clock)
}

/// Like [`spawn`], with an existing control.
///
/// # Errors
///
/// What the system said when it would not give a thread.
pub fn spawn_with<O>(
    control: Control,
    name: &str,
    machine: O::Machine,
    owner: O,
    sockets: Vec<Socket>,
    clock: Clock,
) -> io::Result<Handle<O>>
where
    O: Owner + 'static,
    O::Machine: 'static,
{
    let strings = control.clone();
    // A thread's name ends at a zero byte, and the standard library panics on one.
    let name = name.replace('\0', "");
    let thread = Builder::new().name(name).spawn(move || run(machine, owner, sockets, clock, &strings))?;
    Ok(Handle { control, thread: Some(thread) })
}

impl<O: Owner> Handle<O> {
    /// Returns the waker, which wakes the driver for a turn of the owner. It can be cloned.
    #[must_use]
    pub fn waker(&self) -> &Waker {
        self.control.waker()
    }

    /// The control of the driver.
    #[must_use]
    pub fn control(&self) -> &Control {
        &self.control
    }

    /// Like [`Control::stop`].
    pub fn stop(&self) {
        self.control.stop();
    }

    /// Like [`Control::statistics`].
    #[must_use]
    pub fn statistics(&self) -> Statistics {
        self.control.statistics()
    }

    /// Whether the driver has ended, so that [`join`](Self::join) returns at once.
    #[must_use]
    pub fn is_finished(&self) -> bool {
        self.thread.as_ref().is_none_or(JoinHandle::is_finished)
    }

    /// Waits for the driver to end. Returns the machine, the owner (the application's part) and the
    /// sockets. Call [`stop`](Self::stop) first to make the driver end.
    ///
    /// # Errors
    ///
    /// [`Panicked`] if the machine or the owner panicked. Both are lost then.
    pub fn join(mut self) -> Result<Finished<O>, Panicked> {
        match self.thread.take().map(JoinHandle::join) {
            Some(Ok(finished)) => Ok(finished),
            Some(Err(panic)) => Err(Panicked(said(&*panic))),
            None => Err(Panicked(String::new())),
        }
    }
}

impl<O: Owner> Drop for Handle<O> {
    fn drop(&mut self) {
        self.control.stop();
    }
}

fn said(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
    text.or_else(|| panic.downcast_ref::<String>().cloned()).unwrap_or_default()
}
