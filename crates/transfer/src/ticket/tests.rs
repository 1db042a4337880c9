use super::*;
use byway_wire::relay::{
    Consent, GRANT_EPOCH_SECONDS, Grant, Minute, QuotaClass, RateClass, RelayKey, Scope, Terms,
};
use proptest::prelude::*;

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
            reach: Some((
                "203.0.113.5:61000".parse().unwrap(),
                Consent { expiry: 0x3334, tag: 0x3536_3738_393a_3b3c },
            )),
        }],
        names: Vec::new(),
    }
}

fn named_sample() -> Ticket {
    let host = |name: &str, port| NamedAddress { name: name.parse().unwrap(), port };
    Ticket { names: vec![host("nas.example.org", 4747), host("localhost", 1)], ..sample() }
}

/// A ticket with a relay that remembers the receiver.
fn lasting() -> Ticket {
    let mut ticket = sample();
    ticket.relays[0].reach = None;
    ticket
}

/// Returns the bytes of a ticket, without the checksum.
fn payload(text: &str) -> Vec<u8> {
    checked_text::decode(TicketFormat::Fixed.prefix(), text).unwrap()
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

    let text = lasting().to_string();
    let without_reach = &expected[..expected.len() - 17];
    let expected = [without_reach, b"\x00\x00"].concat();
    assert_eq!(checked_text::decode("byway2-", &text).unwrap(), expected);
    assert_eq!(text.parse(), Ok(lasting()));
}

#[test]
fn names_follow_what_a_ticket_without_them_says() {
    let text = named_sample().to_string();
    assert!(text.starts_with("byway2-"), "{text}");
    let names = [&b"\x02"[..], b"\x0fnas.example.org\x12\x8b", b"\x09localhost\x00\x01"].concat();
    let (relays, reach) =
        payload(&sample().to_string()).split_last_chunk::<17>().map(|(a, b)| (a.to_vec(), *b)).unwrap();
    let expected = [&relays[..], &[1], &reach, &names].concat();
    assert_eq!(checked_text::decode("byway2-", &text).unwrap(), expected);
    assert_eq!(text.parse(), Ok(named_sample()));
    assert_eq!(text.to_ascii_uppercase().parse(), Ok(named_sample()));
    assert_eq!(format!(" {}\n {}\n", &text[..40], &text[40..]).parse(), Ok(named_sample()));
    let five = (1..=5).map(|port| NamedAddress { port, ..named_sample().names[0].clone() }).collect();
    let kept = Ticket { names: five, ..sample() }.to_string().parse::<Ticket>().unwrap();
    assert_eq!(kept.names.len(), MAX_NAMES);
}

#[test]
fn each_way_to_be_wrong_has_its_own_sentence() {
    let ticket = sample().to_string();
    let read = |text: &str| text.parse::<Ticket>().unwrap_err();
    assert_eq!(read(&ticket.replacen("ceir", "ceis", 1)), TicketError::Mistyped);
    assert_eq!(read(&format!("{ticket}aa")), TicketError::Mistyped);
    assert_eq!(read(&ticket.replacen("ceir", "ce1r", 1)), TicketError::Character { found: '1', at: 10 });
    // The checksum covers the prefix.
    assert_eq!(read(&ticket.replacen('1', "2", 1)), TicketError::Mistyped);
    assert_eq!(read(&ticket.replacen('1', "3", 1)), TicketError::OtherVersion(3));
    assert!(read(&ticket.replacen('1', "3", 1)).to_string().contains("reads versions 1 and 2:"));
    let named = named_sample().to_string();
    assert_eq!(read(&named.replacen("ceir", "ceis", 1)), TicketError::Mistyped);
    assert_eq!(read(&format!("{named}aa")), TicketError::Mistyped);
    assert_eq!(read(&named.replacen('2', "1", 1)), TicketError::Mistyped);
    assert_eq!(read(&sample().relays[0].word.reveal()), TicketError::OtherKind("relay word"));
    assert_eq!(read(&sample().key.to_string()), TicketError::OtherKind("public key"));
    assert_eq!(read("photos"), TicketError::Unknown);
    assert_eq!(read(""), TicketError::Unknown);
}

#[test]
fn every_cut_is_noticed_as_a_cut() {
    for ticket in [sample(), lasting(), named_sample()] {
        let text = ticket.to_string();
        for end in ticket.format().prefix().len()..text.len() {
            assert_eq!(text[..end].parse::<Ticket>(), Err(TicketError::Truncated), "cut after {end}");
        }
    }
}

#[test]
fn contents_that_byway_never_writes_are_refused() {
    let good = payload(&sample().to_string());
    let malformed =
        |bytes: &[u8]| match checked_text::encode(TicketFormat::Fixed.prefix(), bytes).parse::<Ticket>() {
            Err(TicketError::Malformed(reason)) => reason,
            other => panic!("{other:?}"),
        };
    assert_eq!(malformed(&[&good[..], &[0]].concat()), DecodeError::Range("length"));
    assert_eq!(malformed(&[&good[..48], &[17]].concat()), DecodeError::Range("number of entries"));
    assert_eq!(malformed(&[&good[..48], &[0, 1, 3, 1, 0, 0]].concat()), DecodeError::Range("relay word"));
    assert_eq!(malformed(&good[..40]), DecodeError::Truncated);
}

#[test]
fn names_that_byway_never_writes_are_refused() {
    let named = checked_text::decode("byway2-", &named_sample().to_string()).unwrap();
    let good = &named[..named.len() - 31];
    let malformed = |names: &[u8]| {
        let text = checked_text::encode("byway2-", &[good, names].concat());
        match text.parse::<Ticket>() {
            Err(TicketError::Malformed(reason)) => reason,
            other => panic!("{other:?}"),
        }
    };
    assert_eq!(malformed(b"\x00"), DecodeError::Range("format"));
    assert_eq!(
        malformed(&[b"\x05", &b"\x01a\x00\x01".repeat(5)[..]].concat()),
        DecodeError::Range("number of entries")
    );
    assert_eq!(malformed(b"\x01\x01a\x00\x00"), DecodeError::Range("port"));
    assert_eq!(malformed(b"\x01\x01a\x00\x01\x00"), DecodeError::Range("length"));
    assert_eq!(malformed(b"\x01\x09a\x00\x01"), DecodeError::Truncated);
    for name in [&b""[..], b"A", b"a.", b"1.2.3", b"a_b", b"a b", b"\xff", b"..", &[b'a'; 64]] {
        let bytes = [&[1, name.len() as u8], name, &[0, 1]].concat();
        assert_eq!(malformed(&bytes), DecodeError::Range("host name"), "{name:?}");
    }
}

#[test]
fn a_name_may_lead_anywhere_and_localhost_to_this_host() {
    let ips: Vec<IpAddr> =
        ["192.0.2.7", "2001:db8::7", "198.51.100.9"].map(|ip| ip.parse().unwrap()).to_vec();
    assert_eq!(sample().destinations(&[]), ips);
    let own: [IpAddr; 2] = [Ipv4Addr::LOCALHOST.into(), Ipv6Addr::LOCALHOST.into()];
    assert_eq!(named_sample().destinations(&[]), [&ips[..], &INTERNET_ADDRESSES, &own].concat());
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
    for (text, yes) in [
        ("byway1-abc", true),
        ("byway2-abc", true),
        ("BYWAY3-", true),
        ("byway-relay-a", false),
        ("byway", false),
    ] {
        assert_eq!(looks_like_ticket(text), yes, "{text}");
    }
}

fn address() -> impl Strategy<Value = SocketAddr> {
    (any::<IpAddr>(), 1u16..).prop_map(SocketAddr::from).prop_filter("usable", |a| !a.ip().is_unspecified())
}

prop_compose! {
    fn greeted()(id in 0..1u32 << 31, relays in prop::collection::vec(address(), 1..=relay::MAX_ADDRESSES), address in address(),
                 expiry: u16, tag: u64, is_remembered: bool) -> GreetedRelay {
        let reach = (!is_remembered).then_some((address, Consent { expiry, tag }));
        GreetedRelay { word: relay_word(id, relays), reach }
    }
}

prop_compose! {
    fn named()(text in "([a-z0-9-]{1,63}\\.){0,3}[a-z][a-z0-9-]{0,50}", port in 1u16..) -> NamedAddress {
        NamedAddress { name: text.parse().unwrap(), port }
    }
}

proptest! {
    #[test]
    fn round_trip(key: [u8; 32], permission: [u8; 16], addresses in prop::collection::vec(address(), 0..=MAX_ENTRIES),
                  relays in prop::collection::vec(greeted(), 0..=MAX_ENTRIES),
                  names in prop::collection::vec(named(), 0..=MAX_NAMES)) {
        let ticket = Ticket { key: PublicKey(key), permission: Secret::new(permission), addresses, relays, names };
        let text = ticket.to_string();
        prop_assert!(text.len() <= checked_text::MAX_LEN);
        prop_assert_eq!(text.parse(), Ok(ticket));
    }

    #[test]
    fn garbage_never_panics(text in "\\PC{0,200}", bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        let _ = text.parse::<Ticket>();
        for format in [TicketFormat::Fixed, TicketFormat::Lasting] {
            let _ = checked_text::encode(format.prefix(), &bytes).parse::<Ticket>();
        }
    }
}
