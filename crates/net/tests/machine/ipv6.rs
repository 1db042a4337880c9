//! Drivers over real sockets on the IPv6 loopback; ignored by name on a host that has none.

use byway_net::Socket;
use libtest_mimic::Trial;
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

pub fn tests() -> Vec<Trial> {
    let missing = UdpSocket::bind(HERE).is_err().then_some("it needs an IPv6 loopback");
    let test = |name: &str, test: fn()| {
        crate::test(format!("ipv6::{name}"), missing, move || {
            test();
            Ok(())
        })
    };
    vec![
        test("ten_thousand_datagrams_there_and_back", || crate::common::ten_thousand_there_and_back(HERE)),
        test("ecn_marks_are_carried", || crate::common::marks_are_carried(HERE)),
        test("both_families_share_a_port", both_families_share_a_port),
    ]
}
