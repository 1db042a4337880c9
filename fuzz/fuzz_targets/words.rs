//! What people type: tickets, relay words, keys, limits, addresses. The bytes are tried as text
//! and, so that the fuzzer gets past the checksum, as the contents of a ticket.
#![no_main]

use byway_cli::address::{Advertised, Endpoint};
use byway_cli::units::{parse_duration, parse_size};
use byway_transfer::identity::PublicKey;
use byway_transfer::limits::rate_timetable::RateTimetable;
use byway_transfer::pairing::PairingCode;
use byway_transfer::ticket::{Ticket, looks_like_ticket};
use byway_wire::relay::Word;
use byway_wire::{Prefix, checked_text};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    for prefix in ["byway1-", "byway2-"] {
        if let Ok(ticket) = checked_text::encode(prefix, bytes).parse::<Ticket>() {
            assert!(ticket.to_string().starts_with(prefix));
            assert_eq!(ticket.to_string().parse(), Ok(ticket));
        }
    }
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    if let Ok(ticket) = text.parse::<Ticket>() {
        assert!(looks_like_ticket(text.trim()));
        assert_eq!(ticket.to_string().parse(), Ok(ticket));
    }
    if let Ok(word) = text.parse::<Word>() {
        assert_eq!(word.reveal().parse(), Ok(word));
    }
    if let Ok(key) = text.parse::<PublicKey>() {
        assert_eq!(key.to_string().parse(), Ok(key));
    }
    if let Ok(prefix) = text.parse::<Prefix>() {
        assert!(prefix.contains(prefix.address()));
        assert_eq!(prefix.to_string().parse(), Ok(prefix));
    }
    if let Ok(code) = text.parse::<PairingCode>() {
        assert_eq!(code.to_string().parse(), Ok(code));
    }
    let _ = text.parse::<Endpoint>();
    if let Ok(Advertised::Name(name, _)) = text.parse() {
        assert_eq!(name.as_str().parse(), Ok(name));
    }
    let _ = text.parse::<RateTimetable>();
    let _ = parse_size(text);
    let _ = parse_duration(text);
});
