//! A stranger has a good grant, and sends far more than an end host lends.

use super::{ALICE, Hosts, POOR, VICTIM, address};
use crate::common::machine::{PATIENCE, wait_for};
use byway_net::Clock;
use byway_wire::Writer;
use byway_wire::relay::{GREET_LEN, Greet, Greeted, Hop, RelayClock, Word};
use std::net::{SocketAddr, UdpSocket};
use std::time::Duration;

/// Bytes in each packet.
const INNER: usize = 1_000;
/// Packets at once, and the pause after them: 20 Mbit/s, more than twice what the host lends.
const BURST: usize = 25;
const PAUSE: Duration = Duration::from_millis(10);

/// Sends by the host's relay to the victim, who consents, while `goes_on`.
pub fn fills(hosts: &Hosts, word: &Word, goes_on: impl Fn() -> bool) {
    let clock = Clock::new();
    let relay = SocketAddr::new(address(POOR).parse().unwrap(), 4748);
    let [alice, victim] = [("alice", ALICE), ("victim", VICTIM)].map(|(host, address)| {
        let socket = hosts.spaces.at(host, || UdpSocket::bind((address, 5000)).unwrap());
        socket.set_read_timeout(Some(Duration::from_millis(200))).unwrap();
        socket
    });
    while goes_on() {
        // Consent holds for a while only.
        let (greeted, time) = greet(&victim, relay, word.grant().id, &clock);
        let mut hop = Hop::new(word, relay, greeted.address, greeted.consent, time);
        hop.set_cookie(greet(&alice, relay, word.grant().id, &clock).0.cookie);
        for _ in 0..BURST {
            for _ in 0..BURST {
                let mut packet = vec![7; hop.room() + INNER];
                assert!(hop.seal(clock.now(), &mut packet));
                let _ = alice.send_to(&packet, relay);
            }
            std::thread::sleep(PAUSE);
        }
    }
}

/// What a relay answers to a greeting for this grant.
fn greet(socket: &UdpSocket, relay: SocketAddr, grant: u32, clock: &Clock) -> (Greeted, RelayClock) {
    let nonce: [u8; 8] = byway_net::seed().unwrap();
    let mut greeting = [0; GREET_LEN];
    Greet { nonce, grant }.write(&mut Writer::new(&mut greeting));
    let answer = wait_for(PATIENCE, || {
        let sent = clock.now();
        socket.send_to(&greeting, relay).unwrap();
        let mut packet = [0; 2_000];
        while let Ok((length, from)) = socket.recv_from(&mut packet) {
            let greeted =
                Greeted::read(&packet[..length]).ok().filter(|it| it.nonce == nonce && from == relay);
            if let Some(greeted) = greeted {
                return Some((greeted, RelayClock::learn(&greeted, sent, clock.now())));
            }
        }
        None
    });
    answer.expect("a relay that answers greetings")
}
