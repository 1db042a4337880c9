//! TCP, where UDP brings no answer.

use crate::common::{bytes, config};
use byway::{Endpoint, Ticket};
use byway_transfer::NamedAddress;
use std::io::{Read, Write, copy};
use std::net::{SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::thread;

/// An address whose UDP answers nobody, and whose TCP connections lead to `to`.
fn without_udp(to: SocketAddr) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let silent = UdpSocket::bind(address).unwrap();
    let splice = move |mut from: TcpStream, mut into: TcpStream| {
        thread::spawn(move || copy(&mut from, &mut into));
    };
    thread::spawn(move || {
        let _silent = silent;
        for near in listener.incoming() {
            let (near, far) = (near.unwrap(), TcpStream::connect(to).unwrap());
            splice(near.try_clone().unwrap(), far.try_clone().unwrap());
            splice(far, near);
        }
    });
    address
}

#[test]
fn who_connects_uses_tcp_where_udp_brings_no_answer() {
    let listener = Endpoint::listen(config()).unwrap();
    let mut ticket = listener.ticket();
    ticket.addresses = vec![without_udp(ticket.addresses[0])];
    answers_over_tcp(listener, &ticket);
}

#[test]
fn an_address_that_a_name_leads_to_is_dialled_over_tcp() {
    let listener = Endpoint::listen(config()).unwrap();
    let mut ticket = listener.ticket();
    let port = without_udp(ticket.addresses[0]).port();
    ticket.addresses.clear();
    ticket.names = vec![NamedAddress { name: "localhost".parse().unwrap(), port }];
    answers_over_tcp(listener, &ticket);
}

/// What is sent to the listener comes back, over TCP.
fn answers_over_tcp(listener: Endpoint, ticket: &Ticket) {
    let served = thread::spawn(move || {
        let peer = listener.accept().unwrap();
        let (mut receiving, mut sending) = peer.accept_stream().unwrap().split();
        copy(&mut receiving, &mut sending).unwrap();
        sending.finish().unwrap();
        // The other side may have gone by then.
        let _ = peer.close();
    });
    let peer = byway::connect_with(ticket, config()).unwrap();
    let said = bytes(3, 300_000);
    let (mut receiving, mut sending) = peer.open_stream().unwrap().split();
    let reader = thread::spawn(move || {
        let mut answer = Vec::new();
        receiving.read_to_end(&mut answer).unwrap();
        answer
    });
    sending.write_all(&said).unwrap();
    sending.finish().unwrap();
    let answer = reader.join().unwrap();
    assert!(answer == said, "{} bytes came back", answer.len());
    assert!(peer.paths().iter().any(|path| path.name == "direct over TCP"), "{:?}", peer.paths());
    peer.close().unwrap();
    served.join().unwrap();
}
