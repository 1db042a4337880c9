//! TCP connections that carry datagrams, over the kernel's TCP.

use crate::common::{Notebook, PATIENCE, socket};
use byway_net::{
    Backlog, Carrier, Clock, Control, Dialing, Listener, LoopControl, Owner, Ready, TcpLimits, Token, Watch,
    spawn_with,
};
use byway_wire::{Dscp, Ecn, Instant, Local, TcpRequest, Transmit};
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::time::Duration;

const LISTENER: Token = Token(0);
const DIALING: Token = Token(1);
/// The first TCP connection.
const FIRST: Local = Local(1 << 15);

/// One end: it listens or dials, and hands what comes of that to its driver.
struct End<T> {
    watch: Watch,
    listener: Option<Listener>,
    dialing: Option<Dialing>,
    opened: Vec<Carrier>,
    until: Instant,
    depth: TcpLimits,
    turn: T,
}

impl<T: FnMut(&mut Notebook) -> LoopControl + Send> Owner for End<T> {
    type Machine = Notebook;

    fn ready(&mut self, _: &mut Notebook, ready: Ready, _: Instant) {
        match (ready.token, &self.listener) {
            (LISTENER, Some(listener)) => {
                let mut taken = Vec::new();
                while listener.accept(&mut taken) == Backlog::MayHaveMore {}
                self.opened.extend(taken.into_iter().map(Carrier::from));
            }
            (DIALING, _) if ready.writable => {
                let Some(dialing) = self.dialing.take() else { return };
                self.watch.remove(&dialing).unwrap();
                self.opened.push(dialing.finish().unwrap().into());
            }
            _ => {}
        }
    }

    fn turn(&mut self, machine: &mut Notebook, now: Instant) -> LoopControl {
        machine.deadline = Some(self.until);
        if now >= self.until { LoopControl::Stop } else { (self.turn)(machine) }
    }

    fn opened(&mut self) -> Vec<Carrier> {
        std::mem::take(&mut self.opened)
    }

    fn depth(&self) -> TcpLimits {
        self.depth
    }
}

type Ran<T> = byway_net::Handle<End<T>>;

fn end<T>(listener: Option<Listener>, dial: Option<SocketAddr>, serves: bool, turn: T) -> Ran<T>
where
    T: FnMut(&mut Notebook) -> LoopControl + Send + 'static,
{
    end_of(TcpLimits::default(), listener, dial, serves, turn)
}

fn end_of<T>(
    depth: TcpLimits,
    listener: Option<Listener>,
    dial: Option<SocketAddr>,
    serves: bool,
    turn: T,
) -> Ran<T>
where
    T: FnMut(&mut Notebook) -> LoopControl + Send + 'static,
{
    let (clock, control) = (Clock::new(), Control::new().unwrap());
    let watch = control.watch().clone();
    if let Some(listener) = &listener {
        watch.add(listener, LISTENER).unwrap();
    }
    let dialing = dial.map(|to| Dialing::begin(to, None).unwrap());
    if let Some(dialing) = &dialing {
        watch.add(dialing, DIALING).unwrap();
    }
    let until = clock.now() + PATIENCE;
    let owner = End { watch, listener, dialing, opened: Vec::new(), until, depth, turn };
    let machine = Notebook { serves, ..Notebook::default() };
    spawn_with(control, "end", machine, owner, Vec::new(), clock).unwrap()
}

fn listener() -> (Listener, SocketAddr) {
    let listener = Listener::bind("127.0.0.1:0".parse().unwrap()).unwrap();
    let address = listener.address().unwrap();
    (listener, address)
}

/// A datagram that says which it is: of every size from 4 bytes to 9,000.
fn datagram(number: u32) -> Vec<u8> {
    let mut bytes = vec![number as u8; 4 + (number as usize * 37) % 8_997];
    bytes[..4].copy_from_slice(&number.to_be_bytes());
    bytes
}

fn say(machine: &mut Notebook, remote: SocketAddr, segment: usize, bytes: &[u8]) {
    machine.to_send.push_back((transmit(FIRST, remote, segment, bytes.len()), bytes.to_vec()));
}

fn transmit(local: Local, remote: SocketAddr, segment: usize, size: usize) -> Transmit {
    Transmit { local, remote, ecn: Ecn::NotEct, dscp: Dscp::BestEffort, size, segment, phantom: 0 }
}

#[test]
fn all_datagrams_arrive_whole_and_in_order_and_both_ends_learn_of_the_end() {
    const ALL: u32 = 4_000;
    let (listener, address) = listener();
    let done = Arc::new(AtomicBool::new(false));
    let said = Arc::clone(&done);
    let taker = end(Some(listener), None, true, move |machine| {
        said.fetch_or(machine.received.len() >= ALL as usize, SeqCst);
        if machine.connections.iter().any(|change| !change.open) {
            LoopControl::Stop
        } else {
            LoopControl::Continue
        }
    });
    let mut next = 0;
    let giver = end(None, Some(address), true, move |machine| {
        if done.load(SeqCst) {
            return LoopControl::Stop;
        }
        if !machine.connections.is_empty() && machine.to_send.len() < 100 {
            for number in (next..ALL).take(200) {
                say(machine, address, 9_000, &datagram(number));
                next = number + 1;
            }
        }
        machine.deadline = Some(Instant::ZERO);
        LoopControl::Continue
    });
    let gave = giver.join().unwrap();
    let from = gave.machine.connections[0].address;
    assert!(gave.machine.connections[0].open && gave.machine.connections[0].peer == address);
    drop((gave.owner, gave.sockets));
    let took = taker.join().unwrap().machine;
    assert!(took.received.iter().zip(0..ALL).all(|((.., bytes), number)| *bytes == datagram(number)));
    assert_eq!(took.received.len(), ALL as usize);
    let told: Vec<_> =
        took.connections.iter().map(|change| (change.local, change.peer, change.open)).collect();
    assert_eq!(told, [(FIRST, from, true), (FIRST, from, false)]);
}

#[test]
fn runs_are_framed_one_by_one() {
    let (listener, address) = listener();
    let giver = end(Some(listener), None, true, move |machine| {
        if let Some(change) = machine.connections.first().filter(|_| machine.filled == 0) {
            let peer = change.peer;
            say(machine, peer, 2, b"aabbc");
            machine.filled = 1;
        }
        LoopControl::Continue
    });
    let mut stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
    let mut bytes = [0; 11];
    stream.read_exact(&mut bytes).unwrap();
    assert_eq!(&bytes, b"\0\x02aa\0\x02bb\0\x01c");
    giver.stop();
    giver.join().unwrap();
}

/// Who reads nothing fills its connection, and another goes on.
#[test]
fn a_full_connection_holds_up_itself_alone() {
    let (listener, address) = listener();
    let idle = TcpStream::connect(address).unwrap();
    let idle_at = idle.local_addr().unwrap();
    let mut other = None;
    let giver = end(Some(listener), None, true, move |machine| {
        let open = machine.connections.iter().find(|change| change.peer == idle_at).copied();
        let Some(full) = open else { return LoopControl::Continue };
        if machine.filled == 0 {
            let transmit = transmit(full.local, idle_at, 60_000, 60_000);
            machine.to_send.extend((0..10).map(|_| (transmit, vec![1; 60_000])));
            machine.deadline = Some(Instant::ZERO);
            return LoopControl::Continue;
        }
        let change = machine.connections.iter().find(|change| change.peer != idle_at).copied();
        if let Some(change) = change.filter(|_| other.is_none()) {
            other = Some(change);
            let transmit = transmit(change.local, change.peer, 3, 3);
            machine.to_send.push_front((transmit, b"yes".to_vec()));
            machine.deadline = Some(Instant::ZERO);
        }
        // Once the other end reads, there is room again.
        if other.is_some() && machine.full.is_empty() && machine.to_send.is_empty() {
            return LoopControl::Stop;
        }
        LoopControl::Continue
    });
    let mut second = TcpStream::connect(address).unwrap();
    second.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
    let mut bytes = [0; 5];
    second.read_exact(&mut bytes).unwrap();
    assert_eq!(&bytes, b"\0\x03yes");
    let read = move || std::io::copy(&mut &idle, &mut std::io::sink()).unwrap();
    let reader = std::thread::Builder::new().spawn(read).unwrap();
    let finished = giver.join().unwrap().machine;
    assert!(finished.filled > 0 && finished.full.is_empty());
    assert!(reader.join().unwrap() > 0);
}

#[test]
fn what_is_no_frame_ends_a_connection_and_what_serves_nothing_is_closed() {
    let (listener, address) = listener();
    let taker = end(Some(listener), None, false, |machine| {
        let over = machine.connections.iter().filter(|change| !change.open).count();
        if over == 2 { LoopControl::Stop } else { LoopControl::Continue }
    });
    let mut wrong = TcpStream::connect(address).unwrap();
    wrong.write_all(b"\0\x02ok\0\0GET").unwrap();
    wrong.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
    // With bytes unread the end may come as a reset.
    assert!(matches!(wrong.read(&mut [0; 8]), Ok(0) | Err(_)));
    // Half a frame, and then silence.
    let mut slow = TcpStream::connect(address).unwrap();
    slow.write_all(b"\xff\xffhalf").unwrap();
    slow.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
    assert_eq!(slow.read(&mut [0; 8]).unwrap_or(0), 0);
    let took = taker.join().unwrap().machine;
    assert_eq!(took.received.iter().map(|(.., bytes)| &bytes[..]).collect::<Vec<_>>(), [b"ok"]);
}

#[test]
fn a_narrow_connection_has_small_segments_at_both_ends() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let segments = |dialing: Dialing| {
        let (accepted, _) = listener.accept().unwrap();
        let carrier = dialing.finish().unwrap();
        [
            socket2::SockRef::from(&accepted).tcp_mss().unwrap(),
            socket2::SockRef::from(&carrier).tcp_mss().unwrap(),
        ]
    };
    assert!(segments(Dialing::begin(address, None).unwrap()).iter().all(|bytes| *bytes > 536));
    assert!(segments(Dialing::begin_narrow(address, None).unwrap()).iter().all(|bytes| *bytes <= 536));
}

#[test]
fn a_port_where_nobody_listens_is_told() {
    // A port that was just free.
    let address = socket("127.0.0.1:0").address();
    let dialing = Dialing::begin(address, None);
    let outcome = dialing.and_then(|dialing| {
        // Who comes later is refused later.
        assert!(TcpStream::connect(address).is_err());
        dialing.finish().map(drop)
    });
    assert!(outcome.is_err());
}

#[test]
fn a_machine_has_connections_opened_and_closed_and_learns_of_those_that_cannot_be() {
    let (listener, address) = listener();
    let nowhere = socket("127.0.0.1:0").address();
    // Nobody accepts there, and nobody refuses: the queue of one that waits is full.
    let deaf = socket2::Socket::new(socket2::Domain::IPV4, socket2::Type::STREAM, None).unwrap();
    deaf.bind(&SocketAddr::from(([127, 0, 0, 1], 0)).into()).unwrap();
    deaf.listen(0).unwrap();
    let unheard = deaf.local_addr().unwrap().as_socket().unwrap();
    let _fills: Vec<_> = (0..2).map(|_| Dialing::begin(unheard, None)).collect();
    let mut asked = false;
    let giver = end(None, None, true, move |machine| {
        let patience = byway_wire::Duration::from_millis(100);
        if !std::mem::replace(&mut asked, true) {
            machine.asks.extend([address, nowhere, unheard].map(|peer| TcpRequest::Dial { peer, patience }));
        }
        match machine.connections.as_slice() {
            [open] if machine.not_dialed.len() == 2 => {
                assert!(open.open && open.peer == address);
                machine.asks.push_back(TcpRequest::Close(open.local));
            }
            [_, over] => {
                assert!(!over.open);
                return LoopControl::Stop;
            }
            _ => {}
        }
        LoopControl::Continue
    });
    let gave = giver.join().unwrap();
    gave.outcome.unwrap();
    let mut not_dialed = gave.machine.not_dialed;
    not_dialed.sort();
    let mut expected = vec![nowhere, unheard];
    expected.sort();
    assert_eq!(not_dialed, expected);
    let mut taken = Vec::new();
    listener.accept(&mut taken);
    assert_eq!(taken.len(), 1);
}

/// A paused connection is not read, so its peer can write only until the buffers are full. The
/// bytes that were read before the pause are no more than one read.
#[test]
fn a_paused_connection_holds_its_other_end_back() {
    const READ: usize = 8 << 10;
    let (listener, address) = listener();
    let resumed = Arc::new(AtomicBool::new(false));
    let said = Arc::clone(&resumed);
    let depth = TcpLimits { read: READ, ..TcpLimits::default() };
    let taker = end_of(depth, Some(listener), None, true, move |machine| {
        let bytes: usize = machine.received.iter().map(|(.., bytes)| bytes.len()).sum();
        let paused = !said.load(SeqCst);
        assert!(!paused || bytes <= READ, "{bytes} bytes were read");
        machine.asks.push_back(if paused { TcpRequest::Pause(FIRST) } else { TcpRequest::Resume(FIRST) });
        if machine.connections.iter().any(|change| !change.open) {
            LoopControl::Stop
        } else {
            LoopControl::Continue
        }
    });
    let mut stream = TcpStream::connect(address).unwrap();
    stream.set_write_timeout(Some(Duration::from_millis(300))).unwrap();
    let (frame, mut sent) = ([&[3, 232][..], &[7; 1_000]].concat(), 0);
    while let Ok(more) = stream.write(&frame[sent % frame.len()..]) {
        sent += more;
    }
    resumed.store(true, SeqCst);
    taker.waker().wake();
    stream.set_write_timeout(None).unwrap();
    stream.write_all(&frame[sent % frame.len()..]).unwrap();
    drop(stream);
    let took = taker.join().unwrap().machine;
    let bytes: usize = took.received.iter().map(|(.., bytes)| bytes.len()).sum();
    assert_eq!(bytes, sent.div_ceil(frame.len()) * 1_000);
}

#[test]
fn a_connection_that_breaks_while_it_is_paused_is_told_to_be_gone() {
    let (listener, address) = listener();
    let (tell, told) = std::sync::mpsc::sync_channel(1);
    let taker = end(Some(listener), None, true, move |machine| {
        if machine.connections.len() == 1 && machine.filled == 0 {
            machine.asks.push_back(TcpRequest::Pause(FIRST));
            machine.filled = 1;
            tell.send(()).unwrap();
        }
        if machine.connections.iter().any(|change| !change.open) {
            LoopControl::Stop
        } else {
            LoopControl::Continue
        }
    });
    let stream = TcpStream::connect(address).unwrap();
    told.recv().unwrap();
    socket2::SockRef::from(&stream).set_linger(Some(Duration::ZERO)).unwrap();
    drop(stream);
    taker.join().unwrap();
}
