//! The shaper between two machines, as it stands between two sockets.

use crate::common::{Flood, Ping, address};
use byway_sim::{DropReason, Handle, PipeConfig, Shaper, ShaperConfig, Sharing, World};
use byway_wire::{
    Datagram, Dscp, Duration, Ecn, Input, Instant, LinkChange, Local, Machine, Transmit, TransmitBuffer,
};
use proptest::prelude::*;
use std::collections::VecDeque;
use std::net::SocketAddr;

const MS: Duration = Duration::from_millis(1);
const MINUTE: Instant = Instant::from_millis(60_000);
const FRONT: SocketAddr = SocketAddr::new(std::net::IpAddr::V4(std::net::Ipv4Addr::new(10, 0, 0, 50)), 1);

fn server() -> SocketAddr {
    address(2, 2000)
}

/// A world with a shaper of so many back sockets and a server behind it; all of them on one wire.
fn shaped(config: ShaperConfig, backs: u8) -> (World, Handle<Shaper>) {
    let mut world = World::new(1);
    let addresses: Vec<SocketAddr> =
        std::iter::once(FRONT).chain((0..backs).map(|back| address(50, 100 + u16::from(back)))).collect();
    let shaper = world.add("shaper", Shaper::new(config), &addresses);
    world.connect(FRONT, server(), PipeConfig::default(), PipeConfig::default());
    (world, shaper)
}

fn client<T: byway_sim::Node>(world: &mut World, host: u8, node: T) -> Handle<T> {
    let own = address(host, 1000);
    let handle = world.add(&format!("client {host}"), node, &[own]);
    world.connect(own, FRONT, PipeConfig::default(), PipeConfig::default());
    handle
}

#[test]
fn clients_are_served_each_by_a_socket_of_its_own() {
    let line = PipeConfig::delay_only(10 * MS);
    let (mut world, shaper) = shaped(ShaperConfig::new(server(), line.clone(), line), 2);
    let answering = world.add("server", Ping::server(), &[server()]);
    let clients = [11, 12, 13].map(|host| client(&mut world, host, Ping::client(FRONT, 10, 100 * MS)));
    world.run_until(Instant::from_millis(2_000));
    // The third finds no socket.
    assert_eq!(clients.map(|client| world[client].answered), [10, 10, 0]);
    assert_eq!(world[clients[0]].times[0], Instant::from_millis(20));
    let mut backs = world[answering].remotes.clone();
    backs.sort_unstable();
    backs.dedup();
    assert_eq!(backs, [address(50, 100), address(50, 101)]);
    let counters = world[shaper].counters();
    // Of the third, it is what it asked at `0, 100, ..., 2000` ms.
    assert_eq!((counters.clients, counters.refused), (2, 21));
    assert_eq!((counters.up.sent, counters.up.delivered, counters.down.delivered), (20, 20, 20));
    assert_eq!(
        world[shaper].clients().collect::<Vec<_>>(),
        [(address(11, 1000), Local(1)), (address(12, 1000), Local(2))]
    );
}

#[test]
fn a_silent_client_gives_up_its_socket() {
    let line = PipeConfig::delay_only(10 * MS);
    let mut config = ShaperConfig::new(server(), line.clone(), line);
    config.idle = Duration::from_secs(5);
    let (mut world, shaper) = shaped(config, 1);
    world.add("server", Ping::server(), &[server()]);
    let first = client(&mut world, 11, Ping::client(FRONT, 10, 100 * MS));
    let second = client(&mut world, 12, Ping::client(FRONT, 10, 100 * MS));
    world.run_until(Instant::from_millis(5_100));
    assert_eq!((world[first].answered, world[second].answered), (10, 0));
    world.run_until(MINUTE);
    assert_eq!((world[first].answered, world[second].answered), (10, 10));
    let counters = world[shaper].counters();
    assert_eq!((counters.clients, counters.up.delivered), (2, 20));
}

#[test]
fn a_shared_shaper_is_one_bottleneck() {
    for (sharing, expected) in [(Sharing::PerClient, 2_000), (Sharing::Shared, 1_021)] {
        let mut config =
            ShaperConfig::new(server(), PipeConfig::new(8_000_000, 10 * MS).queue(20), PipeConfig::default());
        config.sharing = sharing;
        let (mut world, shaper) = shaped(config, 2);
        let sink = world.add("server", Flood::sink(), &[server()]);
        for host in [11, 12] {
            client(&mut world, host, Flood::new(FRONT, MS, 972, 1_000));
        }
        world.run_until(MINUTE);
        let up = world[shaper].counters().up;
        assert_eq!((world[sink].heard, up.sent), (up.delivered, 2_000));
        assert!(up.delivered.abs_diff(expected) <= 2, "{sharing:?}: {up:?}");
        assert_eq!(up.dropped_for(DropReason::QueueFull), 2_000 - up.delivered);
    }
}

#[test]
fn what_a_shaper_holds_is_bounded() {
    let half_a_second = PipeConfig::delay_only(500 * MS);
    let base = ShaperConfig::new(server(), half_a_second, PipeConfig::default());
    // A hundred packets, or the bytes of a hundred; it keeps room for a copy.
    for config in [
        ShaperConfig { hold_packets: 100, ..base.clone() },
        ShaperConfig { hold_bytes: 100 * 972, ..base.clone() },
    ] {
        let (mut world, shaper) = shaped(config, 1);
        let sink = world.add("server", Flood::sink(), &[server()]);
        client(&mut world, 11, Flood::new(FRONT, MS, 972, 300));
        world.run_until(Instant::from_millis(299));
        let up = world[shaper].counters().up;
        assert!((98..=100).contains(&up.in_flight) && up.balance_with(up.in_flight), "{up:?}");
        world.run_until(MINUTE);
        assert_eq!(world[sink].heard, up.in_flight);
    }
}

#[test]
fn only_the_server_may_answer() {
    let line = PipeConfig::delay_only(10 * MS);
    let (mut world, shaper) = shaped(ShaperConfig::new(server(), line.clone(), line), 1);
    let stranger = address(66, 6);
    world.inject(Instant::from_millis(1), server(), address(50, 100), Ecn::NotEct, b"to nobody");
    world.inject(Instant::from_millis(2), address(11, 1000), FRONT, Ecn::NotEct, b"hello");
    world.inject(Instant::from_millis(3), stranger, address(50, 100), Ecn::NotEct, b"forged");
    world.run_until(MINUTE);
    let counters = world[shaper].counters();
    assert_eq!((counters.foreign, counters.down.sent, counters.up.delivered), (2, 0, 1));
}

/// Sends what it is told to, byte for byte, and keeps what comes.
#[derive(Debug, Default)]
struct Mail {
    out: VecDeque<(SocketAddr, Ecn, Vec<u8>)>,
    heard: Vec<(SocketAddr, Ecn, Vec<u8>)>,
    echo: bool,
}

impl Machine for Mail {
    fn handle(&mut self, _: Instant, input: Input<'_>) {
        if let Input::Datagram(Datagram { remote, ecn, payload, .. }) = input {
            self.heard.push((remote, ecn, payload.to_vec()));
            if self.echo {
                self.out.push_back((remote, ecn, payload.to_vec()));
            }
        }
    }
    fn wake(&mut self, _: Instant) {}
    fn transmit(&mut self, _: Instant, out: &mut TransmitBuffer<'_>) -> Option<Transmit> {
        let (remote, ecn, payload) = self.out.pop_front()?;
        out.buffer[..payload.len()].copy_from_slice(&payload);
        Some(Transmit {
            local: Local(0),
            remote,
            ecn,
            dscp: Dscp::BestEffort,
            size: payload.len(),
            segment: payload.len(),
            phantom: 0,
        })
    }
    fn deadline(&self) -> Option<Instant> {
        None
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn bytes_marks_and_order_survive(
        sizes in proptest::collection::vec((prop_oneof![Just(0), Just(700), 0_usize..1_500], 0_u8..3), 1..100),
        segments in 1_usize..10,
    ) {
        let line = PipeConfig::delay_only(10 * MS);
        let (mut world, shaper) = shaped(ShaperConfig::new(server(), line.clone(), line), 1);
        world.set_max_segments(segments);
        let echo = world.add("server", Mail { echo: true, ..Mail::default() }, &[server()]);
        let mut random = world.random("letters");
        let letters: Vec<(Ecn, Vec<u8>)> = sizes
            .into_iter()
            .map(|(size, ecn)| {
                let mut letter = vec![0; size];
                random.fill(&mut letter);
                ([Ecn::NotEct, Ecn::Ect0, Ecn::Ce][usize::from(ecn)], letter)
            })
            .collect();
        let out = letters.iter().map(|(ecn, letter)| (FRONT, *ecn, letter.clone())).collect();
        let sender = client(&mut world, 11, Mail { out, ..Mail::default() });
        world.run_until(MINUTE);
        let expect = |from| -> Vec<_> {
            letters.iter().map(|(ecn, letter)| (from, *ecn, letter.clone())).collect()
        };
        prop_assert_eq!(&world[echo].heard, &expect(address(50, 100)));
        prop_assert_eq!(&world[sender].heard, &expect(FRONT));
        let counters = world[shaper].counters();
        prop_assert!(counters.up.balance_with(0) && counters.down.balance_with(0));
    }
}

#[test]
fn a_shaper_may_move_to_a_thread_of_its_own() {
    fn moves<T: Send + 'static>() {}
    moves::<Shaper>();
}

#[test]
fn equal_datagrams_leave_in_runs() {
    // Under any driver: what is due together goes out in one call, the last of a run may be
    // shorter.
    let mut shaper =
        Shaper::new(ShaperConfig::new(server(), PipeConfig::delay_only(MS), PipeConfig::default()));
    for (local, port) in [(0, 1), (1, 100)] {
        let change = LinkChange { local: Local(local), address: address(50, port), up: true };
        shaper.handle(Instant::ZERO, Input::Link(change));
    }
    for size in [100, 100, 100, 40, 100, 200] {
        let datagram = Datagram {
            local: Local(0),
            remote: address(11, 1000),
            ecn: Ecn::Ect0,
            arrival: Instant::ZERO,
            payload: &mut vec![7; size],
            phantom: 0,
        };
        shaper.handle(Instant::ZERO, Input::Datagram(datagram));
    }
    let mut buffer = [0; 1_000];
    let mut next = |now, max_segments| {
        let sent = shaper.transmit(now, &mut TransmitBuffer { buffer: &mut buffer, max_segments })?;
        assert_eq!((sent.local, sent.remote, sent.ecn), (Local(1), server(), Ecn::Ect0));
        Some((sent.size, sent.segment))
    };
    assert_eq!(next(Instant::ZERO, 16), None);
    let due = Instant::ZERO + MS;
    assert_eq!(next(due, 2), Some((200, 100)));
    assert_eq!(next(due, 16), Some((140, 100)));
    assert_eq!(next(due, 16), Some((100, 100)));
    assert_eq!(next(due, 16), Some((200, 200)));
    assert_eq!(next(due, 16), None);
    assert_eq!(shaper.deadline(), None);
}
