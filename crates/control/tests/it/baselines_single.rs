//! The single-path baselines, each rule by hand with the numbers of its source.

use byway_control::rivals::{cubic, nice, tcp_lp};
use byway_control::seeded_random::Random;
use byway_control::{
    Acked, Congested, Cubic, Delay, Ledbat, LedbatPp, NewReno, Nice, Opened, PathController, Sent, TcpLp,
    Trigger, Undo,
};
use byway_wire::{Duration, Instant};

const PACKET: u32 = 1_000;
const RTT: Duration = Duration::from_millis(100);

fn at(ms: u64) -> Instant {
    Instant::from_millis(ms)
}

fn opened() -> Opened {
    Opened { now: Instant::ZERO, proxied: false, packet_size: PACKET, rtt: Some(RTT) }
}

fn window(single: &dyn PathController) -> f64 {
    single.allowance().window as f64 / f64::from(PACKET)
}

/// Acknowledges `packets` packets, which may be a fraction. The latest was sent `rtt` ms before
/// `now`. Each had a one-way delay of `delay` ms.
fn acked(
    single: &mut dyn PathController,
    packets: f64,
    now: Instant,
    rtt: u64,
    delay: i64,
    app_limited: bool,
) {
    let rtt = Duration::from_millis(rtt);
    let sent_at = now - rtt;
    let delays =
        vec![Delay { sent_at, one_way: delay * 1_000_000, bytes: PACKET }; (packets.round() as usize).max(1)];
    single.on_acked(&Acked {
        now,
        bytes: (packets * f64::from(PACKET)).round() as u64,
        packets: delays.len() as u32,
        sent_at,
        rtt: Some(rtt),
        srtt: rtt,
        min_rtt: RTT.min(rtt),
        delays: &delays,
        in_flight: 0,
        app_limited,
        delivery_rate: None,
        ce: 0,
    });
}

/// A window full of ACKs in ten parts, over an RTT of 100 ms from `start`.
fn round(single: &mut dyn PathController, start: Instant, delay: i64) {
    let packets = window(single);
    for part in 1..=10_u32 {
        acked(single, packets / 10.0, start + RTT * part / 10, 100, delay, false);
    }
}

fn congested(single: &mut dyn PathController, trigger: Trigger, sent: Instant, now: Instant) {
    let in_flight = u64::MAX;
    let bytes = u64::from(PACKET);
    single.on_congested(&Congested { trigger, first_sent_at: sent, sent_at: sent, now, bytes, in_flight });
}

fn near(value: f64, expected: f64, tolerance: f64, what: &str) {
    assert!((value - expected).abs() <= tolerance, "{what}: {value} for {expected}");
}

/// A CUBIC that lost a packet at 10 s, with a window of 1000 packets, after the RTT of recovery.
fn cubic_after_loss(options: cubic::CubicOptions) -> Cubic {
    let mut cubic = Cubic::with_options(&opened(), cubic::CubicOptions { initial: 1_000.0, ..options });
    congested(&mut cubic, Trigger::Loss, at(9_900), at(10_000));
    cubic
}

#[test]
fn cubic_is_concave_to_its_plateau_and_convex_beyond() {
    // `K = cbrt (300 / 0.4) = 9.086 s`, and `W(t) = 0.4 (t - K)^3 + 1000`.
    let mut cubic = cubic_after_loss(cubic::CubicOptions::BYWAY);
    near(cubic.packets(), 700.0, 1e-9, "beta");
    let start = 10_110;
    for step in 0..150_u64 {
        round(&mut cubic, at(start + step * 100), 10);
        let t = (step + 1) as f64 / 10.0;
        let curve = |t: f64| 0.4 * (t - 9.086) * (t - 9.086) * (t - 9.086) + 1_000.0;
        // The window is on its way to where the curve is in an RTT.
        let between = curve(t - 0.1) - 0.5..curve(t + 0.1) + 0.5;
        assert!(between.contains(&cubic.packets()), "{t} s: {} in {between:?}", cubic.packets());
    }
}

#[test]
fn cubic_does_not_count_the_time_in_which_the_application_was_the_limit() {
    let mut cubic = cubic_after_loss(cubic::CubicOptions::BYWAY);
    for step in 0..20 {
        round(&mut cubic, at(10_110 + step * 100), 10);
    }
    let before = cubic.packets();
    for step in 0..1_000 {
        acked(&mut cubic, 1.0, at(12_200 + step * 100), 100, 10, true);
    }
    assert_eq!(cubic.packets(), before);
    round(&mut cubic, at(112_110), 10);
    // dW/dt = 3 * 0.4 * (2.1 - 9.086)^2 = 58.6 packets a second.
    near(cubic.packets() - before, 5.9, 1.0, "an RTT of growth");
}

#[test]
fn cubic_grows_by_half_a_window_in_an_rtt_at_most() {
    let mut cubic = cubic_after_loss(cubic::CubicOptions::BYWAY);
    round(&mut cubic, at(10_110), 10);
    let before = cubic.packets();
    acked(&mut cubic, before, at(1_000_000), 100, 10, false);
    near(cubic.packets() / before, 1.5, 1e-9, "target");
}

#[test]
fn cubic_lowers_its_plateau_for_flows_that_begin() {
    for (fast_convergence, plateau) in [(true, 595.0), (false, 700.0)] {
        let mut cubic =
            cubic_after_loss(cubic::CubicOptions { fast_convergence, ..cubic::CubicOptions::BYWAY });
        congested(&mut cubic, Trigger::Loss, at(10_001), at(10_100));
        near(cubic.packets(), 490.0, 1e-9, "beta twice");
        let k = libm::cbrt((plateau - 490.0) / 0.4);
        let mut now = at(10_210);
        while now.since(at(10_210)).as_secs_f64() < k {
            round(&mut cubic, now, 10);
            now += RTT;
        }
        near(cubic.packets(), plateau, 3.0, "W_max");
    }
}

#[test]
fn cubic_is_reno_with_a_smaller_step_where_windows_are_small() {
    // C is so small that the window is W_est, the estimate of Reno's window. Up to cwnd_prior (the
    // window before the loss), W_est grows by `3 (1 - 0.7) / (1 + 0.7) = 0.529` packets per RTT.
    // Above cwnd_prior it grows by 1 packet per RTT.
    let mut cubic =
        Cubic::with_options(&opened(), cubic::CubicOptions { c: 1e-6, ..cubic::CubicOptions::BYWAY });
    congested(&mut cubic, Trigger::Loss, at(900), at(1_000));
    near(cubic.packets(), 7.0, 1e-9, "beta");
    for step in 0..20 {
        let before = cubic.packets();
        round(&mut cubic, at(1_110 + step * 100), 10);
        let alpha = if before < 9.4 { 0.529 } else { 1.0 };
        if !(9.4..10.0).contains(&before) {
            near(cubic.packets() - before, alpha, 0.05, "growth");
        }
    }
}

#[test]
fn cubic_after_a_timeout_starts_a_curve_without_concave_part() {
    let mut cubic =
        Cubic::with_options(&opened(), cubic::CubicOptions { initial: 100.0, ..cubic::CubicOptions::BYWAY });
    congested(&mut cubic, Trigger::Timeout, at(900), at(1_000));
    near(cubic.packets(), 1.0, 1e-9, "loss window");
    let mut now = at(1_110);
    while cubic.packets() < 70.0 {
        round(&mut cubic, now, 10);
        now += RTT;
    }
    let before = cubic.packets();
    near(before, 70.0, 2.0, "ssthresh by beta");
    // After a timeout CUBIC's curve begins at W_max (RFC 9438, 4.8) and rises by `0.4 t^3` packets:
    // 3.2 in 2 s, 400 in 10 s. CUBIC's estimate of Reno's window (4.3) rises by 0.529 packets per
    // RTT: 10.6 in 2 s (20 RTTs).
    for step in 0..100 {
        round(&mut cubic, now + RTT * step, 10);
    }
    near(cubic.packets() - before, 0.4 * 10.1 * 10.1 * 10.1, 20.0, "convex");
}

#[test]
fn cubic_takes_everything_back_when_a_loss_was_none() {
    let mut cubic = cubic_after_loss(cubic::CubicOptions::BYWAY);
    for step in 0..30 {
        round(&mut cubic, at(10_110 + step * 100), 10);
    }
    let mut other = cubic.clone();
    congested(&mut cubic, Trigger::Loss, at(13_000), at(13_110));
    cubic.on_undo(&Undo { now: at(13_115), sent_at: at(13_000) });
    for step in 0..30 {
        round(&mut cubic, at(13_220 + step * 100), 10);
        round(&mut other, at(13_220 + step * 100), 10);
    }
    near(cubic.packets(), other.packets(), 1e-9, "as if nothing had been");
}

#[test]
fn marks_bring_cubic_down_to_one_packet_and_losses_to_two() {
    for (trigger, floor) in [(Trigger::Ce, 1.0), (Trigger::Loss, 2.0)] {
        let mut cubic = Cubic::new(&opened());
        for step in 1..30 {
            congested(&mut cubic, trigger, at(step * 100), at(step * 100 + 99));
        }
        near(cubic.packets(), floor, 1e-9, "floor");
    }
}

#[test]
fn hystart_leaves_slow_start_five_rounds_after_the_rtt_rose() {
    let options = cubic::CubicOptions::LITERAL;
    // At an RTT of 100 ms, HyStart++ reacts to a rise by at least an eighth, 12.5 ms. A rise of 12
    // ms does not end slow start, a rise of 13 ms does.
    for (rise, leaves) in [(12, false), (13, true)] {
        let mut cubic = Cubic::with_options(&opened(), options);
        let mut growth = Vec::new();
        for step in 0..12_u64 {
            let rtt = if step < 3 { 100 } else { 100 + rise };
            let before = cubic.packets();
            acked(&mut cubic, before, at(1_000 + step * 200), rtt, 10, false);
            growth.push((cubic.packets() / before * 100.0).round() as u64);
        }
        if leaves {
            // RTT doubling, then a quarter of it in conservative slow start, then congestion
            // avoidance.
            assert_eq!(growth[..9], [200, 200, 200, 125, 125, 125, 125, 125, 100]);
        } else {
            assert!(growth.iter().all(|percent| *percent == 200), "{growth:?}");
        }
    }
    // Jitter: the RTT falls again, and so slow start goes on.
    let mut cubic = Cubic::with_options(&opened(), options);
    for (step, rtt) in [100, 100, 120, 110, 110].into_iter().enumerate() {
        let before = cubic.packets();
        acked(&mut cubic, before, at(1_000 + step as u64 * 200), rtt, 10, false);
        near(cubic.packets() / before, if step == 2 { 1.25 } else { 2.0 }, 1e-9, "growth");
    }
}

fn sent(packets: u64) -> Sent {
    let in_flight = packets * u64::from(PACKET);
    Sent { now: Instant::ZERO, bytes: PACKET, in_flight, app_limited: false }
}

/// An ACK of `packets` after a one-way delay of `delay` ms, while the whole window is in flight.
fn used(ledbat: &mut Ledbat, packets: f64, now: u64, delay: i64) {
    ledbat.on_sent(&sent(100));
    acked(ledbat, packets, at(now), 100, delay, false);
}

/// LEDBAT with 10 packets and a base delay of 10 ms.
fn ledbat() -> Ledbat {
    let mut ledbat = Ledbat::new(&opened());
    let mut now = 1_000;
    while ledbat.packets() < 9.999 {
        let packets = (10.0 - ledbat.packets()).min(1.0) * ledbat.packets();
        used(&mut ledbat, packets, now, 10);
        now += 100;
    }
    near(ledbat.packets(), 10.0, 1e-3, "start");
    ledbat
}

#[test]
fn ledbat_moves_by_its_distance_from_the_target() {
    // cwnd += GAIN * off_target * bytes_newly_acked * MSS / cwnd, TARGET 100 ms, GAIN 1.
    for (queue, change) in [(0, 1.0), (50, 0.5), (100, 0.0), (150, -0.5), (200, -1.0)] {
        let mut ledbat = ledbat();
        used(&mut ledbat, 10.0, 30_000, 10 + queue);
        near(ledbat.packets(), 10.0 + change, 2e-3, "a window of ACKs");
    }
}

#[test]
fn ledbat_takes_the_smallest_of_four_delays() {
    for (late, change) in [(3, 0.0), (4, -0.1)] {
        let mut ledbat = ledbat();
        for step in 0..late {
            // One byte, so that only the last one moves the window.
            used(&mut ledbat, 0.001, 30_000 + step, 210);
        }
        let before = ledbat.packets();
        // Of the last four, one of 110 ms (a queue of the target) or none.
        used(&mut ledbat, 1.0, 30_010, if late == 3 { 110 } else { 210 });
        near(ledbat.packets() - before, change, 1e-3, "filtered");
    }
}

#[test]
fn ledbat_grows_only_as_far_as_it_is_used() {
    let mut ledbat = ledbat();
    // Two RTT with four packets in flight at most: the window is five.
    for step in 0..3 {
        ledbat.on_sent(&sent(4));
        acked(&mut ledbat, 4.0, at(30_000 + step * 200), 100, 10, true);
    }
    near(ledbat.packets(), 5.0, 1e-9, "flight and one");
}

#[test]
fn ledbat_halves_once_per_rtt_and_keeps_two() {
    let mut ledbat = ledbat();
    congested(&mut ledbat, Trigger::Loss, at(30_000), at(30_100));
    congested(&mut ledbat, Trigger::Loss, at(30_050), at(30_150));
    near(ledbat.packets(), 5.0, 1e-3, "once");
    for step in 0..5 {
        congested(&mut ledbat, Trigger::Loss, at(31_000 + step * 200), at(31_100 + step * 200));
    }
    near(ledbat.packets(), 2.0, 1e-9, "MIN_CWND");
    congested(&mut ledbat, Trigger::Timeout, at(33_000), at(33_500));
    near(ledbat.packets(), 1.0, 1e-9, "CTO");
}

#[test]
fn ledbat_forgets_a_base_after_ten_minutes() {
    let mut ledbat = Ledbat::new(&opened());
    let step = |ledbat: &mut Ledbat, minute: u64, delay| {
        for _ in 0..4 {
            used(ledbat, 0.0, minute * 60_000, delay);
        }
        let before = ledbat.packets();
        used(ledbat, before, minute * 60_000, delay);
        ledbat.packets() - before
    };
    near(step(&mut ledbat, 0, 10), 1.0, 1e-9, "empty");
    for minute in 1..10 {
        near(step(&mut ledbat, minute, 60), 0.5, 1e-9, "a queue of half the target");
    }
    near(step(&mut ledbat, 10, 60), 1.0, 1e-9, "which is the base now");
}

#[test]
fn ledbat_pp_has_a_gain_by_the_length_of_its_path() {
    // `GAIN = 1 / min (16, CEIL (2 * 60 ms / base))`.
    for (rtt, gain) in [(200, 1.0), (120, 1.0), (100, 0.5), (20, 1.0 / 6.0), (7, 1.0 / 16.0)] {
        let mut single = LedbatPp::new(&opened());
        acked(&mut single, 2.0, at(1_000), rtt, 10, false);
        near(single.packets() - 2.0, 2.0 * gain, 1e-9, &format!("slow start at {rtt} ms"));
    }
}

#[test]
fn ledbat_pp_leaves_slow_start_at_45_ms_slows_down_after_two_rtt_and_then_after_nine_times_as_long() {
    let mut single = LedbatPp::new(&opened());
    let mut now = 1_000;
    let mut step = |single: &mut LedbatPp, queue: u64| {
        now += 100;
        let packets = single.packets();
        // The smallest of four counts.
        for part in 0..4 {
            acked(single, packets / 4.0, at(now + part), 100 + queue, 10, false);
        }
        (now, single.packets())
    };
    for _ in 0..8 {
        step(&mut single, 0);
    }
    let (_, before) = step(&mut single, 44);
    assert!(before > 50.0, "GAIN is 1/2: {before}");
    let (left, stays) = step(&mut single, 46);
    assert!(stays < 1.4 * before);
    let mut bottom = 0;
    while single.packets() > 2.0 {
        bottom = step(&mut single, 60).0;
    }
    assert!((250..=400).contains(&(bottom - left)), "{bottom} {left}");
    let mut rising = 0;
    while single.packets() <= 2.0 {
        rising = step(&mut single, 0).0;
    }
    assert!((200..=500).contains(&(rising - bottom)), "{rising} {bottom}");
    let mut back = rising;
    while single.packets() < stays - 1.0 {
        back = step(&mut single, 0).0;
    }
    let mut again = back;
    while single.packets() > 2.0 {
        again = step(&mut single, 59).0;
    }
    // Seen in steps of an RTT.
    near((again - back) as f64 / (back - bottom) as f64, 9.0, 1.0, "interval");
}

#[test]
fn ledbat_pp_falls_by_a_part_of_its_window_and_by_half_at_most() {
    // `W += max (GAIN - W (delay / TARGET - 1), -W / 2)` in an RTT. GAIN is 1/2 at 100 ms.
    for (queue, change) in [(30, 0.5), (60, 0.5), (66, 0.5 - 10.0), (90, -50.0), (300, -50.0)] {
        let mut single = LedbatPp::new(&opened());
        while single.packets() < 100.0 {
            let packets = (100.0 - single.packets()).min(1.0) * 2.0;
            acked(&mut single, packets, at(1_000), 100, 10, false);
        }
        congested(&mut single, Trigger::Loss, at(1_000), at(1_100));
        single.on_undo(&Undo { now: at(1_101), sent_at: at(1_000) });
        for part in 0..4 {
            // Fills the filter; the first leaves slow start.
            acked(&mut single, 0.0, at(1_300 + part), 100 + queue.max(46), 10, false);
        }
        for part in 0..4 {
            acked(&mut single, 0.0, at(1_310 + part), 100 + queue, 10, false);
        }
        let before = single.packets();
        for part in 0..10 {
            acked(&mut single, before / 10.0, at(1_320 + part), 100 + queue, 10, false);
        }
        // The window changes during the RTT, so the ten parts are not exactly one window.
        near(single.packets() - before, change, 0.05 * change.abs() + 0.01, &format!("{queue} ms"));
    }
}

/// A Nice with 10 packets, after slow start. It has seen delays of 10 to 110 ms, so delays above 20
/// ms are late.
fn nice_of_ten() -> Nice {
    let options = nice::NiceOptions { initial: 20.0, ..nice::NiceOptions::LITERAL };
    let mut nice = Nice::with_options(&opened(), options);
    congested(&mut nice, Trigger::Loss, at(100), at(200));
    acked(&mut nice, 1.0, at(250), 100, 10, false);
    acked(&mut nice, 0.0, at(260), 100, 110, false);
    acked(&mut nice, 2.0, at(400), 100, 10, false);
    nice
}

#[test]
fn nice_halves_when_more_than_half_of_an_rtt_is_late() {
    for (late, halves) in [(5, false), (6, true)] {
        let mut nice = nice_of_ten();
        let before = nice.packets();
        // Ten packets, of which the last ends the round.
        for packet in 0..10_u64 {
            let (rtt, delay) = if packet < late { (150, 21) } else { (150, 20) };
            let rtt = if packet == 9 { 60 } else { rtt };
            acked(&mut nice, 1.0, at(500 + packet), rtt, delay, false);
        }
        if halves {
            near(nice.packets(), before / 2.0, 1e-9, "halved");
        } else {
            assert!(nice.packets() >= before - 1.0, "{}", nice.packets());
        }
    }
}

#[test]
fn nice_is_vegas_while_nobody_is_late() {
    // Vegas estimates the packets in the queue as `Diff = W (RTT - base) / RTT`. Below 1 the window
    // grows by one packet per RTT; above 3 it falls by one. With `W = 20` and `base = 100` ms,
    // queues of 4, 10 and 20 ms give 0.77, 1.8 and 3.3.
    let range = nice::NiceOptions { least_range: Duration::from_millis(500), ..nice::NiceOptions::LITERAL };
    for (queue, change) in [(4, 1.0), (10, 0.0), (20, -1.0)] {
        let mut nice = Nice::with_options(&opened(), nice::NiceOptions { initial: 40.0, ..range });
        congested(&mut nice, Trigger::Loss, at(100), at(200));
        acked(&mut nice, 1.0, at(250), 100, 10, false);
        acked(&mut nice, 1.0, at(400), 100, 10 + queue, false);
        let before = nice.packets();
        near(before, 20.0, 1.0, "start");
        acked(&mut nice, 1.0, at(550), 100, 10 + queue, false);
        near(nice.packets() - before, change, 1e-9, "a round");
    }
}

#[test]
fn nice_goes_below_one_packet_and_sends_by_rate() {
    let mut nice = nice_of_ten();
    for step in 0..40 {
        acked(&mut nice, 1.0, at(1_000 + step * 200), 100, 110, false);
    }
    near(nice.packets(), 1.0 / 48.0, 1e-9, "floor");
    // A packet of 1000 bytes in 48 RTT of 100 ms.
    assert_eq!(nice.allowance().rate, Some(208));
    assert!(nice.allowance().window < u64::from(PACKET));
    acked(&mut nice, 1.0, at(20_000), 100, 10, false);
    near(nice.packets(), 1.0 + 1.0 / 48.0, 1e-9, "one round without a queue");
    assert_eq!(nice.allowance().rate, None);
}

#[test]
fn nice_does_not_judge_the_same_packets_twice() {
    for (afresh, times) in [(false, 2.0), (true, 1.0)] {
        let options = nice::NiceOptions {
            afresh,
            least_range: Duration::from_millis(50),
            ..nice::NiceOptions::LITERAL
        };
        let mut nice = Nice::with_options(&opened(), nice::NiceOptions { initial: 16.0, ..options });
        // A queue that is there for one RTT, of packets sent before the first answer.
        acked(&mut nice, 1.0, at(110), 100, 10, false);
        let before = nice.packets();
        for step in 0..4 {
            acked(&mut nice, 1.0, at(300 + step * 50), 100, 30, false);
        }
        acked(&mut nice, 1.0, at(500), 100, 10, false);
        let halvings = libm::log2(before / nice.packets());
        assert!((halvings - times).abs() < 0.35, "{afresh}: {halvings}");
    }
}

#[test]
fn tcp_lp_halves_then_waits_three_rtt_and_falls_to_one_if_it_goes_on() {
    let mut lp = TcpLp::with_options(
        &opened(),
        tcp_lp::TcpLpOptions { initial: 64.0, ..tcp_lp::TcpLpOptions::LITERAL },
    );
    // Delays of 10 and 110 ms: the limit is 10 + 0.15 * 100 = 25.
    acked(&mut lp, 1.0, at(110), 100, 10, false);
    acked(&mut lp, 1.0, at(120), 100, 110, false);
    // 10 + 100/8 = 22.5: not yet.
    assert!(lp.packets() > 64.0);
    let before = lp.packets();
    acked(&mut lp, 1.0, at(130), 100, 45, false);
    // 22.5 + (45 - 22.5)/8 = 25.3.
    near(lp.packets(), before / 2.0, 1e-9, "the first");
    acked(&mut lp, 1.0, at(140), 100, 45, false);
    near(lp.packets(), before / 2.0, 1e-9, "of the same RTT");
    for step in 0..40 {
        acked(&mut lp, 1.0, at(141 + step), 100, 10, false);
    }
    near(lp.packets(), before / 2.0, 1e-9, "inference: no growth");
    let mut again = lp.clone();
    for step in 0..20 {
        acked(&mut again, 1.0, at(240 + step), 100, 110, false);
    }
    near(again.packets(), 1.0, 1e-9, "the second within 300 ms");
    acked(&mut lp, 33.0, at(440), 100, 10, false);
    near(lp.packets(), before / 2.0 + 1.0, 0.05, "after 300 ms as NewReno");
}

/// The mean window in packets on a path that loses one packet in `1/p`, exactly or by chance. Each
/// RTT has ten ACKs.
fn mean_window(single: &mut dyn PathController, rtt: Duration, p: f64, rounds: u64, chance: bool) -> f64 {
    let mut random = Random::new(1);
    let (mut now, mut since, mut sum, mut parts) = (Instant::from_millis(1), 0.0, 0.0, 0.0);
    for round in 0..rounds {
        for _ in 0..10 {
            let packets = window(single) / 10.0;
            now += rtt / 10;
            since += packets;
            let lost = if chance { random.unit() < packets * p } else { since >= 1.0 / p };
            if lost {
                since = 0.0;
                congested(single, Trigger::Loss, now - rtt, now);
            }
            let sent_at = now - rtt;
            single.on_acked(&Acked {
                now,
                bytes: (packets * f64::from(PACKET)) as u64,
                packets: packets as u32,
                sent_at,
                rtt: Some(rtt),
                srtt: rtt,
                min_rtt: rtt,
                delays: &[],
                in_flight: 0,
                app_limited: false,
                delivery_rate: None,
                ce: 0,
            });
            if round > rounds / 4 {
                sum += window(single);
                parts += 1.0;
            }
        }
    }
    sum / parts
}

#[test]
fn o18_cubic_has_the_response_function_of_the_rfc() {
    // RFC 9438, 5.1: `1.054 (RTT/p)^0.75`. It holds for a single flow that loses exactly one packet
    // in 1/p, without fast convergence.
    let options = cubic::CubicOptions { fast_convergence: false, ..cubic::CubicOptions::BYWAY };
    for (millis, p, expected) in
        [(100, 1e-4, 187.0), (100, 1e-5, 1_054.0), (100, 1e-6, 5_926.0), (10, 1e-7, 5_926.0)]
    {
        // The flow begins with the expected window, so that the mean does not include the approach
        // to it.
        let mut cubic = Cubic::with_options(&opened(), cubic::CubicOptions { initial: expected, ..options });
        congested(&mut cubic, Trigger::Loss, Instant::ZERO, Instant::ZERO);
        let rtt = Duration::from_millis(millis);
        let mean = mean_window(&mut cubic, rtt, p, 200_000, false);
        assert!((mean / expected - 1.0).abs() < 0.1, "RTT {millis} ms, p {p}: {mean} for {expected}");
    }
}

#[test]
fn o18_cubic_is_about_reno_where_reno_is_larger() {
    for (millis, p) in [(100, 1e-2), (100, 1e-3), (10, 1e-4), (10, 1e-5)] {
        let rtt = Duration::from_millis(millis);
        let mean = |single: &mut dyn PathController| mean_window(single, rtt, p, 200_000, true);
        let cubic = mean(&mut Cubic::new(&opened()));
        let reno = mean(&mut NewReno::new(&opened()));
        assert!((0.85..1.25).contains(&(cubic / reno)), "RTT {millis} ms, p {p}: {cubic} and {reno}");
    }
}

#[test]
fn each_takes_a_spurious_timeout_back() {
    let opened = opened();
    let singles: [(&str, Box<dyn PathController>); 5] = [
        ("cubic", Box::new(Cubic::new(&opened))),
        ("ledbat", Box::new(Ledbat::new(&opened))),
        ("ledbat++", Box::new(LedbatPp::new(&opened))),
        ("nice", Box::new(Nice::new(&opened))),
        ("tcp-lp", Box::new(TcpLp::new(&opened))),
    ];
    for (name, mut single) in singles {
        for step in 0..20 {
            single.on_sent(&sent(100));
            round(single.as_mut(), at(1_000 + step * 100), 10);
        }
        let before = single.allowance();
        assert!(before.window > 4 * u64::from(PACKET), "{name}: {before:?}");
        congested(single.as_mut(), Trigger::Timeout, at(3_100), at(3_400));
        assert_eq!(single.allowance().window, u64::from(PACKET), "{name}");
        single.on_undo(&Undo { now: at(3_410), sent_at: at(3_100) });
        assert_eq!(single.allowance(), before, "{name}");
    }
}
