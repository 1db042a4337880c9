//! A source and a sink in one process, over loopback.
#![allow(clippy::unwrap_used, reason = "a test ends where it fails")]

use byway_sources::record_framing::Framing;
use byway_sources::{
    ControllerReading, Input, OverflowPolicy, Sink, SinkPlan, Source, SourceEvent, SourcePlan, prepare, read,
};
use byway_transfer::{Identity, Secret, Ticket, receiving_config, sockets};
use byway_wire::Duration;
use std::io::Cursor;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

const TICK: Duration = Duration::from_millis(10);

#[test]
fn records_arrive_once_and_in_order() {
    let directory = tempfile::tempdir().unwrap();
    prepare(directory.path()).unwrap();
    let identity = Identity::new(Secret::new([3; 32]));
    let sockets = sockets::listening(&["127.0.0.1:0".parse().unwrap()], None).unwrap();
    let ticket = Ticket {
        key: identity.public(),
        permission: Secret::new([1; 16]),
        addresses: sockets::reachable_at(&sockets),
        relays: Vec::new(),
    };
    let sink = Sink::start(SinkPlan {
        identity,
        permission: ticket.permission.clone(),
        directory: directory.path().to_owned(),
        sync: false,
        relays: Vec::new(),
        listeners: sockets::listeners(&sockets),
        sockets,
        config: receiving_config(None, Some(16 << 20)),
    })
    .unwrap();
    let text: String = (0..20_000).map(|number| format!("{number}\n")).collect();
    let how = Input { framing: Framing::Lines };
    let (mut feeds, wakers) = read(Cursor::new(text.clone()), how, 1).unwrap();
    let source = Source::start(SourcePlan {
        name: "radar7".parse().unwrap(),
        identity: Identity::new(Secret::new([4; 32])),
        ticket,
        relays: Vec::new(),
        bind: Vec::new(),
        reading: ControllerReading::default(),
        paths: None,
        demand: Arc::new(AtomicU64::new(1 << 20)),
        held: OverflowPolicy::Back,
        keep: Some(1 << 20),
        replay: false,
        feed: feeds.remove(0),
    })
    .unwrap();
    wakers.add(source.waker().clone());
    let mut connected = false;
    while !source.is_over() {
        connected |= matches!(source.next(TICK), Some(SourceEvent::Connected(0)));
        while sink.next(Duration::ZERO).is_some() {}
    }
    let (written, outcome) = source.finish().unwrap();
    assert!(connected && outcome.is_ok() && written == 20_000, "{written} {outcome:?}");
    assert_eq!(std::fs::read_to_string(directory.path().join("radar7")).unwrap(), text);
    sink.stop();
    let _ = sink.join().unwrap();
}
