//! A gateway that runs: the machine of `byway-gateway` between sockets and a TUN device, and the handle by which a program runs it.

use anyhow::{Context as _, Result};
use byway_gateway::State;
use byway_gateway::rules::Rules;
use byway_gateway::site::{Gateway, Parcel, Status};
use byway_net::{Clock, Control, Flow, Owner, Socket, Tun, TunSource};
use byway_wire::{Duration, Instant};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};

/// Reads of the device in one turn; each brings up to 64 KB of one flow.
const READS: usize = 32;
/// What is known of the gateway is at most this old while packets pass.
const FRESH: Duration = Duration::from_millis(200);

/// A gateway that runs.
pub struct Gating {
    driver: byway_net::Handle<Edge>,
    status: Arc<Mutex<Status>>,
    rules: SyncSender<Rules>,
}

impl Gating {
    /// Starts.
    ///
    /// # Errors
    /// The system gives no thread.
    pub fn start(gateway: Gateway, tun: Tun, sockets: Vec<Socket>) -> Result<Self> {
        let clock = Clock::new();
        let status = Arc::new(Mutex::new(gateway.status()));
        let (rules, inbox) = sync_channel(1);
        let edge = Edge { tun, rules: inbox, status: Arc::clone(&status), told: clock.now() };
        let control = Control::new().context("cannot make an eventfd")?;
        let driver = byway_net::spawn_with(control, "byway gateway", gateway, edge, sockets, clock)
            .context("cannot start a thread")?;
        Ok(Self { driver, status, rules })
    }

    /// What it is doing, as of a moment ago.
    pub fn status(&self) -> Status {
        self.driver.waker().wake();
        self.status.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Other rules from now on. Whether they were taken; if not, the ones before are still on their way.
    pub fn set_rules(&self, rules: Rules) -> bool {
        let taken = self.rules.try_send(rules).is_ok();
        self.driver.waker().wake();
        taken
    }

    /// Whether it ended by itself.
    pub fn is_over(&self) -> bool {
        self.driver.is_finished()
    }

    /// Ends it: the device goes, and with it the routes to it.
    ///
    /// # Errors
    /// Why it had ended before.
    pub fn stop(self) -> Result<Status> {
        self.driver.stop();
        let finished = self.driver.join().context("the gateway's thread broke")?;
        finished.outcome?;
        Ok(finished.machine.status())
    }
}

/// The hosts' side of the machine.
struct Edge {
    tun: Tun,
    rules: Receiver<Rules>,
    status: Arc<Mutex<Status>>,
    told: Instant,
}

impl Owner for Edge {
    type Machine = Gateway;

    fn turn(&mut self, gateway: &mut Gateway, now: Instant) -> Flow {
        self.rules.try_iter().for_each(|rules| gateway.set_rules(rules));
        for _ in 0..READS {
            // The kernel has checked or completed every checksum of what it forwards or sends.
            let read = self.tun.receive(|packet| {
                let buffer = gateway.buffer();
                gateway.packet(now, Parcel::copy(buffer, packet), State::Checked);
            });
            match read {
                Ok(true) => {}
                Ok(false) => break,
                Err(_) => return Flow::Stop,
            }
        }
        while let Some(parcel) = gateway.next_packet() {
            self.tun.send(parcel.packet());
            gateway.recycle(parcel.into_buffer());
        }
        self.tun.flush();
        if now.since(self.told) >= FRESH {
            self.told = now;
            *self.status.lock().unwrap_or_else(PoisonError::into_inner) = gateway.status();
        }
        Flow::Continue
    }

    fn device(&self) -> Option<TunSource> {
        Some(self.tun.source())
    }
}
