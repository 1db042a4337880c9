//! Tests with one session per flow (`Bundle::Flow`): sessions open and close with their flows.
//! Flows that get no session, or lose their session, continue without one.

use crate::common::{Plan, Site, Sites};
#[allow(dead_code, reason = "each test program uses its part")]
use byway_control::by_name;
use byway_engine::seal::Suites;
use byway_engine::{Admission, Admit, Connect, Endpoint, EndpointConfig, EndpointEvent, handshake};
use byway_gateway::cache;
use byway_gateway::loss::LossRuleKind;
use byway_gateway::machine::{Bundle, Gateway, PacketBuffer, Settings, Status};
use byway_gateway::serves::{Served, announce};
use byway_gateway::{ChecksumState, Message, Prefix};
use byway_sim::{Handle, PipeConfig, TapVerdict, World};
use byway_wire::packet::Handshake;
use byway_wire::{Duration, Input, Instant, LinkChange, Local, Machine, Transmit, TransmitBuffer, Writer};
use etherparse::{PacketBuilder, TcpHeader};
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};

const MB: u64 = 1_000_000;

fn line(mbit: u64, delay_ms: u64) -> PipeConfig {
    PipeConfig::new(mbit * 1_000_000, Duration::from_millis(delay_ms)).queue(50)
}

/// Nothing is lost on the plain route: smoltcp recovers from that slowly.
fn plain() -> PipeConfig {
    line(10, 10).queue(4_000)
}

fn per_flow() -> Settings {
    Settings { bundle: Bundle::Flow, ..Settings::default() }
}

/// Two sites between which there is a session for all flows.
fn sites(settings: Settings, of_bob: Option<Settings>, paths: &[PipeConfig]) -> Sites {
    let mut sites = Sites::new(Plan { settings, of_bob, ..Plan::default() }, paths, &plain());
    sites.run(1_000);
    sites
}

/// Alice begins to fetch `bytes` from Bob's `port`.
fn fetch(sites: &mut Sites, port: u16, bytes: u64) {
    let from = sites.plan.host(1);
    sites.world.act(sites.bob, |site, _| site.host.serve(port, bytes));
    sites.world.act(sites.alice, |site, _| site.host.fetch(from, port));
}

/// The other way round.
fn fetch_back(sites: &mut Sites, port: u16, bytes: u64) {
    let from = sites.plan.host(0);
    sites.world.act(sites.alice, |site, _| site.host.serve(port, bytes));
    sites.world.act(sites.bob, |site, _| site.host.fetch(from, port));
}

/// Runs until `who` has got `bytes` in all.
fn until(sites: &mut Sites, who: Handle<Site>, bytes: u64, limit_ms: u64) {
    let limit = Instant::from_millis(limit_ms);
    let done = sites.world.run_while(|world| world[who].host.received() < bytes, limit);
    let status = status(sites);
    assert!(done, "{} of {bytes}: {status:?}", sites.world[who].host.received());
}

fn status(sites: &Sites) -> [Status; 2] {
    [sites.alice, sites.bob].map(|site| sites.world[site].gateway.status())
}

/// The ports to which flows with bundles of their own were opened.
fn bundles(status: &Status) -> Vec<u16> {
    let mut ports: Vec<u16> =
        status.peers[0].bundles.iter().map(|bundle| bundle.key.destination_port).collect();
    ports.sort_unstable();
    ports
}

/// Sessions, and attempts at some, of both gateways.
fn sessions(sites: &mut Sites) -> [usize; 2] {
    [sites.alice, sites.bob]
        .map(|site| sites.world.act(site, |site, _| site.gateway.endpoint().handles().count()))
}

fn carried_all(sites: &Sites) {
    crate::common::carried_all(sites);
    for site in [sites.alice, sites.bob] {
        let counters = sites.world[site].gateway.counters();
        assert_eq!((counters.lost_bundles, counters.too_large), (0, 0), "{counters:?}");
    }
}

#[test]
fn two_flows_have_two_sessions_and_each_its_windows() {
    let mut sites = sites(per_flow(), None, &[line(10, 10), line(10, 15)]);
    let alice = sites.alice;
    fetch(&mut sites, 80, 10 * MB);
    fetch(&mut sites, 81, 10 * MB);
    sites.run(5_000);
    assert_eq!(sessions(&mut sites), [3, 3]);
    let [a, b] = status(&sites);
    assert_eq!((bundles(&a), bundles(&b)), (vec![80, 81], vec![80, 81]));
    // Bob's host sends.
    let sent = |paths: &[byway_gateway::machine::PathStatus]| {
        paths.iter().map(|path| path.totals.bytes).sum::<u64>()
    };
    for bundle in &b.peers[0].bundles {
        assert_eq!(bundle.paths.len(), 2, "{bundle:?}");
        let window: u64 = bundle.paths.iter().map(|path| path.window).sum();
        assert!(sent(&bundle.paths) > MB && window > 0, "{bundle:?}");
    }
    assert!(sent(&b.peers[0].paths) < MB / 10, "{:?}", b.peers[0].paths);
    until(&mut sites, alice, 20 * MB, 60_000);
    carried_all(&sites);
    // Nothing of the order was lost where a flow went from one session to the other.
    let waits = sites.world[alice].gateway.status().waits;
    assert!(waits.share_timed_out() < 0.002, "{waits:?}");
}

/// Bob's gateway has no address of Alice's: it reaches it where its session comes from.
#[test]
fn whoever_takes_a_flow_in_opens_its_bundle() {
    let mut sites = sites(per_flow(), None, &[line(10, 10), line(10, 15)]);
    let (alice, bob) = (sites.alice, sites.bob);
    fetch(&mut sites, 80, 4 * MB);
    fetch_back(&mut sites, 90, 4 * MB);
    sites.run(2_500);
    let [a, b] = status(&sites);
    assert_eq!((bundles(&a), bundles(&b)), (vec![80, 90], vec![80, 90]));
    until(&mut sites, alice, 4 * MB, 60_000);
    until(&mut sites, bob, 4 * MB, 60_000);
    carried_all(&sites);
}

#[test]
fn a_gateway_with_a_bundle_for_the_site_takes_those_of_flows() {
    let mut sites = sites(per_flow(), Some(Settings::default()), &[line(10, 10), line(10, 15)]);
    let (alice, bob) = (sites.alice, sites.bob);
    fetch(&mut sites, 80, 4 * MB);
    fetch_back(&mut sites, 90, 4 * MB);
    sites.run(2_500);
    // What Bob's gateway takes in goes by the site's.
    let [a, b] = status(&sites);
    assert_eq!((bundles(&a), bundles(&b)), (vec![80], vec![80]));
    until(&mut sites, alice, 4 * MB, 60_000);
    until(&mut sites, bob, 4 * MB, 60_000);
    carried_all(&sites);
}

#[test]
fn beyond_the_limit_flows_go_by_the_session_of_the_site() {
    let mut sites = sites(Settings { bundles: 1, ..per_flow() }, None, &[line(10, 10), line(10, 15)]);
    let alice = sites.alice;
    (80..83).for_each(|port| fetch(&mut sites, port, 3 * MB));
    sites.run(2_500);
    assert_eq!(sessions(&mut sites), [2, 2]);
    assert_eq!(bundles(&status(&sites)[0]).len(), 1);
    until(&mut sites, alice, 9 * MB, 60_000);
    carried_all(&sites);
    // Those that had none got theirs once there was room.
    assert!(status(&sites)[0].counters.bundles >= 1);
}

#[test]
fn a_bundle_ends_with_its_flow_and_makes_room() {
    let mut sites = sites(Settings { bundles: 1, ..per_flow() }, None, &[line(10, 10)]);
    let alice = sites.alice;
    for round in 0..3u64 {
        let port = 80 + round as u16;
        let begin = 1_000 + round * 20_000;
        sites.run(begin);
        fetch(&mut sites, port, MB / 2);
        sites.run(begin + 1_000);
        assert_eq!(bundles(&status(&sites)[0]), [port]);
        assert_eq!(bundles(&status(&sites)[1]), [port]);
        assert_eq!(sessions(&mut sites), [2, 2]);
        sites.run(begin + 19_000);
        assert_eq!(sessions(&mut sites), [1, 1]);
        assert_eq!(sites.world[alice].host.received(), (round + 1) * MB / 2);
    }
    carried_all(&sites);
    assert_eq!(status(&sites).map(|status| status.counters.bundles), [3, 3]);
}

/// The packets of an idle flow take the site's session until it has a bundle again.
#[test]
fn a_flow_that_was_idle_goes_on() {
    let mut sites = sites(per_flow(), None, &[line(10, 10)]);
    let alice = sites.alice;
    fetch(&mut sites, 80, 8 * MB);
    sites.run(3_000);
    let before = sites.world[alice].host.received();
    assert!(before > MB);
    // Nothing comes of the host for a while, since nothing reaches it but by the sessions, which go
    // on.
    sites.world.act(sites.bob, |site, _| site.mute = true);
    sites.world.act(alice, |site, _| site.mute = true);
    sites.run(15_000);
    assert_eq!(sessions(&mut sites), [1, 1]);
    sites.world.act(sites.bob, |site, _| site.mute = false);
    sites.world.act(alice, |site, _| site.mute = false);
    until(&mut sites, alice, 8 * MB, 120_000);
    assert_eq!(status(&sites)[0].counters.bundles, 2);
    carried_all(&sites);
}

#[test]
fn when_all_paths_end_flows_go_by_the_plain_route_within_three_seconds() {
    let mut sites = sites(per_flow(), None, &[line(10, 10), line(10, 20)]);
    let alice = sites.alice;
    fetch(&mut sites, 80, 10 * MB);
    sites.run(4_000);
    assert!(sites.world[alice].host.received() > MB);
    for link in sites.there.iter().chain(&sites.back) {
        sites.world.pipe(*link).partition(Instant::from_millis(4_000), Instant::from_millis(20_000));
    }
    sites.run(7_000);
    let before = sites.world[alice].host.received();
    assert_eq!(status(&sites).map(|status| status.peers[0].bundles.len()), [0, 0]);
    fetch(&mut sites, 81, MB / 2);
    sites.run(10_000);
    assert!(sites.world[alice].host.received() >= before + MB / 2, "a new flow takes the plain route");
    until(&mut sites, alice, 10 * MB + MB / 2, 120_000);
    // When the paths are there again, so are bundles.
    sites.run(130_000);
    fetch(&mut sites, 82, 2 * MB);
    sites.run(131_500);
    assert_eq!(bundles(&status(&sites)[0]), [82]);
}

#[test]
fn fail_closed_flows_wait_for_the_session() {
    let settings = Settings { fail_closed: true, ..per_flow() };
    let mut sites = sites(settings, None, &[line(10, 10)]);
    let alice = sites.alice;
    fetch(&mut sites, 80, 6 * MB);
    for link in [sites.there[0], sites.back[0]] {
        sites.world.pipe(link).partition(Instant::from_millis(3_000), Instant::from_millis(9_000));
    }
    until(&mut sites, alice, 6 * MB, 120_000);
    for site in [sites.alice, sites.bob] {
        assert_eq!(sites.world[site].plain_packets, 0);
    }
    assert!(status(&sites)[0].counters.bundles >= 2);
}

/// Whichever rule finds losses, and whoever mends them: what was sent by one session may be sent
/// again by the other.
#[test]
fn losses_are_found_and_mended_in_each_bundle() {
    let lossy = PipeConfig { loss: 0.01, ..line(10, 10) };
    for loss in LossRuleKind::ALL {
        let name = loss.name();
        let settings = Settings { loss, cache: Some(cache::CacheLimits::default()), ..per_flow() };
        let plan = Plan { settings, congestion: "mpath", ..Plan::default() };
        let mut sites = Sites::new(plan, &[lossy.clone(), lossy.clone()], &plain());
        sites.run(1_000);
        let alice = sites.alice;
        fetch(&mut sites, 80, 3 * MB);
        fetch(&mut sites, 81, 3 * MB);
        until(&mut sites, alice, 6 * MB, 200_000);
        carried_all(&sites);
        let [_, b] = status(&sites);
        assert_eq!(b.counters.bundles, 2, "{name}");
        let (counters, kept) = b.cache.unwrap();
        assert!(b.counters.lost > 20 && counters.resent > 20, "{name}: {:?} {counters:?}", b.counters);
        assert!(
            b.counters.spurious < b.counters.lost / 4 || loss == LossRuleKind::AllPassed,
            "{name}: {:?}",
            b.counters
        );
        assert!(kept < 200_000, "{kept} are kept, though all is acknowledged");
    }
}

/// Another gateway in Bob's place, which knows of nothing.
fn renew(sites: &mut Sites, settings: Settings, peer_at: &[SocketAddr]) {
    let mut config = sites.plan.config(1, peer_at);
    config.settings = settings;
    config.serial = 2;
    config.seed = [77; 32];
    sites.world.act(sites.bob, |site, now| {
        site.gateway = Gateway::new(config).unwrap();
        let address = "10.2.0.1:4000".parse().unwrap();
        let change = LinkChange { local: Local(1), address, up: true };
        site.gateway.handle(now, Input::Link(change));
    });
}

#[test]
fn a_peer_that_begins_anew_knows_no_bundle_and_flows_go_on() {
    let mut sites = sites(per_flow(), None, &[line(10, 10)]);
    let alice = sites.alice;
    fetch(&mut sites, 80, 6 * MB);
    sites.run(3_000);
    renew(&mut sites, per_flow(), &[]);
    until(&mut sites, alice, 6 * MB, 120_000);
    fetch(&mut sites, 81, MB);
    until(&mut sites, alice, 7 * MB, 200_000);
    // Of the first one it knows nothing.
    assert!(bundles(&status(&sites)[0]).contains(&81));
    assert_eq!(bundles(&status(&sites)[1]), [81]);
}

/// A new session for all is a sign of it, so that what stood beside the one before is not waited
/// for.
#[test]
fn a_peer_that_comes_back_by_itself_is_not_taken_for_dead_first() {
    let mut sites = sites(per_flow(), None, &[line(10, 10)]);
    fetch(&mut sites, 80, 20 * MB);
    sites.run(3_000);
    assert_eq!(bundles(&status(&sites)[0]), [80]);
    renew(&mut sites, per_flow(), &["10.1.0.1:4000".parse().unwrap()]);
    sites.run(3_200);
    let before = sites.world[sites.alice].host.received();
    sites.run(4_500);
    let after = sites.world[sites.alice].host.received();
    assert!(after > before + MB / 4, "{before} {after}");
}

#[test]
fn without_the_session_of_the_site_there_are_none_beside_it() {
    let mut sites = sites(per_flow(), None, &[line(10, 10)]);
    let alice = sites.alice;
    fetch(&mut sites, 80, 6 * MB);
    sites.run(3_000);
    assert_eq!(status(&sites).map(|status| bundles(&status)), [[80], [80]]);
    sites.world.act(alice, |site, now| {
        let endpoint = site.gateway.endpoint();
        let first = endpoint.handles().next().unwrap();
        endpoint.close(now, first, 0, "a test");
    });
    sites.run(3_200);
    assert_eq!(status(&sites).map(|status| bundles(&status).len()), [0, 0]);
    until(&mut sites, alice, 6 * MB, 60_000);
    assert!(sites.world[sites.bob].plain_packets > 0);
    let [a, b] = status(&sites);
    assert_eq!((a.counters.lost_sessions, b.counters.lost_sessions), (1, 1));
}

/// What waits for the site's paths when a flow gets its own goes with it.
#[test]
fn a_flow_changes_over_in_order() {
    let mut sites = sites(per_flow(), None, &[line(10, 10)]);
    let alice = sites.alice;
    let seen = Arc::new(Mutex::new(Vec::new()));
    let tapped = Arc::clone(&seen);
    // No host has the address, so that what arrives at Bob's gateway goes on by his plain route.
    sites.world.tap(move |packet| {
        if packet.to.port() == 9 && packet.payload.len() > 1_000 {
            let number = packet.payload[24..28].try_into().unwrap();
            tapped.lock().unwrap().push(u32::from_be_bytes(number));
        }
        TapVerdict::Pass
    });
    let give = |sites: &mut Sites, packet: Vec<u8>| {
        let parcel = PacketBuffer::copy(Vec::new(), &packet);
        sites.world.act(alice, |site, now| site.gateway.packet(now, parcel, ChecksumState::Full));
    };
    give(&mut sites, segment(0, 0, true, &[]));
    for number in 0..300 {
        give(&mut sites, segment(0, 1 + number * 1_000, false, &[7; 1_000]));
        if number % 100 == 50 {
            let now = sites.world.now();
            sites.world.run_until(now + Duration::from_millis(30));
        }
    }
    assert_eq!(status(&sites)[0].counters.bundles, 1);
    sites.run(4_000);
    let seen = seen.lock().unwrap();
    assert_eq!(seen.len(), 300);
    assert!(seen.is_sorted(), "{seen:?}");
}

/// While a path of the site's session is new, it carries smaller packets than hosts were told to
/// send.
#[test]
fn a_flow_changes_over_once_its_bundle_carries_what_its_host_was_told() {
    // The first size that a search tries does not pass the wide line, so that a new bundle carries
    // small packets for a while.
    let (wide, narrow) = (line(10, 10).mtu(1_480), line(10, 10).mtu(1_300));
    let mut sites = Sites::new(Plan { settings: per_flow(), ..Plan::default() }, &[wide, narrow], &plain());
    let (alice, bob, second) = (sites.alice, sites.bob, Local(2));
    sites.world.set_up(alice, second, false);
    sites.run(5_000);
    let give = |sites: &mut Sites, who: Handle<Site>, packet: Vec<u8>| {
        let parcel = PacketBuffer::copy(Vec::new(), &packet);
        sites.world.act(who, |site, now| site.gateway.packet(now, parcel, ChecksumState::Full));
    };
    give(&mut sites, alice, segment(0, 0, true, &[]));
    sites.run(5_012);
    let mut header = TcpHeader::new(80, 1_000, 500, 60_000);
    (header.syn, header.ack, header.acknowledgment_number) = (true, true, 1);
    let mut answer = Vec::new();
    let between = PacketBuilder::ipv4([192, 168, 2, 9], [192, 168, 1, 10], 64);
    between.tcp_header(header).write(&mut answer, &[]).unwrap();
    give(&mut sites, bob, answer);
    sites.run(5_024);
    sites.world.set_up(alice, second, true);
    for number in 0..100u32 {
        sites.run(5_024 + 10 * u64::from(number));
        give(&mut sites, alice, segment(0, 1 + number * 1_340, false, &[7; 1_340]));
    }
    sites.run(7_000);
    let [a, b] = status(&sites);
    assert_eq!((a.counters.bundles, a.counters.too_large, a.counters.failed_open), (1, 0, 0));
    assert_eq!(b.counters.delivered, 101, "the SYN, and all data");
    let [bundle] = a.peers[0].bundles.as_slice() else { panic!("{a:?}") };
    let sent: u64 = bundle.paths.iter().map(|path| path.totals.bytes).sum();
    assert!(sent > 50_000, "{sent}");
}

/// A peer that takes fewer than are opened says so, and is asked less and less often.
#[test]
fn a_peer_without_room_is_left_alone() {
    let few = Settings { bundles: 0, ..per_flow() };
    let mut sites = sites(per_flow(), Some(few), &[line(10, 10)]);
    let alice = sites.alice;
    fetch(&mut sites, 80, 20 * MB);
    until(&mut sites, alice, 20 * MB, 60_000);
    let counters = sites.world[alice].gateway.counters();
    assert!((2..=6).contains(&counters.lost_bundles), "{counters:?}");
    assert_eq!((sites.world[alice].plain_packets, sites.world[sites.bob].plain_packets), (0, 0));
    assert_eq!(status(&sites)[1].counters.bundles, 0);
}

/// A segment of some host of Alice's.
fn segment(host: u32, sequence: u32, syn: bool, payload: &[u8]) -> Vec<u8> {
    let mut header = TcpHeader::new((1_000 + host / 200) as u16, 80, sequence, 60_000);
    (header.syn, header.ack) = (syn, !syn);
    let mut packet = Vec::new();
    let from = [192, 168, 1, 10 + (host % 200) as u8];
    PacketBuilder::ipv4(from, [192, 168, 2, 9], 64).tcp_header(header).write(&mut packet, payload).unwrap();
    packet
}

fn syn(number: u32) -> Vec<u8> {
    segment(number, number, true, &[])
}

#[test]
fn a_flood_of_syns_opens_few_bundles_and_stops_no_flow() {
    // A SYN is pushed out before its bundle can be there.
    let mut sites = sites(per_flow(), None, &[line(10, 80), line(10, 85)]);
    let alice = sites.alice;
    fetch(&mut sites, 80, 4 * MB);
    let begin = 2_000;
    sites.run(begin);
    let hellos = Arc::new(Mutex::new(0));
    let tapped = Arc::clone(&hellos);
    sites.world.tap(move |packet| {
        *tapped.lock().unwrap() +=
            u64::from(matches!(Handshake::read(packet.payload), Ok(Handshake::Hello { .. })));
        TapVerdict::Pass
    });
    for step in 0..1_000u32 {
        sites.run(begin + u64::from(step));
        sites.world.act(alice, |site, now| {
            for number in step * 20..(step + 1) * 20 {
                let parcel = PacketBuffer::copy(Vec::new(), &syn(number));
                site.gateway.packet(now, parcel, ChecksumState::Full);
            }
        });
    }
    // A burst, and a hundred a second; most are asked to show that they receive at their address,
    // and so come twice.
    let hellos = *hellos.lock().unwrap();
    assert!((32..2 * 140).contains(&hellos), "{hellos}");
    assert_eq!(status(&sites)[0].counters.bundles, 1, "none of those went by its own");
    // Nothing is half open for long: what was opened for a SYN that is gone was closed.
    sites.run(begin + 1_400);
    let [_, open] = sessions(&mut sites);
    assert!(open < 40, "{open} of {hellos}");
    until(&mut sites, alice, 4 * MB, 120_000);
    assert!(sites.world[alice].gateway.counters().lost_bundles == 0);
}

/// A peer in Bob's place that is no gateway of ours: an older one, or one that means harm.
struct Other {
    endpoint: Endpoint,
    untold: Vec<byway_engine::Handle>,
    closed: usize,
}

/// Knows nothing of sessions for single flows.
struct Older;

impl Admission for Older {
    fn admit(&mut self, _: handshake::PublicKey, said: &[u8]) -> Admit {
        let welcome = said == b"byway gateway 1";
        let reason = "this is a gateway, which takes no transfers".to_owned();
        let controller = by_name("background", 0).filter(|_| welcome);
        controller.map_or(Admit::Reject { code: 2, reason }, Admit::Accept)
    }
}

impl Other {
    fn attend(&mut self) {
        while let Some(event) = self.endpoint.next_event() {
            match event {
                EndpointEvent::Accepted(handle) | EndpointEvent::Connected(handle) => {
                    self.untold.push(handle)
                }
                EndpointEvent::Closed(_) => self.closed += 1,
                _ => {}
            }
        }
        // Whom it serves, also where that is not said.
        let Self { endpoint, untold, .. } = self;
        untold.retain(|handle| {
            let hosts = Prefix::of([192, 168, 2, 0].into(), 24);
            let parts = announce(1, &[Served { hosts, ports: Vec::new() }]).unwrap();
            let mut datagram = vec![0; parts[0].len() + 1];
            Message::Serves { part: &parts[0] }.write(&mut Writer::new(&mut datagram));
            let Some(connection) = endpoint.connection_mut(*handle) else { return false };
            let path = connection.path_views().next().map(|view| view.id);
            path.is_none_or(|path| connection.send_datagram(path, 0, datagram).is_err())
        });
    }
}

impl Machine for Other {
    fn handle(&mut self, now: Instant, input: Input<'_>) {
        self.endpoint.handle(now, input);
        self.attend();
    }

    fn wake(&mut self, now: Instant) {
        self.endpoint.wake(now);
        self.attend();
    }

    fn transmit(&mut self, now: Instant, out: &mut TransmitBuffer<'_>) -> Option<Transmit> {
        self.endpoint.transmit(now, out)
    }

    fn deadline(&self) -> Option<Instant> {
        self.endpoint.deadline()
    }
}

/// Alice's gateway and another kind of peer.
fn with_other(settings: Settings) -> (World, Handle<Gateway>, Handle<Other>) {
    let [at, other_at] = ["10.1.0.1:4000", "10.2.0.1:4000"].map(|at| at.parse().unwrap());
    let mut world = World::new(1);
    let mut config = Plan { settings, ..Plan::default() }.config(0, &[other_at]);
    // A session carries at once what it will carry.
    config.connection.max_datagram = byway_wire::packet::BASE_DATAGRAM;
    let endpoint = Endpoint::new(EndpointConfig {
        identity: handshake::Identity::from_secret([2; 32]),
        suites: Suites::SECURE,
        seed: [3; 32],
        connection: byway_engine::Config { datagrams: 100, ..byway_engine::Config::default() },
        admission: Some(Box::new(Older)),
        greeting: b"byway gateway 1".to_vec(),
    });
    let gateway = world.add("gateway", Gateway::new(config).unwrap(), &[at]);
    let other = world.add("other", Other { endpoint, untold: Vec::new(), closed: 0 }, &[other_at]);
    world.connect(at, other_at, line(10, 10), line(10, 10));
    world.run_until(Instant::from_millis(1_000));
    (world, gateway, other)
}

#[test]
fn a_peer_of_an_older_version_gets_no_sessions_of_flows() {
    let (mut world, gateway, other) = with_other(per_flow());
    let begin = Instant::from_millis(1_000);
    for step in 0..10_000u64 {
        world.run_until(begin + Duration::from_millis(step));
        if step % 10 == 0 {
            // Two flows, so that one has a packet while it is not yet known that the session is
            // refused.
            let packet = syn((step / 10 % 2) as u32);
            let parcel = PacketBuffer::copy(Vec::new(), &packet);
            world.act(gateway, |gateway, now| gateway.packet(now, parcel, ChecksumState::Full));
        }
    }
    let status = world[gateway].status();
    assert!(status.peers[0].up, "{status:?}");
    assert_eq!((status.counters.bundles, status.counters.failed_open, status.counters.passed), (0, 0, 0));
    // Flows go by the session for all, and attempts become rare: after one second, two more, four
    // more.
    assert_eq!(status.peers[0].carried, 1_000);
    assert!((4..=10).contains(&status.counters.lost_bundles), "{status:?}");
    world.run_until(Instant::from_millis(40_000));
    assert_eq!(world.act(other, |other, _| other.endpoint.handles().count()), 1);
}

#[test]
fn a_peer_that_opens_many_bundles_gets_few_and_announces_nothing_in_them() {
    let (mut world, gateway, other) = with_other(Settings { bundles: 8, ..Settings::default() });
    let key = world.act(gateway, |gateway, _| gateway.endpoint().public_key());
    for round in 0..200u64 {
        world.act(other, |other, now| {
            for _ in 0..5 {
                let connect = Connect {
                    peer: key,
                    addresses: vec!["10.1.0.1:4000".parse().unwrap()],
                    application: b"byway gateway 1, a flow".to_vec(),
                    controller: by_name("background", round).unwrap(),
                };
                other.endpoint.connect(now, connect).unwrap();
            }
        });
        world.run_until(Instant::from_millis(1_000 + 50 * (round + 1)));
    }
    world.run_until(Instant::from_millis(16_000));
    let (sessions, counters) =
        world.act(gateway, |gateway, _| (gateway.endpoint().handles().count(), gateway.counters()));
    // Twice as many as it would open, and the one for all.
    assert_eq!((sessions, counters.bundles), (17, 16), "{counters:?}");
    assert!(world[other].closed > 500, "{}", world[other].closed);
    assert_eq!(counters.malformed, 16);
    assert!(world[gateway].status().peers[0].up);
}

#[test]
fn what_a_gateway_of_version_0_1_says_of_itself_is_ignored() {
    let (mut world, gateway, other) = with_other(Settings::default());
    for (begin, datagram, malformed) in [(1_000, [0x18, 1], 0), (2_000, [0x19, 1], 1)] {
        world.act(other, |other, _| {
            let handle = other.endpoint.handles().next().unwrap();
            let connection = other.endpoint.connection_mut(handle).unwrap();
            let path = connection.path_views().next().map(|view| view.id).unwrap();
            connection.send_datagram(path, 0, datagram.to_vec()).unwrap();
        });
        world.run_until(Instant::from_millis(begin + 500));
        let status = world[gateway].status();
        assert_eq!(status.counters.malformed, malformed, "{datagram:?}");
        assert!(status.peers[0].up, "{status:?}");
    }
}
