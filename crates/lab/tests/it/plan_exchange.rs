//! What a plan says of exchanges, their hosts, middleboxes and attackers.

use byway_engine::path_choice::PathRule;
use byway_lab::plan::{Mode, Overrides, Plan};
use byway_lab::setup::{
    Attack, Carrier, Changed, ClockSetup, Demand, EndChange, EndChoice, ExchangeOptions, PathChoice, Setup,
    StreamSetup, UdpFilter,
};
use byway_wire::Duration;

const PLAN: &str = r#"
title = "Hosts that restart, sleep and move"
duration = "60 s"
until_done = true
early_wakes = 0.1
attack = { replayed = "1 %", forged = 0.02 }

[registry]
at = "R"
relays = ["R"]

[[link]]
between = ["S", "D"]
rate = "10 Mbit/s"
mtu = "1280 B"
mark_above = "20 packets"
bleaches = true

[[link]]
between = ["S", "R"]
mtu = 1400
mark_above = 5

[[transfer]]
name = "both"
from = "S"
to = "D"
paths = ["direct", "R", "registry"]
carrier = "exchange"

[transfer.exchange]
objects = ["0 B", "64 KB"]
objects_present = 1
objects_back = ["5 KB"]
streams = [{ bytes = "100 KB", answer = "1 KB", in_turn = true, reset_after = "5 KB" }, { bytes = "0 B" }]
datagrams = 100
writes = "500 kbit/s"
reads = "1 Mbit/s"
memory = "64 KiB"
datagram = 1472
path_choice = "blest"
tcp = true
uplinks = ["S2"]
ticket_names_relays = true
words_hold = "30 s"
sender_clock = { ahead = "1 h", drift_ppm = -50, step = ["10 s", "1 h"] }

[[change]]
at = "1 s"
link = ["S", "D"]
mtu = "1200 B"
one_way = true

[[change]]
at = "2 s"
link = ["S", "D"]
udp = { share = 0.5, above = "1000 B" }

[[change]]
at = "3 s"
link = ["S", "D"]
udp = "passes"
one_way = true

[[change]]
at = "4 s"
registry = false

[[change]]
at = "5 s"
transfer = "both"
end = "sender"
what = "restart"

[[change]]
at = "6 s"
transfer = "both"
end = "receiver"
what = "socket-down"
socket = 1
"#;

fn read(source: &str) -> Setup {
    let plan = Plan::read("plan.toml", source, Mode::All, &Overrides::default());
    plan.expect("a plan").expect("for this mode").variants.remove(0)
}

fn exchange(setup: &Setup) -> &ExchangeOptions {
    match &setup.transfers[0].carrier {
        Carrier::Exchange(options) => options,
        other => panic!("{other:?}"),
    }
}

#[test]
fn everything_of_an_exchange_can_be_said() {
    let setup = read(PLAN);
    assert_eq!(
        *exchange(&setup),
        ExchangeOptions {
            objects: vec![0, 64_000],
            objects_present: 1,
            objects_back: vec![5_000],
            streams: vec![
                StreamSetup { bytes: 100_000, answer: 1_000, in_turn: true, reset_after: Some(5_000) },
                StreamSetup { bytes: 0, answer: 0, in_turn: false, reset_after: None },
            ],
            datagrams: 100,
            writes: Some(500_000),
            reads: Some(1_000_000),
            memory: Some(65_536),
            datagram: Some(1_472),
            path_rule: Some(PathRule::Blest),
            tcp: true,
            uplinks: vec!["S2".into()],
            ticket_names_relays: true,
            words_hold: Some(Duration::from_secs(30)),
            sender_clock: ClockSetup {
                ahead: Duration::from_secs(3_600),
                drift_ppm: -50.0,
                step: Some((Duration::from_secs(10), Duration::from_secs(3_600))),
            },
            receiver_clock: ClockSetup::default(),
        }
    );
    let transfer = &setup.transfers[0];
    assert_eq!(transfer.demand, Demand::Size(64_000), "a stream that is reset counts nothing");
    assert_eq!(transfer.congestion.name, "background");
    assert!(transfer.paths.contains(&PathChoice::Registry));
    let usual =
        PLAN.split("[transfer.exchange]").next().expect("the first part").to_owned() + "exchange = {}";
    assert_eq!(*exchange(&read(&usual)), ExchangeOptions::default());
}

#[test]
fn the_world_around_an_exchange_can_be_said() {
    let setup = read(PLAN);
    assert_eq!((setup.until_done, setup.early_wakes), (true, 0.1));
    assert_eq!(setup.attack, Attack { replayed: 0.01, forged: 0.02 });
    let specs: Vec<_> = setup
        .network
        .links
        .iter()
        .map(|link| (link.spec.mtu, link.spec.mark_above, link.spec.bleaches))
        .collect();
    let (narrow, wide) = ((Some(1_280), Some(20), true), (Some(1_400), Some(5), false));
    assert_eq!(specs, [narrow, narrow, wide, wide]);
    let plain = read("title = \"T\"\nduration = \"1 s\"\n[[link]]\nbetween = [\"A\", \"B\"]");
    assert_eq!((plain.until_done, plain.early_wakes, plain.attack), (false, 0.0, Attack::default()));
    let spec = &plain.network.links[0].spec;
    assert_eq!((spec.mtu, spec.mark_above, spec.bleaches), (None, None, false));
}

#[test]
fn hosts_and_middleboxes_change() {
    let setup = read(PLAN);
    let of = |second: u64| -> Vec<&Changed> {
        let at = Duration::from_secs(second);
        setup.changes.iter().filter(|change| change.at == at).map(|change| &change.what).collect()
    };
    assert!(matches!(of(1).as_slice(), [Changed::Link { mtu: Some(1_200), rate: None, up: None, .. }]));
    let wanted = UdpFilter { share: 0.5, above: 1_000 };
    let udp = |changed: &Changed| match changed {
        Changed::Udp { from, to, filter } => (format!("{from}-{to}"), *filter),
        other => panic!("{other:?}"),
    };
    let both: Vec<_> = of(2).into_iter().map(udp).collect();
    assert_eq!(both, [("S-D".into(), Some(wanted)), ("D-S".into(), Some(wanted))]);
    assert_eq!(of(3).into_iter().map(udp).collect::<Vec<_>>(), [("S-D".into(), None)]);
    assert!(matches!(of(4).as_slice(), [Changed::Registry { up: false }]));
    let end = |changed: &Changed| match changed {
        Changed::End { transfer, end, what } => (transfer.clone(), *end, *what),
        other => panic!("{other:?}"),
    };
    assert_eq!(end(of(5)[0]), ("both".into(), EndChoice::Sender, EndChange::Restart));
    let down = EndChange::Socket { number: 1, up: false };
    assert_eq!(end(of(6)[0]), ("both".into(), EndChoice::Receiver, down));
    for (word, what) in [
        ("freeze", EndChange::Freeze(true)),
        ("thaw", EndChange::Freeze(false)),
        ("rebind", EndChange::Rebind),
        ("nat-filters", EndChange::NatFilter(true)),
        ("nat-opens", EndChange::NatFilter(false)),
        ("move", EndChange::Move),
        ("reads", EndChange::Reads(true)),
        ("stops-reading", EndChange::Reads(false)),
        ("reset", EndChange::Reset),
        ("socket-down", EndChange::Socket { number: 0, up: false }),
        ("socket-up", EndChange::Socket { number: 0, up: true }),
    ] {
        let setup = read(&PLAN.replace("\"restart\"", &format!("{word:?}")));
        let found = setup.changes.iter().find(|change| change.at == Duration::from_secs(5)).expect("one");
        assert_eq!(end(&found.what).2, what, "{word}");
    }
}

#[test]
fn what_is_wrong_with_an_exchange_is_said_with_its_line() {
    let line_of = |needle: &str| 1 + PLAN.lines().position(|line| line.contains(needle)).expect("there");
    for (old, new, what) in [
        ("mtu = \"1280 B\"", "mtu = \"20 B\"", "`mtu`: expected 68 B to 65535 B"),
        ("mtu = 1400", "mtu = 1400.5", "`mtu`: expected 68 B"),
        ("mark_above = 5", "mark_above = \"5 ms\"", "a number of packets"),
        ("bleaches = true", "bleaches = 1", "`bleaches`: expected true or false"),
        ("early_wakes = 0.1", "early_wakes = 2", "expected a share"),
        ("attack = {", "attack = { lost = 1,", "unknown key `lost`"),
        ("objects = [\"0 B\", \"64 KB\"]", "objects = [\"0 B\", 64]", "`objects`: 64 has no unit"),
        ("objects = [\"0 B\", \"64 KB\"]", "objects = [\"2 TB\", \"1 B\"]", "expected 0 B to 1 TB"),
        ("objects_present = 1", "objects_present = 3", "at most 2, as many as there are"),
        ("reset_after = \"5 KB\"", "reset_after = \"5 MB\"", "at most the 100000 bytes"),
        ("streams = [{ bytes = \"100 KB\", ", "streams = [{ ", "`bytes` is missing"),
        ("drift_ppm = -50", "drift_ppm = -2e6", "a clock goes on"),
        ("step = [\"10 s\", \"1 h\"]", "step = [\"10 s\"]", "by how much"),
        ("memory = \"64 KiB\"", "memory = 64", "has no unit"),
        ("datagram = 1472", "datagram = 1000", "expected at least 1200 bytes"),
        ("udp = { share = 0.5,", "udp = { shares = 0.5,", "unknown key `shares`"),
        ("udp = \"passes\"", "udp = \"drops\"", "expected \"passes\", or a table"),
        ("transfer = \"both\"", "transfer = \"bulk\"", "there is no exchange called \"bulk\""),
        ("what = \"restart\"", "what = \"crash\"", "expected restart, freeze, thaw"),
        ("end = \"receiver\"", "end = \"relay\"", "expected \"sender\" or \"receiver\""),
        ("what = \"socket-down\"\nsocket = 1", "what = \"move\"\nsocket = 1", "expected socket-down"),
    ] {
        let (line, said) = refused(&PLAN.replacen(old, new, 1));
        assert!(said.contains(what), "{new}: {said}");
        let wrong = if what == "expected socket-down" { "socket = 1" } else { old };
        assert_eq!(line, line_of(wrong), "{new}: {said}");
    }
    for (old, new, what) in [
        ("carrier = \"exchange\"", "carrier = \"exchange\"\nsize = \"1 MB\"", "objects and streams"),
        ("carrier = \"exchange\"", "carrier = \"session\"", "there is no exchange called \"both\""),
        ("[registry]", "[registry]\nwhen = false", "there is no [registry]"),
        ("registry = false", "up = false", "`link` with a new rate"),
        ("registry = false", "registry = false\nwhat = \"move\"", "expected `transfer` beside it"),
    ] {
        let (_, said) = refused(&PLAN.replacen(old, new, 1));
        assert!(said.contains(what), "{new}: {said}");
    }
    let without = PLAN.split("[transfer.exchange]").next().expect("the first part");
    let (line, said) = refused(without);
    assert!(said.contains("`exchange` is missing"), "{said}");
    assert_eq!(line, line_of("[[transfer]]"));
}

fn refused(source: &str) -> (usize, String) {
    let error = Plan::read("plan.toml", source, Mode::All, &Overrides::default()).expect_err("refused");
    (error.line, error.what)
}
