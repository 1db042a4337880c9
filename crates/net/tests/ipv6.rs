//! Drivers over real sockets on the IPv6 loopback; ignored by name on a host that has none.
#![allow(clippy::unwrap_used, clippy::expect_used)]

mod common;

use byway_net::Socket;
use libtest_mimic::{Arguments, Trial};
use std::net::UdpSocket;

const HERE: &str = "[::1]:0";

fn both_families_share_a_port() {
    // The port is free for IPv6; that it is for IPv4 too is likely, not certain.
    let bound = (0..20).find_map(|_| {
        let six = Socket::bind("[::]:0".parse().unwrap()).unwrap();
        let four = Socket::bind((std::net::Ipv4Addr::UNSPECIFIED, six.address().port()).into()).ok()?;
        Some((four, six))
    });
    let (four, six) = bound.expect("twenty ports, none free for both families");
    assert_eq!(four.address().port(), six.address().port());
}

fn main() {
    let arguments = Arguments::from_args();
    let missing = UdpSocket::bind(HERE).is_err();
    if missing {
        eprintln!("no IPv6 loopback on this host: the tests below are ignored");
    }
    let trial = |name: &str, test: fn()| {
        Trial::test(name, move || {
            test();
            Ok(())
        })
        .with_ignored_flag(missing)
    };
    let trials = vec![
        trial("ten_thousand_datagrams_there_and_back", || common::ten_thousand_there_and_back(HERE)),
        trial("ecn_marks_are_carried", || common::marks_are_carried(HERE)),
        trial("both_families_share_a_port", both_families_share_a_port),
    ];
    libtest_mimic::run(&arguments, trials).exit();
}
