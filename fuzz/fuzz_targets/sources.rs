//! What a source reads of its input, what source and sink say to each other, and a sink's notes.
//! However bytes are cut into pieces, the same comes of them.
#![no_main]

use byway_sources::checkpoint::Checkpoint;
use byway_sources::message::{FromSink, FromSource, Message, Messages};
use byway_sources::record_framing::{Framing, LongLines, RecordFramer};
use libfuzzer_sys::fuzz_target;

/// Bytes of the longest record here.
const MOST: usize = 64;

/// The records that come in pieces of this size, and whether all of it makes sense.
fn cut(framing: Framing, long: LongLines, bytes: &[u8], piece: usize) -> (Vec<Vec<u8>>, bool) {
    let (mut cutter, mut records) = (RecordFramer::new(framing, long, MOST), Vec::new());
    let sense =
        bytes.chunks(piece).all(|piece| cutter.push(piece, |record| records.push(record.to_vec())).is_ok());
    let sense = sense && cutter.finish(|record| records.push(record.to_vec())).is_ok();
    (records, sense)
}

/// The messages that come in pieces of this size, and whether all of it makes sense.
fn heard<M: Message>(bytes: &[u8], piece: usize) -> (Vec<M>, bool) {
    let (mut messages, mut heard) = (Messages::default(), Vec::new());
    let sense = bytes.chunks(piece).all(|piece| messages.push(piece, |message| heard.push(message)).is_ok());
    (heard, sense)
}

fn said<M: Message + PartialEq + std::fmt::Debug>(bytes: &[u8]) {
    let all = heard::<M>(bytes, usize::MAX);
    for piece in [1, 3] {
        assert_eq!(heard(bytes, piece), all);
    }
    let mut written = Vec::new();
    all.0.iter().for_each(|message| message.write(&mut written));
    assert_eq!(heard(&written, usize::MAX), (all.0, true));
}

fuzz_target!(|bytes: &[u8]| {
    let size = bytes.first().map_or(1, |byte| usize::from(*byte) % (MOST + 8) + 1);
    for (framing, long) in [
        (Framing::Lines, LongLines::Cut),
        (Framing::Lines, LongLines::Skipped),
        (Framing::Prefixed, LongLines::Cut),
        (Framing::Fixed(size), LongLines::Cut),
    ] {
        let whole = cut(framing, long, bytes, usize::MAX);
        for piece in [1, 7] {
            assert_eq!(cut(framing, long, bytes, piece), whole);
        }
        assert!(whole.0.iter().all(|record| record.len() <= MOST));
        // Of lines, long ones are cut or left out.
        assert!(framing == Framing::Lines || bytes.starts_with(&whole.0.concat()));
    }
    said::<FromSource>(bytes);
    said::<FromSink>(bytes);
    if let Some(note) = Checkpoint::read(bytes)
        && !bytes.is_empty()
    {
        let (slot, _) = note.to_slot();
        assert_eq!(Checkpoint::read(&slot), Some(note));
    }
});
