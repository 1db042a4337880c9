//! A stranger has a good grant, and sends far more than an end host lends.

use super::{ALICE, Hosts, POOR, VICTIM, address};
use crate::greet::greet;
use byway_net::Clock;
use byway_wire::relay::{Hop, Word};
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
        let socket = hosts.spaces.at(host, || UdpSocket::bind((address, 0)).unwrap());
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
