//! What a gateway does with what no host should send, with more than it can hold, and when paths
//! carry less than they did.

use crate::common::{Plan, Sites};
#[allow(dead_code, reason = "each test program uses its part")]
use byway_engine::handshake::Identity;
use byway_gateway::machine::{Gateway, IngressResult, PacketBuffer};
use byway_gateway::{BypassReason, ChecksumState};
use byway_sim::{PipeConfig, TapVerdict};
use byway_wire::{Duration, Input, Instant, LinkChange, Local};
use etherparse::{PacketBuilder, TcpHeader};
use proptest::prelude::*;

const HOST: [u8; 4] = [192, 168, 1, 7];
const OTHER: [u8; 4] = [192, 168, 2, 9];
const MB: u64 = 1_000_000;
/// Bytes of an IPv4 header without options.
const IP: usize = 20;

fn line() -> PipeConfig {
    PipeConfig::new(10_000_000, Duration::from_millis(10)).queue(50)
}

/// Two sites between which there is a session.
fn sites() -> Sites {
    let mut sites = Sites::new(Plan::default(), &[line(), line()], &line().queue(4_000));
    sites.run(1_000);
    sites
}

#[test]
fn a_peer_with_another_key_is_told_and_asked_less_and_less_often() {
    let mut sites = Sites::new(Plan::default(), &[line()], &line());
    let mut config = sites.plan.config(1, &[]);
    config.peers[0].key = Identity::from_secret([77; 32]).public();
    sites.world.act(sites.bob, |site, now| {
        site.gateway = Gateway::new(config).unwrap();
        let address = "10.2.0.1:4000".parse().unwrap();
        let change = LinkChange { local: Local(1), address, up: true };
        byway_wire::Machine::handle(&mut site.gateway, now, Input::Link(change));
    });
    sites.run(60_000);
    let status = sites.world[sites.alice].gateway.status();
    let [peer] = status.peers.as_slice() else { panic!("{status:?}") };
    assert!(
        !peer.up && peer.trouble.as_ref().unwrap().contains("does not know your key"),
        "{:?}",
        peer.trouble
    );
    assert!((4..=12).contains(&status.counters.lost_sessions), "{}", status.counters.lost_sessions);
    assert_eq!(sites.world[sites.bob].gateway.status().counters.lost_sessions, 0);
}

/// A segment from `from` to `to`, the first `flags` named.
fn segment(
    from: ([u8; 4], u16),
    to: ([u8; 4], u16),
    numbers: [u32; 2],
    flags: &str,
    payload: &[u8],
) -> Vec<u8> {
    let mut header = TcpHeader::new(from.1, to.1, numbers[0], 60_000);
    header.syn = flags.contains('S');
    header.ack = flags.contains('A');
    header.acknowledgment_number = numbers[1];
    let mut packet = Vec::new();
    PacketBuilder::ipv4(from.0, to.0, 64).tcp_header(header).write(&mut packet, payload).unwrap();
    packet
}

/// Gives a packet of a host to its gateway; what became of it, and what came out.
fn give(gateway: &mut Gateway, now: Instant, packet: &[u8]) -> (IngressResult, Vec<Vec<u8>>) {
    let buffer = gateway.buffer();
    let taken = gateway.packet(now, PacketBuffer::copy(buffer, packet), ChecksumState::Full);
    let out = std::iter::from_fn(|| gateway.next_packet()).map(|parcel| parcel.packet().to_vec()).collect();
    (taken, out)
}

/// Makes the checksum of an IPv4 header right again.
fn mend(packet: &mut [u8]) {
    packet[10..12].fill(0);
    let words = packet[..IP].chunks(2).map(|word| u32::from(u16::from_be_bytes([word[0], word[1]])));
    let sum: u32 = words.sum();
    let folded = (sum & 0xffff) + (sum >> 16);
    let check = !(folded as u16);
    packet[10..12].copy_from_slice(&check.to_be_bytes());
}

/// A SYN with something wrong, and why it is left alone then.
fn spoilt() -> Vec<(Vec<u8>, BypassReason)> {
    let whole = || segment((HOST, 4_000), (OTHER, 80), [1, 0], "S", b"data");
    let with = |change: &dyn Fn(&mut Vec<u8>)| {
        let mut packet = whole();
        change(&mut packet);
        mend(&mut packet);
        packet
    };
    let mut unchecked = whole();
    unchecked[8] ^= 1;
    vec![
        (Vec::new(), BypassReason::NotIp),
        (vec![0x10; 40], BypassReason::NotIp),
        (whole()[..30].to_vec(), BypassReason::Truncated),
        (unchecked, BypassReason::IpChecksum),
        (with(&|packet| packet[6] = 0x20), BypassReason::Fragment),
        (with(&|packet| packet[7] = 185), BypassReason::Fragment),
        (with(&|packet| packet[9] = 17), BypassReason::NotTcp),
        (with(&|packet| packet[IP + 12] = 0x40), BypassReason::TcpLength),
        (with(&|packet| packet[IP + 12] = 0xf0), BypassReason::TcpTruncated),
        (with(&|packet| packet[IP + 16] ^= 1), BypassReason::TcpChecksum),
        (with(&|packet| packet[IP + 20] ^= 1), BypassReason::TcpChecksum),
        (with(&|packet| packet[IP + 13] |= 1), BypassReason::TcpFlags),
        (with(&|packet| packet[IP + 13] = 0), BypassReason::TcpFlags),
    ]
}

#[test]
fn what_is_not_understood_goes_on_as_it_came_and_is_counted() {
    let mut sites = sites();
    for (packet, why) in spoilt() {
        let (given, counted) = sites.world.act(sites.alice, |site, now| {
            let before = site.gateway.status().passed.of(why);
            let given = give(&mut site.gateway, now, &packet);
            (given, site.gateway.status().passed.of(why) - before)
        });
        assert_eq!(given, (IngressResult::Plain, vec![packet]), "{why}");
        assert_eq!(counted, 1, "{why}");
    }
    let status = sites.world[sites.alice].gateway.status();
    assert_eq!((status.flows, status.passed.total()), (0, spoilt().len() as u64));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    /// One wrong byte anywhere in a packet of a flow that is carried, or its end cut off.
    #[test]
    fn a_packet_that_was_damaged_is_not_carried_and_the_flow_goes_on(
        at in any::<prop::sample::Index>(),
        change in 1u8..,
        cut in any::<prop::sample::Index>(),
    ) {
        let mut sites = sites();
        let (from, to) = ((HOST, 4_000), (OTHER, 80));
        let answer = segment(to, from, [99, 2], "SA", b"");
        sites.world.act(sites.alice, |site, now| give(&mut site.gateway, now, &segment(from, to, [1, 0], "S", b"")));
        sites.run(1_100);
        sites.world.act(sites.bob, |site, now| give(&mut site.gateway, now, &answer));
        sites.run(1_200);
        let data = segment(from, to, [2, 100], "A", b"what was sent");
        let mut damaged = data.clone();
        damaged[at.index(data.len())] ^= change;
        let short = data[..cut.index(data.len())].to_vec();
        for packet in [damaged, short] {
            let given = sites.world.act(sites.alice, |site, now| give(&mut site.gateway, now, &packet));
            prop_assert_eq!(given, (IngressResult::Plain, vec![packet]));
        }
        let (taken, _) = sites.world.act(sites.alice, |site, now| give(&mut site.gateway, now, &data));
        prop_assert_eq!(taken, IngressResult::Carried);
        let before = sites.world[sites.bob].gateway.counters().delivered;
        sites.run(1_300);
        prop_assert_eq!(sites.world[sites.bob].gateway.counters().delivered, before + 1);
    }
}

/// The name of the `index`-th flow: a host and a port.
fn opener(index: u32) -> ([u8; 4], u16) {
    ([192, 168, 1, 10 + (index / 1_000) as u8], (2_000 + index % 1_000) as u16)
}

#[test]
fn ten_thousand_flows_at_once() {
    const FLOWS: u32 = 10_000;
    let mut sites = sites();
    let to = (OTHER, 80);
    let mut clock = 1_000;
    let mut steps = |sites: &mut Sites,
                     flows: std::ops::Range<u32>,
                     from_alice: bool,
                     packet: &dyn Fn(u32) -> Vec<u8>| {
        let site = if from_alice { sites.alice } else { sites.bob };
        for flow in flows {
            let (taken, _) = sites.world.act(site, |site, now| give(&mut site.gateway, now, &packet(flow)));
            assert_eq!(taken, IngressResult::Carried, "{flow}");
        }
        clock += 400;
        sites.run(clock);
    };
    // A thousand at a time, as more that are not open yet would be taken for a flood.
    for begin in (0..FLOWS).step_by(1_000) {
        let some = begin..begin + 1_000;
        steps(&mut sites, some.clone(), true, &|flow| segment(opener(flow), to, [1, 0], "S", b""));
        steps(&mut sites, some.clone(), false, &|flow| segment(to, opener(flow), [99, 2], "SA", b""));
        steps(&mut sites, some, true, &|flow| segment(opener(flow), to, [2, 100], "A", b""));
    }
    let delivered = sites.world[sites.bob].gateway.counters().delivered;
    steps(&mut sites, 0..FLOWS, true, &|flow| segment(opener(flow), to, [2, 100], "A", &[7; 100]));
    sites.run(40_000);
    let (left, right) = (sites.world[sites.alice].gateway.status(), sites.world[sites.bob].gateway.status());
    assert_eq!((left.flows, right.flows), (10_000, 10_000));
    assert_eq!(left.table.pushed_out + left.table.refused + right.table.pushed_out, 0, "{:?}", left.table);
    assert_eq!(right.counters.delivered - delivered, u64::from(FLOWS), "{:?}", left.peers[0].entry);
    assert_eq!((right.counters.malformed, right.counters.forbidden, right.reordering), (0, 0, 0));
}

#[test]
fn a_flood_of_syns_takes_no_more_than_its_part_and_stops_no_flow() {
    let mut sites = sites();
    let from = sites.plan.host(1);
    sites.world.act(sites.bob, |site, _| site.host.serve(80, 4 * MB));
    sites.world.act(sites.alice, |site, _| site.host.fetch(from, 80));
    sites.run(1_500);
    assert!(sites.world[sites.alice].host.received() > 0);
    // 20,000 a second for two seconds, from everywhere behind the gateway, beside the fetch.
    for step in 0..2_000u32 {
        sites.run(1_500 + u64::from(step));
        sites.world.act(sites.alice, |site, now| {
            for flow in step * 20..(step + 1) * 20 {
                let host = [192, 168, 1, 10 + (flow % 200) as u8];
                let syn = segment((host, (1_000 + flow / 200) as u16), (OTHER, 81), [flow, 0], "S", b"");
                assert_eq!(give(&mut site.gateway, now, &syn).0, IngressResult::Carried);
            }
        });
        let status = sites.world[sites.alice].gateway.status();
        assert!(status.flows <= 2_049, "{}", status.flows);
    }
    let alice = sites.alice;
    let done =
        sites.world.run_while(|world| world[alice].host.received() < 4 * MB, Instant::from_millis(60_000));
    let status = sites.world[alice].gateway.status();
    assert!(done, "{} {status:?}", sites.world[alice].host.received());
    assert!(status.table.pushed_out > 30_000, "{:?}", status.table);
    assert!(sites.world[sites.bob].gateway.status().flows <= 2_049);
}

#[test]
fn paths_that_carry_less_than_they_did_leave_large_packets_to_the_plain_route() {
    let mut sites = sites();
    let from = sites.plan.host(1);
    sites.world.act(sites.bob, |site, _| site.host.serve(80, 10 * MB));
    sites.world.act(sites.alice, |site, _| site.host.fetch(from, 80));
    sites.run(4_000);
    assert!(sites.world[sites.alice].host.received() > MB);
    // Between gateways, not by the plain route (port 9).
    sites.world.tap(|seen| {
        if seen.to.port() != 9 && seen.payload.len() > 1_300 { TapVerdict::Drop } else { TapVerdict::Pass }
    });
    let alice = sites.alice;
    let done =
        sites.world.run_while(|world| world[alice].host.received() < 10 * MB, Instant::from_millis(60_000));
    assert!(done, "{}", sites.world[alice].host.received());
    assert!(sites.world[sites.bob].gateway.counters().too_large > 0);
    assert_eq!(sites.world[alice].gateway.counters().lost_sessions, 0);
}
