//! A lane that runs, on a thread of its own.

use crate::proxy::{LaneEvent, LaneFigures, NoProtocol, Proxy, ProxyPlan};
use byway_forward_host::Listening;
use byway_net::{Clock, Control, DriverError, Handle, Panicked, spawn_with};
use byway_wire::Duration;
use std::io;
use std::net::SocketAddr;
use std::sync::mpsc::{Receiver, RecvTimeoutError, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};

/// Events that wait for who tells them, at most.
const MAX_QUEUED_EVENTS: usize = 256;

/// Why a lane cannot run.
#[derive(Debug, thiserror::Error)]
pub enum LaneError {
    /// Others could use this machine's lane.
    #[error(
        "{0} is no address of loopback: a lane serves programs of this host alone; listen on 127.0.0.1 or [::1]"
    )]
    NotLoopback(SocketAddr),
    /// The system refuses descriptors, or a thread.
    #[error("the system refuses what a lane needs: {0}")]
    System(#[from] io::Error),
    /// The lane's thread could not go on.
    #[error("{0}")]
    Driver(#[from] DriverError),
    /// The lane's thread has ended, though nobody stopped it.
    #[error("the lane has ended: start it again")]
    Ended,
    /// The lane's thread failed.
    #[error("{0}")]
    Panicked(#[from] Panicked),
}

/// A lane that runs.
pub struct RunningLane {
    handle: Handle<Proxy>,
    events: Receiver<LaneEvent>,
    figures: Arc<Mutex<LaneFigures>>,
}

/// Checks that a lane serves only programs of this host.
///
/// # Errors
/// An address is not of loopback.
pub fn check_loopback(addresses: impl IntoIterator<Item = SocketAddr>) -> Result<(), LaneError> {
    let other = addresses.into_iter().find(|address| !address.ip().to_canonical().is_loopback());
    other.map_or(Ok(()), |address| Err(LaneError::NotLoopback(address)))
}

impl RunningLane {
    /// Starts a lane with at most `most` connections at once.
    ///
    /// # Errors
    /// A socket listens elsewhere than on loopback, or the system refuses descriptors or a thread.
    pub fn start(listening: Listening, most: usize) -> Result<Self, LaneError> {
        check_loopback(listening.listeners().map(|it| it.address))?;
        let (sender, events) = sync_channel(MAX_QUEUED_EVENTS);
        let figures = Arc::new(Mutex::new(LaneFigures::default()));
        let (clock, control) = (Clock::new(), Control::new()?);
        let plan = ProxyPlan { listening, most, events: sender, shown: Arc::clone(&figures) };
        let proxy = Proxy::new(plan, &control, clock.now())?;
        let handle = spawn_with(control, "byway lane", NoProtocol, proxy, Vec::new(), clock)?;
        Ok(Self { handle, events, figures })
    }

    /// The next thing that happens within this time.
    ///
    /// # Errors
    /// The lane's thread has ended.
    pub fn next(&self, patience: Duration) -> Result<Option<LaneEvent>, LaneError> {
        match self.events.recv_timeout(patience) {
            Ok(event) => Ok(Some(event)),
            Err(RecvTimeoutError::Timeout) => Ok(None),
            Err(RecvTimeoutError::Disconnected) => Err(LaneError::Ended),
        }
    }

    /// What the lane has done and does.
    #[must_use]
    pub fn figures(&self) -> LaneFigures {
        *self.figures.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Ends the lane. Connections that are open are reset on both sides, so that no program takes
    /// the end of the lane for the end of its data.
    ///
    /// # Errors
    /// The lane had failed before.
    pub fn stop(self) -> Result<LaneFigures, LaneError> {
        self.handle.stop();
        self.handle.join()?.outcome?;
        Ok(*self.figures.lock().unwrap_or_else(PoisonError::into_inner))
    }
}
