//! Greeting a relay without a session.

use crate::common::machine::{PATIENCE, wait_for};
use byway_net::Clock;
use byway_wire::Writer;
use byway_wire::relay::{GREET_LEN, Greet, Greeted, RelayClock};
use std::net::{SocketAddr, UdpSocket};

/// What a relay answers to a greeting for this grant.
pub fn greet(socket: &UdpSocket, relay: SocketAddr, grant: u32, clock: &Clock) -> (Greeted, RelayClock) {
    let nonce: [u8; 8] = byway_net::seed().unwrap();
    let mut greeting = [0; GREET_LEN];
    Greet { nonce, grant }.write(&mut Writer::new(&mut greeting));
    let answer = wait_for(PATIENCE, || {
        let sent = clock.now();
        socket.send_to(&greeting, relay).unwrap();
        let mut packet = [0; 2_000];
        // Packets that were sent to this socket come too.
        while let Ok((length, from)) = socket.recv_from(&mut packet) {
            let greeted =
                Greeted::read(&packet[..length]).ok().filter(|it| it.nonce == nonce && from == relay);
            if let Some(greeted) = greeted {
                return Some((greeted, RelayClock::learn(greeted.unix_millis, sent, clock.now())));
            }
        }
        None
    });
    answer.expect("a relay that answers greetings")
}
