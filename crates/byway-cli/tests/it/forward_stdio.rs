//! `byway forward --stdio`: standard input and output are one connection, over loopback. Programs
//! such as `ssh` that begin it are in `tests/machine/forward/stdio.rs`.

use crate::common::peak::memory;
use crate::common::{Ended, Place, Running};
use rustix::net::sockopt::set_socket_recv_buffer_size;
use std::io::{ErrorKind, Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::process::{Child, ChildStdin, ChildStdout, Stdio};
use std::thread::{JoinHandle, spawn};
use std::time::{Duration, Instant};

/// How long anything may take that is waited for.
const PATIENCE: Duration = Duration::from_secs(60);
/// Bytes that may stand between a program and a target that does not read: buffers of the kernel
/// for three sockets and two pipes, and a window of the session.
const MAX_UNREAD_BYTES: usize = 32 << 20;

/// A target and a receiver that allows it.
struct Site {
    place: Place,
    receiver: Running,
    ticket: String,
    listener: TcpListener,
    target: String,
}

impl Site {
    fn new() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let target = format!("localhost:{}", listener.local_addr().unwrap().port());
        let place = Place::new();
        let allow = ["in", "--allow-forward", &target];
        let (receiver, ticket) = place.recv(&allow);
        Self { place, receiver, ticket, listener, target }
    }

    /// Serves the next connection.
    fn serve<T: Send + 'static>(&self, serve: impl FnOnce(TcpStream) -> T + Send + 'static) -> JoinHandle<T> {
        let listener = self.listener.try_clone().unwrap();
        spawn(move || {
            let (stream, _) = listener.accept().unwrap();
            stream.set_read_timeout(Some(PATIENCE)).unwrap();
            stream.set_write_timeout(Some(PATIENCE)).unwrap();
            serve(stream)
        })
    }

    fn begin(&self, target: &str) -> Piped {
        self.begin_with(&["forward", "--stdio", target, "--to", &self.ticket])
    }

    fn begin_with(&self, arguments: &[&str]) -> Piped {
        let mut command = self.place.command("sender", arguments);
        let mut child = command.stdin(Stdio::piped()).spawn().unwrap();
        let (input, output) = (child.stdin.take(), child.stdout.take());
        Piped { child, input, output }
    }
}

/// A `byway forward --stdio` that runs; killed if the test ends before it.
struct Piped {
    child: Child,
    input: Option<ChildStdin>,
    output: Option<ChildStdout>,
}

impl Piped {
    fn write(&mut self, bytes: &[u8]) {
        self.input.as_mut().unwrap().write_all(bytes).unwrap();
    }

    /// What is read to the end of the output, which comes before the program's end.
    fn all(&mut self) -> Vec<u8> {
        let mut bytes = Vec::new();
        self.output.take().unwrap().read_to_end(&mut bytes).unwrap();
        bytes
    }

    fn signal(&self, name: &str) {
        let id = self.child.id().to_string();
        assert!(
            std::process::Command::new("kill").args([&format!("-{name}"), &id]).status().unwrap().success()
        );
    }

    /// Closes the input, reads all, and waits.
    fn end(mut self) -> Ended {
        drop(self.input.take());
        let stdout = if self.output.is_some() { self.all() } else { Vec::new() };
        self.ended(stdout)
    }

    /// Waits for the end, with the input open.
    fn ended(mut self, stdout: Vec<u8>) -> Ended {
        let begun = Instant::now();
        let status = loop {
            if let Some(status) = self.child.try_wait().unwrap() {
                break status;
            }
            assert!(begun.elapsed() < PATIENCE, "it does not end");
            std::thread::sleep(Duration::from_millis(10));
        };
        let mut stderr = String::new();
        self.child.stderr.take().unwrap().read_to_string(&mut stderr).unwrap();
        Ended { code: status.code(), stdout, stderr }
    }
}

impl Drop for Piped {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// It ended with this code, and one line on standard error that holds `words`.
#[track_caller]
fn failed(ended: &Ended, code: i32, words: &str) {
    ended.failed(code, words);
    assert_eq!(ended.stderr.lines().count(), 1, "{}", ended.stderr);
    assert_eq!(ended.stdout, b"");
}

#[track_caller]
fn succeeded(ended: &Ended) {
    ended.succeeded();
    assert_eq!(ended.stderr, "");
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
fn a_target_that_answers_after_the_end_of_the_input_is_heard_to_its_end() {
    let site = Site::new();
    for (sent, answer) in [(bytes(3_000_000), bytes(2_000_001)), (Vec::new(), b"nothing came".to_vec())] {
        let (expected, reply) = (sent.clone(), answer.clone());
        let served = site.serve(move |mut stream| {
            assert!(all(&stream) == expected);
            stream.write_all(&reply).unwrap();
        });
        let mut piped = site.begin(&site.target);
        piped.write(&sent);
        let ended = piped.end();
        succeeded(&ended);
        assert!(ended.stdout == answer, "{} bytes", ended.stdout.len());
        served.join().unwrap();
    }
}

/// The output ends while the input is open. What comes by it after that is not lost, although the
/// program is over before the target has read it.
#[test]
fn a_target_that_ends_first_and_reads_slowly_has_all_that_was_sent() {
    const PAUSE: Duration = Duration::from_millis(4);
    let site = Site::new();
    set_socket_recv_buffer_size(&site.listener, 8 << 10).unwrap();
    for length in [1, 200_000, 12_000_000] {
        let sent = bytes(length);
        let expected = sent.clone();
        let served = site.serve(move |mut stream| {
            stream.write_all(b"go on").unwrap();
            stream.shutdown(Shutdown::Write).unwrap();
            let (mut came, mut buffer) = (Vec::new(), vec![0; 64 << 10]);
            loop {
                match stream.read(&mut buffer).unwrap() {
                    0 => break,
                    length => came.extend_from_slice(&buffer[..length]),
                }
                std::thread::sleep(PAUSE);
            }
            assert!(came == expected, "{} of {} bytes", came.len(), expected.len());
        });
        let mut piped = site.begin(&site.target);
        assert_eq!(piped.all(), b"go on");
        piped.write(&sent);
        succeeded(&piped.end());
        served.join().unwrap();
    }
}

#[test]
fn each_failure_has_a_code_and_one_line() {
    let closed = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let place = Place::new();
    let closed = format!("localhost:{closed}");
    let (receiver, ticket) =
        place.recv(&["in", "--allow-forward", &closed, "--allow-forward", "*.invalid:22"]);
    let forward = |target: &str| place.run("sender", &["forward", "--stdio", target, "--to", &ticket]);
    failed(&forward("localhost:1"), 6, "localhost:1: the receiver does not allow this target");
    failed(&forward(&closed), 5, "nobody listens at this port");
    failed(&forward("nas.invalid:22"), 5, "cannot resolve the name");
    let json = ["forward", "--json", "--stdio", &closed, "--to", &ticket];
    failed(&place.run("sender", &json), 2, "no place for the events of --json");
    let ports = ["forward", "0:localhost:1", "--stdio", &closed, "--to", &ticket];
    assert_eq!(place.run("sender", &ports).code, Some(2));
    receiver.interrupt();
    receiver.end();
    failed(&forward(&closed), 5, "the receiver is not running");
    // No ticket that lets this host in.
    let (_receiver, ticket) = place.recv(&["elsewhere"]);
    let forward = ["forward", "--stdio", &closed, "--to", &ticket];
    failed(&place.run("sender", &forward), 6, "--allow-forward");
}

#[test]
fn whatever_ends_the_program_frees_the_connection_soon() {
    let site = Site::new();
    // Below `nohup` a program has no hangup.
    let hangup = Some(("HUP", 129)).filter(|_| !hangups_are_ignored());
    let stops = [("TERM", 143), ("INT", 130), ("output", 1)];
    for (signal, code) in stops.into_iter().chain(hangup) {
        let served = site.serve(|mut stream| {
            stream.write_all(b"hello").unwrap();
            all_or_reset(&stream);
        });
        let mut piped = site.begin(&site.target);
        let mut hello = [0; 5];
        piped.output.as_mut().unwrap().read_exact(&mut hello).unwrap();
        if signal == "output" {
            // Nothing is written to it meanwhile.
            drop(piped.output.take());
        } else {
            piped.signal(signal);
        }
        let ended = piped.ended(Vec::new());
        // Nor is there a line: each `ssh` ends so.
        assert_eq!((ended.code, ended.stderr.as_str()), (Some(code), ""), "{signal}");
        served.join().unwrap();
    }
}

fn hangups_are_ignored() -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let ignored = status.lines().find_map(|line| line.strip_prefix("SigIgn:")).unwrap();
    u64::from_str_radix(ignored.trim(), 16).unwrap() & 1 != 0
}

#[test]
fn a_reset_and_a_receiver_that_leaves_are_failures_and_no_ends() {
    let site = Site::new();
    let served = site.serve(|mut stream| {
        // Once the connection stands at both ends.
        stream.read_exact(&mut [0]).unwrap();
        rustix::net::sockopt::set_socket_linger(&stream, Some(Duration::ZERO)).unwrap();
    });
    let mut piped = site.begin(&site.target);
    piped.write(b"x");
    failed(&piped.ended(Vec::new()), 5, "the connection was reset before its end");
    served.join().unwrap();
    let served = site.serve(|mut stream| {
        stream.write_all(b"hello").unwrap();
        all_or_reset(&stream);
    });
    let mut piped = site.begin(&site.target);
    piped.output.as_mut().unwrap().read_exact(&mut [0; 5]).unwrap();
    site.receiver.interrupt();
    failed(&piped.ended(Vec::new()), 5, "since the receiver is away: it was stopped");
    served.join().unwrap();
}

fn all_or_reset(mut stream: &TcpStream) {
    if let Err(error) = stream.read_to_end(&mut Vec::new()) {
        assert_eq!(error.kind(), ErrorKind::ConnectionReset);
    }
}

/// A second program with the same key needs nothing of the first.
#[test]
fn two_programs_at_once_have_a_connection_each() {
    let site = Site::new();
    let echo = || {
        site.serve(|mut stream| {
            let mut byte = [0];
            while stream.read(&mut byte).unwrap() > 0 {
                stream.write_all(&byte).unwrap();
            }
        })
    };
    let both = [echo(), echo()];
    let mut piped = [site.begin(&site.target), site.begin(&site.target)];
    for round in 0..3_u8 {
        for one in &mut piped {
            one.write(&[round]);
        }
        for one in &mut piped {
            let mut byte = [0];
            one.output.as_mut().unwrap().read_exact(&mut byte).unwrap();
            assert_eq!(byte, [round]);
        }
    }
    piped.into_iter().for_each(|one| succeeded(&one.end()));
    both.into_iter().for_each(|served| served.join().unwrap());
}

/// Writes until nothing more is taken for a second; how much was taken.
fn fill(mut write: impl FnMut(&[u8]) -> std::io::Result<usize>) -> usize {
    let (mut taken, mut last) = (0, Instant::now());
    while last.elapsed() < Duration::from_secs(1) {
        match write(&[7; 64 << 10]) {
            Ok(length) => (taken, last) = (taken + length, Instant::now()),
            Err(error) if error.kind() == ErrorKind::WouldBlock => {
                std::thread::sleep(Duration::from_millis(5));
            }
            Err(error) => panic!("{error}"),
        }
        assert!(taken < MAX_UNREAD_BYTES, "{taken}");
    }
    taken
}

#[test]
fn a_side_that_does_not_read_stops_the_other() {
    let site = Site::new();
    let served = site.serve(|mut stream| {
        stream.set_nonblocking(true).unwrap();
        let taken = fill(|bytes| stream.write(bytes));
        stream.set_nonblocking(false).unwrap();
        stream.shutdown(Shutdown::Write).unwrap();
        (taken, stream)
    });
    let mut piped = site.begin(&site.target);
    // It fills the way back while nobody reads. Then the input fills the way there.
    let (taken, stream) = served.join().unwrap();
    rustix::io::ioctl_fionbio(piped.input.as_ref().unwrap(), true).unwrap();
    let given = fill(|bytes| piped.input.as_mut().unwrap().write(bytes));
    let peak = memory(piped.child.id() as i32, "VmHWM").unwrap();
    assert!(peak < 64 << 20, "{peak} bytes of memory");
    let heard = spawn(move || all(&stream).len());
    drop(piped.input.take());
    let came = piped.all();
    assert_eq!(came.len(), taken);
    assert_eq!(heard.join().unwrap(), given);
    succeeded(&piped.ended(came));
}
