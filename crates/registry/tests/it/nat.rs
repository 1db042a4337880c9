//! Relays behind NATs: listed where their heartbeats come from, if a packet from elsewhere gets in
//! there.

use crate::common::*;
use byway_registry::message::{Answer, Enrol, Failure, Reason, Request};
use byway_registry::registry_client::AskError;
use byway_registry::word::WordKind;
use byway_relay::Relay;
use byway_sim::{Handle, PipeConfig};
use byway_wire::relay::RelayKey;
use byway_wire::{Duration, Input, Instant, Machine, Transmit, TransmitBuffer};
use std::collections::BTreeSet;
use std::net::{IpAddr, SocketAddr};

/// A relay behind a NAT whose outside address is [`relay_address`]. It knows its inside address
/// alone.
struct Behind {
    relay: Relay,
    /// Whether it lets in everybody, and not only those that the relay sent to.
    open: bool,
    sent_to: BTreeSet<IpAddr>,
}

impl Machine for Behind {
    fn handle(&mut self, now: Instant, input: Input<'_>) {
        match &input {
            Input::Datagram(datagram) if !self.open && !self.sent_to.contains(&datagram.remote.ip()) => {}
            _ => self.relay.handle(now, input),
        }
    }

    fn wake(&mut self, now: Instant) {
        self.relay.wake(now);
    }

    fn transmit(&mut self, now: Instant, out: &mut TransmitBuffer<'_>) -> Option<Transmit> {
        let sent = self.relay.transmit(now, out)?;
        self.sent_to.insert(sent.remote.ip());
        Some(sent)
    }

    fn deadline(&self) -> Option<Instant> {
        self.relay.deadline()
    }
}

/// Another address of the registry, to which nobody sends.
fn probe() -> SocketAddr {
    SocketAddr::from(([10, 0, 0, 2], 9))
}

/// Its address inside, which leads nowhere.
fn inside() -> SocketAddr {
    SocketAddr::from(([192, 168, 0, 2], 4748))
}

/// A net with a registry that probes from elsewhere, if it does.
fn net(seed: u64, probes: bool) -> Net {
    let mut hub = Hub::new(memory(), Instant::ZERO);
    hub.registry.probe_from(vec![probe().ip()]);
    let addresses = [hub_address(), probe()];
    Net::at(seed, hub, &addresses[..1 + usize::from(probes)])
}

fn behind(net: &mut Net, open: bool, probes: bool) -> Handle<Behind> {
    let relay = Behind { relay: relay(0, net.world.now(), 0), open, sent_to: BTreeSet::new() };
    let handle = net.world.add("relay", relay, &[relay_address(0)]);
    let line = PipeConfig::new(100_000_000, 10 * MS);
    for hub in [Some(hub_address()), probes.then(probe)].into_iter().flatten() {
        net.world.connect(relay_address(0), hub, line.clone(), line.clone());
    }
    handle
}

/// Enrols the relay as the relay program does. `seen`: the registry also tests the address from
/// which the relay's heartbeats come. `pause`: milliseconds from the first heartbeat to the request
/// `Ready`, which starts the tests. If `pause` is negative, `Ready` comes before the heartbeat.
fn enrol_behind(net: &mut Net, behind: Handle<Behind>, seen: bool, pause: i64) -> Result<Answer, AskError> {
    let asker = net.asker(Asker::new(9));
    let request = Request::Enrol(Enrol { seen, ..enrol(0, &[inside()]) }.into());
    net.world.act(asker, |asker, now| asker.begin(now, &word(JOIN, WordKind::Join), &request, true));
    let limit = net.world.now() + Duration::from_secs(30);
    let _ = net.world.run_while(|world| world[asker].answers.is_empty(), limit);
    let Some(Answer::Epoch { epoch, .. }) = net.world[asker].answers.first().cloned() else {
        panic!("no epoch");
    };
    net.world.act(behind, |behind, now| {
        behind.relay.set_epoch(now, RANGE, epoch, Duration::ZERO);
    });
    for beats in if pause < 0 { [false, true] } else { [true, false] } {
        if beats {
            let beat = |behind: &mut Behind, now| {
                behind.relay.watch(now, RANGE, vec![hub_address()], Duration::ZERO);
            };
            net.world.act(behind, beat);
        } else {
            net.world.act(asker, |asker, _| asker.go_on(&Request::Ready));
        }
        net.run(Duration::from_millis(pause.unsigned_abs()));
    }
    let _ = net.world.run_while(|world| !world[asker].has_ended() && world[asker].answers.len() < 2, limit);
    match (net.world[asker].answers.get(1), &net.world[asker].error) {
        (Some(answer), _) => Ok(answer.clone()),
        (None, error) => Err(error.clone().expect("an end")),
    }
}

#[test]
fn a_relay_behind_a_nat_that_lets_everybody_in_is_listed_where_it_is_seen() {
    let mut net = net(1, true);
    let behind = behind(&mut net, true, true);
    for pause in [500, -500, 0] {
        let answer = enrol_behind(&mut net, behind, true, pause);
        let Ok(Answer::Enrolled { passed, failed, .. }) = answer else { panic!("{answer:?}") };
        assert_eq!((passed, failed), (vec![relay_address(0)], vec![(inside(), Failure::NoAnswer)]));
    }
    // It stays listed by its heartbeats.
    net.run(Duration::from_secs(60));
    let client = net.asker(Asker::new(2));
    assert_eq!(net.list(client, 9, 0).relays[0].word.relays(), [relay_address(0)]);
}

#[test]
fn a_nat_that_lets_in_the_registry_alone_is_told_of() {
    let mut net = net(2, true);
    let behind = behind(&mut net, false, true);
    let answer = enrol_behind(&mut net, behind, true, 100);
    assert_eq!(answer, Err(AskError::Refused(Reason::Filtered)));
    let client = net.asker(Asker::new(2));
    assert!(net.list(client, 9, 0).relays.is_empty());
}

#[test]
fn without_another_address_to_probe_from_nobody_knows() {
    let mut net = net(3, false);
    let behind = behind(&mut net, true, false);
    assert_eq!(enrol_behind(&mut net, behind, true, 100), Err(AskError::Refused(Reason::Unprobed)));
    // Whoever does not ask for it is tested where it said so.
    assert_eq!(enrol_behind(&mut net, behind, false, 100), Err(AskError::Refused(Reason::Untested)));
}

#[test]
fn a_heartbeat_that_is_not_the_relays_own_is_no_address_of_it() {
    let mut net = net(4, true);
    let behind = behind(&mut net, true, true);
    // Its range has another key: nothing that it sends is proven.
    let other = RelayKey::new(&[3; 32]).range_key(RANGE);
    let asker = net.asker(Asker::new(9));
    let told = Enrol { seen: true, range_key: other, ..enrol(0, &[inside()]) };
    net.world.act(behind, |behind, now| {
        behind.relay.watch(now, RANGE, vec![hub_address()], Duration::ZERO);
    });
    let request = Request::Enrol(told.into());
    net.world.act(asker, |asker, now| asker.begin(now, &word(JOIN, WordKind::Join), &request, true));
    net.run(Duration::from_secs(1));
    net.world.act(asker, |asker, _| asker.go_on(&Request::Ready));
    let probed = |net: &Net| net.world[net.hub].registry.counters().tests;
    net.run(Duration::from_secs(15));
    assert_eq!(probed(&net), 1, "the address that it named, and no other");
}
