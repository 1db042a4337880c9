//! Tests of `byway lab up`, which builds a network of namespaces. `ping` and `iperf3` must measure
//! the plan's rates, delays and losses. A lab must leave no namespace, device or process behind.
//!
//! Needs root, `ip`, `ping` and `iperf3`.

mod harm;

use crate::common::bench::{Bench, TRIES, is_empty};
use crate::common::for_anybody;
use crate::common::machine::{
    Measured, PATIENCE, inhabited, is_root, measures, missing, run, test, wait_for, works,
};
use crate::common::spaces;
use byway_sim::link::{Link, Offer, PacketOutcome};
use byway_sim::{Pipe, PipeConfig, Random};
use byway_wire::{Ecn, Instant};
use libtest_mimic::{Failed, Trial};
use serde_json::Value;
use std::collections::BTreeSet;
use std::fs;
use std::io::{BufRead as _, BufReader};
use std::os::unix::fs::PermissionsExt;
use std::process::{Command, Stdio};
use std::time::Duration;

pub fn tests() -> Vec<Trial> {
    let root = is_root() && ["ip -V", "ping -V", "iperf3 -v", "unshare --net true"].into_iter().all(works);
    let lacks = missing(root, "it needs root and the programs ip, ping, iperf3 and unshare");
    let nobody = lacks.or_else(|| {
        let command = "setpriv --reuid=65534 --regid=65534 --clear-groups unshare --user --net true";
        missing(works(command), "it needs setpriv, and user namespaces for everybody")
    });
    let torrents = lacks.or_else(|| {
        missing(run(&["/usr/bin/python3", "-c", "import libtorrent"]), "it needs Python's module libtorrent")
    });
    vec![
        measures("emulate::a_round_trip_takes_what_the_plan_says", lacks, round_trip),
        measures("emulate::tcp_and_udp_get_the_rate_of_the_plan", lacks, rates),
        measures("emulate::a_full_queue_is_as_long_as_the_plan_says", lacks, queue),
        measures("emulate::red_keeps_a_queue_between_its_thresholds", lacks, early),
        test("emulate::packets_are_lost_as_the_simulator_loses_them_by_the_same_seed", lacks, loss),
        measures("emulate::ways_lead_over_hosts_between", lacks, two_hops),
        test("emulate::a_host_has_names_devices_and_processes_of_its_own", lacks, inside),
        test("emulate::hosts_may_be_called_like_words_of_ip", lacks, words_of_ip),
        test("emulate::what_changes_over_time_changes", lacks, change),
        test("emulate::down_leaves_nothing", lacks, down),
        test("emulate::a_killed_lab_leaves_nothing_that_runs_and_the_next_takes_its_place", lacks, killed),
        test("emulate::labs_stand_side_by_side", lacks, side_by_side),
        test("emulate::nobody_can_have_a_lab_too", nobody, without_root),
        measures("emulate::claims_are_held_against_real_programs", lacks, claims),
        measures("emulate::ledbat_is_a_torrent", torrents, harm::torrent),
        measures("emulate::requests_wait_for_cubic_and_hardly_for_byway", lacks, harm::beside),
        test("emulate::what_cannot_be_built_is_told", None, refused),
    ]
}

/// Builds a lab, measures, and holds `check` against what came out, unless the lab says that the
/// machine was too busy.
fn measured<T>(
    plan: &str,
    measure: impl Fn(&Bench) -> T,
    check: impl Fn(&T) -> Result<(), String>,
) -> Measured {
    for _ in 0..TRIES {
        let bench = Bench::new();
        bench.up("site", plan);
        let found = measure(&bench);
        if bench.is_accurate() {
            return Ok(Some(check(&found)?));
        }
        let told = bench.json(&["down"]);
        assert_eq!(told["labs"][0]["status"]["accurate"], false, "what was inaccurate is not told: {told}");
    }
    Ok(None)
}

fn site(rate: u64, more: &str) -> String {
    format!("[[link]]\nbetween = [\"alice\", \"bob\"]\nrate = \"{rate} Mbit/s\"\n{more}\n")
}

fn near(what: &str, found: f64, expected: f64, most: f64) -> Result<(), String> {
    if (found - expected).abs() <= most {
        Ok(())
    } else {
        Err(format!("{what}: {found:.3} instead of {expected:.3}"))
    }
}

fn round_trip() -> Measured {
    let plan = site(100, "delay = \"12 ms\"");
    let measure = |bench: &Bench| {
        ["-4", "-6"].map(|version| bench.ping("alice", &[version, "-c", "40", "-i", "0.02", "bob"]))
    };
    measured(&plan, measure, |trips| {
        for times in trips {
            if times.len() != 40 {
                return Err(format!("{} of 40 came back", times.len()));
            }
            // 84 or 104 bytes take 8 us each way besides.
            near("the fastest", times[0], 24.02, 1.0)?;
            near("the median", times[20], 24.02, 1.0)?;
        }
        Ok(())
    })
}

fn rates() -> Measured {
    for rate in [10, 50, 200] {
        let plan = site(rate, "delay = \"5 ms\"\nqueue = \"25 ms\"");
        let rate = rate as f64;
        let measure = |bench: &Bench| {
            bench.serve("bob");
            let tcp = bench.iperf("alice", &["-c", "bob", "-C", "cubic", "-O", "1", "-t", "4"]);
            let tcp = tcp["end"]["sum_received"]["bits_per_second"].as_f64().unwrap() / 1e6;
            let load = format!("{}M", rate * 1.2);
            let udp = bench.iperf("alice", &["-c", "bob", "-u", "-b", &load, "-l", "1448", "-t", "3"]);
            let sum = |key: &str| udp["end"]["sum"][key].as_f64().unwrap();
            let udp = (sum("packets") - sum("lost_packets")) * 1448.0 * 8.0 / sum("seconds") / 1e6;
            (tcp, udp)
        };
        let outcome = measured(&plan, measure, |&(tcp, udp)| {
            // Of 1500 bytes on the line 1448 are payload of TCP; of 1476, of UDP.
            near("TCP", tcp, rate * 1448.0 / 1500.0, 0.03 * rate)?;
            near("UDP", udp, rate * 1448.0 / 1476.0, 0.03 * rate)
        })?;
        if outcome.is_none() {
            return Ok(None);
        }
    }
    Ok(Some(()))
}

fn queue() -> Measured {
    let plan = site(10, "delay = \"5 ms\"\nqueue = \"30 packets\"");
    let measure = |bench: &Bench| {
        bench.serve("bob");
        let load = [
            "lab", "exec", "alice", "--", "iperf3", "-c", "bob", "-4", "-u", "-b", "12M", "-l", "1448", "-t",
            "4",
        ];
        let mut load = bench.byway(&load).stdout(Stdio::null()).spawn().unwrap();
        let times = bench.ping("alice", &["-4", "-c", "250", "-i", "0.01", "-W", "1", "bob"]);
        load.wait().unwrap();
        (times, bench.link("alice>bob"))
    };
    measured(&plan, measure, |(times, link)| {
        if link["dropped_queue"].as_u64().unwrap() == 0 {
            return Err(format!("nothing was ever dropped: {link}"));
        }
        // A ping that takes the last place in the queue waits for 30 packets of 1476 bytes: 29
        // queued, one being sent. The link sends 10,000 bits per ms. The RTT of the empty link is
        // 10 ms.
        let longest = 30.0 * 1476.0 * 8.0 / 10_000.0 + 10.0;
        // A few packets may be late by chance, so this takes the 95th percentile instead of the
        // maximum.
        near("the longest waits", times[times.len() * 95 / 100], longest, 2.0)
    })
}

fn early() -> Measured {
    let plan = site(
        10,
        "delay = \"5 ms\"\nqueue = \"100 packets\"\ndiscipline = { kind = \"red\", min = 5, max = 15 }",
    );
    let measure = |bench: &Bench| {
        bench.serve("bob");
        let load = ["iperf3", "-c", "bob", "-4", "-C", "cubic", "-P", "4", "-t", "9"];
        let mut load = bench.exec("alice", &load).stdout(Stdio::null()).spawn().unwrap();
        // Their slow start is over then.
        std::thread::sleep(Duration::from_secs(2));
        let times = bench.ping("alice", &["-4", "-c", "300", "-i", "0.02", "-W", "1", "bob"]);
        load.wait().unwrap();
        (times, bench.link("alice>bob"))
    };
    measured(&plan, measure, |(times, link)| {
        let dropped = |why: &str| link[why].as_u64().unwrap();
        if dropped("dropped_managed") == 0 || dropped("dropped_queue") > 0 {
            return Err(format!("RED dropped nothing, or left it to the queue's end: {link}"));
        }
        // From 5 to 15 packets of 1500 bytes at 10 Mbit/s, and what is there anyway.
        near("the median", times[times.len() / 2], 10.0 * 1.2 + 10.0, 5.0 * 1.2)
    })
}

fn loss() -> Result<(), Failed> {
    let bench = Bench::new();
    bench.up("site", &site(100, "loss = \"8 %\""));
    let back = bench.ping("alice", &["-4", "-c", "600", "-i", "0.002", "-W", "1", "bob"]).len();
    let (there, home) = (bench.link("alice>bob"), bench.link("bob>alice"));
    assert_eq!(there["packets"], 600, "something else was sent: {there}");
    let lost = |name: &str, packets: u64| {
        let config = PipeConfig { loss: 0.08, overhead: 0, ..PipeConfig::default() };
        let mut pipe = Pipe::new(config, Random::component(7, name));
        let offer = Offer { size: 84, ecn: Ecn::NotEct, flow: 0 };
        (0..packets)
            .filter(|ms| matches!(pipe.offer(Instant::from_millis(*ms), &offer), PacketOutcome::Dropped(_)))
            .count()
    };
    assert_eq!(there["dropped_loss"], lost("alice>bob", 600), "{there}");
    let answers = 600 - there["dropped_loss"].as_u64().unwrap();
    assert_eq!(home["dropped_loss"], lost("bob>alice", answers), "{home}");
    assert_eq!(back as u64, answers - home["dropped_loss"].as_u64().unwrap());
    Ok(())
}

const LINE: &str = "
[[link]]
between = [\"alice\", \"relay\"]
delay = \"3 ms\"
[[link]]
between = [\"relay\", \"bob\"]
delay = \"4 ms\"
";

fn two_hops() -> Measured {
    measured(
        LINE,
        |bench| {
            for version in ["-4", "-6"] {
                let said = bench.says("alice", &["ping", version, "-c", "1", "bob"]);
                assert!(said.contains("ttl=63"), "{said}");
                let short = bench.on("alice", &["ping", version, "-c", "1", "-t", "1", "-W", "1", "bob"]);
                let said = String::from_utf8_lossy(&short.stdout).to_lowercase();
                assert!(said.contains("from relay") && said.contains("exceeded"), "{said}");
            }
            bench.ping("alice", &["-4", "-c", "20", "-i", "0.02", "bob"])
        },
        |times| near("the median", times[10], 14.0, 1.0),
    )
}

fn inside() -> Result<(), Failed> {
    let bench = Bench::new();
    let up = bench.up("site", &site(10, ""));
    assert_eq!(up["labs"][0]["hosts"][1]["name"], "bob", "{up}");
    let devices = bench.says("alice", &["ls", "/sys/class/net"]);
    assert_eq!(devices.split_whitespace().collect::<Vec<_>>(), ["bob", "lo"]);
    assert_eq!(bench.address("alice"), "10.66.0.1");
    let features = bench.says("alice", &["ip", "-d", "-o", "link", "show", "bob"]);
    assert!(features.contains(" mtu 1500 "), "{features}");
    // Where it was called, with its exit code, and for a missing program the code that byway has
    // for that.
    let here = bench.byway(&["lab", "exec", "bob", "--", "pwd"]).current_dir("/usr").output()?;
    assert_eq!(String::from_utf8(here.stdout)?.trim(), "/usr");
    assert_eq!(bench.on("alice", &["sh", "-c", "exit 7"]).status.code(), Some(7));
    assert_eq!(bench.on("alice", &["sh", "-c", "kill -9 $$"]).status.code(), Some(137));
    assert_eq!(bench.on("alice", &["no-such-program"]).status.code(), Some(3));
    let unknown = bench.on("carol", &["true"]);
    assert_eq!(unknown.status.code(), Some(3));
    assert!(String::from_utf8(unknown.stderr)?.contains("there are alice, bob"));
    Ok(())
}

fn words_of_ip() -> Result<(), Failed> {
    for [one, other] in [["a", "b"], ["up", "dev"]] {
        let bench = Bench::new();
        bench.up("words", &format!("[[link]]\nbetween = [\"{one}\", \"{other}\"]\n"));
        assert_eq!(bench.ping(one, &["-4", "-c", "1", other]).len(), 1, "{one} to {other}");
    }
    Ok(())
}

fn change() -> Result<(), Failed> {
    let plan = format!("{LINE}[[change]]\nat = \"2 s\"\nlink = [\"relay\", \"bob\"]\nup = false\n");
    let bench = Bench::new();
    bench.up("site", &plan);
    // For four seconds, in which the change comes.
    let said = bench.on("alice", &["ping", "-n", "-4", "-c", "40", "-i", "0.1", "-W", "1", "-O", "bob"]);
    let said = String::from_utf8(said.stdout)?;
    assert!(said.contains("no answer yet"), "{said}");
    assert!(bench.link("relay>bob")["dropped_other"].as_u64().unwrap() > 0);
    Ok(())
}

/// The namespaces and devices of this host named like a lab's hosts, `alice`, `bob` or `relay`.
/// There must be none, because labs use their own namespaces. Names that begin with
/// `spaces::PREFIX` belong to other tests.
fn traces() -> Vec<String> {
    let said = |arguments: &[&str]| {
        String::from_utf8(Command::new("ip").args(arguments).output().unwrap().stdout).unwrap()
    };
    let all = said(&["netns", "list"]) + &said(&["-o", "-br", "link"]);
    let is_a_hosts = |line: &&str| {
        !line.starts_with(spaces::PREFIX) && ["alice", "bob", "relay"].iter().any(|host| line.contains(host))
    };
    all.lines().filter(is_a_hosts).map(str::to_owned).collect()
}

/// Nothing of a lab lives, and nothing of it is left.
#[track_caller]
fn assert_gone(bench: &Bench) {
    assert_eq!(inhabited(&bench.path("labs")), BTreeSet::new(), "somebody still lives there");
    assert_eq!(traces(), Vec::<String>::new());
}

/// The same soon: the kernel kills one after the other.
#[track_caller]
fn assert_dies(bench: &Bench) {
    wait_for(PATIENCE, || inhabited(&bench.path("labs")).is_empty().then_some(()));
    assert_gone(bench);
}

fn down() -> Result<(), Failed> {
    let bench = Bench::new();
    bench.up("site", LINE);
    bench.serve("bob");
    assert!(
        !inhabited(&bench.path("labs")).is_empty(),
        "somebody must live there, or this test sees nothing"
    );
    let ended = bench.json(&["down"]);
    assert_eq!(
        (&ended["labs"][0]["lab"], &ended["labs"][0]["up"]),
        (&"site".into(), &false.into()),
        "{ended}"
    );
    assert_gone(&bench);
    assert!(is_empty(&bench.path("labs")));
    assert_eq!(bench.json(&["down"])["labs"], Value::Array(Vec::new()), "a second time is no error");
    Ok(())
}

fn killed() -> Result<(), Failed> {
    let bench = Bench::new();
    bench.up("site", LINE);
    bench.serve("bob");
    let mut guest = bench.exec("alice", &["sh", "-c", "echo here && exec sleep 1000"]);
    let mut guest = guest.stdout(Stdio::piped()).spawn()?;
    let mut here = String::new();
    BufReader::new(guest.stdout.take().unwrap()).read_line(&mut here)?;
    assert_eq!(here, "here\n");
    let keeper = bench.status()["process"].as_u64().unwrap();
    assert!(works(&format!("kill -9 {keeper}")));
    // Its death is the death of all that runs there, guests from outside too.
    assert_eq!(guest.wait()?.code(), Some(137));
    assert_dies(&bench);
    assert_eq!(bench.status()["up"], false);
    assert_eq!(bench.on("alice", &["true"]).status.code(), Some(3), "nobody can be sent to the dead");
    bench.up("site", LINE);
    assert_eq!(bench.ping("alice", &["-c", "1", "bob"]).len(), 1);
    let keeper = bench.status()["process"].as_u64().unwrap();
    assert!(works(&format!("kill -9 {keeper}")));
    bench.json(&["down", "site"]);
    assert_dies(&bench);
    assert!(is_empty(&bench.path("labs")));
    Ok(())
}

fn side_by_side() -> Result<(), Failed> {
    let bench = Bench::new();
    bench.up("one", LINE);
    bench.up("two", &site(10, "delay = \"50 ms\""));
    let again = bench.path("one.toml");
    let again = bench.run(&["lab", "up", again.to_str().unwrap()]);
    assert_eq!(again.status.code(), Some(1), "it is up already");
    let which = bench.on("alice", &["true"]);
    assert_eq!(which.status.code(), Some(2));
    assert!(String::from_utf8(which.stderr)?.contains("one, two"));
    let ping = ["ping", "-c", "1", "bob"];
    for lab in ["one", "two"] {
        let output = bench.run(&[&["lab", "exec", "--lab", lab, "alice", "--"], ping.as_slice()].concat());
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
    }
    bench.json(&["down", "one"]);
    assert_eq!(bench.ping("alice", &["-c", "1", "bob"]).len(), 1, "the other lives on");
    Ok(())
}

fn without_root() -> Result<(), Failed> {
    let mut bench = Bench::new();
    let copy = bench.path("byway");
    for_anybody(&copy);
    fs::set_permissions(bench.directory.path(), fs::Permissions::from_mode(0o755))?;
    let labs = bench.path("labs");
    fs::create_dir(&labs)?;
    std::os::unix::fs::chown(&labs, Some(65_534), Some(65_534))?;
    bench.user = Some(copy);
    bench.up("site", &site(10, "delay = \"10 ms\"\nqueue = \"20 packets\""));
    assert_eq!(
        bench.says("alice", &["cat", "/proc/self/uid_map"]).split_whitespace().collect::<Vec<_>>(),
        ["0", "65534", "1"]
    );
    bench.serve("bob");
    let tcp = bench.iperf("alice", &["-c", "bob", "-C", "reno", "-n", "1M"]);
    let bytes = tcp["end"]["sum_received"]["bytes"].as_f64().unwrap();
    assert!(bytes > 5e5, "{tcp}");
    bench.json(&["down"]);
    assert!(is_empty(&labs));
    Ok(())
}

const CLAIMED: &str = "
title = \"one transfer by the kernel, one by byway over two ways\"
duration = \"5 s\"
seeds = 1
[sweep.who]
kernel = { carrier = \"tcp\", congestion = \"cubic\", paths = [\"direct\"], size = \"3 MB\" }
byway = { carrier = \"session\", congestion = \"mpath\", paths = [\"direct\", \"X\"], size = \"4 MB\" }
[[link]]
between = [\"S\", \"R\"]
rate = \"10 Mbit/s\"
delay = \"8 ms\"
queue = \"50 packets\"
[[link]]
between = [\"S\", \"X\"]
rate = \"10 Mbit/s\"
delay = \"6 ms\"
queue = \"50 packets\"
[[link]]
between = [\"X\", \"R\"]
rate = \"100 Mbit/s\"
delay = \"7 ms\"
[[transfer]]
name = \"bulk\"
from = \"S\"
to = \"R\"
carrier = \"$who.carrier\"
congestion = \"$who.congestion\"
paths = \"$who.paths\"
size = \"$who.size\"
[[requests]]
name = \"front\"
client = \"X\"
server = \"R\"
count = 10
every = \"200 ms\"
size = \"20 KB\"
congestion = \"cubic\"
[[requests]]
name = \"ten\"
client = \"R\"
server = \"X\"
count = 10
every = \"200 ms\"
size = \"20 KB\"
congestion = \"cubic\"
tcp = { initial_window = 10 }
";

const CLAIMS: &str = "
paper = \"none\"
[[claim]]
id = \"shares\"
says = \"both ways are used\"
paper = \"-\"
reading = \"strict\"
measure = \"share(bulk, X)[who=byway]\"
at_least = 0.2
[[claim]]
id = \"kernel\"
says = \"the kernel fills the line\"
paper = \"-\"
reading = \"strict\"
measure = \"completion(bulk)[who=kernel]\"
at_most = 3.5
[[claim]]
id = \"link\"
says = \"which carried it all\"
paper = \"-\"
reading = \"strict\"
measure = \"utilisation(S, R, 0.5, 2)[who=kernel]\"
at_least = 0.8
[[claim]]
id = \"fetched\"
says = \"all that was asked for came\"
paper = \"-\"
reading = \"strict\"
measure = \"finished(front)[who=kernel]\"
at_least = 1
[[claim]]
id = \"trips\"
says = \"a handshake, and 2, 4 and 8 packets: four round trips of 14 ms\"
paper = \"-\"
reading = \"strict\"
measure = \"requests(front, 50)[who=kernel]\"
at_least = 0.055
[[claim]]
id = \"fewer-trips\"
says = \"a handshake, and 10 and 4 packets\"
paper = \"-\"
reading = \"strict\"
measure = \"requests(ten, 50)[who=kernel]\"
at_most = 0.055
";

fn claims() -> Measured {
    let bench = Bench::new();
    let folder = bench.path("claimed");
    fs::create_dir(&folder)?;
    let (plan, out) = (folder.join("plan.toml"), folder.join("out"));
    fs::write(&plan, CLAIMED)?;
    fs::write(folder.join("expect.toml"), CLAIMS)?;
    let run = ["run", plan.to_str().unwrap(), "--emulate", "--out", out.to_str().unwrap()];
    let said = bench.json(&run);
    assert_eq!((&said["passed"], &said["failed"]), (&6.into(), &0.into()), "{said}");
    assert!(is_empty(&bench.path("labs")), "the lab is gone");
    fs::write(&plan, CLAIMED.replace("cubic", "lia"))?;
    let refused = bench.run(&[&["lab"], run.as_slice()].concat());
    let told = String::from_utf8(refused.stderr)?;
    assert_eq!(refused.status.code(), Some(2), "{told}");
    assert!(told.contains("[[requests]] front: the kernel's TCP has no lia"), "{told}");
    Ok(Some(()))
}

fn refused() -> Result<(), Failed> {
    let bench = Bench::new();
    let file = |name: &str, text: &str| -> String {
        let file = bench.path(name);
        fs::write(&file, text).unwrap();
        file.to_str().unwrap().to_owned()
    };
    let zero = file("zero.toml", "[[link]]\nbetween = [\"a\", \"b\"]\nrate = \"0 Mbit/s\"\n");
    let sweep =
        file("sweep.toml", "[sweep]\nms = [1, 2]\n[[link]]\nbetween = [\"a\", \"b\"]\ndelay = \"$ms ms\"\n");
    let same = file("same.toml", "[[link]]\nbetween = [\"a\", \"A\"]\n");
    let empty = file("empty.toml", "");
    for (arguments, code, says) in [
        (vec![zero.as_str()], 2, "zero.toml:3"),
        (vec![sweep.as_str()], 2, "--sweep ms=1|2"),
        (vec![same.as_str()], 2, "small from capital"),
        (vec![empty.as_str()], 2, "at least two hosts"),
        (vec![empty.as_str(), "--name", "../x"], 2, "give --name"),
        (vec!["/no/such.toml"], 3, "/no/such.toml"),
        (vec!["no-such-topology"], 3, "byway lab topologies"),
        (vec!["harp-t1", "--set", "nothing=1"], 2, "has no parameter nothing"),
    ] {
        let output = bench.run(&[&["lab", "up"], arguments.as_slice()].concat());
        let told = String::from_utf8(output.stderr)?;
        assert_eq!(output.status.code(), Some(code), "{arguments:?}: {told}");
        assert!(told.contains(says), "{arguments:?}: {told}");
    }
    let output = bench.run(&["lab", "harm", "--against", "lia"]);
    let told = String::from_utf8(output.stderr)?;
    assert_eq!(output.status.code(), Some(2), "{told}");
    assert!(told.contains("nobody is called lia"), "{told}");
    // What one of the rivals lacks is told before the first run, whoever comes first.
    let mut lacking = bench.byway(&["lab", "harm", "--against", "cubic,gateways"]);
    let output = lacking.env("PATH", bench.directory.path()).output()?;
    let told = String::from_utf8(output.stderr)?;
    assert_eq!(output.status.code(), Some(2), "{told}");
    assert!(told.contains("[[gateways]] sites: real gateways need") && !told.contains("alone"), "{told}");
    assert!(!bench.path("labs").exists(), "nothing was begun");
    Ok(())
}
