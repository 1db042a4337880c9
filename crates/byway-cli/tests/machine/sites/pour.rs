//! The programs that run on the hosts. One sends pseudorandom bytes through the kernel's TCP, and
//! one reports what arrived.
//!
//! Both are the test binary itself, started with other arguments.

use rustix::net::SendFlags;
use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};

/// Says how much came each time that so much more did.
const STEP: u64 = 1_000_000;
/// What is sent before all else, as urgent.
const URGENT: &[u8] = b"!";
const BUFFER: usize = 64 << 10;

/// The words by which a host sends `bytes` to `to` (`HOST:PORT`) with a congestion control of the
/// kernel.
pub fn pour_words(to: &str, congestion: &str, bytes: u64) -> [String; 5] {
    [program(), "pour".to_owned(), to.to_owned(), congestion.to_owned(), bytes.to_string()]
}

/// The words by which a host takes one stream at a port of its addresses of one version of IP.
pub fn sink_words(v6: bool, port: u16) -> [String; 3] {
    [program(), "sink".to_owned(), format!("{}:{port}", if v6 { "[::]" } else { "0.0.0.0" })]
}

fn program() -> String {
    std::env::current_exe().unwrap().to_str().unwrap().to_owned()
}

/// Does what the words of this process ask for; whether they ask for any of it.
pub fn play() -> bool {
    let words: Vec<String> = std::env::args().skip(1).collect();
    match words.iter().map(String::as_str).collect::<Vec<_>>().as_slice() {
        ["pour", to, congestion, bytes] => pour(to, congestion, bytes.parse().unwrap()),
        ["sink", at] => sink(at),
        _ => return false,
    }
    true
}

/// Says the hash of what was sent once the other side has all of it.
fn pour(to: &str, congestion: &str, bytes: u64) {
    let mut stream = TcpStream::connect(to).unwrap();
    rustix::net::sockopt::set_tcp_congestion(&stream, congestion).unwrap();
    let mut source = blake3::Hasher::new().update(congestion.as_bytes()).finalize_xof();
    let (mut hasher, mut buffer, mut left) = (blake3::Hasher::new(), vec![0; BUFFER], bytes - 1);
    rustix::net::send(&stream, URGENT, SendFlags::OOB).unwrap();
    hasher.update(URGENT);
    while left > 0 {
        let piece = &mut buffer[..usize::try_from(left).map_or(BUFFER, |left| left.min(BUFFER))];
        source.fill(piece);
        hasher.update(piece);
        stream.write_all(piece).unwrap();
        left -= piece.len() as u64;
    }
    stream.shutdown(std::net::Shutdown::Write).unwrap();
    let mut answer = [0; blake3::OUT_LEN];
    stream.read_exact(&mut answer).unwrap();
    println!("{}", hasher.finalize());
    assert_eq!(answer, *hasher.finalize().as_bytes(), "something else came");
}

/// Says how much came, and the hash of it at the end, which it sends back, too.
fn sink(at: &str) {
    let listener = TcpListener::bind(at).unwrap();
    println!("listening");
    let (mut stream, _) = listener.accept().unwrap();
    // Urgent bytes stand where they were sent.
    rustix::net::sockopt::set_socket_oobinline(&stream, true).unwrap();
    let (mut hasher, mut buffer, mut came) = (blake3::Hasher::new(), vec![0; BUFFER], 0);
    loop {
        let count = stream.read(&mut buffer).unwrap();
        if count == 0 {
            break;
        }
        hasher.update(&buffer[..count]);
        let before = came;
        came += count as u64;
        if came / STEP > before / STEP {
            println!("{came}");
        }
    }
    println!("{came}");
    println!("{}", hasher.finalize());
    stream.write_all(hasher.finalize().as_bytes()).unwrap();
}
