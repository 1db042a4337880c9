//! What the two programs of a transfer tell each other beside the files: names, records, reports,
//! limits of a handshake, and first messages. A stream of reports says the same however it is cut
//! into pieces.
#![no_main]

use byway_engine::config::Params;
use byway_engine::handshake::{Identity, Initiator, Responder};
use byway_engine::seal::Suites;
use byway_files::manifest::RecordCodec;
use byway_files::{MAX_PATH_LEN, Reports, check_name};
use byway_wire::Instant;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    if check_name(bytes).is_ok() {
        assert!(!bytes.is_empty() && bytes.len() <= MAX_PATH_LEN && !bytes.contains(&0));
        let mut components = bytes.split(|byte| *byte == b'/');
        assert!(components.all(|component| !matches!(component, b"" | b"." | b"..")));
    }
    let _ = RecordCodec::default().decode(bytes);

    let whole = Reports::new().feed(bytes);
    let (mut pieces, mut all) = (Reports::new(), Ok(Vec::new()));
    for piece in bytes.chunks(1 + bytes.first().map_or(0, |first| usize::from(first % 7))) {
        match (pieces.feed(piece), &mut all) {
            (Ok(reports), Ok(all)) => all.extend(reports),
            (Err(error), _) => all = Err(error),
            (Ok(_), Err(_)) => panic!("it goes on after an error"),
        }
    }
    // What came before an error is given out in pieces, and withheld at once.
    match (whole, all) {
        (Ok(whole), Ok(all)) => assert_eq!(whole, all),
        (Err(whole), Err(all)) => assert_eq!(whole, all),
        (whole, all) => panic!("{whole:?} at once, {all:?} in pieces"),
    }

    if let Ok((params, application)) = Params::read(bytes) {
        let again = params.payload(application);
        assert_eq!(Params::read(&again), Ok((params, application)));
    }

    // A first message that was made for this host, changed. The curve is slow: only for input that
    // asks for it.
    let Some((0xfe, bytes)) = bytes.split_first() else { return };
    let identity = Identity::from_secret([2; 32]);
    let (suites, now) = (Suites::INSECURE_SIMULATION, Instant::from_millis(1));
    let mine = Identity::from_secret([1; 32]);
    let initiator = Initiator::new(&mine, identity.public(), b"hello", suites, [3; 32]).expect("a handshake");
    let mut hello = initiator.hello();
    for change in bytes.chunks_exact(3).take(40) {
        let at = usize::from(u16::from_be_bytes([change[0], change[1]])) % hello.len();
        hello[at] ^= change[2];
    }
    let mut responder = Responder::new(identity, suites, [4; 16], [5; 32]);
    let from = "192.0.2.1:1".parse().expect("an address");
    for demand_cookie in [true, false] {
        let _ = responder.on_hello(now, from, &hello, demand_cookie, b"greeting");
    }
});
