//! What a gateway's file has the kernel do, and what about a host stands in the way.

use byway_cli::gateway::config_file::GatewayConfig;
use byway_cli::gateway::plumbing::system;
use byway_gateway::kernel::{Family, KernelPlan};
use std::fs;
use std::path::Path;

const KEY: &str = "byway-key-mfrggzdfmztwq2lknnwg23tpobyxe43uov3ho6dzpiydcmrtgq2qpgjcuu";

fn plan(gateway: &str, allowed: &str, rules: &str) -> KernelPlan {
    let text = format!(
        "[gateway]\n{gateway}\n[[peer]]\nname = \"b\"\nkey = \"{KEY}\"\nallowed = [{allowed}]\n{rules}\n"
    );
    GatewayConfig::parse(Path::new("gw.toml"), &text).unwrap().plan()
}

#[test]
fn one_rule_takes_both_ends_of_its_flows() {
    let plan = plan(
        "serves = [\"192.168.1.0/24\"]",
        "\"192.168.2.0/24\"",
        "[[rule]]\nto-ports = [873, \"874-880\"]",
    );
    assert_eq!(
        plan.ruleset,
        r#"table inet byway_gw
delete table inet byway_gw
table inet byway_gw {
    chain take {
        counter meta mark set meta mark & 0xffff0000 | 0x00006277
    }
    chain rules4 {
        tcp dport { 873-880 } goto take comment "Rule 1: TCP flows opened on either side, to port 873 or 874-880, are carried as background."
        tcp sport { 873-880 } goto take comment "Rule 1: TCP flows opened on either side, to port 873 or 874-880, are carried as background."
    }
    chain prerouting {
        type filter hook prerouting priority mangle; policy accept;
        iifname "byway0" accept
        meta l4proto != tcp accept
        ip saddr { 192.168.1.0/24 } ip daddr { 192.168.2.0/24 } goto rules4
    }
}
"#
    );
}

#[test]
fn only_what_a_background_rule_may_mean_is_taken() {
    let both = "serves = [\"10.0.0.0/8\", \"10.1.0.0/16\", \"2001:db8:1::/48\"]";
    let lines = |rules: &str| {
        let text = plan(both, "\"172.16.0.0/12\", \"2001:db8:2::/48\"", rules).ruleset;
        text.lines().map(|line| line.trim().split(" comment").next().unwrap().to_owned()).collect::<Vec<_>>()
    };
    let has = |lines: &[String], line: &str| lines.iter().any(|other| other == line);
    let outbound = lines("[[rule]]\ndirection = \"outbound\"\nto = [\"172.16.5.0/24\"]\nto-ports = [80]");
    assert!(has(&outbound, "ip daddr { 172.16.5.0/24 } tcp dport { 80 } goto take"), "{outbound:?}");
    assert!(has(&outbound, "ip saddr { 10.0.0.0/8 } ip daddr { 172.16.0.0/12 } goto rules4"), "{outbound:?}");
    assert!(!outbound.iter().any(|line| line.contains("sport") || line.contains("ip6")), "{outbound:?}");
    let inbound = lines("[[rule]]\ndirection = \"inbound\"\nfrom = [\"2001:db8:2::5\"]\nto-ports = [80]");
    assert!(has(&inbound, "ip6 daddr { 2001:db8:2::5 } tcp sport { 80 } goto take"), "{inbound:?}");
    assert!(!inbound.iter().any(|line| line.contains("dport") || line.contains("ip saddr")), "{inbound:?}");
    // What a packet's own code point is says nothing of its flow's SYN.
    let marked = lines("[[rule]]\naction = \"pass\"\nto-ports = [22]\n[[rule]]\ndscp = [\"cs1\"]");
    assert!(!marked.iter().any(|line| line.contains("dscp") || line.contains("22")), "{marked:?}");
    assert!(has(&marked, "goto take"), "{marked:?}");
    assert!(!lines("").iter().any(|line| line.contains("goto")));
}

#[test]
fn routes_are_for_the_versions_of_ip_that_both_sides_have() {
    let plan = |gateway: &str, allowed: &str| plan(gateway, allowed, "[[rule]]");
    let v4 = plan("serves = [\"10.0.0.0/8\", \"fd00::/8\"]", "\"172.16.0.0/12\"");
    let rule = "rule add fwmark 0x6277/0xffff lookup 25207 priority 25207 protocol 98\n";
    let route = "route replace default dev byway0 table 25207 protocol 98\n";
    let address = "address replace 169.254.98.119/32 dev byway0 scope link\n";
    assert_eq!(v4.routing, [(Family::V4, format!("{address}{route}{rule}"))]);
    let closed = plan("serves = [\"fd00::/8\"]\nfail-closed = true\ntun = \"gw-b\"\nmark = 7", "\"::/0\"");
    let [(Family::V6, commands)] = closed.routing.as_slice() else { panic!("{closed:?}") };
    assert_eq!(
        commands,
        "route replace default dev gw-b table 7 protocol 98\n\
         route replace unreachable default metric 4278198272 table 7 protocol 98\n\
         rule add fwmark 0x7/0xffff lookup 7 priority 7 protocol 98\n"
    );
    assert_eq!(closed.table, "byway_gw_gw-b");
}

#[test]
fn a_host_that_would_not_forward_is_told_so() {
    let settings = tempfile::tempdir().unwrap();
    let set = |path: &str, value: &str| {
        let path = settings.path().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, format!("{value}\n")).unwrap();
    };
    let plan = plan("serves = [\"10.0.0.0/8\", \"fd00::/8\"]", "\"172.16.0.0/12\", \"fc00::/8\"", "");
    for (path, value) in [
        ("ipv4/ip_forward", "1"),
        ("ipv6/conf/all/forwarding", "1"),
        ("ipv4/conf/all/rp_filter", "1"),
        ("ipv4/conf/all/src_valid_mark", "0"),
        ("ipv4/conf/eth0/rp_filter", "1"),
        ("ipv4/conf/eth1/rp_filter", "2"),
        ("ipv4/conf/byway0/rp_filter", "0"),
    ] {
        set(path, value);
    }
    let complaints = || system::complaints(&plan, settings.path());
    assert_eq!(complaints(), Vec::<String>::new());
    set("ipv4/ip_forward", "0");
    set("ipv4/conf/all/src_valid_mark", "1");
    let told = complaints();
    assert_eq!(told.len(), 2, "{told:?}");
    assert!(told[0].contains("sysctl -w net.ipv4.ip_forward=1"), "{told:?}");
    assert!(told[1].starts_with("eth0 drops") && told[1].contains("conf.eth0.rp_filter=2"), "{told:?}");
}

#[test]
fn a_name_in_use_is_told_with_what_to_do() {
    let devices = tempfile::tempdir().unwrap();
    let set = |path: &str, value: &str| {
        let path = devices.path().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, value).unwrap();
    };
    let free = |tun: &str| system::device_free(tun, devices.path()).map_err(|error| error.to_string());
    assert_eq!(free("byway0"), Ok(()));
    set("eth0/carrier", "1\n");
    assert!(free("eth0").unwrap_err().contains("of another kind"));
    set("tun3/tun_flags", "0x1\n");
    set("tun3/carrier", "0\n");
    assert!(free("tun3").unwrap_err().contains("`ip tuntap del tun3 mode tun`"));
    set("tun3/carrier", "1\n");
    assert!(free("tun3").unwrap_err().contains("used by another program"));
}
