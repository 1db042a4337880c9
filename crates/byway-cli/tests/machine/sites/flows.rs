//! Which flows the gateways of two sites carry: over IPv4 and IPv6, from both sides, and by rules
//! for ports, prefixes and DSCP. Other tests: urgent data, `observe` (count flows only),
//! `fail-closed` (block flows without a session).

use super::{Flow, PLAN, PORT, PORTS, slow_lines};
use crate::common::sites::Sites;
use libtest_mimic::Failed;
use serde_json::Value;
use std::process::Stdio;

/// Bytes of a flow that is long enough to use all paths.
const MUCH: u64 = 3_000_000;
/// More than all handshakes and greetings of a test, in bytes.
const MAX_PLAIN_BYTES: u64 = 60_000;
/// A port that no rule names, and one that a rule wants marked.
const OTHER: u16 = 5_301;
const MARKED: u16 = 5_302;
/// How long nothing answers before a flow is taken for held.
const SILENCE: &str = "2";

/// Sends a SYN whose checksum is wrong.
const DAMAGED: &str = "
import socket, struct, sys
source, destination = map(socket.inet_aton, sys.argv[1:3])
tcp = struct.pack('!HHIIBBHHH', 4444, int(sys.argv[3]), 1, 0, 5 << 4, 2, 500, 0x1234, 0)
ip = struct.pack('!BBHHHBBH4s4s', 0x45, 0, 40, 7, 0, 64, 6, 0, source, destination)
socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_RAW).sendto(ip + tcp, (sys.argv[2], 0))
";

/// Lets a host mark what it sends to a port with the code point CS1.
fn mark(sites: &Sites, host: &str, port: u16) {
    let rules = format!(
        "add table inet t; add chain inet t o {{ type filter hook output priority mangle; }}; \
         add rule inet t o tcp dport {port} ip dscp set cs1; add rule inet t o tcp dport {port} ip6 dscp set cs1"
    );
    sites.bench.says(host, &["nft", &rules]);
}

/// The IPv6 address of a host, as it stands before a port.
fn v6(sites: &Sites, host: &str) -> String {
    let said = sites.bench.says(host, &["getent", "ahostsv6", host]);
    format!("[{}]", said.split_whitespace().next().unwrap())
}

/// Both gateways carry both versions of IP, and besides the port what is marked.
fn both_versions(sites: &Sites) {
    for host in ["alice", "bob"] {
        let (v4, v6) = (sites.bench.address(host), v6(sites, host));
        let v6 = v6.trim_matches(['[', ']']);
        for gateway in ["left", "right"] {
            sites.rewrite(gateway, &format!("[\"{v4}/32\"]"), &format!("[\"{v4}/32\", \"{v6}/128\"]"));
        }
    }
    for gateway in ["left", "right"] {
        let marked =
            format!("[[rule]]\nname = \"marked\"\ndscp = [\"cs1\"]\nto-ports = [{MARKED}]\n[[rule]]");
        sites.rewrite(gateway, "[[rule]]", &marked);
    }
}

/// A rule as a gateway tells it.
fn rule(status: &Value, place: usize) -> (u64, u64) {
    let rule = &status["rules"][place];
    (rule["flows"].as_u64().unwrap_or_default(), rule["bytes"].as_u64().unwrap_or_default())
}

/// Lets gateway `left` count what it sends to other gateways and relays, and `bob` what comes to
/// the marked port, in IP bytes.
fn count(sites: &Sites) {
    let left = "table inet marks {
        counter lower {}
        counter plain {}
        counter ect1 {}
        chain outgoing {
            type filter hook output priority 0
            meta l4proto != udp return
            ip ecn ect1 counter name ect1
            ip dscp 1 counter name lower return
            counter name plain
        }
    }";
    let bob = format!(
        "table inet marks {{
            counter kept {{}}
            counter changed {{}}
            chain incoming {{
                type filter hook input priority 0
                tcp dport != {MARKED} return
                ip dscp cs1 counter name kept return
                ip6 dscp cs1 counter name kept return
                counter name changed
            }}
        }}"
    );
    sites.bench.says("left", &["nft", left]);
    sites.bench.says("bob", &["nft", &bob]);
}

fn counted(sites: &Sites, host: &str, counter: &str) -> u64 {
    let said = sites.bench.says(host, &["nft", "-j", "list", "counter", "inet", "marks", counter]);
    let said: Value = serde_json::from_str(&said).unwrap();
    said["nftables"]
        .as_array()
        .unwrap()
        .iter()
        .find_map(|object| object["counter"]["bytes"].as_u64())
        .unwrap()
}

/// The gateways must carry exactly the flows that the rules name, and all flows must arrive intact.
/// Packets between the gateways must have the lower-effort DSCP. A DSCP that a host sets must
/// arrive unchanged.
pub fn classified() -> Result<(), Failed> {
    let mut sites = Sites::new(PLAN);
    let relays = [sites.relay("one"), sites.relay("two")];
    sites.configure(PORTS, "", &relays);
    both_versions(&sites);
    for host in ["alice", "bob"] {
        sites.bench.says(host, &["sysctl", "-qw", "net.ipv4.tcp_ecn=1"]);
    }
    mark(&sites, "alice", MARKED);
    count(&sites);
    sites.start_both(3);
    let [there, back] = ["bob", "alice"].map(|host| v6(&sites, host));
    let [bob, alice] = ["bob", "alice"].map(|host| sites.bench.address(host));
    for (port, from, to, carried) in [
        (PORT, "alice", &bob, true),
        (PORT + 1, "bob", &alice, true),
        (PORT + 2, "alice", &there, true),
        (PORT + 3, "bob", &back, true),
        (OTHER, "alice", &bob, false),
        (OTHER + 10, "alice", &there, false),
        (MARKED, "alice", &bob, true),
        (MARKED, "alice", &there, true),
        // Nobody marks them at this side.
        (MARKED, "bob", &alice, false),
    ] {
        let at = if from == "alice" { "bob" } else { "alice" };
        let before = sites.status("left");
        // It looks from before the flow begins, since a flow may last for a second only.
        let look =
            format!("until ss -tinHo state established 'dport = :{port}' | grep .; do sleep .02; done");
        let mut look = sites.bench.exec(from, &["timeout", "240", "sh", "-c", &look]);
        let look = look.stdin(Stdio::null()).stdout(Stdio::piped()).spawn().unwrap();
        let flow = Flow::between(&mut sites, "cubic", from, (at, to), port, MUCH);
        let told = String::from_utf8(look.wait_with_output().unwrap().stdout).unwrap();
        for option in [" ts ", " sack ", " ecn ", " wscale:"] {
            assert!(told.contains(option), "{port}: {option} is missing in {told}");
        }
        flow.end(&mut sites);
        let after = sites.status("left");
        let place = usize::from(port != MARKED);
        let ((flows, bytes), (flows_before, bytes_before)) = (rule(&after, place), rule(&before, place));
        let named = after["largest"].as_array().unwrap().iter().any(|flow| {
            flow["to"].as_str().unwrap().ends_with(&format!(":{port}"))
                && (flow["to"].as_str().unwrap().contains('[') == to.contains('['))
                && (flow["sent_bytes"].as_u64() > Some(MUCH)) == (from == "alice")
        });
        assert_eq!((flows - flows_before, named), (carried.into(), carried), "{from} {to} {port}: {after}");
        assert_eq!(bytes - bytes_before > MUCH, carried, "{from} {to} {port}: {after}");
    }
    let [lower, plain, ect1] = ["lower", "plain", "ect1"].map(|name| counted(&sites, "left", name));
    // Handshakes and greetings are plain, and few.
    assert!(lower > 4 * MUCH && plain > 0 && plain < MAX_PLAIN_BYTES && ect1 == 0, "{lower} {plain} {ect1}");
    let [kept, changed] = ["kept", "changed"].map(|name| counted(&sites, "bob", name));
    assert!(kept > 2 * MUCH && changed == 0, "{kept} {changed}");
    for status in ["left", "right"].map(|host| sites.status(host)) {
        sites.assert_none(&status, &["failed_open"]);
        for counter in ["too_large", "forbidden", "malformed"] {
            assert_eq!(status["counters"][counter], 0, "{status}");
        }
    }
    Ok(())
}

/// Flows of both sides, each with a session of its own, at one gateway that opens such and one that
/// only takes them.
pub fn bundled() -> Result<(), Failed> {
    let mut sites = Sites::new(PLAN);
    let relays = [sites.relay("one"), sites.relay("two")];
    sites.configure(PORTS, "", &relays);
    sites.rewrite("left", "[gateway]\n", "[gateway]\nbundle = \"flow\"\n");
    sites.start_both(3);
    const BYTES: u64 = 5 * MUCH;
    let flows = [("cubic", ["alice", "bob"]), ("reno", ["alice", "bob"]), ("cubic", ["bob", "alice"])];
    let ports = PORT..;
    let flows: Vec<Flow> = flows
        .into_iter()
        .zip(ports)
        .map(|((congestion, ends), port)| Flow::start(&mut sites, congestion, ends, port, BYTES))
        .collect();
    for flow in &flows {
        sites.bench.wait("the flow", || (flow.arrived(&sites) > MUCH).then_some(()));
    }
    let socket = sites.bench.word("left.sock");
    let said = sites.bench.run(&["gateway", "status", "--socket", &socket]);
    let said = String::from_utf8(said.stdout)?;
    println!("{said}");
    assert!(said.contains("3 flows (2 with a bundle of their own)"), "{said}");
    assert!(said.contains("; a bundle of its own: 3 paths, window "), "{said}");
    // What comes from Bob is not for Alice's gateway to decide.
    for host in ["left", "right"] {
        let status = sites.status(host);
        let bundles = status["peers"][0]["bundles"].as_array().unwrap();
        let mut to: Vec<&str> = bundles.iter().map(|bundle| bundle["to"].as_str().unwrap()).collect();
        to.sort_unstable();
        let bob = sites.bench.address("bob");
        assert_eq!(to, [format!("{bob}:{PORT}"), format!("{bob}:{}", PORT + 1)], "{status}");
        let sent = |paths: &Value| {
            paths.as_array().unwrap().iter().map(|path| path["sent_bytes"].as_u64().unwrap()).sum::<u64>()
        };
        if host == "left" {
            assert!(bundles.iter().all(|bundle| sent(&bundle["paths"]) > MUCH), "{status}");
        }
    }
    flows.iter().for_each(|flow| flow.end(&mut sites));
    sites.bench.wait("their bundles to end", || {
        let over = |host| sites.status(host)["peers"][0].get("bundles").is_none();
        (over("left") && over("right")).then_some(())
    });
    for status in ["left", "right"].map(|host| sites.status(host)) {
        let counters = &status["counters"];
        sites.assert_none(&status, &["failed_open", "lost_bundles", "lost_sessions"]);
        for counter in ["too_large", "forbidden", "malformed"] {
            assert_eq!(counters[counter], 0, "{status}");
        }
        assert_eq!(counters["bundles"], 2, "{status}");
    }
    Ok(())
}

/// One gateway alone, whose peer is not even there, shows what would be carried: how many, how
/// much, and which.
pub fn observed() -> Result<(), Failed> {
    let mut sites = Sites::new(PLAN);
    sites.configure(PORTS, "observe = true", &[]);
    both_versions(&sites);
    sites.start("left");
    sites.bench.wait("left", || sites.status("left")["observing"].as_bool());
    let there = v6(&sites, "bob");
    let [bob, alice] = ["bob", "alice"].map(|host| sites.bench.address(host));
    for (from, (at, to), port) in [
        ("alice", ("bob", bob.as_str()), PORT),
        ("alice", ("bob", there.as_str()), PORT + 1),
        ("bob", ("alice", alice.as_str()), PORT + 2),
        ("alice", ("bob", bob.as_str()), OTHER),
    ] {
        Flow::between(&mut sites, "cubic", from, (at, to), port, MUCH).end(&mut sites);
    }
    // A SYN that was damaged on its way opens nothing: its host would not believe it either.
    sites.bench.says("alice", &["python3", "-c", DAMAGED, &alice, &bob, &PORT.to_string()]);
    sites.bench.wait("it", || (sites.status("left")["passed"]["tcp_checksum"] == 1).then_some(()));
    let left = sites.status("left");
    assert_eq!((left["observing"].as_bool(), left["flows"].as_u64()), (Some(true), Some(0)), "{left}");
    assert_eq!(left["peers"][0]["carried_bytes"], 0, "{left}");
    let (flows, bytes) = rule(&left, 1);
    assert_eq!(flows, 3, "{left}");
    assert!((MUCH * 3..MUCH * 3 + 1_000).contains(&bytes), "{left}");
    let largest = left["largest"].as_array().unwrap();
    let of = |port: u16| {
        let flow =
            largest.iter().find(|flow| flow["to"].as_str().unwrap().ends_with(&format!(":{port}"))).unwrap();
        (flow["sent_bytes"].as_u64().unwrap() >= MUCH, flow["received_bytes"].as_u64().unwrap() >= MUCH)
    };
    assert_eq!(
        (largest.len(), of(PORT), of(PORT + 1), of(PORT + 2)),
        (3, (true, false), (true, false), (false, true))
    );
    assert!(left["peers"][0]["up"] == false);
    Ok(())
}

/// Without a session background flows wait for it, those that are new as well; all others go as
/// they did.
pub fn closed() -> Result<(), Failed> {
    let mut sites = Sites::new(&slow_lines());
    let relays = [sites.relay("one"), sites.relay("two")];
    sites.configure(PORTS, "fail-closed = true", &relays);
    sites.start("left");
    sites.bench.wait("left", || sites.status("left")["uptime"].as_f64());
    let serve = |sites: &mut Sites, port: u16| {
        let name = format!("listener-{port}");
        let script = format!(
            "import socket; s = socket.create_server(('', {port})); print('up', flush=True); s.accept(); s.accept()"
        );
        sites.bench.start(&name, "bob", &["python3", "-c", &script]);
        sites.bench.line(&name);
    };
    let connects = |sites: &Sites, port: u16| {
        let script = format!("import socket; socket.create_connection(('bob', {port}), {SILENCE})");
        sites.bench.on("alice", &["python3", "-c", &script]).status.success()
    };
    serve(&mut sites, PORT);
    serve(&mut sites, OTHER);
    assert!(connects(&sites, OTHER), "no rule names it");
    assert!(!connects(&sites, PORT), "it went by the plain route");
    assert!(sites.count("left", "held") > 0, "{}", sites.status("left"));
    sites.start("right");
    sites.wait_paths("left", 3);
    sites.wait_paths("right", 3);
    assert!(connects(&sites, PORT), "{}", sites.status("left"));

    // Nor does it go there when paths become narrower: hosts are told.
    sites.know_packet_sizes(3);
    let flow = Flow::start(&mut sites, "cubic", ["alice", "bob"], PORT + 1, 8 * MUCH);
    sites.bench.wait("the flow", || (flow.arrived(&sites) > MUCH).then_some(()));
    for device in ["right", "one", "two"] {
        sites.bench.says("left", &["ip", "link", "set", device, "mtu", "1300"]);
    }
    flow.end(&mut sites);
    let left = sites.status("left");
    assert!(left["counters"]["too_large"].as_u64() > Some(0), "{left}");
    assert!(left["peers"][0]["carried_bytes"].as_u64() > Some(8 * MUCH), "{left}");
    Ok(())
}

/// What takes a restart is told, and does nothing before it.
pub fn reread() -> Result<(), Failed> {
    let mut sites = Sites::new(&slow_lines());
    sites.configure(PORTS, "", &[]);
    sites.start_both(1);
    let flow = Flow::start(&mut sites, "cubic", ["alice", "bob"], PORT, 4 * MUCH);
    sites.bench.wait("the flow", || (flow.arrived(&sites) > MUCH).then_some(()));
    let before = sites.installed("left");
    sites.rewrite("left", "[gateway]", "[gateway]\ntun = \"byway7\"\nmark = 77");
    sites.rewrite("left", PORTS, "5205-5209");
    sites.bench.signal("left", "HUP");
    let told =
        || sites.bench.complained("left").lines().find(|line| line.contains("read again")).map(str::to_owned);
    assert!(
        sites.bench.wait("left to read", told).ends_with("other changes: tun, mark"),
        "{}",
        sites.bench.complained("left")
    );
    assert_eq!(sites.installed("left"), before);
    assert!(sites.bench.says("left", &["nft", "list", "ruleset"]).contains("5205-5209"));
    let carried = |sites: &Sites| sites.status("left")["peers"][0]["carried_bytes"].as_u64().unwrap();
    flow.end(&mut sites);
    // One that is open stays what it was as long as the kernel shows it; a new one is what the new
    // rules say.
    let at = carried(&sites);
    Flow::start(&mut sites, "cubic", ["alice", "bob"], PORT + 1, MUCH).end(&mut sites);
    assert_eq!(carried(&sites), at);
    Flow::start(&mut sites, "cubic", ["alice", "bob"], PORT + 5, MUCH).end(&mut sites);
    assert!(carried(&sites) > at + MUCH, "{at} {}", sites.status("left"));
    assert_eq!(sites.bench.stop("left", "TERM").code(), Some(0));
    assert_eq!(sites.installed("left"), Vec::<String>::new());
    assert!(!sites.bench.says("left", &["nft", "list", "ruleset"]).contains("byway"));
    Ok(())
}
