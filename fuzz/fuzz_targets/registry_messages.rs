//! What is said to a registry and by it, the records that it is said in, and registry words.
#![no_main]

use byway_registry::message::{Answer, MAX_RELAYS, MAX_REQUEST_LEN, Request};
use byway_registry::stream_records::{Records, append};
use byway_registry::word::{RegistryWord, WORD_PREFIX};
use byway_wire::checked_text;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    if let Ok(request) = Request::read(bytes) {
        assert_eq!(Request::read(&request.to_bytes()), Ok(request));
    }
    if let Ok(answer) = Answer::read(bytes) {
        if let Answer::List(list) = &answer {
            assert!(list.relays.len() <= MAX_RELAYS);
        }
        assert_eq!(Answer::read(&answer.to_bytes()), Ok(answer));
    }
    // The first byte says into what pieces the rest is cut.
    if let Some((piece, stream)) = bytes.split_first() {
        let (mut records, mut whole) = (Records::new(MAX_REQUEST_LEN), Records::new(MAX_REQUEST_LEN));
        whole.push(stream);
        let (mut found, mut expected) = (Vec::new(), Vec::new());
        while let Ok(Some(record)) = whole.take() {
            append(&mut expected, record);
        }
        for part in stream.chunks(usize::from(*piece) + 1) {
            records.push(part);
            while let Ok(Some(record)) = records.take() {
                append(&mut found, record);
            }
        }
        assert_eq!(found, expected);
    }
    if let Ok(word) = checked_text::encode(WORD_PREFIX, bytes).parse::<RegistryWord>() {
        assert_eq!(word.reveal().parse(), Ok(word));
    }
    if let Ok(text) = std::str::from_utf8(bytes)
        && let Ok(word) = text.parse::<RegistryWord>()
    {
        assert_eq!(word.reveal().parse(), Ok(word));
    }
});
