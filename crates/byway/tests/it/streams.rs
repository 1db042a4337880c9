//! What streams carry, and that nobody writes more than somebody reads.

use crate::common::{bytes, config, pair, pair_with, write_until_blocked};
use std::io::{Read, Write};
use std::thread;
use std::time::Duration;

#[test]
fn much_arrives_as_it_was_sent_both_ways_at_once() {
    const LENGTH: u64 = 64 << 20;
    let (_listener, near, far) = pair();
    let move_both_ways = |stream: byway::Stream, seed: u8| {
        let (mut receiving, mut sending) = stream.split();
        let writer = thread::spawn(move || {
            let (mut hasher, mut generator) = (blake3::Hasher::new(), blake3::Hasher::new());
            let mut source = generator.update(&[seed]).finalize_xof();
            let (mut left, mut piece) = (LENGTH, vec![0; 100_000]);
            while left > 0 {
                let length = left.min(piece.len() as u64) as usize;
                source.fill(&mut piece[..length]);
                hasher.update(&piece[..length]);
                sending.write_all(&piece[..length]).unwrap();
                left -= length as u64;
            }
            sending.finish().unwrap();
            hasher.finalize()
        });
        let (mut hasher, mut buffer, mut total) = (blake3::Hasher::new(), vec![0; 50_000], 0);
        loop {
            let length = receiving.read(&mut buffer).unwrap();
            if length == 0 {
                break;
            }
            total += length as u64;
            hasher.update(&buffer[..length]);
        }
        assert_eq!(total, LENGTH);
        (writer, hasher.finalize())
    };
    let there = thread::spawn(move || {
        let (writer, received) = move_both_ways(far.accept_stream().unwrap(), 2);
        (writer.join().unwrap(), received)
    });
    let (writer, received) = move_both_ways(near.open_stream().unwrap(), 1);
    let sent = writer.join().unwrap();
    let (their_sent, their_received) = there.join().unwrap();
    assert_eq!((sent, their_sent), (their_received, received));
    near.close().unwrap();
}

#[test]
fn one_direction_ends_while_the_other_goes_on() {
    let (_listener, near, far) = pair();
    let mut stream = near.open_stream().unwrap();
    stream.write_all(b"question").unwrap();
    stream.shutdown().unwrap();
    let mut theirs = far.accept_stream().unwrap();
    let mut heard = String::new();
    theirs.read_to_string(&mut heard).unwrap();
    assert_eq!((heard.as_str(), theirs.id()), ("question", stream.id()));
    assert_eq!(theirs.read(&mut [0; 8]).unwrap(), 0, "the end stays the end");
    let answer = bytes(1, 1 << 20);
    let expected = answer.clone();
    let writer = thread::spawn(move || {
        theirs.write_all(&answer).unwrap();
        theirs.finish().unwrap();
    });
    let mut read = Vec::new();
    stream.read_to_end(&mut read).unwrap();
    assert!(read == expected);
    writer.join().unwrap();
    let error = stream.write(b"more").unwrap_err();
    assert_eq!(byway::StreamError::of(&error), Some(&byway::StreamError::Finished));
}

#[test]
fn who_does_not_read_stops_who_writes_and_holds_no_more_than_its_window() {
    let (_listener, near, far) = pair();
    let (_theirs, mut sending) = near.open_stream().unwrap().split();
    let taken = write_until_blocked(&mut sending, Duration::from_secs(2));
    // What the engine's window holds on one side, what it holds ahead on the other, and two buffers
    // of the library at each end.
    assert!((1 << 16..24 << 20).contains(&taken), "{taken} bytes were taken of which nothing was read");
    // Another stream goes on.
    let mut other = near.open_stream().unwrap();
    other.write_all(b"through").unwrap();
    other.shutdown().unwrap();
    let first = far.accept_stream().unwrap();
    let mut second = far.accept_stream().unwrap();
    let mut heard = String::new();
    second.read_to_string(&mut heard).unwrap();
    assert_eq!(heard, "through");
    // Once it is read, the first goes on.
    let reader = thread::spawn(move || {
        let (mut receiving, _sending) = first.split();
        std::io::copy(&mut receiving, &mut std::io::sink()).unwrap()
    });
    sending.set_timeout(None);
    sending.write_all(&[1; 1 << 20]).unwrap();
    sending.finish().unwrap();
    assert_eq!(reader.join().unwrap(), taken as u64 + (1 << 20));
}

#[test]
fn a_thousand_streams_at_once_and_more_than_are_allowed_in_turn() {
    const STREAMS: usize = 1_000;
    let (_listener, near, far) = pair_with(config(), config().streams(300));
    let server = thread::spawn(move || {
        for _ in 0..STREAMS {
            let stream = far.accept_stream().unwrap();
            thread::spawn(move || {
                let (mut receiving, mut sending) = stream.split();
                std::io::copy(&mut receiving, &mut sending).unwrap();
                sending.finish().unwrap();
            });
        }
        far
    });
    let workers: Vec<_> = (0..8)
        .map(|worker| {
            let near = near.clone();
            thread::spawn(move || {
                for round in 0..STREAMS / 8 {
                    let mut stream = near.open_stream().unwrap();
                    let expected = bytes((worker * STREAMS + round) as u64, 1 + round * 97);
                    stream.write_all(&expected).unwrap();
                    stream.shutdown().unwrap();
                    let mut read = Vec::new();
                    stream.read_to_end(&mut read).unwrap();
                    assert!(read == expected);
                }
            })
        })
        .collect();
    workers.into_iter().for_each(|worker| worker.join().unwrap());
    server.join().unwrap();
}

#[test]
fn a_thousand_streams_are_open_together() {
    const STREAMS: usize = 1_000;
    let (_listener, near, far) = pair();
    let mut open: Vec<_> = (0..STREAMS).map(|_| near.open_stream().unwrap()).collect();
    for (number, stream) in open.iter_mut().enumerate() {
        write!(stream, "{number}").unwrap();
    }
    let mut theirs: Vec<_> = (0..STREAMS).map(|_| far.accept_stream().unwrap()).collect();
    for stream in &mut open {
        stream.shutdown().unwrap();
    }
    let mut heard: Vec<usize> = theirs
        .iter_mut()
        .map(|stream| {
            let mut text = String::new();
            stream.read_to_string(&mut text).unwrap();
            text.parse().unwrap()
        })
        .collect();
    heard.sort_unstable();
    assert_eq!(heard, (0..STREAMS).collect::<Vec<_>>());
    // One more than is allowed waits until one is over.
    let near_too = near.clone();
    let full: Vec<_> = (STREAMS..1024).map(|_| near.open_stream().unwrap()).collect();
    let waits = thread::spawn(move || near_too.open_stream().map(|stream| stream.id()));
    thread::sleep(Duration::from_millis(100));
    assert!(!waits.is_finished(), "as many are open as are allowed");
    theirs.iter_mut().for_each(|stream| stream.shutdown().unwrap());
    for stream in &mut open {
        assert_eq!(stream.read(&mut [0; 1]).unwrap(), 0);
    }
    waits.join().unwrap().unwrap();
    drop(full);
}
