//! Live sources and a sink: every record arrives once and in order, whoever is killed.

use crate::common::machine::{PATIENCE, wait_for};
use crate::common::{Ended, Place, Running};
use std::fs::{self, File};
use std::io::Write as _;
use std::path::PathBuf;
use std::process::{ChildStdin, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

/// A sink's directory, and records.
struct Net {
    place: Place,
    records: Vec<u8>,
}

impl Net {
    /// With so many lines of different lengths, each of which has its number.
    fn new(lines: usize) -> Self {
        let line = |number: usize| format!("{number} {}\n", "x".repeat(number * 7919 % 300));
        let records = (0..lines).flat_map(|number| line(number).into_bytes()).collect();
        Self { place: Place::new(), records }
    }

    fn out(&self, name: &str) -> PathBuf {
        self.place.path("out").join(name)
    }

    /// A sink, and its ticket.
    fn sink(&self, more: &[&str]) -> (Running, String) {
        let out = self.place.path("out").display().to_string();
        let arguments = [&["sink", &out, "--listen", "127.0.0.1:0", "--json"], more].concat();
        let mut sink = Running::start(self.place.command("sink", &arguments));
        let ticket = sink.event("ready")["ticket"].as_str().unwrap().to_owned();
        (sink, ticket)
    }

    /// A source whose standard input is all records.
    fn source(&self, ticket: &str, more: &[&str]) -> Running {
        let input = self.place.path("records");
        fs::write(&input, &self.records).unwrap();
        self.source_of(ticket, more, File::open(input).unwrap().into())
    }

    fn source_of(&self, ticket: &str, more: &[&str], input: Stdio) -> Running {
        self.source_at("source", ticket, more, input)
    }

    /// A source on this host, which has a key of its own.
    fn source_at(&self, host: &str, ticket: &str, more: &[&str], input: Stdio) -> Running {
        let name: &[&str] = if more.contains(&"--name") { &[] } else { &["--name", "radar7"] };
        let arguments = [&["source", "--to", ticket, "--json"], name, more].concat();
        let mut command = self.place.command(host, &arguments);
        command.stdin(input);
        Running::start(command)
    }

    /// A source on this host that sends this text, to its end.
    fn send_from(&self, host: &str, ticket: &str, text: &str, more: &[&str]) -> Ended {
        let input = self.place.path("text");
        fs::write(&input, text).unwrap();
        let demand: &[&str] = if more.contains(&"--demand") { &[] } else { &["--demand", "1M"] };
        let more = [demand, more].concat();
        self.source_at(host, ticket, &more, File::open(input).unwrap().into()).end()
    }

    /// A source that is fed by hand.
    fn fed(&self, ticket: &str, more: &[&str]) -> (Running, ChildStdin) {
        let (reader, writer) = std::io::pipe().unwrap();
        let source = self.source_of(ticket, more, reader.into());
        let writer: std::os::fd::OwnedFd = writer.into();
        (source, ChildStdin::from(writer))
    }

    /// Waits until the sink's file has so many bytes.
    #[track_caller]
    fn wait_for(&self, bytes: usize) {
        let there = || fs::metadata(self.out("radar7")).map_or(0, |it| it.len()) as usize;
        let come = wait_for(PATIENCE, || (there() >= bytes).then_some(()));
        assert!(come.is_some(), "{} of {bytes} bytes are there", there());
    }

    #[track_caller]
    fn arrived(&self) {
        let got = fs::read(self.out("radar7")).unwrap();
        let (got, sent) =
            (got.split_inclusive(|it| *it == b'\n'), self.records.split_inclusive(|it| *it == b'\n'));
        for (number, (got, sent)) in got.clone().zip(sent.clone()).enumerate() {
            let shown = String::from_utf8_lossy;
            assert_eq!(got, sent, "record {number}: {} for {}", shown(got), shown(sent));
        }
        assert_eq!((got.count(), sent.count()), (self.count(), self.count()));
    }

    fn count(&self) -> usize {
        self.records.iter().filter(|byte| **byte == b'\n').count()
    }
}

#[test]
fn records_arrive_once_and_in_order() {
    let net = Net::new(4_000);
    let (mut sink, ticket) = net.sink(&["--fsync"]);
    let (source, mut input) = net.fed(&ticket, &["--demand", "10M"]);
    input.write_all(&net.records).unwrap();
    net.wait_for(net.records.len());
    let report = sink.event("source");
    assert_eq!((&report["name"], &report["lost_records"]), (&"radar7".into(), &0.into()));
    drop(input);
    let ended = source.end();
    ended.succeeded();
    assert_eq!(ended.result()["written_records"][0], 4_000);
    net.arrived();
    // Another run of the source goes on behind.
    net.source(&ticket, &["--demand", "10M"]).end().succeeded();
    assert_eq!(fs::read(net.out("radar7")).unwrap(), net.records.repeat(2));
    sink.signal("TERM");
    sink.end().succeeded();
}

#[test]
fn a_sink_that_is_killed_goes_on_from_what_it_has() {
    let net = Net::new(6_000);
    let (sink, ticket) = net.sink(&[]);
    let (source, mut input) = net.fed(&ticket, &["--demand", "4M"]);
    let half = net.records.len() / 2;
    let records = net.records.clone();
    input.write_all(&records[..half]).unwrap();
    net.wait_for(half / 2);
    sink.signal("KILL");
    drop(sink.end());
    let feeding = std::thread::spawn(move || input.write_all(&records[half..]).unwrap());
    let (_sink, again) = net.sink(&[]);
    assert_eq!(ticket, again);
    feeding.join().unwrap();
    source.end().succeeded();
    net.arrived();
}

#[test]
fn a_source_that_is_killed_and_plays_its_input_again_passes_over_what_is_there() {
    let net = Net::new(6_000);
    let (_sink, ticket) = net.sink(&[]);
    let source = net.source(&ticket, &["--demand", "400K"]);
    net.wait_for(net.records.len() / 4);
    source.signal("KILL");
    drop(source.end());
    net.source(&ticket, &["--demand", "10M", "--replay"]).end().succeeded();
    net.arrived();
}

#[test]
fn a_relay_that_is_killed_takes_no_record_with_it() {
    let net = Net::new(6_000);
    let (_sink, ticket) = net.sink(&[]);
    let (one, first) = net.place.relay(&[]);
    let (_two, second) = net.place.relay(&[]);
    let mut source = net.source(&ticket, &["--demand", "300K", "--relay", &first, "--relay", &second]);
    let both = wait_for(PATIENCE, || {
        let paths = source.event("source")["paths"].as_array().unwrap().clone();
        let by_relay = paths.iter().filter(|path| path["name"].as_str().unwrap().starts_with("relay "));
        (by_relay.count() == 2).then_some(())
    });
    assert!(both.is_some());
    one.signal("KILL");
    source.end().succeeded();
    net.arrived();
}

#[test]
fn a_source_draws_relays_that_a_registry_lists() {
    let net = Net::new(100);
    let (_sink, ticket) = net.sink(&[]);
    let start = |host: &str, arguments: &[&str]| {
        Running::start(net.place.command(host, &[arguments, &["--json"]].concat()))
    };
    let mut registry = start("hub", &["registry", "--listen", "127.0.0.1:0"]);
    let ready = registry.event("ready");
    let (join, asks) = (ready["join"].as_str().unwrap(), ready["use"].as_str().unwrap());
    let fixed = ["relay", "--allow-destination", "127.0.0.0/8", "--registry", join, "--listen"];
    let relays = [
        ("one", "127.0.0.2:0", None),
        ("two", "127.0.0.3:0", None),
        ("three", "127.0.0.4:0", Some("--no-tcp")),
    ];
    let _relays = relays.map(|(name, listen, more)| {
        let mut relay = start(name, &fixed.into_iter().chain([listen]).chain(more).collect::<Vec<_>>());
        relay.event("enrolled");
        relay
    });
    let asking = ["--demand", "300K", "--replay", "--registry", asks, "--paths", "3"];
    // A source that has sent all, and whose input goes on.
    let drawn = |more: &[&str]| {
        let (mut source, mut input) = net.fed(&ticket, &[&asking[..], more].concat());
        input.write_all(&net.records).unwrap();
        let found = wait_for(PATIENCE, || {
            let paths = source.event("source")["paths"].as_array().unwrap().clone();
            let names = paths.iter().map(|path| path["name"].as_str().unwrap().to_owned());
            let relays: Vec<String> = names.filter(|name| name.starts_with("relay ")).collect();
            (relays.len() == 2).then_some(relays)
        });
        let no_tcp = found.unwrap().iter().any(|name| name.contains("127.0.0.4"));
        assert!(!no_tcp, "the third relay serves no TCP");
        (source, input)
    };
    // By figure 2 word by word.
    let (source, _input) = drawn(&["--literal"]);
    net.wait_for(net.records.len());
    source.signal("KILL");
    drop(source.end());
    // The registry is gone, and its last list is good.
    registry.signal("KILL");
    drop(registry.end());
    let (source, input) = drawn(&[]);
    drop(input);
    source.end().succeeded();
    net.arrived();
}

#[test]
fn a_source_waits_for_an_address_that_is_not_there() {
    let net = Net::new(10);
    let (_sink, ticket) = net.sink(&[]);
    let mut source = net.source(&ticket, &["--demand", "1M", "--bind", "192.0.2.1"]);
    let warning = source.event("warning")["message"].as_str().unwrap().to_owned();
    assert!(warning.contains("cannot connect from 192.0.2.1"), "{warning}");
    drop(source);
    net.source(&ticket, &["--demand", "1M", "--bind", "192.0.2.1,127.0.0.1"]).end().succeeded();
    net.arrived();
}

#[test]
fn the_second_of_two_live_sources_of_one_name_is_told() {
    let net = Net::new(10);
    let (_sink, ticket) = net.sink(&[]);
    let (first, mut input) = net.fed(&ticket, &["--demand", "1M"]);
    input.write_all(&net.records).unwrap();
    net.wait_for(net.records.len());
    let second = net.source(&ticket, &["--demand", "1M"]).end();
    second.failed(1, "another source named radar7 is connected");
    drop(input);
    first.end().succeeded();
    net.arrived();
}

#[test]
fn a_name_is_that_of_the_host_that_used_it_first() {
    let net = Net::new(10);
    let (sink, ticket) = net.sink(&[]);
    net.source(&ticket, &["--demand", "1M"]).end().succeeded();
    let forged = net.send_from("thief", &ticket, "forged\n", &[]);
    forged.failed(6, "the name radar7 is that of another host's source");
    net.arrived();
    // The same after a restart, and a name that nobody has used is free.
    sink.signal("TERM");
    sink.end().succeeded();
    let (sink, ticket) = net.sink(&[]);
    net.send_from("thief", &ticket, "forged\n", &[]).failed(6, "another host's source");
    net.send_from("thief", &ticket, "own\n", &["--name", "radar8"]).succeeded();
    net.arrived();
    // The operator gives the name to the other host, and to nobody else.
    sink.signal("TERM");
    sink.end().succeeded();
    let key = String::from_utf8(net.place.run("thief", &["id"]).stdout).unwrap();
    let (_sink, ticket) = net.sink(&["--allow", &format!("radar7={}", key.trim())]);
    net.send_from("source", &ticket, "late\n", &[]).failed(6, "another host's source");
    net.send_from("thief", &ticket, "own\n", &["--name", "radar8"]).failed(6, "another host's source");
    net.send_from("thief", &ticket, "allowed\n", &[]).succeeded();
    assert_eq!(fs::read(net.out("radar7")).unwrap(), [&net.records[..], b"allowed\n"].concat());
}

#[test]
fn records_of_another_process_under_its_name_take_none_of_a_source_away() {
    let net = Net::new(400);
    let (_sink, ticket) = net.sink(&[]);
    let (mut source, mut input) = net.fed(&ticket, &["--demand", "10M"]);
    let half = net.records.len() / 2;
    input.write_all(&net.records[..half]).unwrap();
    net.wait_for(half - 300);
    source.signal("STOP");
    // It waits until the sink has heard nothing of the first for three seconds.
    net.send_from("source", &ticket, "foreign\n", &[]).succeeded();
    source.signal("CONT");
    input.write_all(&net.records[half..]).unwrap();
    drop(input);
    let warning = source.event("warning")["message"].as_str().unwrap().to_owned();
    assert!(warning.contains("under the name radar7 meanwhile (records: 1)"), "{warning}");
    source.end().succeeded();
    let got = fs::read_to_string(net.out("radar7")).unwrap();
    assert_eq!(got.matches("foreign\n").count(), 1);
    assert!(got.replacen("foreign\n", "", 1).as_bytes() == net.records, "{got}");
}

#[test]
fn an_input_that_is_played_again_and_ends_before_what_the_sink_has_is_no_success() {
    let net = Net::new(10);
    let (_sink, ticket) = net.sink(&[]);
    let play = |text: &str| net.send_from("source", &ticket, text, &["--replay"]);
    play("1\n2\n3\n").succeeded();
    play("1\n").failed(1, "the sink has 3 records of this name, and the input gave only 1");
    play("").failed(1, "the input gave only 0");
    play("1\n2\n3\n").succeeded();
    play("1\n2\n3\n4\n").succeeded();
    assert_eq!(fs::read_to_string(net.out("radar7")).unwrap(), "1\n2\n3\n4\n");
}

#[test]
fn a_directory_has_one_sink_whatever_state_directory_another_has() {
    let net = Net::new(10);
    let (sink, ticket) = net.sink(&[]);
    let out = net.place.path("out").display().to_string();
    let fixed = [&out, "--listen", "127.0.0.1:0"].map(str::to_owned);
    let run = |host: &str, verb: &str| {
        let arguments = [&[verb][..], &fixed.each_ref().map(String::as_str)].concat();
        net.place.run(host, &arguments)
    };
    let by = format!("another byway process (process {} on host ", sink.id());
    for verb in ["sink", "recv"] {
        run("another", verb).failed(1, &by);
        run("sink", verb).failed(1, &by);
    }
    net.source(&ticket, &["--demand", "1M"]).end().succeeded();
    net.arrived();
    sink.signal("KILL");
    drop(sink.end());
    // Receivers may share the directory, and keep a sink out.
    let receiver = |host: &str| {
        let mut receiver =
            Running::start(net.place.command(host, &["recv", &out, "--listen", "127.0.0.1:0"]));
        assert!(receiver.line().starts_with("byway1-"));
        receiver
    };
    let receivers = (receiver("one"), receiver("two"));
    run("another", "sink").failed(1, "another byway process writes into");
    drop(receivers);
    let (_sink, again) = net.sink(&[]);
    assert_eq!(again, ticket);
}

#[test]
fn a_line_that_is_too_long_is_cut_or_skipped_and_ends_no_source() {
    let net = Net::new(10);
    let (_sink, ticket) = net.sink(&[]);
    let long = format!("one\n{}\nthree\n", "x".repeat(3 << 20));
    let more = ["--demand", "100M"];
    let cut = net.send_from("source", &ticket, &long, &more);
    cut.succeeded();
    assert!(String::from_utf8_lossy(&cut.stdout).contains("is longer than 1048576 bytes"));
    let first = format!("one\n{}\nthree\n", "x".repeat((1 << 20) - 1));
    assert!(fs::read_to_string(net.out("radar7")).unwrap() == first);
    net.send_from("source", &ticket, &long, &[&more[..], &["--long-lines", "skip"]].concat()).succeeded();
    assert!(fs::read_to_string(net.out("radar7")).unwrap() == first + "one\nthree\n");
}

#[test]
fn the_last_line_of_a_run_and_the_first_of_the_next_stay_two() {
    let net = Net::new(10);
    let (sink, ticket) = net.sink(&[]);
    net.send_from("source", &ticket, "one\nno end", &[]).succeeded();
    assert_eq!(fs::read_to_string(net.out("radar7")).unwrap(), "one\nno end");
    net.send_from("source", &ticket, "next\nno end", &[]).succeeded();
    sink.signal("KILL");
    drop(sink.end());
    let (_sink, ticket) = net.sink(&[]);
    net.send_from("source", &ticket, "last\n", &[]).succeeded();
    assert_eq!(fs::read_to_string(net.out("radar7")).unwrap(), "one\nno end\nnext\nno end\nlast\n");
    // Records that are no lines follow each other as they came.
    let raw = ["--name", "raw", "--record", "2"];
    net.send_from("source", &ticket, "abcd", &raw).succeeded();
    net.send_from("source", &ticket, "efgh", &raw).succeeded();
    assert_eq!(fs::read_to_string(net.out("raw")).unwrap(), "abcdefgh");
}

#[test]
fn files_are_rotated_while_records_come() {
    let net = Net::new(4_000);
    let (mut sink, ticket) = net.sink(&[]);
    let (source, mut input) = net.fed(&ticket, &["--demand", "10M"]);
    let path = net.out("radar7");
    let piece = net.records.len() / 4;
    let mut given = 0;
    let mut give = |input: &mut ChildStdin, bytes: usize| {
        input.write_all(&net.records[given..given + bytes]).unwrap();
        given += bytes;
    };
    give(&mut input, piece);
    net.wait_for(piece / 2);
    fs::rename(&path, net.out("radar7.1")).unwrap();
    assert_eq!(sink.event("new_file")["reason"], "moved");
    give(&mut input, piece);
    net.wait_for(piece / 2);
    fs::rename(&path, net.out("radar7.2")).unwrap();
    fs::write(&path, "").unwrap();
    assert_eq!(sink.event("new_file")["reason"], "moved");
    give(&mut input, 2 * piece);
    let rest = net.records.len() - 4 * piece;
    give(&mut input, rest);
    drop(input);
    source.end().succeeded();
    let files = ["radar7.1", "radar7.2", "radar7"].map(|name| fs::read(net.out(name)).unwrap());
    assert!(files.concat() == net.records, "{:?}", files.map(|file| file.len()));
}

#[test]
fn no_record_is_gone_unsaid_when_a_file_is_emptied_or_deleted() {
    let net = Net::new(0);
    let (mut sink, ticket) = net.sink(&[]);
    let (source, mut input) = net.fed(&ticket, &["--demand", "10M"]);
    let path = net.out("radar7");
    input.write_all(b"1\n2\n").unwrap();
    net.wait_for(4);
    fs::copy(&path, net.out("radar7.1")).unwrap();
    fs::OpenOptions::new().write(true).truncate(true).open(&path).unwrap();
    assert_eq!(sink.event("new_file")["reason"], "emptied");
    assert!(sink.event("warning")["message"].as_str().unwrap().contains("radar7 was emptied"));
    input.write_all(b"3\n4\n").unwrap();
    net.wait_for(4);
    assert_eq!(fs::read_to_string(&path).unwrap(), "3\n4\n", "and no hole before them");
    fs::remove_file(&path).unwrap();
    assert_eq!(sink.event("new_file")["reason"], "deleted");
    assert!(sink.event("warning")["message"].as_str().unwrap().contains("radar7 was deleted"));
    input.write_all(b"5\n6\n").unwrap();
    net.wait_for(4);
    assert_eq!(fs::read_to_string(&path).unwrap(), "5\n6\n");
    drop(input);
    source.end().succeeded();
}

#[test]
fn files_are_moved_away_while_no_sink_runs() {
    let net = Net::new(400);
    let (sink, ticket) = net.sink(&[]);
    net.source(&ticket, &["--demand", "10M"]).end().succeeded();
    sink.signal("KILL");
    drop(sink.end());
    fs::rename(net.out("radar7"), net.out("radar7.1")).unwrap();
    let (mut sink, ticket) = net.sink(&[]);
    let source = net.source(&ticket, &["--demand", "10M"]);
    assert_eq!(sink.event("new_file")["reason"], "missing");
    source.end().succeeded();
    net.arrived();
    assert!(fs::read(net.out("radar7.1")).unwrap() == net.records);
}

#[test]
fn a_source_that_is_refused_says_why_and_the_sink_warns_once() {
    let net = Net::new(40);
    let (sink, ticket) = net.sink(&[]);
    net.source(&ticket, &["--demand", "10M"]).end().succeeded();
    sink.signal("TERM");
    sink.end().succeeded();
    let whole = fs::read(net.out("radar7")).unwrap();
    fs::write(net.out("radar7"), &whole[..70]).unwrap();
    let (sink, ticket) = net.sink(&[]);
    let mut source = net.source(&ticket, &["--demand", "10M"]);
    let words = "radar7 has 70 bytes, and";
    let warning = source.event("warning")["message"].as_str().unwrap().to_owned();
    assert!(warning.starts_with("the sink refuses this source: ") && warning.contains(words), "{warning}");
    // It comes again twice a second.
    let why = |source: &mut Running| source.event("source")["slow_because"].as_str().map(str::to_owned);
    for _ in 0..4 {
        let why = why(&mut source).unwrap();
        assert!(why.contains(words), "{why}");
    }
    fs::rename(net.out("radar7"), net.out("radar7.1")).unwrap();
    source.end().succeeded();
    net.arrived();
    sink.signal("TERM");
    let ended = sink.end();
    ended.succeeded();
    assert_eq!(String::from_utf8_lossy(&ended.stdout).matches(words).count(), 1);
}

#[test]
fn what_makes_no_sense_is_refused_in_a_sentence() {
    let net = Net::new(10);
    let (_sink, ticket) = net.sink(&[]);
    for (demand, words) in [("0", "a demand of 0"), ("-5", "more than 0"), ("fast", "150K")] {
        let ended = net.source(&ticket, &["--demand", demand]).end();
        assert!(ended.code == Some(2) && ended.stderr.contains(words), "{demand}: {}", ended.stderr);
    }
    let (long, mut input) = net.fed(&ticket, &["--demand", "1M", "--prefixed"]);
    input.write_all(b"\0\0\0\x01a").unwrap();
    let feeding = std::thread::spawn(move || {
        let piece = vec![b'x'; 1 << 20];
        (0..100).all(|_| input.write_all(&piece).is_ok())
    });
    let ended = long.end();
    ended.failed(1, "record 2 of the input is longer than 1048576 bytes");
    assert!(!feeding.join().unwrap(), "nobody reads 100 MB of one record");
    assert_eq!(fs::read(net.out("radar7")).unwrap(), b"\0\0\0\x01a");
    let ended = net.place.run("source", &["send", "/etc/hostname", &ticket, "--no-relay"]);
    assert!(ended.code != Some(0) && ended.stderr.contains("byway sink"), "{}", ended.stderr);
}

#[test]
fn an_input_without_end_is_held_back_at_the_demand() {
    const DEMAND: u64 = 100_000;
    let net = Net::new(10);
    let (_sink, ticket) = net.sink(&[]);
    let (mut source, mut input) = net.fed(&ticket, &["--demand", &DEMAND.to_string()]);
    let given = Arc::new(AtomicU64::new(0));
    let count = Arc::clone(&given);
    std::thread::spawn(move || {
        let piece = [vec![b'x'; 99], b"\n".to_vec()].concat();
        while input.write_all(&piece).is_ok() {
            count.fetch_add(100, Ordering::Relaxed);
        }
    });
    net.wait_for(1);
    let begun = Instant::now();
    net.wait_for(400_000);
    let (took, written) = (begun.elapsed().as_secs_f64(), fs::metadata(net.out("radar7")).unwrap().len());
    let given = given.load(Ordering::Relaxed);
    // Bytes that the source process was `given` but that the sink has not yet `written` are in the
    // pipe, in the source's buffers or on the way: below 1 MB together.
    assert!(given < written + DEMAND * took as u64 + 1_000_000, "{given} bytes given, {written} written");
    let most = DEMAND as f64 * (took + 1.0) + 65_536.0;
    assert!((written as f64) < most, "{written} bytes in {took} s");
    let told = wait_for(PATIENCE, || {
        let why = source.event("source")["slow_because"].as_str().unwrap_or_default().to_owned();
        why.contains("--demand").then_some(())
    });
    assert!(told.is_some());
}

#[test]
fn every_record_goes_to_both_sinks() {
    let net = Net::new(2_000);
    let other = Place::new();
    let (_sink, first) = net.sink(&[]);
    let out = other.path("out").display().to_string();
    let second = ["sink", &out, "--listen", "127.0.0.1:0", "--json"];
    let mut second = Running::start(other.command("sink", &second));
    let ticket = second.event("ready")["ticket"].as_str().unwrap().to_owned();
    let demand = net.place.path("demand.txt");
    fs::write(&demand, "2M\n").unwrap();
    let input = net.place.path("records");
    fs::write(&input, &net.records).unwrap();
    let demand = demand.display().to_string();
    let fixed = ["source", "--name", "radar7", "--to", &first, "--to", &ticket, "--json", "--demand-file"];
    let mut command = net.place.command("source", &[&fixed[..], &[&demand]].concat());
    command.stdin(File::open(input).unwrap());
    Running::start(command).end().succeeded();
    net.arrived();
    assert_eq!(fs::read(other.path("out").join("radar7")).unwrap(), net.records);
}

#[test]
fn what_cannot_be_sent_is_given_up_and_counted() {
    let net = Net::new(3_000);
    let (_sink, ticket) = net.sink(&[]);
    let ended = net.source(&ticket, &["--demand", "100K", "--give-up-oldest", "--keep", "64K"]).end();
    ended.succeeded();
    assert_eq!(ended.result()["written_records"][0], 3_000, "numbers go on over what was given up");
    let lines: Vec<Vec<u8>> = net.records.split_inclusive(|it| *it == b'\n').map(<[u8]>::to_vec).collect();
    let got = fs::read(net.out("radar7")).unwrap();
    let mut sent = lines.iter();
    let got: Vec<&[u8]> = got.split_inclusive(|it| *it == b'\n').collect();
    assert!(got.iter().all(|got| sent.any(|sent| sent == got)), "in order, and each once");
    assert!(got.len() < lines.len() && *got.last().unwrap() == lines.last().unwrap(), "{}", got.len());
}
