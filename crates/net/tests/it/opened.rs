//! Sockets that an owner opens while its driver runs.

use crate::common::{Notebook, PATIENCE, socket};
use byway_net::{Carrier, Clock, LoopControl, Owner, Socket, spawn};
use byway_wire::{Dscp, Ecn, Instant, LinkChange, Local, Transmit};
use std::net::UdpSocket;

/// Opens sockets one after the other, sends by each, and ends once it has heard back by as many.
struct Opener {
    peer: std::net::SocketAddr,
    to_open: Vec<Socket>,
    /// Sockets that it has sent by.
    said: usize,
    until: Instant,
}

impl Owner for Opener {
    type Machine = Notebook;

    fn turn(&mut self, machine: &mut Notebook, now: Instant) -> LoopControl {
        machine.deadline = Some(self.until);
        if now >= self.until || machine.received.len() == 3 {
            return LoopControl::Stop;
        }
        while self.said < machine.links.len() {
            let local = Local(u16::try_from(self.said).unwrap());
            let remote = self.peer;
            let transmit = Transmit {
                local,
                remote,
                ecn: Ecn::NotEct,
                dscp: Dscp::BestEffort,
                size: 5,
                segment: 5,
                phantom: 0,
            };
            machine.to_send.push_back((transmit, b"hello".to_vec()));
            self.said += 1;
        }
        LoopControl::Continue
    }

    fn opened(&mut self) -> Vec<Carrier> {
        self.to_open.pop().map(Carrier::from).into_iter().collect()
    }
}

#[test]
fn they_are_announced_and_carry_both_ways() {
    let peer = UdpSocket::bind("127.0.0.1:0").unwrap();
    let clock = Clock::new();
    let (first, second, third) = (socket("127.0.0.1:0"), socket("127.0.0.1:0"), socket("127.0.0.1:0"));
    let addresses = [&first, &second, &third].map(Socket::address);
    let until = clock.now() + PATIENCE;
    let owner = Opener { peer: peer.local_addr().unwrap(), to_open: vec![third, second], said: 0, until };
    let handle = spawn("opener", Notebook::default(), owner, vec![first], clock).unwrap();
    peer.set_read_timeout(Some(std::time::Duration::from_secs(30))).unwrap();
    let mut heard = Vec::new();
    while heard.len() < 3 {
        let mut buffer = [0; 16];
        let (size, from) = peer.recv_from(&mut buffer).expect("it said nothing");
        assert_eq!(&buffer[..size], b"hello");
        peer.send_to(b"yes", from).unwrap();
        heard.push(from);
    }
    let finished = handle.join().expect("it ended");
    finished.outcome.unwrap();
    assert_eq!(heard, addresses);
    let links: Vec<LinkChange> = finished.machine.links;
    assert!(links.iter().zip(0..).all(|(link, number)| link.up && link.local == Local(number)), "{links:?}");
    assert_eq!(links.iter().map(|link| link.address).collect::<Vec<_>>(), addresses);
    assert_eq!(finished.sockets.len(), 3);
    assert_eq!(finished.machine.received.len(), 3);
}
