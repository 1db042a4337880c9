//! What a plan may say, and what is said about one that may not.

use byway_lab::plan::{Mode, Overrides, Plan, SeedChoice};
use byway_lab::setup::{
    Arrivals, Carrier, Changed, Demand, Discipline, LendLimit, NodeChoice, PathChoice, QueueLimit, Sizes,
};
use byway_wire::Duration;

const PLAN: &str = r#"
title = "One backup beside the web"
duration = "60 s"
cut = "10 s"
seeds = 10

[sweep]
congestion = ["background", "mpath"]
rival = [false, true]
ways = { one = ["direct"], two = ["direct", "R"] }
factor = [1, 2.5]

[[skip]]
congestion = "mpath"
ways = ["one"]

[mode.quick]
seeds = 2
duration = "20 s"
sweep = { congestion = ["background"], ways = ["two"] }

[topology]
name = "harp-t1"
queue = 50

[[link]]
between = ["S", "R"]
rate = "10 Mbit/s"
delay = "5 ms * $factor"
queue = "60 ms"
loss = "0.1 %"

[[change]]
at = "30 s"
link = ["S", "R"]
delay = "30 ms"
one_way = true

[[transfer]]
name = "backup"
from = "S"
to = "D"
paths = "$ways"
congestion = "$congestion"
options = { delta = 0.15, choke = false }
size = "100 MB"
start_jitter = "20 ms"
count = 2

[[transfer]]
name = "rival"
when = "$rival"
from_any = "G"
to_any = "G"
carrier = "tcp"
steps = [["0 s", "2 Mbit/s"], ["30 s", "8 Mbit/s"]]
tcp = { receive_window = "64 KB" }

[[requests]]
name = "web"
client = "C"
server = "W"
clients = 10

[[cross]]
name = "noise"
from = "A"
to = "B"
rate = "2 Mbit/s"
"#;

fn read(source: &str) -> Plan {
    Plan::read("plan.toml", source, Mode::All, &Overrides::default()).expect("a plan").expect("for this mode")
}

fn refused(source: &str) -> (usize, String) {
    let error = Plan::read("plan.toml", source, Mode::All, &Overrides::default()).expect_err("refused");
    (error.line, error.what)
}

#[test]
fn a_plan_is_every_variant_of_its_sweep() {
    let plan = read(PLAN);
    assert_eq!((plan.title.as_str(), plan.seeds), ("One backup beside the web", 10));
    // 2 x 2 x 2 x 2, without mpath over one way.
    assert_eq!(plan.variants.len(), 12);
    let variant = plan.variants.last().expect("one");
    let axes: Vec<_> = variant.axes.iter().map(|(name, label)| format!("{name}={label}")).collect();
    assert_eq!(axes, ["congestion=mpath", "rival=true", "ways=two", "factor=2.5"]);
    assert_eq!(variant.duration, Duration::from_secs(60));
    let (name, parameters) = variant.network.named.as_ref().expect("a topology");
    assert_eq!((name.as_str(), parameters["queue"]), ("harp-t1", 50.0));
    assert_eq!(variant.network.links.len(), 2, "both ways");
    let line = &variant.network.links[1];
    assert_eq!((line.from.as_str(), line.to.as_str()), ("R", "S"));
    assert_eq!(line.spec.delay, Some(Duration::from_micros(12_500)));
    assert_eq!(line.spec.queue, Some(QueueLimit::Time(Duration::from_millis(60))));
    assert_eq!(line.spec.loss, Some(0.001));
    assert_eq!(variant.changes.len(), 1);
    assert!(matches!(&variant.changes[0].what, Changed::Link { delay: Some(_), rate: None, .. }));
    let names: Vec<_> = variant.transfers.iter().map(|transfer| transfer.name.as_str()).collect();
    assert_eq!(names, ["backup.1", "backup.2", "rival"]);
    let backup = &variant.transfers[0];
    assert_eq!(backup.congestion.name, "mpath");
    assert_eq!((backup.congestion.options["delta"], backup.congestion.options["choke"]), (0.15, 0.0));
    assert_eq!(backup.paths, [PathChoice::Direct, PathChoice::Through("R".into())]);
    assert_eq!(backup.demand, Demand::Size(100_000_000));
    let rival = &variant.transfers[2];
    assert_eq!(rival.from, NodeChoice::Any("G".into()));
    assert!(matches!(&rival.carrier, Carrier::Tcp(tcp) if tcp.receive_window == Some(64_000)));
    assert!(matches!(&rival.demand, Demand::Rate(steps) if steps.len() == 2));
    assert_eq!(variant.requests[0].sizes, Sizes::Web);
    assert_eq!(
        variant.requests[0].arrivals,
        Arrivals::Closed { clients: 10, think: Duration::from_secs(1), rounds: None }
    );
    assert_eq!(plan.variants[0].transfers.len(), 2, "no rival in the first variant");
}

#[test]
fn modes_and_the_command_line_narrow_it() {
    let quick =
        Plan::read("p", PLAN, Mode::Quick, &Overrides::default()).expect("a plan").expect("a quick form");
    assert_eq!((quick.seeds, quick.variants.len()), (2, 4));
    assert_eq!(quick.variants[0].duration, Duration::from_secs(20));
    assert_eq!(quick.variants[0].transfers[0].paths.len(), 2, "the label still means its value");
    let wanted = vec![("congestion".into(), vec!["cubic".into(), "lia".into()])];
    let overrides = Overrides { seeds: Some(SeedChoice::Count(3)), sweep: wanted };
    let swept = Plan::read("p", PLAN, Mode::All, &overrides).expect("a plan").expect("a form");
    assert_eq!((swept.seeds, swept.variants.len()), (3, 16));
    assert_eq!(swept.variants[0].transfers[0].congestion.name, "cubic");
    let others = Overrides { seeds: Some(SeedChoice::From(17, 4)), sweep: vec![] };
    let others = Plan::read("p", PLAN, Mode::All, &others).expect("a plan").expect("a form");
    assert_eq!(others.seed_range(), 17..21);
    let twice =
        Overrides { seeds: None, sweep: vec![("congestion".into(), vec!["lia".into(), "lia".into()])] };
    let error = Plan::read("p", PLAN, Mode::All, &twice).expect_err("one variant twice");
    assert!(error.what.contains("it has the value `lia` twice"), "{error}");
    let unknown = Overrides { seeds: None, sweep: vec![("queue".into(), vec!["1".into()])] };
    let error = Plan::read("p", PLAN, Mode::All, &unknown).expect_err("no such axis");
    assert!(error.what.contains("congestion, rival, ways, factor"), "{error}");
    let without = PLAN.replace("[mode.quick]", "[mode.full]");
    assert!(Plan::read("p", &without, Mode::Quick, &Overrides::default()).expect("a plan").is_none());
}

#[test]
fn the_value_of_an_axis_may_have_fields() {
    let source = r#"
title = "T"
duration = "1 s"
[sweep.who]
reno = { carrier = "tcp", paths = ["direct"], scale = 2 }
background = { carrier = "session", paths = ["direct", "R"], scale = 3 }
[[link]]
between = ["S", "D"]
rate = "$who.scale Mbit/s"
[[transfer]]
name = "t"
from = "S"
to = "D"
carrier = "$who.carrier"
paths = "$who.paths"
"#;
    let plan = read(source);
    let paths: Vec<_> = plan.variants.iter().map(|variant| variant.transfers[0].paths.len()).collect();
    let rates: Vec<_> = plan.variants.iter().map(|variant| variant.network.links[0].spec.rate).collect();
    assert_eq!((paths, rates), (vec![1, 2], vec![Some(2_000_000), Some(3_000_000)]));
    assert_eq!(plan.axes[0].labels, ["reno", "background"]);
    assert!(refused(&source.replace("$who.paths", "$who.path")).1.contains("has no `path`"));
}

#[test]
fn a_queue_may_be_fair() {
    let of = |keys: &str| {
        PLAN.replacen("loss = \"0.1 %\"", &format!("discipline = {{ kind = \"fq-codel\"{keys} }}"), 1)
    };
    let discipline = |keys| read(&of(keys)).variants[0].network.links[0].spec.discipline;
    let fair = |target, quantum, queues| {
        Some(Discipline::FqCodel {
            target: Duration::from_millis(target),
            interval: Duration::from_millis(100),
            quantum,
            queues,
        })
    };
    assert_eq!(discipline(""), fair(5, 1_514, 1_024));
    assert_eq!(discipline(", target = \"8 ms\", quantum = 300, queues = 1"), fair(8, 300, 1));
    for (keys, what) in [(", queues = 0", "at least 1 queue"), (", flows = 5", "unknown key `flows`")] {
        let (_, said) = refused(&of(keys));
        assert!(said.contains(what), "{said}");
    }
}

#[test]
fn what_is_wrong_is_said_with_its_line() {
    let line_of = |needle: &str| 1 + PLAN.lines().position(|line| line.contains(needle)).expect("there");
    for (old, new, what) in [
        ("queue = \"60 ms\"", "que = \"60 ms\"", "unknown key `que`: expected one of"),
        ("rate = \"10 Mbit/s\"", "rate = \"0 Mbit/s\"", "a line of no rate carries nothing"),
        ("rate = \"10 Mbit/s\"", "rate = 10", "`rate`: 10 has no unit: expected a rate such as"),
        ("rate = \"10 Mbit/s\"", "rate = \"10 ms\"", "`rate`: expected a rate such as"),
        ("\"$congestion\"", "\"$congestoin\"", "`$congestoin` is no axis of [sweep]"),
        ("clients = 10", "clients = 1.5", "expected a whole number"),
        ("between = [\"S\", \"R\"]", "between = [\"S\"]", "expected two nodes"),
        ("count = 2", "session = { datagram = 1199 }\ncount = 2", "expected at least 1200 bytes"),
        ("count = 2", "count = true", "`count`: expected a number, found true"),
        ("steps = [[\"0 s\", \"2 Mbit/s\"]", "steps = [[\"0 s\", \"2 s\"]", "expected a time and a rate"),
    ] {
        let (line, said) = refused(&PLAN.replacen(old, new, 1));
        assert!(said.contains(what), "{new}: {said}");
        assert_eq!(line, line_of(old), "{new}: {said}");
    }
    for (old, new, what) in [
        ("name = \"noise\"", "name = \"web\"", "two things are called \"web\""),
        ("cut = \"10 s\"", "cut = \"60 s\"", "expected a time before the end"),
        ("title = ", "titel = ", "`title` is missing"),
        ("to_any = \"G\"", "", "expected a node, or `to_any`"),
        ("seeds = 10", "seeds = = 10", ""),
        (
            "to_any = \"G\"",
            "to_any = \"G\"\npaths = [\"registry\"]",
            "offered to the receiver over \"direct\"",
        ),
    ] {
        let (_, said) = refused(&PLAN.replacen(old, new, 1));
        assert!(said.contains(what), "{new}: {said}");
    }
}

#[test]
fn copies_are_numbered_and_a_registry_may_be_left_out() {
    const PLAN: &str = r#"
title = "Pairs that ask"
duration = "60 s"
[sweep]
who = { asks = { paths = ["direct", "registry"], asks = true }, not = { paths = ["direct"], asks = false } }
[topology]
name = "internet"
[registry]
at = "h1"
relays = ["p*3"]
lend = "5 Mbit/s"
when = "$who.asks"
[[transfer]]
name = "bulk"
from = "h#"
to = "h#+100"
count = 2
paths = "$who.paths"
"#;
    let plan = read(PLAN);
    let [asks, not] = plan.variants.try_into().expect("two");
    assert_eq!(asks.transfers[1].to, NodeChoice::Node("h102".into()));
    assert_eq!(asks.registry.expect("one").lend, Some(LendLimit::Rate(5_000_000)));
    assert_eq!(not.registry, None);
    let wrong = PLAN.replace("5 Mbit/s", "all of it");
    let (_, error) = refused(&wrong);
    assert!(error.contains("expected \"climb\", or a rate"), "{error}");
}

#[test]
fn copies_may_stand_at_each_fourth_node() {
    let plan = |from: &str| {
        format!(
            "title = \"Bundles\"\nduration = \"9 s\"\n[sweep]\nlater = [2]\n[topology]\n\
             name = \"bmc-dumbbell\"\nflows = 12\n[[transfer]]\nname = \"w\"\nfrom = \"{from}\"\n\
             to = \"x#\"\ncarrier = \"tcp\"\ncongestion = \"newreno\"\ncount = 3\n"
        )
    };
    let nodes = |from: &str| {
        let variant = read(&plan(from)).variants.remove(0);
        variant.transfers.into_iter().map(|transfer| transfer.from).collect::<Vec<_>>()
    };
    let named = |numbers: [u32; 3]| numbers.map(|number| NodeChoice::Node(format!("w{number}")));
    assert_eq!(nodes("w#*4-3"), named([1, 5, 9]));
    assert_eq!(nodes("w#*4"), named([4, 8, 12]));
    assert_eq!(nodes("w#*3+1"), named([4, 7, 10]));
    assert_eq!(nodes("w#+$later"), named([3, 4, 5]));
    // A number that is too large stays text. It is the name of no node.
    assert_eq!(nodes("w#*9999999999")[0], NodeChoice::Node("w1*9999999999".into()));
}

#[test]
fn seeds_may_begin_anywhere_and_groups_may_be_named() {
    let seeded = |first: &str| PLAN.replacen("seeds = 10", &format!("seeds = 2\nfirst_seed = {first}"), 1);
    assert_eq!(read(PLAN).seed_range(), 1..11);
    assert_eq!(read(&seeded("9007199254740992")).seed_range(), 1 << 53..(1 << 53) + 2);
    for wrong in ["-1", "1.5", "9007199254740994"] {
        let (_, said) = refused(&seeded(wrong));
        assert!(said.contains("`first_seed`: expected a whole number from 0 to 9007199254740992"), "{said}");
    }
    let grouped =
        |name: &str| PLAN.replacen("name = \"rival\"", &format!("name = \"{name}\"\ngroup = \"others\""), 1);
    let named = |name: &str| {
        let plan = read(&grouped(name));
        let rival = plan.variants.last().expect("one").transfers.last().expect("one").clone();
        (rival.name, rival.group)
    };
    assert_eq!(named("rival"), ("rival".into(), "others".into()));
    assert_eq!(named("others.7"), ("others.7".into(), "others".into()));
    let (_, said) = refused(&grouped("rival.7"));
    assert!(said.contains("`name`: expected letters"), "{said}");
}
