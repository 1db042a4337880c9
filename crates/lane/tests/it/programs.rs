//! Programs and targets of a lane, on this host.

use byway_forward::stream_request::Refusal;
use byway_forward_host::Listening;
use byway_lane::proxy::LaneEvent;
use byway_lane::{LaneError, RunningLane};
use std::io::{ErrorKind, Read as _, Write as _};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::thread;
use std::time::Duration;

const PATIENCE: Duration = Duration::from_secs(20);

/// A lane with a port that leads to `target`, and one where programs name theirs.
fn lane(target: SocketAddr, most: usize) -> (RunningLane, SocketAddr, SocketAddr) {
    let forward = format!("0:{target}").parse().unwrap();
    let listening = Listening::begin(vec![forward], &["127.0.0.1:0".parse().unwrap()]).unwrap();
    let ports: Vec<_> = listening.listeners().map(|it| it.address).collect();
    let lane = RunningLane::start(listening, most).unwrap();
    (lane, ports[0], ports[1])
}

fn connect(port: SocketAddr) -> TcpStream {
    let program = TcpStream::connect(port).unwrap();
    program.set_read_timeout(Some(PATIENCE)).unwrap();
    program
}

fn listener() -> (TcpListener, SocketAddr) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    (listener, address)
}

/// A port where nobody listens.
fn closed_port() -> SocketAddr {
    listener().1
}

fn event(lane: &RunningLane) -> LaneEvent {
    lane.next(PATIENCE).unwrap().expect("an event")
}

fn bytes(length: usize, seed: u8) -> Vec<u8> {
    (0..length).map(|at| (at as u8).wrapping_mul(31).wrapping_add((at >> 8) as u8) ^ seed).collect()
}

#[test]
fn all_bytes_pass_both_ways_and_each_end_by_itself() {
    let (target, address) = listener();
    let (lane, port, _) = lane(address, 100);
    let serve = thread::spawn(move || {
        let (mut upload, _) = target.accept().unwrap();
        let mut got = Vec::new();
        upload.read_to_end(&mut got).unwrap();
        // The program's end has passed: what comes back comes after it.
        upload.write_all(&bytes(3_000_000, 7)).unwrap();
        got
    });
    let mut program = connect(port);
    program.write_all(&bytes(5_000_000, 3)).unwrap();
    program.shutdown(Shutdown::Write).unwrap();
    let mut back = Vec::new();
    program.read_to_end(&mut back).unwrap();
    assert!(serve.join().unwrap() == bytes(5_000_000, 3), "what the target got");
    assert!(back == bytes(3_000_000, 7), "what the program got");
    let figures = lane.stop().unwrap();
    assert_eq!((figures.opened, figures.moved.forth, figures.moved.back), (1, 5_000_000, 3_000_000));
}

#[test]
fn a_target_that_is_refused_or_resets_is_told_and_the_program_is_reset() {
    let nobody = closed_port();
    let (refusing, port, _) = lane(nobody, 100);
    let mut program = connect(port);
    assert_eq!(program.read(&mut [0]).unwrap_err().kind(), ErrorKind::ConnectionReset);
    assert_eq!(event(&refusing), LaneEvent::Refused(nobody.into(), Refusal::Refused));

    let (target, address) = listener();
    let (resetting, port, _) = lane(address, 100);
    let mut program = connect(port);
    program.write_all(b"unread").unwrap();
    let (upload, _) = target.accept().unwrap();
    upload.set_read_timeout(Some(PATIENCE)).unwrap();
    assert_eq!(upload.peek(&mut [0; 6]).unwrap(), 6);
    // What is closed with bytes unread is reset.
    drop(upload);
    assert_eq!(program.read(&mut [0]).unwrap_err().kind(), ErrorKind::ConnectionReset);
    assert_eq!(event(&resetting), LaneEvent::Reset(address.into()));
}

#[test]
fn a_program_that_is_reset_resets_the_target() {
    let (target, address) = listener();
    let (lane, port, _) = lane(address, 100);
    let program = connect(port);
    let (mut upload, _) = target.accept().unwrap();
    upload.set_read_timeout(Some(PATIENCE)).unwrap();
    upload.write_all(b"unread").unwrap();
    assert_eq!(program.peek(&mut [0; 6]).unwrap(), 6);
    drop(program);
    assert_eq!(upload.read(&mut [0]).unwrap_err().kind(), ErrorKind::ConnectionReset);
    assert_eq!(event(&lane), LaneEvent::Reset(address.into()));
}

#[test]
fn programs_name_their_targets_by_socks_and_by_connect_and_no_address_of_this_host() {
    let (_, address) = listener();
    let (lane, _, port) = lane(address, 100);
    let mut program = connect(port);
    write!(program, "CONNECT {address} HTTP/1.1\r\nHost: {address}\r\n\r\n").unwrap();
    let mut told = String::new();
    program.read_to_string(&mut told).unwrap();
    assert!(told.starts_with("HTTP/1.1 403 "), "{told}");
    assert_eq!(event(&lane), LaneEvent::Refused(address.into(), Refusal::Near));

    for [a, b, c, d] in [[127, 0, 0, 1], [169, 254, 169, 254], [0, 0, 0, 0]] {
        let mut program = connect(port);
        program.write_all(&[5, 1, 0, 5, 1, 0, 1, a, b, c, d, 0, 80]).unwrap();
        let mut told = Vec::new();
        program.read_to_end(&mut told).unwrap();
        assert_eq!(told, [5, 0, 5, 2, 0, 1, 0, 0, 0, 0, 0, 0]);
    }

    let mut program = connect(port);
    program.write_all(b"GET / HTTP/1.1\r\n\r\n").unwrap();
    let mut told = String::new();
    program.read_to_string(&mut told).unwrap();
    assert!(told.starts_with("HTTP/1.1 405 ") && told.contains("CONNECT alone"), "{told}");
}

#[test]
fn connections_beyond_the_most_wait_and_are_told_of() {
    let (target, address) = listener();
    let (lane, port, _) = lane(address, 4);
    let mut programs: Vec<_> = (0..6).map(|_| connect(port)).collect();
    let served: Vec<_> = (0..4).map(|_| target.accept().unwrap().0).collect();
    assert_eq!(event(&lane), LaneEvent::Full);
    target.set_nonblocking(true).unwrap();
    assert_eq!(target.accept().unwrap_err().kind(), ErrorKind::WouldBlock);
    // The fifth gets the place of the first.
    programs.remove(0).shutdown(Shutdown::Both).unwrap();
    drop(served);
    target.set_nonblocking(false).unwrap();
    let (mut fifth, _) = target.accept().unwrap();
    programs[3].write_all(b"x").unwrap();
    fifth.set_read_timeout(Some(PATIENCE)).unwrap();
    assert_eq!(fifth.read(&mut [0; 2]).unwrap(), 1);
}

#[test]
fn many_connections_share_the_lane() {
    let (target, address) = listener();
    let (lane, port, _) = lane(address, 1_000);
    let length = 40_000;
    let serve = thread::spawn(move || {
        let uploads: Vec<_> = (0..300).map(|_| target.accept().unwrap().0).collect();
        uploads
            .into_iter()
            .map(|mut upload| {
                let mut got = Vec::new();
                upload.read_to_end(&mut got).unwrap();
                got.len()
            })
            .collect::<Vec<_>>()
    });
    let programs: Vec<_> = (0..300).map(|_| connect(port)).collect();
    for mut program in &programs {
        program.write_all(&bytes(length, 1)).unwrap();
        program.shutdown(Shutdown::Write).unwrap();
    }
    assert_eq!(serve.join().unwrap(), [length; 300]);
    for mut program in &programs {
        assert_eq!(program.read(&mut [0]).unwrap(), 0, "the target's end");
    }
    assert_eq!(lane.stop().unwrap().moved.forth, 300 * length as u64);
}

#[test]
fn targets_that_read_nothing_hold_up_no_others() {
    let (target, address) = listener();
    let (lane, port, _) = lane(address, 1_000);
    let stalled: Vec<_> = (0..40)
        .map(|_| {
            let mut program = connect(port);
            program.set_nonblocking(true).unwrap();
            // More than all buffers on the way take.
            let all = bytes(1 << 20, 5);
            while program.write(&all).is_ok() {}
            (program, target.accept().unwrap().0)
        })
        .collect();
    let mut program = connect(port);
    let (mut upload, _) = target.accept().unwrap();
    let write = thread::spawn(move || {
        program.write_all(&bytes(3_000_000, 9)).unwrap();
        program.shutdown(Shutdown::Write).unwrap();
    });
    let mut got = Vec::new();
    upload.set_read_timeout(Some(PATIENCE)).unwrap();
    upload.read_to_end(&mut got).unwrap();
    assert!(got == bytes(3_000_000, 9));
    write.join().unwrap();
    drop(stalled);
    drop(lane);
}

#[test]
fn a_lane_that_stops_resets_what_is_open() {
    let (target, address) = listener();
    let (lane, port, _) = lane(address, 100);
    let mut program = connect(port);
    let (mut upload, _) = target.accept().unwrap();
    program.write_all(b"half of it").unwrap();
    upload.set_read_timeout(Some(PATIENCE)).unwrap();
    upload.read_exact(&mut [0; 10]).unwrap();
    lane.stop().unwrap();
    assert_eq!(program.read(&mut [0]).unwrap_err().kind(), ErrorKind::ConnectionReset);
    assert_eq!(upload.read(&mut [0]).unwrap_err().kind(), ErrorKind::ConnectionReset);
}

#[test]
fn a_lane_listens_on_loopback_alone_and_on_free_ports() {
    let open = Listening::begin(Vec::new(), &["0.0.0.0:0".parse().unwrap()]).unwrap();
    assert!(matches!(RunningLane::start(open, 1), Err(LaneError::NotLoopback(_))));
    let (_kept, taken) = listener();
    let error = Listening::begin(Vec::new(), &[taken]).unwrap_err().to_string();
    assert!(error.contains(&taken.to_string()) && error.contains("in use"), "{error}");
}
