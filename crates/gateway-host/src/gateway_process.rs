//! A gateway that runs: the machine of `byway-gateway` between sockets and a TUN device, and the
//! handle by which a program runs it.

use crate::GatewayError;
use byway_engine::handshake;
use byway_gateway::machine::{Gateway, PacketBuffer, PeerState, Status};
use byway_gateway::rules::Rules;
use byway_gateway::{ChecksumState, Prefix};
use byway_net::{Clock, Control, DeviceSource, LoopControl, Owner, Socket, Tun};
use byway_transfer::Error;
use byway_transfer::identity::PublicKey;
use byway_wire::Instant;
use byway_wire::relay::Word;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Condvar, Mutex, PoisonError};

/// The most reads of the device in one turn; each brings up to 64 KB of one flow.
const MAX_TURN_READS: usize = 32;
/// The longest wait for a fresh status. After it, the previous status is returned.
const STATUS_TIMEOUT: std::time::Duration = std::time::Duration::from_millis(500);

/// The most orders that wait for the gateway's thread.
const MAX_ORDERS: usize = 64;

/// A gateway that runs.
pub struct RunningGateway {
    driver: byway_net::Handle<HostSide>,
    board: Arc<StatusBoard>,
    orders: SyncSender<Command>,
}

/// An order to the gateway's thread.
enum Command {
    Rules(Rules),
    Lend(PublicKey, Word),
    Relays(Vec<Word>),
}

/// The status and news that the gateway's thread writes, and other threads read.
struct StatusBoard {
    asked: AtomicBool,
    /// The latest status, and how often a status was written.
    told: Mutex<(u64, Status)>,
    news: Condvar,
    /// Hosts that asked to be served, if they changed since the last call.
    guests: Mutex<Option<Vec<Prefix>>>,
    /// The states of all peers, if one changed since the last call of
    /// [`take_peers`](RunningGateway::take_peers).
    peers: Mutex<Option<Vec<PeerState>>>,
}

impl RunningGateway {
    /// Starts.
    ///
    /// # Errors
    /// The system gives no thread.
    pub fn start(gateway: Gateway, tun: Tun, sockets: Vec<Socket>) -> Result<Self, GatewayError> {
        let clock = Clock::new();
        let told = Mutex::new((0, gateway.status()));
        let board = Arc::new(StatusBoard {
            asked: AtomicBool::new(false),
            told,
            news: Condvar::new(),
            guests: Mutex::new(None),
            peers: Mutex::new(None),
        });
        let (orders, inbox) = sync_channel(MAX_ORDERS);
        let edge = HostSide { tun, orders: inbox, guests: 0, peers: 0, board: Arc::clone(&board) };
        let control = Control::new().map_err(Error::Descriptor)?;
        let driver = byway_net::spawn_with(control, "byway gateway", gateway, edge, sockets, clock)
            .map_err(Error::Thread)?;
        Ok(Self { driver, board, orders })
    }

    /// The gateway's status now. If the thread does not answer in time, its previous status.
    #[must_use]
    pub fn status(&self) -> Status {
        let told = self.board.told.lock().unwrap_or_else(PoisonError::into_inner);
        let before = told.0;
        self.board.asked.store(true, Ordering::Release);
        self.driver.waker().wake();
        let waited = self.board.news.wait_timeout_while(told, STATUS_TIMEOUT, |told| told.0 == before);
        let (told, _) = waited.unwrap_or_else(PoisonError::into_inner);
        told.1.clone()
    }

    /// Returns the hosts that asked to be served, if they changed since the last call.
    #[must_use]
    pub fn take_guests(&self) -> Option<Vec<Prefix>> {
        self.board.guests.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    /// The states of all peers, if one changed or an attempt to connect failed since the last call.
    #[must_use]
    pub fn take_peers(&self) -> Option<Vec<PeerState>> {
        self.board.peers.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    /// Replaces the rules.
    pub fn set_rules(&self, rules: Rules) {
        self.order(Command::Rules(rules));
    }

    /// Gives a peer a relay word of its own for the relay beside this gateway.
    pub fn lend(&self, peer: PublicKey, word: Word) {
        self.order(Command::Lend(peer, word));
    }

    /// Relays that a registry offers.
    pub fn add_relays(&self, words: Vec<Word>) {
        self.order(Command::Relays(words));
    }

    fn order(&self, order: Command) {
        // Waits for those of before to be taken, which is soon. Who has ended needs none.
        let _ = self.orders.send(order);
        self.driver.waker().wake();
    }

    /// Whether the gateway's thread has ended by itself, on an error.
    #[must_use]
    pub fn is_over(&self) -> bool {
        self.driver.is_finished()
    }

    /// Stops the gateway. The device is removed, together with the routes to it.
    ///
    /// # Errors
    /// Why it had ended before.
    pub fn stop(self) -> Result<Status, GatewayError> {
        self.driver.stop();
        let finished = self.driver.join().map_err(Error::Panicked)?;
        finished.outcome.map_err(Error::EventLoop)?;
        Ok(finished.machine.status())
    }
}

/// The hosts' side of the machine.
struct HostSide {
    tun: Tun,
    orders: Receiver<Command>,
    board: Arc<StatusBoard>,
    /// The version of the list of guests that was last written to the board.
    guests: u64,
    /// The version of the peers' states that was last written to the board.
    peers: u64,
}

impl Owner for HostSide {
    type Machine = Gateway;

    fn turn(&mut self, gateway: &mut Gateway, now: Instant) -> LoopControl {
        for order in self.orders.try_iter() {
            match order {
                Command::Rules(rules) => gateway.set_rules(rules),
                Command::Lend(peer, word) => gateway.lend_relay(now, handshake::PublicKey(peer.0), word),
                Command::Relays(words) => gateway.add_relays(now, words),
            }
        }
        for _ in 0..MAX_TURN_READS {
            let read = self.tun.receive(|packet, vouched| {
                let buffer = gateway.buffer();
                let checksum = if vouched { ChecksumState::Checked } else { ChecksumState::Full };
                gateway.packet(now, PacketBuffer::copy(buffer, packet), checksum);
            });
            match read {
                Ok(true) => {}
                Ok(false) => break,
                Err(_) => return LoopControl::Stop,
            }
        }
        while let Some(parcel) = gateway.next_packet() {
            self.tun.send(parcel.packet());
            gateway.recycle(parcel.into_buffer());
        }
        self.tun.flush();
        let guests = gateway.guests_version();
        if std::mem::replace(&mut self.guests, guests) != guests {
            let hosts = gateway.guest_hosts().into_iter().map(|host| Prefix::of(host, 128)).collect();
            *self.board.guests.lock().unwrap_or_else(PoisonError::into_inner) = Some(hosts);
        }
        let peers = gateway.peers_version();
        if std::mem::replace(&mut self.peers, peers) != peers {
            *self.board.peers.lock().unwrap_or_else(PoisonError::into_inner) = Some(gateway.peer_states());
        }
        if self.board.asked.swap(false, Ordering::AcqRel) {
            // Whoever asked holds the lock for no longer than it takes to begin to wait.
            let mut told = self.board.told.lock().unwrap_or_else(PoisonError::into_inner);
            *told = (told.0 + 1, gateway.status());
            self.board.news.notify_all();
        }
        LoopControl::Continue
    }

    fn device(&self) -> Option<DeviceSource> {
        Some(self.tun.source())
    }
}
