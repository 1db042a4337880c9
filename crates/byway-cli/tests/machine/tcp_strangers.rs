//! A transfer over TCP must continue while strangers overload the TCP port of a receiver or of a
//! relay: with ten thousand connections that send part of a frame, or with a flood of SYNs.
//!
//! Needs root and `ip`, `nft`.

use crate::common::machine::{PATIENCE, missing, must, test, wait_for};
use crate::common::peak::memory;
use crate::common::spaces::Spaces;
use crate::crowd::play;
use crate::cuts::{Net, RECEIVER, RELAY, STRANGER};
use crate::hands::Hand;
use libtest_mimic::{Failed, Trial};
use std::io::{Read as _, Write as _};
use std::net::{Ipv4Addr, SocketAddrV4};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

const CONNECTIONS: u32 = 10_000;
/// Connections that one thread opens, one after the other.
const OF_THREAD: u32 = 500;
/// Connections that bring a byte now and then.
const SLOW: usize = 20;
const NOW_AND_THEN: Duration = Duration::from_millis(200);
/// The beginning of a frame, as of one whose length is 2 GB in four bytes.
const BEGINNING: [u8; 6] = [0x80, 0, 0, 0, 1, 2];
const SYNS: usize = 10_000;
/// This process has descriptors for one crowd.
static ONE_CROWD: Mutex<()> = Mutex::new(());
/// Memory that strangers may cost.
const MEMORY: u64 = 40 << 20;
/// Bytes of the transfer that are waited for meanwhile.
const MUCH: u64 = 1_000_000;

pub fn tests() -> Vec<Trial> {
    let lacks = missing(Spaces::possible(&["nft -v"]), "it needs root and the programs ip and nft");
    vec![
        test("tcp_strangers::at_a_receiver_a_transfer_goes_on", lacks, || strangers("sr", "to")),
        test("tcp_strangers::at_a_relay_a_transfer_goes_on", lacks, || strangers("sl", "relay")),
    ]
}

/// Opens all, each from an address of its own, fifty of a network, and begins a frame on each.
fn crowd(to: SocketAddrV4) -> Vec<Hand> {
    let part = |first: u32| {
        let opened = (first..first + OF_THREAD).map(|number| {
            let from = Ipv4Addr::new(198, 19, (number / 50) as u8, (number % 50) as u8 + 1);
            let mut hand = Hand::connect(from, to).unwrap();
            // Those for which there is no room are closed already.
            let _ = hand.stream.write_all(&BEGINNING);
            hand
        });
        opened.collect::<Vec<Hand>>()
    };
    std::thread::scope(|scope| {
        let threads: Vec<_> = (0..CONNECTIONS)
            .step_by(OF_THREAD as usize)
            .map(|first| scope.spawn(move || part(first)))
            .collect();
        threads.into_iter().flat_map(|thread| thread.join().unwrap()).collect()
    })
}

/// Brings a byte now and then by connections from this host. All of them are closed at last.
fn slow(to: SocketAddrV4) {
    let own = STRANGER.parse().unwrap();
    let mut hands: Vec<Hand> = (0..SLOW).map(|_| Hand::connect(own, to).unwrap()).collect();
    hands.iter().for_each(|hand| hand.stream.set_nonblocking(true).unwrap());
    let closed = wait_for(PATIENCE, || {
        std::thread::sleep(NOW_AND_THEN);
        hands.retain_mut(|hand| {
            let open = hand.stream.write_all(&[1]).is_ok();
            open && !matches!(hand.stream.read(&mut [0]), Ok(0))
        });
        hands.is_empty().then_some(())
    });
    assert!(closed.is_some(), "{} that bring a byte now and then stay", hands.len());
}

fn strangers(tag: &str, host: &str) -> Result<(), Failed> {
    byway_net::allow_descriptors(u64::from(CONNECTIONS) + 2_000);
    let net = Net::new(tag);
    net.rule("add rule ip n pass ip saddr 10.82.1.1 meta l4proto udp drop");
    let transfer = net.transfer(host == "relay");
    let (attacked, to) = match &transfer.relay {
        Some(relay) => (relay.id(), SocketAddrV4::new(RELAY.parse()?, 4748)),
        None => {
            let listening = net.spaces.says("to", &["ss", "-Hltn"]);
            let port = listening.split_whitespace().find_map(|it| it.strip_prefix(&format!("{RECEIVER}:")));
            (transfer.receiver.id(), SocketAddrV4::new(RECEIVER.parse()?, port.unwrap().parse()?))
        }
    };
    let goes_on = |what: &str, bytes: u64| {
        let (_, before) = net.counted();
        net.wait(what, |_, tcp| tcp > before + bytes);
    };
    goes_on("the transfer begins", MUCH);
    let before = memory(attacked, "VmRSS").unwrap();
    let alone = ONE_CROWD.lock().unwrap_or_else(PoisonError::into_inner);
    let crowd = net.spaces.at("bad", || crowd(to));
    goes_on("it goes on beside a crowd", MUCH);
    let most = memory(attacked, "VmHWM").unwrap();
    println!("{host}: {} KiB without strangers, {} KiB at most beside them", before >> 10, most >> 10);
    assert!(most < before + MEMORY, "{before} {most}");
    drop((crowd, alone));
    net.spaces.at("bad", || slow(to));
    // SYNs from addresses where nobody answers, beside the transfer and a new connection.
    let over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let flood = play::flood_words(STRANGER, &to.ip().to_string(), to.port(), SYNS);
        let (net, over) = (&net, &over);
        scope.spawn(move || {
            while !over.load(Ordering::Acquire) {
                must(net.spaces.on("bad").args(&flood));
            }
        });
        goes_on("it goes on beside SYNs", MUCH);
        let another = net.spaces.at("from", || Hand::connect(Ipv4Addr::new(10, 82, 1, 1), to));
        over.store(true, Ordering::Release);
        assert!(another.is_ok(), "nobody else gets in");
    });
    Ok(())
}
