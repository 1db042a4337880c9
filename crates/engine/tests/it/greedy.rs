//! A peer that has valid keys and wants to cost its host more than it should: memory, packets,
//! work.

use crate::common::MS;
use crate::common::liar::{Bench, liar, put};
use crate::heap::Heap;
use byway_engine::Config;
use byway_wire::frame::ack::{AckWriter, EntryParts};
use byway_wire::frame::{self, Frame, Object, Stream};
use byway_wire::{Machine, ObjectId, PathId, StreamId, TransmitBuffer, Writer};
use std::net::SocketAddr;

const KIB: usize = 1 << 10;
const MIB: usize = 1 << 20;

fn small() -> Config {
    let mut config = Config::default();
    config.incoming.memory = 256 * KIB;
    config.incoming.stream_window = 256 * KIB;
    config.outgoing.memory = MIB;
    config
}

/// What the honest side sends by now. Its owner gives it what it asks for.
fn turn(bench: &mut Bench, buffer: &mut [u8]) -> Vec<(SocketAddr, Vec<u8>)> {
    let mut sent = Vec::new();
    bench.honest.wake(bench.now);
    loop {
        if let Some(connection) = bench.honest.connection_mut(bench.handle) {
            while let Some(read) = connection.outgoing().next_read() {
                connection.outgoing().provide(read.object, read.offset, vec![5; read.length]);
            }
        }
        let mut out = TransmitBuffer { buffer: &mut *buffer, max_segments: 16 };
        let Some(transmit) = bench.honest.transmit(bench.now, &mut out) else { return sent };
        let datagrams = buffer[..transmit.size].chunks(transmit.segment);
        sent.extend(datagrams.map(|datagram| (transmit.remote, datagram.to_vec())));
        assert!(sent.len() < 10_000, "it sends without end");
    }
}

fn send_to_the_liar(bench: &mut Bench, object: u64) {
    bench.honest.connection_mut(bench.handle).unwrap().outgoing().add_object(ObjectId(0), object);
}

fn ack(writer: &mut Writer<'_>, path: u32, ranges: &[(u64, u64)]) {
    let mut ack = AckWriter::begin(writer);
    let path = PathId(path);
    let parts = EntryParts { path, lost: 0, ce: 0, arrival: 0, held_micros: 0, ranges, stamps: &[] };
    assert!(ack.entry(writer, &parts));
    ack.finish(writer);
}

fn data_bytes(bench: &mut Bench, sent: &[(SocketAddr, Vec<u8>)]) -> usize {
    let object = |frame: Frame<'_>| match frame {
        Frame::Object(object) => Some(object.data.len()),
        _ => None,
    };
    sent.iter().filter_map(|(_, packet)| bench.frame_in(packet, object)).sum()
}

/// It is there, it pings, and it never acknowledges anything.
#[test]
fn a_peer_that_never_acknowledges_is_sent_little_and_less() {
    let mut bench = Bench::new(small());
    let mut buffer = vec![0; 65_536];
    let heap = Heap::new();
    send_to_the_liar(&mut bench, 1 << 30);
    let mut by_minute = [0; 10];
    for step in 0..60_000 {
        bench.now += 10 * MS;
        if step % 200 == 0 {
            let packet = bench.packet(0, |writer| Frame::Ping.write(writer));
            by_minute[step / 6_000] += put(&mut bench.honest, bench.now, liar(), &packet).len();
        }
        by_minute[step / 6_000] += turn(&mut bench, &mut buffer).len();
    }
    println!("{by_minute:?} datagrams by minute, {} bytes held", heap.most());
    assert!(bench.is_open());
    // The first window, and then an answer to each ping beside a few probes.
    assert!(by_minute[0] < 200 && by_minute[1..].iter().all(|minute| *minute < 100), "{by_minute:?}");
    assert!(heap.most() < 3 * MIB as isize, "{} bytes", heap.most());
}

/// It acknowledges all at once and never says that it has read anything.
#[test]
fn a_peer_that_never_reads_is_sent_its_window_and_no_more() {
    let mut bench = Bench::new(small());
    let mut buffer = vec![0; 65_536];
    let heap = Heap::new();
    send_to_the_liar(&mut bench, 1 << 30);
    let (mut data, mut late) = (0, 0);
    for step in 0..30_000 {
        bench.now += 10 * MS;
        let sent = turn(&mut bench, &mut buffer);
        data += data_bytes(&mut bench, &sent);
        let numbers = bench.heard.clone();
        let told = bench.say(0, |writer| {
            for (path, number) in numbers {
                ack(writer, path.0, &[(0, number + 1)]);
            }
        });
        data += data_bytes(&mut bench, &told);
        if step > 15_000 {
            late += sent.len() + told.len();
        }
    }
    println!("{data} bytes, {late} datagrams in the last 150 s, {} bytes held", heap.most());
    assert!(bench.is_open());
    let window = small().incoming.memory;
    assert!((window / 2..=window).contains(&data), "{data} of {window}");
    assert!(late < 3_000, "{late}");
    assert!(heap.most() < 3 * MIB as isize, "{} bytes", heap.most());
}

/// The same ACK again and again, and ACKs in as many pieces as a frame takes.
#[test]
fn acks_again_and_again_change_nothing() {
    let mut bench = Bench::new(small());
    let mut buffer = vec![0; 65_536];
    send_to_the_liar(&mut bench, 1 << 30);
    for _ in 0..20 {
        bench.now += 10 * MS;
        let sent = bench.say(0, |writer| Frame::Ping.write(writer));
        data_bytes(&mut bench, &sent);
        let sent = turn(&mut bench, &mut buffer);
        data_bytes(&mut bench, &sent);
    }
    let numbers = bench.heard.clone();
    let (path, newest) = numbers.into_iter().max_by_key(|(_, number)| *number).unwrap();
    assert!(newest > 4);
    let pieces: Vec<_> = (0..=newest).rev().step_by(2).map(|number| (number, number + 1)).collect();
    // What they tell is told once; what goes out because of it is gone by then.
    for _ in 0..100 {
        bench.now += 50 * MS;
        bench.say(0, |writer| ack(writer, path.0, &pieces));
        turn(&mut bench, &mut buffer);
    }
    let (heap, mut sent) = (Heap::new(), 0);
    for _ in 0..50_000 {
        sent += bench.say(0, |writer| (0..8).for_each(|_| ack(writer, path.0, &pieces))).len();
    }
    println!("{sent} datagrams for 400,000 ACKs, {} bytes held", heap.held());
    assert!(bench.is_open());
    assert!(sent < 1_000, "{sent}");
    assert!(heap.held() < 64 * KIB as isize, "{} bytes", heap.held());
}

/// A peer leaves out one to seven packet numbers after each packet, so each packet needs an ACK
/// range of its own. It never acknowledges the packets that carry these ACKs. The receiver's memory
/// stays bounded.
#[test]
fn holes_in_packet_numbers_without_end() {
    let mut bench = Bench::new(small());
    let (heap, mut sent) = (Heap::new(), 0);
    let count = 300_000;
    for round in 0..count {
        sent += bench.say(0, |writer| Frame::Ping.write(writer)).len();
        *bench.numbers.get_mut(&0).unwrap() += 1 + round % 7;
        if round % 10 == 0 {
            bench.now += MS / 1_000;
            bench.honest.wake(bench.now);
        }
    }
    println!("{sent} datagrams for {count}, {} bytes held, {} at most", heap.held(), heap.most());
    assert!(bench.is_open());
    assert!(sent <= count as usize * 101 / 100, "{sent}");
    assert!(heap.most() < 32 * MIB as isize, "{} bytes", heap.most());
}

/// Single bytes that touch nothing: each takes a place in the books beside its byte of the window.
fn single_bytes(write: impl Fn(&mut Writer<'_>, u64)) -> (Bench, isize, u64) {
    let mut bench = Bench::new(small());
    let heap = Heap::new();
    let mut offset = 0;
    for round in 0..20_000 {
        bench.say(0, |writer| {
            while writer.room() > 80 {
                write(writer, offset);
                offset += 2;
            }
        });
        if round % 10 == 0 {
            bench.now += MS;
            bench.honest.wake(bench.now);
        }
        if !bench.is_open() {
            break;
        }
    }
    (bench, heap.most(), offset / 2)
}

#[test]
fn single_bytes_of_an_object() {
    let (bench, held, bytes) = single_bytes(|writer, offset| {
        frame::write_object(writer, &Object { id: ObjectId(0), offset, data: b"x", fin: false }, true);
    });
    println!("{bytes} bytes taken, {held} held, open: {}", bench.is_open());
    assert!(bytes <= small().incoming.memory as u64 + 200, "{bytes}");
    assert!(held < 4 * MIB as isize, "{held} bytes held for {bytes}");
}

#[test]
fn single_bytes_of_a_stream() {
    let (bench, held, bytes) = single_bytes(|writer, offset| {
        frame::write_stream(writer, &Stream { id: StreamId(0), offset, data: b"x", fin: false }, true);
    });
    println!("{bytes} bytes taken, {held} held, open: {}", bench.is_open());
    assert!(bytes <= small().incoming.memory as u64 + 200, "{bytes}");
    assert!(held < 4 * MIB as isize, "{held} bytes held for {bytes}");
}
