//! What stands first in a HELLO, of senders, of forwards and of applications, and the records that
//! two applications say to each other. However records are cut into pieces, the same comes of them.
#![no_main]

use byway::control_records::{ControlRecord, RECORD_MAX, Records};
use byway_transfer::FirstMessage;
use libfuzzer_sys::fuzz_target;

/// The records that come in pieces of this size, and whether all of it makes sense.
fn heard(bytes: &[u8], piece: usize) -> (Vec<ControlRecord>, bool) {
    let (mut records, mut heard) = (Records::default(), Vec::new());
    let sense = bytes.chunks(piece).all(|piece| records.take(piece, |record| heard.push(record)).is_ok());
    (heard, sense)
}

fuzz_target!(|bytes: &[u8]| {
    if let Ok(said) = FirstMessage::read(bytes) {
        let written = match &said {
            FirstMessage::Transfer(preamble) => preamble.to_bytes(),
            FirstMessage::Application(application) => application.to_bytes(),
        };
        assert!(bytes.starts_with(&written));
        assert_eq!(FirstMessage::read(&written), Ok(said));
    }
    let all = heard(bytes, usize::MAX);
    for piece in [1, 3] {
        assert_eq!(heard(bytes, piece), all);
    }
    let mut written = Vec::new();
    for record in &all.0 {
        let before = written.len();
        record.write(&mut written);
        assert!(written.len() - before <= RECORD_MAX);
    }
    assert_eq!(heard(&written, usize::MAX), (all.0, true));
});
