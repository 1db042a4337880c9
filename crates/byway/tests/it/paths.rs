//! Several paths: from several addresses of a host, and through a relay.

use crate::common::{bytes, config, pair_with, until};
use byway::{Config, Endpoint, PathState, Priority, Secret, Word};
use byway_net::Socket;
use byway_relay::Policy;
use byway_transfer::{Relaying, RelayingPlan};
use std::collections::BTreeSet;
use std::io::{Read, Write};
use std::thread;
use std::time::Duration;

/// A relay on loopback.
pub fn relay() -> (Relaying, Word) {
    let socket = Socket::bind("127.0.0.1:0".parse().unwrap()).unwrap();
    let relaying = Relaying::start(RelayingPlan {
        key: Secret::new([3; 32]),
        policy: Policy::public().allow("127.0.0.0/8".parse().unwrap()),
        addresses: vec![socket.address()],
        sockets: vec![socket],
        listeners: Vec::new(),
        tcp_congestion: byway_net::TcpCongestion::Cubic,
        tcp_buffer: None,
        expires: Duration::from_secs(3_600),
        rate: None,
        quota: None,
        per_day: None,
        per_month: None,
        accounts: None,
        words: None,
        keep: None,
        registries: Vec::new(),
        lend: None,
    })
    .unwrap();
    let word = relaying.word().clone();
    (relaying, word)
}

#[test]
fn each_local_address_is_a_path() {
    let two = ["127.0.0.1:0", "127.0.0.2:0"].map(|address| address.parse().unwrap());
    let (_listener, near, far) = pair_with(config().bind(two), config());
    let mut stream = near.open_stream().unwrap();
    let reader = thread::spawn(move || {
        let (mut receiving, _sending) = far.accept_stream().unwrap().split();
        (std::io::copy(&mut receiving, &mut std::io::sink()).unwrap(), far)
    });
    let (piece, mut sent) = (bytes(1, 100_000), 0);
    let mut found = BTreeSet::new();
    until("both paths", || {
        stream.write_all(&piece).unwrap();
        sent += piece.len() as u64;
        // One that is not needed may be given up again.
        let works = near.paths().into_iter().filter(|path| path.state != PathState::Probing);
        found.extend(works.map(|path| path.name));
        found.len() >= 2
    });
    assert_eq!(found.into_iter().collect::<Vec<_>>(), ["direct from 127.0.0.1", "direct from 127.0.0.2"]);
    stream.finish().unwrap();
    let (read, _far) = reader.join().unwrap();
    assert_eq!(read, sent);
    until("nothing to send", || near.why_slow() == Some(byway::PauseReason::ApplicationLimited));
    near.close().unwrap();
    assert!(near.paths().is_empty());
}

#[test]
fn a_listener_behind_a_relay_is_reached_through_it() {
    let (_relaying, word) = relay();
    let listener = Endpoint::listen(config().relays([word])).unwrap();
    let mut ticket = listener.ticket();
    assert_eq!((ticket.relays.len(), listener.relay_troubles()), (1, Vec::new()));
    // Nothing but the relay leads there.
    ticket.addresses.clear();
    let here = Config::new().protocol("test/1").unwrap().priority(Priority::Background);
    let near = byway::connect_with(&ticket, here).unwrap();
    let far = listener.accept().unwrap();
    let (mut stream, sent) = (near.open_stream().unwrap(), bytes(2, 1 << 20));
    let expected = sent.clone();
    let reader = thread::spawn(move || {
        let mut read = Vec::new();
        far.accept_stream().unwrap().read_to_end(&mut read).unwrap();
        assert!(read == expected);
        far
    });
    stream.write_all(&sent).unwrap();
    stream.finish().unwrap();
    let _far = reader.join().unwrap();
    until("the path", || near.paths().iter().any(|path| path.relayed && path.bytes > 1 << 20));
}
