//! What relays and registries show Prometheus, and the dashboards that are made of it.

use crate::common::pages::project;
use crate::common::{Place, Running};
use crate::relay_words::{until_it_knows, word};
use crate::relaying::{ready_relay, send};
use byway_wire::relay::Word;
use serde_json::Value;
use std::collections::BTreeSet;
use std::fs;
use std::io::{Read as _, Write as _};
use std::net::TcpStream;

/// An answer of the pages of `ready`, whose process told it. `fields`: lines of the request's head.
fn ask(ready: &Value, path: &str, fields: &str) -> String {
    let mut page = TcpStream::connect(ready["http"].as_str().unwrap()).unwrap();
    write!(page, "GET {path} HTTP/1.1\r\n{fields}\r\nConnection: close\r\n\r\n").unwrap();
    let mut text = String::new();
    page.read_to_string(&mut text).unwrap();
    text
}

/// What Prometheus reads.
fn scrape(ready: &Value) -> String {
    let answer = ask(ready, "/metrics", "Host: localhost");
    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
    assert!(head.starts_with("HTTP/1.1 200") && head.contains("application/openmetrics-text"), "{head}");
    assert!(body.ends_with("# EOF\n"), "{body}");
    body.to_owned()
}

/// The value of a sample, which is called as in the text, with its labels.
fn value(metrics: &str, sample: &str) -> u64 {
    let line = metrics.lines().find_map(|line| line.strip_prefix(sample)?.strip_prefix(' '));
    line.unwrap_or_else(|| panic!("no {sample} in {metrics}")).parse().unwrap()
}

/// The names of all samples.
fn names(metrics: &str) -> BTreeSet<String> {
    let samples = metrics.lines().filter(|line| !line.starts_with('#'));
    samples.filter_map(|line| line.split(['{', ' ']).next().map(str::to_owned)).collect()
}

#[test]
fn a_relays_metrics_count_what_it_carried_and_for_whom() {
    let place = Place::new();
    fs::write(place.path("file"), vec![7; 300_000]).unwrap();
    let (mut relay, ready) = ready_relay(&place, &["--http", "127.0.0.1:0"]);
    let words = ["alice", "bob"].map(|name| word(&place, name));
    until_it_knows(&mut relay, 2);
    let (receiver, sender) = send(&place, &words[0], "file", &[]);
    sender.end().succeeded();
    receiver.end().succeeded();
    let carried = |metrics: &str| value(metrics, "byway_relay_word_bytes_total{word=\"alice\"}");
    let metrics = loop {
        let metrics = scrape(&ready);
        if carried(&metrics) > 300_000 {
            break metrics;
        }
    };
    let [forwarded, returned, today] =
        ["forwarded_bytes_total", "returned_bytes_total", "today_bytes"].map(|name| {
            let value = value(&metrics, &format!("byway_relay_{name}"));
            assert!(value > 0, "{name}");
            value
        });
    assert!(forwarded > 300_000 && today >= 300_000 && carried(&metrics) <= forwarded + returned);
    assert_eq!(value(&metrics, "byway_relay_word_bytes_total{word=\"bob\"}"), 0);
    assert_eq!(value(&metrics, "byway_relay_dropped_packets_total{reason=\"word_revoked\"}"), 0);
    relay.signal("USR1");
    assert!(relay.event("counters")["forwarded_bytes"].as_u64() >= Some(forwarded));
    // Names are for the operator. Grants, addresses and secrets are not in there.
    let grant = words[0].parse::<Word>().unwrap().grant().id;
    for secret in [&words[0], "127.0.0.1", "::1", &grant.to_string(), &format!("{grant:08x}")] {
        assert!(!metrics.contains(secret), "{secret}: {metrics}");
    }
    assert!(ask(&ready, "/healthz", "Host: 127.0.0.1").starts_with("HTTP/1.1 200"));
    for (fields, status) in [
        ("Host: 127.evil.example", "HTTP/1.1 421"),
        ("Host: localhost\r\nSec-Fetch-Site: cross-site", "HTTP/1.1 403"),
        ("Host: localhost\r\nOrigin: http://localhost", "HTTP/1.1 200"),
    ] {
        assert!(ask(&ready, "/metrics", fields).starts_with(status), "{fields}");
    }
    // A word that is revoked leaves. The label is bounded by the words that there are.
    place.run("relay", &["relay", "revoke", "alice"]).succeeded();
    while scrape(&ready).contains("alice") {}
}

#[test]
fn no_page_of_a_relay_is_served_but_on_loopback() {
    let place = Place::new();
    let arguments = ["relay", "--listen", "127.0.0.1:0", "--http", "0.0.0.0:0"];
    place.run("relay", &arguments).failed(1, "give a loopback address");
}

/// The metrics of byway that a dashboard names, wherever it does.
fn named(dashboard: &str) -> BTreeSet<String> {
    let words = dashboard.split(|letter: char| !letter.is_ascii_alphanumeric() && letter != '_');
    words.filter(|word| word.starts_with("byway_")).map(str::to_owned).collect()
}

#[test]
fn dashboards_name_metrics_that_there_are() {
    let place = Place::new();
    let (mut relay, of_relay) = ready_relay(&place, &["--http", "127.0.0.1:0"]);
    word(&place, "alice");
    until_it_knows(&mut relay, 1);
    let arguments = ["--json", "registry", "--listen", "127.0.0.1:0", "--http", "127.0.0.1:0"];
    let mut registry = Running::start(place.command("registry", &arguments));
    let of_registry = registry.event("ready");
    for (file, ready) in [("byway-relay.json", of_relay), ("byway-registry.json", of_registry)] {
        let text = fs::read_to_string(project().join("contrib/grafana").join(file)).unwrap();
        let dashboard: Value = serde_json::from_str(&text).unwrap();
        let panels = dashboard["panels"].as_array().unwrap();
        for panel in panels {
            let targets = panel["targets"].as_array().unwrap();
            let expressions: Vec<_> = targets.iter().map(|target| target["expr"].as_str().unwrap()).collect();
            assert!(!expressions.is_empty(), "{panel}");
            assert!(expressions.iter().all(|expression| !named(expression).is_empty()), "{expressions:?}");
            assert!(panel["fieldConfig"]["defaults"]["unit"].is_string(), "{panel}");
        }
        let (named, there) = (named(&text), names(&scrape(&ready)));
        assert!(panels.len() >= 5 && named.len() >= 8, "{named:?}");
        let missing: Vec<_> = named.difference(&there).collect();
        assert!(missing.is_empty(), "{file}: {missing:?} are not among {there:?}");
    }
}
