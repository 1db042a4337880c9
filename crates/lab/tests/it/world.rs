//! Small worlds from end to end.

use byway_control::ControllerChoice;
use byway_lab::Record;
use byway_lab::record::{RequestRecord, TransferRecord};
use byway_lab::setup::{
    Arrivals, Attack, Carrier, Change, Changed, Cross, Demand, LinkSetup, LinkSpec, Network, NodeChoice,
    PathChoice, QueueLimit, Requests, SessionOptions, Setup, Sizes, TcpOptions, Transfer,
};
use byway_lab::world::{RunError, memory_bound, run};
use byway_wire::Duration;
use std::collections::BTreeMap;
use std::sync::atomic::AtomicBool;

pub(crate) fn seconds(seconds: f64) -> Duration {
    Duration::from_secs_f64(seconds)
}

pub(crate) fn setup(duration: f64, links: Vec<LinkSetup>) -> Setup {
    Setup {
        registry: None,
        axes: vec![("n".into(), "1".into())],
        duration: seconds(duration),
        until_done: false,
        cut: Duration::ZERO,
        sample: Duration::from_millis(100),
        gateways: Vec::new(),
        network: Network { named: None, links },
        access_jitter: 0.0,
        changes: Vec::new(),
        transfers: Vec::new(),
        requests: Vec::new(),
        cross: Vec::new(),
        early_wakes: 0.0,
        attack: Attack::default(),
        memory: 1_000_000_000,
    }
}

pub(crate) fn both(from: &str, to: &str, mbit: u64, millis: u64) -> [LinkSetup; 2] {
    let spec = LinkSpec {
        rate: Some(mbit * 1_000_000),
        delay: Some(Duration::from_millis(millis)),
        queue: Some(QueueLimit::Packets(50)),
        ..LinkSpec::default()
    };
    [(from, to), (to, from)].map(|(from, to)| LinkSetup {
        from: from.into(),
        to: to.into(),
        spec: spec.clone(),
    })
}

pub(crate) fn congestion(name: &str) -> ControllerChoice {
    ControllerChoice { name: name.into(), options: BTreeMap::new() }
}

pub(crate) fn node(name: &str) -> NodeChoice {
    NodeChoice::Node(name.into())
}

pub(crate) fn session(name: &str, from: &str, to: &str, paths: &[PathChoice], controller: &str) -> Transfer {
    Transfer {
        name: name.into(),
        group: name.into(),
        from: node(from),
        to: node(to),
        paths: paths.to_vec(),
        carrier: Carrier::Session(SessionOptions::default()),
        congestion: congestion(controller),
        demand: Demand::Unlimited,
        start: Duration::ZERO,
        start_jitter: Duration::from_millis(20),
        stop: None,
    }
}

fn tcp(name: &str, from: &str, to: &str, paths: &[PathChoice], controller: &str) -> Transfer {
    Transfer { carrier: Carrier::Tcp(TcpOptions::default()), ..session(name, from, to, paths, controller) }
}

pub(crate) fn go(setup: &Setup, seed: u64) -> Record {
    run(setup, seed, &AtomicBool::new(false)).expect("a world that runs")
}

pub fn refused(setup: &Setup) -> RunError {
    run(setup, 1, &AtomicBool::new(false)).expect_err("must be refused")
}

/// Mbit/s that the receiver got between two seconds.
pub(crate) fn goodput(record: &Record, transfer: &TransferRecord, from: f64, until: f64) -> f64 {
    let at = |second: f64| transfer.received[(second / record.sample).round() as usize];
    (at(until) - at(from)) as f64 * 8e-6 / (until - from)
}

/// S and D with a direct line of 10 Mbit/s, and a detour of as much through the relay R.
fn detour() -> Vec<LinkSetup> {
    [both("S", "D", 10, 10), both("S", "R", 10, 5), both("R", "D", 100, 5)].concat()
}

fn through(node: &str) -> PathChoice {
    PathChoice::Through(node.into())
}

#[test]
fn jitter_at_access_tells_seeds_apart() {
    let mut setup = setup(20.0, both("S", "D", 10, 10).to_vec());
    let mut bulk = tcp("bulk", "S", "D", &[PathChoice::Direct], "newreno");
    bulk.start_jitter = Duration::ZERO;
    setup.transfers.push(bulk);
    let received = |setup: &Setup, seed| go(setup, seed).transfers[0].received.clone();
    assert_eq!(received(&setup, 1), received(&setup, 2), "nothing differs");
    assert_eq!(go(&setup, 1).transfers[0].base_rtt, 20.0);
    setup.access_jitter = 0.1;
    assert_ne!(received(&setup, 1), received(&setup, 2));
    let record = go(&setup, 1);
    let rate = goodput(&record, &record.transfers[0], 5.0, 20.0);
    assert!((9.0..9.7).contains(&rate), "{rate}: no packet overtakes another");
}

#[test]
fn a_relay_doubles_a_session() {
    for (paths, least, most) in [
        (vec![PathChoice::Direct], 8.6, 9.8),
        (vec![through("R")], 8.4, 9.8),
        (vec![PathChoice::Direct, through("R")], 16.5, 19.6),
    ] {
        let mut setup = setup(30.0, detour());
        setup.transfers.push(session("bulk", "S", "D", &paths, "background"));
        let record = go(&setup, 1);
        let transfer = &record.transfers[0];
        assert_eq!(transfer.failed, None);
        let rate = goodput(&record, transfer, 10.0, 30.0);
        let names: Vec<&str> = transfer.paths.iter().map(|path| path.name.as_str()).collect();
        println!(
            "{names:?}: {rate:.2} Mbit/s, reorder {}, lost {}",
            transfer.reorder,
            transfer.lost.unwrap()
        );
        assert!((least..most).contains(&rate), "{names:?}: {rate}");
        assert_eq!(transfer.opened as usize, paths.len());
        for path in &transfer.paths {
            let acked = *path.acked.last().unwrap() as f64;
            println!(
                "  {}: {:.2} Mbit/s, window {:?}, rtt {:?}",
                path.name,
                acked * 8e-6 / 30.0,
                path.window.last(),
                path.rtt.last()
            );
            assert!(acked * 8e-6 / 30.0 > 7.5 && *path.window.last().unwrap() > 10.0);
            assert!((19.0..70.0).contains(path.rtt.last().unwrap()));
        }
        let link = record.links.iter().find(|link| (link.from.as_str(), link.to.as_str()) == ("S", "R"));
        assert_eq!(link.is_some(), paths.len() == 2 || paths[0] != PathChoice::Direct);
    }
}

#[test]
fn series_have_one_value_per_sample() {
    let mut setup = setup(2.05, detour());
    setup.transfers.push(session("bulk", "S", "D", &[PathChoice::Direct, through("R")], "mpath"));
    let record = go(&setup, 1);
    let transfer = &record.transfers[0];
    assert_eq!(transfer.received.len(), 21);
    for path in &transfer.paths {
        let lengths =
            [path.acked.len(), path.window.len(), path.rtt.len(), path.lost.len(), path.choked.len()];
        assert_eq!(lengths, [21; 5]);
    }
    assert_eq!(record.links.len(), 6);
    for link in &record.links {
        assert_eq!([link.sent.len(), link.queue.len(), link.dropped.len()], [21; 3]);
    }
}

#[test]
fn an_object_ends_a_source_does_not() {
    let mut setup = setup(10.0, detour());
    setup.transfers.push(Transfer {
        demand: Demand::Size(5_000_000),
        ..session("object", "S", "D", &[PathChoice::Direct, through("R")], "newreno")
    });
    let steps = vec![(seconds(1.0), 2_000_000), (seconds(6.0), 500_000)];
    setup.transfers.push(Transfer {
        demand: Demand::Rate(steps),
        start: seconds(0.5),
        ..session("source", "D", "S", &[PathChoice::Direct], "newreno")
    });
    let record = go(&setup, 1);
    let [object, source] = &record.transfers[..] else { panic!("two transfers") };
    println!("{:?} {}", object.finished, object.reorder);
    assert_eq!(*object.received.last().unwrap(), 5_000_000);
    assert!((2.0..4.5).contains(&object.finished.unwrap()));
    assert!(object.reorder > 1_400, "{}", object.reorder);
    let rates = [goodput(&record, source, 2.0, 6.0), goodput(&record, source, 7.0, 10.0)];
    println!("{rates:?}");
    assert!((1.95..2.05).contains(&rates[0]) && (0.48..0.52).contains(&rates[1]), "{rates:?}");
    assert_eq!((source.finished, source.failed.as_ref()), (None, None));
}

#[test]
fn a_transfer_stops_when_it_is_told() {
    let mut setup = setup(6.0, detour());
    setup.transfers.push(Transfer {
        stop: Some(seconds(3.0)),
        ..session("bulk", "S", "D", &[PathChoice::Direct], "newreno")
    });
    let record = go(&setup, 1);
    let transfer = &record.transfers[0];
    assert!(goodput(&record, transfer, 1.0, 3.0) > 9.0);
    assert_eq!(goodput(&record, transfer, 3.5, 6.0), 0.0);
    assert_eq!((transfer.finished, transfer.failed.as_ref()), (None, None));
    assert_eq!(transfer.paths[0].window[60], 0.0);
}

/// A line that is dark from 1 s on: TCP tries fifteen times, for ten minutes.
#[test]
fn tcp_that_gives_up_has_failed() {
    let mut setup = setup(700.0, detour());
    setup.sample = seconds(1.0);
    for (from, to) in [("S", "D"), ("D", "S")] {
        let (from, to) = (from.to_owned(), to.to_owned());
        let dark =
            Changed::Link { from, to, rate: None, delay: None, loss: None, up: Some(false), mtu: None };
        setup.changes.push(Change { at: seconds(1.0), what: dark });
    }
    let sized = |name, size, paths: &[PathChoice]| Transfer {
        demand: Demand::Size(size),
        ..tcp(name, "S", "D", paths, "newreno")
    };
    setup.transfers = vec![
        sized("dark", 50_000_000, &[PathChoice::Direct]),
        sized("short", 50_000, &[PathChoice::Direct]),
        sized("another way", 50_000_000, &[PathChoice::Direct, through("R")]),
        Transfer { stop: Some(seconds(3.0)), ..tcp("stopped", "S", "D", &[through("R")], "newreno") },
        Transfer { start: seconds(600.0), ..sized("late", 50_000_000, &[PathChoice::Direct]) },
    ];
    let record = go(&setup, 1);
    let failed = record.transfers.iter().filter(|transfer| transfer.failed.is_some());
    let failed: Vec<&str> = failed.map(|transfer| transfer.name.as_str()).collect();
    assert_eq!(failed, ["dark"], "the last tries still");
    let [dark, short, another, ..] = &record.transfers[..] else { panic!("five transfers") };
    assert_eq!((dark.finished, short.finished.is_some()), (None, true));
    assert!(another.finished.is_some_and(|at| at < 100.0), "{:?}", another.finished);
}

/// What is lost before the relay is sent again by a TCP that has a fifteenth of the RTT.
#[test]
fn a_relay_that_ends_tcp_repairs_losses_where_they_are() {
    let mut links = [both("S", "R", 20, 2), both("R", "D", 20, 30)].concat();
    links.iter_mut().take(2).for_each(|link| link.spec.loss = Some(0.01));
    let through = |carrier, law: &str| Transfer { carrier, ..tcp("bulk", "S", "D", &[through("R")], law) };
    let split = || Carrier::TcpRelays(TcpOptions { relay_packets: 1_000, ..TcpOptions::default() });
    for law in ["newreno", "cubic"] {
        let [whole, split] = [Carrier::Tcp(TcpOptions::default()), split()].map(|carrier| {
            let mut setup = setup(30.0, links.clone());
            setup.transfers.push(through(carrier, law));
            let record = go(&setup, 1);
            goodput(&record, &record.transfers[0], 10.0, 30.0)
        });
        println!("{law}: {whole:.2} Mbit/s as one connection, {split:.2} as two");
        assert!(split > 5.0 * whole && split > 12.0);
    }
    let mut setup = setup(1.0, links);
    setup.transfers.push(through(split(), "bbr"));
    assert!(matches!(refused(&setup), RunError::Carrier { .. }));
}

#[test]
fn real_bytes_come_as_fast() {
    let rates = [false, true].map(|real_bytes| {
        let mut setup = setup(6.0, detour());
        let options = SessionOptions { real_bytes, ..SessionOptions::default() };
        setup.transfers.push(Transfer {
            carrier: Carrier::Session(options),
            ..session("bulk", "S", "D", &[PathChoice::Direct, through("R")], "newreno")
        });
        let record = go(&setup, 1);
        goodput(&record, &record.transfers[0], 1.0, 6.0)
    });
    println!("{rates:?}");
    assert!(rates[0] > 17.0 && (rates[0] - rates[1]).abs() < 0.5, "{rates:?}");
}

/// Each of the papers' readings changes what is sent, and still moves the data.
#[test]
fn sessions_can_follow_the_papers() {
    let with = |options: SessionOptions| {
        let mut setup = setup(6.0, detour());
        setup.network.links[0].spec.jitter = Some(Duration::from_millis(2));
        setup.transfers.push(Transfer {
            carrier: Carrier::Session(options),
            ..session("bulk", "S", "D", &[PathChoice::Direct, through("R")], "newreno")
        });
        let record = go(&setup, 1);
        (record.trace, goodput(&record, &record.transfers[0], 2.0, 6.0))
    };
    let usual = with(SessionOptions::default());
    for (name, options) in [
        ("pnack", SessionOptions { pnack_first_gap: true, ..SessionOptions::default() }),
        ("ack_path", SessionOptions { ack_direct: true, ..SessionOptions::default() }),
        ("tau", SessionOptions { tau: Some(1.0), ..SessionOptions::default() }),
        ("datagram", SessionOptions { datagram: Some(1472), ..SessionOptions::default() }),
    ] {
        let (trace, rate) = with(options);
        println!("{name}: {rate:.2} of {:.2} Mbit/s, another trace: {}", usual.1, trace != usual.0);
        assert!(rate > 10.0 && trace != usual.0, "{name}: {rate}");
    }
}

#[test]
fn a_relay_crashes_and_starts_again() {
    let mut setup = setup(40.0, detour());
    setup.transfers.push(session("bulk", "S", "D", &[PathChoice::Direct, through("R")], "newreno"));
    for (at, up) in [(10.0, false), (20.0, true)] {
        setup.changes.push(Change { at: seconds(at), what: Changed::Relay { node: "R".into(), up } });
    }
    let record = go(&setup, 1);
    let transfer = &record.transfers[0];
    let rates = [(5.0, 10.0), (12.0, 20.0), (35.0, 40.0)]
        .map(|(from, until)| goodput(&record, transfer, from, until));
    println!("{rates:?}");
    assert!(rates[0] > 17.0 && (8.5..9.8).contains(&rates[1]) && rates[2] > 17.0, "{rates:?}");
    // A path that was dropped and opened again is one path.
    let acked = &transfer.paths[1].acked;
    assert!(acked.windows(2).all(|pair| pair[0] <= pair[1]) && acked[400] > acked[150] + 10_000_000);
}

#[test]
fn a_link_changes() {
    let mut setup = setup(30.0, both("S", "D", 10, 10).to_vec());
    setup.transfers.push(session("bulk", "S", "D", &[PathChoice::Direct], "newreno"));
    let link = |from: &str, to: &str, rate, delay| {
        let [from, to] = [from, to].map(str::to_owned);
        Changed::Link { from, to, rate, delay, loss: None, up: None, mtu: None }
    };
    let later = Some(Duration::from_millis(40));
    setup.changes = vec![
        Change { at: seconds(10.0), what: link("S", "D", None, later) },
        Change { at: seconds(10.0), what: link("D", "S", None, later) },
        Change { at: seconds(20.0), what: link("S", "D", Some(4_000_000), None) },
    ];
    let record = go(&setup, 1);
    let transfer = &record.transfers[0];
    let rtt = |second: usize| transfer.paths[0].rtt[second * 10];
    println!("{} {} {}", rtt(9), rtt(19), goodput(&record, transfer, 24.0, 30.0));
    assert!((20.0..65.0).contains(&rtt(9)) && (80.0..145.0).contains(&rtt(19)));
    assert!((3.0..4.0).contains(&goodput(&record, transfer, 24.0, 30.0)));
}

#[test]
fn the_same_seed_gives_the_same_record_and_another_another() {
    let mut setup = setup(3.0, detour());
    setup.network.links[0].spec.loss = Some(0.01);
    setup.transfers.push(session("a", "S", "D", &[PathChoice::Direct, through("R")], "background"));
    setup.transfers.push(session("b", "S", "D", &[PathChoice::Direct], "newreno"));
    let record = go(&setup, 7);
    assert_eq!(record, go(&setup, 7));
    let other = go(&setup, 8);
    assert_ne!(record.trace, other.trace);
    assert_ne!(record.transfers[0].started, other.transfers[0].started);
    // How often things are noted changes nothing that happens.
    setup.sample = Duration::from_millis(250);
    assert_eq!(record.trace, go(&setup, 7).trace);
    println!("trace {:x}", record.trace);
}

#[test]
fn the_seed_chooses_ends_and_ways() {
    let mut lines = Vec::new();
    for relay in 1..=5 {
        lines.extend(both("S1", &format!("R{relay}"), 10, 5));
        lines.extend(both(&format!("R{relay}"), "G", 10, 5));
    }
    lines.extend(both("S2", "R1", 10, 5));
    let mut setup = setup(0.1, lines);
    let transfer = session("bulk", "S1", "G", &[PathChoice::Any("R".into(), 3)], "newreno");
    setup.transfers.push(Transfer {
        from: NodeChoice::Any("S".into()),
        to: NodeChoice::Any("S".into()),
        ..transfer
    });
    let mut seen = BTreeMap::new();
    for seed in 0..40 {
        let record = go(&setup, seed);
        let names: Vec<String> = record.transfers[0].paths.iter().map(|path| path.name.clone()).collect();
        let mut sorted = names.clone();
        sorted.sort();
        sorted.dedup();
        assert_eq!(sorted.len(), 3);
        *seen.entry(sorted).or_insert(0) += 1;
    }
    println!("{seen:?}");
    assert!(seen.len() >= 8, "of ten draws of three among five: {seen:?}");
}

#[test]
fn what_is_wrong_in_a_plan_is_named() {
    let with = |transfer: Transfer| {
        let mut setup = setup(1.0, detour());
        setup.transfers.push(transfer);
        setup
    };
    let bulk = |paths: &[PathChoice]| session("bulk", "S", "D", paths, "background");
    let said = |setup: &Setup| refused(setup).to_string();

    assert_eq!(
        said(&with(session("bulk", "S", "X", &[PathChoice::Direct], "background"))),
        "there is no node called X; there are D, R, S"
    );
    assert_eq!(said(&with(bulk(&[through("Q")]))), "there is no node called Q; there are D, R, S");
    let mut apart = with(bulk(&[PathChoice::Direct]));
    apart.network.links = [both("S", "A", 1, 1), both("B", "D", 1, 1)].concat();
    assert_eq!(said(&apart), "no way leads from S to D");
    assert!(
        said(&with(bulk(&[through("S")])))
            .starts_with("bulk: a way leads through S, which is one of its ends")
    );
    assert_eq!(
        said(&with(bulk(&[PathChoice::Any("R".into(), 2)]))),
        "bulk: 2 nodes that begin with \"R\" are wanted, but only 1 can be chosen"
    );
    let unknown = said(&with(session("bulk", "S", "D", &[PathChoice::Direct], "reno")));
    assert!(
        unknown.starts_with("bulk: there is no congestion controller `reno`: choose one of "),
        "{unknown}"
    );
    let mut wrong = bulk(&[PathChoice::Direct]);
    wrong.congestion.options.insert("gamma".into(), 1.0);
    let unknown = said(&with(wrong));
    assert!(unknown.starts_with("bulk: background has no option gamma; it has none"), "{unknown}");
    let mut one_way = with(bulk(&[PathChoice::Direct]));
    one_way.network.links.push(both("S", "Y", 1, 1)[0].clone());
    assert!(said(&one_way).starts_with("a link leads from S to Y, but none back"));
    let mut no_relay = with(bulk(&[PathChoice::Direct]));
    no_relay.changes.push(Change { at: seconds(0.5), what: Changed::Relay { node: "R".into(), up: false } });
    assert!(said(&no_relay).starts_with("at R there is no relay"));
    let mut large = with(bulk(&[PathChoice::Direct]));
    large.memory = 1_000_000;
    let bound = memory_bound(&large).unwrap();
    println!("bound {bound}");
    assert!((2_000_000..20_000_000).contains(&bound), "{bound}");
    assert!(said(&large).ends_with(" MB of memory, and the plan allows 1 MB (`memory`)"), "{}", said(&large));
    let cancelled = run(&with(bulk(&[PathChoice::Direct])), 1, &AtomicBool::new(true));
    assert_eq!(cancelled, Err(RunError::Cancelled));
}

/// Hosts on two sides of a bottleneck of 10 Mbit/s, with a base RTT of 20 ms and 50 packets of
/// queue.
fn dumbbell(duration: f64) -> Setup {
    let mut setup = setup(duration, Vec::new());
    setup.network.named = Some(("dumbbell".into(), BTreeMap::new()));
    setup
}

#[test]
fn two_newreno_share_a_dumbbell() {
    let mut setup = dumbbell(100.0);
    for pair in 1..=2 {
        let [from, to] = ["l", "r"].map(|side| format!("{side}{pair}"));
        setup.transfers.push(tcp(&format!("tcp{pair}"), &from, &to, &[PathChoice::Direct], "newreno"));
        setup.transfers[pair - 1].start = seconds(0.1 * pair as f64);
    }
    let record = go(&setup, 1);
    let rates: Vec<f64> =
        record.transfers.iter().map(|transfer| goodput(&record, transfer, 10.0, 100.0)).collect();
    println!("{rates:?}");
    // ns-3 4.823 + 4.824, htsim 4.829 + 4.824 Mbit/s; at most 9.653 with headers of 52 bytes.
    let sum: f64 = rates.iter().sum();
    assert!((9.55..9.66).contains(&sum), "{rates:?}");
    assert!(rates[0] / rates[1] > 0.75 && rates[1] / rates[0] > 0.75, "{rates:?}");
    let link = record.links.iter().find(|link| link.from == "west" && link.to == "east").unwrap();
    assert!(
        link.rate == 10_000_000 && link.dropped[1000] > 10 && link.queue.iter().all(|queue| *queue <= 50)
    );
    let utilisation = (link.sent[1000] - link.sent[100]) as f64 * 8.0 / 90.0 / 1e7;
    assert!((0.99..1.001).contains(&utilisation), "{utilisation}");
    for transfer in &record.transfers {
        let path = &transfer.paths[0];
        assert!((15.0..90.0).contains(&path.window[500]) && (20.0..90.0).contains(&path.rtt[500]));
        assert!(transfer.lost > Some(5) && transfer.opened == 1 && *path.lost.last().unwrap() > 5);
        let (acked, received) = (*path.acked.last().unwrap(), *transfer.received.last().unwrap());
        assert!(received.abs_diff(acked) < 200_000, "{received} received, {acked} acknowledged");
    }
}

#[test]
fn tcp_takes_a_subflow_per_way() {
    let mut setup = setup(20.0, detour());
    setup.transfers.push(Transfer {
        demand: Demand::Size(20_000_000),
        ..tcp("bulk", "S", "D", &[PathChoice::Direct, through("R")], "newreno")
    });
    let record = go(&setup, 1);
    let transfer = &record.transfers[0];
    println!(
        "{:?} {:?}",
        transfer.finished,
        transfer.paths.iter().map(|path| path.acked.last()).collect::<Vec<_>>()
    );
    assert_eq!(*transfer.received.last().unwrap(), 20_000_000);
    // 160 Mbit at twice 9.65 Mbit/s.
    assert!((8.3..10.0).contains(&transfer.finished.unwrap()));
    assert!(transfer.paths.iter().all(|path| *path.acked.last().unwrap() > 8_000_000));
}

fn requests(arrivals: Arrivals, sizes: Sizes) -> Requests {
    Requests {
        name: "web".into(),
        client: "r2".into(),
        server: "l2".into(),
        arrivals,
        sizes,
        congestion: congestion("newreno"),
        tcp: TcpOptions::default(),
        start: seconds(1.0),
        stop: None,
    }
}

#[test]
fn requests_are_the_same_with_and_without_other_load() {
    let think = seconds(0.5);
    let open = Arrivals::Open { count: 0, every: seconds(0.2), poisson: true };
    for arrivals in [Arrivals::Closed { clients: 10, think, rounds: None }, open] {
        let [alone, beside] = [false, true].map(|background| {
            let mut setup = dumbbell(40.0);
            setup.requests.push(requests(arrivals, Sizes::Web));
            if background {
                setup.transfers.push(tcp("bulk", "l1", "r1", &[PathChoice::Direct], "newreno"));
            }
            go(&setup, 3).requests[0].list.clone()
        });
        assert_eq!(alone.len(), beside.len());
        assert!(alone.len() > 150, "{}", alone.len());
        let (mut slower, mut pairs) = (0, 0);
        for (alone, beside) in alone.iter().zip(&beside) {
            assert_eq!(alone.size, beside.size);
            if let (Some(alone), Some(beside)) = (alone.took, beside.took) {
                (slower, pairs) = (slower + usize::from(beside > alone), pairs + 1);
            }
        }
        let mean = |list: &[RequestRecord]| {
            let times: Vec<f64> = list.iter().filter_map(|request| request.took).collect();
            times.iter().sum::<f64>() / times.len() as f64
        };
        println!(
            "{pairs} pairs, {slower} slower; {:.3} s alone, {:.3} s beside a bulk flow",
            mean(&alone),
            mean(&beside)
        );
        assert!(pairs > 150 && slower * 10 > pairs * 9, "{slower} of {pairs}");
        assert!(mean(&beside) > 1.3 * mean(&alone));
        assert!(alone.iter().all(|request| request.began.is_none_or(|began| began >= 1.0)));
        if let Arrivals::Open { .. } = arrivals {
            let began = |list: &[RequestRecord]| list.iter().map(|request| request.began).collect::<Vec<_>>();
            assert_eq!(began(&alone), began(&beside));
        }
    }
}

#[test]
fn cross_traffic_takes_its_rate() {
    for poisson in [false, true] {
        let mut setup = dumbbell(30.0);
        setup.cross.push(Cross {
            name: "noise".into(),
            from: "l2".into(),
            to: "r2".into(),
            rate: 4_000_000,
            packet: 1_000,
            poisson,
            start: seconds(10.0),
            stop: Some(seconds(20.0)),
            delays: false,
        });
        setup.transfers.push(tcp("bulk", "l1", "r1", &[PathChoice::Direct], "newreno"));
        let record = go(&setup, 1);
        let rates = [(4.0, 10.0), (12.0, 20.0), (24.0, 30.0)]
            .map(|(from, until)| goodput(&record, &record.transfers[0], from, until));
        println!("{rates:?}");
        assert!(rates[0] > 9.4 && (5.2..5.9).contains(&rates[1]) && rates[2] > 9.4, "{rates:?}");
    }
}

#[test]
fn every_controller_moves_bulk_over_both_carriers() {
    for named in byway_control::catalogue::names() {
        let mut setup = setup(15.0, detour());
        setup.transfers.push(session("bulk", "S", "D", &[PathChoice::Direct, through("R")], named.name));
        let record = go(&setup, 1);
        let byway = goodput(&record, &record.transfers[0], 5.0, 15.0);
        setup.transfers[0] = tcp("bulk", "S", "D", &[PathChoice::Direct, through("R")], named.name);
        let record = go(&setup, 1);
        let reference = goodput(&record, &record.transfers[0], 5.0, 15.0);
        println!("{}: session {byway:.2}, TCP {reference:.2} Mbit/s", named.name);
        assert!(byway > 0.3 && reference > 0.3, "{}", named.name);
    }
}

#[test]
fn wangs_optimum_is_known_where_it_is_defined() {
    let mut lines = Vec::new();
    for (relay, mbit) in [("R1", 5), ("R2", 5), ("R3", 1)] {
        lines.extend(both("A", relay, 100, 5));
        lines.extend(both("B", relay, 100, 5));
        lines.extend(both(relay, "D", mbit, 5));
    }
    let mut setup = setup(0.1, lines);
    for (name, from, rate, relays) in [("a", "A", 4, ["R1", "R2"]), ("b", "B", 8, ["R2", "R3"])] {
        let ways = relays.map(through);
        let demand = Demand::Rate(vec![(Duration::ZERO, rate * 1_000_000)]);
        setup.transfers.push(Transfer { demand, ..tcp(name, from, "D", &ways, "newreno") });
    }
    // 4 over the first, 5 and 1 times payload over wire over the others.
    let expected = 4e6 + 6e6 * 1_448.0 / 1_500.0;
    let optimum = go(&setup, 1).optimum.unwrap();
    assert!((optimum - expected).abs() < 10.0, "{optimum} {expected}");
    setup.transfers[0].demand = Demand::Unlimited;
    assert_eq!(go(&setup, 1).optimum, None);
}

#[test]
fn a_page_is_so_many_rounds_of_so_many_clients() {
    let mut setup = dumbbell(20.0);
    let page = Arrivals::Closed { clients: 6, think: Duration::ZERO, rounds: Some(4) };
    setup.requests.push(requests(page, Sizes::Fixed(20_000)));
    let list = go(&setup, 1).requests[0].list.clone();
    assert_eq!(list.len(), 24);
    let began: Vec<f64> = list.iter().filter_map(|request| request.began).collect();
    // Six begin at once, and each next as soon as the one before has come.
    assert_eq!(began.iter().filter(|&&began| began == 1.0).count(), 6);
    for client in list.chunks(4) {
        for pair in client.windows(2) {
            let came = pair[0].began.unwrap() + pair[0].took.unwrap();
            assert!((pair[1].began.unwrap() - came).abs() < 1e-9, "{pair:?}");
        }
    }
}

#[test]
fn the_delay_of_each_packet_is_noted_where_that_is_asked_for() {
    let mut setup = dumbbell(10.0);
    let call = Cross {
        name: "call".into(),
        from: "l2".into(),
        to: "r2".into(),
        rate: 80_000,
        packet: 200,
        poisson: false,
        start: seconds(1.0),
        stop: Some(seconds(9.0)),
        delays: true,
    };
    setup.cross.push(Cross { name: "noise".into(), delays: false, ..call.clone() });
    setup.cross.push(call);
    let alone = go(&setup, 1);
    let [calm] = alone.cross.as_slice() else { panic!("{:?}", alone.cross) };
    assert_eq!((calm.name.as_str(), calm.delays.len()), ("call", 400));
    setup.transfers.push(tcp("bulk", "l1", "r1", &[PathChoice::Direct], "newreno"));
    let beside = go(&setup, 1).cross.remove(0);
    assert_eq!(beside.delays.len(), 400);
    let least = calm.delays.iter().flatten().copied().fold(f64::INFINITY, f64::min);
    assert!(calm.delays.iter().all(|delay| delay.is_some_and(|delay| delay < least + 0.001)), "{least}");
    let waited = beside.delays.iter().flatten().filter(|&&delay| delay > least + 0.005).count();
    assert!(waited > 200 && beside.delays.iter().flatten().all(|&delay| delay >= least), "{waited}");
    assert!(beside.delays.iter().any(Option::is_none), "the queue was full now and then");
}
