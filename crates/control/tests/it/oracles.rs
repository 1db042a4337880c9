//! Controllers checked against closed forms, each round by hand.

use crate::hand::{PACKET, RTT, ack, congested, opened};
use byway_control::mpath::{self, Growth, Increase, MPath};
use byway_control::papers::harp::{self, Coupling, DelayRule, Harp};
use byway_control::seeded_random::Random;
use byway_control::{Controller, NewReno, Trigger, UncoupledPaths, Undo};
use byway_wire::{Duration, Instant, PathId};

fn literal(coupling: Coupling) -> Harp {
    let mut options = harp::HarpOptions::literal(coupling);
    options.initial = 10.0;
    if let DelayRule::Relative { range, .. } = &mut options.delay {
        *range = Some(Duration::from_millis(100));
    }
    Harp::new("test", options)
}

/// One RTT on every path of `harp`; those whose window has reached `capacity` are marked.
fn round(harp: &mut Harp, paths: u32, capacity: f64, at: Instant) {
    for path in 0..paths {
        let (window, _) = harp.window(PathId(path)).unwrap();
        ack(harp, path, window, at, if window >= capacity { 90 } else { 10 });
    }
}

#[test]
fn o3_harp_independent_saws_between_the_mark_and_seven_eighths_of_it() {
    let mut harp = literal(Coupling::Independent);
    harp.open(PathId(0), &opened(false));
    let capacity = 100.0;
    let (mut sum, mut rounds, mut signals) = (0.0, 0.0, 0);
    for step in 0..2_000_u64 {
        let before = harp.window(PathId(0)).unwrap().0;
        round(&mut harp, 1, capacity, Instant::from_millis(step * 100));
        let after = harp.window(PathId(0)).unwrap().0;
        if step > 200 {
            sum += before;
            rounds += 1.0;
            signals += u32::from(after < before);
        }
    }
    // Harp's window is a sawtooth; in a fluid model its mean is 0.936 of the capacity. Growth back
    // to the capacity takes 4.52 RTTs, and the delay signal comes one RTT later. So every fifth or
    // sixth RTT (5.52 on average) has a signal.
    assert!((sum / rounds / capacity - 0.936).abs() < 0.03, "{}", sum / rounds);
    let period = rounds / f64::from(signals);
    assert!((5.0..6.1).contains(&period), "{period}");
}

#[test]
fn harp_decreases_by_algorithm_1() {
    for (coupling, xi) in [(Coupling::Independent, 1.0), (Coupling::Joint, 0.0), (Coupling::Adaptive, 0.5)] {
        let mut harp = literal(coupling);
        for path in 0..3 {
            harp.open(PathId(path), &opened(false));
        }
        // M = 2 w on path 0: the window grows to its largest M, loses W/2 at a loss, and grows
        // again to M/2.
        let mut step = 0;
        let mut at = || {
            step += 1;
            Instant::from_millis(step * 1_000)
        };
        while harp.window(PathId(0)).unwrap().0 < 80.0 {
            ack(&mut harp, 0, 10.0, at(), 10);
        }
        let largest = harp.window(PathId(0)).unwrap().0;
        harp.on_congested(PathId(0), &congested(Trigger::Loss, at(), at()));
        while harp.window(PathId(0)).unwrap().0 < largest / 2.0 {
            ack(&mut harp, 0, 1.0, at(), 10);
        }
        let (window, total) = (harp.window(PathId(0)).unwrap().0, harp.total());
        let xi = if coupling == Coupling::Adaptive { window / largest } else { xi };
        assert!(coupling != Coupling::Adaptive || (xi - 0.5_f64).abs() < 0.001);
        ack(&mut harp, 0, window, at(), 90);
        let expected = window - 0.125 * (window * xi + total * (1.0 - xi));
        assert!((harp.window(PathId(0)).unwrap().0 - expected).abs() < 1e-9, "{coupling:?}");
    }
}

#[test]
fn harp_loses_half_of_all_and_chokes_but_the_last() {
    let mut harp = literal(Coupling::Independent);
    for path in 0..2 {
        harp.open(PathId(path), &opened(false));
    }
    let at = Instant::from_millis;
    assert!(!harp.allowance(PathId(0)).choked, "a small initial window is no reason to choke");
    harp.on_congested(PathId(0), &congested(Trigger::Loss, at(10), at(110)));
    assert_eq!(harp.window(PathId(0)).unwrap().0, 1.0);
    assert!(harp.allowance(PathId(0)).choked);
    harp.on_congested(PathId(1), &congested(Trigger::Loss, at(10), at(110)));
    harp.on_congested(PathId(1), &congested(Trigger::Loss, at(120), at(220)));
    harp.on_congested(PathId(1), &congested(Trigger::Loss, at(230), at(330)));
    assert!(!harp.allowance(PathId(1)).choked);
    harp.close(PathId(1));
    assert!(!harp.allowance(PathId(0)).choked, "the last one is unchoked when the others are gone");
}

#[test]
fn one_decrease_per_round_trip() {
    let mut harp = literal(Coupling::Independent);
    harp.open(PathId(0), &opened(false));
    let at = Instant::from_millis;
    harp.on_congested(PathId(0), &congested(Trigger::Loss, at(10), at(110)));
    harp.on_congested(PathId(0), &congested(Trigger::Loss, at(109), at(115)));
    assert_eq!(harp.window(PathId(0)).unwrap().0, 5.0);
    ack(&mut harp, 0, 10.0, at(109), 10);
    assert_eq!(harp.window(PathId(0)).unwrap().0, 5.0, "nor an increase");
    harp.on_congested(PathId(0), &congested(Trigger::Loss, at(110), at(210)));
    assert_eq!(harp.window(PathId(0)).unwrap().0, 2.5);
}

#[test]
fn o7_mimd_keeps_the_ratio_of_two_flows() {
    let mut flows = [literal(Coupling::Independent), literal(Coupling::Independent)];
    for flow in &mut flows {
        flow.open(PathId(0), &opened(false));
    }
    for step in 0..40 {
        ack(&mut flows[0], 0, 10.0, Instant::from_millis(step), 10);
    }
    let windows = |flows: &[Harp; 2]| flows.each_ref().map(|flow| flow.window(PathId(0)).unwrap().0);
    let before = windows(&flows);
    for step in 1..500 {
        let [a, b] = windows(&flows);
        let delay = if a + b >= 100.0 { 90 } else { 10 };
        for (flow, window) in flows.iter_mut().zip([a, b]) {
            ack(flow, 0, window, Instant::from_millis(step * 1_000), delay);
        }
    }
    let after = windows(&flows);
    // Bytes are integers, so not exactly.
    assert!((after[0] / after[1] / (before[0] / before[1]) - 1.0).abs() < 1e-3);
}

#[test]
fn o11_mpath_without_aggregation_is_the_semicoupled_algorithm() {
    // In theory `w_i = 2 (1 - p_i) / (p_i W)`: p_i is path i's loss rate, w_i its window, W the sum
    // of windows. Random losses make both mean windows differ from theory by one factor. So the
    // ratio of windows is checked more closely than the sum.
    let options =
        mpath::MPathOptions { evidence: u32::MAX, growth: Growth::Shares, ..mpath::MPathOptions::LITERAL };
    let mut mpath = MPath::new("test", options, 1);
    for path in 0..2 {
        mpath.open(PathId(path), &opened(path > 0));
    }
    let mut random = Random::new(5);
    let rates = [1e-3, 2e-3];
    let (mut sums, mut rounds) = ([0.0; 2], 0.0);
    for step in 1..200_000_u64 {
        let at = Instant::from_millis(step * 100);
        for path in 0..2_usize {
            let window = mpath.window(PathId(path as u32)).unwrap();
            if step > 1_000 {
                sums[path] += window;
            }
            let lost = (0..window as u32).filter(|_| random.unit() < rates[path]).count();
            if lost > 0 {
                mpath.on_congested(PathId(path as u32), &congested(Trigger::Loss, at, at + RTT));
            }
            ack(&mut mpath, path as u32, window - lost as f64, at, 10);
        }
        rounds += f64::from(u8::from(step > 1_000));
    }
    let [a, b] = sums.map(|sum| sum / rounds);
    assert!((a / b - 2.0).abs() < 0.2, "{a} {b}");
    assert!(((a + b) / 54.7 - 1.0).abs() < 0.15, "{a} {b}");
}

#[test]
fn o12_a_shared_loss_halves_the_proxied_share() {
    // The paper's decrease and growth, with the evidence of one loss.
    let law = mpath::MPathOptions {
        increase: Increase::Reno,
        keep: 0.5,
        evidence: 1,
        ..mpath::MPathOptions::PRODUCTION
    };
    let options = mpath::MPathOptions { initial: 64.0, initial_proxied: 64.0, ..law };
    let mut mpath = MPath::new("test", options, 1);
    for path in 0..2 {
        mpath.open(PathId(path), &opened(path > 0));
    }
    let at = Instant::from_millis;
    // Alone, neither moves load.
    mpath.on_congested(PathId(0), &congested(Trigger::Loss, at(1_000), at(1_100)));
    mpath.on_congested(PathId(1), &congested(Trigger::Loss, at(2_000), at(2_100)));
    assert_eq!([0, 1].map(|path| mpath.window(PathId(path)).unwrap()), [32.0, 32.0]);
    // Path 1 goes through a relay. Each loss that both paths share moves half of its window to the
    // direct path (mPath, eq. 6). Its share of both windows falls from 1/2 to 1/4, 1/8, 1/16.
    // Growth in proportion to the windows keeps the shares.
    for shared in 1..4_u64 {
        let order = if shared % 2 == 0 { [0, 1] } else { [1, 0] };
        for path in order {
            mpath.on_congested(
                PathId(path),
                &congested(Trigger::Loss, at(shared * 10_000), at(shared * 10_000 + 100)),
            );
        }
        for step in 1..20 {
            for path in 0..2 {
                let window = mpath.window(PathId(path)).unwrap();
                ack(&mut mpath, path, window, at(shared * 10_000 + 200 + step * 100), 10);
            }
        }
        let share = mpath.window(PathId(1)).unwrap() / mpath.total();
        assert!((share - 1.0 / f64::from(2_u32 << shared)).abs() < 1e-9, "{shared}: {share}");
    }
}

/// mPath, 2.3: the loss interval is of "the last lost packet". A loss moves load once.
#[test]
fn the_last_packet_of_a_loss_may_be_the_one_that_coincides() {
    let windows = |last_lost| {
        let options = mpath::MPathOptions {
            initial: 64.0,
            initial_proxied: 64.0,
            last_lost,
            ..mpath::MPathOptions::LITERAL
        };
        let mut mpath = MPath::new("test", options, 1);
        for path in 0..2 {
            mpath.open(PathId(path), &opened(path > 0));
        }
        let mut lose = |path, sent, now| {
            let at = Instant::from_millis;
            mpath.on_congested(PathId(path), &congested(Trigger::Loss, at(sent), at(now)));
        };
        lose(1, 700, 800);
        lose(0, 1_000, 1_100);
        // Two more packets of the first loss, whose detection takes longer than the direct path's.
        lose(1, 795, 1_120);
        lose(1, 796, 1_130);
        [0, 1].map(|path| mpath.window(PathId(path)).unwrap())
    };
    assert_eq!(windows(false), [32.0, 32.0]);
    assert_eq!(windows(true), [48.0, 16.0]);
}

#[test]
fn mpath_grows_by_one_packet_per_rtt_over_all_paths() {
    for growth in [Growth::Lot, Growth::Shares] {
        let options = mpath::MPathOptions { growth, ..mpath::MPathOptions::LITERAL };
        let mut mpath = MPath::new("test", options, 3);
        for path in 0..4 {
            mpath.open(PathId(path), &opened(path > 0));
        }
        for path in 0..4 {
            let start = Instant::from_millis(1_000 * (u64::from(path) + 1));
            mpath.on_congested(PathId(path), &congested(Trigger::Loss, start, start + RTT));
        }
        let before = mpath.total();
        for step in 0..100 {
            for path in 0..4 {
                let window = mpath.window(PathId(path)).unwrap();
                ack(&mut mpath, path, window, Instant::from_millis(10_000 + step * 100), 10);
            }
        }
        let grown = mpath.total() - before;
        assert!((grown - 100.0).abs() <= 3.0, "{growth:?}: {grown}");
    }
}

#[test]
fn mpath_wishes_for_a_quarter_of_its_window_once_all_paths_met_loss() {
    let mut mpath =
        MPath::new("test", mpath::MPathOptions { initial: 20.0, ..mpath::MPathOptions::LITERAL }, 1);
    mpath.open(PathId(0), &opened(false));
    let at = Instant::from_millis;
    assert_eq!(mpath.wants().open, 0);
    mpath.on_congested(PathId(0), &congested(Trigger::Loss, at(10), at(110)));
    assert_eq!(mpath.wants().open, 5);
    for path in 1..6 {
        mpath.open(PathId(path), &opened(true));
    }
    assert_eq!(mpath.wants().open, 0);
    mpath.on_congested(PathId(0), &congested(Trigger::Loss, at(200), at(300)));
    assert_eq!(mpath.wants().open, 0, "five paths have not met loss yet");
    assert!((mpath.probability() - 1.0).abs() < 1e-12, "rho is 1: all growth goes to the new paths");
    mpath.on_congested(PathId(3), &congested(Trigger::Timeout, at(200), at(400)));
    assert_eq!(mpath.wants().drop.len() + mpath.wants().forget.len(), 1);
    assert!(mpath.allowance(PathId(3)).choked);
    mpath.close(PathId(3));
    assert_eq!(mpath.wants().drop.len() + mpath.wants().forget.len(), 0);
}

#[test]
fn a_spurious_timeout_is_forgiven() {
    for name in ["mpath", "newreno"] {
        let mut controller = byway_control::by_name(name, 1).unwrap();
        controller.open(PathId(0), &opened(false));
        let at = Instant::from_millis;
        for step in 0..5 {
            let window = controller.allowance(PathId(0)).window as f64 / f64::from(PACKET);
            ack(controller.as_mut(), 0, window, at(step * 100), 10);
        }
        let before = controller.allowance(PathId(0)).window;
        assert!(before >= 20 * u64::from(PACKET), "{name}: {before}");
        controller.on_congested(PathId(0), &congested(Trigger::Timeout, at(600), at(900)));
        assert_eq!(controller.allowance(PathId(0)).window, u64::from(PACKET), "{name}");
        controller.on_undo(PathId(0), &Undo { now: at(910), sent_at: at(600) });
        assert_eq!(controller.allowance(PathId(0)).window, before, "{name}");
    }
}

#[test]
fn after_a_timeout_the_window_doubles_to_what_a_loss_leaves() {
    for name in ["mpath", "newreno"] {
        let mut controller = byway_control::by_name(name, 1).unwrap();
        controller.open(PathId(0), &opened(false));
        let at = Instant::from_millis;
        let window =
            |controller: &dyn Controller| controller.allowance(PathId(0)).window as f64 / f64::from(PACKET);
        for step in 0..5 {
            let packets = window(controller.as_ref());
            ack(controller.as_mut(), 0, packets, at(step * 100), 10);
        }
        // RFC 5681, 3.1; RFC 9438, 4.8 for what is CUBIC.
        let kept = window(controller.as_ref()) * if name == "mpath" { 0.7 } else { 0.5 };
        let mut event = congested(Trigger::Timeout, at(600), at(900));
        event.in_flight = 1_000_000;
        controller.on_congested(PathId(0), &event);
        let mut before = 1.0;
        for step in 10..20 {
            ack(controller.as_mut(), 0, before, at(step * 100), 10);
            let after = window(controller.as_ref());
            let doubled = after >= 1.49 * before;
            assert!(doubled || before >= 0.65 * kept, "{name}: {before} to {after}, a loss leaves {kept}");
            assert!(!doubled || after <= kept + 1.0, "{name}: {before} to {after}, a loss leaves {kept}");
            before = after;
        }
    }
}

#[test]
fn newreno_doubles_then_adds_one_and_halves_once_per_event() {
    let mut reno = UncoupledPaths::new("newreno", NewReno::new);
    reno.open(PathId(0), &opened(false));
    let packets =
        |reno: &UncoupledPaths<NewReno>| reno.allowance(PathId(0)).window as f64 / f64::from(PACKET);
    let at = Instant::from_millis;
    ack(&mut reno, 0, 10.0, at(0), 10);
    assert_eq!(packets(&reno), 20.0);
    let mut event = congested(Trigger::Loss, at(110), at(210));
    event.in_flight = 20_000;
    reno.on_congested(PathId(0), &event);
    event.sent_at = at(209);
    reno.on_congested(PathId(0), &event);
    assert_eq!(packets(&reno), 10.0);
    ack(&mut reno, 0, 10.0, at(209), 10);
    assert_eq!(packets(&reno), 10.0, "still recovering");
    ack(&mut reno, 0, 10.0, at(210), 10);
    assert_eq!(packets(&reno), 11.0);
}
