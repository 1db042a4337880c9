//! What an owner has its driver watch: thousands of descriptors, of which few have news.

use crate::common::{Notebook, PATIENCE};
use byway_net::{Clock, Control, LoopControl, Owner, Ready, Token, Waker, Watch, run, spawn_with};
use byway_wire::Instant;
use std::collections::VecDeque;
use std::io::{ErrorKind, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::unix::net::UnixStream;

/// Sends back what comes by many streams, a little each turn.
struct Echoes {
    streams: Vec<UnixStream>,
    waker: Waker,
    /// Those that were told of and not read dry.
    readable: VecDeque<usize>,
    /// How often the driver told.
    told: u32,
    echoed: usize,
    enough: usize,
    until: Instant,
}

impl Owner for Echoes {
    type Machine = Notebook;

    fn ready(&mut self, _: &mut Notebook, ready: Ready, _: Instant) {
        self.told += 1;
        let at = ready.token.0 as usize;
        if ready.readable && !self.readable.contains(&at) {
            self.readable.push_back(at);
        }
    }

    fn turn(&mut self, machine: &mut Notebook, now: Instant) -> LoopControl {
        machine.deadline = Some(self.until);
        if self.echoed >= self.enough || now >= self.until {
            return LoopControl::Stop;
        }
        if let Some(at) = self.readable.pop_front() {
            let mut byte = [0];
            match self.streams[at].read(&mut byte) {
                Ok(0) => {}
                Ok(_) => {
                    self.streams[at].write_all(&byte).unwrap();
                    self.echoed += 1;
                    self.readable.push_back(at);
                }
                Err(error) => assert_eq!(error.kind(), ErrorKind::WouldBlock),
            }
        }
        if !self.readable.is_empty() {
            self.waker.wake();
        }
        LoopControl::Continue
    }
}

#[test]
fn of_thousands_only_those_with_news_are_told_of() {
    const STREAMS: usize = 3_000;
    let control = Control::new().unwrap();
    let clock = Clock::new();
    let mut pairs = Vec::new();
    for number in 0..STREAMS {
        // As many as this process may open.
        let Ok((near, far)) = UnixStream::pair() else { break };
        near.set_nonblocking(true).unwrap();
        if control.watch().add(&near, Token(number as u32)).is_err() {
            break;
        }
        pairs.push((near, far));
    }
    pairs.truncate(pairs.len() - 8);
    let (near, mut far): (Vec<_>, Vec<_>) = pairs.into_iter().unzip();
    let count = near.len();
    let busy: Vec<usize> = (0..count).step_by(count / 10).collect();
    let owner = Echoes {
        streams: near,
        waker: control.waker().clone(),
        readable: VecDeque::new(),
        told: 0,
        echoed: 0,
        enough: busy.len() * 20,
        until: clock.now() + PATIENCE,
    };
    let driver = spawn_with(control, "echoes", Notebook::default(), owner, vec![], clock).unwrap();
    for round in 0..20 {
        for at in &busy {
            far[*at].write_all(&[round]).unwrap();
        }
        for at in &busy {
            let mut back = [0];
            far[*at].read_exact(&mut back).unwrap();
            assert_eq!(back, [round]);
        }
    }
    let owner = driver.join().unwrap().owner;
    assert_eq!(owner.echoed, busy.len() * 20);
    // Each once, since it can be written to; then only those that something came by, or whose other
    // end read.
    let most = count + 8 + 2 * busy.len() * 20;
    assert!((owner.told as usize) <= most, "{} of {most}", owner.told);
}

/// Accepts connections and reads them to their end.
struct Listening {
    listener: TcpListener,
    watch: Watch,
    streams: Vec<Option<TcpStream>>,
    ended: usize,
    until: Instant,
}

impl Owner for Listening {
    type Machine = Notebook;

    fn ready(&mut self, _: &mut Notebook, ready: Ready, _: Instant) {
        if ready.token == Token(u32::MAX) {
            while let Ok((stream, _)) = self.listener.accept() {
                stream.set_nonblocking(true).unwrap();
                self.watch.add(&stream, Token(self.streams.len() as u32)).unwrap();
                self.streams.push(Some(stream));
            }
            return;
        }
        let place = &mut self.streams[ready.token.0 as usize];
        while let Some(stream) = place {
            match stream.read(&mut [0; 64]) {
                Ok(0) => {
                    (*place, self.ended) = (None, self.ended + 1);
                }
                Ok(_) => {}
                Err(_) => break,
            }
        }
    }

    fn turn(&mut self, machine: &mut Notebook, now: Instant) -> LoopControl {
        machine.deadline = Some(self.until);
        if self.ended == 30 || now >= self.until { LoopControl::Stop } else { LoopControl::Continue }
    }
}

#[test]
fn descriptors_come_and_go_while_the_driver_runs() {
    let control = Control::new().unwrap();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    listener.set_nonblocking(true).unwrap();
    let address = listener.local_addr().unwrap();
    control.watch().add(&listener, Token(u32::MAX)).unwrap();
    let clock = Clock::new();
    let watch = control.watch().clone();
    let owner = Listening { listener, watch, streams: Vec::new(), ended: 0, until: clock.now() + PATIENCE };
    let connects = move || {
        for _ in 0..30 {
            TcpStream::connect(address).unwrap().write_all(b"a word").unwrap();
        }
    };
    let guest = std::thread::Builder::new().name("guest".into()).spawn(connects).unwrap();
    let finished = run(Notebook::default(), owner, vec![], clock, &control);
    finished.outcome.unwrap();
    guest.join().unwrap();
    assert_eq!(finished.owner.ended, 30);
}
