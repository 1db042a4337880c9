//! Compares the throughput of a stream with that of an object over the same paths. Transfers of
//! both kinds alternate, so that other load on the computer slows both alike.
//!
//! ```text
//! cargo test -p byway --test it figures -- --ignored --nocapture --test-threads 1
//! ```

use crate::common::{config, pair_with};
use byway::{Endpoint, Peer};
use byway_net::{Clock, Handle, LoopControl, Owner, Socket};
use byway_sim::{PipeConfig, Shaper, ShaperConfig};
use std::io::Read;
use std::net::SocketAddr;
use std::thread;
use std::time::{Duration, Instant};

/// What of an object's rate a stream has at least.
const SHARE: f64 = 0.95;
/// The same where the processor is the bottleneck, and a stream costs more of it: .71 to .82 on an
/// idle machine.
const COPIED: f64 = 0.5;

struct Nobody;

impl Owner for Nobody {
    type Machine = Shaper;

    fn turn(&mut self, _: &mut Shaper, _: byway_wire::Instant) -> LoopControl {
        LoopControl::Continue
    }
}

/// A line of so many bits per second in front of a server; where it begins.
fn line(server: SocketAddr, bits_per_second: u64) -> (SocketAddr, Handle<Nobody>) {
    let pipe = PipeConfig::new(bits_per_second, Duration::from_millis(10)).queue(100);
    let bind = || Socket::bind("127.0.0.1:0".parse().unwrap()).unwrap();
    let sockets: Vec<Socket> = (0..4).map(|_| bind()).collect();
    let front = sockets[0].address();
    let shaper = Shaper::new(ShaperConfig::new(server, pipe.clone(), pipe));
    (front, byway_net::spawn("line", shaper, Nobody, sockets, Clock::new()).unwrap())
}

/// Bits per second of one transfer, from the first byte that is written to the last that is read.
fn rate(near: &Peer, far: Peer, bytes: u64, is_stream: bool) -> f64 {
    let begun = Instant::now();
    let reader = thread::spawn(move || {
        if is_stream {
            let mut stream = far.accept_stream().unwrap();
            let (mut buffer, mut total) = (vec![0; 64 << 10], 0);
            loop {
                match stream.read(&mut buffer).unwrap() {
                    0 => break,
                    length => total += length as u64,
                }
            }
            assert_eq!(total, bytes);
        } else {
            let (mut object, mut total) = (far.accept_object().unwrap(), 0);
            while let Some(piece) = object.next().unwrap() {
                total += piece.len() as u64;
            }
            assert_eq!(total, bytes);
        }
        (begun.elapsed(), far)
    });
    if is_stream {
        let mut stream = near.open_stream().unwrap();
        std::io::copy(&mut std::io::repeat(7).take(bytes), &mut stream).unwrap();
        stream.finish().unwrap();
    } else {
        near.send_object(b"", bytes, std::io::repeat(7).take(bytes)).unwrap().finish().unwrap();
    }
    let (passed, _far) = reader.join().unwrap();
    near.close().unwrap();
    bytes as f64 * 8.0 / passed.as_secs_f64()
}

fn median(mut rates: Vec<f64>) -> f64 {
    rates.sort_by(f64::total_cmp);
    rates[rates.len() / 2]
}

/// The rates of streams and of objects, each the median of so many rounds.
fn compare(name: &str, rounds: usize, bytes: u64, mut connect: impl FnMut() -> (Peer, Peer)) -> f64 {
    let mut rates = [Vec::new(), Vec::new()];
    for round in 0..2 * rounds {
        let (near, far) = connect();
        rates[round % 2].push(rate(&near, far, bytes, round % 2 == 0));
    }
    let [stream, object] = rates.map(median);
    let share = stream / object;
    eprintln!("{name}: stream {:.1} Mbit/s, object {:.1} Mbit/s: {share:.3}", stream / 1e6, object / 1e6);
    share
}

#[test]
#[ignore = "measures rates"]
fn a_stream_moves_as_much_as_an_object_over_two_shaped_lines() {
    let share = compare("two lines of 20 Mbit/s", 3, 24 << 20, || {
        let listener = Endpoint::listen(config()).unwrap();
        let mut ticket = listener.ticket();
        let lines: Vec<_> = (0..2).map(|_| line(ticket.addresses[0], 20_000_000)).collect();
        ticket.addresses = lines.iter().map(|(front, _)| *front).collect();
        let near = byway::connect_with(&ticket, config()).unwrap();
        let far = listener.accept().unwrap();
        // The lines last as long as the test's process: a few sockets.
        std::mem::forget(lines);
        (near, far)
    });
    assert!(share >= SHARE, "{share}");
}

#[test]
#[ignore = "measures rates"]
fn a_stream_moves_half_of_an_object_at_least_over_loopback() {
    let share = compare("loopback", 5, 256 << 20, || {
        let (_listener, near, far) = pair_with(config(), config());
        (near, far)
    });
    assert!(share >= COPIED, "{share}");
}
