//! Plans that name gateways: what they may say, and what comes of it in the simulator.

use byway_gateway::loss::LossRuleKind as Loss;
use byway_gateway::machine::Bundle;
use byway_gateway::receive_window::WindowRule;
use byway_gateway::reorder::Timer;
use byway_lab::plan::{Mode, Overrides, Plan};
use byway_lab::record::Record;
use byway_lab::setup::{Carrier, PathChoice};
use byway_lab::world;
use byway_wire::Duration;
use std::sync::atomic::AtomicBool;

/// A host behind a gateway, another behind another; two ways of 10 Mbit/s between the gateways.
const LINKS: &str = r#"
title = "t"
duration = "15 s"
cut = "5 s"
seeds = 1
[[link]]
between = ["S", "A"]
rate = "100 Mbit/s"
delay = "0.1 ms"
queue = "1000 packets"
[[link]]
between = ["B", "R"]
rate = "100 Mbit/s"
delay = "0.1 ms"
queue = "1000 packets"
[[link]]
between = ["A", "B"]
rate = "10 Mbit/s"
delay = "10 ms"
queue = "50 packets"
[[link]]
between = ["A", "X"]
rate = "100 Mbit/s"
delay = "5 ms"
queue = "1000 packets"
[[link]]
between = ["X", "B"]
rate = "10 Mbit/s"
delay = "7 ms"
queue = "50 packets"
"#;

const TRANSFER: &str = r#"
[[transfer]]
name = "bulk"
from = "S"
to = "R"
carrier = "gateways"
congestion = "newreno"
start = "3 s"
"#;

fn gateways(more: &str) -> String {
    format!(
        "{LINKS}\n[[gateways]]\nname = \"sites\"\nbetween = [\"A\", \"B\"]\npaths = [\"direct\", \"X\"]\n{more}\n{TRANSFER}"
    )
}

fn read(source: &str) -> Plan {
    Plan::read("plan.toml", source, Mode::All, &Overrides::default()).expect("a plan").expect("a form")
}

fn refused(source: &str) -> String {
    let read = Plan::read("plan.toml", source, Mode::All, &Overrides::default());
    read.expect_err("refused").to_string()
}

fn run(source: &str) -> Record {
    let plan = read(source);
    world::run(&plan.variants[0], 1, &AtomicBool::new(false)).expect("a run")
}

/// Mbit/s from second 5 to 15.
fn goodput(record: &Record) -> f64 {
    let received = &record.transfers[0].received;
    let at = |second: f64| received[(second / record.sample).round() as usize] as f64;
    (at(15.0) - at(5.0)) * 8.0 / 10.0 / 1e6
}

#[test]
fn what_a_plan_says_of_gateways_is_read() {
    let more = "congestion = \"harp-joint\"\nbundle = \"flow\"\nwindow = \"literal\"\nheadroom = \"20 %\"\nentry = \"65 KB\"\n\
                timer = { rule = \"harp\", rho = 2 }\nloss = \"batched\"\ncache = true\n";
    let plan = read(&gateways(more));
    let setup = &plan.variants[0];
    let [sites] = setup.gateways.as_slice() else { panic!("{:?}", setup.gateways) };
    assert_eq!((sites.congestion.name.as_str(), sites.settings.bundle), ("harp-joint", Bundle::Flow));
    let settings = sites.settings;
    assert_eq!((settings.window, settings.headroom_percent), (Some(WindowRule::Literal), 20));
    assert_eq!((settings.timer, settings.entry.flow_bytes), (Timer::Harp { rho: 2.0 }, 65_000));
    assert_eq!(
        (settings.loss, settings.cache),
        (Loss::Batched, Some(byway_gateway::cache::CacheLimits::default()))
    );
    let transfer = &setup.transfers[0];
    assert!(matches!(&transfer.carrier, Carrier::Gateways(_, by) if by == "sites"), "{transfer:?}");
    assert_eq!(
        transfer.paths,
        [PathChoice::Direct, PathChoice::Through("X".into())],
        "those of its gateways"
    );
    // Nothing said: byway's own.
    let usual = &read(&gateways("")).variants[0].gateways[0].settings.clone();
    assert_eq!(*usual, byway_gateway::machine::Settings::default());
    assert_eq!(usual.timer, Timer::Peak { cap: Duration::from_millis(200) });
}

#[test]
fn mistakes_are_told_with_their_line() {
    for (more, expected) in [
        ("bundle = \"pair\"", "expected site or flow"),
        ("window = \"half\"", "expected delivered, literal or off"),
        ("timer = { rho = 1 }", "harp, harp-relative, hir, hir-relative or peak"),
        ("congestion = \"cubicle\"", "no congestion controller `cubicle`"),
        ("congestion = \"hir:pockets=20\"", "hir has no option pockets"),
        ("relays = \"none\"", "expected prefer, exclude or any"),
        ("choice = \"random\"", "expected waiting or literal"),
        ("loss = \"luck\"", "expected all-passed, batched or path-numbers"),
        ("cache = \"much\"", "cache"),
    ] {
        let told = refused(&gateways(more));
        assert!(told.starts_with("plan.toml:") && told.contains(expected), "{more}: {told}");
    }
    let nobody = refused(&format!("{LINKS}{TRANSFER}"));
    assert!(nobody.contains("expected the name of [[gateways]]"), "{nobody}");
    let detour = gateways("").replace("[\"direct\", \"X\"]", "[\"X\"]");
    assert!(refused(&detour).contains("need \"direct\" among their ways"));
    let called = gateways("").replace("name = \"sites\"", "name = \"bulk\"");
    assert!(refused(&called).contains("two things are called"));
}

#[test]
fn a_host_that_knows_of_one_way_gets_both() {
    let record = run(&gateways(""));
    let rate = goodput(&record);
    let [sites] = record.gateways.as_slice() else { panic!("{:?}", record.gateways) };
    println!("{rate:.2} Mbit/s {sites:?}");
    assert!(rate > 14.0, "{rate}");
    assert_eq!((sites.plain, sites.dropped), (0, 0), "{sites:?}");
    let within: u64 = sites.waits.iter().filter(|(bound, _)| *bound <= 20).map(|(_, count)| count).sum();
    assert!(within as f64 > 0.9 * sites.released as f64, "{sites:?}");
    let transfer = &record.transfers[0];
    let carried: Vec<u64> = transfer.paths.iter().map(|path| path.acked.last().copied().unwrap()).collect();
    assert_eq!(transfer.paths.iter().map(|path| path.name.as_str()).collect::<Vec<_>>(), ["direct", "X"]);
    assert_eq!(carried.iter().sum::<u64>(), *transfer.received.last().unwrap());
    assert!(carried.iter().all(|bytes| *bytes > 4_000_000), "{carried:?}");
    assert_eq!(run(&gateways("")).trace, record.trace, "the same seed, the same world");
}

#[test]
fn a_bundle_for_each_flow_is_a_session_for_each() {
    let two = |bundle: &str| {
        let more = format!("bundle = \"{bundle}\"");
        run(&gateways(&more).replace("start = \"3 s\"", "start = \"3 s\"\ncount = 2"))
    };
    let (site, flow) = (two("site"), two("flow"));
    for record in [&site, &flow] {
        let [sites] = record.gateways.as_slice() else { panic!("{:?}", record.gateways) };
        assert_eq!(sites.plain, 0);
        let received: Vec<u64> =
            record.transfers.iter().map(|transfer| *transfer.received.last().unwrap()).collect();
        assert!(received.iter().sum::<u64>() > 12_000_000, "{received:?}");
        assert!(received.iter().all(|bytes| *bytes > 500_000), "{received:?}");
    }
    assert_ne!(site.trace, flow.trace);
    assert_eq!(two("flow").trace, flow.trace, "the same seed, the same world");
    // All see the windows of one session, or each those of its own.
    let windows = |record: &Record, transfer: usize| record.transfers[transfer].paths[0].window.clone();
    assert_eq!(windows(&site, 0), windows(&site, 1));
    assert_ne!(windows(&flow, 0), windows(&flow, 1));
    for transfer in &flow.transfers {
        let carried: u64 = transfer.paths.iter().map(|path| *path.acked.last().unwrap()).sum();
        let received = *transfer.received.last().unwrap();
        assert!(carried > received / 20 * 19, "{carried} of {received} bytes went by its own");
    }
}

#[test]
fn windows_that_are_not_rewritten_overflow_the_entry() {
    let dropped = |window: &str| {
        let record = run(&gateways(&format!("window = \"{window}\"\nentry = \"100 KB\"")));
        record.gateways[0].dropped
    };
    // Hosts' windows follow an RTT after the pace of `background`, so a few packets are still too
    // many.
    let (delivered, off) = (dropped("delivered"), dropped("off"));
    println!("{delivered} with windows rewritten, {off} without");
    assert!(off > 0 && delivered < off / 2, "{delivered} {off}");
}

#[test]
fn rules_find_what_is_lost_and_only_that() {
    let found = |rule: &str, loss: &str| {
        let more = format!("loss = \"{rule}\"\ncache = true");
        let lossy = format!("queue = \"50 packets\"\nloss = \"{loss}\"");
        run(&gateways(&more).replace("queue = \"50 packets\"", &lossy)).gateways.remove(0).found
    };
    let median = |mut after: Vec<f32>| {
        after.sort_by(f32::total_cmp);
        after[after.len() / 2]
    };
    let [numbers, batched, passed] = ["path-numbers", "batched", "all-passed"].map(|rule| {
        assert!(found(rule, "0 %").is_empty(), "{rule}");
        let after = found(rule, "0.5 %");
        println!("{rule}: {after:?}");
        assert!(after.len() > 5, "{rule}: {after:?}");
        median(after)
    });
    assert!(numbers <= passed && batched <= passed, "{numbers} {batched} {passed}");
    // Without a cache that rule is the session's own.
    assert!(run(&gateways("")).gateways[0].found.is_empty());
}

#[test]
fn a_plan_says_what_is_different_with_real_programs() {
    let source = format!(
        "{}\n[sweep]\nwho = [\"a\", \"b\"]\n[mode.quick]\nseeds = 3\n[mode.emulate]\nduration = \"9 s\"\nsweep = {{ who = [\"b\"] }}\n",
        gateways("")
    );
    let of = |mode| Plan::read("p", &source, mode, &Overrides::default()).expect("a plan").expect("a form");
    let seen = |mode| {
        let plan = of(mode);
        (plan.seeds, plan.variants.len(), plan.variants[0].duration)
    };
    let whole = Duration::from_secs(15);
    assert_eq!((seen(Mode::All), seen(Mode::Quick)), ((1, 2, whole), (3, 2, whole)));
    let emulated = (1, 1, Duration::from_secs(9));
    assert_eq!((seen(Mode::Emulate), seen(Mode::EmulateQuick)), (emulated, emulated));
    let without = gateways("");
    let none = |mode| Plan::read("p", &without, mode, &Overrides::default()).expect("a plan").is_none();
    assert_eq!((none(Mode::Emulate), none(Mode::EmulateQuick)), (false, true));
    let reason = without.replace("title = \"t\"", "title = \"t\"\nonly_simulated = \"it is\"");
    assert_eq!(read(&reason).only_simulated.as_deref(), Some("it is"));
    let told = refused(&format!("{without}\n[mode.all]\nseeds = 1\n"));
    assert!(told.contains("there is no mode `all`"), "{told}");
}
