//! A lab plan with gateways, run with real programs: two `byway gateway` processes carry flows of
//! iperf3, and one more flow takes a detour. The results must satisfy the claims in `CLAIMS`.
//!
//! Needs root, /dev/net/tun, `ip`, `nft` and `iperf3`.

use crate::common::bench::{Bench, is_empty};
use crate::common::machine::{Measured, inhabited, measures, test, wait_for};
use crate::common::sites::Sites;
use libtest_mimic::{Failed, Trial};
use rustix::process::{Pid, Signal, kill_process};
use std::fs;
use std::process::Stdio;
use std::time::Duration;

/// How long anything may take that is waited for: a tenth of the run that is stopped.
const PATIENCE: Duration = Duration::from_secs(60);

pub fn tests() -> Vec<Trial> {
    let lacks = Sites::missing();
    vec![
        measures("emulated_gateways::claims_are_held_against_real_gateways", lacks, claims),
        measures("emulated_gateways::each_flow_goes_by_its_own_bundle", lacks, bundles),
        test("emulated_gateways::what_gateways_cannot_do_here_is_told", lacks, refused),
        test("emulated_gateways::a_run_that_is_stopped_or_killed_leaves_nothing_that_runs", lacks, stopped),
    ]
}

/// Two ways of 10 Mbit/s between the gateways. The bounds hold on a busy machine as well.
const PLAN: &str = r#"
title = "gateways, and a flow that goes another way than theirs"
duration = "12 s"
sample = "500 ms"
seeds = 1
[sweep]
who.carried = { carrier = "gateways", paths = ["direct", "X"] }
who.detour = { carrier = "tcp", paths = ["X"] }
[[link]]
between = ["S", "A"]
rate = "100 Mbit/s"
delay = "0.1 ms"
[[link]]
between = ["B", "R"]
rate = "100 Mbit/s"
delay = "0.1 ms"
[[link]]
between = ["A", "B"]
rate = "10 Mbit/s"
delay = "10 ms"
queue = "50 packets"
[[link]]
between = ["A", "X"]
rate = "100 Mbit/s"
delay = "5 ms"
[[link]]
between = ["X", "B"]
rate = "10 Mbit/s"
delay = "7 ms"
queue = "50 packets"
[[gateways]]
name = "sites"
between = ["A", "B"]
paths = ["direct", "X"]
[[transfer]]
name = "bulk"
from = "S"
to = "R"
carrier = "$who.carrier"
paths = "$who.paths"
congestion = "cubic"
size = "6 MB"
"#;

const CLAIMS: &str = r#"
[[claim]]
id = "both"
says = "what the gateways carry goes by both ways"
measure = "min(share(bulk, direct, 0, end()), share(bulk, X, 0, end()))[who=carried]"
at_least = 0.05
[[claim]]
id = "links"
says = "the links say so too"
measure = "min(utilisation(A, B, 0, end()), utilisation(X, B, 0, end()))[who=carried]"
at_least = 0.05
[[claim]]
id = "arrives"
says = "all of it"
measure = "completion(bulk)[who=carried]"
at_most = 12
[[claim]]
id = "order"
says = "most packets hardly wait to be put in order"
measure = "waits(sites, 20)[who=carried]"
at_least = 0.5
[[claim]]
id = "detour"
says = "a flow that goes over X leaves the direct way alone"
measure = "utilisation(A, B, 0, end())[who=detour] / utilisation(X, B, 0, end())[who=detour]"
at_most = 0.01
"#;

fn claims() -> Measured {
    let bench = Bench::new();
    let folder = bench.path("claimed");
    fs::create_dir(&folder)?;
    let (plan, out) = (folder.join("plan.toml"), folder.join("out"));
    fs::write(&plan, PLAN)?;
    fs::write(folder.join("expect.toml"), CLAIMS)?;
    let said = bench.json(&["run", plan.to_str().unwrap(), "--emulate", "--out", out.to_str().unwrap()]);
    assert_eq!((&said["passed"], &said["failed"]), (&5.into(), &0.into()), "{said}");
    assert!(is_empty(&bench.path("labs")), "the lab is gone");
    Ok(Some(()))
}

/// What is said of paths is said of those of the flow's own bundle.
fn bundles() -> Measured {
    let bench = Bench::new();
    let folder = bench.path("bundled");
    fs::create_dir(&folder)?;
    let (plan, out) = (folder.join("plan.toml"), folder.join("out"));
    let detour = "who.detour = { carrier = \"tcp\", paths = [\"X\"] }\n";
    let name = "name = \"sites\"\n";
    fs::write(&plan, PLAN.replace(detour, "").replace(name, &format!("{name}bundle = \"flow\"\n")))?;
    let claims = CLAIMS.split("[[claim]]\nid = \"detour\"").next().unwrap();
    fs::write(folder.join("expect.toml"), claims)?;
    let said = bench.json(&["run", plan.to_str().unwrap(), "--emulate", "--out", out.to_str().unwrap()]);
    assert_eq!((&said["passed"], &said["failed"]), (&4.into(), &0.into()), "{said}");
    Ok(Some(()))
}

fn refused() -> Result<(), Failed> {
    let bench = Bench::new();
    let file = bench.path("plan.toml");
    let name = "name = \"sites\"\n";
    for (plan, code, says) in [
        (
            PLAN.replace(name, &format!("{name}headroom = \"20 %\"\n")),
            2,
            "settings that the file of a gateway does not have are only simulated",
        ),
        (
            PLAN.replace("\"$who.carrier\"", "\"session\"\nsession = { tau = 2.0 }")
                .replace("\"cubic\"", "\"background\""),
            2,
            "readings of the papers that byway itself does not follow are only simulated",
        ),
        (PLAN.replace("congestion = \"cubic\"", "congestion = \"lia\""), 2, "the kernel's TCP has no lia"),
        (
            PLAN.replace("congestion = \"cubic\"", "congestion = \"cubic:c=1\""),
            2,
            "the kernel's TCP has no options of its controllers",
        ),
        (PLAN.replace("seeds = 1", "seeds = 1\nonly_simulated = \"it is\""), 0, "not emulated: it is"),
    ] {
        fs::write(&file, plan)?;
        let output =
            bench.run(&["lab", "run", file.to_str().unwrap(), "--emulate", "--out", &bench.word("out")]);
        let told = String::from_utf8(output.stderr)?;
        assert_eq!(output.status.code(), Some(code), "{told}");
        assert!(told.contains(says), "{told}");
    }
    assert!(!bench.path("labs").exists(), "nothing was begun");
    Ok(())
}

/// With gateways, which are asked how they are in each sample, ten times a second as by `lab harm`.
fn stopped() -> Result<(), Failed> {
    let plan = PLAN.replace("12 s", "600 s").replace("500 ms", "100 ms").replace("6 MB", "60 MB");
    for (signal, code) in [(Signal::INT, Some(130)), (Signal::TERM, Some(143)), (Signal::KILL, None)] {
        let bench = Bench::new();
        let file = bench.path("sites.toml");
        fs::write(&file, &plan)?;
        let out = bench.word("out");
        let mut run =
            bench.byway(&["--json", "lab", "run", file.to_str().unwrap(), "--emulate", "--out", &out]);
        let mut run = run.stdout(Stdio::null()).spawn()?;
        // Gateways, their relay, iperf3 on both sides, and the keeper, each in a network of its
        // own: the transfer begins.
        let labs = bench.path("labs");
        let all = || (inhabited(&labs).len() >= 6).then_some(());
        assert!(wait_for(PATIENCE, all).is_some(), "it does not begin");
        assert!(run.try_wait()?.is_none(), "it is over already");
        kill_process(Pid::from_child(&run), signal)?;
        let ended = wait_for(PATIENCE, || run.try_wait().unwrap());
        if ended.is_none() {
            run.kill()?;
        }
        assert_eq!(ended.map(|status| status.code()), Some(code), "{signal:?}");
        let left = || !is_empty(&labs) || !inhabited(&labs).is_empty();
        let gone = wait_for(PATIENCE, || (!left()).then_some(()));
        assert!(gone.is_some(), "{signal:?}: something is left");
    }
    Ok(())
}
