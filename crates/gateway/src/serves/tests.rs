use super::*;
use crate::ports::Ports;
use alloc::vec;
use alloc::vec::Vec;
use byway_wire::{DecodeError, Prefix};
use core::net::IpAddr;
use proptest::prelude::*;

fn served(hosts: &str, ports: &[&str]) -> Served {
    Served {
        hosts: hosts.parse().unwrap(),
        ports: ports.iter().map(|ports| ports.parse().unwrap()).collect(),
    }
}

fn address(text: &str) -> IpAddr {
    text.parse().unwrap()
}

#[test]
fn in_hex() {
    let entries = [
        served("10.1.0.0/16", &["873", "8000-8010"]),
        served("2001:db8::/33", &[]),
        served("0.0.0.0/0", &[]),
    ];
    let parts = announce(0x0102_0304, &entries).unwrap();
    let bytes = [
        &[1, 1, 2, 3, 4, 0, 1][..],
        &[16, 10, 1, 2, 0x03, 0x69, 0x03, 0x69, 0x1f, 0x40, 0x1f, 0x4a],
        &[64 + 33, 0x20, 0x01, 0x0d, 0xb8, 0, 0],
        &[0, 0],
    ]
    .concat();
    assert_eq!(parts, [bytes]);
    assert_eq!(AnnouncementPart::read(&parts[0]).unwrap().entries, entries);
    assert_eq!(announce(7, &[]).unwrap(), [[1, 0, 0, 0, 7, 0, 1]]);
}

#[test]
fn what_is_not_an_announcement_is_refused() {
    let read = |bytes: &[u8]| AnnouncementPart::read(bytes).unwrap_err();
    assert_eq!(read(&[]), DecodeError::Truncated);
    assert_eq!(read(&[2, 0, 0, 0, 0, 0, 1]), DecodeError::Range("version of an announcement"));
    assert_eq!(read(&[1, 0, 0, 0, 0, 1, 1]), DecodeError::Range("parts of an announcement"));
    assert_eq!(read(&[1, 0, 0, 0, 0, 0, 65]), DecodeError::Range("parts of an announcement"));
    assert_eq!(read(&[1, 0, 0, 0, 0, 0, 1, 33, 1, 2, 3, 4, 0, 0]), DecodeError::Range("prefix length"));
    assert_eq!(read(&[1, 0, 0, 0, 0, 0, 1, 8, 10]), DecodeError::Truncated);
    assert_eq!(read(&[1, 0, 0, 0, 0, 0, 1, 7, 0x0b, 0]), DecodeError::Range("prefix"));
    assert_eq!(read(&[1, 0, 0, 0, 0, 0, 1, 0, 17]), DecodeError::Range("port ranges"));
    assert_eq!(read(&[1, 0, 0, 0, 0, 0, 1, 0, 1, 0, 2, 0, 1]), DecodeError::Range("ports"));
}

#[test]
fn the_longest_prefix_serves_and_named_ports_before_all() {
    let mut directory = Directory::new();
    directory.set(1, vec![served("10.0.0.0/8", &[]), served("10.1.1.0/24", &["22"])]);
    directory.set(2, vec![served("10.1.0.0/16", &[]), served("2001:db8::/32", &[])]);
    directory
        .set(3, vec![served("10.1.0.0/16", &["873"]), served("10.1.0.0/16", &[]), served("10.9.9.9", &[])]);
    let find = |host, port| directory.find(address(host), port);
    assert_eq!(find("10.2.0.1", 80), Some(1));
    assert_eq!(find("10.1.0.1", 80), Some(2), "of equals the smaller");
    assert_eq!(find("10.1.0.1", 873), Some(3));
    assert_eq!((find("10.1.1.1", 22), find("10.1.1.1", 80)), (Some(1), Some(2)));
    assert_eq!((find("10.9.9.9", 1), find("2001:db8::5", 1), find("11.0.0.0", 1)), (Some(3), Some(2), None));
    directory.forget(3);
    assert_eq!(directory.find(address("10.9.9.9"), 1), Some(1));
    assert_eq!(directory.served_by(2).count(), 2);
}

#[test]
fn an_announcement_counts_when_it_is_whole_and_only_for_whom_its_sender_may_speak() {
    let entries: Vec<Served> =
        (0..200u8).map(|host| served(&alloc::format!("10.1.{host}.0/24"), &["1-9"])).collect();
    let read = |serial: u32, entries: &[Served]| -> Vec<AnnouncementPart> {
        announce(serial, entries).unwrap().iter().map(|part| AnnouncementPart::read(part).unwrap()).collect()
    };
    let allowed = [Prefix::of(address("10.1.0.0"), 17)];
    let mut directory = Directory::new();
    let parts = read(5, &entries);
    assert_eq!(parts.len(), 2);
    assert_eq!(directory.on_part(1, parts[1].clone(), &allowed), PartResult::Waiting);
    assert_eq!(directory.on_part(1, parts[1].clone(), &allowed), PartResult::Known);
    assert_eq!(directory.find(address("10.1.120.1"), 5), None);
    assert_eq!(directory.on_part(1, parts[0].clone(), &allowed), PartResult::Complete { refused: 72 });
    assert_eq!(directory.find(address("10.1.120.1"), 5), Some(1));
    assert_eq!(directory.find(address("10.1.130.1"), 5), None, "it may not speak for those");
    assert_eq!(directory.on_part(1, parts[0].clone(), &allowed), PartResult::Known);
    // Parts of an older announcement do not mix with those of a newer one.
    let newer = read(6, &entries[..150]);
    assert_eq!(directory.on_part(1, newer[0].clone(), &allowed), PartResult::Waiting);
    assert_eq!(directory.on_part(1, parts[1].clone(), &allowed), PartResult::Known);
    assert_eq!(directory.on_part(1, read(7, &[])[0].clone(), &allowed), PartResult::Complete { refused: 0 });
    assert_eq!((directory.find(address("10.1.120.1"), 5), directory.served_by(1).count()), (None, 0));
    directory.forget(1);
    assert_eq!(directory.on_part(1, parts[0].clone(), &allowed), PartResult::Waiting, "it began anew");
}

#[test]
fn no_more_than_a_peer_may_make_us_remember() {
    let many: Vec<Served> = (0..20_000u32)
        .map(|host| Served { hosts: Prefix::of(IpAddr::V4(host.into()), 32), ports: vec![] })
        .collect();
    assert!(announce(1, &many).is_none());
    let parts = announce(1, &many[..10_000]).unwrap();
    assert!(parts.len() <= MAX_PARTS && parts.iter().all(|part| part.len() <= PART_BYTES));
}

proptest! {
    #[test]
    fn what_is_announced_is_what_is_read(
        serial: u32,
        entries in prop::collection::vec((any::<IpAddr>(), 0u8..=128, prop::collection::vec((any::<u16>(), any::<u16>()), 0..4)), 0..60)
    ) {
        let entries: Vec<Served> = entries.into_iter().map(|(address, length, ports)| Served {
            hosts: Prefix::of(address, length),
            ports: ports.into_iter().filter_map(|(a, b)| Ports::new(a.min(b), a.max(b))).collect(),
        }).collect();
        let parts = announce(serial, &entries).unwrap();
        let read: Vec<AnnouncementPart> = parts.iter().map(|part| AnnouncementPart::read(part).unwrap()).collect();
        prop_assert!(read.iter().all(|part| part.serial == serial && usize::from(part.parts) == parts.len()));
        prop_assert_eq!(read.into_iter().flat_map(|part| part.entries).collect::<Vec<_>>(), entries);
    }

    #[test]
    fn no_bytes_are_too_strange(mut bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        if let Some(first) = bytes.first_mut() {
            *first = PART_VERSION;
        }
        let _ = AnnouncementPart::read(&bytes);
    }

    #[test]
    fn the_search_finds_what_a_look_at_every_entry_finds(
        entries in prop::collection::vec((0u8..3, any::<bool>(), 0u8..8, 0u8..4, any::<bool>()), 0..12), v6: bool, host in 0u8..8
    ) {
        let address = |v6, host: u8| -> IpAddr { if v6 { [0, 0, 0, 0, 0, 0, 0, u16::from(host)].into() } else { [0, 0, 0, host].into() } };
        let mut by_peer = vec![vec![]; 3];
        for (peer, v6, host, cut, named) in entries {
            let length = if v6 { 128 } else { 32 } - cut;
            let ports = if named { Ports::new(5, 5).into_iter().collect() } else { vec![] };
            by_peer[usize::from(peer)].push(Served { hosts: Prefix::of(address(v6, host), length), ports });
        }
        let mut directory = Directory::new();
        (0..).zip(&by_peer).for_each(|(peer, entries)| directory.set(peer, entries.clone()));
        for port in [5, 6] {
            let host = address(v6, host);
            let all = (0..).zip(&by_peer).flat_map(|(peer, entries)| entries.iter().map(move |entry| (peer, entry)));
            let best = all.filter(|(_, entry)| entry.hosts.contains(host) && entry.has_port(port))
                .max_by_key(|(peer, entry)| (entry.hosts.length(), !entry.ports.is_empty(), core::cmp::Reverse(*peer)));
            prop_assert_eq!(directory.find(host, port), best.map(|(peer, _)| peer));
        }
    }
}
