use super::*;
use crate::key::FlowKey;
use crate::ports::Ports;
use alloc::string::ToString;
use alloc::vec;
use alloc::vec::Vec;
use byway_wire::Prefix;
use core::net::IpAddr;
use proptest::prelude::*;

const TABLE: &str = r#"
[[rule]]
name = "not the database"
action = "pass"
from = ["10.0.9.0/24"]

[[rule]]
name = "backup"
action = "background"
direction = "outbound"
from = ["10.0.0.0/16", "2001:db8:1::/48"]
to-ports = [873, "8000-8010"]

[[rule]]
dscp = ["cs1", "le", 10]
"#;

fn read(text: &str) -> Rules {
    toml::from_str(text).unwrap()
}

fn flow(source: &str, port: u16) -> FlowKey {
    FlowKey {
        source: source.parse().unwrap(),
        destination: if source.contains(':') { "2001:db8:2::1" } else { "10.1.0.1" }.parse().unwrap(),
        source_port: 40_000,
        destination_port: port,
    }
}

#[test]
fn the_first_rule_that_matches_decides() {
    let rules = read(TABLE);
    let ask = |source, port, origin, dscp| classify(&rules, &flow(source, port), origin, dscp);
    let verdict = |action, rule| Classification { action, rule };
    assert_eq!(ask("10.0.9.1", 873, FlowOrigin::Here, 8), verdict(Action::Pass, Some(0)));
    assert_eq!(ask("10.0.8.1", 8_005, FlowOrigin::Here, 0), verdict(Action::Background, Some(1)));
    assert_eq!(ask("2001:db8:1::9", 873, FlowOrigin::Here, 0), verdict(Action::Background, Some(1)));
    assert_eq!(ask("10.0.8.1", 8_011, FlowOrigin::Here, 0), verdict(Action::Pass, None));
    assert_eq!(ask("10.0.8.1", 873, FlowOrigin::There, 0), verdict(Action::Pass, None));
    assert_eq!(ask("10.0.8.1", 22, FlowOrigin::There, 1), verdict(Action::Background, Some(2)));
}

#[test]
fn a_table_without_rules_touches_nothing() {
    let verdict = classify(&read(""), &flow("10.0.0.1", 873), FlowOrigin::Here, 8);
    assert_eq!(verdict, Classification { action: Action::Pass, rule: None });
}

#[test]
fn rules_read_as_sentences() {
    let rules = read(TABLE);
    let sentences: Vec<_> =
        rules.rules.iter().enumerate().map(|(place, rule)| explain(place, rule)).collect();
    assert_eq!(
        sentences,
        [
            "Rule 1 (not the database): TCP flows opened on either side, from 10.0.9.0/24, pass untouched.",
            "Rule 2 (backup): TCP flows opened by hosts behind this gateway, from 10.0.0.0/16 or 2001:db8:1::/48, to port \
             873 or 8000-8010, are carried as background.",
            "Rule 3: TCP flows opened on either side, marked DSCP 8, 1 or 10, are carried as background.",
        ]
    );
    assert_eq!(
        explain(0, &Rule::default()),
        "Rule 1: TCP flows opened on either side are carried as background."
    );
}

#[test]
fn mistakes_are_told_with_their_place() {
    let error = |text: &str| toml::from_str::<Rules>(text).unwrap_err().to_string();
    assert!(error("[[rule]]\nfrom = [\"10.0.0.1/8\"]").contains("the prefix would be 10.0.0.0/8"));
    assert!(error("[[rule]]\nto-ports = [\"9-7\"]").contains("line 2"));
    assert!(error("[[rule]]\nport = [9]").contains("unknown field `port`"));
    assert!(error("[[rule]]\ndscp = [64]").contains("not a DSCP"));
    assert!(error("[[rule]]\nprotocol = \"udp\"").contains("expected `tcp`"));
    assert!(error("[[rule]]\nto-ports = [-1]").contains("`-1`: not a port"));
}

#[test]
fn what_is_wrong_with_a_table_is_found() {
    let findings = |text: &str| analyse(&read(text)).iter().map(ToString::to_string).collect::<Vec<_>>();
    let disagree = |rule: u8| {
        alloc::format!("rules 1 and {rule} disagree about some flows: rule 1 comes first and decides")
    };
    assert_eq!(findings(TABLE), [disagree(2), disagree(3)]);
    let halves = "[[rule]]\nfrom = [\"10.0.0.0/9\"]\n[[rule]]\naction = \"pass\"\nfrom = [\"10.128.0.0/9\"]\n\
                  [[rule]]\nfrom = [\"10.0.0.0/8\"]\nto-ports = [22]\n";
    assert_eq!(findings(halves), ["rule 3 is never reached: rules 1 and 2 before it match all of its flows"]);
    let both = "[[rule]]\n[[rule]]\ndscp = [8]\n";
    assert_eq!(findings(both), ["rule 2 is never reached: rule 1 before it matches all of its flows"]);
    let versions = "[[rule]]\nfrom = [\"10.0.0.0/8\"]\nto = [\"2001:db8::/32\"]\n";
    assert_eq!(findings(versions), ["rule 1 matches no flow: its addresses are of different IP versions"]);
    let exception = "[[rule]]\naction = \"pass\"\nto-ports = [22]\n[[rule]]\n";
    assert_eq!(findings(exception), [""; 0]);
    let directions = "[[rule]]\ndirection = \"inbound\"\n[[rule]]\ndirection = \"outbound\"\n[[rule]]\n";
    assert_eq!(
        findings(directions),
        ["rule 3 is never reached: rules 1 and 2 before it match all of its flows"]
    );
    let versions = "[[rule]]\nfrom = [\"0.0.0.0/0\"]\n[[rule]]\nto = [\"::/0\"]\n[[rule]]\n";
    assert_eq!(
        findings(versions),
        ["rule 3 is never reached: rules 1 and 2 before it match all of its flows"]
    );
}

/// A rule with four long lists is not expanded into all combinations.
#[test]
fn long_lists_are_no_work() {
    let hosts =
        |first: u8| (0..=255).map(|last| Prefix::of(IpAddr::from([10, first, last, 1]), 32)).collect();
    let ports = || (0..200).map(|port| Ports::new(port * 2, port * 2).unwrap()).collect();
    let long =
        || Rule { from: hosts(1), to: hosts(2), from_ports: ports(), to_ports: ports(), ..Rule::default() };
    let beyond = Rule { to_ports: vec![Ports::new(0, 500).unwrap()], ..long() };
    let rules = Rules { rules: vec![long(), long(), beyond] };
    assert_eq!(analyse(&rules), [RuleFinding::Unreachable { rule: 1, by: vec![0] }]);
}

#[test]
fn a_table_written_is_the_table_read() {
    let rules = read(TABLE);
    let value = toml::Value::try_from(&rules).unwrap();
    assert_eq!(value.try_into::<Rules>().unwrap(), rules);
}

/// Rules over few addresses and ports, so that many overlap.
fn any_rule() -> impl Strategy<Value = Rule> {
    let prefix = (any::<bool>(), 0u8..4, 0u8..=2).prop_map(|(v6, host, cut)| {
        let (address, whole): (IpAddr, u8) = if v6 {
            ([0, 0, 0, 0, 0, 0, 0, u16::from(host)].into(), 128)
        } else {
            ([0, 0, 0, host].into(), 32)
        };
        Prefix::of(address, whole - cut)
    });
    let ports = (0u16..4, 0u16..4).prop_map(|(a, b)| Ports::new(a.min(b), a.max(b)).unwrap());
    let direction = prop_oneof![Just(Direction::Both), Just(Direction::Inbound), Just(Direction::Outbound)];
    let lists = (
        prop::collection::vec(prefix.clone(), 0..3),
        prop::collection::vec(prefix, 0..3),
        prop::collection::vec(ports, 0..2),
    );
    (any::<bool>(), direction, lists, prop::collection::vec(0u8..2, 0..2)).prop_map(
        |(pass, direction, lists, dscp)| Rule {
            action: if pass { Action::Pass } else { Action::Background },
            direction,
            from: lists.0,
            to: lists.1,
            to_ports: lists.2,
            dscp: dscp.into_iter().filter_map(Dscp::new).collect(),
            ..Rule::default()
        },
    )
}

/// Every flow over the addresses, ports, marks and origins that the rules above can tell apart, and
/// one beyond each.
fn all_flows() -> Vec<(FlowKey, FlowOrigin, u8)> {
    let mut flows = vec![];
    for v6 in [false, true] {
        let host = |host: u8| -> IpAddr {
            if v6 { [0, 0, 0, 0, 0, 0, 0, u16::from(host)].into() } else { [0, 0, 0, host].into() }
        };
        for (source, destination) in (0..5).flat_map(|a| (0..5).map(move |b| (a, b))) {
            for (destination_port, dscp) in (0..5).flat_map(|port| (0..3).map(move |dscp| (port, dscp))) {
                let flow = FlowKey {
                    source: host(source),
                    destination: host(destination),
                    source_port: 9,
                    destination_port,
                };
                flows.extend([(flow, FlowOrigin::Here, dscp), (flow, FlowOrigin::There, dscp)]);
            }
        }
    }
    flows
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]
    #[test]
    fn a_rule_is_called_unreachable_if_no_flow_reaches_it(rules in prop::collection::vec(any_rule(), 1..6)) {
        let rules = Rules { rules };
        let mut reached = vec![false; rules.rules.len()];
        for (flow, origin, dscp) in all_flows() {
            if let Some(rule) = classify(&rules, &flow, origin, dscp).rule {
                reached[rule] = true;
            }
        }
        let findings = analyse(&rules);
        for (place, reached) in reached.into_iter().enumerate() {
            let told = findings.iter().any(|finding| matches!(finding,
                RuleFinding::Unreachable { rule, .. } | RuleFinding::Impossible { rule } if *rule == place));
            prop_assert_eq!(told, !reached, "rule {}", place);
        }
    }
}
