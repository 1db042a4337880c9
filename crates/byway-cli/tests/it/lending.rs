//! End hosts that relay for others, as processes. The tests check what they say, what they keep,
//! and what they refuse.

use crate::common::{Place, Running};
use byway_transfer::SavedState;
use serde_json::Value;
use std::fs;
use std::os::unix::fs::PermissionsExt as _;

/// A registry on this host, its word for relays and its word for senders.
fn registry(place: &Place) -> (Running, String, String) {
    let mut registry =
        Running::start(place.command("hub", &["--json", "registry", "--listen", "127.0.0.1:0"]));
    let ready = registry.event("ready");
    let word = |kind: &str| ready[kind].as_str().unwrap().to_owned();
    let (join, ask) = (word("join"), word("use"));
    (registry, join, ask)
}

/// A receiver on `host` that relays for others, once it is listed, and its ticket.
fn lender(place: &Place, host: &str, quota: &str, join: &str) -> (Running, String) {
    let into = place.path(&format!("{host}-in")).display().to_string();
    fs::create_dir_all(&into).unwrap();
    let fixed = ["--json", "recv", &into, "--listen", "127.0.0.1:0", "--allow-destination", "127.0.0.0/8"];
    let arguments = [&fixed[..], &["--also-relay", quota, "--registry", join]].concat();
    let mut lender = Running::start(place.command(host, &arguments));
    let ticket = lender.event("ready")["ticket"].as_str().unwrap().to_owned();
    let terms = lender.event("lends");
    assert!(terms["terms"].as_str().unwrap().contains("until this command ends"), "{terms}");
    assert_eq!(lender.event("enrolled")["addresses"].as_array().unwrap().len(), 1);
    (lender, ticket)
}

fn kept(place: &Place, host: &str) -> SavedState {
    let state = place.path(&format!("{host}/.local/share/byway"));
    // A draft, whose name ends in `.tmp`, does not count until it has replaced the file.
    let is_kept = |name: &str| name.starts_with("relay-kept-") && !name.ends_with(".tmp");
    let named = |entry: &fs::DirEntry| is_kept(&entry.file_name().to_string_lossy());
    let file = fs::read_dir(state).unwrap().map(Result::unwrap).find(named).unwrap();
    fs::read_to_string(file.path()).unwrap().parse().unwrap()
}

fn carried(event: &Value) -> u64 {
    ["forwarded_bytes", "returned_bytes"].map(|name| event[name].as_u64().unwrap()).iter().sum()
}

#[test]
fn a_receiver_relays_for_others_within_a_quota_that_survives_it() {
    let place = Place::new();
    let (_registry, join, ask) = registry(&place);
    // One transfer cannot use up the quota: the registry would list the relay no more.
    fs::write(place.path("file"), vec![7; 2 << 20]).unwrap();
    let (mut first, _) = lender(&place, "lender", "3M/day", &join);
    let mut used = 0;
    for killed in [true, false] {
        let (receiver, ticket) = place.recv(&["in", "--once", "--new-ticket"]);
        let sender = place
            .run("sender", &["--json", "send", "file", &ticket, "--registry", &ask, "--bwlimit", "512K"]);
        sender.succeeded();
        receiver.end().succeeded();
        fs::remove_dir_all(place.path("in")).unwrap_or_default();
        first.signal("USR1");
        let counters = first.event("counters");
        let today = counters["today_bytes"].as_u64().unwrap();
        assert!(today > used && today <= 3 << 20, "{counters}");
        used = today;
        while kept(&place, "lender").used.today < used {
            std::thread::sleep(std::time::Duration::from_millis(100));
        }
        if killed {
            first.signal("KILL");
            first.end();
            first = lender(&place, "lender", "3M/day", &join).0;
        }
    }
    first.signal("TERM");
    let lent = first.event("lent");
    assert!(carried(&lent) <= used && lent["today_bytes"].as_u64() >= Some(used), "{lent}");
}

#[test]
fn a_sender_relays_too_and_its_result_says_so() {
    let place = Place::new();
    let (_registry, join, ask) = registry(&place);
    fs::write(place.path("file"), vec![7; 300_000]).unwrap();
    let (receiver, ticket) = place.recv(&["in", "--once"]);
    let both = format!("{join},{ask}");
    let send =
        ["--json", "send", "file", &ticket, "--also-relay", "1G/month", "--registry", &both, "--lend", "1M"];
    let ended = place.run("sender", &send);
    ended.succeeded();
    assert_eq!(ended.result()["lent_bytes"], 0);
    receiver.end().succeeded();
}

#[test]
fn a_registry_of_the_configuration_serves_for_lending_too() {
    let place = Place::new();
    let (_registry, join, ask) = registry(&place);
    fs::write(place.path("file"), vec![7; 300_000]).unwrap();
    let (receiver, ticket) = place.recv(&["in", "--once"]);
    let config = place.path("config.toml");
    fs::write(&config, format!("[send]\nregistry = [\"{join}\", \"{ask}\"]\n")).unwrap();
    fs::set_permissions(&config, fs::Permissions::from_mode(0o600)).unwrap();
    let send = ["--json", "send", "file", &ticket, "--also-relay", "1G/month"];
    let mut sender = place.command("sender", &send);
    sender.env("BYWAY_CONFIG", config);
    let ended = Running::start(sender).end();
    ended.succeeded();
    assert_eq!(ended.result()["lent_bytes"], 0);
    receiver.end().succeeded();
}

#[test]
fn one_process_of_a_host_lends_and_another_transfers_all_the_same() {
    let place = Place::new();
    let (_registry, join, _ask) = registry(&place);
    let (_first, _) = lender(&place, "lender", "1G/day", &join);
    fs::write(place.path("file"), vec![7; 300_000]).unwrap();
    let (receiver, ticket) = place.recv(&["in", "--once"]);
    let send = ["--json", "send", "file", &ticket, "--also-relay", "1G/day", "--registry", &join];
    let mut second = Running::start(place.command("lender", &send));
    let warning = second.event("warning");
    assert!(warning["message"].as_str().unwrap().contains("its quota is for one"), "{warning}");
    second.end().succeeded();
    receiver.end().succeeded();
}

#[test]
fn what_cannot_be_lent_is_told() {
    let place = Place::new();
    let (_registry, _join, ask) = registry(&place);
    let recv =
        |more: &[&str]| place.run("host", &[&["recv", "into", "--listen", "127.0.0.1:0"], more].concat());
    fs::create_dir(place.path("into")).unwrap();
    recv(&["--also-relay", "1G/day", "--registry", &ask]).failed(2, "the registry's word for joining");
    for (arguments, says) in [
        (&["--also-relay", "1G/day"][..], "give it with --registry"),
        (&["--also-relay", "1G", "--registry", &ask], "is no quota"),
        (&["--lend", "1M"], "--also-relay"),
    ] {
        let ended = recv(arguments);
        assert!(ended.code == Some(2) && ended.stderr.contains(says), "{}", ended.stderr);
    }
}
