//! The main job as a person does it: processes that share nothing but sockets on loopback.

use crate::common::{Place, Running, assert_same};
use byway_demo::lines::PathSpec;
use byway_demo::network;
use byway_transfer::identity::PublicKey;
use byway_transfer::secret::Secret;
use byway_transfer::ticket::Ticket;
use std::fs;
use std::io::Write;
use std::process::{Output, Stdio};
use std::time::Duration;

fn ticket(text: &str) -> Ticket {
    text.parse().unwrap()
}

#[test]
fn a_tree_arrives_as_it_was_over_the_direct_path() {
    let place = Place::new();
    byway_files::generate(&place.path("tree"), 1, 6_000_000).unwrap();
    let (receiver, ticket) = place.recv(&["in", "--once"]);
    let sent = place.run("sender", &["send", "tree", &ticket, "--json"]);
    sent.succeeded();
    receiver.end().succeeded();
    assert_same(&place.path("tree"), &place.path("in/tree"));
    let result = sent.result();
    assert_eq!((&result["bytes"], &result["verified"]), (&6_000_000.into(), &true.into()));
    assert!(result["seconds"].as_f64().unwrap() > 0.0 && result["goodput_bps"].as_f64().unwrap() > 0.0);
    let paths = result["paths"].as_array().unwrap();
    assert_eq!((paths.len(), &paths[0]["route"]), (1, &"direct".into()));
    assert!(paths[0]["bytes"].as_u64().unwrap() > 6_000_000 && paths[0]["lost"].is_u64());
    assert!(!place.path("in/.byway-partial").exists(), "nothing partial stays behind");
}

#[test]
fn many_senders_are_served_and_only_those_on_the_list() {
    let place = Place::new();
    for name in ["a", "b", "c"] {
        fs::write(place.path(name), name).unwrap();
    }
    let key = |host: &str| String::from_utf8(place.run(host, &["id"]).stdout).unwrap().trim_end().to_owned();
    let (receiver, ticket) = place.recv(&["in", "--allow", &key("one"), "--allow", &key("two")]);
    let start = |host: &str, file: &str| Running::start(place.command(host, &["send", file, &ticket]));
    let (one, two) = (start("one", "a"), start("two", "b"));
    one.end().succeeded();
    two.end().succeeded();
    place.run("three", &["send", "c", &ticket]).failed(6, "yours is not among them");
    receiver.interrupt();
    assert_eq!(receiver.end().code, Some(130));
    let arrived = |name: &str| fs::read_to_string(place.path("in").join(name)).ok();
    assert_eq!([arrived("a"), arrived("b"), arrived("c")], [Some("a".into()), Some("b".into()), None]);
}

#[test]
fn a_tree_arrives_over_relays_and_the_direct_path_at_once() {
    let place = Place::new();
    byway_files::generate(&place.path("tree"), 2, 6_000_000).unwrap();
    let (first, in_ticket) = place.relay(&[]);
    let (second, given) = place.relay(&["--json"]);
    let given: serde_json::Value = serde_json::from_str(&given).unwrap();
    let (receiver, ticket) = place.recv(&["in", "--relay", &in_ticket, "--json"]);
    let ready: serde_json::Value = serde_json::from_str(&ticket).unwrap();
    let (ticket, word) = (ready["ticket"].as_str().unwrap(), given["word"].as_str().unwrap());

    let pinged = place.run("sender", &["ping", ticket, "--relay", word, "-c", "2", "--json"]);
    pinged.succeeded();
    let pings = pinged.result();
    let routes = pings["paths"].as_array().unwrap();
    assert_eq!(routes.len(), 3, "{pings}");
    assert!(routes.iter().all(|route| route["sent"] == 2 && route["min_rtt_ms"].as_f64().unwrap() > 0.0));

    // A direct line that is slow, so that it does not carry everything before the relays are known.
    let ticket = self::ticket(ticket);
    let slow = PathSpec { name: "direct", rate: 20_000_000, rtt: Duration::from_millis(10), queue: 50 };
    let line = network::direct(&slow, ticket.addresses[0]).unwrap();
    let ticket = Ticket { addresses: vec![line.front], ..ticket }.to_string();
    let arguments = ["send", "tree", &ticket, "--relay", word, "--priority", "normal", "--json"];
    let sent = place.run("sender", &arguments);
    sent.succeeded();
    assert_same(&place.path("tree"), &place.path("in/tree"));
    let result = sent.result();
    let relayed = result["paths"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|path| path["route"].as_str().unwrap().starts_with("relay "));
    assert!(relayed.map(|path| path["bytes"].as_u64().unwrap()).sum::<u64>() > 0, "{result}");

    receiver.interrupt();
    assert_eq!(receiver.end().result()["exit"], 0, "the last event is the transfer's");
    for relay in [first, second] {
        relay.interrupt();
        let ended = relay.end();
        assert_eq!(ended.code, Some(130), "{}", ended.stderr);
    }
}

#[test]
fn where_no_direct_path_leads_one_relay_is_enough() {
    let place = Place::new();
    byway_files::generate(&place.path("tree"), 3, 3_000_000).unwrap();
    let (relay, word) = place.relay(&[]);
    let (receiver, text) = place.recv(&["in", "--once", "--relay", &word]);
    let relayed = Ticket { addresses: Vec::new(), ..ticket(&text) };
    let sent = place.run("sender", &["send", "tree", &relayed.to_string(), "--json"]);
    sent.succeeded();
    receiver.end().succeeded();
    assert_same(&place.path("tree"), &place.path("in/tree"));
    let result = sent.result();
    assert!(result["paths"][0]["route"].as_str().unwrap().starts_with("relay 127.0.0.1:"), "{result}");
    relay.interrupt();
    assert!(relay.end().stderr.contains("forwarded "), "the operator gets to see the counters");
}

#[test]
fn a_stream_goes_from_standard_input_to_standard_output() {
    let place = Place::new();
    let data: Vec<u8> = (0..3_000_000u32).map(|at| (at ^ (at >> 9)) as u8).collect();
    let (mut receiver, ticket) = place.recv_pipe();
    // Whoever sends files to it is told.
    place.run("sender", &["send", "errors", &ticket]).failed(2, "takes a stream and no files");
    let mut sender = place.command("sender", &["send", "-", &ticket]).stdin(Stdio::piped()).spawn().unwrap();
    sender.stdin.take().unwrap().write_all(&data).unwrap();
    let Output { status, stderr, .. } = sender.wait_with_output().unwrap();
    assert_eq!(status.code(), Some(0), "{}", String::from_utf8_lossy(&stderr));
    assert_eq!(receiver.wait().unwrap().code(), Some(0));
    assert!(fs::read(place.path("out")).unwrap() == data, "what came out is not what went in");
}

#[test]
fn an_unknown_relay_is_named_and_the_transfer_goes_on_without_it() {
    let place = Place::new();
    fs::write(place.path("file"), vec![7; 100_000]).unwrap();
    let (relay, word) = place.relay(&[]);
    relay.interrupt();
    relay.end();
    let (receiver, ticket) = place.recv(&["in", "--once"]);
    place.run("sender", &["send", "file", &ticket, "--relay", &word]).succeeded();
    receiver.end().succeeded();
    let (receiver, ticket) = place.recv(&["in", "--once", "--relay", &word]);
    place.run("sender", &["send", "file", &ticket]).succeeded();
    let ended = receiver.end();
    ended.succeeded();
    let told: Vec<&str> = ended.stderr.lines().filter(|line| line.starts_with("warning: relay ")).collect();
    let [line] = told.as_slice() else { panic!("{}", ended.stderr) };
    assert!(line.ends_with("it does not answer; nobody will come through it"), "{line}");
}

#[test]
fn a_relay_that_refuses_is_heard_and_the_transfer_goes_on_without_it() {
    let place = Place::new();
    fs::write(place.path("file"), vec![7; 400_000]).unwrap();
    let (expired, word) = place.relay(&["--expires", "0s"]);
    let (receiver, ticket) = place.recv(&["in", "--once"]);
    let pinged = place.run("sender", &["ping", &ticket, "--relay", &word, "-c", "1", "--json"]);
    pinged.succeeded();
    assert_eq!(pinged.result()["paths"].as_array().unwrap().len(), 1, "the relay is no way");
    place.run("sender", &["send", "file", &ticket, "--relay", &word]).succeeded();
    receiver.end().succeeded();
    expired.interrupt();
    assert!(expired.end().stderr.contains("the relay word has expired"), "the operator sees why");
}

#[test]
fn a_wrong_ticket_gets_one_sentence_and_a_code() {
    let place = Place::new();
    fs::write(place.path("file"), "x").unwrap();
    let (receiver, text) = place.recv(&["in"]);
    let real = ticket(&text);
    let send = |ticket: &str| place.run("sender", &["send", "file", ticket]);

    let old = Ticket { permission: Secret::new([9; 16]), ..real.clone() };
    send(&old.to_string()).failed(6, "does not know this ticket");
    let other = Ticket { key: PublicKey([9; 32]), ..real.clone() };
    send(&other.to_string()).failed(6, "has another key than the ticket says");
    let mut mistyped = text.clone();
    mistyped.replace_range(20..21, if &text[20..21] == "a" { "b" } else { "a" });
    send(&mistyped).failed(2, "this ticket was mistyped");
    send(&text[..40]).failed(2, "this ticket is cut short");
    let mut piped = place.command("sender", &["send", "-", &text]);
    piped.stdin(Stdio::null());
    Running::start(piped).end().failed(2, "cannot take a stream");
    let nowhere = Ticket { addresses: Vec::new(), ..real };
    send(&nowhere.to_string()).failed(5, "names no address");
    place.run("sender", &["ping", &old.to_string()]).failed(6, "does not know this ticket");
    assert!(!place.path("in/file").exists());
    // After all that it still takes what is right.
    send(&text).succeeded();
    drop(receiver);
}

#[test]
fn what_cannot_work_is_said_before_anything_is_sent() {
    let place = Place::new();
    let (receiver, ticket) = place.recv(&["in"]);
    place.run("sender", &["send", "nothing", &ticket]).failed(3, "nothing does not exist");
    place
        .run("sender", &["send", "in", &ticket, "--congestion", "best"])
        .failed(2, "choose one of background, ");
    let options = |options| ["send", "in", &ticket, "--congestion", options];
    place.run("sender", &options("hir:pockets=20")).failed(2, "hir has no option pockets; it has ");
    place.run("sender", &options("hir:packets=-1")).failed(2, "it must be a number from 0 to ");
    place.run("sender", &options("hir:packets")).failed(2, "expected OPTION=NUMBER after the colon");
    place.run("sender", &["send", "in"]).failed(2, "the command has no ticket after `in`");
    place.run("sender", &["send", "in", "@absent"]).failed(3, "cannot read absent");
    place.run("sender", &["send", "-n", "in", &ticket]).succeeded();
    fs::write(place.path("taken"), "a file").unwrap();
    place.run("receiver", &["recv", "taken"]).failed(1, "taken is not a directory");
    place.run("receiver", &["recv", "-", "--json"]).failed(2, "leave out --json");
    let (relay, word) = place.relay(&[]);
    let port = word.parse::<byway_wire::relay::Word>().unwrap().relays()[0].to_string();
    place.run("relay", &["relay", "--listen", &port]).failed(1, "is in use by another program");
    place.run("receiver", &["recv", "in", "--listen", &port]).failed(1, "is in use by another program");
    drop((receiver, relay));
}

#[test]
fn what_cannot_be_written_is_named_and_the_rest_arrives() {
    let place = Place::new();
    fs::create_dir(place.path("tree")).unwrap();
    fs::write(place.path("tree/good"), "good").unwrap();
    fs::write(place.path("tree/name"), vec![1; 300_000]).unwrap();
    fs::create_dir_all(place.path("in/tree/name/inside")).unwrap();
    let (receiver, ticket) = place.recv(&["in", "--once"]);
    let sent = place.run("sender", &["send", "tree", &ticket]);
    sent.failed(4, "not everything was transferred");
    assert!(
        sent.stderr.contains("warning: tree/name: a directory has this name at the receiver"),
        "{}",
        sent.stderr
    );
    assert_eq!(receiver.end().code, Some(4));
    assert_eq!(fs::read_to_string(place.path("in/tree/good")).unwrap(), "good");
}

#[test]
fn an_interrupted_sender_stops_and_says_what_was_done() {
    let place = Place::new();
    let (mut pipe, ticket) = place.recv_pipe();
    // A stream that does not end, so that there is time to interrupt it.
    let mut command = place.command("sender", &["send", "-", &ticket]);
    command.stdin(Stdio::piped());
    let sender = Running::start(command);
    std::thread::sleep(std::time::Duration::from_millis(500));
    sender.interrupt();
    sender.end().failed(130, "send all of it again");
    assert_eq!(pipe.wait().unwrap().code(), Some(5), "what came so far is not all");
}

#[test]
fn a_directory_keeps_its_name_with_a_slash_and_hard_links_if_told() {
    let place = Place::new();
    fs::create_dir(place.path("tree")).unwrap();
    fs::write(place.path("tree/a"), "one").unwrap();
    fs::hard_link(place.path("tree/a"), place.path("tree/b")).unwrap();
    std::os::unix::fs::symlink("tree", place.path("link")).unwrap();
    let (_receiver, ticket) = place.recv(&["in"]);
    let send = |arguments: &[&str]| {
        let sent = place.run("sender", &[&["send"], arguments, &[&ticket, "--json"]].concat());
        sent.succeeded();
        sent.result()
    };
    let inodes = |names: [&str; 2]| {
        names.map(|name| std::os::unix::fs::MetadataExt::ino(&place.path(name).metadata().unwrap()))
    };
    let apart = send(&["tree/"]);
    assert_eq!((&apart["not_copied"]["hard_links"], &apart["bytes"]), (&2.into(), &6.into()));
    assert_same(&place.path("tree"), &place.path("in/tree"));
    let [a, b] = inodes(["in/tree/a", "in/tree/b"]);
    assert_ne!(a, b);
    let linked = send(&["link/", "--hard-links"]);
    assert_eq!((&linked["not_copied"], &linked["bytes"]), (&serde_json::Value::Null, &3.into()));
    assert_same(&place.path("tree"), &place.path("in/link"));
    let [a, b] = inodes(["in/link/a", "in/link/b"]);
    assert_eq!(a, b);
    assert!(!place.path("in/a").exists());
    send(&["tree", "--into-root"]);
    fs::write(place.path("tree/c"), "dot").unwrap();
    send(&["tree/."]);
    assert_eq!(fs::read_to_string(place.path("in/a")).unwrap(), "one");
    assert_eq!(fs::read_to_string(place.path("in/c")).unwrap(), "dot");
    let told = place.run("sender", &["send", "tree", &ticket]);
    told.succeeded();
    assert!(told.stderr.contains("not copied: 2 hard links (--hard-links keeps them)"), "{}", told.stderr);
}

#[test]
fn a_newer_file_of_the_receiver_may_be_expected() {
    let place = Place::new();
    fs::create_dir_all(place.path("tree")).unwrap();
    fs::create_dir_all(place.path("in/tree")).unwrap();
    fs::write(place.path("tree/a"), "older").unwrap();
    fs::write(place.path("tree/b"), "other").unwrap();
    let sent_at = place.path("tree/a").metadata().unwrap().modified().unwrap();
    fs::write(place.path("in/tree/a"), "newer").unwrap();
    let theirs = fs::File::options().write(true).open(place.path("in/tree/a")).unwrap();
    theirs.set_modified(sent_at + Duration::from_secs(1)).unwrap();
    let (receiver, ticket) = place.recv(&["in", "--once"]);
    let sent = place.run("sender", &["send", "tree", &ticket, "--update", "--json"]);
    sent.succeeded();
    receiver.end().succeeded();
    let result = sent.result();
    assert_eq!((&result["newer_files"], &result["entries"]), (&1.into(), &2.into()), "{result}");
    assert_eq!(fs::read(place.path("in/tree/a")).unwrap(), b"newer");
    assert_eq!(fs::read(place.path("in/tree/b")).unwrap(), b"other");
}
