use super::*;
use proptest::prelude::*;
use std::net::IpAddr;

fn sample() -> Ticket {
    Ticket {
        key: PublicKey([0x11; 32]),
        permission: Secret::new([0x22; 16]),
        addresses: vec!["192.0.2.7:4747".parse().unwrap(), "[2001:db8::7]:4747".parse().unwrap()],
        relays: vec![RelayWord {
            address: "198.51.100.9:4748".parse().unwrap(),
            opaque: Secret::new(vec![0x33; 5]),
        }],
    }
}

/// What the word says, before its checksum.
fn payload(prefix: &str, text: &str) -> Vec<u8> {
    word::decode(prefix, text).unwrap()
}

#[test]
fn a_ticket_in_hex() {
    let expected = [
        &[0x11; 32][..],
        &[0x22; 16],
        b"\x02",
        b"\x04\xc0\x00\x02\x07\x12\x8b",
        b"\x10\x20\x01\x0d\xb8\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x07\x12\x8b",
        b"\x01",
        b"\x04\xc6\x33\x64\x09\x12\x8c\x05\x33\x33\x33\x33\x33",
    ]
    .concat();
    assert_eq!(payload(TICKET, &sample().to_string()), expected);
    assert_eq!(sample().to_string().parse(), Ok(sample()));
}

#[test]
fn a_relay_word_in_hex() {
    let relay = sample().relays.remove(0);
    assert_eq!(relay.to_string(), "byway-relay1-atddgzajckgakmztgmztgj6cfppq");
    assert_eq!(payload(RELAY, &relay.to_string()), b"\x04\xc6\x33\x64\x09\x12\x8c\x05\x33\x33\x33\x33\x33");
}

#[test]
fn each_way_to_be_wrong_has_its_own_sentence() {
    let ticket = sample().to_string();
    let wanted = "ticket";
    let read = |text: &str| text.parse::<Ticket>().unwrap_err();
    assert_eq!(read(&ticket.replacen("ceir", "ceis", 1)), TicketError::Mistyped { wanted });
    assert_eq!(read(&format!("{ticket}a")), TicketError::Mistyped { wanted });
    assert_eq!(
        read(&ticket.replacen("ceir", "ce1r", 1)),
        TicketError::Character { wanted, found: '1', at: 10 }
    );
    assert_eq!(read(&ticket.replacen('1', "2", 1)), TicketError::OtherVersion { wanted, version: 2 });
    assert!(matches!(
        read(&sample().relays[0].to_string()),
        TicketError::OtherKind { found: "relay word", .. }
    ));
    assert!(matches!(read(&sample().key.to_string()), TicketError::OtherKind { found: "public key", .. }));
    assert!(matches!(read("photos"), TicketError::Unknown { .. }));
    assert!(matches!(read(""), TicketError::Unknown { .. }));
    let swapped = ticket.parse::<RelayWord>().unwrap_err();
    assert_eq!(
        swapped.to_string(),
        "this is a ticket, not a relay word: `byway relay` prints the word of a relay"
    );
}

#[test]
fn every_cut_is_noticed_as_a_cut() {
    let ticket = sample().to_string();
    for end in TICKET.len()..ticket.len() {
        assert_eq!(
            ticket[..end].parse::<Ticket>(),
            Err(TicketError::Truncated { wanted: "ticket" }),
            "cut after {end}"
        );
    }
}

#[test]
fn contents_that_byway_never_writes_are_refused() {
    let mut bytes = payload(TICKET, &sample().to_string());
    bytes.push(0);
    let text = word::encode(TICKET, &bytes);
    assert!(matches!(text.parse::<Ticket>(), Err(TicketError::Malformed { .. })));
    let mut crowded = bytes[..48].to_vec();
    crowded.push(17);
    let text = word::encode(TICKET, &crowded);
    assert!(matches!(text.parse::<Ticket>(), Err(TicketError::Malformed { .. })));
}

#[test]
fn a_ticket_shows_no_secret() {
    let shown = format!("{:?}", sample());
    assert_eq!(shown.matches("[redacted]").count(), 2);
    assert!(!shown.contains("34") && !shown.contains("51, 51"), "{shown}");
}

#[test]
fn only_words_that_mean_to_be_tickets_look_like_one() {
    for (text, yes) in [("byway1-abc", true), ("BYWAY2-", true), ("byway-relay1-a", false), ("byway", false)]
    {
        assert_eq!(looks_like_ticket(text), yes, "{text}");
    }
}

fn address() -> impl Strategy<Value = SocketAddr> {
    (any::<IpAddr>(), any::<u16>()).prop_map(SocketAddr::from)
}

proptest! {
    #[test]
    fn round_trip(key: [u8; 32], permission: [u8; 16], addresses in prop::collection::vec(address(), 0..=MAX_ENTRIES),
                  relays in prop::collection::vec((address(), prop::collection::vec(any::<u8>(), 0..=MAX_OPAQUE)), 0..=MAX_ENTRIES)) {
        let relays = relays.into_iter().map(|(address, opaque)| RelayWord { address, opaque: Secret::new(opaque) });
        let ticket = Ticket { key: PublicKey(key), permission: Secret::new(permission), addresses, relays: relays.collect() };
        let text = ticket.to_string();
        prop_assert!(text.len() <= word::MAX_LEN);
        for relay in &ticket.relays {
            prop_assert_eq!(relay.to_string().parse(), Ok(relay.clone()));
        }
        prop_assert_eq!(text.parse(), Ok(ticket));
    }

    #[test]
    fn garbage_never_panics(text in "\\PC{0,200}", bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        let _ = text.parse::<Ticket>();
        let _ = word::encode(TICKET, &bytes).parse::<Ticket>();
        let _ = word::encode(RELAY, &bytes).parse::<RelayWord>();
    }
}
