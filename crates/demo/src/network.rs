//! The network of the demo: relays, and shapers that delay and drop packets as links do. Each has
//! its own sockets on loopback and its own thread. Sender and receiver exchange datagrams only with
//! shapers and relays.

use super::error::Result;
use super::lines::PathSpec;
use byway_net::{Clock, Handle, LoopControl, Owner, Socket};
use byway_relay::{Config, Policy, Relay};
use byway_sim::{Shaper, ShaperConfig};
use byway_wire::relay::{Grant, Minute, QuotaClass, RateClass, Scope, Terms, Word};
use byway_wire::{Instant, Machine, Prefix};
use std::marker::PhantomData;
use std::net::{Ipv4Addr, SocketAddr};
use std::time::Duration;

/// The validity of the demo's relay words, in seconds.
const WORD_LIFETIME_SECONDS: u64 = 3_600;
/// Hosts that may be behind one shaper at a time: the sender and the receiver, of both rounds.
const MAX_CLIENTS: usize = 8;

/// An owner that does nothing with its machine.
struct IdleOwner<M>(PhantomData<fn() -> M>);

impl<M: Machine + Send> Owner for IdleOwner<M> {
    type Machine = M;

    fn turn(&mut self, _machine: &mut M, _now: Instant) -> LoopControl {
        LoopControl::Continue
    }
}

/// A line without a relay; gone when dropped.
pub struct DirectLine {
    /// The address at which senders find the receiver.
    pub front: SocketAddr,
    _shaper: Handle<IdleOwner<Shaper>>,
}

/// A line with a relay. Both end when this value is dropped.
pub struct RelayLine {
    /// The relay word, which sender and receiver need.
    pub word: Word,
    _shaper: Handle<IdleOwner<Shaper>>,
    _relay: Handle<IdleOwner<Relay>>,
}

/// Lays a line before the receiver at `server`.
///
/// # Errors
/// The system gives no sockets or threads.
pub fn direct(line: &PathSpec, server: SocketAddr) -> Result<DirectLine> {
    let (front, shaper) = shape(line, 1, server)?;
    Ok(DirectLine { front, _shaper: shaper })
}

/// Sets a relay up behind a line.
///
/// # Errors
/// The system gives no sockets, threads or randomness.
pub fn relayed(line: &PathSpec, id: u32) -> Result<RelayLine> {
    let clock = Clock::new();
    let key = byway_net::seed::<32>()?;
    let unix = byway_net::unix_seconds();
    let mut config = Config::new(key, unix * 1_000);
    config.policy = Policy::public().allow(Prefix::of(Ipv4Addr::LOCALHOST.into(), 8));
    let relay = Relay::new(&config, clock.now());
    let socket = loopback_socket()?;
    let (front, shaper) = shape(line, 2, socket.address())?;
    let terms = Terms {
        expiry: Minute::from_unix(unix + WORD_LIFETIME_SECONDS),
        rate: RateClass::UNLIMITED,
        quota: QuotaClass::UNLIMITED,
        scope: Scope::ALL,
    };
    let word = relay.issue(Grant { id, terms }, vec![front])?;
    let relay = byway_net::spawn("relay", relay, IdleOwner(PhantomData), vec![socket], clock)?;
    Ok(RelayLine { word, _shaper: shaper, _relay: relay })
}

/// Starts a shaper before `server`; a packet passes `pipes` of its pipes from sender to receiver.
fn shape(line: &PathSpec, pipes: u32, server: SocketAddr) -> Result<(SocketAddr, Handle<IdleOwner<Shaper>>)> {
    let mut config = ShaperConfig::new(server, line.pipe(pipes), line.pipe(pipes));
    config.idle = Duration::from_secs(2);
    let first = loopback_socket()?;
    let front = first.address();
    let others = (0..MAX_CLIENTS).map(|_| loopback_socket());
    let sockets: Vec<Socket> = std::iter::once(Ok(first)).chain(others).collect::<Result<_>>()?;
    let shaper =
        byway_net::spawn("line", Shaper::new(config), IdleOwner(PhantomData), sockets, Clock::new())?;
    Ok((front, shaper))
}

fn loopback_socket() -> Result<Socket> {
    Ok(Socket::bind(SocketAddr::new(Ipv4Addr::LOCALHOST.into(), 0))?)
}
