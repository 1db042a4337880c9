//! Harp by mean delays, as HIR proposes it (7.1), beside Harp by the delay of each packet.

use crate::model::World;
use byway_control::papers::harp::{Coupling, DelayRule, Harp, HarpOptions};
use byway_control::{
    Acked, Allowance, Congested, Controller, Delay, Opened, PathDemand, ProbeResult, Sent, Undo, by_name,
};
use byway_wire::{Duration, Instant, PathId};
use std::sync::{Arc, Mutex};

/// Passes everything on, and notes the delay signals and how large the window was.
#[derive(Debug)]
struct Watched {
    harp: Harp,
    /// Packets sent before are of an RTT that has been answered.
    recover: Instant,
    signals: Arc<Mutex<Vec<f64>>>,
}

impl Controller for Watched {
    fn name(&self) -> &'static str {
        self.harp.name()
    }
    fn open(&mut self, path: PathId, opened: &Opened) {
        self.harp.open(path, opened);
    }
    fn close(&mut self, path: PathId) {
        self.harp.close(path);
    }
    fn on_sent(&mut self, path: PathId, sent: &Sent) {
        self.harp.on_sent(path, sent);
    }
    fn on_acked(&mut self, path: PathId, acked: &Acked<'_>) {
        let before = self.harp.window(path).unwrap().0;
        self.harp.on_acked(path, acked);
        let after = self.harp.window(path).unwrap().0;
        // A window that did not grow although it could have grown had a signal, even at its floor.
        if after <= before && acked.sent_at >= self.recover {
            self.recover = acked.now;
            self.signals.lock().unwrap().push(before);
        }
    }
    fn on_congested(&mut self, path: PathId, congested: &Congested) {
        let before = self.harp.window(path).unwrap().0;
        self.harp.on_congested(path, congested);
        if self.harp.window(path).unwrap().0 < before {
            self.recover = congested.now;
        }
    }
    fn on_undo(&mut self, path: PathId, undo: &Undo) {
        self.harp.on_undo(path, undo);
    }
    fn on_probe(&mut self, path: PathId, probe: &ProbeResult) {
        self.harp.on_probe(path, probe);
    }
    fn on_route_change(&mut self, path: PathId, now: Instant) {
        self.harp.on_route_change(path, now);
    }

    fn on_packet_size(&mut self, path: PathId, bytes: u32) {
        self.harp.on_packet_size(path, bytes);
    }
    fn allowance(&self, path: PathId) -> Allowance {
        self.harp.allowance(path)
    }
    fn wants(&self) -> PathDemand<'_> {
        self.harp.wants()
    }
}

/// The result of a transfer that is alone, over an RTT of 20 ms, in a minute that begins after ten
/// seconds.
#[derive(Debug)]
struct Solo {
    /// Delay signals per second at windows that are smaller than what the line holds. No queue can
    /// stand then, so these signals are false.
    false_signals: f64,
    rate: f64,
    losses: u64,
}

fn solo(options: HarpOptions, megabits: f64, jitter: Duration, seed: u64) -> Solo {
    let signals = Arc::new(Mutex::new(Vec::new()));
    let mut world = World::new(seed);
    let link = world.link(megabits, 50, 0.0);
    let harp = Harp::new("watched", options);
    let watched = Watched { harp, recover: Instant::ZERO, signals: Arc::clone(&signals) };
    let flow = world.flow(Box::new(watched), &[(link, 20)], (0, u64::MAX / 2_000_000));
    world.jitter(flow, 0, jitter);
    world.run(10_000);
    signals.lock().unwrap().clear();
    let lost = world.flows[flow].losses;
    let rate = world.rate(flow, 10_000, 70_000);
    let pipe = megabits * 1e6 * 0.02 / 8.0 / f64::from(crate::model::PACKET);
    let signals = signals.lock().unwrap();
    Solo {
        false_signals: signals.iter().filter(|&&window| window < pipe).count() as f64 / 60.0,
        rate,
        losses: world.flows[flow].losses - lost,
    }
}

/// Four named rules for a delay signal. They watch single packets, half of an RTT's packets, the
/// mean delay of a window, or the mean of the latest 50 delays. A signal also needs that the delays
/// (or means) have differed by `micros` microseconds.
fn rules(micros: u64) -> [(&'static str, HarpOptions); 4] {
    let least = Duration::from_micros(micros);
    let per_packet = DelayRule::Relative { delta: 0.3, fraction: 0.0, least_range: least, range: None };
    let literal = HarpOptions::literal(Coupling::Adaptive);
    let rules = [
        ("each packet", HarpOptions { delay: per_packet, ..literal }),
        ("half of an RTT's", literal),
        ("mean, capped", HarpOptions::averaged(true)),
        ("mean of 50", HarpOptions::averaged(false)),
    ];
    rules.map(|(name, mut options)| {
        match &mut options.delay {
            DelayRule::Relative { least_range, .. } | DelayRule::Averaged { least_range, .. } => {
                *least_range = least;
            }
        }
        (name, options)
    })
}

/// The mean over three seeds of the rate of false signals, and of the rate of the transfer.
fn three(options: HarpOptions, megabits: f64, jitter: u64) -> (f64, f64) {
    let runs = [1, 2, 3].map(|seed| solo(options, megabits, Duration::from_micros(jitter), seed));
    let mean = |of: &dyn Fn(&Solo) -> f64| runs.iter().map(of).sum::<f64>() / 3.0;
    assert!(runs.iter().all(|run| run.losses == 0), "{runs:?}");
    (mean(&|run| run.false_signals), mean(&|run| run.rate))
}

#[test]
#[ignore = "slow: seconds of a processor, at full scale"]
fn jitter_makes_fewer_false_signals_where_the_mean_of_50_packets_counts() {
    for megabits in [10.0, 100.0] {
        let [packet, half, capped, fifty] = rules(1_000).map(|(name, options)| {
            let ((calm, calm_rate), (signals, rate)) =
                (three(options, megabits, 0), three(options, megabits, 1_000));
            println!(
                "{megabits} Mbit/s, {name}: {signals:.1} false signals per second and {rate:.2} Mbit/s with 1 ms of \
                 jitter, {calm:.1} and {calm_rate:.2} without"
            );
            (calm, signals, rate)
        });
        // With means of 50 delays, jitter adds no false signals. The false signals that occur
        // without jitter remain: an ACK may acknowledge ten packets at once, so packets travel in
        // bunches and queue.
        assert!(fifty.1 <= fifty.0 * 1.05, "{fifty:?}");
        assert!(
            fifty.1 < capped.1 && fifty.1 < packet.1 && fifty.1 < half.1,
            "{fifty:?} {capped:?} {packet:?} {half:?}"
        );
        assert!(fifty.2 > 10.0 * packet.2.max(half.2), "{fifty:?} {packet:?} {half:?}");
        // The rule `capped` averages as many delays as the window has packets, but at least four.
        // The mean of four delays still varies half as much as a single delay. So jitter often
        // causes a false congestion signal, and the transfer is slow.
        assert!(capped.1 < half.1, "{capped:?} {half:?}");
        assert!(fifty.2 > 10.0 * capped.2, "{fifty:?} {capped:?}");
    }
}

#[test]
fn the_capped_mean_is_as_good_where_two_packets_in_a_row_are_no_queue() {
    // Two packets take 2.4 ms on this line, so a range of 1 ms is less than one packet.
    let [packet, half, capped, fifty] = rules(2_400).map(|(name, options)| {
        let (signals, rate) = three(options, 10.0, 1_000);
        println!("{name}, from 2.4 ms: {signals:.1} false signals per second and {rate:.2} Mbit/s with 1 ms of jitter");
        (signals, rate)
    });
    assert!(capped.0.max(fifty.0) < packet.0.min(half.0), "{capped:?} {fifty:?} {packet:?} {half:?}");
    assert!(capped.1.min(fifty.1) > packet.1.max(half.1), "{capped:?} {fifty:?} {packet:?} {half:?}");
}

/// The number of congestion signals, from packet `from` on, that delays cause in Harp with
/// `options`. Packets leave one by one, every 20 ms, on a path with an RTT of 100 ms. Packet n has
/// the delay `delay(n)`, in ms.
fn signals(options: HarpOptions, packets: u64, delay: impl Fn(u64) -> i64, from: u64) -> usize {
    let log = Arc::new(Mutex::new(Vec::new()));
    let harp = Harp::new("test", options);
    let mut watched = Watched { harp, recover: Instant::ZERO, signals: Arc::clone(&log) };
    watched.open(PathId(0), &crate::hand::opened(false));
    for packet in 0..packets {
        if packet == from {
            log.lock().unwrap().clear();
        }
        let sent_at = Instant::from_millis(packet * 20);
        crate::hand::ack(&mut watched, 0, 1.0, sent_at, delay(packet));
    }
    log.lock().unwrap().len()
}

#[test]
fn a_single_late_packet_is_no_signal_and_a_queue_is() {
    let [(_, packet), _, (_, capped), (_, fifty)] = rules(1_000);
    // The delay is 10 ms, then 70 ms for 100 packets, so that both extremes are known, then 10 ms
    // again.
    let calm = |at: u64| if (60..160).contains(&at) { 70 } else { 10 };
    let late = |at: u64| if at == 300 { 40 } else { calm(at) };
    let queue = |at: u64| if (300..340).contains(&at) { 40 } else { calm(at) };
    for (name, options, expected) in [("packet", packet, 1), ("capped", capped, 0), ("fifty", fifty, 0)] {
        assert_eq!(signals(options, 400, calm, 250), 0, "{name}");
        assert_eq!(signals(options, 400, late, 250), expected, "{name}");
        assert!(signals(options, 400, queue, 250) > 2, "{name}");
    }
}

#[test]
fn a_small_window_hears_of_the_end_of_a_queue_soon_only_if_the_mean_is_capped() {
    let [.., (_, capped), (_, fifty)] = rules(1_000);
    let queue = |at: u64| if (60..160).contains(&at) { 70 } else { 10 };
    // A mean delay above 28 ms signals congestion, once per RTT. After the queue, packets have
    // delays of 10 ms instead of 70 ms. The mean of the latest 50 delays falls to 28 ms after 35
    // such packets (seven RTTs), the mean of four after three.
    let (capped, fifty) = (signals(capped, 400, queue, 160), signals(fifty, 400, queue, 160));
    assert!(capped <= 1, "{capped}");
    assert!((6..=7).contains(&fifty), "{fifty}");
}

/// HIR as it proposes it, with the exponentially weighted mean.
fn exponential(mut options: HarpOptions) -> HarpOptions {
    if let DelayRule::Averaged { exponential, .. } = &mut options.delay {
        *exponential = true;
    }
    options
}

#[test]
fn the_exponential_mean_hears_a_queue_and_no_single_packet_and_forgets_later() {
    let fifty = HarpOptions::averaged(false);
    let calm = |at: u64| if (60..160).contains(&at) { 70 } else { 10 };
    let late = |at: u64| if at == 600 { 40 } else { calm(at) };
    let queue = |at: u64| if (600..640).contains(&at) { 40 } else { calm(at) };
    for options in [fifty, exponential(fifty)] {
        assert_eq!((signals(options, 800, calm, 450), signals(options, 800, late, 450)), (0, 0));
        assert!(signals(options, 800, queue, 450) > 2, "{options:?}");
    }
    // From 70 ms back at 10 ms, the mean of the latest 50 is below the limit after 35 packets,
    // which are seven RTTs. The exponential one begins at 68.9 ms, and sees dmax there. Its limit
    // is 27.7 ms. After n packets it is at 10 + 58.9 (49/51)^n ms, so n is 30.
    let (window, decaying) = (signals(fifty, 400, calm, 160), signals(exponential(fifty), 400, calm, 160));
    assert!((6..=7).contains(&window) && (5..=6).contains(&decaying), "{window} {decaying}");
}

#[test]
fn a_mean_is_compared_with_means() {
    // After 49 delays there is no mean of 50 delays yet, so there is no signal, however much the
    // delays differ. From the 50th delay on, a signal needs means that differ by at least a
    // millisecond.
    let options = HarpOptions::averaged(false);
    assert_eq!(signals(options, 49, |at| at as i64 % 2 * 100, 0), 0);
    assert_eq!(signals(options, 1_000, |at| at as i64 % 2 * 100, 0), 0);
    assert!(signals(options, 60, |at| if at < 50 { 10 } else { 60 }, 0) > 0);
}

#[test]
fn a_probe_alone_tells_that_a_choked_path_is_free() {
    for name in ["hir", "hir-literal"] {
        let mut harp = by_name(name, 1).unwrap();
        harp.open(PathId(0), &crate::hand::opened(false));
        harp.open(PathId(1), &crate::hand::opened(true));
        for packet in 0..400 {
            let delay = if packet < 60 { 10 } else { 70 };
            crate::hand::ack(&mut *harp, 0, 1.0, Instant::from_millis(packet * 20), delay);
        }
        assert!(harp.allowance(PathId(0)).choked, "{name}");
        for (at, ms, choked) in [(9_000, 60, true), (9_500, 12, false)] {
            let sent_at = Instant::from_millis(at);
            let delay = Some(Delay { sent_at, one_way: ms * 1_000_000, bytes: crate::model::PACKET });
            harp.on_probe(
                PathId(0),
                &ProbeResult { now: sent_at + crate::hand::RTT, delay, rtt: Some(crate::hand::RTT) },
            );
            assert_eq!(harp.allowance(PathId(0)).choked, choked, "{name}: {ms} ms");
        }
    }
}
