//! A peer that is killed: the other side learns of it in the time that was set.

use crate::common::{PATIENCE, config};
use byway::{ConnectionError, Endpoint, StreamError};
use std::io::{BufRead, BufReader, Read, Write};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// Holds the ticket for the process that is killed.
const TICKET: &str = "BYWAY_TEST_TICKET";

/// What the process does that is killed: it writes without end.
#[test]
fn the_process_that_is_killed() {
    let Ok(ticket) = std::env::var(TICKET) else { return };
    let peer = byway::connect_with(&ticket.parse().unwrap(), config()).unwrap();
    let mut stream = peer.open_stream().unwrap();
    loop {
        stream.write_all(&[1; 10_000]).unwrap();
        // The other side waits for this before it kills.
        println!("written");
    }
}

#[test]
fn a_killed_peer_is_noticed_in_time() {
    const IDLE: Duration = Duration::from_secs(2);
    let listener = Endpoint::listen(config().idle_timeout(IDLE)).unwrap();
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["killed::the_process_that_is_killed", "--exact", "--nocapture"]);
    command.env(TICKET, listener.ticket().to_string()).stdout(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let peer = listener.accept().unwrap();
    let mut stream = peer.accept_stream().unwrap();
    stream.read_exact(&mut [0; 50_000]).unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    assert!(lines.any(|line| line.unwrap() == "written"));
    child.kill().unwrap();
    child.wait().unwrap();
    let killed = Instant::now();
    let error = std::io::copy(&mut stream, &mut std::io::sink()).unwrap_err();
    assert_eq!(StreamError::of(&error), Some(&StreamError::Connection(ConnectionError::Lost)));
    let passed = killed.elapsed();
    assert!(passed >= IDLE / 2 && passed < PATIENCE / 2, "{passed:?}");
    assert_eq!(peer.open_stream().unwrap_err(), ConnectionError::Lost);
    assert_eq!(peer.close(), Err(ConnectionError::Lost));
}
