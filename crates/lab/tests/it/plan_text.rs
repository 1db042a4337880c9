//! A variant that is written as a plan reads back as the same.

use byway_engine::path_choice::PathRule;
use byway_lab::plan::{Mode, Overrides, Plan, plan_text};
use byway_lab::setup::{
    Attack, Carrier, Change, Changed, ClockSetup, Demand, EndChange, EndChoice, ExchangeOptions, PathChoice,
    RegistrySetup, SessionOptions, Setup, StreamSetup, TcpOptions, UdpFilter,
};
use byway_lab::{experiment, fuzz, runner, world};
use byway_sim::tcp::PartialAck;
use byway_wire::Duration;
use std::sync::atomic::AtomicBool;

fn read(source: &str) -> Plan {
    let plan = Plan::read("written.toml", source, Mode::All, &Overrides::default());
    plan.unwrap_or_else(|error| panic!("{error}\n{source}")).expect("for this mode")
}

/// Asserts that `setup` is what its plan says.
fn same(what: &str, setup: &Setup) {
    let source = plan_text(what, setup);
    let plan = read(&source);
    assert_eq!((plan.title.as_str(), plan.variants.len()), (what, 1));
    let without_axes = Setup { axes: Vec::new(), ..setup.clone() };
    assert_eq!(format!("{:#?}", plan.variants[0]), format!("{without_axes:#?}"), "{what}\n{source}");
}

#[test]
fn every_random_world_is_a_plan() {
    for seed in 1..=300 {
        same(&format!("seed {seed}"), &fuzz::setup(seed));
    }
}

#[test]
fn every_variant_of_every_experiment_is_a_plan() {
    let mut variants = 0;
    for experiment in experiment::embedded() {
        let Some(source) = experiment.plan else { continue };
        for variant in &read(&source).variants {
            same(&experiment.id, variant);
            variants += 1;
        }
    }
    assert!(variants > 100, "{variants}");
}

/// A world with all of an exchange that random worlds may lack.
fn living() -> Setup {
    let several = (1..100).map(fuzz::setup).find(|setup| setup.transfers.len() > 1);
    let mut setup = several.expect("random worlds with two transfers");
    let full = ExchangeOptions {
        objects: vec![0, 1, 64_000],
        objects_present: 2,
        objects_back: vec![1_234_567],
        streams: vec![
            StreamSetup { bytes: 100_000, answer: 0, in_turn: false, reset_after: Some(0) },
            StreamSetup { bytes: 0, answer: 7, in_turn: true, reset_after: None },
        ],
        datagrams: 3,
        writes: Some(500_001),
        reads: Some(1_000_000),
        memory: Some(65_536),
        datagram: Some(1_472),
        path_rule: Some(PathRule::Ecf),
        tcp: true,
        uplinks: vec!["S2".into(), "a \"b\"".into()],
        ticket_names_relays: true,
        words_hold: Some(Duration::from_nanos(30_000_000_001)),
        sender_clock: ClockSetup {
            ahead: Duration::from_secs(3_600),
            drift_ppm: -50.1,
            step: Some((Duration::from_secs(10), Duration::ZERO)),
        },
        receiver_clock: ClockSetup { drift_ppm: 1e-7, ..ClockSetup::default() },
    };
    for (transfer, options) in setup.transfers.iter_mut().zip([full, ExchangeOptions::default()]) {
        transfer.demand = Demand::Size(options.bytes());
        transfer.carrier = Carrier::Exchange(options);
    }
    let name = setup.transfers[0].name.clone();
    setup.until_done = true;
    setup.early_wakes = 0.1 + 0.2;
    setup.attack = Attack { replayed: 0.01, forged: 1e-12 };
    let relays = vec![PathChoice::Through("R".into()), PathChoice::Any("p".into(), 3)];
    setup.registry = Some(RegistrySetup { at: "A".into(), relays, lend: None });
    let spec = &mut setup.network.links[1].spec;
    (spec.mtu, spec.mark_above, spec.bleaches) = (Some(1_280), Some(0), true);
    let [a, b] = ["A", "B"].map(str::to_owned);
    let link = |from: &String, to: &String, mtu| {
        let (from, to) = (from.clone(), to.clone());
        Changed::Link { from, to, rate: None, delay: None, loss: Some(0.5), up: Some(true), mtu }
    };
    let udp =
        |from: &String, to: &String, filter| Changed::Udp { from: from.clone(), to: to.clone(), filter };
    let filter = Some(UdpFilter { share: 1.0, above: 0 });
    let mut what = vec![
        link(&a, &b, Some(1_200)),
        link(&b, &a, Some(1_200)),
        link(&a, &b, None),
        link(&b, &a, Some(68)),
        udp(&a, &b, filter),
        udp(&b, &a, filter),
        udp(&b, &a, Some(UdpFilter { share: 0.5, above: 1_000 })),
        udp(&a, &b, None),
        Changed::Registry { up: false },
        Changed::Relay { node: "R0".into(), up: true },
    ];
    for end in [EndChoice::Sender, EndChoice::Receiver] {
        let changes = [
            EndChange::Restart,
            EndChange::Freeze(true),
            EndChange::Freeze(false),
            EndChange::Socket { number: 0, up: false },
            EndChange::Socket { number: 7, up: true },
            EndChange::Rebind,
            EndChange::NatFilter(true),
            EndChange::NatFilter(false),
            EndChange::Move,
            EndChange::Reads(true),
            EndChange::Reads(false),
            EndChange::Reset,
        ];
        what.extend(changes.map(|what| Changed::End { transfer: name.clone(), end, what }));
    }
    setup.changes = what.into_iter().map(|what| Change { at: Duration::from_millis(1_500), what }).collect();
    setup
}

#[test]
fn all_of_an_exchange_is_written() {
    same("hosts that live", &living());
    // Two directions that change alike are one section.
    assert_eq!(plan_text("t", &living()).matches("mtu = \"1200 B\"").count(), 1);
}

#[test]
fn what_only_papers_and_sweeps_need_is_written() {
    let mut setup = fuzz::setup(2);
    setup.duration = Duration::from_nanos(1_200_000_000_001);
    setup.access_jitter = 1.0 / 3.0;
    let options = SessionOptions {
        pnack_first_gap: true,
        ack_direct: true,
        tau: Some(1.5),
        datagram: Some(1_300),
        real_bytes: true,
    };
    let transfer = &mut setup.transfers[0];
    transfer.carrier = Carrier::Session(options);
    transfer.demand = Demand::Rate(vec![(Duration::ZERO, 0), (Duration::from_millis(1_500), 1_000_001)]);
    transfer.congestion.options.insert("delta".into(), 0.15);
    transfer.stop = Some(Duration::from_secs(100));
    same("a \"title\" with \\ and more", &setup);
    assert_eq!(read(&plan_text("costs $5", &setup)).title, "costs 5");
    for partial_ack in [PartialAck::Steady, PartialAck::Impatient, PartialAck::Ends] {
        setup.transfers[0].carrier =
            Carrier::Tcp(TcpOptions { sack: false, partial_ack, ..TcpOptions::default() });
        same("hosts without SACK", &setup);
    }
}

#[test]
fn the_plan_of_a_random_world_runs_as_that_world() {
    for seed in [3, 12] {
        let mut setup = fuzz::setup(seed);
        setup.duration = Duration::from_secs(60);
        let written = format!("first_seed = {seed}\nseeds = 1\n{}", plan_text("a world", &setup));
        let plan = read(&written);
        assert_eq!(plan.seed_range(), seed..seed + 1);
        let cancel = AtomicBool::new(false);
        let outcome = runner::run(&plan, &cancel, &|_, _| {});
        let record = world::run(&setup, seed, &cancel).expect("a run");
        assert_eq!((outcome.error, outcome.records), (None, vec![record]), "seed {seed}");
    }
}
