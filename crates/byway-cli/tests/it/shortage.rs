//! Programs that run out of descriptors, and have some again.

use crate::common::machine::{PATIENCE, wait_for};
use crate::common::{Place, Running};
use std::fs;
use std::io::Read as _;
use std::net::{SocketAddr, TcpStream};
use std::process::{Command, Stdio};

/// Descriptors that a program may have.
const DESCRIPTORS: usize = 64;
/// Descriptors that are taken and not listed. An accept(2) that waits holds the number of the
/// connection to come; so does that of the status socket.
const UNLISTED_DESCRIPTORS: usize = 1;
/// Connections that come before it is looked whether a descriptor is left.
const CONNECTIONS_PER_LOOK: usize = 4;
/// Connections that come when no descriptor is left.
const LATE_CONNECTIONS: usize = 36;

/// Starts byway with few descriptors.
fn with_few_descriptors(place: &Place, arguments: &[&str]) -> Running {
    let byway = place.command("starved", arguments);
    let mut command = Command::new("sh");
    command.args(["-c", &format!("ulimit -n {DESCRIPTORS}; exec \"$0\" \"$@\"")]);
    command.arg(byway.get_program()).args(byway.get_args()).env_clear();
    command.envs(byway.get_envs().filter_map(|(name, value)| Some((name, value?))));
    command.current_dir(byway.get_current_dir().unwrap());
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    Running::start(command)
}

/// Connections that wait while descriptors are short are taken as soon as there are some again,
/// also if nobody else comes.
#[track_caller]
fn serves_who_waited(arguments: &[&str]) {
    let place = Place::new();
    let mut program =
        with_few_descriptors(&place, &[arguments, &["--listen", "127.0.0.1:0", "--json"]].concat());
    let address: SocketAddr = program.event("ready")["listen"][0].as_str().unwrap().parse().unwrap();
    let connect = || TcpStream::connect(address).unwrap();
    let descriptors = || fs::read_dir(format!("/proc/{}/fd", program.id())).unwrap().count();
    // A connection that says nothing is closed ten seconds after it was taken. On a busy machine
    // the first are closed before the last are there, so more come until the descriptors are gone.
    let mut taken = Vec::new();
    let short = wait_for(PATIENCE, || {
        taken.extend((0..CONNECTIONS_PER_LOOK).map(|_| connect()));
        (descriptors() + UNLISTED_DESCRIPTORS >= DESCRIPTORS).then_some(())
    });
    assert!(short.is_some(), "{} descriptors", descriptors());
    let waiting: Vec<TcpStream> = (0..LATE_CONNECTIONS).map(|_| connect()).collect();
    drop(taken);
    for mut connection in waiting {
        connection.set_read_timeout(Some(PATIENCE)).unwrap();
        let read = connection.read(&mut [0; 1]);
        assert!(!matches!(&read, Ok(1..)) && !is_timeout(&read), "nobody took it: {read:?}");
    }
}

fn is_timeout(read: &std::io::Result<usize>) -> bool {
    use std::io::ErrorKind::{TimedOut, WouldBlock};
    read.as_ref().is_err_and(|error| matches!(error.kind(), TimedOut | WouldBlock))
}

#[test]
fn a_sink_takes_who_waited_for_a_descriptor() {
    serves_who_waited(&["sink", "out"]);
}

#[test]
fn a_receiver_takes_who_waited_for_a_descriptor() {
    serves_who_waited(&["recv", "in"]);
}

#[test]
fn a_relay_takes_who_waited_for_a_descriptor() {
    serves_who_waited(&["relay", "--allow-destination", "127.0.0.0/8"]);
}
