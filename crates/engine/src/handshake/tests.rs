//! Both sides of the handshake, and those who stand between.

use alloc::boxed::Box;
use alloc::format;
use alloc::string::String;
use alloc::vec;
use alloc::vec::Vec;
use core::net::SocketAddr;

use byway_wire::packet::{BASE_DATAGRAM, HEADER_LEN, Handshake, RefuseReason};
use byway_wire::{ConnectionId, Duration, Instant, PathId, Writer};
use proptest::prelude::*;

use super::noise::{MESSAGE_1_OVERHEAD, Noise};
use super::*;
use crate::seal::{Opener, Sealer, Secret, Suite, Suites};

const NOW: Instant = Instant::from_millis(123_456);
/// Bytes before the Noise message of a HELLO: first byte, version, reply id, cookie length (no
/// cookie), and length.
const HELLO_FIXED: usize = 13;

fn remote() -> SocketAddr {
    SocketAddr::from(([192, 0, 2, 1], 4433))
}

fn alice() -> Identity {
    Identity::from_secret([0xa1; 32])
}

fn bob() -> Identity {
    Identity::from_secret([0xb0; 32])
}

fn begin(payload: &[u8]) -> Initiator {
    Initiator::new(&alice(), bob().public(), payload, Suites::SECURE, [1; 32]).unwrap()
}

fn answerer() -> Responder {
    Responder::new(bob(), Suites::SECURE, [2; 16], [3; 32])
}

fn reply(answer: HelloResponse) -> (Vec<u8>, Box<Established>) {
    match answer {
        HelloResponse::Reply { bytes, established, .. } => (bytes, established),
        other => panic!("{other:?}"),
    }
}

fn hear(initiator: &mut Initiator, bytes: &[u8]) -> Result<HandshakeProgress, HandshakeError> {
    initiator.on_packet(&Handshake::read(bytes).expect("well formed"))
}

fn established(progress: Result<HandshakeProgress, HandshakeError>) -> Box<Established> {
    match progress {
        Ok(HandshakeProgress::Established(established)) => established,
        other => panic!("{other:?}"),
    }
}

/// Whether `opener` opens a packet that `sealer` sealed.
fn connects(sealer: &mut Sealer, opener: &mut Opener) -> bool {
    let mut packet = [0; 64];
    let epoch = sealer.epoch(NOW);
    sealer.seal(PathId(3), 5, &mut packet, HEADER_LEN).unwrap();
    opener.open(NOW, PathId(3), 5, epoch, &mut packet, HEADER_LEN).is_ok()
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[test]
fn strangers_become_a_connection() {
    let mut initiator = begin(b"a permission");
    let hello = initiator.hello();
    assert_eq!(hello.len(), BASE_DATAGRAM);
    let answer = answerer().on_hello(NOW, remote(), &hello, false, b"parameters");
    let HelloResponse::Reply { bytes, established: mut theirs, digest: seen, validated } = answer else {
        panic!("{answer:?}")
    };
    assert_eq!((digest(&hello), validated), (Some(seen), false));
    assert!(bytes.len() <= hello.len());
    let mut ours = established(hear(&mut initiator, &bytes));

    assert_eq!((ours.peer, theirs.peer), (bob().public(), alice().public()));
    assert_eq!(
        (ours.payload.as_slice(), theirs.payload.as_slice()),
        (&b"parameters"[..], &b"a permission"[..])
    );
    assert_eq!((ours.suite, theirs.suite), (Suite::Aes256Gcm, Suite::Aes256Gcm));
    assert_eq!((ours.send_ids, ours.receive_ids), (theirs.receive_ids, theirs.send_ids));
    assert_ne!(ours.send_ids, ours.receive_ids);
    let printed = format!("Established {{ peer: {:?}, suite: Aes256Gcm, .. }}", bob().public());
    assert_eq!(format!("{ours:?}"), printed);
    assert!(connects(&mut ours.sealer, &mut theirs.opener));
    assert!(connects(&mut theirs.sealer, &mut ours.opener));
    assert!(!connects(&mut ours.sealer, &mut ours.opener), "the directions share no key");

    assert_eq!(hear(&mut initiator, &bytes).unwrap_err(), HandshakeError::Complete);
}

#[test]
fn payloads_travel_unreadable() {
    let secret = [0x77; 40];
    let hello = begin(&secret).hello();
    let (bytes, _) = reply(answerer().on_hello(NOW, remote(), &hello, false, &secret));
    assert!(!hello.windows(8).any(|window| window == &secret[..8]));
    assert!(!bytes.windows(8).any(|window| window == &secret[..8]));
    assert!(
        !hello.windows(32).any(|window| window == alice().public().0),
        "who asks is nobody else's business"
    );
}

/// Freezes the handshake: the messages of two peers of one version, and the resulting keys.
#[test]
fn the_same_seed_gives_the_same_bytes() {
    let run = || {
        let mut initiator = begin(b"hello");
        let hello = initiator.hello();
        let (bytes, theirs) = reply(answerer().on_hello(NOW, remote(), &hello, false, b"reply"));
        let ours = established(hear(&mut initiator, &bytes));
        [hello, bytes, theirs.send_ids.to_vec(), ours.send_ids.to_vec()].concat()
    };
    assert_eq!(run(), run());
    assert_eq!(
        hex(blake3::hash(&run()).as_bytes()),
        "933ed02cdb8f943e6845aa8c817578ab23a4f948de10513685e30510f504a6a2"
    );
}

#[test]
fn another_seed_or_text_or_peer_gives_another_ephemeral_key() {
    let ephemeral = |initiator: Initiator| initiator.hello()[HELLO_FIXED..HELLO_FIXED + 32].to_vec();
    let make = |peer: &Identity, payload: &[u8], suites, seed| {
        ephemeral(Initiator::new(&alice(), peer.public(), payload, suites, [seed; 32]).unwrap())
    };
    let all = [
        make(&bob(), b"hello", Suites::SECURE, 1),
        make(&bob(), b"hello", Suites::SECURE, 2),
        make(&bob(), b"hallo", Suites::SECURE, 1),
        make(&bob(), b"hello", Suites::only(Suite::Aes256Gcm), 1),
        make(&alice(), b"hello", Suites::SECURE, 1),
    ];
    for (i, one) in all.iter().enumerate() {
        assert!(all.iter().skip(i + 1).all(|other| one != other));
    }
    assert_eq!(ephemeral(begin(b"hello")), all[0]);
}

#[test]
fn the_largest_payloads_fit() {
    let full = [9; MAX_PAYLOAD];
    let mut initiator = begin(&full);
    let mut responder = answerer();
    let HelloResponse::Retry(retry) = responder.on_hello(NOW, remote(), &initiator.hello(), true, &full)
    else {
        panic!("no retry")
    };
    assert!(matches!(hear(&mut initiator, &retry), Ok(HandshakeProgress::SendHello)));
    let hello = initiator.hello();
    assert_eq!(hello.len(), BASE_DATAGRAM);
    let (bytes, theirs) = reply(responder.on_hello(NOW, remote(), &hello, true, &full));
    assert!(bytes.len() <= BASE_DATAGRAM);
    assert_eq!(theirs.payload, full);
    assert_eq!(established(hear(&mut initiator, &bytes)).payload, full);

    let error = Initiator::new(&alice(), bob().public(), &[0; MAX_PAYLOAD + 1], Suites::SECURE, [1; 32]);
    assert_eq!(error.unwrap_err(), HandshakeError::PayloadTooLong);
    let answer = responder.on_hello(NOW, remote(), &hello, true, &[0; MAX_PAYLOAD + 1]);
    assert!(matches!(answer, HelloResponse::Ignore));
}

#[test]
fn a_hello_for_another_key_is_refused_but_the_attempt_goes_on() {
    let mut initiator = begin(b"");
    let mut stranger = Responder::new(Identity::from_secret([0xcc; 32]), Suites::SECURE, [2; 16], [3; 32]);
    let answer = stranger.on_hello(NOW, remote(), &initiator.hello(), false, b"");
    let HelloResponse::Refuse { bytes, reason: RefuseReason::WrongKey } = answer else {
        panic!("{answer:?}")
    };
    assert!(matches!(hear(&mut initiator, &bytes), Ok(HandshakeProgress::Refused(RefuseReason::WrongKey))));
    let (bytes, _) = reply(answerer().on_hello(NOW, remote(), &initiator.hello(), false, b""));
    established(hear(&mut initiator, &bytes));
}

#[test]
fn a_hello_changed_in_any_byte_makes_no_session() {
    let hello = begin(b"payload").hello();
    let end = HELLO_FIXED + MESSAGE_1_OVERHEAD + 1 + b"payload".len();
    let mut responder = answerer();
    for at in 0..end {
        for flip in [0x01, 0x80] {
            let mut changed = hello.clone();
            changed[at] ^= flip;
            let answer = responder.on_hello(NOW, remote(), &changed, false, b"");
            assert!(
                matches!(answer, HelloResponse::Refuse { .. } | HelloResponse::Ignore),
                "byte {at}: {answer:?}"
            );
        }
    }
    // Padding is nobody's: it is the same HELLO.
    let mut changed = hello.clone();
    changed[end] ^= 1;
    assert_eq!(digest(&changed), digest(&hello));
    reply(responder.on_hello(NOW, remote(), &changed, false, b""));
}

#[test]
fn forged_replies_do_not_end_the_attempt() {
    let mut initiator = begin(b"");
    let hello = initiator.hello();
    let (genuine, mut theirs) = reply(answerer().on_hello(NOW, remote(), &hello, false, b"genuine"));
    for at in 2..genuine.len() {
        let mut changed = genuine.clone();
        changed[at] ^= 0x10;
        let error = hear(&mut initiator, &changed).unwrap_err();
        let expected = if at < 10 { HandshakeError::NotOurs } else { HandshakeError::Forged };
        assert_eq!(error, expected, "byte {at}");
    }
    for length in 10..genuine.len() {
        assert_eq!(hear(&mut initiator, &genuine[..length]).unwrap_err(), HandshakeError::Forged);
    }
    // One that says what it should, from somebody with another key.
    let reply = initiator.reply_id();
    let mut impostor = Noise::initiator(&alice(), alice().public(), reply, Secret::new([5; 32])).unwrap();
    let mut answer = Noise::responder(&alice(), reply, Secret::new([6; 32])).unwrap();
    answer.read(&impostor.write(b"").unwrap()).unwrap();
    let message = answer.write(&[Suite::Aes256Gcm.to_byte()]).unwrap();
    for noise in [message.as_slice(), &[0; 48], &[0xff; 1100], &genuine[..32], &[]] {
        let forged = Handshake::Reply { reply, noise };
        assert_eq!(initiator.on_packet(&forged).unwrap_err(), HandshakeError::Forged);
    }
    let mut ours = established(hear(&mut initiator, &genuine));
    assert_eq!(ours.payload, b"genuine");
    assert!(connects(&mut ours.sealer, &mut theirs.opener));
    assert!(connects(&mut theirs.sealer, &mut ours.opener));
}

#[test]
fn floods_of_junk_do_not_end_the_attempt() {
    let mut initiator = begin(b"");
    let reply_id = initiator.reply_id();
    let mut at_once = 0;
    for i in 0..1000u32 {
        let retry = Handshake::Retry { reply: reply_id, cookie: &i.to_be_bytes() };
        match initiator.on_packet(&retry) {
            Ok(HandshakeProgress::SendHello) => at_once += 1,
            Ok(HandshakeProgress::Waiting) => {}
            other => panic!("{other:?}"),
        }
        let refuse = refuse(reply_id, RefuseReason::Full);
        assert!(matches!(hear(&mut initiator, &refuse), Ok(HandshakeProgress::Refused(RefuseReason::Full))));
    }
    assert!((1..100).contains(&at_once), "{at_once}");
    // Cookies that are empty, or leave no room for the message, are none.
    for cookie in [&[][..], &[0; 255]] {
        let mut full = begin(&[0; MAX_PAYLOAD]);
        let before = full.hello();
        let retry = Handshake::Retry { reply: full.reply_id(), cookie };
        assert_eq!(full.on_packet(&retry).unwrap_err(), HandshakeError::Forged);
        assert_eq!(full.hello(), before);
    }
    let hello = initiator.hello();
    let echo = initiator.on_packet(&Handshake::read(&hello).unwrap());
    assert_eq!(echo.unwrap_err(), HandshakeError::NotOurs);
    let stranger = Handshake::Refuse { reply: ConnectionId([0; 8]), reason: RefuseReason::Full };
    assert_eq!(initiator.on_packet(&stranger).unwrap_err(), HandshakeError::NotOurs);

    let mut responder = answerer();
    let HelloResponse::Retry(retry) = responder.on_hello(NOW, remote(), &hello, true, b"") else {
        panic!("no retry")
    };
    assert!(matches!(hear(&mut initiator, &retry), Ok(HandshakeProgress::Waiting)));
    let (bytes, _) = reply(responder.on_hello(NOW, remote(), &initiator.hello(), true, b""));
    established(hear(&mut initiator, &bytes));
}

/// A HELLO with the cookie that `responder` gives to `remote` at `NOW`.
fn with_cookie(responder: &mut Responder, remote: SocketAddr) -> (Initiator, Vec<u8>) {
    let mut initiator = begin(b"");
    let answer = responder.on_hello(NOW, remote, &initiator.hello(), true, b"");
    let HelloResponse::Retry(retry) = answer else { panic!("{answer:?}") };
    assert!(retry.len() <= BASE_DATAGRAM);
    assert!(matches!(hear(&mut initiator, &retry), Ok(HandshakeProgress::SendHello)));
    let hello = initiator.hello();
    (initiator, hello)
}

#[test]
fn a_cookie_is_good_for_its_address_and_time_only() {
    let mut responder = answerer();
    let (_, hello) = with_cookie(&mut responder, remote());
    assert_eq!(digest(&hello), digest(&begin(b"").hello()), "the cookie makes no other HELLO of it");
    let mut ask = |now, from: SocketAddr, hello: &[u8]| match responder.on_hello(now, from, hello, true, b"")
    {
        HelloResponse::Reply { validated, .. } => validated,
        HelloResponse::Retry(_) => false,
        other => panic!("{other:?}"),
    };
    assert!(ask(NOW, remote(), &hello));
    assert!(ask(NOW, "[::ffff:192.0.2.1]:4433".parse().unwrap(), &hello), "the same address");
    assert!(!ask(NOW, "192.0.2.1:4434".parse().unwrap(), &hello));
    assert!(!ask(NOW, "192.0.2.2:4433".parse().unwrap(), &hello));
    assert!(!ask(NOW, "[2001:db8::1]:4433".parse().unwrap(), &hello));
    assert!(ask(NOW + COOKIE_LIFETIME / 2, remote(), &hello));
    assert!(!ask(NOW + COOKIE_LIFETIME, remote(), &hello));
    assert!(!ask(NOW - COOKIE_LIFETIME, remote(), &hello), "from the future");
    for at in 0..COOKIE_LEN {
        let mut forged = hello.clone();
        forged[11 + at] ^= 4;
        assert!(!ask(NOW, remote(), &forged), "cookie byte {at}");
    }
    let mut other = Responder::new(bob(), Suites::SECURE, [7; 16], [3; 32]);
    assert!(matches!(other.on_hello(NOW, remote(), &hello, true, b""), HelloResponse::Retry(_)));
}

#[test]
fn a_cookie_that_nobody_demanded_still_counts() {
    let mut responder = answerer();
    let (_, hello) = with_cookie(&mut responder, remote());
    let answer = responder.on_hello(NOW + Duration::from_millis(1), remote(), &hello, false, b"");
    assert!(matches!(answer, HelloResponse::Reply { validated: true, .. }), "{answer:?}");
    let mut forged = hello;
    forged[11] ^= 4;
    let answer = responder.on_hello(NOW, remote(), &forged, false, b"");
    assert!(matches!(answer, HelloResponse::Reply { validated: false, .. }), "{answer:?}");
}

#[test]
fn a_replayed_hello_meets_another_session_that_stays_unconfirmed() {
    let mut initiator = begin(b"");
    let hello = initiator.hello();
    let mut responder = answerer();
    let (first, mut genuine) = reply(responder.on_hello(NOW, remote(), &hello, false, b""));
    let (second, mut replayed) = reply(responder.on_hello(NOW, remote(), &hello, false, b""));
    assert_ne!(first, second);
    assert_ne!((genuine.send_ids, genuine.receive_ids), (replayed.send_ids, replayed.receive_ids));
    let mut ours = established(hear(&mut initiator, &first));
    assert!(!connects(&mut ours.sealer, &mut replayed.opener));
    assert!(!connects(&mut genuine.sealer, &mut replayed.opener));
    assert!(connects(&mut ours.sealer, &mut genuine.opener));
}

#[test]
fn suites_are_negotiated_and_null_only_by_both() {
    let meet = |offered, allowed| {
        let mut initiator = Initiator::new(&alice(), bob().public(), b"", offered, [1; 32]).unwrap();
        let mut responder = Responder::new(bob(), allowed, [2; 16], [3; 32]);
        match responder.on_hello(NOW, remote(), &initiator.hello(), false, b"") {
            HelloResponse::Reply { bytes, established: mut theirs, .. } => {
                let mut ours = established(hear(&mut initiator, &bytes));
                assert_eq!(ours.suite, theirs.suite);
                assert!(connects(&mut ours.sealer, &mut theirs.opener));
                assert!(connects(&mut theirs.sealer, &mut ours.opener));
                Some(ours.suite)
            }
            HelloResponse::Refuse { reason: RefuseReason::Version, .. } => None,
            other => panic!("{other:?}"),
        }
    };
    let (fast, slow, null) =
        (Suites::for_processor(true), Suites::for_processor(false), Suites::INSECURE_SIMULATION);
    assert_eq!(meet(fast, fast), Some(Suite::Aes256Gcm));
    assert_eq!(meet(fast, slow), Some(Suite::ChaCha20Poly1305));
    assert_eq!(meet(slow, fast), Some(Suite::ChaCha20Poly1305));
    assert_eq!(meet(null, null), Some(Suite::Null));
    assert_eq!(meet(fast.with(Suite::Null), null), Some(Suite::Null));
    assert_eq!(meet(null, fast), None);
    assert_eq!(meet(fast, null), None);
    assert_eq!(meet(fast.with(Suite::Null), fast), Some(Suite::Aes256Gcm));
}

#[test]
fn a_suite_that_was_not_offered_is_not_taken() {
    for said in [&[4][..], &[1 | 2], &[0], &[8], &[]] {
        let mut initiator = begin(b"");
        let hello = initiator.hello();
        let Ok(Handshake::Hello { reply, noise, .. }) = Handshake::read(&hello) else { panic!("no hello") };
        let mut peer = Noise::responder(&bob(), reply, Secret::new([6; 32])).unwrap();
        peer.read(noise).unwrap();
        let message = peer.write(said).unwrap();
        let progress = initiator.on_packet(&Handshake::Reply { reply, noise: &message });
        assert_eq!(progress.unwrap_err(), HandshakeError::Protocol, "{said:?}");
    }
}

#[test]
fn only_full_hellos_of_this_version_are_answered() {
    let hello = begin(b"").hello();
    let mut responder = answerer();
    assert!(matches!(responder.on_hello(NOW, remote(), &hello[..1199], false, b""), HelloResponse::Ignore));
    let mut newer = hello.clone();
    newer[1] = 2;
    let answer = responder.on_hello(NOW, remote(), &newer, true, b"");
    assert!(matches!(answer, HelloResponse::Refuse { reason: RefuseReason::Version, .. }), "{answer:?}");
    assert_eq!(digest(&newer), None);
    for kind in [0x40, 0x51, 0x52, 0x53] {
        let mut other = hello.clone();
        other[0] = kind;
        assert!(matches!(responder.on_hello(NOW, remote(), &other, false, b""), HelloResponse::Ignore));
    }
    let mut empty = vec![0; BASE_DATAGRAM];
    let reply = ConnectionId([1; 8]);
    Handshake::Hello { reply, cookie: &[], noise: &[0; 10] }.write(&mut Writer::new(&mut empty));
    assert!(matches!(responder.on_hello(NOW, remote(), &empty, false, b""), HelloResponse::Ignore));
}

/// RFC 7748 section 6.1.
#[test]
fn identities_are_x25519_keys() {
    let secret = *b"\x77\x07\x6d\x0a\x73\x18\xa5\x7d\x3c\x16\xc1\x72\x51\xb2\x66\x45\
                    \xdf\x4c\x2f\x87\xeb\xc0\x99\x2a\xb1\x77\xfb\xa5\x1d\xb9\x2c\x2a";
    let identity = Identity::from_secret(secret);
    let public = "8520f0098930a754748b7ddcb43ef75a0dbf3a0d26381af4eba4a98eaa9b4e6a";
    assert_eq!(format!("{}", identity.public()), public);
    assert_eq!(format!("{:?}", identity.public()), "8520f009..");
    assert_eq!(format!("{identity:?}"), "Identity { public: 8520f009.., .. }");
}

/// Points of small order, with which every secret agrees on zero (0, 1, and p - 1, p, p + 1).
#[test]
fn keys_that_agree_on_nothing_secret_are_refused() {
    let mut points = [[0; 32], [0; 32], [0xff; 32], [0xff; 32], [0xff; 32]];
    points[1][0] = 1;
    for (point, lowest) in points[2..].iter_mut().zip([0xec, 0xed, 0xee]) {
        (point[0], point[31]) = (lowest, 0x7f);
    }
    for point in points {
        let attempt = Initiator::new(&alice(), PublicKey(point), b"", Suites::SECURE, [1; 32]);
        assert_eq!(attempt.unwrap_err(), HandshakeError::BadKey);
        let mut initiator = begin(b"");
        let noise = [point.as_slice(), &[0; 17]].concat();
        let forged = Handshake::Reply { reply: initiator.reply_id(), noise: &noise };
        assert_eq!(initiator.on_packet(&forged).unwrap_err(), HandshakeError::Forged);
    }
}

proptest! {
    #[test]
    fn garbage_is_only_garbage(garbage in prop::collection::vec(any::<u8>(), 0..1300), kind in 0x50..0x54u8) {
        let (mut initiator, mut responder) = (begin(b""), answerer());
        let mut datagram = vec![kind, byway_wire::packet::WIRE_VERSION];
        datagram.extend_from_slice(&initiator.reply_id().0);
        datagram.extend_from_slice(&garbage);
        let answer = responder.on_hello(NOW, remote(), &datagram, false, b"");
        prop_assert!(matches!(answer, HelloResponse::Ignore | HelloResponse::Refuse { .. }), "{:?}", answer);
        let _ = digest(&datagram);
        if let Ok(packet) = Handshake::read(&datagram) {
            let progress = initiator.on_packet(&packet);
            prop_assert!(!matches!(progress, Ok(HandshakeProgress::Established(_))), "{:?}", progress);
        }
    }
}
