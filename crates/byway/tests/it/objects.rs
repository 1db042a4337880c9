//! Objects and datagrams.

use crate::common::{bytes, pair, until};
use byway::{ConnectionError, DatagramError, ObjectError};
use std::io::{Cursor, Read};
use std::thread;

#[test]
fn objects_arrive_whole_and_in_their_order() {
    const SIZES: [usize; 5] = [0, 1, 300_000, 20 << 20, 4096];
    let (_listener, near, far) = pair();
    let sender = thread::spawn(move || {
        let sent: Vec<_> = (0..)
            .zip(SIZES)
            .map(|(seed, size)| {
                let header = format!("object {seed}");
                near.send_object(header.as_bytes(), size as u64, &bytes(seed, size)[..]).unwrap()
            })
            .collect();
        sent.iter().for_each(|object| object.finish().unwrap());
        near.close().unwrap();
    });
    for (seed, size) in (0..).zip(SIZES) {
        let mut object = far.accept_object().unwrap();
        assert_eq!((object.header(), object.size()), (format!("object {seed}").as_bytes(), size as u64));
        let mut target = Cursor::new(Vec::new());
        object.copy_to(&mut target).unwrap();
        assert!(target.into_inner() == bytes(seed, size), "object {seed}");
        assert!(object.next().unwrap().is_none(), "the end stays the end");
    }
    sender.join().unwrap();
    until("the end", || far.ended().is_some());
    assert_eq!(far.ended(), Some(ConnectionError::Closed { code: 0, reason: String::new() }));
}

#[test]
fn ten_thousand_small_objects_in_turn() {
    const COUNT: u64 = 10_000;
    let (_listener, near, far) = pair();
    let sender = thread::spawn(move || {
        for number in 0..COUNT {
            near.send_object(&number.to_be_bytes(), 8, &(number * 3).to_be_bytes()[..]).unwrap();
        }
        near.close().unwrap();
    });
    for number in 0..COUNT {
        let mut object = far.accept_object().unwrap();
        assert_eq!(object.header(), number.to_be_bytes());
        let mut target = Cursor::new(Vec::new());
        object.copy_to(&mut target).unwrap();
        assert_eq!(target.into_inner(), (number * 3).to_be_bytes());
    }
    sender.join().unwrap();
}

#[test]
fn an_object_that_either_side_gives_up_harms_no_other() {
    let (_listener, near, far) = pair();
    let sender = thread::spawn(move || {
        let size = 64 << 20;
        let refused = near.send_object(b"refused", size, std::io::repeat(1).take(size));
        assert!(matches!(refused, Err(ObjectError::Refused(5))), "{refused:?}");
        let short = near.send_object(b"short", 1 << 20, &[0; 600_000][..]);
        assert!(matches!(short, Err(ObjectError::Io(_))), "{short:?}");
        assert!(matches!(near.send_object(&[0; 1025], 0, &[][..]), Err(ObjectError::Header)));
        near.send_object(b"whole", 1 << 20, std::io::repeat(2).take(1 << 20)).unwrap().finish().unwrap();
        near
    });
    let mut refused = far.accept_object().unwrap();
    let piece = refused.next().unwrap().unwrap();
    assert!(piece.iter().all(|byte| *byte == 1));
    refused.refuse(5);
    drop(piece);
    let mut short = far.accept_object().unwrap();
    let broken = loop {
        match short.next() {
            Ok(Some(_)) => {}
            Ok(None) => panic!("it was not sent"),
            Err(error) => break error,
        }
    };
    assert!(matches!(broken, ObjectError::Withdrawn), "{broken:?}");
    let mut whole = Cursor::new(Vec::new());
    far.accept_object().unwrap().copy_to(&mut whole).unwrap();
    assert_eq!(whole.into_inner(), vec![2; 1 << 20]);
    sender.join().unwrap().abort(1, "");
    assert!(far.accept_object().is_err());
}

#[test]
fn datagrams_arrive_whole_and_what_is_too_large_is_refused() {
    let (_listener, near, far) = pair();
    let largest = near.max_datagram();
    assert!((1000..2000).contains(&largest));
    assert_eq!(near.send_datagram(&[0; 3000]), Err(DatagramError::TooLarge(near.max_datagram())));
    let heard = thread::spawn(move || {
        let mut heard = Vec::new();
        while let Ok(data) = far.receive_datagram() {
            heard.push(data);
        }
        heard
    });
    for number in 0..100_u64 {
        let message = bytes(number, 10 * number as usize);
        until("room", || near.send_datagram(&message) != Err(DatagramError::Full));
    }
    // A stream's end that was read says that the datagrams before it have left.
    until("all of them", || near.paths().iter().map(|path| path.bytes).sum::<u64>() > 50_000);
    thread::sleep(std::time::Duration::from_millis(200));
    near.close().unwrap();
    let heard = heard.join().unwrap();
    assert!(heard.len() > 50, "on loopback few are lost: {} came", heard.len());
    for message in heard {
        assert!(message == bytes(message.len() as u64 / 10, message.len()));
    }
    assert_eq!(near.send_datagram(b"x"), Err(ConnectionError::ClosedHere.into()));
}
