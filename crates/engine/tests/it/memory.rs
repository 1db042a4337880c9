//! Many senders share the memory of one receiver. A sender whose data the application does not read
//! gets no larger share than the other senders. A sender whose data is read keeps making progress.

use crate::common::{MS, Plan, Receiver, Sender, address, both, identity, line};
use byway_engine::connection::close;
use byway_engine::seal::Suites;
use byway_engine::{Config, ConnectError};
use byway_sim::{Handle, World};
use byway_wire::{Duration, Instant};
use std::net::SocketAddr;

const KIB: usize = 1 << 10;
const MIB: usize = 1 << 20;

/// A receiver that reads no streams, with so much memory for all its senders.
struct Crowd {
    world: World,
    receiver: Handle<Receiver>,
    hosts: u8,
}

impl Crowd {
    fn new(memory: usize) -> Self {
        let mut world = World::new(1);
        world.stop_trace();
        let config = Config { shared_memory: Some(memory), ..Config::default() };
        let mut receiver = Receiver::new(9, config, Suites::INSECURE_SIMULATION);
        receiver.deaf = true;
        let receiver = world.add("receiver", receiver, &[address("10.0.1.1:4000")]);
        Self { world, receiver, hosts: 0 }
    }

    /// A sender over a line of its own.
    fn sender(&mut self, mbit: u64, objects: &[u64], stream: u64, start: Duration) -> Handle<Sender> {
        self.sender_with(self.hosts + 1, mbit, objects, stream, start)
    }

    /// The same, with the key of this number.
    fn sender_with(
        &mut self,
        key: u8,
        mbit: u64,
        objects: &[u64],
        stream: u64,
        start: Duration,
    ) -> Handle<Sender> {
        self.hosts += 1;
        let to = address("10.0.1.1:4000");
        let mut plan = Plan::new("newreno", objects, &[to]);
        // One that nobody reads gets no large window: many do fill what the session is granted.
        (plan.stream, plan.streams, plan.stream_last) = (stream / 40, 40, true);
        (plan.start, plan.suites) = (start, Suites::INSECURE_SIMULATION);
        let from = SocketAddr::from(([10, 0, 0, self.hosts], 5000));
        let sender = Sender::with_key(key ^ 0x80, self.hosts ^ 0x80, identity(9).public(), plan);
        let sender = self.world.add(&format!("sender {from}"), sender, &[from]);
        let (up, down) = both(line(mbit, 10 * MS));
        self.world.connect(from, to, up, down);
        sender
    }

    /// Whether a sender was told that there is no room for it.
    fn is_refused(&self, sender: Handle<Sender>) -> bool {
        let host = &self.world[sender];
        // Who comes while another's first packet is under way is told so in the session.
        let closed = host.closed.as_ref().is_some_and(|(code, _)| *code == close::BUSY_CODE);
        host.failed == Some(ConnectError::Full) || closed
    }

    /// Bytes that all sessions hold unread, and the memory that they take.
    fn held(&mut self) -> (usize, usize) {
        self.world.act(self.receiver, |host, _| {
            let handles: Vec<_> = host.endpoint.handles().collect();
            handles.into_iter().fold((0, 0), |(held, memory), handle| {
                let incoming = host.endpoint.connection_mut(handle).unwrap().incoming();
                (held + incoming.held() as usize, memory + incoming.memory())
            })
        })
    }
}

#[test]
fn twenty_senders_that_nobody_reads_stay_within_the_memory_and_others_go_on() {
    let memory = 16 * MIB;
    let mut crowd = Crowd::new(memory);
    for number in 0..20 {
        // Some first show that they are read, so that their windows grow.
        let objects: &[u64] = if number % 2 == 0 { &[3 << 20] } else { &[] };
        crowd.sender(50, objects, 30 << 20, 50 * MS * number);
    }
    let early = crowd.sender(10, &[6 << 20], 0, 200 * MS);
    let late = crowd.sender(10, &[3 << 20], 0, Duration::from_secs(5));
    let mut most = (0, 0);
    for step in 0..200 {
        crowd.world.run_until(Instant::from_millis(step * 50));
        let held = crowd.held();
        most = (most.0.max(held.0), most.1.max(held.1));
    }
    println!("{} KiB held, {} KiB of memory", most.0 / KIB, most.1 / KIB);
    assert!(most.0 <= memory && most.1 <= 4 * memory, "{most:?}");
    // The streams fill what they were granted.
    assert!(most.0 > memory / 10, "{most:?}");
    for (sender, start, size) in [(early, 200, 6_u64), (late, 5_000, 3)] {
        let done = crowd.world[sender].done_at.expect("it is read, and goes on");
        let took = done.since(Instant::from_millis(start)).as_secs_f64();
        let ideal = (size << 23) as f64 / 10e6;
        println!("{size} MiB in {took:.1} s, of {ideal:.1}");
        assert!(took < ideal * 1.3, "{took} s instead of {ideal}");
    }
}

/// Each session takes memory of its own: there are no more than fit, and those beyond are told.
#[test]
fn more_sessions_than_there_is_memory_for_are_refused() {
    let mut crowd = Crowd::new(MIB);
    let senders: Vec<_> = (0..40).map(|number| crowd.sender(10, &[], 10 << 20, 20 * MS * number)).collect();
    crowd.world.run_until(Instant::from_millis(30_000));
    let (held, _) = crowd.held();
    assert!(held <= MIB, "{held}");
    assert_eq!(senders.iter().filter(|sender| crowd.is_refused(**sender)).count(), 8);
}

#[test]
fn one_peer_with_many_sessions_leaves_half_of_the_places_to_others() {
    let mut crowd = Crowd::new(MIB);
    let greedy: Vec<_> =
        (0..40).map(|number| crowd.sender_with(1, 10, &[], 10 << 20, 20 * MS * number)).collect();
    let others: Vec<_> =
        (50..60).map(|key| crowd.sender_with(key, 10, &[], 10 << 20, Duration::from_secs(2))).collect();
    crowd.world.run_until(Instant::from_millis(30_000));
    assert_eq!(greedy.iter().filter(|sender| crowd.is_refused(**sender)).count(), 24, "it has 16 of 32");
    assert_eq!(others.iter().filter(|sender| crowd.is_refused(**sender)).count(), 0);
}
