//! The programs that run on the hosts: one opens ten thousand TCP flows, one answers flows, and one
//! sends a flood of SYNs.
//!
//! All three are the test binary itself, started with other arguments.

use rustix::net::{AddressFamily, SendFlags, SocketType, ipproto, sendto, socket};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use std::io::{Read as _, Write as _};
use std::net::{Ipv4Addr, SocketAddrV4, TcpListener, TcpStream};
use std::path::Path;
use std::sync::Barrier;
use std::time::{Duration, Instant};

/// What each flow of a crowd carries, there and back.
const BYTES: usize = 2_048;
/// Threads that share a crowd's flows: so many open at once, which is fewer than a gateway lets
/// open.
const THREADS: usize = 50;
/// Connections that may wait to be accepted.
const BACKLOG: i32 = 4_096;
/// SYNs of a flood come in bursts of so many, this far apart.
const BURST: usize = 250;
const BURSTS_APART: Duration = Duration::from_millis(10);
/// Where a flood pretends to come from: 198.18.0.0/15 is for such tests (RFC 2544).
const NOBODY: [u8; 2] = [198, 18];

/// The command line by which a host opens `flows` connections to `to` (`HOST:PORT`) at once. The
/// flows carry data once the file `go` exists.
pub fn crowd_words(to: &str, flows: usize, go: &str) -> [String; 5] {
    [program(), "crowd".to_owned(), to.to_owned(), flows.to_string(), go.to_owned()]
}

/// The words by which a host answers so many flows at a port, once all are there.
pub fn answer_words(port: u16, flows: usize) -> [String; 4] {
    [program(), "answer".to_owned(), port.to_string(), flows.to_string()]
}

/// The words by which a host sends so many SYNs to ten ports of `to` from `port` on, from its own
/// address and others.
pub fn flood_words(own: &str, to: &str, port: u16, packets: usize) -> [String; 6] {
    [program(), "flood".to_owned(), own.to_owned(), to.to_owned(), port.to_string(), packets.to_string()]
}

fn program() -> String {
    std::env::current_exe().unwrap().to_str().unwrap().to_owned()
}

/// Does what the words of this process ask for; whether they ask for any of it.
pub fn play() -> bool {
    let words: Vec<String> = std::env::args().skip(1).collect();
    match words.iter().map(String::as_str).collect::<Vec<_>>().as_slice() {
        ["crowd", to, flows, go] => crowd(to, flows.parse().unwrap(), Path::new(go)),
        ["answer", port, flows] => answer(port.parse().unwrap(), flows.parse().unwrap()),
        ["flood", own, to, port, packets] => {
            flood(own.parse().unwrap(), to.parse().unwrap(), port.parse().unwrap(), packets.parse().unwrap());
        }
        _ => return false,
    }
    true
}

/// Lets this process have as many descriptors as `flows` need.
fn allow(flows: usize) {
    let needed = flows as u64 + 200;
    let limit = getrlimit(Resource::Nofile);
    if limit.current.is_some_and(|current| current < needed) {
        let maximum = limit.maximum.map(|maximum| maximum.max(needed));
        setrlimit(Resource::Nofile, Rlimit { current: Some(needed), maximum }).unwrap();
    }
}

/// The bytes of a flow, which differ from those of any other.
fn pattern(flow: usize) -> [u8; BYTES] {
    let mut bytes = [0; BYTES];
    blake3::Hasher::new().update(&flow.to_be_bytes()).finalize_xof().fill(&mut bytes);
    bytes
}

/// Opens all, then sends by all, then reads what comes back by all. Says when which of it was done.
fn crowd(to: &str, flows: usize, go: &Path) {
    allow(flows);
    let all = Barrier::new(THREADS + 1);
    let part = |thread: usize| {
        let mine: Vec<usize> = (thread..flows).step_by(THREADS).collect();
        let mut streams: Vec<TcpStream> = mine.iter().map(|_| TcpStream::connect(to).unwrap()).collect();
        all.wait();
        all.wait();
        for (flow, stream) in mine.iter().zip(&mut streams) {
            stream.write_all(&pattern(*flow)).unwrap();
        }
        for (flow, stream) in mine.iter().zip(&mut streams) {
            let mut came = [0; BYTES];
            stream.read_exact(&mut came).unwrap();
            assert_eq!(came, pattern(*flow), "something else came back");
        }
    };
    let begun = Instant::now();
    std::thread::scope(|scope| {
        let part = &part;
        for thread in 0..THREADS {
            scope.spawn(move || part(thread));
        }
        all.wait();
        println!("{flows} flows are open after {:.1} s", begun.elapsed().as_secs_f64());
        while !go.exists() {
            std::thread::sleep(Duration::from_millis(10));
        }
        all.wait();
    });
    println!("{flows} flows are whole after {:.1} s", begun.elapsed().as_secs_f64());
}

/// Takes all, and then gives back on each what comes by it.
fn answer(port: u16, flows: usize) {
    allow(flows);
    let listener = TcpListener::bind(("0.0.0.0", port)).unwrap();
    rustix::net::listen(&listener, BACKLOG).unwrap();
    println!("listening");
    let streams: Vec<TcpStream> = (0..flows).map(|_| listener.accept().unwrap().0).collect();
    std::thread::scope(|scope| {
        for mine in streams.chunks(flows.div_ceil(THREADS)) {
            scope.spawn(move || {
                for mut stream in mine {
                    let mut bytes = [0; BYTES];
                    stream.read_exact(&mut bytes).unwrap();
                    stream.write_all(&bytes).unwrap();
                }
            });
        }
    });
    println!("answered");
}

/// Sends SYNs, each of another flow.
fn flood(own: Ipv4Addr, to: Ipv4Addr, port: u16, packets: usize) {
    let raw = socket(AddressFamily::INET, SocketType::RAW, Some(ipproto::RAW)).unwrap();
    let begun = Instant::now();
    for number in 0..packets {
        // Half from the host's own address.
        let spread = (number / 2) as u32;
        let from = match number % 2 {
            0 => own,
            _ => Ipv4Addr::new(NOBODY[0], NOBODY[1], (spread >> 8) as u8, spread as u8),
        };
        let source = 1_024 + (spread % 30_000) as u16;
        let to_port = port + (spread / 30_000 % 10) as u16;
        let packet = syn(from, to, source, to_port);
        let _ = sendto(&raw, &packet, SendFlags::empty(), &SocketAddrV4::new(to, 0));
        if number % BURST == BURST - 1 {
            let due = BURSTS_APART * (number / BURST + 1) as u32;
            std::thread::sleep(due.saturating_sub(begun.elapsed()));
        }
    }
    println!("{packets} SYNs in {:.1} s", begun.elapsed().as_secs_f64());
}

/// A SYN as a host would send it, its checksums right.
fn syn(from: Ipv4Addr, to: Ipv4Addr, source: u16, port: u16) -> Vec<u8> {
    let mut packet = vec![0x45, 0, 0, 44, 0, 0, 0x40, 0, 64, 6, 0, 0];
    packet.extend(from.octets().into_iter().chain(to.octets()));
    packet.extend(source.to_be_bytes().into_iter().chain(port.to_be_bytes()));
    packet.extend([0, 0, 0, 1, 0, 0, 0, 0, 0x60, 2, 0xff, 0xff, 0, 0, 0, 0, 2, 4, 5, 0xb4]);
    let own = checksum(&packet[..20], 0);
    packet[10..12].copy_from_slice(&own.to_be_bytes());
    // Addresses, protocol and length are summed up, too.
    let length = packet.len() as u32 - 20;
    let around = words(&packet[12..20]) + u32::from(packet[9]) + length;
    let own = checksum(&packet[20..], around);
    packet[36..38].copy_from_slice(&own.to_be_bytes());
    packet
}

fn words(bytes: &[u8]) -> u32 {
    bytes.chunks(2).map(|word| u32::from(u16::from_be_bytes([word[0], word[1]]))).sum()
}

/// The checksum of the Internet (RFC 1071).
fn checksum(bytes: &[u8], besides: u32) -> u16 {
    let sum = words(bytes) + besides;
    let sum = (sum & 0xffff) + (sum >> 16);
    !((sum & 0xffff) + (sum >> 16)) as u16
}
