//! What a relay keeps over restarts, and the words that have names. What is read says the same once
//! written.
#![no_main]

use byway_transfer::{NamedRelayWords, SavedState};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    // Few mutations carry the checksum of what they made of the text.
    let body = text.rsplit_once("check ").map_or(text, |(body, _)| body);
    let check = &blake3::hash(body.as_bytes()).to_hex()[..8];
    for text in [text, &format!("{body}check {check}\n")] {
        if let Ok(list) = text.parse::<NamedRelayWords>() {
            assert_eq!(list.to_string().parse(), Ok(list));
        }
        if let Ok(mut kept) = text.parse::<SavedState>() {
            assert_eq!(kept.to_string().parse(), Ok(kept.clone()));
            if let Some(range) = kept.range_of(&[7; 32]) {
                assert!(range.number < 128);
            }
            assert_eq!(kept.to_string().parse(), Ok(kept));
        }
    }
});
