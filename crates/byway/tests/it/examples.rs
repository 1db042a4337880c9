//! The examples do what they say.

use crate::common::{config, pair, until};
use byway::{Endpoint, Identity, Secret};
use std::path::Path;
use std::thread;

#[path = "../../examples/datagrams.rs"]
#[allow(dead_code, clippy::print_stdout, reason = "its main is for people")]
mod datagrams;

#[path = "../../examples/listen.rs"]
#[allow(dead_code, clippy::print_stdout, reason = "its main is for people")]
mod listen;
#[path = "../../examples/paths.rs"]
#[allow(dead_code, clippy::print_stdout, reason = "its main is for people")]
mod paths;
#[path = "../../examples/reconnect.rs"]
#[allow(dead_code, clippy::print_stdout, clippy::print_stderr, reason = "its main is for people")]
mod reconnect;
#[path = "../../examples/relay.rs"]
#[allow(dead_code, clippy::print_stdout, reason = "its main is for people")]
mod relay;
#[path = "../../examples/send.rs"]
#[allow(dead_code, clippy::print_stdout, reason = "its main is for people")]
mod send;
#[cfg(feature = "tokio")]
#[path = "../../examples/tasks.rs"]
#[allow(dead_code, clippy::print_stdout, reason = "its main is for people")]
mod tasks;

#[test]
fn files_are_dropped_and_names_lead_nowhere_else() {
    let place = tempfile::tempdir().unwrap();
    let (from, to) = (place.path().join("from"), place.path().join("to"));
    for directory in [&from, &to] {
        std::fs::create_dir(directory).unwrap();
    }
    let files = [("empty", 0), ("small", 100), ("large", 5 << 20)];
    for (name, size) in files {
        std::fs::write(from.join(name), crate::common::bytes(size as u64, size)).unwrap();
    }
    let (_listener, near, far) = pair();
    let target = to.clone();
    let taker = thread::spawn(move || listen::take(&far, &target).map_err(|error| error.to_string()));
    for (name, _) in files {
        send::send(&near, &from.join(name)).unwrap();
    }
    near.close().unwrap();
    assert_eq!(taker.join().unwrap(), Ok(3));
    for (name, size) in files {
        let read = std::fs::read(to.join(name)).unwrap();
        assert!(read == crate::common::bytes(size as u64, size), "{name}");
    }
    for name in ["../outside", "a/b", "..", "/etc/x", "small/", ""] {
        let (_listener, near, far) = pair();
        let target = to.clone();
        let taker = thread::spawn(move || listen::take(&far, &target).map_err(|error| error.to_string()));
        near.send_object(name.as_bytes(), 0, &[][..]).unwrap();
        let error = taker.join().unwrap().unwrap_err();
        assert!(error.contains("no name of a file"), "{name}: {error}");
    }
    assert!(!Path::new(&place.path().join("outside")).exists());
}

#[test]
fn positions_arrive_as_datagrams() {
    let (_listener, near, far) = pair();
    for number in 0..10 {
        datagrams::send(&near, number, f64::from(number) / 2.0).unwrap();
        assert_eq!(datagrams::receive(&far).unwrap(), (number, f64::from(number) / 2.0));
    }
}

#[test]
fn paths_and_what_holds_them_up_are_shown() {
    let (_listener, near, _far) = pair();
    until("a line for the path", || {
        let lines = paths::show(&near);
        lines.iter().any(|line| line.starts_with("direct (directly): "))
            && lines.iter().any(|line| line.starts_with("why not faster: "))
    });
}

#[test]
fn a_peer_that_was_restarted_is_connected_to_again() {
    // The same key, permission and port: the ticket holds.
    let key = [5; 32];
    let listen = |port: u16| {
        let again = config()
            .identity(Identity::new(Secret::new(key)))
            .permission(Secret::new([1; 16]))
            .bind([([127, 0, 0, 1], port).into()]);
        Endpoint::listen(again).unwrap()
    };
    let first = listen(0);
    let ticket = first.ticket();
    let near = reconnect::connect(&ticket, &config()).unwrap();
    first.accept().unwrap().abort(1, "restarted");
    until("the end of the session", || near.ended().is_some());
    assert!(reconnect::send(&near, "lost").is_err());
    drop(first);
    let (there, at) = (ticket.clone(), ticket.addresses[0]);
    let connecting = thread::spawn(move || reconnect::connect(&there, &config()).unwrap());
    until("the socket", || std::net::UdpSocket::bind(at).is_ok());
    let second = listen(at.port());
    let far = second.accept().unwrap();
    let near = connecting.join().unwrap();
    let reader = thread::spawn(move || {
        let mut line = String::new();
        std::io::Read::read_to_string(&mut far.accept_stream().unwrap(), &mut line).unwrap();
        (line, far)
    });
    reconnect::send(&near, "a line").unwrap();
    assert_eq!(reader.join().unwrap().0, "a line");
}

#[test]
fn a_greeting_arrives_through_a_relay() {
    let (_relaying, word) = crate::paths::relay();
    let listener = relay::listen(config(), word.clone()).unwrap();
    let mut ticket = listener.ticket();
    assert_eq!(ticket.relays.len(), 1);
    ticket.addresses.clear();
    let heard = thread::spawn(move || relay::hear(&listener).map_err(|error| error.to_string()));
    relay::greet(byway::Config::new().protocol("test/1").unwrap().relays([word]), &ticket, "good morning")
        .unwrap();
    assert_eq!(heard.join().unwrap().unwrap(), "good morning");
}

#[cfg(feature = "tokio")]
#[tokio::test]
async fn tasks_ask_and_are_answered() {
    let listener = Endpoint::listen(config()).unwrap();
    let ticket = listener.ticket();
    let server = tokio::spawn(async move { tasks::serve(listener.accept_async().await.unwrap()).await });
    let near = byway::connect_async(&ticket, config()).await.unwrap();
    let (one, two) = tokio::join!(tasks::ask(&near, "good morning"), tasks::ask(&near, "good night"));
    assert_eq!((one.unwrap(), two.unwrap()), ("good morning".into(), "good night".into()));
    near.close_async().await.unwrap();
    server.await.unwrap();
}
