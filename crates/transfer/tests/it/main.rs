//! The examples do what they say: two processes that share nothing but sockets on loopback.
#![allow(clippy::unwrap_used, reason = "a test ends where it fails")]

mod ends;
mod figures;
mod limits;

use byway_transfer::Ticket;
use std::fs;
use std::io::{BufRead, BufReader};
use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

/// A process that ends with the test.
struct Example(Child);

impl Drop for Example {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// An example of this package, which `cargo test` builds beside the tests.
fn example(name: &str) -> Command {
    let test = std::env::current_exe().unwrap();
    let program: PathBuf = test.parent().unwrap().with_file_name("examples").join(name);
    assert!(program.exists(), "build the examples first: cargo build -p byway-transfer --examples");
    Command::new(program)
}

#[test]
fn a_tree_travels_from_the_example_that_sends_to_the_one_that_receives() {
    let place = tempfile::tempdir().unwrap();
    let (tree, sink) = (place.path().join("tree"), place.path().join("in"));
    byway_files::generate(&tree, 1, 3_000_000).unwrap();
    let mut receiver = Example(example("receive_tree").arg(&sink).stdout(Stdio::piped()).spawn().unwrap());
    let mut lines = BufReader::new(receiver.0.stdout.take().unwrap()).lines();
    let ticket: Ticket = lines.next().unwrap().unwrap().parse().unwrap();
    // The receiver listens on all addresses: the one of loopback is among them.
    let port = ticket.addresses.iter().find(|address| address.is_ipv4()).unwrap().port();
    let ticket = Ticket { addresses: vec![SocketAddr::new(Ipv4Addr::LOCALHOST.into(), port)], ..ticket };

    let sent = example("send_tree").arg(&tree).arg(ticket.to_string()).output().unwrap();
    assert!(sent.status.success(), "{}", String::from_utf8_lossy(&sent.stderr));
    assert!(receiver.0.wait().unwrap().success());
    assert!(lines.next().unwrap().unwrap().starts_with("3000000 bytes from byway-key-"));
    assert!(byway_files::compare(&tree, &sink.join("tree")).unwrap().is_empty());
    assert!(fs::read_dir(&sink).unwrap().count() == 1, "nothing unfinished stays behind");
}
