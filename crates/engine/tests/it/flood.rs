//! Strangers by the million: what they send costs no memory, next to no answers, and no more work
//! than was meant for them.

use crate::common::MS;
use crate::common::liar::{Bench, liar, put, seal};
use crate::common::strangers::{attempt, hello, receiver_address, spoofed};
use crate::common::{Plan, both, parallel};
use crate::heap::Heap;
use byway_engine::handshake::{Established, HandshakeProgress, Initiator};
use byway_engine::{Config, EndpointEvent};
use byway_sim::{PipeConfig, Random, TapVerdict};
use byway_wire::frame::{self, Frame, Object};
use byway_wire::packet::{Handshake, RefuseReason};
use byway_wire::{Datagram, Ecn, Input, Instant, Local, Machine, ObjectId, PathId, TransmitBuffer, Writer};
use std::cell::RefCell;
use std::net::SocketAddr;
use std::rc::Rc;

const MANY: u64 = 1_000_000;

/// Any host's address, by its number.
fn somebody(number: u64) -> SocketAddr {
    SocketAddr::from(([99, (number >> 16) as u8, (number >> 8) as u8, number as u8], 6000))
}

/// What was sent back where a datagram came from. Counting it allocates nothing.
#[derive(Default)]
struct Sent {
    datagrams: usize,
    bytes: usize,
    refused: usize,
    retries: usize,
}

struct Flood {
    bench: Bench,
    payload: Vec<u8>,
    buffer: Vec<u8>,
}

impl Flood {
    fn new() -> Self {
        let bench = Bench::new(Config::default());
        let mut flood = Self { bench, payload: vec![0; 2_000], buffer: vec![0; 65_536] };
        flood.rest();
        flood
    }

    /// Ten seconds in which what there is to do anyway is done, and then a while for the last ACK.
    fn rest(&mut self) {
        for step in 0..110 {
            self.bench.now += 100 * MS;
            if step < 100 {
                self.bench.say(0, |writer| Frame::Ping.write(writer));
            }
            self.wake();
        }
    }

    fn wake(&mut self) {
        let now = self.bench.now;
        self.bench.honest.wake(now);
        let mut out = TransmitBuffer { buffer: &mut self.buffer, max_segments: 16 };
        while self.bench.honest.transmit(now, &mut out).is_some() {}
    }

    fn put(&mut self, from: SocketAddr, bytes: &[u8]) -> Sent {
        let payload = &mut self.payload[..bytes.len()];
        payload.copy_from_slice(bytes);
        let now = self.bench.now;
        let (local, ecn) = (Local(0), Ecn::NotEct);
        let datagram = Datagram { local, remote: from, ecn, arrival: now, payload, phantom: 0 };
        self.bench.honest.handle(now, Input::Datagram(datagram));
        let mut sent = Sent::default();
        while let Some(transmit) = self
            .bench
            .honest
            .transmit(now, &mut TransmitBuffer { buffer: &mut self.buffer, max_segments: 16 })
        {
            if transmit.remote != from {
                continue; // the session's own
            }
            sent.datagrams += 1;
            sent.bytes += transmit.size;
            match Handshake::read(&self.buffer[..transmit.size]) {
                Ok(Handshake::Refuse { reason: RefuseReason::WrongKey, .. }) => sent.refused += 1,
                Ok(Handshake::Retry { .. }) => sent.retries += 1,
                _ => {}
            }
        }
        assert!(sent.bytes <= bytes.len(), "{} bytes for {}", sent.bytes, bytes.len());
        sent
    }

    /// Of datagrams that are dropped unread, all reasons together.
    fn dropped(&self) -> u64 {
        let dropped = self.bench.honest.dropped();
        dropped.unknown + dropped.stray + dropped.forged + dropped.replayed + dropped.hellos
    }
}

/// A sender, as far as its first message.
struct Caller {
    initiator: Initiator,
    address: SocketAddr,
    keys: Option<Established>,
}

impl Caller {
    fn new(number: u32, said: &[u8], address: &str) -> Self {
        Self { initiator: attempt(number, said), address: address.parse().unwrap(), keys: None }
    }

    /// Says hello, and once more with the cookie if one is asked for. Returns whether it is
    /// answered.
    fn call(&mut self, flood: &mut Flood) -> bool {
        for _ in 0..2 {
            let hello = self.initiator.hello();
            let honest = &mut flood.bench.honest;
            let answers = put(honest, flood.bench.now, self.address, &hello);
            let Some((_, answer)) = answers.iter().find(|(to, _)| *to == self.address) else { return false };
            match self.initiator.on_packet(&Handshake::read(answer).unwrap()) {
                Ok(HandshakeProgress::Established(keys)) => {
                    self.keys = Some(*keys);
                    return true;
                }
                Ok(HandshakeProgress::SendHello) => {}
                other => panic!("{other:?}"),
            }
        }
        false
    }

    /// Sends its first packet. Returns whether the connection is accepted.
    fn confirm(&mut self, flood: &mut Flood) -> bool {
        let keys = self.keys.as_mut().unwrap();
        let packet = seal(keys, flood.bench.now, PathId(0), 0, |writer| Frame::Ping.write(writer));
        put(&mut flood.bench.honest, flood.bench.now, self.address, &packet);
        let events = std::iter::from_fn(|| flood.bench.honest.next_event());
        events.filter(|event| matches!(event, EndpointEvent::Accepted(_))).count() > 0
    }
}

/// Senders that receive at their addresses, all of one network, come this often while `honest` ones
/// call from time to time.
fn a_network_calls(per_second: u32, seconds: u32, said: &[u8], honest: &[&str]) {
    let mut flood = Flood::new();
    let mut waiting = Vec::new();
    let places = flood.bench.honest.handles().count();
    for number in 0..per_second * seconds {
        flood.bench.now += MS * 1000 / per_second;
        let address = format!("203.0.113.{}:6000", number % 200);
        Caller::new(number, said, &address).call(&mut flood);
        flood.wake();
        if number % per_second == per_second / 2 {
            for (index, address) in honest.iter().enumerate() {
                let mut caller = Caller::new(1_000_000 * (index as u32 + 1) + number, b"", address);
                assert!(caller.call(&mut flood), "{address} is not answered after {number}");
                waiting.push((number, caller));
            }
        }
        // Its answer and its first packet take a tenth of a second.
        while let Some((came, _)) = waiting.first()
            && number - came >= per_second / 10
        {
            let (came, mut caller) = waiting.remove(0);
            assert!(caller.confirm(&mut flood), "{} of {came} is forgotten", caller.address);
        }
    }
    let taken = flood.bench.honest.handles().count() - places - seconds as usize * honest.len();
    assert!(taken <= 64, "{taken} places");
}

/// One network with addresses of its own, and no permission, leaves room for others. It leaves room
/// for welcome hosts in it, too.
#[test]
fn a_network_that_calls_without_end_leaves_room_for_others() {
    a_network_calls(150, 12, b"no", &["198.51.100.1:5000", "203.0.113.250:5000"]);
}

/// The same if it is welcome.
#[test]
fn a_network_of_welcome_callers_leaves_room_for_others() {
    a_network_calls(150, 12, b"", &["198.51.100.1:5000"]);
}

/// The same if it calls more often than there are computations for all.
#[test]
#[ignore = "slow: seconds of a processor, at full scale"]
fn a_network_that_calls_often_does_not_use_up_the_computations() {
    a_network_calls(1_000, 8, b"no", &["198.51.100.1:5000", "[2001:db8::1]:5000"]);
}

#[test]
fn garbage() {
    let mut flood = Flood::new();
    let (state, before) = (flood.bench.state(), flood.dropped());
    let mut random = Random::component(1, "garbage");
    let mut garbage = vec![0; 1_500];
    let heap = Heap::new();
    let mut answers = 0;
    for number in 0..MANY {
        let length = if number % 64 == 0 { random.below(1_500) } else { random.below(80) } as usize;
        garbage[..length].chunks_mut(8).for_each(|bytes| {
            let word = random.below(u64::MAX).to_le_bytes();
            bytes.copy_from_slice(&word[..bytes.len()]);
        });
        let from = if number % 3 == 0 { liar() } else { somebody(number) };
        answers += flood.put(from, &garbage[..length]).datagrams as u64;
    }
    assert!(heap.held() <= 0 && heap.most() < 4_096, "{} held, {} at most", heap.held(), heap.most());
    assert_eq!(flood.bench.state(), state);
    assert_eq!(flood.dropped() - before + answers, MANY);
    // Only what looks like a HELLO of another version is answered.
    assert!(answers < MANY / 10_000, "{answers}");
}

#[test]
fn copies_and_forgeries_of_one_packet_from_everywhere() {
    let mut flood = Flood::new();
    let data = [7; 900];
    let packet = flood.bench.packet(0, |writer: &mut Writer<'_>| {
        frame::write_object(writer, &Object { id: ObjectId(0), offset: 0, data: &data, fin: true }, true);
    });
    flood.put(liar(), &packet);
    flood.rest();
    let (state, before) = (flood.bench.state(), flood.dropped());
    let mut forged = packet.clone();
    let heap = Heap::new();
    for number in 0..MANY {
        // Right but for one byte of the tag, under the newest numbers; and the very packet.
        forged.copy_from_slice(&packet);
        let last = forged.len() - 1;
        let bytes = if number % 2 == 0 {
            &packet
        } else {
            forged[last] ^= 1 + (number % 255) as u8;
            forged[9..13].iter_mut().zip((number as u32).to_be_bytes()).for_each(|(to, byte)| *to ^= byte);
            &forged
        };
        let from = if number % 3 == 0 { liar() } else { somebody(number) };
        let sent = flood.put(from, bytes);
        assert_eq!(sent.datagrams, 0, "datagram {number} is answered");
    }
    assert_eq!((heap.calls(), heap.held()), (0, 0), "a packet that is not taken costs no memory");
    assert_eq!(flood.bench.state(), state);
    assert_eq!(flood.dropped() - before, MANY);
}

/// Whoever saw the first message can replay it in anybody's name. It takes one place and one
/// computation, and never brings more bytes back.
#[test]
fn one_first_message_from_everywhere() {
    let mut flood = Flood::new();
    let first = hello(1);
    let places = flood.bench.honest.handles().count();
    let heap = Heap::new();
    for number in 0..MANY {
        assert!(flood.put(somebody(number), &first).datagrams <= 1);
        if number % 100 == 0 {
            flood.bench.now += MS;
            flood.wake();
        }
    }
    let held = heap.most();
    println!("{held} bytes for a connection that nobody confirms");
    assert!(flood.bench.honest.handles().count() <= places + 1);
    assert!(held < 128 << 10, "{held}");
    assert!(flood.bench.honest.next_event().is_none(), "nothing is accepted");
}

/// Anybody can make invalid first messages (HELLO), and these cost as much computation as valid
/// ones. So the receiver checks 64 at once and 200 more each second. It answers further ones with a
/// request for a cookie.
#[test]
fn forged_first_messages_cost_few_computations() {
    let mut flood = Flood::new();
    let mut forged = hello(2);
    let (places, heap) = (flood.bench.honest.handles().count(), Heap::new());
    let (begun, mut computed, mut retries) = (flood.bench.now, 0, 0);
    let count = MANY / 20;
    for number in 0..count {
        let at = forged.len() / 2;
        forged[at..at + 8].copy_from_slice(&number.to_be_bytes());
        forged[20..28].copy_from_slice(&number.to_le_bytes());
        let sent = flood.put(somebody(number), &forged);
        (computed, retries) = (computed + sent.refused, retries + sent.retries);
        if number % 20 == 0 {
            flood.bench.now += MS;
        }
    }
    let seconds = flood.bench.now.since(begun).as_secs_f64();
    println!("{computed} computed on of {count} in {seconds} s, {retries} asked for a cookie");
    assert!(computed as f64 <= 64.0 + 200.0 * seconds + 1.0, "{computed} in {seconds} s");
    assert!(retries as u64 > count * 9 / 10, "{retries}");
    assert_eq!(flood.bench.honest.handles().count(), places);
    assert!(heap.held() < 4_096 && heap.most() < 64 << 10, "{} held, {} at most", heap.held(), heap.most());
}

/// Different valid first messages (HELLO) come from forged source addresses. The receiver holds at
/// most 64 sessions for them, and drops these sessions after a while.
#[test]
fn first_messages_that_fit_take_few_places_and_for_seconds() {
    let mut flood = Flood::new();
    let places = flood.bench.honest.handles().count();
    let heap = Heap::new();
    for number in 0..2_000 {
        flood.put(somebody(number.into()), &hello(number));
        if number % 2 == 0 {
            flood.bench.now += MS;
            flood.wake();
        }
    }
    let taken = flood.bench.honest.handles().count() - places;
    println!("{taken} places, {} bytes", heap.most());
    assert!(taken <= 64 && heap.most() < 16 << 20, "{taken} places, {} bytes", heap.most());
    (0..3).for_each(|_| flood.rest());
    assert_eq!(flood.bench.honest.handles().count(), places);
    assert!(heap.held() < 256 << 10, "{} bytes are kept", heap.held());
    assert!(flood.bench.is_open());
}

/// What strangers send to a receiver while a transfer fills its line, by the second.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Flooded {
    Garbage,
    /// Right but for the tag, and by a connection id that is in use.
    Data,
    Notices,
    Greetings,
    FirstMessages,
}

/// Mbit/s of a transfer over a line of 95 Mbit/s, with so many datagrams a second from everywhere.
fn goodput(flooded: Option<(Flooded, u64)>) -> f64 {
    let config = PipeConfig::new(95_000_000, 5 * MS).queue(200);
    let mut world = parallel(1, Plan::new("newreno", &[1 << 30], &[]), &[both(config)]);
    world.world.stop_trace();
    let packet = Rc::new(RefCell::new(Vec::new()));
    let seen = Rc::clone(&packet);
    world.world.tap(move |datagram| {
        if datagram.payload.len() > 1_000 && !Handshake::is(datagram.payload[0]) {
            seen.borrow_mut().clone_from(datagram.payload);
        }
        TapVerdict::Pass
    });
    let (begin, step, end) = (1_000, 20, 3_000);
    world.world.run_until(Instant::from_millis(begin));
    let mut random = Random::component(1, "flood");
    let first = hello(3);
    for last in 0..=255 {
        spoofed(&mut world.world, last);
    }
    for from in (begin..end).step_by(step as usize) {
        let (what, per_second) = flooded.unwrap_or((Flooded::Garbage, 0));
        let many = per_second * step / 1_000;
        for number in 0..many {
            let at = Instant::from_millis(from) + MS * step as u32 * number as u32 / many as u32;
            let mut bytes: Vec<u8> = match what {
                Flooded::FirstMessages => first.clone(),
                Flooded::Data => packet.borrow().clone(),
                _ => (0..200).map(|_| random.below(256) as u8).collect(),
            };
            // As crates/wire/src/relay/{notice,greet}.rs write them, with nonsense for what only a
            // relay knows.
            match what {
                Flooded::Garbage => {}
                Flooded::Data => bytes[9..13].copy_from_slice(&(random.below(1 << 32) as u32).to_be_bytes()),
                Flooded::Notices => bytes[..2].copy_from_slice(&[0x6e, 1 + random.below(6) as u8]),
                Flooded::Greetings => bytes[0] = 0x6c,
                Flooded::FirstMessages => {
                    bytes[20..28].copy_from_slice(&random.below(u64::MAX).to_be_bytes());
                    bytes[700..708].copy_from_slice(&random.below(u64::MAX).to_be_bytes());
                }
            }
            let address = SocketAddr::from(([99, 0, 0, random.below(256) as u8], 6000));
            world.world.inject(at, address, receiver_address(), Ecn::NotEct, &bytes);
        }
        world.world.run_until(Instant::from_millis(from + step));
    }
    let receiver = &world.world[world.receiver];
    assert_eq!((receiver.handles.len(), receiver.closed.len()), (1, 0), "{flooded:?}");
    receiver.goodput(MS * begin as u32, MS * end as u32) / 1e6
}

/// What the machine does for strangers takes nothing of the line. (How much of the processor they
/// cost is measured with kernels.)
#[test]
fn a_transfer_keeps_its_rate_in_a_flood_from_everywhere() {
    let calm = goodput(None);
    let floods = [
        (Flooded::Garbage, 30_000),
        (Flooded::Data, 30_000),
        (Flooded::Notices, 30_000),
        (Flooded::Greetings, 30_000),
        (Flooded::FirstMessages, 10_000),
    ];
    for flood in floods {
        let rate = goodput(Some(flood));
        println!("{flood:?}: {rate:.1} of {calm:.1} Mbit/s");
        assert!(rate > calm * 0.98, "{flood:?}: {rate} of {calm} Mbit/s");
    }
    assert!(calm > 80.0, "{calm}");
}
