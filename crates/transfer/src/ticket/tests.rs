use super::*;
use byway_wire::relay::{
    Consent, GRANT_EPOCH_SECONDS, Grant, Minute, QuotaClass, RateClass, RelayKey, Scope, Terms,
};
use proptest::prelude::*;
use std::net::IpAddr;

fn relay_word(id: u32, relays: Vec<SocketAddr>) -> relay::Word {
    let expiry = Minute::from_unix(GRANT_EPOCH_SECONDS + 60);
    let terms = Terms { expiry, rate: RateClass::UNLIMITED, quota: QuotaClass::UNLIMITED, scope: Scope::ALL };
    RelayKey::new(&[7; 32]).issue(Grant { id, terms }, relays).unwrap()
}

fn sample() -> Ticket {
    Ticket {
        key: PublicKey([0x11; 32]),
        permission: Secret::new([0x22; 16]),
        addresses: vec!["192.0.2.7:4747".parse().unwrap(), "[2001:db8::7]:4747".parse().unwrap()],
        relays: vec![GreetedRelay {
            word: relay_word(42, vec!["198.51.100.9:4748".parse().unwrap()]),
            address: "203.0.113.5:61000".parse().unwrap(),
            consent: Consent { expiry: 0x3334, tag: 0x3536_3738_393a_3b3c },
        }],
    }
}

/// What the word says, before its checksum.
fn payload(text: &str) -> Vec<u8> {
    checked_text::decode(TICKET_PREFIX, text).unwrap()
}

#[test]
fn a_ticket_in_hex() {
    let word = sample().relays[0].word.to_bytes();
    let expected = [
        &[0x11; 32][..],
        &[0x22; 16],
        b"\x02",
        b"\x04\xc0\x00\x02\x07\x12\x8b",
        b"\x10\x20\x01\x0d\xb8\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x07\x12\x8b",
        b"\x01",
        b"\x24",
        &word,
        b"\x04\xcb\x00\x71\x05\xee\x48",
        b"\x33\x34\x35\x36\x37\x38\x39\x3a\x3b\x3c",
    ]
    .concat();
    assert_eq!(payload(&sample().to_string()), expected);
    assert_eq!(sample().to_string().parse(), Ok(sample()));
}

#[test]
fn each_way_to_be_wrong_has_its_own_sentence() {
    let ticket = sample().to_string();
    let read = |text: &str| text.parse::<Ticket>().unwrap_err();
    assert_eq!(read(&ticket.replacen("ceir", "ceis", 1)), TicketError::Mistyped);
    assert_eq!(read(&format!("{ticket}aa")), TicketError::Mistyped);
    assert_eq!(read(&ticket.replacen("ceir", "ce1r", 1)), TicketError::Character { found: '1', at: 10 });
    assert_eq!(read(&ticket.replacen('1', "2", 1)), TicketError::OtherVersion(2));
    assert_eq!(read(&sample().relays[0].word.reveal()), TicketError::OtherKind("relay word"));
    assert_eq!(read(&sample().key.to_string()), TicketError::OtherKind("public key"));
    assert_eq!(read("photos"), TicketError::Unknown);
    assert_eq!(read(""), TicketError::Unknown);
}

#[test]
fn every_cut_is_noticed_as_a_cut() {
    let ticket = sample().to_string();
    for end in TICKET_PREFIX.len()..ticket.len() {
        assert_eq!(ticket[..end].parse::<Ticket>(), Err(TicketError::Truncated), "cut after {end}");
    }
}

#[test]
fn contents_that_byway_never_writes_are_refused() {
    let good = payload(&sample().to_string());
    let malformed = |bytes: &[u8]| match checked_text::encode(TICKET_PREFIX, bytes).parse::<Ticket>() {
        Err(TicketError::Malformed(reason)) => reason,
        other => panic!("{other:?}"),
    };
    assert_eq!(malformed(&[&good[..], &[0]].concat()), DecodeError::Range("length"));
    assert_eq!(malformed(&[&good[..48], &[17]].concat()), DecodeError::Range("number of entries"));
    assert_eq!(malformed(&[&good[..48], &[0, 1, 3, 1, 0, 0]].concat()), DecodeError::Range("relay word"));
    assert_eq!(malformed(&good[..40]), DecodeError::Truncated);
}

#[test]
fn a_ticket_shows_no_secret() {
    let shown = format!("{:?}", sample());
    assert_eq!(shown.matches("[redacted]").count(), 1);
    let secret = &sample().relays[0].word.to_bytes()[12..16];
    assert!(
        !shown.contains("34, 34") && !shown.contains(&format!("{}, {}", secret[0], secret[1])),
        "{shown}"
    );
}

#[test]
fn only_words_that_mean_to_be_tickets_look_like_one() {
    for (text, yes) in [("byway1-abc", true), ("BYWAY2-", true), ("byway-relay-a", false), ("byway", false)] {
        assert_eq!(looks_like_ticket(text), yes, "{text}");
    }
}

fn address() -> impl Strategy<Value = SocketAddr> {
    (any::<IpAddr>(), 1u16..).prop_map(SocketAddr::from).prop_filter("usable", |a| !a.ip().is_unspecified())
}

prop_compose! {
    fn greeted()(id in 0..1u32 << 31, relays in prop::collection::vec(address(), 1..=relay::MAX_ADDRESSES), address in address(),
                 expiry: u16, tag: u64) -> GreetedRelay {
        GreetedRelay { word: relay_word(id, relays), address, consent: Consent { expiry, tag } }
    }
}

proptest! {
    #[test]
    fn round_trip(key: [u8; 32], permission: [u8; 16], addresses in prop::collection::vec(address(), 0..=MAX_ENTRIES),
                  relays in prop::collection::vec(greeted(), 0..=MAX_ENTRIES)) {
        let ticket = Ticket { key: PublicKey(key), permission: Secret::new(permission), addresses, relays };
        let text = ticket.to_string();
        prop_assert!(text.len() <= checked_text::MAX_LEN);
        prop_assert_eq!(text.parse(), Ok(ticket));
    }

    #[test]
    fn garbage_never_panics(text in "\\PC{0,200}", bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        let _ = text.parse::<Ticket>();
        let _ = checked_text::encode(TICKET_PREFIX, &bytes).parse::<Ticket>();
    }
}
