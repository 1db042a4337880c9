//! `byway forward`: programs of one host reach services of another, over loopback, with the
//! kernel's TCP at both ends.

use crate::common::{Place, Running};
use byway_transfer::ticket::Ticket;
use rustix::net::sockopt::{set_socket_linger, set_socket_oobinline};
use rustix::net::{SendFlags, send};
use std::collections::BTreeSet;
use std::io::{ErrorKind, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::{JoinHandle, spawn};
use std::time::{Duration, Instant};

/// How long anything may take that is waited for.
const PATIENCE: Duration = Duration::from_secs(60);

/// A receiver that allows `rules`, and a forward to it.
struct Pair {
    place: Place,
    receiver: Running,
    forward: Running,
    /// Where the forward listens, in the order of its arguments.
    listens: Vec<SocketAddr>,
    ticket: String,
}

impl Pair {
    fn start(rules: &[&str], ports: &[&str]) -> Self {
        let place = Place::new();
        let (receiver, ticket) = Self::receiver(&place, rules);
        let (forward, listens) = Self::forward(&place, &ticket, ports);
        Self { place, receiver, forward, listens, ticket }
    }

    fn receiver(place: &Place, rules: &[&str]) -> (Running, String) {
        let mut arguments = vec!["recv", "in", "--listen", "127.0.0.1"];
        rules.iter().for_each(|rule| arguments.extend(["--allow-forward", rule]));
        let mut receiver = Running::start(place.command("receiver", &arguments));
        let ticket = receiver.line();
        (receiver, ticket)
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

#[test]
fn a_name_of_the_receiver_itself_is_reached_only_if_it_is_named() {
    let (port, _served) = service(drop);
    let targets = [format!("0:localhost:{port}"), format!("0:127.0.0.1:{port}")];
    let mut pair = Pair::start(&[&format!("0.0.0.0/0:{port}")], &[&targets[0], &targets[1]]);
    pair.forward.event("connected");
    for port in 0..2 {
        let error = pair.connect(port).read(&mut [0]).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::ConnectionReset);
        let warning = pair.forward.event("warning");
        assert!(warning["message"].as_str().unwrap().contains("must name"), "{warning}");
    }
}

/// Closes a connection so that the other side sees it reset.
fn reset(stream: TcpStream) {
    set_socket_linger(&stream, Some(Duration::ZERO)).unwrap();
}

#[test]
fn a_reset_passes_both_ways() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let pair = Pair::start(&[&format!("127.0.0.1:{port}")], &[&format!("0:127.0.0.1:{port}")]);
    let both = || {
        let mut program = pair.connect(0);
        program.write_all(b"x").unwrap();
        let (mut target, _) = listener.accept().unwrap();
        target.set_read_timeout(Some(PATIENCE)).unwrap();
        target.read_exact(&mut [0]).unwrap();
        (program, target)
    };
    let is_reset = |mut stream: TcpStream| {
        let error = stream.read(&mut [0]).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::ConnectionReset);
    };
    let (program, target) = both();
    reset(target);
    is_reset(program);
    let (program, target) = both();
    reset(program);
    is_reset(target);
    // Amid data that nobody reads.
    let (mut program, target) = both();
    program.set_nonblocking(true).unwrap();
    let begun = Instant::now();
    while begun.elapsed() < Duration::from_millis(300) {
        let _ = program.write(&[7; 4096]);
    }
    reset(program);
    let mut target = target;
    let mut rest = Vec::new();
    assert_eq!(target.read_to_end(&mut rest).unwrap_err().kind(), ErrorKind::ConnectionReset);
}

/// Programs do not take the end of the process for the end of their data. What had ended before in
/// order is whole.
#[test]
fn a_forward_that_is_killed_resets_connections_and_no_ended_ones() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let pair = Pair::start(&[&format!("127.0.0.1:{port}")], &[&format!("0:127.0.0.1:{port}")]);
    let (mut cut, mut whole) = (pair.connect(0), pair.connect(0));
    cut.write_all(b"cut").unwrap();
    whole.write_all(b"all").unwrap();
    let mut targets: Vec<TcpStream> = (0..2)
        .map(|_| {
            let mut target = listener.accept().unwrap().0;
            let mut word = [0; 3];
            target.read_exact(&mut word).unwrap();
            target.write_all(&word).unwrap();
            if word == *b"all" {
                target.shutdown(Shutdown::Write).unwrap();
            }
            target
        })
        .collect();
    whole.shutdown(Shutdown::Write).unwrap();
    for target in &mut targets {
        // The one is at its end, and the other stays open.
        target.set_read_timeout(Some(Duration::from_secs(1))).unwrap();
        let _ = target.read(&mut [0]);
    }
    let mut word = [0; 3];
    cut.read_exact(&mut word).unwrap();
    pair.forward.signal("KILL");
    let error = cut.read_to_end(&mut Vec::new()).unwrap_err();
    assert_eq!((word, error.kind()), (*b"cut", ErrorKind::ConnectionReset));
    assert_eq!(all(&whole), b"all");
}

/// One direction has ended in order, and the other has not: its end is no end of data, whichever of
/// both processes is killed.
#[test]
fn a_killed_process_resets_connections_of_which_one_direction_has_ended() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let pair = Pair::start(&[&format!("127.0.0.1:{port}")], &[&format!("0:127.0.0.1:{port}")]);
    let accept = || {
        let target = listener.accept().unwrap().0;
        target.set_read_timeout(Some(PATIENCE)).unwrap();
        target
    };
    // The program has asked, and its answer is on the way.
    let mut asking = pair.connect(0);
    asking.write_all(b"ask").unwrap();
    asking.shutdown(Shutdown::Write).unwrap();
    let mut answering = accept();
    assert_eq!(all(&answering), b"ask");
    answering.write_all(b"part of").unwrap();
    let mut part = [0; 7];
    asking.read_exact(&mut part).unwrap();
    // The target has said all, and the program sends on.
    let mut sending = pair.connect(0);
    let mut taking = accept();
    taking.write_all(b"go on").unwrap();
    taking.shutdown(Shutdown::Write).unwrap();
    assert_eq!(all(&sending), b"go on");
    sending.write_all(b"more").unwrap();
    let mut more = [0; 4];
    taking.read_exact(&mut more).unwrap();
    pair.receiver.signal("KILL");
    let error = taking.read_to_end(&mut Vec::new()).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::ConnectionReset, "the target took no end of the upload");
    pair.forward.signal("KILL");
    asking.set_read_timeout(Some(PATIENCE)).unwrap();
    let error = asking.read_to_end(&mut Vec::new()).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::ConnectionReset, "the program took no end of the answer");
}

/// An urgent byte stays where it is in the stream, in both directions and at the end of it.
#[test]
fn urgent_bytes_are_not_lost() {
    let (port, served) = service(|mut stream| {
        set_socket_oobinline(&stream, true).unwrap();
        let heard = all(&stream);
        stream.write_all(b"123").unwrap();
        send(&stream, b"4", SendFlags::OOB).unwrap();
        stream.write_all(b"56").unwrap();
        send(&stream, b"7", SendFlags::OOB).unwrap();
        heard
    });
    let pair = Pair::start(&[&format!("127.0.0.1:{port}")], &[&format!("0:127.0.0.1:{port}")]);
    let mut client = pair.connect(0);
    client.write_all(b"abc").unwrap();
    send(&client, b"U", SendFlags::OOB).unwrap();
    client.write_all(b"def").unwrap();
    client.shutdown(Shutdown::Write).unwrap();
    assert_eq!(all(&client), b"1234567");
    assert_eq!(served.join().unwrap(), b"abcUdef");
}

#[test]
fn a_receiver_that_is_killed_and_comes_back_serves_new_connections() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let rule = format!("127.0.0.1:{port}");
    let mut pair = Pair::start(&[&rule], &[&format!("0:127.0.0.1:{port}")]);
    let mut before = pair.connect(0);
    before.write_all(b"x").unwrap();
    let (mut target, _) = listener.accept().unwrap();
    target.read_exact(&mut [0]).unwrap();
    pair.receiver.signal("KILL");
    let error = target.read_to_end(&mut Vec::new()).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::ConnectionReset, "an end would pass for the end of the data");
    let (receiver, ticket) = Pair::receiver(&pair.place, &[&rule]);
    assert_eq!(ticket, pair.ticket);
    before.write_all(b"y").unwrap();
    assert_eq!(before.read(&mut [0]).unwrap_err().kind(), ErrorKind::ConnectionReset);
    pair.forward.event("away");
    pair.forward.event("connected");
    let mut after = pair.connect(0);
    let (mut target, _) = listener.accept().unwrap();
    after.write_all(b"z").unwrap();
    let mut byte = [0];
    target.read_exact(&mut byte).unwrap();
    assert_eq!(byte, *b"z");
    drop(receiver);
}

/// A box between the two, on loopback. It may forget sessions that it knows, so that only new ones
/// pass, as a NAT or a firewall on the way does.
struct ForgetfulBox {
    address: SocketAddr,
    forgets: Arc<AtomicBool>,
    /// Sessions that it saw begin since it forgot the others.
    begun: Arc<AtomicUsize>,
}

impl ForgetfulBox {
    fn before(receiver: SocketAddr) -> Self {
        let (outside, inside) =
            (UdpSocket::bind("127.0.0.1:0").unwrap(), UdpSocket::bind("127.0.0.1:0").unwrap());
        inside.connect(receiver).unwrap();
        let this =
            Self { address: outside.local_addr().unwrap(), forgets: Arc::default(), begun: Arc::default() };
        let (forgets, begun) = (Arc::clone(&this.forgets), Arc::clone(&this.begun));
        let (back, to) = (inside.try_clone().unwrap(), outside.try_clone().unwrap());
        let sender = Arc::new(Mutex::new(None));
        let known = Arc::new(Mutex::new(BTreeSet::new()));
        let (sender_of, known_of, forgets_of) =
            (Arc::clone(&sender), Arc::clone(&known), Arc::clone(&forgets));
        // A data packet's connection id follows its first byte.
        let passes = |packet: &[u8], known: &Mutex<BTreeSet<Vec<u8>>>, forgets: &AtomicBool| {
            let is_data = packet[0] & 0xf0 == 0x40;
            let id = packet[1..9].to_vec();
            let mut known = known.lock().unwrap();
            if is_data && !forgets.load(Ordering::Acquire) {
                known.insert(id);
                return true;
            }
            !is_data || !known.contains(&id)
        };
        spawn(move || {
            let mut packet = [0; 65_536];
            while let Ok((length, from)) = outside.recv_from(&mut packet) {
                *sender.lock().unwrap() = Some(from);
                let is_hello = packet[0] == 0x50;
                begun.fetch_add(usize::from(is_hello && forgets.load(Ordering::Acquire)), Ordering::AcqRel);
                if passes(&packet[..length], &known, &forgets) {
                    inside.send(&packet[..length]).unwrap_or_default();
                }
            }
        });
        spawn(move || {
            let mut packet = [0; 65_536];
            while let Ok(length) = back.recv(&mut packet) {
                let sender = *sender_of.lock().unwrap();
                if let Some(sender) = sender.filter(|_| passes(&packet[..length], &known_of, &forgets_of)) {
                    to.send_to(&packet[..length], sender).unwrap_or_default();
                }
            }
        });
        this
    }
}

/// A session gets nothing through, and new ones do. The receiver says that it has the session, so
/// its connections wait, and go on when the way is free again.
#[test]
fn connections_outlive_a_box_that_lets_only_new_sessions_through() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let place = Place::new();
    let (_receiver, ticket) = Pair::receiver(&place, &[&format!("127.0.0.1:{port}")]);
    let mut ticket: Ticket = ticket.parse().unwrap();
    let between = ForgetfulBox::before(ticket.addresses[0]);
    ticket.addresses = vec![between.address];
    let arguments =
        ["forward", "--json", "--no-tcp", "--to", &ticket.to_string(), &format!("0:127.0.0.1:{port}")];
    let mut forward = Running::start(place.command("sender", &arguments));
    let listens: SocketAddr = forward.event("ready")["listen"][0].as_str().unwrap().parse().unwrap();
    let mut client = TcpStream::connect(listens).unwrap();
    client.set_read_timeout(Some(PATIENCE)).unwrap();
    client.write_all(b"x").unwrap();
    let (mut target, _) = listener.accept().unwrap();
    target.set_read_timeout(Some(PATIENCE)).unwrap();
    target.read_exact(&mut [0]).unwrap();
    between.forgets.store(true, Ordering::Release);
    client.write_all(b"y").unwrap();
    // The receiver is asked a second time, so it had answered the first question for 4 s.
    let until = Instant::now() + PATIENCE;
    while between.begun.load(Ordering::Acquire) < 2 && Instant::now() < until {
        std::thread::sleep(Duration::from_millis(50));
    }
    assert!(between.begun.load(Ordering::Acquire) >= 2, "nothing was asked");
    between.forgets.store(false, Ordering::Release);
    let mut byte = [0];
    target.read_exact(&mut byte).unwrap();
    assert_eq!(byte, *b"y");
    target.write_all(b"z").unwrap();
    client.read_exact(&mut byte).unwrap();
    assert_eq!(byte, *b"z");
}

#[test]
fn without_a_receiver_a_connection_waits_and_is_refused_and_the_ports_stay() {
    let mut pair = Pair::start(&["127.0.0.1:1"], &["0:127.0.0.1:1", "--socks", "0"]);
    pair.forward.event("connected");
    pair.receiver.interrupt();
    let away = pair.forward.event("away");
    assert_eq!(away["reason"], "it was stopped");
    let error = pair.connect(0).read(&mut [0]).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::ConnectionReset);
    let mut socks = pair.connect(1);
    socks.write_all(b"\x05\x01\x00\x05\x01\x00\x03\x01a\x00\x50").unwrap();
    assert_eq!(all(&socks), b"\x05\x00\x05\x01\x00\x01\0\0\0\0\0\0", "a failure");
    pair.connect(0);
}

#[test]
fn socks_is_spoken_with_whom_speaks_it() {
    let (port, served) = service(|mut stream| {
        stream.write_all(b"hello").unwrap();
        all(&stream)
    });
    let mut pair = Pair::start(&[&format!("localhost:{port}")], &["--socks", "0"]);
    for garbage in
        [&b"GET / HTTP/1.1\r\n\r\n"[..], b"\x04\x01", b"\x05\x01\x02", b"\x05\x01\x00\x05\x02\x00\x01"]
    {
        let mut stream = pair.connect(0);
        stream.write_all(garbage).unwrap();
        let mut answer = Vec::new();
        // It is closed, or reset since not all was read.
        let _ = stream.read_to_end(&mut answer);
        assert!(!answer.starts_with(b"\x05\x00\x05\x00"), "{answer:?}");
    }
    // One that says nothing holds up nobody.
    let _silent = pair.connect(0);
    let mut stream = pair.connect(0);
    let name = b"\x05\x01\x00\x03\x09LOCALHOST";
    let request = [&b"\x05\x02\x01\x00"[..], name, &port.to_be_bytes(), b"early"].concat();
    // Byte for byte, with the first data in the same breath.
    for byte in &request {
        stream.write_all(&[*byte]).unwrap();
    }
    stream.shutdown(Shutdown::Write).unwrap();
    assert_eq!(all(&stream), b"\x05\x00\x05\x00\x00\x01\0\0\0\0\0\0hello");
    assert_eq!(served.join().unwrap(), b"early");
    let mut refused = pair.connect(0);
    refused.write_all(b"\x05\x01\x00\x05\x01\x00\x03\x01a\x00\x50").unwrap();
    assert_eq!(all(&refused), b"\x05\x00\x05\x02\x00\x01\0\0\0\0\0\0", "not allowed");
    pair.forward.event("warning");
}

/// The client of `tokio-socks`.
#[test]
fn another_hands_socks_client_reaches_a_name_and_hears_a_refusal() {
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    use tokio_socks::tcp::Socks5Stream;
    let (port, served) = service(|mut stream| {
        stream.write_all(b"answer").unwrap();
        all(&stream)
    });
    let pair = Pair::start(&[&format!("localhost:{port}")], &["--socks", "0"]);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let mut stream = Socks5Stream::connect(pair.listens[0], ("localhost", port)).await.unwrap();
        stream.write_all(b"question").await.unwrap();
        stream.shutdown().await.unwrap();
        let mut came = Vec::new();
        stream.read_to_end(&mut came).await.unwrap();
        assert_eq!(came, b"answer");
        let refused = Socks5Stream::connect(pair.listens[0], ("localhost", 1)).await.unwrap_err();
        assert!(matches!(refused, tokio_socks::Error::ConnectionNotAllowedByRuleset), "{refused}");
    });
    assert_eq!(served.join().unwrap(), b"question");
}

#[test]
fn a_forward_to_itself_stays_bounded_and_ends_with_its_first_connection() {
    let own = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let target = format!("127.0.0.1:{own}");
    let mut pair = Pair::start(&[&target], &[&format!("{own}:{target}"), "--connections", "30"]);
    let stream = pair.connect(0);
    let open = |pair: &mut Pair, wanted: u64| {
        while pair.forward.event("forwarded")["open"].as_u64().unwrap() != wanted {}
    };
    open(&mut pair, 30);
    reset(stream);
    open(&mut pair, 0);
    pair.forward.interrupt();
    assert_eq!(pair.forward.end().code, Some(130));
}

#[test]
fn connections_that_nobody_reads_hold_up_no_other() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let pair = Pair::start(&[&format!("127.0.0.1:{port}")], &[&format!("0:127.0.0.1:{port}")]);
    let unread: Vec<_> = (0..40)
        .map(|_| {
            let mut program = pair.connect(0);
            let (target, _) = listener.accept().unwrap();
            program.set_nonblocking(true).unwrap();
            (0..64).for_each(|_| drop(program.write(&[7; 64 << 10])));
            (program, target)
        })
        .collect();
    let fill = |stream: &TcpStream| {
        let mut stream = stream;
        (0..64).for_each(|_| drop(stream.write(&[7; 64 << 10])));
    };
    // Until none of them takes any more.
    for _ in 0..5 {
        unread.iter().for_each(|(program, _)| fill(program));
        std::thread::sleep(Duration::from_millis(100));
    }
    let mut program = pair.connect(0);
    let (mut target, _) = listener.accept().unwrap();
    let sent = bytes(5_000_000);
    let expected = sent.clone();
    let reads = spawn(move || {
        assert!(all(&target) == expected);
        target.write_all(b"done").unwrap();
    });
    program.write_all(&sent).unwrap();
    program.shutdown(Shutdown::Write).unwrap();
    assert_eq!(all(&program), b"done");
    reads.join().unwrap();
    // What was not read is not lost.
    let (program, target) = unread.into_iter().next().unwrap();
    drop(program);
    let rest = all(&target);
    assert!(rest.len() >= 64 << 10 && rest.iter().all(|byte| *byte == 7), "{}", rest.len());
}

#[test]
fn limits_hold_in_both_directions_and_progress_tells_the_paths_of_both() {
    const SENT: usize = 48 << 10;
    let (port, served) = service(|mut stream| {
        let came = all(&stream);
        stream.write_all(&bytes(SENT)).unwrap();
        came
    });
    let target = format!("127.0.0.1:{port}");
    let arguments = [&format!("0:{target}"), "--bwlimit", "24K:16K", "--congestion", "newreno"];
    let mut pair = Pair::start(&[&target], &arguments);
    let mut stream = pair.connect(0);
    let begun = Instant::now();
    stream.write_all(&bytes(SENT)).unwrap();
    stream.shutdown(Shutdown::Write).unwrap();
    assert!(all(&stream) == bytes(SENT));
    // 48 KiB at 24 KiB/s, and then at 16 KiB/s, less what may come at once.
    let passed = begun.elapsed();
    assert!(passed >= Duration::from_secs(4), "{passed:?}");
    assert!(served.join().unwrap() == bytes(SENT));
    let carried = |paths: &serde_json::Value| {
        paths.as_array().is_some_and(|paths| paths.iter().any(|path| path["bytes"].as_u64() > Some(40_000)))
    };
    loop {
        let progress = pair.forward.event("progress");
        if carried(&progress["paths"]) && carried(&progress["arrivals"]) {
            break;
        }
    }
}

#[test]
fn a_controller_that_does_not_exist_is_told_before_anything_is_begun() {
    let place = Place::new();
    let arguments = ["forward", "0:localhost:1", "--to", "@nowhere", "--congestion", "reno-of-tomorrow"];
    let ticket = Pair::receiver(&place, &["localhost:1"]);
    std::fs::write(place.path("nowhere"), ticket.1).unwrap();
    place.run("sender", &arguments).failed(2, "reno-of-tomorrow");
}
