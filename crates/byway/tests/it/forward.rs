//! `byway forward`: programs of one host reach services of another, over loopback, with the kernel's TCP at both ends.

use crate::common::{Place, Running};
use std::io::{ErrorKind, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::thread::{JoinHandle, spawn};
use std::time::Duration;

/// How long anything may take that is waited for.
const PATIENCE: Duration = Duration::from_secs(120);

/// A receiver that allows `rules`, and a forward to it.
struct Pair {
    place: Place,
    receiver: Running,
    forward: Running,
    /// Where the forward listens, in the order of its arguments.
    listens: Vec<SocketAddr>,
}

impl Pair {
    fn start(rules: &[&str], ports: &[&str]) -> Self {
        let place = Place::new();
        let mut arguments = vec!["recv", "in", "--listen", "127.0.0.1:0"];
        rules.iter().for_each(|rule| arguments.extend(["--allow-forward", rule]));
        let mut receiver = Running::start(place.command("receiver", &arguments));
        let ticket = receiver.line();
        let (forward, listens) = Self::forward(&place, &ticket, ports);
        Self { place, receiver, forward, listens }
    }

    fn forward(place: &Place, ticket: &str, ports: &[&str]) -> (Running, Vec<SocketAddr>) {
        let arguments = [&["forward", "--json", "--to", ticket][..], ports].concat();
        let mut forward = Running::start(place.command("sender", &arguments));
        let ready = forward.event("ready");
        let listens = ready["listen"].as_array().unwrap();
        let listens = listens.iter().map(|it| it.as_str().unwrap().parse().unwrap()).collect();
        (forward, listens)
    }

    fn connect(&self, port: usize) -> TcpStream {
        let stream = TcpStream::connect(self.listens[port]).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        stream.set_write_timeout(Some(PATIENCE)).unwrap();
        stream
    }
}

/// A service for one connection, and its port.
fn service<T: Send + 'static>(serve: impl FnOnce(TcpStream) -> T + Send + 'static) -> (u16, JoinHandle<T>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    (port, spawn(move || serve(listener.accept().unwrap().0)))
}

/// What a connection brings to its end.
fn all(mut stream: &TcpStream) -> Vec<u8> {
    let mut bytes = Vec::new();
    stream.read_to_end(&mut bytes).unwrap();
    bytes
}

/// Bytes that differ from place to place.
fn bytes(length: usize) -> Vec<u8> {
    (0..length as u32).flat_map(|it| it.wrapping_mul(0x9e37_79b9).to_be_bytes()).take(length).collect()
}

#[test]
fn bytes_go_both_ways_and_each_side_ends_for_itself() {
    let sent = bytes(3_000_000);
    let answer = bytes(2_000_001);
    let expected = sent.clone();
    let reply = answer.clone();
    let (port, served) = service(move |mut stream| {
        // The end of what the program sends comes while the way back is open.
        assert!(all(&stream) == expected);
        stream.write_all(&reply).unwrap();
    });
    let pair = Pair::start(&[&format!("localhost:{port}")], &[&format!("0:localhost:{port}")]);
    let mut stream = pair.connect(0);
    stream.write_all(&sent).unwrap();
    stream.shutdown(Shutdown::Write).unwrap();
    assert!(all(&stream) == answer);
    served.join().unwrap();
    pair.forward.interrupt();
    let ended = pair.forward.end();
    assert_eq!(ended.code, Some(130), "{}", ended.stderr);
    assert!(pair.place.path("in").is_dir());
    pair.receiver.interrupt();
    assert_eq!(pair.receiver.end().code, Some(130));
}

#[test]
fn what_is_not_allowed_and_what_nobody_listens_at_is_told_at_once() {
    // A port that was free a moment ago.
    let closed = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let mut pair = Pair::start(
        &[&format!("localhost:{closed}"), "10.0.0.0/8:*"],
        &[&format!("0:localhost:{closed}"), "0:localhost:1", "0:127.0.0.1:2"],
    );
    pair.forward.event("connected");
    for (port, told) in [(0, "nobody listens"), (1, "does not allow"), (2, "does not allow")] {
        let error = pair.connect(port).read(&mut [0]).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::ConnectionReset);
        let warning = pair.forward.event("warning");
        assert!(warning["message"].as_str().unwrap().contains(told), "{warning}");
    }
}
