//! A gateway that runs: the machine of `byway-gateway` between sockets and a TUN device, and the handle by which a program runs it.

use anyhow::{Context as _, Result};
use byway_gateway::State;
use byway_gateway::machine::{Gateway, Parcel, Status};
use byway_gateway::rules::Rules;
use byway_net::{Clock, Control, DeviceSource, Flow, Owner, Socket, Tun};
use byway_wire::Instant;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Condvar, Mutex, PoisonError};

/// Reads of the device in one turn; each brings up to 64 KB of one flow.
const READS: usize = 32;
/// Who asks for the status waits no longer than this, and then gets what was told last.
const PATIENCE: std::time::Duration = std::time::Duration::from_millis(500);

/// A gateway that runs.
pub struct Gating {
    driver: byway_net::Handle<Edge>,
    board: Arc<Board>,
    rules: SyncSender<Rules>,
}

/// Where the gateway's thread writes what it is doing when somebody asks.
struct Board {
    asked: AtomicBool,
    /// What was told last, and how often there was something told.
    told: Mutex<(u64, Status)>,
    news: Condvar,
}

impl Gating {
    /// Starts.
    ///
    /// # Errors
    /// The system gives no thread.
    pub fn start(gateway: Gateway, tun: Tun, sockets: Vec<Socket>) -> Result<Self> {
        let clock = Clock::new();
        let told = Mutex::new((0, gateway.status()));
        let board = Arc::new(Board { asked: AtomicBool::new(false), told, news: Condvar::new() });
        let (rules, inbox) = sync_channel(1);
        let edge = Edge { tun, rules: inbox, board: Arc::clone(&board) };
        let control = Control::new().context("cannot make an eventfd")?;
        let driver = byway_net::spawn_with(control, "byway gateway", gateway, edge, sockets, clock)
            .context("cannot start a thread")?;
        Ok(Self { driver, board, rules })
    }

    /// What it is doing.
    pub fn status(&self) -> Status {
        let told = self.board.told.lock().unwrap_or_else(PoisonError::into_inner);
        let before = told.0;
        self.board.asked.store(true, Ordering::Release);
        self.driver.waker().wake();
        let waited = self.board.news.wait_timeout_while(told, PATIENCE, |told| told.0 == before);
        let (told, _) = waited.unwrap_or_else(PoisonError::into_inner);
        told.1.clone()
    }

    /// Other rules from now on.
    pub fn set_rules(&self, rules: Rules) {
        // Waits for those of before to be taken, which is soon. Who has ended needs none.
        let _ = self.rules.send(rules);
        self.driver.waker().wake();
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
    board: Arc<Board>,
}

impl Owner for Edge {
    type Machine = Gateway;

    fn turn(&mut self, gateway: &mut Gateway, now: Instant) -> Flow {
        self.rules.try_iter().for_each(|rules| gateway.set_rules(rules));
        for _ in 0..READS {
            let read = self.tun.receive(|packet, vouched| {
                let buffer = gateway.buffer();
                let checksum = if vouched { State::Checked } else { State::Full };
                gateway.packet(now, Parcel::copy(buffer, packet), checksum);
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
        if self.board.asked.swap(false, Ordering::AcqRel) {
            // Whoever asked holds the lock for no longer than it takes to begin to wait.
            let mut told = self.board.told.lock().unwrap_or_else(PoisonError::into_inner);
            *told = (told.0 + 1, gateway.status());
            self.board.news.notify_all();
        }
        Flow::Continue
    }

    fn device(&self) -> Option<DeviceSource> {
        Some(self.tun.source())
    }
}
