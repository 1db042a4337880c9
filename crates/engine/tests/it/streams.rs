//! Many streams in one session. Windows grow, nobody reads some streams, thousands idle, and peers
//! open too many.

use crate::common::liar::Bench;
use crate::common::talk::{About, Act};
use crate::common::{MS, Plan, both, line, parallel};
use crate::heap::Heap;
use byway_engine::Config;
use byway_engine::connection::close;
use byway_engine::data::{IncomingLimits, ProtocolError};
use byway_engine::seal::Suites;
use byway_sim::PipeConfig;
use byway_wire::frame::{self, Frame, Stream};
use byway_wire::{Duration, Instant, Machine, StreamId};
use core::ops::Range;

const KIB: u64 = 1 << 10;
const MIB: u64 = 1 << 20;

fn seconds(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

/// A line with a queue of half a bandwidth-delay product, or 50 packets.
fn wide(mbit: u64, rtt: u64) -> PipeConfig {
    let queue = usize::try_from(mbit * rtt / 24).unwrap().max(50);
    PipeConfig::new(mbit * 1_000_000, Duration::from_millis(rtt / 2)).queue(queue)
}

fn with_streams(streams: usize) -> Config {
    Config { incoming: IncomingLimits { streams, ..IncomingLimits::default() }, ..Config::default() }
}

/// How long a transfer takes as an object, and as a stream.
fn object_and_stream(congestion: &'static str, size: u64, lines: &[PipeConfig], limit: u64) -> [f64; 2] {
    [true, false].map(|object| {
        let objects: &[u64] = if object { &[size] } else { &[] };
        let mut plan = Plan::new(congestion, objects, &[]);
        plan.stream = if object { 0 } else { size };
        plan.suites = Suites::INSECURE_SIMULATION;
        let pipes: Vec<_> = lines.iter().map(|line| both(line.clone())).collect();
        let mut world = parallel(1, plan, &pipes);
        world.world.stop_trace();
        world.finish(seconds(limit)).as_secs_f64()
    })
}

fn a_stream_is_as_fast_as_an_object(size: u64, lines: &[PipeConfig], limit: u64) {
    for congestion in ["mpath", "background"] {
        let [object, stream] = object_and_stream(congestion, size, lines, limit);
        println!(
            "{congestion}: {} KiB take {object:.3} s as an object, {stream:.3} s as a stream: {:.3} of its speed",
            size / KIB,
            object / stream
        );
        assert!(
            object / stream >= 0.95,
            "{congestion}: {object:.3} s as an object, {stream:.3} s as a stream"
        );
    }
}

#[test]
fn a_stream_is_as_fast_as_an_object_on_a_thin_line() {
    a_stream_is_as_fast_as_an_object(8 * MIB, &[wide(10, 20)], 30);
}

#[test]
#[ignore = "slow: seconds of a processor, at full scale"]
fn a_stream_is_as_fast_as_an_object_on_a_long_line() {
    for size in [1, 4, 16, 48] {
        a_stream_is_as_fast_as_an_object(size * MIB, &[wide(40, 200)], 60);
    }
}

#[test]
#[ignore = "slow: seconds of a processor, at full scale"]
fn a_stream_is_as_fast_as_an_object_on_a_fast_line() {
    a_stream_is_as_fast_as_an_object(64 * MIB, &[wide(100, 50)], 60);
    a_stream_is_as_fast_as_an_object(96 * MIB, &[wide(100, 200)], 60);
}

#[test]
fn a_stream_is_as_fast_as_an_object_over_three_lines() {
    a_stream_is_as_fast_as_an_object(24 * MIB, &[wide(10, 20), wide(10, 20), wide(10, 20)], 60);
    a_stream_is_as_fast_as_an_object(32 * MIB, &[wide(10, 20), wide(20, 60), wide(10, 100)], 60);
}

/// Returns the total rate in Mbit/s of the last twenty of sixty streams, from 10 s to 20 s. `reads`
/// decides when the receiver reads each stream. It always reads the last twenty. The line has
/// `mbit` Mbit/s and an RTT of `rtt` ms.
fn beside_forty(reads: fn(u32, u64, Instant) -> Act, mbit: u64, rtt: u64) -> f64 {
    let mut about = About::new(60, 1 << 40, wide(mbit, rtt));
    about.reads = reads;
    let mut talk = about.begin();
    talk.world.run_until(Instant::from_millis(10_000));
    let before = talk.world[talk.listener].read_from(40);
    talk.world.run_until(Instant::from_millis(20_000));
    let held = talk.held();
    let rate = (talk.world[talk.listener].read_from(40) - before) as f64 * 8.0 / 10e6;
    println!("{mbit} Mbit/s, {rtt} ms: {rate:.2} Mbit/s, {} KiB held", held.0 / KIB);
    assert!(held.0 <= 32 * MIB && held.1 <= 128 << 20, "{held:?}");
    rate
}

#[test]
#[ignore = "slow: seconds of a processor, at full scale"]
fn forty_streams_that_nobody_reads_cost_the_others_little() {
    for (mbit, rtt) in [(10, 20), (100, 50)] {
        // Alone: forty that have nothing to say.
        let mut alone = About::new(60, 1 << 40, wide(mbit, rtt));
        alone.writes = |stream, _, _| if stream < 40 { Act::Wait } else { Act::Go };
        let mut talk = alone.begin();
        talk.world.run_until(Instant::from_millis(10_000));
        let before = talk.world[talk.listener].read_from(40);
        talk.world.run_until(Instant::from_millis(20_000));
        let alone = (talk.world[talk.listener].read_from(40) - before) as f64 * 8.0 / 10e6;
        println!("{mbit} Mbit/s, {rtt} ms: {alone:.2} Mbit/s without the forty");
        let never = beside_forty(|stream, _, _| if stream < 40 { Act::Wait } else { Act::Go }, mbit, rtt);
        let stopped = beside_forty(
            |stream, _, now| {
                if stream < 40 && now > Instant::from_millis(5_000) { Act::Wait } else { Act::Go }
            },
            mbit,
            rtt,
        );
        println!("of their speed: {:.2} and {:.2}", never / alone, stopped / alone);
        assert!(never >= 0.9 * alone && stopped >= 0.9 * alone, "{never} and {stopped} of {alone}");
    }
}

/// Grown one after another, as large as they get, and left: the worst case. Others go on with what
/// is left.
#[test]
fn a_stream_goes_on_beside_those_that_were_left_one_after_another() {
    let mut about = About::new(41, 1 << 40, wide(100, 50));
    // Each has a second for itself; the last has the rest.
    about.writes = |stream, _, now| {
        let from = Instant::from_millis(u64::from(stream) * 1_000);
        if now < from { Act::Wait } else { Act::Go }
    };
    about.reads = |stream, _, now| {
        let until = Instant::from_millis(u64::from(stream) * 1_000 + 1_000);
        if stream < 40 && now > until { Act::Wait } else { Act::Go }
    };
    let mut talk = about.begin();
    talk.world.run_until(Instant::from_millis(42_000));
    let before = talk.world[talk.listener].read_from(40);
    talk.world.run_until(Instant::from_millis(47_000));
    let held = talk.held();
    let rate = (talk.world[talk.listener].read_from(40) - before) as f64 * 8.0 / 5e6;
    println!("{rate:.2} Mbit/s of 100 beside 40 that were left one after another, {} KiB held", held.0 / KIB);
    assert!(held.0 <= 32 * MIB && rate > 12.0, "{rate}, {held:?}");
}

#[test]
fn ten_thousand_idle_streams_take_little_memory() {
    let (mut about, streams) = (About::new(10_000, 200, wide(100, 20)), 10_000);
    (about.ends, about.talker, about.listener) = (false, with_streams(streams), with_streams(streams));
    let heap = Heap::new();
    let mut talk = about.begin();
    talk.world.run_until(Instant::from_millis(10_000));
    let (talker, listener) = (&talk.world[talk.talker], &talk.world[talk.listener]);
    assert_eq!((talker.opened, listener.opened, listener.read_from(0)), (10_000, 10_000, 2_000_000));
    println!(
        "{} KiB for 10,000 idle streams at both ends, {} KiB at most",
        heap.held() / 1024,
        heap.most() / 1024
    );
    assert!(heap.held() < 16 << 20 && heap.most() < 40 << 20, "{} and {}", heap.held(), heap.most());
}

#[test]
fn who_may_open_no_more_streams_waits_and_is_told() {
    for most in [1, 10, 128] {
        let mut about = About::new(1_000, 3_000, wide(50, 20));
        about.listener = with_streams(most);
        let mut talk = about.begin();
        let took = talk.finish(1_000, seconds(120));
        let (talker, listener) = (&talk.world[talk.talker], &talk.world[talk.listener]);
        println!("1,000 streams, {most} at once: {took:?}");
        assert_eq!((talker.opened, listener.finished, listener.read_from(0)), (1_000, 1_000, 3_000_000));
        assert!(listener.most_open <= most, "{} at once", listener.most_open);
    }
}

#[test]
fn ten_thousand_streams_opened_at_once_are_all_read() {
    let mut about = About::new(10_000, 3_000, wide(100, 20));
    (about.talker, about.listener) = (with_streams(10_000), with_streams(10_000));
    let mut talk = about.begin();
    let took = talk.finish(10_000, seconds(60));
    println!("10,000 streams of 3 kB in {took:?}");
    assert_eq!(talk.world[talk.talker].opened, 10_000);
    assert_eq!(talk.world[talk.listener].read_from(0), 30_000_000);
}

/// Lines with every fault; some readers stop for a while and go on, some streams are given up by
/// one side or the other.
#[test]
fn many_streams_survive_every_fault() {
    with_faults(0..8);
}

#[test]
#[ignore = "slow: seconds of a processor, at full scale"]
fn many_streams_survive_every_fault_with_many_seeds() {
    with_faults(0..20);
}

fn with_faults(seeds: Range<u64>) {
    let faulty = |seed: u64| {
        let good = line(20, 10 * MS);
        match seed % 5 {
            0 => good.loss(0.1),
            1 => good.reordering(0.2, 15 * MS).jitter(3 * MS),
            2 => good.duplication(0.3).loss(0.02),
            3 => good.corruption(0.1),
            _ => good.loss(0.03).reordering(0.1, 10 * MS).duplication(0.1).corruption(0.03),
        }
    };
    for seed in seeds {
        let mut about = About::new(200, 60_000, faulty(seed));
        about.lines.push(faulty(seed / 5 + seed));
        about.seed = seed;
        about.congestion = if seed % 2 == 0 { "mpath" } else { "background" };
        about.listener = with_streams(16);
        about.listener.incoming.memory = 1 << 20;
        about.listener.incoming.stream_start = 4 << 10;
        about.talker.outgoing.memory = 1 << 20;
        about.writes = |stream, at, _| if stream % 7 == 3 && at > 20_000 { Act::GiveUp } else { Act::Go };
        about.reads = |stream, at, now| {
            let millis = now.since(Instant::ZERO).as_micros() / 50_000;
            match stream % 11 {
                5 if at > 10_000 => Act::GiveUp,
                // Half of the time these are not read.
                8 | 9 if (millis + u128::from(stream)).is_multiple_of(2) => Act::Wait,
                _ => Act::Go,
            }
        };
        let mut talk = about.begin();
        let heap = Heap::new();
        let took = talk.finish(200, seconds(120));
        talk.world.run_for(seconds(5));
        let (talker, listener) = (&talk.world[talk.talker], &talk.world[talk.listener]);
        let (finished, resets, stopped) = (listener.finished, listener.resets, listener.stopped);
        println!(
            "seed {seed}: {took:?}, {finished} ended, {resets} reset, {stopped} stopped, {} KiB",
            heap.most() / 1024
        );
        assert!(listener.most_open <= 16 && resets > 5 && stopped > 5 && finished > 100);
        assert_eq!((finished + resets + stopped, talker.opened), (200, 200));
        assert_eq!(talk.held().0, 0, "a window leaks");
        assert!(heap.most() < 8 << 20, "{}", heap.most());
    }
}

#[test]
fn a_peer_that_breaks_the_limits_of_streams_is_closed_upon() {
    let ends = |id, fin| Stream { id: StreamId(id), offset: 0, data: b"x", fin };
    let code = |code| close::DATA_CODE_OFFSET + code;
    // It may open as many as are over, and not one more.
    let mut bench = Bench::new(with_streams(4));
    let mut told = Vec::new();
    for id in 0..4 {
        bench.say(0, |writer| frame::write_stream(writer, &ends(2 * id, true), true));
        let incoming = bench.honest.connection_mut(bench.handle).unwrap().incoming();
        assert!(id > 1 || incoming.read(StreamId(2 * id), &mut [0; 9]).unwrap().finished);
        let sent = bench.say(0, |writer| Frame::Ping.write(writer));
        for (_, packet) in &sent {
            told.extend(bench.frame_in(packet, |frame| match frame {
                Frame::MaxStreams(limit) => Some(limit),
                _ => None,
            }));
        }
    }
    assert_eq!(told, [5, 6]);
    for id in [4, 5] {
        bench.say(0, |writer| frame::write_stream(writer, &ends(2 * id, true), true));
        assert!(bench.is_open());
    }
    let sent = bench.say(0, |writer| frame::write_stream(writer, &ends(12, true), true));
    bench.closed_with(&sent, code(ProtocolError::STREAM_LIMIT));
    // A stream that the honest side opens, and has not opened.
    let mut bench = Bench::new(Config::default());
    let sent = bench.say(0, |writer| Frame::ResetStream { id: StreamId(1), code: 1 }.write(writer));
    bench.closed_with(&sent, code(ProtocolError::STREAM_STATE));
    // More than it was told; that the window grows soon is no excuse.
    let mut bench = Bench::new(Config::default());
    let start = Config::default().incoming.stream_start as u64;
    let sent = bench.say(0, |writer| {
        frame::write_stream(writer, &Stream { offset: start, ..ends(0, false) }, true);
    });
    bench.closed_with(&sent, code(ProtocolError::FLOW_CONTROL));
}

/// It fills each stream that it may open with what it may send, or resets it and begins the next.
#[test]
fn a_peer_with_streams_that_nobody_reads_takes_no_more_than_the_memory() {
    let mut config = with_streams(1_000);
    config.incoming.memory = 1 << 20;
    let mut bench = Bench::new(config);
    let heap = Heap::new();
    let data = [7; 1_000];
    'streams: for id in 0..100_000 {
        for offset in (0..8_000).step_by(1_000) {
            let stream = Stream { id: StreamId(2 * id), offset, data: &data, fin: false };
            bench.say(0, |writer| frame::write_stream(writer, &stream, true));
            if !bench.is_open() {
                break 'streams;
            }
        }
    }
    println!("{} KiB held", heap.most() / 1024);
    assert!(!bench.is_open(), "it sent more than the window");
    assert!(heap.most() < 4 << 20, "{}", heap.most());
    // Streams that are reset at once cost nothing, and are told to the owner once each.
    let mut bench = Bench::new(with_streams(1_000));
    let heap = Heap::new();
    for id in 0..100_000 {
        bench.say(0, |writer| {
            let whole = Stream { id: StreamId(2 * id), offset: 0, data: &data, fin: true };
            frame::write_stream(writer, &whole, true);
            Frame::ResetStream { id: StreamId(2 * id), code: 1 }.write(writer);
        });
        let incoming = bench.honest.connection_mut(bench.handle).unwrap().incoming();
        while incoming.next_event().is_some() {}
        if id % 10 == 0 {
            bench.now += MS;
            bench.honest.wake(bench.now);
        }
    }
    println!("{} KiB held", heap.most() / 1024);
    assert!(bench.is_open() && heap.most() < 4 << 20, "{}", heap.most());
}
