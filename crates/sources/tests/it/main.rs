//! A source and a sink in one process, over loopback.
#![allow(clippy::unwrap_used, reason = "a test ends where it fails")]

use byway_relay::Policy;
use byway_sources::record_framing::{Framing, LongLines};
use byway_sources::{
    Input, OverflowPolicy, RateRule, Sink, SinkPlan, Source, SourceEvent, SourcePlan, prepare, read,
};
use byway_transfer::{
    Identity, Relaying, RelayingPlan, Secret, Ticket, listeners, receiving_config, sockets,
};
use byway_wire::Duration;
use byway_wire::relay::{Grant, GrantId, Minute, QuotaClass, RateClass, RelayKey, Scope, Terms, Word};
use std::io::Cursor;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};

const TICK: Duration = Duration::from_millis(10);
const RELAY_KEY: [u8; 32] = [5; 32];

/// A sink that writes to this directory, and its ticket.
fn sink(directory: &Path) -> (Sink, Ticket) {
    prepare(directory).unwrap();
    let identity = Identity::new(Secret::new([3; 32]));
    let sockets = sockets::listening(&["127.0.0.1:0".parse().unwrap()], None).unwrap();
    let ticket = Ticket {
        key: identity.public(),
        permission: Secret::new([1; 16]),
        addresses: sockets::reachable_at(&sockets),
        relays: Vec::new(),
        names: Vec::new(),
    };
    let sink = Sink::start(SinkPlan {
        identity,
        permission: ticket.permission.clone(),
        allow: Vec::new(),
        directory: directory.to_owned(),
        sync: false,
        relays: Vec::new(),
        listeners: sockets::listeners(&sockets),
        sockets,
        config: receiving_config(None, Some(16 << 20)),
        record_memory: 8 << 20,
    });
    (sink.unwrap(), ticket)
}

/// A source of this text, and where to give it words that are good for longer.
fn source(ticket: Ticket, text: &str, demand: u64, relays: Vec<Word>) -> (Source, SyncSender<Vec<Word>>) {
    let (mut feeds, wakers) =
        read(Cursor::new(text.to_owned()), Input { framing: Framing::Lines, long_lines: LongLines::Cut }, 1)
            .unwrap();
    let (renew, renewed): (_, Receiver<Vec<Word>>) = sync_channel(1);
    let source = Source::start(SourcePlan {
        name: "radar7".parse().unwrap(),
        identity: Identity::new(Secret::new([4; 32])),
        ticket,
        relays,
        renewed,
        bind: Vec::new(),
        rule: RateRule::default(),
        paths: None,
        demand: Arc::new(AtomicU64::new(demand)),
        held: OverflowPolicy::Back,
        keep: Some(1 << 20),
        replay: false,
        feed: feeds.remove(0),
    })
    .unwrap();
    wakers.add(source.waker().clone());
    (source, renew)
}

#[test]
fn records_arrive_once_and_in_order() {
    let directory = tempfile::tempdir().unwrap();
    let (sink, ticket) = sink(directory.path());
    let text: String = (0..20_000).map(|number| format!("{number}\n")).collect();
    let (source, _) = source(ticket, &text, 1 << 20, Vec::new());
    let mut connected = false;
    while !source.is_over() {
        match source.next(TICK) {
            Some(SourceEvent::Connected(0)) => connected = true,
            Some(SourceEvent::Away(why)) => panic!("{why}"),
            _ => {}
        }
        while sink.next(Duration::ZERO).is_some() {}
    }
    let (written, outcome) = source.finish().unwrap();
    assert!(connected && outcome.is_ok() && written == 20_000, "{written} {outcome:?}");
    assert_eq!(std::fs::read_to_string(directory.path().join("radar7")).unwrap(), text);
    sink.cancel();
    sink.join().unwrap();
}

/// A relay over TCP, and its address.
fn relay() -> (Relaying, SocketAddr) {
    let sockets = sockets::listening(&["127.0.0.1:0".parse().unwrap()], None).unwrap();
    let address = sockets[0].address();
    let relaying = Relaying::start(RelayingPlan {
        key: Secret::new(RELAY_KEY),
        policy: Policy::public().allow("127.0.0.0/8".parse().unwrap()),
        listeners: listeners(&sockets).unwrap(),
        sockets,
        tcp_congestion: byway_net::TcpCongestion::Cubic,
        tcp_buffer: None,
        addresses: vec![address],
        expires: Duration::from_secs(3_600),
        rate: None,
        quota: None,
        per_day: None,
        per_month: None,
        accounts: None,
        words: None,
        keep: None,
        registries: Vec::new(),
        lend: None,
    });
    (relaying.unwrap(), address)
}

/// A word of the relay's that is good until then, in seconds of Unix time.
fn word(relay: SocketAddr, until: u64) -> Word {
    let terms = Terms {
        expiry: Minute::from_unix(until),
        rate: RateClass::UNLIMITED,
        quota: QuotaClass::UNLIMITED,
        scope: Scope::ALL,
    };
    RelayKey::new(&RELAY_KEY).issue(Grant { id: GrantId::own(7), terms }, vec![relay]).unwrap()
}

#[test]
fn a_relay_serves_again_once_its_word_is_renewed() {
    let directory = tempfile::tempdir().unwrap();
    let (sink, ticket) = sink(directory.path());
    let (relaying, address) = relay();
    let text: String = (0..200_000).map(|number| format!("{number}\n")).collect();
    let now = byway_net::unix_seconds();
    let (source, renew) = source(ticket, &text, 20_000, vec![word(address, now - 3_600)]);
    let (mut told, mut by_relay) = (false, false);
    while !by_relay {
        match source.next(TICK) {
            Some(SourceEvent::Warning(why)) if !told => {
                assert_eq!(why, format!("relay {address}: the relay word has expired"));
                told = true;
                renew.try_send(vec![word(address, now + 3_600)]).unwrap();
            }
            Some(SourceEvent::Report(standing)) => {
                by_relay = standing.paths.iter().any(|path| path.name.starts_with("relay "));
                assert!(told || !by_relay, "the word is over");
            }
            _ => {}
        }
        while sink.next(Duration::ZERO).is_some() {}
        assert!(!source.is_over());
    }
    source.cancel();
    sink.cancel();
    let _ = (source.finish().unwrap(), sink.join().unwrap(), relaying.stop().unwrap());
}
