//! Hosts that only say hello to the receiver of [`parallel`].

use super::{MS, Parallel, Plan, address, both, identity, parallel};
use byway_engine::Config;
use byway_engine::config::Params;
use byway_engine::handshake::Initiator;
use byway_engine::seal::Suites;
use byway_sim::{PipeConfig, TapVerdict, World};
use byway_wire::packet::Handshake;
use byway_wire::{Ecn, Instant};
use std::cell::RefCell;
use std::net::SocketAddr;
use std::rc::Rc;

/// A HELLO to the receiver of [`parallel`], each number another one.
pub fn hello(number: u32) -> Vec<u8> {
    attempt(number, b"").hello()
}

/// An attempt to connect to the receiver of [`parallel`], saying this; each number another one.
pub fn attempt(number: u32, said: &[u8]) -> Initiator {
    let mut seed = [0x3c; 32];
    seed[..4].copy_from_slice(&number.to_be_bytes());
    let said = Params::of(&Config::default()).payload(said);
    Initiator::new(&identity(77), identity(9).public(), &said, Suites::SECURE, seed).unwrap()
}

pub fn receiver_address() -> SocketAddr {
    address("10.0.1.1:4000")
}

/// Lets whatever the receiver sends to this address vanish without a link.
pub fn spoofed(world: &mut World, last: u8) -> SocketAddr {
    let from = SocketAddr::from(([99, 0, 0, last], 6000));
    world.route(receiver_address(), from.ip(), &[]);
    from
}

/// A world whose receiver has many unconfirmed connections when the sender comes.
pub fn crowd(seed: u64, pipe: PipeConfig, strangers: u32) -> (Parallel, Rc<RefCell<u32>>) {
    let mut plan = Plan::new("newreno", &[4 << 10], &[]);
    plan.start = 500 * MS;
    let mut world = parallel(seed, plan, &[both(pipe)]);
    let from = spoofed(&mut world.world, 1);
    for number in 0..strangers {
        let at = Instant::from_millis(u64::from(number));
        world.world.inject(at, from, receiver_address(), Ecn::NotEct, &hello(number));
    }
    let retries = Rc::new(RefCell::new(0));
    let seen = Rc::clone(&retries);
    world.world.tap(move |datagram| {
        let retry = matches!(Handshake::read(datagram.payload), Ok(Handshake::Retry { .. }));
        *seen.borrow_mut() += u32::from(retry && *datagram.to == address("10.0.0.1:5000"));
        TapVerdict::Pass
    });
    (world, retries)
}
