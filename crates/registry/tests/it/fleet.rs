//! Ten thousand relays at one registry.

use crate::common::*;
use byway_engine::handshake::PublicKey;
use byway_registry::message::{Label, RelayList};
use byway_registry::store::{Memory, RelayRow};
use byway_registry::word::WordKind;
use byway_sim::{Handle, Node, PipeConfig, World};
use byway_wire::heartbeat::{ANSWERED_LEN, BEAT_LEN, Heartbeat, HeartbeatAnswer, HeartbeatReport, RelayId};
use byway_wire::relay::{QuotaClass, RateClass, RelayKey};
use byway_wire::{Dscp, Duration, Ecn, Input, Instant, Local, Machine, Transmit, TransmitBuffer, Writer};
use std::collections::BTreeSet;
use std::net::SocketAddr;

const RELAYS: usize = 10_000;
/// The operator with most relays has half of them.
const OPERATORS: usize = 200;

struct Member {
    key: RelayKey,
    counter: u64,
    epoch: u32,
    due: Instant,
}

/// Relays, as far as a registry sees them: each has a socket, and beats.
struct Fleet {
    members: Vec<Member>,
    /// When each is to beat.
    queue: BTreeSet<(Instant, usize)>,
    silent: BTreeSet<usize>,
}

impl Fleet {
    fn new() -> Self {
        let member = |index: usize| Member {
            key: RelayKey::new(&relay_key(index)),
            counter: 0,
            epoch: 1,
            due: Instant::from_millis(index as u64),
        };
        let members: Vec<Member> = (0..RELAYS).map(member).collect();
        let queue = members.iter().enumerate().map(|(index, member)| (member.due, index)).collect();
        Self { members, queue, silent: BTreeSet::new() }
    }

    fn set_due(&mut self, index: usize, due: Instant) {
        self.queue.remove(&(self.members[index].due, index));
        self.members[index].due = due;
        self.queue.insert((due, index));
    }
}

impl Machine for Fleet {
    fn handle(&mut self, now: Instant, input: Input<'_>) {
        let Input::Datagram(datagram) = input else { return };
        assert_eq!(datagram.payload.len(), ANSWERED_LEN);
        let index = usize::from(datagram.local.0);
        let member = &mut self.members[index];
        let answered = HeartbeatAnswer::read(datagram.payload).unwrap();
        assert!(answered.is_authentic(&member.key.range_key(RANGE).heartbeat_key()));
        if answered.orders.counter != member.counter {
            return; // the next beat is on its way, and its answer says the same
        }
        member.epoch = answered.orders.epoch;
        self.set_due(index, now + Duration::from_millis(answered.orders.next_millis.into()));
    }

    fn wake(&mut self, _now: Instant) {}

    fn transmit(&mut self, now: Instant, out: &mut TransmitBuffer<'_>) -> Option<Transmit> {
        let (_, due) = *self.queue.first().filter(|(at, _)| *at <= now)?;
        self.set_due(due, now + Duration::from_secs(10));
        let member = &mut self.members[due];
        if self.silent.contains(&due) {
            return self.transmit(now, out);
        }
        member.counter += 1;
        let (relay, counter, epoch) = (member.key.id(), member.counter, member.epoch);
        let report = HeartbeatReport {
            relay,
            range: RANGE,
            counter,
            epoch,
            rate: 0,
            grants: 0,
            today: 0,
            month: 0,
            left: u64::MAX,
            flags: 0,
        };
        let key = member.key.range_key(RANGE).heartbeat_key();
        Heartbeat::new(report, &key).write(&mut Writer::new(out.buffer));
        let (size, segment) = (BEAT_LEN, BEAT_LEN);
        let (ecn, dscp) = (Ecn::NotEct, Dscp::BestEffort);
        Some(Transmit {
            local: Local(due as u16),
            remote: hub_address(),
            ecn,
            dscp,
            size,
            segment,
            phantom: 0,
        })
    }

    fn deadline(&self) -> Option<Instant> {
        self.queue.first().map(|(at, _)| *at)
    }
}

struct Host(Fleet);

impl Node for Host {
    fn machine(&mut self) -> &mut dyn Machine {
        &mut self.0
    }
}

fn store() -> Memory {
    let mut store = memory();
    for index in 0..RELAYS {
        let key = RelayKey::new(&relay_key(index));
        let operator = if index % 2 == 0 { 0 } else { index % OPERATORS };
        store.put_relay(RelayRow {
            relay: key.id(),
            key: PublicKey([1; 32]),
            word: JOIN,
            range: RANGE,
            range_key: key.range_key(RANGE),
            rate: RateClass::UNLIMITED,
            quota: QuotaClass::UNLIMITED,
            operator: Label::new(&format!("operator {operator}")),
            region: Label::default(),
            addresses: vec![relay_address(index)],
            tcp: false,
            revoked: false,
        });
    }
    store
}

fn fleet(net: &mut Net) -> Handle<Host> {
    let addresses: Vec<SocketAddr> = (0..RELAYS).map(relay_address).collect();
    let line = |world: &mut World, name: &str| world.link(name, PipeConfig::new(1_000_000_000, 10 * MS));
    let (there, back) = (line(&mut net.world, "there"), line(&mut net.world, "back"));
    let fleet = net.world.add("fleet", Host(Fleet::new()), &addresses);
    for address in addresses {
        net.world.route(address, hub_address().ip(), &[there]);
        net.world.route(hub_address(), address.ip(), &[back]);
    }
    fleet
}

fn names(list: &RelayList) -> BTreeSet<RelayId> {
    list.relays.iter().map(|listed| listed.relay).collect()
}

#[test]
fn ten_thousand_relays_beat_are_drawn_evenly_and_go_when_they_fall_silent() {
    let mut net = Net::new(31, store());
    let fleet = fleet(&mut net);
    let clients: Vec<_> = (0..40).map(|it| net.asker(Asker::new(10 + it))).collect();
    net.run(Duration::from_secs(15));
    let registry = |net: &Net| net.world[net.hub].registry.counters().clone();
    let listed =
        |net: &Net| net.world[net.hub].registry.book().iter(net.world.now()).filter(|(_, it)| *it).count();
    assert_eq!(listed(&net), RELAYS);
    assert!(registry(&net).beats >= RELAYS as u64 && registry(&net).beats_replayed == 0);
    let lists: Vec<RelayList> = clients.iter().map(|client| net.list(*client, 100, 0)).collect();
    for list in &lists {
        assert_eq!((list.relays.len(), names(list).len(), list.more), (100, 100, true));
        let operators: BTreeSet<&str> = list.relays.iter().map(|listed| listed.operator.as_str()).collect();
        assert_eq!(operators.len(), 100, "each is somebody else's, though one has half of all");
    }
    // One word's hosts share sixteen draws.
    let draws: BTreeSet<Vec<RelayId>> = lists.iter().map(|list| names(list).into_iter().collect()).collect();
    assert!((8..=16).contains(&draws.len()), "{}", draws.len());
    assert_eq!(names(&net.list(clients[0], 100, 0)), names(&lists[0]), "the same for an hour");
    let more = net.list(clients[0], 100, 100);
    assert!(names(&more).is_disjoint(&names(&lists[0])));
    // Those that fall silent are gone after three missed heartbeats, and nobody else.
    let gone: BTreeSet<usize> = (0..RELAYS).step_by(7).collect();
    net.world.act(fleet, |host, _| host.0.silent.clone_from(&gone));
    net.run(Duration::from_secs(50));
    assert_eq!(listed(&net), RELAYS - gone.len());
    // A new epoch is known to all who live within seconds; a restart in between loses nobody.
    let hub = net.hub;
    net.world.act(hub, |hub, _| hub.store.put_word(row(5, WordKind::Use, "alice")));
    net.world.act(hub, |hub, _| hub.store.revoke("alice", UNIX + 70));
    net.run(Duration::from_secs(9));
    let members = net.world[fleet].0.members.iter().enumerate();
    let behind = members.filter(|(index, member)| member.epoch != 2 && !gone.contains(index)).count();
    assert_eq!(behind, 0);
    assert_eq!(net.list(clients[0], 100, 0).relays.len(), 100);
    let (store, now) = (net.world[hub].store.clone(), net.world.now());
    net.world.restart(hub, Hub::new(store, now));
    assert_eq!(net.list(clients[1], 100, 0).relays.len(), 100);
    net.run(Duration::from_secs(40));
    assert_eq!(listed(&net), RELAYS - gone.len());
}
