//! How hosts like Linux find what was lost. It is RACK and TLP (RFC 8985), rule by rule.

use crate::tcp_common::*;
use byway_sim::tcp::{Demand, Flow, PartialAck, Recovery, ServerConfig, SubflowReport, TcpConfig};
use byway_sim::{PipeConfig, TapVerdict};
use byway_wire::Duration;
use std::collections::BTreeMap;

const MSS: u64 = 1_448;
/// Of the lines here.
const RTT: f64 = 0.040;
/// What Linux adds to timers of this kind.
const SLACK: f64 = 0.008;

fn line() -> PipeConfig {
    PipeConfig::new(100_000_000, 20 * MS).queue(1_000)
}

/// Sends `segments` segments. An entry `(place, times)` of `lost` drops a segment `times` times;
/// `place` 0 is the last segment, 1 the one before. Returns by how many seconds the losses lengthen
/// the transfer, and the sender's report.
fn costs(recovery: Recovery, segments: u64, lost: &[(u64, u32)]) -> (f64, SubflowReport) {
    costs_with(&TcpConfig { recovery, ..TcpConfig::linux() }, segments, lost)
}

/// [`costs`] between hosts with these options.
fn costs_with(options: &TcpConfig, segments: u64, lost: &[(u64, u32)]) -> (f64, SubflowReport) {
    let run = |lost: BTreeMap<u64, u32>| {
        let serve = ServerConfig { options: options.clone(), ..ServerConfig::default() };
        let mut pair = Pair::new(1, line(), line(), serve);
        let mut left = lost;
        pair.world.tap(move |packet| {
            if packet.phantom == 0 {
                return TapVerdict::Pass;
            }
            let seq = u32::from_le_bytes(packet.payload[8..12].try_into().unwrap());
            match left.get_mut(&(segments - 1 - u64::from(seq) / MSS)) {
                Some(times) if *times > 0 => {
                    *times -= 1;
                    TapVerdict::Drop
                }
                _ => TapVerdict::Pass,
            }
        });
        let demand = Demand::Size(segments * MSS);
        let flow = Flow { controller: by_window(10), ..Flow::tcp(address(2, 0)) };
        let flow = pair.open(flow.demand(demand).options(options.clone()));
        let sender = pair.sender;
        let over = |world: &byway_sim::World| world[sender].report(flow).unwrap().finished.is_some();
        assert!(pair.world.run_while(|world| !over(world), at(60_000)), "never finished");
        let report = pair.world[sender].report(flow).unwrap();
        (report.finished.unwrap().since(report.started.unwrap()).as_secs_f64(), report.subflows[0])
    };
    let (alone, _) = run(BTreeMap::new());
    let (took, report) = run(lost.iter().copied().collect());
    (took - alone, report)
}

fn by_window(packets: u32) -> Box<dyn byway_control::Controller> {
    let host = byway_control::SenderKind::Tcp { initial_window: packets };
    byway_control::controller(&"cubic".parse().unwrap(), host, 1).unwrap()
}

fn near(found: f64, expected: f64, what: &str) {
    assert!((found - expected).abs() < 0.004, "{what}: {found:.4} s, not {expected:.4} s");
}

/// 7.2 and 7.3: two RTTs after the last ACK the tail is probed.
#[test]
fn a_lost_tail_is_repaired_by_a_probe_two_round_trips_later() {
    // The probe repairs the last, and its arrival tells of the one before.
    let (cost, report) = costs(Recovery::Rack, 10, &[(0, 1), (1, 1)]);
    near(cost, 2.0 * RTT + SLACK + RTT + RTT, "two lost");
    assert_eq!((report.timeouts, report.losses, report.retransmits), (0, 2, 2));
    let (cost, report) = costs(Recovery::Sack, 10, &[(0, 1), (1, 1)]);
    assert!(cost > 0.15 && report.timeouts == 1, "{cost} {report:?}");
}

/// The probe's arrival tells of the segments before it, by RACK: they are late by then.
#[test]
fn a_probe_tells_of_the_other_losses_of_the_tail() {
    let (cost, report) = costs(Recovery::Rack, 10, &[(0, 1), (1, 1), (2, 1)]);
    near(cost, 2.0 * RTT + SLACK + RTT + RTT, "three lost");
    assert_eq!((report.timeouts, report.losses), (0, 3));
}

/// A receiver may delay the ACK of a single segment, so the sender waits longer before it probes
/// (RFC 8985, 7.2), at most until the retransmission timeout. The probe replaces the timeout, and
/// does not collapse the congestion window.
#[test]
fn a_single_lost_segment_costs_as_much_as_a_timeout_but_is_none() {
    // The timeout counts from the ACK before, if there is one.
    for (segments, before) in [(1, 0.0), (10, RTT)] {
        let (cost, report) = costs(Recovery::Rack, segments, &[(0, 1)]);
        near(cost, before + RTT + 0.2, "one lost");
        assert_eq!((report.timeouts, report.losses), (0, 1));
    }
}

/// 7.3: there is one probe, and then the timeout, which counts from the probe.
#[test]
fn a_lost_probe_is_followed_by_a_timeout() {
    let (cost, report) = costs(Recovery::Rack, 10, &[(0, 2), (1, 1)]);
    near(cost, 2.0 * RTT + SLACK + RTT + 0.2 + 2.0 * RTT, "the probe lost too");
    assert_eq!(report.timeouts, 1);
}

/// 6.2: one segment that was sent later and arrived is enough, after a quarter of the smallest RTT.
#[test]
fn one_later_arrival_tells_of_a_loss() {
    let (cost, report) = costs(Recovery::Rack, 10, &[(1, 1)]);
    near(cost, RTT + RTT / 4.0 + SLACK, "one lost");
    assert_eq!((report.timeouts, report.losses), (0, 1));
    let (cost, report) = costs(Recovery::Sack, 10, &[(1, 1)]);
    assert!(cost > 0.15 && report.timeouts == 1, "{cost} {report:?}");
}

/// 6.2, step 4: three later arrivals tell at once, as they always did.
#[test]
fn three_later_arrivals_tell_at_once() {
    for recovery in [Recovery::Rack, Recovery::Sack] {
        let (cost, report) = costs(recovery, 10, &[(3, 1)]);
        near(cost, RTT, "one lost");
        assert_eq!((report.timeouts, report.losses), (0, 1));
    }
}

/// A segment sent again that is lost again is found by what was sent after it (section 3.1).
#[test]
fn a_repeat_that_is_lost_is_found_by_what_was_sent_later() {
    let (cost, report) = costs(Recovery::Rack, 60, &[(45, 2)]);
    assert!(cost < 2.0 * RTT + 0.01, "{cost}");
    assert_eq!((report.timeouts, report.losses), (0, 2));
}

fn reordered(recovery: Recovery, by: Duration) -> SubflowReport {
    let there = PipeConfig::new(10_000_000, 20 * MS).queue(1_000).reordering(0.01, by);
    let options = TcpConfig { recovery, ..TcpConfig::linux() };
    // Twice what is under way on the line, so that the queue never is full.
    let serve = ServerConfig { options: options.clone().receive_window(100_000), ..ServerConfig::default() };
    let mut pair = Pair::new(3, there, PipeConfig::delay_only(20 * MS), serve);
    let flow = pair.open(Flow::tcp(address(2, 0)).options(options));
    pair.world.run_until(at(20_000));
    pair.world[pair.sender].report(flow).unwrap().subflows[0]
}

/// 6.2, step 4: what comes late by less than a quarter of the smallest RTT is no loss once
/// reordering was seen.
#[test]
fn reordering_within_the_window_is_no_loss() {
    // Six packets of this line, where the window is 10 ms.
    let (rack, sack) = (reordered(Recovery::Rack, 8 * MS), reordered(Recovery::Sack, 8 * MS));
    assert!(rack.losses < 5 && rack.timeouts == 0, "{rack:?}");
    assert!(sack.losses > 50, "{sack:?}");
}

/// The window grows with what turns out to have been no loss.
#[test]
fn reordering_beyond_the_window_widens_it() {
    let rack = reordered(Recovery::Rack, 16 * MS);
    assert!(rack.losses < 20, "{rack:?}");
}

/// RFC 6582, section 4, and RFC 2581, section 3.2: what several losses in one window cost a host
/// without SACK.
#[test]
fn without_sack_a_partial_ack_keeps_recovery_keeps_it_for_a_while_or_ends_it() {
    let times_out = |partial_ack, lost: &[(u64, u32)]| {
        let options = TcpConfig::default().without_delayed_ack().partial_ack(partial_ack);
        costs_with(&TcpConfig { initial_window: Some(40), ..options }, 80, lost).1.timeouts > 0
    };
    use PartialAck::{Ends, Impatient, Steady};
    let two = [(60, 1), (58, 1)];
    assert_eq!([Steady, Impatient, Ends].map(|it| times_out(it, &two)), [false, false, true]);
    // One hole a round trip of 40 ms outlasts the timer of 200 ms.
    let ten: Vec<(u64, u32)> = (0..10).map(|hole| (45 + 2 * hole, 1)).collect();
    assert_eq!([Steady, Impatient, Ends].map(|it| times_out(it, &ten)), [false, true, true]);
}
