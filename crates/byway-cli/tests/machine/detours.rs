//! Three gateways, each a peer of the other two. One gateway also relays for its peers, and sends
//! them relay words (the secrets for this). So no configuration file holds a relay word.
//!
//! Needs root, `ip`, `nft` and `iperf3`.

use crate::common::bench::BYWAY;
use crate::common::machine::{must, test};
use crate::common::sites::Sites;
use libtest_mimic::{Failed, Trial};
use serde_json::Value;
use std::fs;

pub fn tests() -> Vec<Trial> {
    vec![
        test("detours::a_gateway_relays_for_its_peers_and_no_file_has_a_word", Sites::missing(), third),
        test("detours::a_registry_leads_gateways_to_a_relay_beside_another", Sites::missing(), registry),
    ]
}

/// Alice behind a gateway, Bob behind another, and a third gateway with lines to both. The line
/// between the first two carries so little that even a busy machine fills it.
pub const PLAN: &str = r#"
[[link]]
between = ["alice", "left"]
rate = "200 Mbit/s"
delay = "0.1 ms"
queue = "1000 packets"
[[link]]
between = ["right", "bob"]
rate = "200 Mbit/s"
delay = "0.1 ms"
queue = "1000 packets"
[[link]]
between = ["left", "right"]
rate = "2 Mbit/s"
delay = "10 ms"
queue = "50 packets"
[[link]]
between = ["left", "middle"]
rate = "10 Mbit/s"
delay = "6 ms"
queue = "50 packets"
[[link]]
between = ["middle", "right"]
rate = "10 Mbit/s"
delay = "6 ms"
queue = "50 packets"
"#;

/// A `[[peer]]` of another gateway's file.
fn peer(sites: &Sites, host: &str, allowed: &str) -> String {
    let state = sites.bench.word(&format!("state-{host}"));
    let key = must(&mut sites.bench.byway(&["--state-dir", &state, "id"]));
    let address = sites.bench.address(host);
    format!(
        "\n[[peer]]\nname = \"{host}\"\nkey = \"{}\"\naddresses = [\"{address}:4749\"]\nallowed = [\"{allowed}\"]\n",
        key.trim()
    )
}

fn third() -> Result<(), Failed> {
    let mut sites = Sites::new(PLAN);
    sites.bench.serve("bob");
    sites.configure("5201", "", &[]);
    let middle = peer(&sites, "middle", "192.0.2.0/24");
    for host in ["left", "right"] {
        let file = sites.bench.path(&format!("{host}.toml"));
        let text = fs::read_to_string(&file).unwrap();
        assert!(text.contains("relays = []"), "{text}");
        fs::write(&file, text + &middle).unwrap();
    }
    let (own, alice, bob) =
        (sites.bench.address("middle"), sites.bench.address("alice"), sites.bench.address("bob"));
    let ends = ["left", "right"]
        .map(|host| peer(&sites, host, &format!("{}/32", if host == "left" { &alice } else { &bob })));
    let text = format!(
        "[gateway]\nserves = [\"192.0.2.0/24\"]\nlisten = [\"{own}:4749\"]\nstatus = \"middle.sock\"\n\
         [relay]\nlisten = [\"{own}:4748\"]\n{}",
        ends.concat()
    );
    fs::write(sites.bench.path("middle.toml"), text).unwrap();
    sites.start("middle");
    sites.start_both(2);
    let load = ["iperf3", "-J", "-4", "-c", "bob", "-C", "cubic", "-n", "8M"];
    sites.bench.start("load", "alice", &load);
    assert!(sites.bench.end("load").success(), "{}", sites.bench.said("load"));
    let (left, middle) = (sites.status("left"), sites.status("middle"));
    let peers = left["peers"].as_array().unwrap();
    assert_eq!(peers.iter().map(|peer| peer["relays"] == true).collect::<Vec<_>>(), [false, true], "{left}");
    let carried = middle["relay"]["bytes"].as_u64().unwrap();
    println!("the relay carried {carried} bytes");
    assert!(carried > 2 << 20, "{left} {middle}");
    sites.assert_none(&left, &["failed_open"]);
    Ok(())
}

/// The third gateway is nobody's peer. Its relay enrols in a registry, which the others ask.
fn registry() -> Result<(), Failed> {
    let mut sites = Sites::new(PLAN);
    sites.bench.serve("bob");
    let own = sites.bench.address("middle");
    let state = sites.bench.word("state-registry");
    let at = format!("{own}:4750");
    sites.bench.start(
        "registry",
        "middle",
        &[BYWAY, "--json", "--state-dir", &state, "registry", "--listen", &at],
    );
    let ready: Value = serde_json::from_str(&sites.bench.line("registry")).unwrap();
    let [join, find] = ["join", "use"].map(|kind| ready[kind].as_str().unwrap().to_owned());
    sites.configure("5201", &format!("registry = \"{find}\""), &[]);
    let text = format!(
        "[gateway]\nserves = [\"192.0.2.0/24\"]\nlisten = [\"{own}:4749\"]\nstatus = \"middle.sock\"\n\
         [relay]\nlisten = [\"{own}:4748\"]\nallow-destination = [\"10.66.0.0/16\"]\nregistry = \"{join}\"\n"
    );
    fs::write(sites.bench.path("middle.toml"), text).unwrap();
    sites.start("middle");
    let listed = |said: String| said.contains("the registry lists the relay at").then_some(());
    sites.bench.wait("a relay that is listed", || {
        listed(sites.bench.complained("middle")).or_else(|| listed(sites.bench.said("middle")))
    });
    sites.start_both(2);
    let load = ["iperf3", "-J", "-4", "-c", "bob", "-C", "cubic", "-n", "8M"];
    sites.bench.start("load", "alice", &load);
    assert!(sites.bench.end("load").success(), "{}", sites.bench.said("load"));
    let middle = sites.status("middle");
    assert!(middle["relay"]["bytes"].as_u64().unwrap() > 2 << 20, "{middle} {}", sites.status("left"));
    Ok(())
}
